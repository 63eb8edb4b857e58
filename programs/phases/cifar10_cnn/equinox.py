"""Equinox: the phases of a training step."""


# %% after optimizer
def place(n):
    return x_train[:n], y_train[:n]


@eqx.filter_jit
def loss_of(model, x, y, key):
    return loss_fn(model, x, y, key)


@eqx.filter_jit
def loss_and_grads(model, x, y, key):
    return eqx.filter_value_and_grad(loss_fn)(model, x, y, key)  # both are outputs: XLA drops what nothing uses


@eqx.filter_jit
def train_step(model, opt_state, x, y, key):
    loss, grads = eqx.filter_value_and_grad(loss_fn)(model, x, y, key)
    updates, opt_state = optimizer.update(grads, opt_state)
    return eqx.apply_updates(model, updates), opt_state, loss


def next_key():
    global train_key
    train_key, key = jax.random.split(train_key)
    return key


def forward(x, y):
    return loss_of(model, x, y, next_key())


def backward(x, y):
    loss, grads = loss_and_grads(model, x, y, next_key())
    return loss


def step(x, y):
    global model, opt_state
    model, opt_state, loss = train_step(model, opt_state, x, y, next_key())
    return loss


def value(loss):
    return loss.item()
