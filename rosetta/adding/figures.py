"""Whether the figures that a short run has reported can be true."""

from collections.abc import Iterator
from itertools import pairwise

from rosetta.records import Record
from rosetta.tasks import Task


def troubles(record: Record, task: Task) -> Iterator[str]:
    """What is wrong with the figures of a run that ended well, one line each. A run that trains must have tested each epoch."""
    metrics = record.metrics
    for name, wanted in task.expected(task.facts(record.name).flavour).items():
        if getattr(metrics, name) != wanted:
            yield f"it reports {getattr(metrics, name)} {name}, and those of this network are {wanted}"
    for name in dict.fromkeys(task.kind.timed.values()):
        if not getattr(metrics, name):
            yield f"there is no {name}: the cells of that step took no time"
    if task.kind.trains:
        yield from _of_training(record)


def _of_training(record: Record) -> Iterator[str]:
    metrics, params = record.metrics, record.params
    sizes = {"train": params["N_TRAIN"], "test": params["N_TEST"]}
    if record.dataset.sizes != sizes:
        yield f"it loaded {record.dataset.sizes} examples instead of {sizes}: N_TRAIN and N_TEST go to the loader"
    hits = metrics.accuracy * params["N_TEST"]
    if abs(hits - round(hits)) > 1e-6 * max(hits, 1):
        yield f"its accuracy is {hits:.3f} of {params['N_TEST']} test examples: it must count whole ones, the last batch too"
    if len(metrics.epoch_accuracy) != params["EPOCHS"]:
        yield f"{len(metrics.epoch_accuracy)} of {params['EPOCHS']} epochs were tested: log.epoch takes evaluate as well"
    elif metrics.epoch_accuracy[-1] != metrics.accuracy:
        yield (
            f"the test after the last epoch found {metrics.epoch_accuracy[-1]:.4f}, the one at the end {metrics.accuracy:.4f}: "
            "training went on between them, or a test is left in training mode (dropout)"
        )


def doubt(record: Record) -> str | None:
    """What is wrong with a run that trains, unless it is chance or a mistake that ``verify`` can name: its loss does not fall."""
    losses = getattr(record.metrics, "loss", [])
    if all(later < earlier for earlier, later in pairwise(losses)):
        return None
    return f"the loss of its epochs does not fall: {', '.join(f'{loss:.4f}' for loss in losses)}"
