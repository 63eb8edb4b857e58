"""Cross-loading: the weights that each row has trained, evaluated by every row on the same test images."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from common.weights import save_weights
from rosetta import markdown, records
from rosetta.catalog import Catalog, Row, Task
from rosetta.errors import RosettaError
from rosetta.records import Commit, Machine
from rosetta.verify.probes import Bench, Outputs

FILE = "crossload.json"
SCHEMA = 1
ALLOWED = 2  # images of the test set by which two rows may differ with the same weights: near-ties of two classes
EPOCHS, N_TRAIN = 2, 5000  # enough to be no longer the initial weights, in minutes
EVALUATION = {"EPOCHS": 1, "N_TRAIN": 64, "LR": 0.0}  # one step that changes nothing


class Matrix(BaseModel):
    """hits[i][j]: how many of the test images row j classifies rightly with the weights that row i has trained."""

    model_config = ConfigDict(extra="forbid")

    task: str
    made: datetime
    commit: Commit
    machine: Machine
    synthetic: bool
    training: dict[str, int]
    n_test: int
    rows: list[str]
    hits: list[list[int | None]]  # None: that run failed
    errors: list[str] = []

    def spread(self, i: int) -> int | None:
        """The largest difference, in images, between the rows that evaluate the weights of row i; None where one failed."""
        hits = self.hits[i]
        return None if None in hits else max(hits) - min(hits)

    @property
    def passed(self) -> bool:
        return all((spread := self.spread(i)) is not None and spread <= ALLOWED for i in range(len(self.rows)))


class Matrices(BaseModel):
    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    version: int = Field(SCHEMA, alias="schema")
    matrices: list[Matrix] = []  # one a task


def make(
    rows: list[Row],
    task: Task,
    bench: Bench,
    tell: Callable[[str], None],
    *,
    synthetic: bool,
    n_train: int,
    n_test: int,
) -> Matrix:
    """Train every row, then let every row evaluate the weights of all. ``tell`` is called with a line as each run ends."""
    training = {"EPOCHS": EPOCHS, "N_TRAIN": n_train}
    made, errors = datetime.now(UTC).replace(microsecond=0), []
    hits: list[list[int | None]] = [[None] * len(rows) for _ in rows]
    commit = Commit()

    def count(i: int, j: int, outputs: Outputs) -> None:
        if outputs.error:
            errors.append(f"{rows[j].name} with the weights of {rows[i].name}: {outputs.error}")
        else:
            hits[i][j] = round(outputs.record.metrics.accuracy * n_test)
        tell(errors[-1] if outputs.error else f"{rows[i].name} -> {rows[j].name}: {hits[i][j]:,} of {n_test:,}")

    with TemporaryDirectory(prefix="rosetta-") as folder:
        files = [Path(folder) / f"{row.stem}.npz" for row in rows]

        def train(i: int) -> tuple[int, Outputs]:
            return i, bench.prober(rows[i], task, synthetic)(training | {"N_TEST": n_test})

        for i, outputs in bench.workers.each(train, range(len(rows))):
            commit = outputs.record.commit
            count(i, i, outputs)
            if outputs.weights is not None:
                save_weights(files[i], outputs.weights)

        def evaluate(pair: tuple[int, int]) -> tuple[int, int, Outputs]:
            i, j = pair
            parameters = EVALUATION | {"INITIAL_WEIGHTS": str(files[i]), "N_TEST": n_test}
            return i, j, bench.prober(rows[j], task, synthetic)(parameters)

        trained = [i for i in range(len(rows)) if files[i].is_file()]
        pairs = [(i, j) for i in trained for j in range(len(rows)) if i != j]
        for i, j, outputs in bench.workers.each(evaluate, pairs):
            count(i, j, outputs)
    return Matrix(
        task=rows[0].task,
        made=made,
        commit=commit,
        machine=bench.workers.slots[0].machine,
        synthetic=synthetic,
        training=training,
        n_test=n_test,
        rows=[row.name for row in rows],
        hits=hits,
        errors=errors,
    )


def read(results: Path) -> Matrices:
    """What was cross-loaded before; empty where there is none yet."""
    file = results / FILE
    try:
        return Matrices.model_validate(json.loads(file.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return Matrices()
    except (OSError, ValueError, ValidationError) as error:
        raise RosettaError(f"{file} is not valid: {str(error).splitlines()[0]}; mend or delete it") from None


def write(matrix: Matrix, results: Path) -> None:
    """Keep a matrix, in the place of the task's earlier one."""
    kept = [old for old in read(results).matrices if old.task != matrix.task]
    whole = Matrices(matrices=[*kept, matrix])
    records.write_atomically(results / FILE, whole.model_dump_json(by_alias=True, indent=1) + "\n")


def section(matrix: Matrix, catalog: Catalog) -> str:
    """The matrix as a section of the conformance page."""
    titles = {row.name: markdown.escape(row.title) for row in catalog.rows(matrix.task)}
    names = [titles.get(name, name) for name in matrix.rows]
    body = [
        [name, *("failed" if hits is None else f"{hits:,}" for hits in line), "" if spread is None else f"{spread}"]
        for name, line, spread in zip(names, matrix.hits, map(matrix.spread, range(len(names))))
    ]
    verdict = f"within {ALLOWED} images" if matrix.passed else f"**not within {ALLOWED} images**"
    images = f"{matrix.n_test:,} {'SYNTHETIC ' if matrix.synthetic else ''}test images"
    text = (
        f"Each line: the weights that one framework trained ({matrix.training['EPOCHS']} epochs of "
        f"{matrix.training['N_TRAIN']:,} images), evaluated by all of them: how many of {images} they classify rightly, "
        f"and by how many images the most and the least differ. {verdict.capitalize()}. "
        f"{matrix.machine.name}, {matrix.made:%Y-%m-%d}, commit {(matrix.commit.id or '')[:7]}."
    )
    table = markdown.table(["trained by / evaluated by", *names, "differ by"], body)
    return "\n\n".join(["### Cross-loading", text, table, *map(markdown.escape, matrix.errors)])
