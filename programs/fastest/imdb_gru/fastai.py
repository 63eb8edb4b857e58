"""fastai: whole batches taken from tensors that stay on the device, as fastai's own loader of tables does it, PyTorch's
fused Adam in fastai's OptimWrapper, and none of the callbacks that note losses."""

# %% after data
from fastai.basics import noops


class WholeBatches(DataLoader):
    do_item = noops  # a row's number stays one

    def create_batch(self, rows):
        return self.dataset[rows]


train_loader = WholeBatches(TensorDataset(x_train.to(device), y_train.to(device)), bs=BATCHSIZE, shuffle=True)
dls = DataLoaders(train_loader, test_loader, device=device)

# %% after optimizer
from fastai.basics import OptimWrapper, TrainEvalCallback

opt_func = partial(OptimWrapper, opt=torch.optim.Adam, betas=(BETA_1, BETA_2), eps=EPSILON, fused=True)
learn = Learner(dls, model, loss_func, opt_func=opt_func, lr=LR, default_cbs=False, cbs=TrainEvalCallback())


# %% train
class EndOfEpoch(Callback):
    def before_train(self):
        self.total = 0.0

    def after_loss(self):
        self.total += self.learn.loss.detach() * len(self.learn.xb[0])  # stays on the device

    def after_train(self):
        log.epoch(self.total.item() / len(x_train), evaluate)

    def before_validate(self):
        raise CancelValidException


log = EpochLog(EPOCHS)
with learn.no_logging():
    learn.fit(EPOCHS, cbs=EndOfEpoch())
