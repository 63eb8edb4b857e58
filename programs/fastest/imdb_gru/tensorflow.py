"""TensorFlow: the reviews stay on the device, one graph runs a whole epoch, and one fused kernel updates a weight and
Adam's two means of it, the one behind TensorFlow 1's AdamOptimizer. Unrolled, the GRU compiles for half a minute and is
no faster."""

# %% after data
with tf.device(device):
    reviews, labels = tf.constant(x_train), tf.constant(y_train)


# %% after optimizer
class FusedAdam(tf.Module):
    def __init__(self, variables):
        super().__init__()
        self.means, self.squares = (
            [tf.Variable(tf.zeros_like(v), trainable=False) for v in variables] for _ in range(2)
        )
        self.power_1, self.power_2 = tf.Variable(BETA_1, trainable=False), tf.Variable(BETA_2, trainable=False)

    def apply_gradients(self, gradients_and_variables):
        for mean, square, (gradient, variable) in zip(self.means, self.squares, gradients_and_variables):
            tf.raw_ops.ResourceApplyAdam(
                var=variable.value.handle,
                m=mean.handle,
                v=square.handle,
                beta1_power=self.power_1,
                beta2_power=self.power_2,
                lr=LR,
                beta1=BETA_1,
                beta2=BETA_2,
                epsilon=EPSILON,
                grad=gradient,
            )
        self.power_1.assign(self.power_1 * BETA_1)
        self.power_2.assign(self.power_2 * BETA_2)


optimizer = FusedAdam(model.trainable_variables)


# %% train
@tf.function(jit_compile=JIT_COMPILE)
def train_step(x, y):
    with tf.GradientTape() as tape:
        loss = loss_fn(y, model(x))
    gradients = tape.gradient(loss, model.trainable_variables)
    gradients = [tf.convert_to_tensor(gradient) for gradient in gradients]  # no IndexedSlices
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    return loss


@tf.function
def train_epoch():
    order = tf.random.shuffle(tf.range(len(x_train)))
    total = 0.0
    for start in tf.range(0, len(x_train), BATCHSIZE):
        batch = order[start : start + BATCHSIZE]
        loss = train_step(tf.gather(reviews, batch), tf.gather(labels, batch))
        total += loss * tf.cast(tf.size(batch), tf.float32)
    return total / len(x_train)


log = EpochLog(EPOCHS)
for _ in range(EPOCHS):
    log.epoch(float(train_epoch()), evaluate)
