"""TensorFlow: one fused kernel updates a weight and its velocity, the one behind TensorFlow 1's MomentumOptimizer."""


# %% after weights
class FusedMomentum(tf.Module):
    def __init__(self, learning_rate, momentum):
        super().__init__()
        self.learning_rate, self.momentum = learning_rate, momentum
        self.velocities = [tf.Variable(tf.zeros_like(v), trainable=False) for v in model.trainable_variables]

    def apply_gradients(self, gradients_and_variables):
        for velocity, (gradient, variable) in zip(self.velocities, gradients_and_variables):
            tf.raw_ops.ResourceApplyMomentum(
                var=variable.value.handle,
                accum=velocity.handle,
                lr=self.learning_rate,
                grad=tf.convert_to_tensor(gradient),
                momentum=self.momentum,
            )


tf.keras.optimizers.SGD = FusedMomentum
