"""Cross-loading: the weights that each row has trained, evaluated by every row on the same test examples."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from common.weights import save_weights
from rosetta import markdown
from rosetta.catalog import Row
from rosetta.files import Strict
from rosetta.records import Commit, Machine
from rosetta.tasks import Task
from rosetta.verify.probes import Bench, Outputs

ALLOWED = 2  # test examples by which two rows may differ with the same weights: near-ties of two classes
EPOCHS, N_TRAIN = 2, 5000  # enough to be no longer the initial weights, in minutes
EVALUATION = {"EPOCHS": 1, "N_TRAIN": 64, "LR": 0.0}  # one step that changes nothing


class Matrix(Strict):
    """hits[i][j]: how many of the test examples row j classifies rightly with the weights that row i has trained."""

    made: datetime
    commit: Commit
    machine: Machine
    synthetic: bool
    training: dict[str, int]
    n_test: int
    rows: list[str]
    hits: list[list[int | None]]  # None: that run failed
    errors: list[str] = []

    @property
    def spreads(self) -> list[int | None]:
        """The largest difference, in examples, between the rows that evaluate the weights of each; None where one failed."""
        return [None if None in hits else max(hits) - min(hits) for hits in self.hits]

    @property
    def passed(self) -> bool:
        return all(spread is not None and spread <= ALLOWED for spread in self.spreads)


def make(
    rows: list[Row], task: Task, bench: Bench, note: Callable[[str], None], *, synthetic: bool, sizes: dict[str, int]
) -> Matrix:
    """Train every row, then let every row evaluate the weights of all. ``note`` is called with a line as each run ends.

    sizes: N_TRAIN and N_TEST where they are not the usual ones.
    """
    constants = task.constants()
    n_test = sizes.get("N_TEST", constants["N_TEST"])
    matrix = Matrix(
        made=datetime.now(UTC).replace(microsecond=0),
        commit=Commit(),
        machine=bench.workers.slots[0].machine,
        synthetic=synthetic,
        training={"EPOCHS": EPOCHS, "N_TRAIN": sizes.get("N_TRAIN", min(N_TRAIN, constants["N_TRAIN"]))},
        n_test=n_test,
        rows=[row.name for row in rows],
        hits=[[None] * len(rows) for _ in rows],
    )
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
                hits = matrix.hits[i][j] = round(outputs.record.metrics.accuracy * n_test)
                note(f"{rows[i].name} -> {rows[j].name}: {hits:,} of {n_test:,}")
                if i == j:
                    save_weights(weights[i], outputs.weights)

        numbers = range(len(rows))
        run([(i, i) for i in numbers])
        run([(i, j) for i in numbers for j in numbers if i != j and weights[i].is_file()])
    return matrix


def section(matrix: Matrix, titles: dict[str, str]) -> list[str]:
    """The matrix as a section of the conformance page. titles: of the rows, by name."""
    names = [titles.get(name, name) for name in matrix.rows]
    body = [
        [name, *("failed" if hits is None else f"{hits:,}" for hits in line), "" if spread is None else f"{spread}"]
        for name, line, spread in zip(names, matrix.hits, matrix.spreads)
    ]
    verdict = "All agree" if matrix.passed else "**They do not agree**"
    examples = f"{matrix.n_test:,} {'SYNTHETIC ' if matrix.synthetic else ''}test examples"
    text = (
        f"Each line has the weights that one framework trained ({matrix.training['EPOCHS']} epochs of "
        f"{matrix.training['N_TRAIN']:,} examples), evaluated by every framework: how many of {examples} each classifies rightly, "
        f"and by how many examples the most and the least differ. {verdict} within {ALLOWED} examples. "
        f"{matrix.machine.name}, {matrix.made:%Y-%m-%d}, commit {matrix.commit}."
    )
    table = markdown.table(["trained by / evaluated by", *names, "differ by"], body)
    return ["## Cross-loading", text, table, *map(markdown.escape, matrix.errors)]
