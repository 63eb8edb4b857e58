"""Flax: the phases of a training step."""


# %% after optimizer
def place(n):
    return x_train[:n], y_train[:n]


loss_of = nnx.jit(loss_fn)
loss_and_grads = nnx.jit(nnx.value_and_grad(loss_fn))  # returns the gradients: XLA drops what nothing uses


@nnx.jit
def train_step(model, optimizer, x, y):
    loss, grads = nnx.value_and_grad(loss_fn)(model, x, y)
    optimizer.update(model, grads)
    return loss


forward = nnx.cached_partial(loss_of, train_model)
forward_backward = nnx.cached_partial(loss_and_grads, train_model)
step = nnx.cached_partial(train_step, train_model, optimizer)


def backward(x, y):
    loss, grads = forward_backward(x, y)
    return loss


def value(loss):
    return loss.item()
