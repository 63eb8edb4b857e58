"""Constants of a layer without training."""

BATCHSIZE = 8
N_INPUTS = 80
SEED = 0
INITIAL_WEIGHTS = None
WEIGHT_SHAPES = {"fc.weight": (5, 4), "fc.bias": (5,)}
EXPECTED = {"parameters": 25}
