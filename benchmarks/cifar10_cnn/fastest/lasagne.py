"""Lasagne on Theano: on a CPU, convolutions call NumPy's OpenBLAS directly, and OpenMP spreads the images over the
cores (Theano's documentation, "Multi cores support"); images, labels and the sum of losses are shared variables."""

# %% after parameters
import glob
import os

import numpy as np

for blas in glob.glob(os.path.join(os.path.dirname(np.__file__), "..", "numpy.libs", "libopenblas*.so")):
    folder, library = os.path.split(os.path.realpath(blas))
    flags = os.environ.get("THEANO_FLAGS", "").split(",")
    flags += ["openmp=True", "blas.ldflags=-L%s -l:%s" % (folder, library)]
    os.environ["THEANO_FLAGS"] = ",".join(filter(None, flags))
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # OpenBLAS has threads of its own: those of OpenMP must not spin

# %% optimizer
labels = T.lvector("labels")
output = lasagne.layers.get_output(net, images)
loss = lasagne.objectives.categorical_crossentropy(output, labels).mean()
weights = lasagne.layers.get_all_params(net, trainable=True)
updates = lasagne.updates.momentum(loss, weights, learning_rate=LR, momentum=MOMENTUM)

x_all, y_all, total = theano.shared(x_train), theano.shared(y_train), theano.shared(np.float32(0))
rows = T.lvector("rows")
updates[total] = total + loss * T.cast(rows.size, "float32")
train_step = theano.function([rows], updates=updates, givens={images: x_all[rows], labels: y_all[rows]})

# %% train
log = EpochLog(EPOCHS)
for epoch in range(EPOCHS):
    order = np.random.RandomState([SEED, epoch]).permutation(len(x_train))
    total.set_value(0)
    for start in range(0, len(order), BATCHSIZE):
        train_step(order[start : start + BATCHSIZE])
    log.epoch(total.get_value() / len(x_train))
    if TEST_EACH_EPOCH:
        log.test(accuracy(predict()))
