"""Lightning: the phases of a training step, as its loop calls the module and the optimizer. Without a Trainer, self.log does nothing."""


# %% after optimizer
def place(n):
    return x_train[:n].to(model.device), y_train[:n].to(model.device)


def forward(x, y):
    return model.training_step((x, y), 0)


def backward(x, y):
    optimizer.zero_grad()
    loss = forward(x, y)
    loss.backward()
    return loss


def step(x, y):
    loss = backward(x, y)
    optimizer.step()
    return loss


def value(loss):
    return loss.item()


warnings.filterwarnings("ignore", ".*self.trainer.*not registered.*")
model.to("cuda" if torch.cuda.is_available() else "cpu").train()
optimizer = model.configure_optimizers()
