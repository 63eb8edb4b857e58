"""Constants of the task ``cifar10_cnn``: a small CNN on CIFAR-10, the same in every framework.

Notebooks import them by name in their ``parameters`` cell, where papermill may override each.
"""

EPOCHS = 10  # passes over the training images
BATCHSIZE = 64  # images a step; the last batch of an epoch may be smaller
LR = 0.01  # learning rate of SGD, constant
MOMENTUM = 0.9  # classical momentum: v = 0.9 v + g; w -= 0.01 v
SEED = 0  # of the initial weights, the order of the images and dropout
N_TRAIN = 50000  # training images used, from the start of the training set
N_TEST = 10000  # test images used, from the start of the test set

# What a run is checked against, in every framework
EXPECTED = {"parameters": 3441592}
