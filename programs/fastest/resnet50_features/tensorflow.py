"""TensorFlow: the weights frozen into the graph, as for serving, so that Grappler folds what is constant."""

# %% after weights
from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

if not JIT_COMPILE:
    frozen = convert_variables_to_constants_v2(
        forward.get_concrete_function(tf.TensorSpec((None, 224, 224, 3), tf.float32))
    )

    def forward(batch):
        return frozen(tf.convert_to_tensor(batch))[0]
