"""MLX: the GRU is called word by word on parts that one split makes, because the gradient of a slice is as large as all
that it was cut from; on a CPU a batch is divided among as many streams as processors, as MLX computes each in one
thread."""

# %% after model
from mlx.utils import tree_map


class Split(Classifier):
    def __call__(self, x):
        state = None
        for word in mx.split(self.embedding(x), x.shape[1], axis=1):
            state = self.gru(word, state)[:, -1]
        return self.fc(state)


model.__class__ = Split

# %% after optimizer
streams = [mx.new_stream(device) for _ in range(os.cpu_count())] if device == mx.cpu else []


def in_streams(loss_and_grad):
    """A part of the batch in each stream; their shares of the mean add up to its loss and gradients."""

    def divided(model, x, y):
        shares = []
        for i, stream in enumerate(streams[: len(y)]):
            with mx.stream(stream):
                x_part, y_part = x[i :: len(streams)], y[i :: len(streams)]
                share = len(y_part) / len(y)
                mean = loss_and_grad(model, x_part, y_part)
                shares.append(tree_map(lambda a, share=share: a * share, mean))
        return tree_map(lambda *terms: sum(terms), *shares)

    return divided


if streams:
    loss_and_grad = in_streams(loss_and_grad)
