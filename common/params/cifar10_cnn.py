"""Constants of the task ``cifar10_cnn``: a small CNN on CIFAR-10, the same in every framework.

Notebooks import them by name in their ``parameters`` cell, where papermill may override each.
"""

EPOCHS = 10  # passes over the training images
BATCHSIZE = 64  # images a step; the last batch of an epoch may be smaller
LR = 0.01  # learning rate of SGD, constant
MOMENTUM = 0.9  # classical momentum: v = 0.9 v + g; w -= 0.01 v
DROPOUT_CONV = 0.25  # rate of dropout after each block of convolutions
DROPOUT_FC = 0.5  # rate of dropout before the last layer
SEED = 0  # of the initial weights, the order of the images and dropout
N_TRAIN = 50000  # training images used, from the start of the training set
N_TEST = 10000  # test images used, from the start of the test set
INITIAL_WEIGHTS = None  # a file of canonical weights to start from (.npz), or None
TARGET_ACCURACY = 0.75  # of the test images; how soon it is reached is told where every epoch is tested

# The weights in their canonical form: name and shape, in the order of the layers. Convolutions are OIHW (out, in, height,
# width), dense layers out x in; the inputs of fc1 are the 100 channels of 8x8 flattened channel by channel (C, H, W).
WEIGHT_SHAPES = {
    "conv1.weight": (50, 3, 3, 3),
    "conv1.bias": (50,),
    "conv2.weight": (50, 50, 3, 3),
    "conv2.bias": (50,),
    "conv3.weight": (100, 50, 3, 3),
    "conv3.bias": (100,),
    "conv4.weight": (100, 100, 3, 3),
    "conv4.bias": (100,),
    "fc1.weight": (512, 6400),
    "fc1.bias": (512,),
    "fc2.weight": (10, 512),
    "fc2.bias": (10,),
}

# fc1's inputs before they were flattened: channels, height, width
FLATTENED = {"fc1.weight": (100, 8, 8)}

# What a run is checked against, in every framework
EXPECTED = {"parameters": 3441592}

# Of the forward pass of one image: a multiplication and an addition for each weight wherever it is applied
MULTIPLY_ADDS = {"forward": 62264320}
