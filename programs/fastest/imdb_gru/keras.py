"""Keras: instead of fit() a loop from scratch on reviews that stay on the device, as its guides write it for each
backend. TensorFlow runs an epoch as one graph; JAX donates its state; PyTorch on a CPU gets the GRU's general loop,
unrolled."""

# %% after model
if BACKEND == "torch" and device.type == "cpu":
    # The loop that "auto" takes here cuts words out one by one, and the gradient of each is as large as all of them
    model.layers[1].use_cudnn, model.layers[1].unroll = False, True

# %% train
optimizer, loss_fn, trainable = model.optimizer, model.loss, model.trainable_variables
optimizer.build(trainable)
reviews, labels = keras.ops.convert_to_tensor(x_train), keras.ops.convert_to_tensor(y_train)
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
            loss = train_step(backend.gather(reviews, rows), backend.gather(labels, rows))
            total += loss * backend.cast(backend.size(rows), "float32")
        return total


elif BACKEND == "jax":
    from functools import partial

    def loss_of(weights, others, x, y):
        logits, _ = model.stateless_call(weights, others, x, training=True)
        return loss_fn(y, logits)

    @partial(backend.jit, donate_argnums=0)
    def train_step(state, others, reviews, labels, rows):
        weights, slots, total = state
        loss, gradients = backend.value_and_grad(loss_of)(weights, others, reviews[rows], labels[rows])
        weights, slots = optimizer.stateless_apply(slots, gradients, weights)
        return weights, slots, total + loss * len(rows)

    def train_epoch(order):
        kept = trainable, optimizer.variables
        others = [v.value for v in model.non_trainable_variables]
        state = *([v.value for v in variables] for variables in kept), keras.ops.zeros(())
        for rows in np.split(order, range(BATCHSIZE, n, BATCHSIZE)):
            state = train_step(state, others, reviews, labels, rows)
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
            loss = loss_fn(labels[rows], model(reviews[rows], training=True))
            loss.backward()
            with backend.no_grad():
                optimizer.apply([v.value.grad for v in trainable], trainable)
            total += loss.detach() * len(rows)
        return total


log = EpochLog(EPOCHS)
for _ in range(EPOCHS):
    log.epoch(float(train_epoch(np.random.permutation(n))) / n, evaluate)
