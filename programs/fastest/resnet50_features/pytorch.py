"""PyTorch: batch norm folded into the convolutions in front of it, by torch.fx; the loop is the notebook's."""

# %% after weights
from torch.fx.experimental.optimization import fuse

weights = export_weights()
if "forward" not in vars(model):               # in BF16 it is another one, which cannot be traced
    model = fuse(model)


def export_weights():
    return weights
