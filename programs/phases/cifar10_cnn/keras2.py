"""Keras 2: the phases of a training step. Gradients are written to variables, or the backend would leave them out; CNTK's are its own call."""


# %% after optimizer
def place(n):
    return x_train[:n], y_train[:n]


def feed(x, y):
    """What fit() hands over: images, labels, the images' weights, and 1 for training."""
    return [x, y, np.ones(len(x), np.float32), 1.0]


inputs = model.inputs + model.targets + model.sample_weights + [K.learning_phase()]
parameters = model.trainable_weights
model._make_train_function()  # before anything else computes: MKL in CNTK, with one thread, divides by zero otherwise
if BACKEND == "cntk":

    def run(x, y):
        """In training mode, because it keeps what backward() needs: its state, and the images' losses."""
        values = dict(zip(inputs[:-1], feed(x, y)))
        state, outputs = loss_fn.forward({v: values[v] for v in loss_fn.arguments}, keep_for_backward=[loss_fn.output])
        return state, outputs[loss_fn.output]

    def forward(x, y):
        return run(x, y)[1]

    def backward(x, y):
        state, losses = run(x, y)
        loss_fn.backward(state, {loss_fn.output: np.ones_like(losses)}, parameters, as_numpy=False)
        return losses

    loss_fn = model.total_loss
else:
    gradients = [(K.zeros(K.int_shape(p)), g) for p, g in zip(parameters, K.gradients(model.total_loss, parameters))]
    losses = K.function(inputs, [model.total_loss])
    losses_and_gradients = K.function(inputs, [model.total_loss], updates=gradients)

    def forward(x, y):
        return losses(feed(x, y))[0]

    def backward(x, y):
        return losses_and_gradients(feed(x, y))[0]


def step(x, y):
    return np.ravel(model.train_on_batch(x, y))[0]  # the loss, and behind it the metrics where there are some


def value(loss):
    return float(np.mean(loss))
