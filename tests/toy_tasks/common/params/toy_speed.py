"""Constants of timed chains of dense layers."""

NETWORK = "narrow"
BATCHSIZE = 8
PHASE = "forward"
WARMUP = 2
STEPS = 10
REPEATS = 5
LR = 0.1
SEED = 0
INITIAL_WEIGHTS = None
CHOICES = {"NETWORK": ("narrow", "wide"), "PHASE": ("forward", "gradient", "step")}
NETWORKS = {"narrow": (4, 8, 2), "wide": (4, 16, 16, 2)}  # numbers on the way


def weight_shapes(name):
    widths = NETWORKS[name]
    return {"fc%d.weight" % i: (n_out, n_in) for i, (n_in, n_out) in enumerate(zip(widths, widths[1:]), start=1)}
