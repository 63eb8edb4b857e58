"""Caffe2: reviews, labels and the sum of losses are blobs on the device, so that no step waits for a GPU. On a CPU nothing is known that
the notebook lacks: neither the GRU unrolled into the net nor fewer threads for its steps are faster."""

# %% after optimizer
take = core.Net("imdb_take")
with core.DeviceScope(device):
    take.Gather(["all_reviews", "rows"], "data")
    take.Gather(["all_labels", "rows"], "label")
    weighted = train_model.net.Mul([loss, "count"], "weighted_loss")
    train_model.net.Add(["total", weighted], "total")


def feed_there(name, array):
    workspace.FeedBlob(name, array, device_option=device)


# %% train
feed_there("all_reviews", x_train)
feed_there("all_labels", y_train)
feed_there("rows", np.arange(1, dtype=np.int32))
workspace.CreateNet(take)
feed_there("count", np.array(1, np.float32))
feed_there("total", np.array(0, np.float32))
workspace.CreateNet(train_model.net)

log = EpochLog(EPOCHS)
for epoch in range(EPOCHS):
    order = np.random.RandomState([SEED, epoch]).permutation(len(x_train)).astype(np.int32)
    feed_there("total", np.array(0, np.float32))
    for start in range(0, len(order), BATCHSIZE):
        rows = order[start : start + BATCHSIZE]
        feed_there("rows", rows)
        feed_there("count", np.array(len(rows), np.float32))
        workspace.RunNet(take)
        workspace.RunNet(train_model.net)
    log.epoch(workspace.FetchBlob("total").item() / len(x_train), evaluate)
