"""Flax: a pure, donated state, as its guide to performance has it, and one compiled lax.scan over the epoch, which cuts the
batches out itself. Unrolling the loop over the words (an option of nnx.RNN) gains nothing on a CPU."""

# %% train
from functools import partial

graphdef, state = nnx.split((model, optimizer))


@partial(jax.jit, donate_argnums=0)
def train_step(state, x, y, rows):
    model, optimizer = nnx.merge(graphdef, state)
    loss, grads = nnx.value_and_grad(loss_fn)(model, x[rows], y[rows])
    optimizer.update(model, grads)
    return nnx.state((model, optimizer)), len(rows) * loss


@partial(jax.jit, donate_argnums=0)
def train_steps(state, x, y, batches):
    state, losses = jax.lax.scan(lambda state, rows: train_step(state, x, y, rows), state, batches)
    return state, losses.sum()


n_scanned = len(x_train) // BATCHSIZE * BATCHSIZE
log = EpochLog(EPOCHS)
for _ in range(EPOCHS):
    order = rngs.permutation(len(x_train))
    total = 0.0
    if n_scanned:
        state, total = train_steps(state, x_train, y_train, order[:n_scanned].reshape(-1, BATCHSIZE))
    for start in range(n_scanned, len(order), BATCHSIZE):
        state, loss = train_step(state, x_train, y_train, order[start : start + BATCHSIZE])
        total += loss
    nnx.update((model, optimizer), state)
    log.epoch(float(total) / len(x_train), evaluate)
