"""TensorFlow 1: the phases of a training step, each a run of the graph, on one batch that the data set repeats."""

# %% after optimizer
same_batch = iterator.make_initializer(tf.data.Dataset.from_tensors((images, labels)).repeat())
gradients = [gradient for gradient, _ in optimizer.compute_gradients(loss)]
# One number of each: fetched whole they would be copied, and what is merely a control input is optimized away
touched = [tf.reshape(gradient, [-1])[0] for gradient in gradients]


def place(n):
    sess.run(same_batch, {images: x_train[:n], labels: y_train[:n]})
    return x, y  # what the iterator feeds to the network


def forward(x, y):
    return sess.run(loss, {training: True})


def backward(x, y):
    return sess.run([loss, touched], {training: True})[0]


def step(x, y):
    return sess.run([loss, train_op], {training: True})[0]


def value(loss):
    return loss.item()
