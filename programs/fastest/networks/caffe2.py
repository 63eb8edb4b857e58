"""Caffe2: nothing is known that the notebook lacks. NNPACK, the other engine for convolutions, is further from the reference on resnet56
than the proof allows."""
