"""The networks of the tasks once more, in PyTorch and float64, by means that share nothing with the references: autograd and optim.

``python reference_in_torch.py TASK IN.npz OUT.npz``: IN holds weights, inputs and labels; OUT the losses and the weights after the steps.
"""

import sys

import numpy as np
import torch
from torch.nn import functional as F

task, given = sys.argv[1], np.load(sys.argv[2])
w = {name: torch.tensor(given[name], requires_grad=True) for name in given.files if "." in name}
x, y = torch.tensor(given["x"]), torch.tensor(given["y"])


def cifar10_cnn(x):
    x = F.conv2d(x, w["conv1.weight"], w["conv1.bias"], padding=1).relu()
    x = F.max_pool2d(F.conv2d(x, w["conv2.weight"], w["conv2.bias"], padding=1), 2).relu()
    x = F.conv2d(x, w["conv3.weight"], w["conv3.bias"], padding=1).relu()
    x = F.max_pool2d(F.conv2d(x, w["conv4.weight"], w["conv4.bias"], padding=1), 2).relu()
    x = F.linear(x.flatten(1), w["fc1.weight"], w["fc1.bias"]).relu()
    return F.linear(x, w["fc2.weight"], w["fc2.bias"])


def imdb_gru(x):
    words = F.embedding(x, w["embedding.weight"])
    weights = [w["gru." + name] for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")]
    start = torch.zeros(1, len(x), 100, dtype=torch.float64)
    # inputs, state, weights, biases, layers, dropout, training, both directions, batch first
    _, last = torch._VF.gru(words, start, weights, True, 1, 0.0, True, False, True)
    return F.linear(last[0], w["fc.weight"], w["fc.bias"])


forward, optimizer = {
    "cifar10_cnn": (cifar10_cnn, torch.optim.SGD(w.values(), lr=0.01, momentum=0.9)),
    "imdb_gru": (imdb_gru, torch.optim.Adam(w.values(), lr=0.001)),
}[task]
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
    sys.argv[3],
    losses=losses,
    probabilities=probabilities,
    **{name: tensor.detach().numpy() for name, tensor in w.items()},
)
