"""Constants of the task ``imdb_gru``: a GRU on reviews of IMDB, the same in every framework.

Notebooks import them by name in their ``parameters`` cell, where papermill may override each.
"""

EPOCHS = 3  # passes over the training reviews
BATCHSIZE = 64  # reviews a step; the last batch of an epoch may be smaller
LR = 0.001  # learning rate of Adam, constant
BETA_1 = 0.9  # decay of Adam's mean of the gradients
BETA_2 = 0.999  # decay of Adam's mean of their squares
EPSILON = 1e-8  # added to the root of the squares' mean
SEED = 0  # of the initial weights and the order of the reviews
N_TRAIN = 25000  # training reviews used, from the start of the training set
N_TEST = 25000  # test reviews used, from the start of the test set
INITIAL_WEIGHTS = None  # a file of canonical weights to start from (.npz), or None
TARGET_ACCURACY = 0.84  # of the test reviews; how soon it is reached is told where every epoch is tested

# The weights in their canonical form, by what frameworks call a GRU: name and shape, in the order of the layers. The three gates
# of a matrix or a bias stand below each other: r (reset), z (update), n (the candidate for the new state). The dense layer is out x in
_FIRST = [
    ("embedding.weight", (30000, 125)),
    ("gru.weight_ih", (300, 125)),
    ("gru.weight_hh", (300, 100)),
    ("gru.bias_ih", (300,)),
]
_LAST = [("fc.weight", (2, 100)), ("fc.bias", (2,))]
GRUS = {
    # n = tanh(W x + b + r (U h + c)), two biases a gate, as in cuDNN
    "reset_after": dict(_FIRST + [("gru.bias_hh", (300,))] + _LAST),
    # the same, but only n has the second bias, c
    "reset_after, bias of n": dict(_FIRST + [("gru.bias_hn", (100,))] + _LAST),
    # the same without c
    "reset_after, one bias": dict(_FIRST + _LAST),
    # n = tanh(W x + b + U (r h)): Cho's of 2014
    "reset_before": dict(_FIRST + _LAST),
}
WEIGHT_SHAPES = GRUS["reset_after"]

# What frameworks call Adam. All correct the bias of both means, and words that do not occur move by their means, too
ADAMS = {
    "": "m / (sqrt(v) + epsilon), of the corrected means m and v",
    "epsilon hat": "epsilon is added to the root of the mean that is not corrected yet: the faster form in the paper of Adam",
    "epsilon hat, squares of occurrences": "the same; a word that occurs twice adds both squares to v, not the square of the sum",
}

# A row is bound to one of each: "reset_after", "reset_after, epsilon hat", ...
FLAVOURS = {", ".join(filter(None, (gru, adam))): (gru, adam) for gru in GRUS for adam in ADAMS}

# What a run is checked against, by flavour
EXPECTED = {
    flavour: {"parameters": {"reset_after": 3818302, "reset_after, bias of n": 3818102}.get(gru, 3818002)}
    for flavour, (gru, _) in FLAVOURS.items()
}

# Of the forward pass of one review: a multiplication and an addition for each weight wherever it is applied
MULTIPLY_ADDS = {"forward": 150 * (300 * 125 + 300 * 100) + 200}
