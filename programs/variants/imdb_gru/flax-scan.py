"""Flax, an epoch a call: `nnx.scan` repeats the step in one compiled loop over the rows of a matrix, one row a batch."""

# %% train
@nnx.jit
def train_step(model, optimizer, x, y):
    loss, grads = nnx.value_and_grad(loss_fn)(model, x, y)
    optimizer.update(model, grads)
    return loss


@nnx.jit
def train_steps(model, optimizer, x, y, batches):
    @nnx.scan(in_axes=(nnx.Carry, 0), out_axes=(nnx.Carry, 0))
    def scan(carry, batch):
        return carry, train_step(*carry, x[batch], y[batch])

    return scan((model, optimizer), batches)[1].sum()


n_full = len(x_train) // BATCHSIZE * BATCHSIZE  # reviews in full batches
log = EpochLog(EPOCHS)
for _ in range(EPOCHS):
    order = rngs.permutation(len(x_train))
    total = 0.0
    if n_full:
        batches = order[:n_full].reshape(-1, BATCHSIZE)
        total = BATCHSIZE * train_steps(model, optimizer, x_train, y_train, batches)
    if n_full < len(order):
        batch = order[n_full:]
        total += len(batch) * train_step(model, optimizer, x_train[batch], y_train[batch])
    log.epoch(float(total) / len(x_train), evaluate)
