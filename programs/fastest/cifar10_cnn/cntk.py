"""CNTK: an epoch's images lie on the device in their order, and a batch is a view of them instead of arrays that are handed over."""

# %% train
log = EpochLog(EPOCHS)
for epoch in range(EPOCHS):
    order = np.random.RandomState([SEED, epoch]).permutation(len(x_train))
    images, labels = (C.NDArrayView.from_dense(array[order], device) for array in (x_train, y_train))
    for start in range(0, len(order), BATCHSIZE):
        n = min(BATCHSIZE, len(order) - start)
        batch = images.slice_view((start, 0, 0, 0), (n,) + x.shape), labels.slice_view((start, 0), (n,) + y.shape)
        trainer.train_minibatch({x: C.Value(batch[0]), y: C.Value(batch[1])})
    trainer.summarize_training_progress()
    log.epoch(losses[-1], evaluate)
