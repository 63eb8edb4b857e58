"""PyTorch: one fused kernel updates a weight and its velocity; images have channels last in memory from the start."""

# %% after weights
from functools import partial

if device.type == "cpu" and inputs.dim() == 4:
    batches = repeat((inputs.contiguous(memory_format=torch.channels_last), labels.long()))
if torch.__version__ >= "2":
    torch.optim.SGD = partial(torch.optim.SGD, fused=True)
