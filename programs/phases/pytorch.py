"""PyTorch: the phases of a training step."""


# %% after optimizer
def place(n):
    return x_train[:n], y_train[:n]


def forward(x, y):
    return loss_fn(model(x), y)


def backward(x, y):
    optimizer.zero_grad()
    loss = forward(x, y)
    loss.backward()
    return loss


def step(x, y):
    loss = backward(x, y)
    optimizer.step()
    return loss


def value(loss):
    return loss.item()


model.train()
