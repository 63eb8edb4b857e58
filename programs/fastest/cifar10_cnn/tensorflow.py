"""TensorFlow: the images stay on the device, one graph runs a whole epoch, and one fused kernel updates a weight and its velocity, the one
behind TensorFlow 1's MomentumOptimizer. XLA compiles the step on a GPU; on a CPU it does without oneDNN's convolutions and takes longer."""

# %% after data
with tf.device(device):
    images, labels = tf.constant(x_train), tf.constant(y_train)


# %% after optimizer
class FusedMomentum(tf.Module):
    def __init__(self, variables, learning_rate, momentum):
        super().__init__()
        self.learning_rate, self.momentum = learning_rate, momentum
        self.velocities = [tf.Variable(tf.zeros_like(variable), trainable=False) for variable in variables]

    def apply_gradients(self, gradients_and_variables):
        for velocity, (gradient, variable) in zip(self.velocities, gradients_and_variables):
            tf.raw_ops.ResourceApplyMomentum(
                var=variable.value.handle,
                accum=velocity.handle,
                lr=self.learning_rate,
                grad=gradient,
                momentum=self.momentum,
            )


optimizer = FusedMomentum(model.trainable_variables, LR, MOMENTUM)


# %% train
@tf.function(jit_compile="GPU" in device)
def train_step(x, y):
    with tf.GradientTape() as tape:
        loss = loss_fn(y, model(x, training=True))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    return loss


@tf.function
def train_epoch():
    order = tf.random.shuffle(tf.range(len(x_train)))
    total = 0.0
    for start in tf.range(0, len(x_train), BATCHSIZE):
        batch = order[start : start + BATCHSIZE]
        loss = train_step(tf.gather(images, batch), tf.gather(labels, batch))
        total += loss * tf.cast(tf.size(batch), tf.float32)
    return total / len(x_train)


log = EpochLog(EPOCHS)
for _ in range(EPOCHS):
    log.epoch(float(train_epoch()), evaluate)
