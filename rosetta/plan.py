"""Plans: what exactly is to be run, decided before anything starts."""

import hashlib
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from statistics import median
from typing import Any

from pydantic import BaseModel, ConfigDict

from rosetta.catalog import PRESETS, Catalog, Row, unknown
from rosetta.errors import RosettaError
from rosetta.paths import COMMON
from rosetta.records import Record

CUSTOM = "custom"
UNTIMED = "smoke"  # the preset whose times mean nothing, so that runs may share a device
LIMITED = ("N_TRAIN", "N_TEST")  # sizes that the task's own constants bound
LIMIT, SHORTEST_LIMIT_S = 10, 1800  # a run is stopped after that many times its estimate, but not before


Durations = dict[tuple[str, str], float]  # seconds that a row takes with a preset


def content(path: Path) -> str:
    """SHA-256 of a file, or of the Python files below a folder with their paths."""
    if path.is_file():
        return hashlib.sha256(path.read_bytes()).hexdigest()
    digest = hashlib.sha256()
    for file in sorted(path.rglob("*.py")):
        digest.update(file.relative_to(path).as_posix().encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()


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
    seed: int | None = None  # where it is not the task's own
    repeat: int = 0  # how many runs of the same row with other seeds come before it
    timeout_s: float | None = None

    @property
    def synthetic(self) -> bool:
        return bool(self.parameters.get("SYNTHETIC"))

    @property
    def title(self) -> str:
        """The row, with the seed where it is not the task's own."""
        return self.row.name if self.seed is None else f"{self.row.name} seed {self.seed}"

    def estimate_s(self, took: Durations | None = None) -> float:
        """Seconds the run should take: the median of what it took before, else from the catalog's costs on 2 CPU cores.

        Testing an image is counted as a third of training on it: forward without backward.
        """
        known = (took or {}).get((self.row.name, self.preset))
        if known is not None and self.preset != CUSTOM:
            return known
        cost, size = self.row.cost, self.constants
        images = size["EPOCHS"] * size["N_TRAIN"] + size["N_TEST"] / 3
        return cost.start_s + images * cost.image_ms / 1000

    def limited(self, estimate_s: float) -> "Plan":
        """The plan with a time limit, since a run that hangs must not hold up a night's batch."""
        if self.timeout_s is not None:
            return self
        return self.model_copy(update={"timeout_s": max(SHORTEST_LIMIT_S, LIMIT * estimate_s)})

    def key(self, environment: str, machine: str, digest: Callable[[Path], str] = content) -> str:
        """SHA-256 over what decides the outcome of the run: notebook, ``common``, parameters, environment, machine.

        environment: fingerprint of its pins, or the interpreter that the user named. digest: ``content``, or one that
        remembers, where the keys of many plans are wanted.
        """
        decisive = [digest(self.row.notebook), digest(COMMON), self.parameters, environment, machine]
        return hashlib.sha256(json.dumps(decisive, sort_keys=True).encode()).hexdigest()


def durations(earlier: Iterable[Record]) -> Durations:
    """What finished runs took, start and end included: the median of each row and preset."""
    found: dict[tuple[str, str], list[float]] = {}
    for record in earlier:
        if record.status == "ok" and record.metrics.wall_s:
            found.setdefault((record.name, record.preset), []).append(record.metrics.wall_s)
    return {key: median(seconds) for key, seconds in found.items()}


def make(
    catalog: Catalog,
    rows: Iterable[Row],
    preset: str,
    overrides: dict[str, Any],
    *,
    gpu: bool,
    synthetic: bool = False,
    seeds: int = 1,
    timeout_s: float | None = None,
) -> list[Plan]:
    """Plans for the rows, each with ``seeds`` seeds in turn. ``overrides`` are parameters given by hand: but for the seed
    they make the preset "custom"."""
    if preset not in PRESETS:
        raise unknown("preset", preset, PRESETS)
    plans = []
    for row in rows:
        task = catalog.task(row.task)
        capped = row.slow_on_cpu is not None and not gpu and preset != "smoke"
        used = "smoke" if capped else preset
        constants = task.parameters()
        check_sizes(overrides, constants)
        first = overrides.get("SEED", constants["SEED"])
        for repeat in range(seeds):
            own = overrides | ({"SEED": first + repeat} if repeat else {})
            seed = own.get("SEED", constants["SEED"])
            chosen = task.presets[used] | own
            plans.append(
                Plan(
                    row=row,
                    preset=used if set(overrides) <= {"SEED"} else CUSTOM,
                    parameters=chosen | row.parameters | ({"SYNTHETIC": True} if synthetic else {}),
                    constants=constants | chosen,
                    expected=task.expected(),
                    dataset=task.data,
                    note=row.slow_on_cpu if capped else None,
                    seed=None if seed == constants["SEED"] else seed,
                    repeat=repeat,
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
    """The plans, each with its limit, and their estimates in seconds: every row once before any is repeated with another
    seed, and the fastest first, so that an evening's batch shows results early."""
    took = durations(earlier)
    estimated = [(plan, plan.estimate_s(took)) for plan in plans]
    ordered = sorted(estimated, key=lambda pair: (pair[0].repeat, pair[1]))
    return [(plan.limited(estimate), estimate) for plan, estimate in ordered]


def default_preset(gpu: bool) -> str:
    return "full" if gpu else "quick"
