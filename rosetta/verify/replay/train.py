"""Replays of kind ``train``, on what the first run of a row has left.

The values of known mistakes offer what the level needs: FORWARD ``probabilities(weights, x)``, TRAINING ``train(weights, batches,
constants)`` (and ``labels(y)`` where it changes these). Replays compute in float32, on few examples: they are compared with what failed.
"""

from collections.abc import Iterator
from functools import cache, lru_cache

import numpy as np

from rosetta.catalog import Row
from rosetta.verify import levels, train
from rosetta.verify.diagnosis import CERTAIN, GUESS, Replay, misplaced, named, spoken_of, transposed
from rosetta.verify.levels import Finding, Judge
from rosetta.verify.probes import Outputs
from rosetta.verify.replay import mistakes
from rosetta.verify.train import STEPS, Reference

LOOKED_AT, EXAMPLES = 100, 16  # of the test: of the first so many those that are off most

Weights = dict[str, np.ndarray]


def of(findings: list[Finding], left: list[Outputs], reference: Reference, row: Row) -> dict[int, str]:
    """What is known of the failed levels: level -> sentence. left: what the runs of the row have left."""
    failed = {finding.level: finding for finding in findings if not finding.passed}
    known, trained = mistakes.known(reference), left[0]
    tolerances = levels.tolerances(train.TOLERANCES, reference.task, row)
    if trained.weights is None:
        said = spoken_of(trained.error or "", known.SIZES, known.SIZE, train.BATCH)
        return {min(failed): said} if said else {}
    if 1 in failed:
        said = transposed(trained.weights, reference.network.WEIGHT_SHAPES)
        return {1: said} if said else {}
    about = {}
    if 3 in failed and not (4 in failed and _same_outputs(failed[3])):
        about[3] = _forward(failed[3], trained, reference, tolerances, known)
    if 4 in failed and _same_outputs(failed.get(3)):  # else what is wrong with the network shows there, too
        about[4] = _training(failed[4], trained, reference, tolerances, known)
    return {level: said for level, said in sorted(about.items()) if said}


def _same_outputs(forward: Finding | None) -> bool:
    """Whether the test probabilities agree, though the accuracy may not."""
    return forward is None or "accuracy" in forward.measured


def _single(arrays: Weights) -> Weights:
    return {name: array.astype(np.float32) for name, array in arrays.items()}


def _floats(x: np.ndarray) -> np.ndarray:
    return x.astype(np.float32) if x.dtype.kind == "f" else x


# ---- Level 3


def _forward(failed: Finding, outputs: Outputs, reference: Reference, tolerances: dict, known) -> str | None:
    _, _, x, y = reference.data(outputs.record.params["N_TRAIN"], outputs.record.params["N_TEST"])
    mine, weights = outputs.outputs, _single(outputs.weights)
    first = _floats(x[: min(LOOKED_AT, len(mine))])
    if _same_outputs(failed):
        return _relabelled(mine, y, outputs.record.metrics.accuracy, known)
    right = reference.network.probabilities(weights, first)
    if mine.shape[1:] != right.shape[1:]:
        return None
    if said := misplaced(mine, right, len(x), tolerances["probability"]):
        return said
    worst = np.argsort(np.abs(mine[: len(first)] - right).max(axis=1))[-EXAMPLES:]

    def judged(network) -> Finding:
        judge, expected = Judge(3, tolerances), network.probabilities(weights, first[worst])
        judge.at_most("probability", np.abs(mine[worst] - expected).max(), "")
        return judge.finding

    return named(judged(reference.network), (Replay(name, judged(each)) for name, each in known.FORWARD.items()))


def _relabelled(mine: np.ndarray, y: np.ndarray, accuracy: float | None, known) -> str | None:
    for name, each in known.TRAINING.items():
        changed = getattr(each, "labels", None)
        if changed and abs(float((mine.argmax(axis=1) == changed(y)).mean()) - (accuracy or 0.0)) < 0.5 / len(y):
            return f"the accuracy is that of {name}"
    return None


# ---- Level 4


def _training(failed: Finding, outputs: Outputs, reference: Reference, tolerances: dict, known) -> str:
    losses = outputs.record.metrics.loss
    _, expected = reference.trained()
    numbers = f"losses {_row(losses)}, reference {_row(expected)}; {_agree(losses, expected, tolerances['loss'])}"
    start, (x, _) = _start(reference)
    if all(np.array_equal(outputs.weights[name], array) for name, array in start.items()):
        params = outputs.record.params
        if losses and losses[0] is not None and abs(losses[0] - expected[0]) <= tolerances["loss"]:
            return f"{numbers}; the weights are those of the start: does the optimizer take a step?"
        return f"no batch came out of {len(x)} images at batch {params['BATCHSIZE']}: is the short batch dropped?"
    constants = reference.task.constants() | {"BATCHSIZE": outputs.record.params["BATCHSIZE"]}

    def replayed(name: str, steps: int) -> tuple[Weights, list[float]]:
        with reference.lock:
            return _replayed(reference, name, tuple(constants.items()), steps)

    def replays() -> Iterator[Replay]:
        for name in known.TRAINING:
            first = abs(losses[0] - replayed(name, steps=1)[1][0])
            if first * GUESS > max(abs(losses[0] - expected[0]), tolerances["loss"]):
                continue  # it begins elsewhere: the other steps need not be computed
            weights, theirs = replayed(name, STEPS)
            yield Replay(name, train.training(outputs.weights, losses, start, weights, theirs, tolerances))

    said = named(failed, replays(), certain=CERTAIN) if len(losses) == STEPS and None not in losses else None
    return f"{numbers}; {said}" if said else numbers


def _row(losses: list) -> str:
    return " ".join("none" if loss is None else f"{loss:.4g}" if abs(loss) >= 100 else f"{loss:.3f}" for loss in losses)


def _agree(losses: list, expected: list, tolerance: float) -> str:
    same = [loss is not None and abs(loss - wanted) <= tolerance for loss, wanted in zip(losses, expected)]
    n = same.index(False) if False in same else len(same)
    return "none agrees" if n == 0 else "the first agrees" if n == 1 else f"the first {n} agree"


@lru_cache(maxsize=1)
def _start(reference: Reference) -> tuple[Weights, tuple[np.ndarray, np.ndarray]]:
    x, y, _, _ = reference.data(train.BATCH, n_test=1)
    return _single(reference.start), (_floats(x), y)


@cache  # it does not depend on the row
def _replayed(reference: Reference, name: str, constants: tuple, steps: int) -> tuple[Weights, list[float]]:
    start, batch = _start(reference)
    return mistakes.known(reference).TRAINING[name].train(start, [batch] * steps, dict(constants))
