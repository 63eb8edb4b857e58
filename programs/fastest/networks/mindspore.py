"""MindSpore: the framework's own TrainOneStepCell in graph mode. On a CPU the network is nearly all of the time."""


# %% after weights
class Loss(nn.Cell):
    def __init__(self, model):
        super().__init__(auto_prefix=False)  # names of weights stay
        self.model, self.loss_fn = model, nn.CrossEntropyLoss()

    def construct(self, x, y):
        logits = self.model(x)
        return self.loss_fn(logits.reshape(-1, logits.shape[-1]), y.reshape(-1))


# %% step
ms.set_context(mode=ms.GRAPH_MODE)
optimizer = nn.SGD(model.trainable_params(), LR, MOMENTUM)
step = nn.TrainOneStepCell(Loss(model), optimizer)
step.set_train()
log = StepLog(REPEATS)
for steps in [WARMUP] + [STEPS] * REPEATS:
    for _ in range(steps):
        result = step(x, y)
    log.done(steps, result.asnumpy())
