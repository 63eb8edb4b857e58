"""MindSpore: the phases of a training step, each a cell that is compiled as Model.train compiles its own."""

# %% after optimizer
forward = nn.WithLossCell(network, loss_fn)
step = nn.TrainOneStepCell(forward, optimizer).set_train()
backward = nn.TrainOneStepCell(forward, optimizer).set_train()
backward.optimizer = nn.Identity()  # the gradients are computed, for it to do nothing with them


def place(n):
    return ms.Tensor(x_train[:n]), ms.Tensor(y_train[:n])


def value(loss):
    return loss.item()
