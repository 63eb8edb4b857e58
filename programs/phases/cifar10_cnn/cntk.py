"""CNTK: the phases of a training step."""


# %% after optimizer
def place(n):
    return [C.Value.create(v, data[:n], device=device) for v, data in ((x, x_train), (y, y_train))]


def forward(images, labels):
    return run(images, labels)[1]


def backward(images, labels):
    state, losses = run(images, labels)
    loss.backward(state, {loss.output: np.ones((len(images), 1), np.float32)}, z.parameters, as_numpy=False)
    return losses


def step(images, labels):
    trainer.train_minibatch({x: images, y: labels})
    return trainer.previous_minibatch_loss_average


def value(losses):
    return float(np.mean(losses))


def run(images, labels):
    """In training mode, because it keeps what backward() needs: its state, and the images' losses."""
    state, outputs = loss.forward({x: images, y: labels}, keep_for_backward=[loss.output])
    return state, outputs[loss.output]
