"""Cross-loading: the weights that each row has trained, evaluated by every row on the same test examples."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from common.weights import save_weights
from rosetta import markdown
from rosetta.catalog import Row
from rosetta.files import Strict
from rosetta.records import Commit, Machine
from rosetta.verify.probes import Bench, Outputs
from rosetta.verify.train import BATCH, Reference

TIE = 1e-4  # the two likeliest classes of an example are nearer to each other than this: float32 may put it in either
TIED = -1
EPOCHS, N_TRAIN = 2, 5000  # enough to be no longer the initial weights, in minutes
EVALUATION = {"EPOCHS": 1, "N_TRAIN": 64, "LR": 0.0}  # one step that changes nothing


class Matrix(Strict):
    """hits[i][j]: how many of the test examples row j classifies rightly with the weights that row i has trained.

    others[i][j]: how many it puts in another class than row i does, ties aside. ties[i]: how many of row i's examples are ties.
    None: that run failed.
    """

    made: datetime
    commit: Commit
    machine: Machine
    synthetic: bool
    training: dict[str, int]
    n_test: int
    rows: list[str]
    hits: list[list[int | None]]
    others: list[list[int | None]]
    ties: list[int | None]
    errors: list[str] = []

    @property
    def passed(self) -> bool:
        """Every example is in one class for all rows, but for ties, which may also change how many are right."""
        if any(None in line for line in (*self.hits, *self.others)):
            return False
        return not any(map(any, self.others)) and all(
            max(hits) - min(hits) <= ties for hits, ties in zip(self.hits, self.ties)
        )

    def section(self, titles: dict[str, str]) -> list[str]:
        """The matrix as a section of the conformance page. titles: of the rows, by name."""
        names = [titles.get(name, name) for name in self.rows]
        body = []
        for name, hits, others, ties in zip(names, self.hits, self.others, self.ties):
            failed = None in others
            body.append(
                [name, *map(_count, hits), "" if failed else _count(max(others)), "" if ties is None else _count(ties)]
            )
        verdict = "All agree" if self.passed else "**They do not agree**"
        examples = f"{self.n_test:,} {'SYNTHETIC ' if self.synthetic else ''}test examples"
        text = (
            f"Each line has the weights that one framework trained ({self.training['EPOCHS']} epochs of "
            f"{self.training['N_TRAIN']:,} examples). A figure says how many of {examples} a framework classifies rightly with "
            "them. *In another class* counts examples that some framework puts elsewhere than the one that trained the weights. "
            f"*Ties* are examples whose two likeliest classes differ by less than {TIE:g}: they are not counted. {verdict}. "
            f"{self.machine.name}, {self.made:%Y-%m-%d}, commit {self.commit}."
        )
        table = markdown.table(["trained by / evaluated by", *names, "in another class", "ties"], body)
        return ["## Cross-loading", text, table, *map(markdown.escape, self.errors)]


def same_network(one: Reference, other: Reference) -> bool:
    """Whether both flavours compute the same probabilities from the same weights: they differ in nothing but training."""
    if {name: w.shape for name, w in one.start.items()} != {name: w.shape for name, w in other.start.items()}:
        return False
    (ones, _), (others, _) = (reference.tested(one.start, BATCH, n_test=8) for reference in (one, other))
    return np.allclose(ones, others, rtol=0, atol=1e-9)


def make(
    rows: list[Row], reference: Reference, bench: Bench, note: Callable[[str], None], given: dict[str, Any]
) -> Matrix:
    """Train every row, then let every row evaluate the weights of all."""
    task, synthetic = reference.task, reference.synthetic
    usual = task.constants()
    n_test, n_train = given.get("N_TEST", usual["N_TEST"]), given.get("N_TRAIN", min(N_TRAIN, usual["N_TRAIN"]))
    matrix = Matrix(
        made=datetime.now(UTC).replace(microsecond=0),
        commit=Commit(),
        machine=bench.workers.slots[0].machine,
        synthetic=synthetic,
        training={"EPOCHS": EPOCHS, "N_TRAIN": n_train},
        n_test=n_test,
        rows=[row.name for row in rows],
        hits=[[None] * len(rows) for _ in rows],
        others=[[None] * len(rows) for _ in rows],
        ties=[None] * len(rows),
    )
    classes: list[np.ndarray] = [np.empty(0)] * len(rows)  # of the test examples by each row's own weights
    with TemporaryDirectory(prefix="rosetta-") as folder:
        weights = [Path(folder) / f"{row.stem}.npz" for row in rows]

        def probe(pair: tuple[int, int]) -> tuple[int, int, Outputs]:
            """Row i trains where it meets itself; any other row j evaluates its weights."""
            i, j = pair
            own = matrix.training if i == j else EVALUATION | {"INITIAL_WEIGHTS": str(weights[i])}
            return i, j, bench.prober(rows[j], task, synthetic)(own | {"N_TEST": n_test})

        def run(pairs: list[tuple[int, int]]) -> None:
            for i, j, outputs in bench.workers.each(probe, pairs):
                matrix.commit = outputs.record.commit
                if outputs.error:
                    matrix.errors.append(f"{rows[j].name} with the weights of {rows[i].name}: {outputs.error}")
                    note(matrix.errors[-1])
                    continue
                likeliest = outputs.outputs.argmax(axis=1)
                if i == j:
                    save_weights(weights[i], outputs.weights)
                    second, first = np.sort(outputs.outputs, axis=1)[:, -2:].T
                    classes[i] = np.where(first - second < TIE, TIED, likeliest)
                    matrix.ties[i] = int((classes[i] == TIED).sum())
                hits = matrix.hits[i][j] = round(outputs.record.metrics.accuracy * n_test)
                others = matrix.others[i][j] = int(((classes[i] != TIED) & (classes[i] != likeliest)).sum())
                apart = f", {others:,} in another class" if others else ""
                note(f"{rows[i].name} -> {rows[j].name}: {hits:,} of {n_test:,}{apart}")

        numbers = range(len(rows))
        run([(i, i) for i in numbers])
        run([(i, j) for i in numbers for j in numbers if i != j and weights[i].is_file()])
    return matrix


def _count(examples: int | None) -> str:
    return "failed" if examples is None else f"{examples:,}"
