"""MXNet Module: the phases of a training step."""

# %% after optimizer
module.bind(train_data.provide_data, train_data.provide_label)
module.init_params(arg_params=weights)
module.init_optimizer(optimizer="sgd", optimizer_params=sgd)


def place(n):
    return mx.nd.array(x_train[:n], ctx=device), mx.nd.array(y_train[:n], ctx=device)


def forward(x, y):
    module.forward(mx.io.DataBatch([x], [y]), is_train=True)  # bound anew when the batch size changes
    (probabilities,) = module.get_outputs()
    return -mx.nd.log(mx.nd.pick(probabilities, y)).mean()


def backward(x, y):
    loss = forward(x, y)
    module.backward()
    return loss


def step(x, y):
    loss = backward(x, y)
    module.update()
    return loss


def value(loss):
    mx.nd.waitall()  # the update of the weights is asynchronous too
    return loss.asscalar().item()
