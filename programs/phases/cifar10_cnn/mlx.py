"""MLX: the phases of a training step, each compiled as the notebook compiles its step."""


# %% after optimizer
def place(n):
    return x_train[:n], y_train[:n]


seen = [model.state, mx.random.state]
state = [model.state, optimizer.state, mx.random.state]


@partial(mx.compile, inputs=seen, outputs=seen)
def forward(x, y):
    return loss_fn(model, x, y)


@partial(mx.compile, inputs=seen, outputs=seen)
def loss_and_gradients(x, y):
    return loss_and_grad(model, x, y)


@partial(mx.compile, inputs=state, outputs=state)
def update(x, y):
    loss, gradients = loss_and_grad(model, x, y)
    optimizer.update(model, gradients)
    return loss


def backward(x, y):
    loss, gradients = loss_and_gradients(x, y)
    mx.eval(loss, gradients)  # lazy: only what is asked for is computed
    return loss


def step(x, y):
    loss = update(x, y)
    mx.eval(loss, state)
    return loss


def value(loss):
    return loss.item()


model.train()
