"""MLX: on a CPU, a batch is divided among as many streams as there are processors ("Using Streams" in MLX's documentation), because
MLX computes a stream of a CPU in one thread. A GPU shares out each operation among its cores: there, the compiled network is all."""

# %% predict
streams = [mx.new_stream(device) for _ in range(os.cpu_count())] if device == mx.cpu else []
forward = mx.compile(model, inputs=model.state)


def extract(batch):
    parts = []
    for i, stream in enumerate(streams[: len(batch)]):
        with mx.stream(stream):
            parts.append(model(mx.array(batch[i :: len(streams)])))
    if not parts:
        return np.array(forward(mx.array(batch)))
    mx.eval(parts)
    features = np.empty((len(batch), *parts[0].shape[1:]), np.float32)
    for i, part in enumerate(parts):
        features[i :: len(streams)] = part
    return features


def predict():
    batches = [x[start : start + BATCHSIZE] for start in range(0, len(x), BATCHSIZE)]
    return np.concatenate([extract(batch) for batch in batches])


log = PassLog()
for _ in range(2):
    log.done(predict())
log.latency(lambda: extract(x[:1]))
