"""torchvision's ResNet-50, as its site has it: a file of PyTorch -> canonical weights. Run by PyTorch's Python: FILE, and where to write.

Only tensors are read, no other objects. The classifier and the counters of batch norm have no place among the canonical weights.
"""

import sys

import numpy as np
import torch

file, to = sys.argv[1:]
tensors = torch.load(file, map_location="cpu", weights_only=True)
left_out = ("fc.weight", "fc.bias")
weights = {name: tensor for name, tensor in tensors.items() if name not in left_out and not name.endswith("tracked")}
np.savez(to, **{name: tensor.float().numpy() for name, tensor in weights.items()})
