"""The network once more, in PyTorch and float64, by means that share nothing with the reference: autograd and SGD.

``python reference_in_torch.py IN.npz OUT.npz``: IN holds weights, images and labels; OUT the losses and the weights after the steps.
"""

import sys

import numpy as np
import torch
from torch.nn import functional as F

given = np.load(sys.argv[1])
w = {name: torch.tensor(given[name], requires_grad=True) for name in given.files if "." in name}
x, y = torch.tensor(given["x"]), torch.tensor(given["y"])


def forward(x):
    x = F.conv2d(x, w["conv1.weight"], w["conv1.bias"], padding=1).relu()
    x = F.max_pool2d(F.conv2d(x, w["conv2.weight"], w["conv2.bias"], padding=1), 2).relu()
    x = F.conv2d(x, w["conv3.weight"], w["conv3.bias"], padding=1).relu()
    x = F.max_pool2d(F.conv2d(x, w["conv4.weight"], w["conv4.bias"], padding=1), 2).relu()
    x = F.linear(x.flatten(1), w["fc1.weight"], w["fc1.bias"]).relu()
    return F.linear(x, w["fc2.weight"], w["fc2.bias"])


optimizer = torch.optim.SGD(w.values(), lr=0.01, momentum=0.9)
losses = []
for batch in torch.arange(len(x)).split(int(given["size"])):
    optimizer.zero_grad()
    loss = F.cross_entropy(forward(x[batch]), y[batch])
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
with torch.no_grad():
    probabilities = forward(x).softmax(dim=1).numpy()
np.savez(
    sys.argv[2],
    losses=losses,
    probabilities=probabilities,
    **{name: tensor.detach().numpy() for name, tensor in w.items()},
)
