"""Constants of a layer without training."""

BATCHSIZE = 8
BATCHES = 10
SEED = 0
INITIAL_WEIGHTS = None
WEIGHT_SHAPES = {"fc.weight": (5, 4), "fc.bias": (5,)}
EXPECTED = {"parameters": 25}
