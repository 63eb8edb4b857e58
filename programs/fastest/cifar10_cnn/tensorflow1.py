"""TensorFlow 1: images and labels are variables of the device, only the order of an epoch is shuffled and batched, the
loss is summed in the graph, make_callable saves Session.run's preparations; on a GPU, XLA compiles the graph in clusters."""

# %% after data
images, labels = tf.placeholder(x_train.dtype, x_train.shape), tf.placeholder(y_train.dtype, y_train.shape)
images_there = tf.Variable(images, trainable=False, collections=[])
labels_there = tf.Variable(labels, trainable=False, collections=[])
order = tf.data.Dataset.range(len(x_train)).shuffle(len(x_train)).batch(BATCHSIZE).repeat(EPOCHS).prefetch(2)
iterator = tf.data.make_initializable_iterator(order)
rows = iterator.get_next()
x, y = tf.gather(images_there, rows), tf.gather(labels_there, rows)

# %% after model
if "GPU" in device:
    config = tf.ConfigProto()
    config.graph_options.optimizer_options.global_jit_level = tf.OptimizerOptions.ON_1
    sess = tf.Session(config=config)

# %% after optimizer
total = tf.Variable(0.0, trainable=False, collections=[])
with tf.control_dependencies([train_op]):
    train_and_sum = tf.assign_add(total, total_loss).op

# %% train
steps_per_epoch = math.ceil(len(x_train) / BATCHSIZE)
sess.run([images_there.initializer, labels_there.initializer], {images: x_train, labels: y_train})
sess.run([iterator.initializer, total.initializer])
train_step = sess.make_callable(train_and_sum, feed_list=[training])

log = EpochLog(EPOCHS)
for _ in range(EPOCHS):
    for _ in range(steps_per_epoch):
        train_step(True)
    log.epoch(sess.run(total) / len(x_train), evaluate)
    sess.run(total.initializer)
