"""Lightning: barebones Trainer (its documentation: without the features that cost raw speed), whole batches taken from the tensors instead
of images one by one, in channels-last order; on a GPU the set is there already and the network is compiled."""

# %% after data
from torch.utils.data import BatchSampler, RandomSampler

x_train, y_train = (array.to("cuda" if accelerator == "gpu" else "cpu") for array in (x_train, y_train))
train_set = TensorDataset(x_train.contiguous(memory_format=torch.channels_last), y_train)
batches = BatchSampler(RandomSampler(train_set), BATCHSIZE, drop_last=False)
train_loader = DataLoader(train_set, batch_size=None, sampler=batches)  # None: the sampler's lists are the batches

# %% after weights
if accelerator == "gpu":
    network.compile(mode="reduce-overhead")  # replayed as a CUDA graph


# %% train
class Epochs(L.Callback):
    def on_train_epoch_start(self, trainer, model):
        self.total = 0.0

    def on_train_batch_end(self, trainer, model, outputs, batch, batch_idx):
        self.total += outputs["loss"] * len(batch[0])
        if trainer.is_last_batch:
            log.epoch(self.total.item() / len(x_train))

    def on_validation_end(self, trainer, model):
        log.test(trainer.callback_metrics["hits"].item() / len(x_test))


quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False, "enable_model_summary": False}
speed = {"num_sanity_val_steps": 0, **quiet} if TEST_EACH_EPOCH else {"barebones": True}  # barebones tests nothing
trainer = L.Trainer(
    max_epochs=EPOCHS,
    accelerator=accelerator,
    devices=1,
    benchmark=True,
    callbacks=[Epochs()],
    limit_val_batches=None if TEST_EACH_EPOCH else 0,
    **speed,
)
log = EpochLog(EPOCHS)
trainer.fit(model, train_loader, test_loader)
