"""TensorFlow: the phases of a training step."""


# %% after optimizer
def place(n):
    with tf.device(device):
        return tf.constant(x_train[:n]), tf.constant(y_train[:n])


@tf.function(jit_compile=JIT_COMPILE)
def forward(x, y):
    return loss_fn(y, model(x, training=True))


@tf.function(jit_compile=JIT_COMPILE)
def loss_and_gradients(x, y):  # both returned: what nobody uses is not computed in a graph
    with tf.GradientTape() as tape:
        loss = loss_fn(y, model(x, training=True))
    return loss, tape.gradient(loss, model.trainable_variables)


def backward(x, y):
    return loss_and_gradients(x, y)[0]


@tf.function(jit_compile=JIT_COMPILE)
def step(x, y):
    loss, gradients = loss_and_gradients(x, y)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    return loss


def value(loss):
    return float(loss)
