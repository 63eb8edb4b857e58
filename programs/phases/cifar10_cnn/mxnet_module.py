"""MXNet Module: the phases of a training step."""

# %% after optimizer
model.bind(train_data.provide_data, train_data.provide_label)
model.init_params(mx.init.Xavier(), arg_params=arg_params, allow_missing=True)
model.init_optimizer(optimizer="sgd", optimizer_params=optimizer_params)


def place(n):
    return mx.nd.array(x_train[:n], ctx=device), mx.nd.array(y_train[:n], ctx=device)


def forward(x, y):
    model.forward(mx.io.DataBatch([x], [y]), is_train=True)  # bound anew when the batch size changes
    (probabilities,) = model.get_outputs()
    return -mx.nd.log(mx.nd.pick(probabilities, y)).mean()


def backward(x, y):
    loss = forward(x, y)
    model.backward()
    return loss


def step(x, y):
    loss = backward(x, y)
    model.update()
    return loss


def value(loss):
    mx.nd.waitall()  # the update of the weights is asynchronous too
    return loss.asscalar().item()
