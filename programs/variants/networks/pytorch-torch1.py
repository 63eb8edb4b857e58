"""PyTorch 1: torchvision 0.11 has no `transforms.v2`, and torch 1.10 no `fp32_precision`: `ToTensor` and `allow_tf32` are there."""

# %% setup
from itertools import repeat

import torch
from torch import nn
from torch.utils.data import DataLoader
from torchvision import datasets, models, transforms

from common.data import examples, image_folder
from common.params.networks import network
from common.steps import StepLog, record_steps
from common.weights import load_weights

torch.manual_seed(SEED)
torch.backends.cudnn.benchmark = True
torch.backends.cuda.matmul.allow_tf32 = False
torch.backends.cudnn.allow_tf32 = False
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
print("PyTorch", torch.__version__, "on", device)

# %% data
net = network(NETWORK)


def endless(loader):
    while True:
        for x, y in loader:
            yield x.to(device, non_blocking=True), y.to(device, non_blocking=True)


if IMAGES:
    scaled = transforms.Compose([transforms.Resize(net.input_shape[1:]), transforms.ToTensor()])
    images = datasets.ImageFolder(image_folder.checked(IMAGES, BATCHSIZE, net), scaled)
    batches = endless(DataLoader(
        images, BATCHSIZE, shuffle=True, drop_last=True, num_workers=WORKERS,
        persistent_workers=WORKERS > 0, pin_memory=device.type == "cuda"))
else:
    inputs, labels = map(torch.from_numpy, examples.batch(net, BATCHSIZE, SEED, TEXT))
    batches = repeat((inputs.to(device), labels.long().to(device)))
print("batches of", BATCHSIZE, "from", IMAGES or TEXT or "noise")
