"""Chainer: on a CPU the recurrence is one function with a gradient of its own, a FunctionNode, since thousands of small functions cost
more than their arithmetic; all words meet the gates in one product. On a GPU cuDNN is given the words by time. A plain loop has neither
converter nor reports nor the accuracy of each batch."""

# %% after data
x_train, y_train = device.send((x_train, y_train))


# %% model
class Recurrence(chainer.FunctionNode):
    """The state after the last step, from what the words add to the gates, (150, reviews, 300), a matrix and a bias."""

    def forward(self, inputs):
        words, weight, bias = inputs
        self.retain_inputs((1,))
        columns = np.ascontiguousarray(weight.T)
        h = np.zeros((words.shape[1], 100), words.dtype)
        self.steps = []
        for word in words:
            s = h @ columns
            s += bias
            rz = word[:, :200] + s[:, :200]
            np.tanh(0.5 * rz, out=rz)  # the logistic function by way of tanh
            rz *= 0.5
            rz += 0.5
            n = rz[:, :100] * s[:, 200:]
            n += word[:, 200:]
            np.tanh(n, out=n)
            self.steps.append((h, rz, s[:, 200:], n))
            h = n + rz[:, 100:] * (h - n)
        return (h,)

    def backward(self, indexes, gradients):
        d_h = gradients[0].array
        weight = self.get_retained_inputs()[0].array
        d_words = np.empty((len(self.steps), len(d_h), 300), d_h.dtype)
        d_states = np.empty_like(d_words)
        for t in reversed(range(len(self.steps))):
            h, rz, s, n = self.steps[t]
            r, z = rz[:, :100], rz[:, 100:]
            d_n = d_h * (1 - z) * (1 - n * n)
            d_rz = d_words[t, :, :200]
            np.multiply(d_n, s, out=d_rz[:, :100])
            np.multiply(d_h, h - n, out=d_rz[:, 100:])
            d_rz *= rz * (1 - rz)
            d_words[t, :, 200:] = d_n
            d_states[t, :, :200] = d_rz
            np.multiply(d_n, r, out=d_states[t, :, 200:])
            d_h = d_h * z + d_states[t] @ weight
        states = np.concatenate([step[0] for step in self.steps])
        d_states = d_states.reshape(-1, 300)
        return tuple(map(chainer.Variable, (d_words, d_states.T @ states, d_states.sum(axis=0))))


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
        return self.fc(Recurrence().apply((words, F.vstack(w[3:]), F.hstack(b[3:])))[0])


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
