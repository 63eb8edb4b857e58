"""MLX: on a CPU a stream is one thread, so each batch is divided among as many streams as there are cores ("Using Streams" in MLX's
documentation)."""

# %% train
from mlx.utils import tree_map

n_streams = os.cpu_count() if device.type == mx.cpu else 1
streams = [mx.new_stream(device) for _ in range(n_streams)]
state = [model.state, optimizer.state, mx.random.state]


def sum_fn(model, x, y):
    return nn.losses.cross_entropy(model(x), y, reduction="sum")


sum_and_grad = nn.value_and_grad(model, sum_fn)


@partial(mx.compile, inputs=state, outputs=state)
def step(x, y):
    parts = []
    for i, stream in enumerate(streams[: len(y)]):
        with mx.stream(stream):
            parts.append(sum_and_grad(model, x[i::n_streams], y[i::n_streams]))
    loss, grads = tree_map(lambda *sums: sum(sums) / len(y), *parts)
    optimizer.update(model, grads)
    return loss


log = EpochLog(EPOCHS)
for _ in range(EPOCHS):
    model.train()
    total = mx.array(0.0)
    order = mx.random.permutation(len(x_train))
    for start in range(0, len(order), BATCHSIZE):
        batch = order[start : start + BATCHSIZE]
        total += step(x_train[batch], y_train[batch]) * len(batch)
        mx.eval(state, total)
    log.epoch(total.item() / len(x_train))
    if TEST_EACH_EPOCH:
        log.test(accuracy(predict()))
