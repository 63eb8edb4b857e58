"""Keras: instead of train_on_batch() a step from scratch, as its guides write it for each backend. TensorFlow compiles it as a graph, JAX
donates its state, PyTorch on a CPU gets images with channels last in memory."""

# %% step
optimizer = keras.optimizers.SGD(LR, MOMENTUM, global_clipnorm=CLIP if NETWORK == "lstm" else None)
loss_fn = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
trainable, others = model.trainable_variables, model.non_trainable_variables
optimizer.build(trainable)
state = [[v.value for v in variables] for variables in (trainable, others, optimizer.variables)]

if BACKEND == "tensorflow":

    @backend.function
    def step(x, y):
        with backend.GradientTape() as tape:
            loss = loss_fn(y, model(x, training=True))
        optimizer.apply(tape.gradient(loss, trainable), trainable)
        return loss


elif BACKEND == "jax":
    from functools import partial

    def loss_and_others(weights, others, x, y):
        logits, others = model.stateless_call(weights, others, x, training=True)
        return loss_fn(y, logits), others

    @partial(backend.jit, donate_argnums=0)
    def of_state(state, x, y):
        weights, others, slots = state
        grad_fn = backend.value_and_grad(loss_and_others, has_aux=True)
        (loss, others), gradients = grad_fn(weights, others, x, y)
        weights, slots = optimizer.stateless_apply(slots, gradients, weights)
        return [weights, others, slots], loss

    def step(x, y):
        global state
        state, loss = of_state(state, x, y)
        return loss


else:
    if x.ndim == 4 and x.device.type == "cpu":
        x = x.contiguous(memory_format=backend.channels_last)

    def step(x, y):
        model.zero_grad()
        loss = loss_fn(y, model(x, training=True))
        loss.backward()
        with backend.no_grad():
            optimizer.apply([v.value.grad for v in trainable], trainable)
        return loss.detach()


log = StepLog(REPEATS)
for steps in [WARMUP] + [STEPS] * REPEATS:
    for _ in range(steps):
        result = step(x, y)
    log.done(steps, ops.convert_to_numpy(result))
if BACKEND == "jax":
    for variables, values in zip((trainable, others, optimizer.variables), state):
        for v, value in zip(variables, values):
            v.assign(value)
