"""Lasagne on Theano: images, labels and the sum of losses are shared variables, on the device, and one function trains a batch of them."""

# %% optimizer
labels = T.lvector("labels")
probabilities = lasagne.layers.get_output(network)
loss = lasagne.objectives.categorical_crossentropy(probabilities, labels).mean()
params = lasagne.layers.get_all_params(network, trainable=True)
updates = lasagne.updates.momentum(loss, params, learning_rate=LR, momentum=MOMENTUM)

x_all, y_all = theano.shared(x_train), theano.shared(y_train)
total = theano.shared(np.zeros(1, np.float32))  # an array: Theano keeps scalars on the host, where each step would wait
rows = T.lvector("rows")
updates[total] = total + loss * T.cast(rows.size, "float32")
train_step = theano.function([rows], updates=updates, givens={images: x_all[rows], labels: y_all[rows]})

# %% train
log = EpochLog(EPOCHS)
for epoch in range(EPOCHS):
    order = np.random.RandomState([SEED, epoch]).permutation(len(x_train))
    total.set_value(np.zeros(1, np.float32))
    for start in range(0, len(order), BATCHSIZE):
        train_step(order[start : start + BATCHSIZE])
    log.epoch(total.get_value()[0] / len(x_train), evaluate)
