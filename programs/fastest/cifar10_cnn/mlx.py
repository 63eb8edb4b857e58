"""MLX: on a CPU, every batch is divided among as many streams as there are processors ("Using Streams" in MLX's documentation), because
MLX computes a stream of a CPU in one thread. A GPU shares out each operation among its cores: there, the notebook's own loop is all."""

# %% after optimizer
from mlx.utils import tree_map

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
