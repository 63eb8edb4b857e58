"""TensorFlow 1: a step of the GRU is one fused kernel (GRUBlockCellV2), over time first; the embedding's gradient is made dense, which
one fused kernel of Adam takes; reviews and labels are variables of the device, the loss is summed in the graph, and make_callable saves
Session.run's preparations. Unrolled, it is no faster."""

# %% after data
all_reviews, all_labels = tf.placeholder(tf.int32, x_train.shape), tf.placeholder(tf.int64, y_train.shape)
with tf.device(device):
    reviews_there = tf.Variable(all_reviews, trainable=False, collections=[])
    labels_there = tf.Variable(all_labels, trainable=False, collections=[])
order = tf.data.Dataset.range(len(x_train)).shuffle(len(x_train)).batch(BATCHSIZE).repeat(EPOCHS).prefetch(2)
iterator = tf.data.make_initializable_iterator(order)
rows = iterator.get_next()
x, y = tf.gather(reviews_there, rows), tf.gather(labels_there, rows)


# %% model
def glorot_by_gate(shape, dtype, partition_info=None):
    bound_x, bound_h = math.sqrt(6 / (125 + 100)), math.sqrt(6 / (100 + 100))
    rows_x = tf.random_uniform([125, shape[1]], -bound_x, bound_x, dtype)
    rows_h = tf.random_uniform([100, shape[1]], -bound_h, bound_h, dtype)
    return tf.concat([rows_x, rows_h], axis=0)


zeros = tf.zeros_initializer()
embedding = tf.get_variable("embedding", [30000, 125], initializer=tf.random_uniform_initializer(-0.05, 0.05))
words = tf.nn.embedding_lookup(embedding, tf.transpose(x))  # (150, reviews, 125)
with tf.variable_scope("gru", initializer=glorot_by_gate):
    cell = tf.contrib.rnn.GRUBlockCellV2(100)
    _, last = tf.nn.dynamic_rnn(cell, words, dtype=tf.float32, time_major=True)
with tf.variable_scope("fc"):
    kernel = tf.get_variable("kernel", [100, 2])
    bias = tf.get_variable("bias", [2], initializer=zeros)
logits = tf.nn.bias_add(tf.matmul(last, kernel), bias)
n_parameters = sum(variable.shape.num_elements() for variable in tf.trainable_variables())
sess = tf.Session()

# %% after weights
if not INITIAL_WEIGHTS:
    sess.run(tf.trainable_variables()[2].assign(tf.zeros([200])))  # the gates' biases: 1 in this cell

# %% optimizer
losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits)
loss = tf.reduce_mean(losses)
optimizer = tf.train.AdamOptimizer(LR, BETA_1, BETA_2, EPSILON)
gradients = optimizer.compute_gradients(loss)
train_op = optimizer.apply_gradients([(tf.convert_to_tensor(gradient), variable) for gradient, variable in gradients])
total = tf.Variable(0.0, trainable=False, collections=[])
train_and_sum = tf.group(train_op, tf.assign_add(total, tf.reduce_sum(losses)))
sess.run(tf.variables_initializer(optimizer.variables()))

# %% train
steps_per_epoch = math.ceil(len(x_train) / BATCHSIZE)
sess.run([reviews_there.initializer, labels_there.initializer], {all_reviews: x_train, all_labels: y_train})
sess.run([iterator.initializer, total.initializer])
train_step = sess.make_callable(train_and_sum)

log = EpochLog(EPOCHS)
for _ in range(EPOCHS):
    for _ in range(steps_per_epoch):
        train_step()
    log.epoch(sess.run(total) / len(x_train), evaluate)
    sess.run(total.initializer)
