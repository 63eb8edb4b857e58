"""Chainer: on a CPU all words meet the gates in one product, and the three matrices of the state are put together once for all
steps, where NStepGRU does both in every step. On a GPU cuDNN is given the words by time. A plain loop has neither converter nor
reports nor the accuracy of each batch."""

# %% after data
x_train, y_train = device.send((x_train, y_train))


# %% model
class GRUNet(chainer.Chain):
    def __init__(self):
        super().__init__()
        narrow = chainer.initializers.Uniform(0.05)
        glorot = chainer.initializers.GlorotUniform()
        with self.init_scope():
            self.embedding = L.EmbedID(30000, 125, initialW=narrow)
            self.gru = L.NStepGRU(1, 125, 100, dropout=0, initialW=glorot)
            self.fc = L.Linear(100, 2, initialW=glorot)

    def forward(self, x):
        words = self.embedding(x.T)  # (150, reviews, 125)
        if gpu:
            start = device.xp.zeros((1, len(x), 100), np.float32)
            state, _ = F.n_step_gru(1, 0, start, self.gru.ws, self.gru.bs, F.separate(words))
            return self.fc(state[0])
        w, b = self.gru.ws[0], self.gru.bs[0]
        words = F.linear(words, F.vstack(w[:3]), F.hstack(b[:3]), n_batch_axes=2)
        weight, bias = F.vstack(w[3:]), F.hstack(b[3:])
        h = np.zeros((len(x), 100), np.float32)
        for word in F.separate(words):
            r_x, z_x, n_x = F.split_axis(word, 3, axis=1)
            r_h, z_h, n_h = F.split_axis(F.linear(h, weight, bias), 3, axis=1)
            z = F.sigmoid(z_x + z_h)
            h = F.linear_interpolate(z, h, F.tanh(n_x + F.sigmoid(r_x + r_h) * n_h))
        return self.fc(h)


net = GRUNet().to_device(device)
n_parameters = net.count_params()

# %% train
log = EpochLog(EPOCHS)
for _ in range(EPOCHS):
    order = device.xp.random.permutation(len(x_train))
    total = 0.0
    for start in range(0, len(x_train), BATCHSIZE):
        batch = order[start : start + BATCHSIZE]
        loss = F.softmax_cross_entropy(net(x_train[batch]), y_train[batch])
        model.cleargrads()
        loss.backward()
        optimizer.update()
        total += loss.array * len(batch)  # stays on the device
    log.epoch(total / len(x_train), evaluate)
