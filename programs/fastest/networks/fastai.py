"""fastai: PyTorch's fused SGD in fastai's OptimWrapper, in the place of fastai's own, which is a chain of Python functions."""

# %% after weights
from fastai.basics import OptimWrapper


def SGD(params, lr, mom):
    return OptimWrapper(params, torch.optim.SGD, lr=lr, momentum=mom, fused=True)
