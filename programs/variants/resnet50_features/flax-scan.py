"""Flax, an epoch a call: `jax.lax.map` is one compiled loop over all full batches."""

# %% predict
graphdef, state = nnx.split(model)


@jax.jit
def forward(state, batch):
    model = nnx.merge(graphdef, state)
    return model(batch)


@jax.jit
def forward_all(state, batches):
    model = nnx.merge(graphdef, state)
    return jax.lax.map(model, batches)


def extract(batch):
    return np.asarray(forward(state, batch))


def predict():
    n_full = len(x) // BATCHSIZE * BATCHSIZE       # images in full batches
    features = []
    if n_full:
        batches = x[:n_full].reshape(-1, BATCHSIZE, 224, 224, 3)
        features = list(np.asarray(forward_all(state, batches)))
    if n_full < len(x):
        features.append(extract(x[n_full:]))
    return np.concatenate(features)


log = PassLog()
for _ in range(2):                             # to warm up, and for the clock
    log.done(predict())
log.latency(lambda: extract(x[:1]))
