"""Caffe2: the phases of a training step, each a net with the training net's operators up to where the phase ends."""

# %% after optimizer
feed(x_train[:1], y_train[:1])  # input blobs must exist when a net is created
operators = train_model.net.Proto().op
n_forward = 1 + [op.type for op in operators].index("SoftmaxWithLoss")
n_backward = 1 + max(number for number, op in enumerate(operators) if op.is_gradient_op)


def first(n, name):
    net = core.Net(name)
    net.Proto().op.extend(operators[:n])
    workspace.CreateNet(net)
    return net


forward_net, backward_net, step_net = first(n_forward, "forward"), first(n_backward, "backward"), train_model.net
workspace.CreateNet(step_net)


def place(n):
    feed(x_train[:n], y_train[:n])
    return "data", "label"  # the nets read these blobs


def forward(x, y):
    workspace.RunNet(forward_net)
    return "loss"


def backward(x, y):
    workspace.RunNet(backward_net)
    return "loss"


def step(x, y):
    workspace.RunNet(step_net)
    return "loss"


def value(loss):
    return workspace.FetchBlob(loss).item()
