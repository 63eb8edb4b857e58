"""Flax: the phases of a training step."""


# %% after optimizer
def place(n):
    return x_train[:n], y_train[:n]


@nnx.jit
def loss_of(model, x, y):
    loss, _ = loss_fn(model, x, y)
    return loss


@nnx.jit
def loss_and_grads(model, x, y):
    (loss, _), grads = nnx.value_and_grad(loss_fn, has_aux=True)(model, x, y)
    return loss, grads  # an output: XLA drops what nothing uses


@nnx.jit
def train_step(model, optimizer, x, y):
    (loss, _), grads = nnx.value_and_grad(loss_fn, has_aux=True)(model, x, y)
    optimizer.update(model, grads)
    return loss


train_model = nnx.view(model, deterministic=False)  # dropout on
forward = nnx.cached_partial(loss_of, train_model)
forward_backward = nnx.cached_partial(loss_and_grads, train_model)
step = nnx.cached_partial(train_step, train_model, optimizer)


def backward(x, y):
    loss, grads = forward_backward(x, y)
    return loss


def value(loss):
    return loss.item()
