"""Level 5 of kind ``train`` where the order of the examples is all that is random: a third run of the notebook.

``shuffled``: a few epochs on a few examples, in batches of which the last is short, from given weights. What an order leads to cannot
be known, but what orders lead to is like what the reference finds for orders that it draws itself: the mean of the losses, and how far
each matrix moves. The weights are not those of the examples in their own order.
"""

from dataclasses import dataclass

import numpy as np

from rosetta.verify import probes
from rosetta.verify.levels import Finding, Judge
from rosetta.verify.probes import Outputs, Prober, Reference

EXAMPLES, BATCHSIZE, EPOCHS = 20, 8, 3
DRAWS = 20  # orders that the reference draws


def shuffled(probe: Prober, reference: Reference, n_test: int) -> Outputs:
    sizes = {"EPOCHS": EPOCHS, "N_TRAIN": EXAMPLES, "BATCHSIZE": BATCHSIZE, "N_TEST": n_test}
    return probes.from_weights(probe, reference.start, reference.task.without_chance | sizes)


@dataclass(frozen=True)
class Trained:
    """loss: the mean of all epochs; change: of each matrix, as a vector."""

    loss: float
    change: dict[str, np.ndarray]

    @property
    def whole(self) -> np.ndarray:
        return np.concatenate(list(self.change.values()))


def drawn(reference: Reference) -> tuple[Trained, list[Trained]]:
    """What the reference finds for the examples in their own order, and for orders drawn anew in every epoch."""
    rng = np.random.RandomState(6)
    own = [np.arange(EXAMPLES)] * EPOCHS
    return _run(reference, own), [_run(reference, [rng.permutation(EXAMPLES) for _ in own]) for _ in range(DRAWS)]


def _run(reference: Reference, orders: list[np.ndarray]) -> Trained:
    x, y, _, _ = reference.data(EXAMPLES, n_test=1)
    parts = [order[first : first + BATCHSIZE] for order in orders for first in range(0, EXAMPLES, BATCHSIZE)]
    batches = [(x[part], y[part]) for part in parts]
    trained, losses = reference.network.train(reference.start, batches, reference.task.constants())
    return Trained(float(np.average(losses, weights=[len(part) for part in parts])), _change(trained, reference))


def _change(weights: dict, reference: Reference) -> dict[str, np.ndarray]:
    return {name: (weights[name] - start).ravel() for name, start in reference.start.items() if start.ndim > 1}


def judged(losses: list, weights: dict, reference: Reference, tolerances: dict) -> Finding:
    """Level 5. losses: of the epochs; weights: in the end."""
    judge = Judge(5, tolerances)
    losses = np.array(losses, float)  # None becomes NaN
    if len(losses) != EPOCHS:
        judge.fail(f"{len(losses)} epochs instead of {EPOCHS}")
        return judge.finding
    own, others = reference.shuffled()
    mine, means = Trained(losses.mean(), _change(weights, reference)), [run.loss for run in others]
    mean = f"mean loss {mine.loss:.4f} instead of {np.mean(means):.4f}, in sigmas"
    judge.at_most("mean", _sigmas(mine.loss, means), mean)
    for name, change in mine.change.items():
        size, sizes = np.linalg.norm(change), [np.linalg.norm(run.change[name]) for run in others]
        steps = f"all steps move {name} by {size:.4f} instead of {np.mean(sizes):.4f}, in sigmas"
        judge.at_most("steps", _sigmas(size, sizes), steps)
    typical = np.median([np.linalg.norm(run.whole - own.whole) for run in others])
    apart = np.linalg.norm(mine.whole - own.whole)
    nearness = typical / apart if apart else np.inf
    judge.at_most("order", nearness, "the examples come in their own order: so many times nearer to it than by chance")
    return judge.finding


def _sigmas(value: float, drawn: list[float]) -> float:
    return float(abs(value - np.mean(drawn)) / (np.std(drawn, ddof=1) * np.sqrt(1 + 1 / len(drawn))))
