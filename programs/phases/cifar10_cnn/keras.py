"""Keras: the phases of a training step, as its guides write a training loop from scratch on each backend."""

# %% after optimizer
optimizer, loss_fn, trainable = model.optimizer, model.loss, model.trainable_variables
optimizer.build(trainable)


if BACKEND == "tensorflow":

    def compiled(function):
        return backend.function(function, jit_compile=model.jit_compile)

    def place(n):
        return backend.constant(x_train[:n]), backend.constant(y_train[:n])

    @compiled
    def forward(x, y):
        return loss_fn(y, model(x, training=True))

    @compiled
    def loss_and_gradients(x, y):  # returns both: a graph leaves out what nobody asks for
        with backend.GradientTape() as tape:
            loss = loss_fn(y, model(x, training=True))
        return loss, tape.gradient(loss, trainable)

    def backward(x, y):
        return loss_and_gradients(x, y)[0]

    @compiled
    def step(x, y):
        loss, gradients = loss_and_gradients(x, y)
        optimizer.apply(gradients, trainable)
        return loss


elif BACKEND == "jax":
    weights = [v.value for v in trainable]
    others = [v.value for v in model.non_trainable_variables]  # the dropout layers' random states
    slots = [v.value for v in optimizer.variables]

    def place(n):
        return backend.device_put((x_train[:n], y_train[:n]))

    def loss_and_others(weights, others, x, y):
        logits, others = model.stateless_call(weights, others, x, training=True)
        return loss_fn(y, logits), others

    loss_and_gradients = backend.value_and_grad(loss_and_others, has_aux=True)
    jit_forward = backend.jit(loss_and_others)
    jit_backward = backend.jit(loss_and_gradients)  # returns the gradients: XLA leaves out what nobody asks for

    def train_step(weights, others, slots, x, y):
        (loss, others), gradients = loss_and_gradients(weights, others, x, y)
        weights, slots = optimizer.stateless_apply(slots, gradients, weights)
        return loss, weights, others, slots

    jit_step = backend.jit(train_step, donate_argnums=(0, 1, 2))

    def forward(x, y):
        global others
        loss, others = jit_forward(weights, others, x, y)
        return loss

    def backward(x, y):
        global others
        (loss, others), _ = jit_backward(weights, others, x, y)
        return loss

    def step(x, y):
        global weights, others, slots
        loss, weights, others, slots = jit_step(weights, others, slots, x, y)
        return loss


else:
    model.train()

    def place(n):
        return keras.ops.convert_to_tensor(x_train[:n]), keras.ops.convert_to_tensor(y_train[:n])

    def forward(x, y):
        return loss_fn(y, model(x, training=True))

    def backward(x, y):
        model.zero_grad()
        loss = forward(x, y)
        loss.backward()
        return loss

    def step(x, y):
        loss = backward(x, y)
        with backend.no_grad():
            optimizer.apply([v.value.grad for v in trainable], trainable)
        return loss


def value(loss):
    return keras.ops.convert_to_numpy(loss).item()
