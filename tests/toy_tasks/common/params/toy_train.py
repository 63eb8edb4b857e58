"""Constants of a linear classifier."""

EPOCHS = 3  # passes
BATCHSIZE = 16
LR = 0.1  # learning rate of SGD
SEED = 0
INITIAL_WEIGHTS = None
N_TRAIN = 1000
N_TEST = 600
WEIGHT_SHAPES = {"fc.weight": (3, 4), "fc.bias": (3,)}
EXPECTED = {"parameters": 15}
