"""Flax: a pure, donated state, as its guide to performance has it."""

# %% step
sgd = optax.sgd(LR, momentum=MOMENTUM)
if NETWORK == "lstm":
    sgd = optax.chain(optax.clip_by_global_norm(CLIP), sgd)
optimizer = nnx.Optimizer(model, sgd, wrt=nnx.Param)
graphdef, state = nnx.split((model, optimizer))


def loss_fn(model, x, y):
    return optax.softmax_cross_entropy_with_integer_labels(model(x), y).mean()


@partial(jax.jit, donate_argnums=0)
def step(state, x, y):
    model, optimizer = nnx.merge(graphdef, state)
    loss, grads = nnx.value_and_grad(loss_fn)(model, x, y)
    optimizer.update(model, grads)
    return nnx.state((model, optimizer)), loss


log = StepLog(REPEATS)
for steps in [WARMUP] + [STEPS] * REPEATS:
    for x, y in log.take(batches, steps):
        state, result = step(state, x, y)
    log.done(steps, np.asarray(result))
nnx.update((model, optimizer), state)
