"""CNTK: an epoch's reviews lie on the device in their order, and a batch is a view of them, so that no batch is handed over to a GPU. On
a CPU nothing is known that the notebook lacks."""

# %% train
log = EpochLog(EPOCHS)
for epoch in range(EPOCHS):
    order = np.random.RandomState([SEED, epoch]).permutation(len(x_train))
    reviews, labels = (C.NDArrayView.from_dense(array[order], device) for array in (x_train, y_train))
    for start in range(0, len(order), BATCHSIZE):
        n = min(BATCHSIZE, len(order) - start)
        batch = reviews.slice_view((start, 0), (n, 150)), labels.slice_view((start, 0), (n, 2))
        trainer.train_minibatch({x: C.Value(batch[0]), y: C.Value(batch[1])})
    trainer.summarize_training_progress()
    log.epoch(losses[-1], evaluate)
