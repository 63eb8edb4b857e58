"""torchvision's ResNet-50, as its site has it: a file of PyTorch -> canonical weights. Run by PyTorch's Python: FILE, and where to write.

Only tensors are read, no other objects. A checkpoint may have them in one of its entries, and DataParallel's names begin with
``module.``. The classifier and the counters of batch norm have no place among the canonical weights.
"""

import sys

import numpy as np
import torch


def holds_tensors(part):
    return isinstance(part, dict) and bool(part) and all(isinstance(value, torch.Tensor) for value in part.values())


file, to = sys.argv[1:]
try:
    tensors = torch.load(file, map_location="cpu", weights_only=True)
except Exception:
    sys.exit(
        "it is no file of tensors: a whole model holds code, which is not read; "
        "save torch.save(model.state_dict(), FILE) where the model is"
    )
if not holds_tensors(tensors):
    entries = list(filter(holds_tensors, tensors.values())) if isinstance(tensors, dict) else []
    if len(entries) != 1:
        is_dict = isinstance(tensors, dict)
        what = f"a dictionary of {', '.join(map(str, tensors))}" if is_dict else f"a {type(tensors).__name__}"
        sys.exit(f"it is {what}, and no dictionary of tensors: save the model's state_dict() alone"[:290])
    (tensors,) = entries
tensors = {name.removeprefix("module."): tensor for name, tensor in tensors.items()}
left_out = ("fc.weight", "fc.bias")
weights = {name: tensor for name, tensor in tensors.items() if name not in left_out and not name.endswith("tracked")}
np.savez(to, **{name: tensor.float().numpy() for name, tensor in weights.items()})
