"""Which rows the tests of real rows take: a newcomer's two, or every row that has changed since it was verified and some others."""

import os
import random

from rosetta.catalog import Row
from rosetta.paths import checkout
from rosetta.plan import Plan
from rosetta.run import environments
from rosetta.run.kernels import Kernels
from rosetta.tasks import Task
from rosetta.verify import conformance

DRAWN = 3  # of the rows that have not changed
LONG_START_S = 600  # a row that compiles for longer is only taken when it has changed
FEW = 2  # of a newcomer, each in another environment


def changed(rows: list[Row], tasks: dict[str, Task]) -> list[Row]:
    """The rows that the committed conformance does not prove as they are today, and ``DRAWN`` others by ROSETTA_SEED."""
    kernels, proven = Kernels(), set()
    for key in {row.task for row in rows}:
        proven |= {
            (key, line.name, line.digest) for line in conformance.read(checkout.results, key).rows if line.passed
        }

    def digest(row: Row) -> str:
        return conformance.digest(row, tasks[row.task], kernels, gpus=(), synthetic=False)

    unchanged = [row for row in rows if (row.task, row.name, digest(row)) in proven]
    quick = [row for row in unchanged if row.facts.cost.start_s <= LONG_START_S]
    drawn = random.Random(int(os.environ["ROSETTA_SEED"])).sample(quick, min(DRAWN, len(quick)))
    return [row for row in rows if row not in unchanged or row in drawn]


def cheapest(plans: list[Plan]) -> list[Row]:
    """Rows of ``FEW`` environments that are quickest to install and run on this machine."""
    costs: dict[str, tuple[float, Row]] = {}
    for plan in plans:
        name = plan.row.environment
        environment = environments.load(name)
        cost = plan.estimate_s() + environment.install_s
        if environment.obstacle() is None and (name not in costs or cost < costs[name][0]):
            costs[name] = cost, plan.row
    return [row for _, row in sorted(costs.values(), key=lambda pair: pair[0])[:FEW]]
