"""Plays TensorFlow's benchmarks of 2017 (tf_cnn_benchmarks), a repeat of steps a turn: ``__main__`` writes the script that calls it.

Runs in the environment of TensorFlow 1.
"""

import sys

from common.steps import StepLog

# Flags of theirs. On a CPU alone channels are last, and the only device keeps the variables
FLAGS = {
    "device": "cpu",
    "local_parameter_device": "cpu",
    "data_format": "NHWC",
    "variable_update": "parameter_server",
    "optimizer": "momentum",
    "init_learning_rate": 1e-9,  # with a larger one the losses of its AlexNet are soon no numbers
    "weight_decay": 0.0,  # our step has none
}


def play(folder, model, batch_size, warmup, steps, repeats):
    """Train on their synthetic images. folder: of tf_cnn_benchmarks. model: by their name."""
    sys.path.insert(0, folder)
    from tensorflow.python import ops
    from tensorflow.python.ops import variables

    # The name that TensorFlow 2 gave the module
    ops.variable_v1 = sys.modules["tensorflow.python.ops.variable_v1"] = variables
    import benchmark_cnn
    import tensorflow.compat.v1 as tf

    tf.disable_v2_behavior()
    one_step, logs, losses = benchmark_cnn.benchmark_one_step, [], []

    def noted(*args, **options):
        if not logs:
            logs.append(StepLog(repeats))
        summary, loss = one_step(*args, **options)
        losses.append(float(loss))
        if len(losses) == warmup:
            logs[0].done(warmup, losses[-1])
        elif (len(losses) - warmup) % steps == 0:
            logs[0].done(steps, losses[-1])
        return summary, loss

    benchmark_cnn.benchmark_one_step = noted
    numbers = {"batch_size": batch_size, "num_warmup_batches": warmup, "num_batches": steps * repeats}
    params = benchmark_cnn.setup(benchmark_cnn.make_params(model=model, **FLAGS, **numbers))
    benchmark_cnn.BenchmarkCNN(params).run()
