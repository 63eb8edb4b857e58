"""TensorFlow 1 as it was usual in 2018: placeholders for images and labels, no tf.data; the whole set is shuffled by
fancy indexing before every epoch, and each batch goes into the graph through feed_dict."""

# %% data
x_train, y_train, x_test, y_test = cifar10.load("NHWC", DATA_DIR, N_TRAIN, N_TEST, synthetic=SYNTHETIC)

x = tf.placeholder(tf.float32, [None, 32, 32, 3])
y = tf.placeholder(tf.int64, [None])


def minibatches(images, labels):
    order = np.arange(len(images))
    np.random.shuffle(order)
    images, labels = images[order], labels[order]
    for start in range(0, len(images), BATCHSIZE):
        yield images[start : start + BATCHSIZE], labels[start : start + BATCHSIZE]


# %% train
log = EpochLog(EPOCHS)
for _ in range(EPOCHS):
    total = 0.0
    for data, target in minibatches(x_train, y_train):
        _, batch_loss = sess.run([train_op, loss], feed_dict={x: data, y: target, training: True})
        total += batch_loss * len(data)
    log.epoch(total / len(x_train))
    if TEST_EACH_EPOCH:
        log.test(accuracy(predict()))
