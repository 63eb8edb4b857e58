"""Lasagne on Theano: one convolution. ``filter_flip=False``: the kernel is not mirrored."""

# %% after setup
compute = theano.function([], T.nnet.conv2d(theano.shared(x), theano.shared(w), border_mode=1, filter_flip=False))
tell(np.asarray(compute()), device)
