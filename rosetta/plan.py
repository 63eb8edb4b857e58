"""Plans: what exactly is to be run, decided before anything starts."""

from collections.abc import Iterable
from typing import Any

from pydantic import BaseModel, ConfigDict

from rosetta import machine
from rosetta.catalog import PRESETS, Catalog, Row, unknown
from rosetta.errors import RosettaError
from rosetta.records import Record

CUSTOM = "custom"
LIMITED = ("N_TRAIN", "N_TEST")  # sizes that the task's own constants bound


class Plan(BaseModel):
    """One run to be."""

    model_config = ConfigDict(frozen=True)

    row: Row
    preset: str
    parameters: dict[str, Any]  # what papermill injects: only what differs from the notebook's own
    constants: dict[str, Any]  # the task's shared constants as this run has them
    expected: dict[str, Any]  # what the run's metrics must say
    dataset: str  # module below common.data
    note: str | None = None  # why the preset is not the one that was asked for
    processors: tuple[int, ...] | None = None  # that the run may use; None leaves the choice to the framework
    timeout_s: float | None = None

    @property
    def threads(self) -> int | None:
        """How many threads the run is told to use."""
        return None if self.processors is None else len(self.processors)

    @property
    def synthetic(self) -> bool:
        return bool(self.parameters.get("SYNTHETIC"))

    def estimate_s(self, earlier: Iterable[Record] = ()) -> float:
        """Seconds the run should take: as long as it took before on this machine, else from the catalog's costs on 2 CPU cores.

        Testing an image is counted as a third of training on it: forward without backward.
        """
        for record in earlier:
            if (record.name, record.preset, record.status) == (
                self.row.name,
                self.preset,
                "ok",
            ) and record.metrics.wall_s:
                return record.metrics.wall_s
        cost, size = self.row.cost, self.constants
        images = size["EPOCHS"] * size["N_TRAIN"] + size["N_TEST"] / 3
        return cost.start_s + images * cost.image_ms / 1000


def make(
    catalog: Catalog,
    rows: Iterable[Row],
    preset: str,
    overrides: dict[str, Any],
    *,
    gpu: bool,
    synthetic: bool = False,
    threads: int | None = None,
    timeout_s: float | None = None,
) -> list[Plan]:
    """Plans for the rows. ``overrides`` are parameters given by hand: they make the preset "custom"."""
    if preset not in PRESETS:
        raise unknown("preset", preset, PRESETS)
    plans = []
    for row in rows:
        task = catalog.task(row.task)
        capped = row.slow_on_cpu is not None and not gpu and preset != "smoke"
        used = "smoke" if capped else preset
        chosen = task.presets[used] | overrides
        constants = task.parameters()
        check_sizes(overrides, constants)
        plans.append(
            Plan(
                row=row,
                preset=used if set(overrides) <= {"SEED"} else CUSTOM,
                parameters=chosen | row.parameters | ({"SYNTHETIC": True} if synthetic else {}),
                constants=constants | chosen,
                expected=task.expected(),
                dataset=task.data,
                note=row.slow_on_cpu if capped else None,
                processors=None if threads is None else tuple(machine.processors()[:threads]),
                timeout_s=timeout_s,
            )
        )
    return plans


def check_sizes(overrides: dict[str, Any], constants: dict[str, Any]) -> None:
    """Raises RosettaError for a parameter that the task does not have, or more images than there are."""
    for name in overrides:
        if name not in constants:
            raise unknown("parameter", name, constants)
    for name in LIMITED:
        if overrides.get(name, 0) > constants[name]:
            raise RosettaError(f"{name} is {overrides[name]}, but there are only {constants[name]} images")


def cheapest_first(plans: list[Plan], earlier: list[Record]) -> list[tuple[Plan, float]]:
    """The plans with their estimates in seconds, the fastest first, so that an evening's batch shows results early."""
    return sorted(((plan, plan.estimate_s(earlier)) for plan in plans), key=lambda pair: pair[1])


def default_preset(gpu: bool) -> str:
    return "full" if gpu else "quick"
