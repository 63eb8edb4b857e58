"""tinygrad: the phases of a training step, each captured by a TinyJit as the notebook's step is."""

# %% after optimizer
from functools import cache


def place(n):
    return x_train[:n].clone().realize(), y_train[:n].clone().realize()


@cache
def jit(phase, n):  # a TinyJit replays one shape
    return TinyJit(Context(TRAINING=1)(phase))


def loss_fn(x, y):
    return model(x).sparse_categorical_crossentropy(y)


def only_loss(x, y):
    return loss_fn(x, y).realize()


def loss_and_gradients(x, y):
    optimizer.zero_grad()
    loss = loss_fn(x, y).backward()
    return loss.realize(*(p.grad for p in parameters))


def update(x, y):
    optimizer.zero_grad()
    loss = loss_fn(x, y).backward()
    return loss.realize(*optimizer.schedule_step())


def forward(x, y):
    return jit(only_loss, len(x))(x, y)


def backward(x, y):
    return jit(loss_and_gradients, len(x))(x, y)


def step(x, y):
    return jit(update, len(x))(x, y)


def value(loss):
    return loss.item()
