"""The steps that every notebook takes, in order: the tag of each code cell, its heading, and what the step is for."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Role:
    name: str  # the tag of the cell
    heading: str  # ``## heading`` above it
    about: str  # Markdown, true of every framework


ROLES = tuple(
    Role(*fields)
    for fields in (
        (
            "parameters",
            "Parameters",
            "The constants that all notebooks share, imported by name, and the notebook's own switches. "
            "A run may override any of them; nothing else in the notebook changes from run to run.",
        ),
        (
            "setup",
            "Setup",
            "Imports, the seed, the device, and whatever must be set before the framework is used. FP32 means FP32: TF32 is off.",
        ),
        (
            "data",
            "Data",
            "CIFAR-10 as float32 arrays, pixels from 0 to 1, in memory before the clock starts. "
            "What differs is the order of the axes and who holds the arrays: Python, a data set, or the device.",
        ),
        (
            "model",
            "Model",
            "Four 3x3 convolutions in two blocks, each ended by max-pooling, and two dense layers; dropout after each block and before "
            "the last layer. All weights Glorot uniform, all biases zero.",
        ),
        (
            "weights",
            "Weights",
            "From the framework's own layout to the canonical one and back: OIHW kernels, dense layers out x in, channels flattened "
            "first. This is where a port of trained weights goes wrong.",
        ),
        (
            "optimizer",
            "Loss and optimizer",
            "Softmax cross-entropy, the mean over the batch; SGD with classical momentum: v = 0.9 v + g; w = w - 0.01 v.",
        ),
        (
            "train",
            "Training",
            "Every epoch shuffles the images and takes one step a batch, the short last one included. "
            "The loss of an epoch is a number in Python before its time is taken.",
        ),
        (
            "evaluate",
            "Evaluation",
            "Accuracy over all test images, the short last batch included, with dropout off.",
        ),
        (
            "record",
            "Result",
            "What the run found, shown to the reader and kept for the tables.",
        ),
    )
)
NAMES = tuple(role.name for role in ROLES)
