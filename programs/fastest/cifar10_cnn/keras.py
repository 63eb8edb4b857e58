"""Keras: instead of fit() a loop from scratch on images that stay on the device, as its guides write it for each backend. TensorFlow runs an
epoch as one graph; JAX donates its state; PyTorch on a CPU gets images with channels last in memory."""

# %% after data
if BACKEND == "torch" and device.type == "cpu":  # the shape stays; batches and what layers return keep the order
    x_train = backend.from_numpy(x_train).to(memory_format=backend.channels_last)

# %% train
import numpy as np

optimizer, loss_fn, trainable = model.optimizer, model.loss, model.trainable_variables
optimizer.build(trainable)
images, labels = keras.ops.convert_to_tensor(x_train), keras.ops.convert_to_tensor(y_train)
n = len(x_train)


if BACKEND == "tensorflow":

    @backend.function(jit_compile=model.jit_compile)
    def train_step(x, y):
        with backend.GradientTape() as tape:
            loss = loss_fn(y, model(x, training=True))
        optimizer.apply(tape.gradient(loss, trainable), trainable)
        return loss

    @backend.function
    def train_epoch(order):
        total = 0.0
        for start in backend.range(0, n, BATCHSIZE):
            rows = order[start : start + BATCHSIZE]
            loss = train_step(backend.gather(images, rows), backend.gather(labels, rows))
            total += loss * backend.cast(backend.size(rows), "float32")
        return total


elif BACKEND == "jax":
    from functools import partial

    def loss_and_others(weights, others, x, y):
        logits, others = model.stateless_call(weights, others, x, training=True)
        return loss_fn(y, logits), others

    @partial(backend.jit, donate_argnums=0)
    def train_step(state, images, labels, rows):
        weights, others, slots, total = state
        grad_fn = backend.value_and_grad(loss_and_others, has_aux=True)
        (loss, others), gradients = grad_fn(weights, others, images[rows], labels[rows])
        weights, slots = optimizer.stateless_apply(slots, gradients, weights)
        return weights, others, slots, total + loss * len(rows)

    def train_epoch(order):
        kept = trainable, model.non_trainable_variables, optimizer.variables
        state = *([v.value for v in variables] for variables in kept), keras.ops.zeros(())
        for rows in np.split(order, range(BATCHSIZE, n, BATCHSIZE)):
            state = train_step(state, images, labels, rows)  # not a lax.scan: convolutions in a loop are slow on a CPU
        *values, total = state
        for variables, new in zip(kept, values):
            for v, value in zip(variables, new):
                v.assign(value)
        return total


else:

    def train_epoch(order):
        model.train()
        total = 0.0
        for rows in keras.ops.convert_to_tensor(order).split(BATCHSIZE):
            model.zero_grad()
            loss = loss_fn(labels[rows], model(images[rows], training=True))
            loss.backward()
            with backend.no_grad():
                optimizer.apply([v.value.grad for v in trainable], trainable)
            total += loss.detach() * len(rows)
        return total


log = EpochLog(EPOCHS)
for _ in range(EPOCHS):
    log.epoch(float(train_epoch(np.random.permutation(n))) / n, evaluate)
