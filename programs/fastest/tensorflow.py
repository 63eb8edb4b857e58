"""TensorFlow: the images stay on the device, one graph runs a whole epoch, and one fused kernel updates a weight and its velocity, the one
behind TensorFlow 1's MomentumOptimizer. XLA compiles the step on a GPU; on a CPU it does without oneDNN's convolutions and takes longer."""

# %% after data
with tf.device(device):
    images, labels = tf.constant(x_train), tf.constant(y_train)


# %% after optimizer
class FusedMomentum(Momentum):
    def apply(self, gradients):
        for w, v, g in zip(self.weights, self.velocities, gradients):
            tf.raw_ops.ResourceApplyMomentum(
                var=w.handle, accum=v.handle, lr=self.learning_rate, grad=g, momentum=self.momentum
            )


optimizer = FusedMomentum(model.trainable_variables, LR, MOMENTUM)


# %% train
@tf.function(jit_compile="GPU" in device)
def train_step(x, y):
    with tf.GradientTape() as tape:
        loss = loss_fn(model(x, training=True), y)
    optimizer.apply(tape.gradient(loss, model.trainable_variables))
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
    log.epoch(train_epoch())
    if TEST_EACH_EPOCH:
        log.test(accuracy(predict()))
