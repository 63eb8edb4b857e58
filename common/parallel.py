"""What a training run on several devices reports besides others: which devices took part, and the mean area under ROC curves."""

import os

import numpy as np

from common.record import emit, finite
from common.weights import save_outputs


def witness(device):
    """What a device, or the process that computes on it, says of itself: ``cpu:0 in process 4711``."""
    return "%s in process %d" % (device, os.getpid())


def mean_auc(probabilities, labels):
    """The area under the ROC curve of each label, their mean: the chance that an image with the label is ranked above one without.

    probabilities, labels: (n, labels), labels 0 or 1. A tie counts half. Labels that all images have, or none, are left out.
    Raises ValueError where that leaves no label.
    """
    probabilities, labels = np.asarray(probabilities, np.float64), np.asarray(labels) > 0.5
    if probabilities.shape != labels.shape:
        raise ValueError("probabilities of shape %s, labels of shape %s" % (probabilities.shape, labels.shape))
    areas = [_area(p[y], p[~y]) for p, y in zip(probabilities.T, labels.T) if 0 < y.sum() < len(y)]
    if not areas:
        raise ValueError("no label that some of the %d images have, and some have not" % len(labels))
    return float(np.mean(areas))


def _area(positive, negative):
    negative = np.sort(negative)
    below = np.searchsorted(negative, positive, "left") + np.searchsorted(negative, positive, "right")
    return below.mean() / (2.0 * len(negative))


def record(log, auc, parameters, frameworks, device, witnesses, export_weights, predict):
    """Show the result of a training run on several devices and leave it as a record in the notebook.

    As ``common.record.record``. auc: the mean area under the ROC curves, from 0 to 1. witnesses: a text for each device that took
    part, from ``witness`` where each has a process, else from what the framework says of where its arrays lie. Equal ones count once.
    """
    metrics = {
        "accuracy": finite(auc),
        "parameters": int(parameters),
        "loss": [finite(loss) for loss in log.loss],
        "epoch_s": [round(seconds, 4) for seconds in log.epoch_s],
        "epoch_accuracy": [finite(auc) for auc in log.accuracy],
        "devices": sorted(set(map(str, witnesses))),
    }
    text = "mean AUC %.3f, %d epochs in %.1f s on %d devices: %s"
    text %= auc, len(log.epoch_s), sum(log.epoch_s), len(metrics["devices"]), ", ".join(metrics["devices"])
    emit(metrics, frameworks, device, text, save=lambda folder: save_outputs(folder, export_weights(), predict()))
