"""Plans: what exactly is to be run, decided before anything starts."""

from collections.abc import Callable, Iterable, Sequence
from math import inf
from pathlib import Path
from statistics import median
from typing import Any

from pydantic import BaseModel, ConfigDict

from common.record import SAVE_TO, TEST_EACH_EPOCH
from rosetta import files, identity, notebook
from rosetta.catalog import Catalog, Row
from rosetta.errors import RosettaError, unknown
from rosetta.kinds import KINDS, Kind
from rosetta.kinds.kind import BATCH, FROM_ZOO
from rosetta.notebook import Read
from rosetta.paths import DATA, SYNTHETIC
from rosetta.records import Record, column
from rosetta.tasks import PRESETS, UNTIMED, Task

LIMIT, SHORTEST_LIMIT_S = 10, 1800  # a run is stopped after that many times its estimate, but not before
MOST_SEED = 2**32 - 1  # that NumPy takes, and with it most frameworks
LONGEST_LIMIT_S = 10**8  # three years; clocks of the system count no further than some hundred


class Plan(BaseModel):
    """One run to be."""

    model_config = ConfigDict(frozen=True)

    row: Row
    kind_name: str
    preset: str
    changed: dict[str, Any] = {}  # what was given by hand over the preset, but for the seed
    parameters: dict[str, Any]  # what papermill puts into the notebook: only what differs from its own
    constants: dict[str, Any]  # the task's shared constants as this run has them
    share: float = 1.0  # the work of an item against that of the task's own
    expected: dict[str, Any] = {}  # what the run's metrics must say
    flop: float | None = None  # of an example, where the task counts it: no run computes it faster than its machine can
    dataset: str | None = None  # module below common.data
    synthetic: bool = False  # on generated data
    test_each_epoch: bool = False
    save_to: str = ""  # folder for weights and outputs, of a run that is checked
    on_gpu: bool = False
    note: str | None = None  # why the preset is not the one that was asked for
    seed: int | None = None  # where it is not the task's own
    repeat: int = 0  # how many runs of the same row with other seeds come before it
    timeout_s: float | None = None
    took_s: float | None = None  # what earlier runs took: the median
    refused: str | None = None  # why the notebook cannot be run: it breaks the contract, or does not take what is set

    @property
    def kind(self) -> Kind:
        return KINDS[self.kind_name]

    @property
    def variables(self) -> dict[str, str]:
        """What the run's process is told by variables."""
        variables = {SAVE_TO: self.save_to, TEST_EACH_EPOCH: "1" if self.test_each_epoch else ""}
        return variables | ({DATA: SYNTHETIC} if self.synthetic else {})

    @property
    def decisive(self) -> dict[str, Any]:
        """What decides the run, for its record and its key: the parameters, and what its process is told by variables."""
        told = {"SYNTHETIC": self.synthetic, "TEST_EACH_EPOCH": self.test_each_epoch, "SAVE_TO": self.save_to}
        return self.parameters | {name: value for name, value in told.items() if value}

    @property
    def column(self) -> str:
        return column(self.preset, self.changed, self.synthetic)

    @property
    def title(self) -> str:
        """The row, with the seed where it is not the task's own."""
        return self.row.full_name if self.seed is None else f"{self.row.full_name} seed {self.seed}"

    def estimate_s(self) -> float:
        """Seconds the run should take: what earlier ones took, start and end included, else by the task's costs."""
        if self.refused or self.took_s:
            return self.took_s or 0.0
        cost = self.row.facts.cost
        item_ms = cost.gpu_item_ms if self.on_gpu else cost.item_ms
        return cost.start_s + self.kind.items(self.constants) * self.share * item_ms / 1000

    def limited(self, estimate_s: float) -> "Plan":
        """The plan with a time limit, since a run that hangs must not hold up a night's batch."""
        if self.timeout_s is not None:
            return self
        return self.model_copy(update={"timeout_s": min(max(SHORTEST_LIMIT_S, LIMIT * estimate_s), LONGEST_LIMIT_S)})

    def key(self, environment: str, machine: str, read: Read = files.read) -> str:
        """The run's identity in an environment and on a machine."""
        return identity.run(self.row, self.decisive, environment, machine, read)


def make(
    catalog: Catalog,
    rows: Iterable[Row],
    preset: str,
    overrides: dict[str, Any],
    *,
    gpu: bool,
    synthetic: bool = False,
    seeds: int = 1,
    slot: dict[str, Any] | None = None,
    timeout_s: float | None = None,
) -> list[Plan]:
    """Plans for the rows, each with ``seeds`` seeds in turn. ``overrides`` are parameters given by hand; with ``slot``, what
    was asked of the place where it runs (threads), they are in the record's path."""
    if preset not in PRESETS:
        raise unknown("preset", preset, PRESETS)
    plans = []
    for row in rows:
        task, slow = catalog.task(row.task), row.facts.slow_on_cpu
        capped = slow is not None and not gpu and preset != UNTIMED
        used = UNTIMED if capped else preset
        if used not in task.presets:
            raise RosettaError(f"{task.key} has no preset {preset}: it has {', '.join(task.presets)}")
        constants = task.constants()
        overrides = checked(overrides, task)
        first = overrides.get("SEED", constants["SEED"])
        changed = {name: value for name, value in overrides.items() if name != "SEED"} | (slot or {})
        optional = [name for name in (*task.paths, *task.switches) if name in overrides]
        refused = notebook.refusal(row.notebook, task.kind, optional) or _no_such_network(row, task, overrides, catalog)
        for repeat in range(seeds):
            seed = first + repeat
            given = {"DEVICES": (slot or {}).get("gpus", 1)} if gpu and "DEVICES" in constants else {}  # its GPUs
            chosen = task.presets[used] | given | overrides | ({"SEED": seed} if repeat else {})
            parameters = chosen | row.parameters
            test_each_epoch = parameters.pop("TEST_EACH_EPOCH", False)
            plans.append(
                Plan(
                    row=row,
                    kind_name=task.kind.name,
                    preset=used,
                    changed=changed,
                    parameters=parameters,
                    constants=constants | chosen,
                    share=task.share(constants | chosen),
                    expected=task.expected(row.name),
                    flop=task.flop(constants | chosen | {BATCH: 1}),
                    dataset=task.data,
                    synthetic=synthetic,
                    test_each_epoch=test_each_epoch,
                    on_gpu=gpu,
                    note=slow if capped else None,
                    seed=None if seed == constants["SEED"] else seed,
                    repeat=repeat,
                    timeout_s=timeout_s,
                    refused=refused,
                )
            )
    return plans


def _no_such_network(row: Row, task: Task, overrides: dict[str, Any], catalog: Catalog) -> str | None:
    """Why a run is refused whose network the row, or its framework's own zoo, does not have; None where a task has one network."""
    name = overrides.get(task.kind.which, task.constants().get(task.kind.which))
    if name in row.facts.lacks:
        return f"{row.title} has no {name}: {row.facts.lacks[name]}"
    if overrides.items() >= FROM_ZOO.items():  # one row of a notebook speaks for all
        zoo = {name for other in catalog.rows(task.key) if other.notebook == row.notebook for name in other.facts.zoo}
        if zoo and name not in zoo:
            return f"the zoo of {row.title} has no {name}; it has {', '.join(sorted(zoo))}"
    return None


def checked(overrides: dict[str, Any], task: Task) -> dict[str, Any]:
    """The parameters that the user has set, as runs take them: notebooks run in folders of their own, so paths are absolute.

    Raises RosettaError for one that the task does not have, of another type, a size that there is not or a path to nothing.
    """
    task.fit(overrides, task.key, dict.fromkeys(task.paths))
    if not 0 <= overrides.get("SEED", 0) <= MOST_SEED:
        raise RosettaError(f"{task.key}: SEED is a whole number from 0 to {MOST_SEED}: some frameworks take no other")
    paths = {name: Path(str(value)).expanduser() for name, value in overrides.items() if name in task.paths}
    for name, path in paths.items():
        if not path.exists():
            raise RosettaError(f"{task.key}: {name} is a file or a folder, and there is no {path}")
    return overrides | {name: str(path.absolute()) for name, path in paths.items()}


def soonest_first(
    plans: list[Plan], earlier: list[Record], installed_s: Callable[[Plan], float], tasks: Sequence[str]
) -> list[Plan]:
    """The plans, each with its limit and with what earlier runs took, in an order that shows results early.

    Every row once before any is repeated with another seed; the tasks in their order; then the environment that has its first
    result soonest, and in it the fastest row. Rows that can only do less come last. installed_s: seconds until a plan's
    environment is there.
    """

    def place(row: str, of: Plan | Record) -> tuple[str, str]:
        """Row and column, whatever the data: only the record of a run says that its task made its own."""
        return row, column(of.preset, of.changed, synthetic=False)

    took: dict[tuple[str, str], list[float]] = {}
    for record in earlier:
        if record.status == "ok" and record.metrics.wall_s and not record.disturbed:
            took.setdefault(place(record.full_name, record), []).append(record.metrics.wall_s)
    known, soonest = [], dict[tuple[str, str], float]()
    for plan in plans:
        if not plan.refused and (seconds := took.get(place(plan.row.full_name, plan))):
            plan = plan.model_copy(update={"took_s": median(seconds)})
        known.append(plan.limited(plan.estimate_s()))
        group = plan.row.task, plan.row.environment
        soonest[group] = min(soonest.get(group, inf), installed_s(plan) + plan.estimate_s())

    def order(plan: Plan) -> tuple:
        environment = soonest[plan.row.task, plan.row.environment], plan.row.environment
        return plan.repeat, tasks.index(plan.row.task), plan.note is not None, *environment, plan.estimate_s()

    return sorted(known, key=order)
