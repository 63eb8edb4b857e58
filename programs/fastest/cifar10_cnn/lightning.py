"""Lightning: barebones Trainer (its documentation: without the features that cost raw speed, self.log among them), whole batches taken from
the tensors instead of images one by one, in channels-last order; on a GPU the set is there already."""

# %% after data
from torch.utils.data import BatchSampler, RandomSampler

x_train, y_train = (array.to("cuda" if torch.cuda.is_available() else "cpu") for array in (x_train, y_train))
train_set = TensorDataset(x_train.contiguous(memory_format=torch.channels_last), y_train)
batches = BatchSampler(RandomSampler(train_set), BATCHSIZE, drop_last=False)
train_loader = DataLoader(train_set, batch_size=None, sampler=batches)  # None: the sampler's lists are the batches


# %% train
class EndOfEpoch(L.Callback):
    def on_train_epoch_start(self, trainer, pl_module):
        self.total = 0.0

    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
        self.total += outputs["loss"] * len(batch[0])

    def on_train_epoch_end(self, trainer, pl_module):
        log.epoch(self.total.item() / len(x_train), evaluate)


warnings.filterwarnings("ignore", ".*barebones=True.*")  # self.log does nothing
trainer = L.Trainer(max_epochs=EPOCHS, devices=1, benchmark=True, callbacks=[EndOfEpoch()], barebones=True)
log = EpochLog(EPOCHS)
trainer.fit(model, train_loader)
