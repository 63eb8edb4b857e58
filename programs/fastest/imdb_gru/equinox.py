"""Equinox: donated arrays and one compiled lax.scan over the epoch, which cuts the batches out itself."""

# %% train
from functools import partial

arrays, static = eqx.partition(model, eqx.is_inexact_array)


@partial(jax.jit, donate_argnums=0)
def train_step(state, x, y, rows):
    arrays, opt_state = state
    loss, grads = eqx.filter_value_and_grad(loss_fn)(eqx.combine(arrays, static), x[rows], y[rows])
    updates, opt_state = optimizer.update(grads, opt_state)
    return (eqx.apply_updates(arrays, updates), opt_state), loss * len(rows)


@partial(jax.jit, donate_argnums=0)
def train_steps(state, x, y, batches):
    state, losses = jax.lax.scan(lambda state, rows: train_step(state, x, y, rows), state, batches)
    return state, losses.sum()


n_scanned = len(x_train) // BATCHSIZE * BATCHSIZE
state = arrays, opt_state
log = EpochLog(EPOCHS)
for epoch in range(EPOCHS):
    order = np.asarray(jax.random.permutation(jax.random.fold_in(train_key, epoch), len(x_train)))
    total = 0.0
    if n_scanned:
        state, total = train_steps(state, x_train, y_train, order[:n_scanned].reshape(-1, BATCHSIZE))
    for start in range(n_scanned, len(order), BATCHSIZE):
        state, loss = train_step(state, x_train, y_train, order[start : start + BATCHSIZE])
        total += loss
    model = eqx.combine(state[0], static)
    log.epoch(float(total) / len(x_train), evaluate)
