"""Rows are really run, each in its own environment, and their records looked at."""

import os
import subprocess
from dataclasses import dataclass

import pytest

from rosetta import adding, catalog
from rosetta.catalog import Row
from rosetta.errors import Unavailable
from rosetta.kinds import KINDS
from rosetta.notebook import refusal
from rosetta.plan import Plan, make
from rosetta.records import Record
from rosetta.run import devices
from rosetta.run.devices import Workers
from rosetta.run.execute import execute
from rosetta.run.kernels import Kernels
from rosetta.tasks import UNTIMED, Task
from tests import selection

KNOWN = catalog.load()
REAL = bool(os.environ.get("ROSETTA_DATA"))
LONGEST_S = 60  # a task's check that takes longer on 2 cores is left to the other rows of the environment
SHORT_S = 20  # of work in the runs that check nothing but that the loss falls


def sizes(row: Row, task: Task) -> dict:
    """A run of about ``SHORT_S`` that trains for two epochs; of other kinds than those that train, the smallest preset."""
    if not task.kind.trains:
        return {}
    usual = task.constants() | task.presets[UNTIMED]
    n_train = min(usual["N_TRAIN"], int(SHORT_S * 1000 / row.facts.cost.item_ms / 2.1))  # tested on a quarter of that
    return {"EPOCHS": 2, "N_TRAIN": n_train, "N_TEST": n_train // 4, "BATCHSIZE": usual["BATCHSIZE"] // 2}


def plan(row: Row, parameters: dict, **own) -> Plan:
    """own: parameters of the notebook alone."""
    (planned,) = make(KNOWN, [row], UNTIMED, parameters, gpu=False, synthetic=not REAL, timeout_s=1200)
    own = planned.parameters | own
    return planned.model_copy(update={"parameters": own, "test_each_epoch": planned.kind.trains})


def plans() -> dict[str, Plan]:
    """Of each row a short run; of the quickest in each environment its task's check, where the data is there and it is not long."""
    short = {row.full_name: plan(row, sizes(row, KNOWN.task(row.task))) for row in KNOWN.rows()}
    checks: dict[tuple[str, str], Plan] = {}
    for row in KNOWN.rows():
        task, place = KNOWN.task(row.task), (row.task, row.environment)
        if REAL and task.check:
            planned = plan(row, task.check.parameters, **task.without_chance)
            best = checks[place].estimate_s() if place in checks else LONGEST_S
            if planned.estimate_s() < best:
                checks[place] = planned
    return short | {planned.row.full_name: planned for planned in checks.values()}


PLANS = plans()


def pytest_generate_tests(metafunc):
    if "row" in metafunc.fixturenames:
        if not metafunc.config.getoption("--all"):
            rows = selection.cheapest(list(PLANS.values()))
        elif metafunc.config.getoption("--fresh"):
            rows = KNOWN.rows()
        else:
            rows = selection.changed(KNOWN.rows(), KNOWN.tasks)
        metafunc.parametrize("row", rows, ids=lambda row: row.full_name)


@dataclass(frozen=True)
class Ran:
    record: Record
    log: str


@pytest.fixture(scope="module")
def ran(request) -> dict[str, Ran]:
    """Every row that is asked for, in its own environment; they are not timed, so two may run side by side."""
    kernels, workers = Kernels(), Workers(devices.shared(gpus=None, jobs=None))

    def run(row: Row) -> tuple[str, Ran]:
        with workers.share() as slot:
            run = execute(PLANS[row.full_name], slot, kernels, watch=lambda progress: None)
        try:
            return row.full_name, Ran(run.record, run.log.read_text(errors="replace") if run.log.exists() else "")
        finally:
            run.close()

    asked = [item.callspec.params["row"] for item in request.session.items if item.originalname == "test_row_runs"]
    return dict(workers.each(run, asked))


@pytest.mark.timeout(2400)
def test_row_runs(row, ran, missing):
    if not REAL and os.environ.get("ROSETTA_ALL"):
        pytest.fail("ROSETTA_DATA must name the real data where everything is required")
    record = ran[row.full_name].record
    if record.status == "skipped":
        missing(record.error)
    assert record.status == "ok", f"{record.error}\n{ran[row.full_name].log[-3000:]}"
    task = KNOWN.task(row.task)
    assert record.metrics.start_s > 0 and not list(adding.misreported(record, task))
    if task.check and task.check.parameters.items() <= record.changed.items():
        assert all(getattr(record.metrics, name) > least for name, least in task.check.least.items())


@pytest.mark.rows
@pytest.mark.timeout(1200)
@pytest.mark.parametrize(
    "name", [row.full_name for row in KNOWN.rows("networks") if not refusal(row.notebook, KINDS["speed"], ["DEVICES"])]
)
def test_two_devices_share_a_batch(name, missing):
    """The loss after some steps is that of one device: the initial weights are drawn from the same seed."""
    (row,), losses = KNOWN.select([name]), {}
    for number in (1, 2):
        planned = plan(row, {"DEVICES": number, "BATCHSIZE": 8})
        run = execute(planned, devices.shared(gpus=None, jobs=None)[0], Kernels(), watch=lambda progress: None)
        run.close()
        if run.record.status == "skipped":
            missing(run.record.error)
        assert run.record.status == "ok", run.record.error
        assert len(run.record.device.split(", ")) == number
        losses[number] = run.record.metrics.result
    assert losses[2] == pytest.approx(losses[1], rel=1e-5)


@pytest.mark.rows
@pytest.mark.timeout(2400)
@pytest.mark.parametrize("name", dict.fromkeys(row.environment for row in KNOWN.rows()))
def test_environment_holds_what_its_rows_import(name, tmp_path, missing):
    """Also of the environments whose rows have not changed, and so may not run."""
    rows = [row for row in KNOWN.rows() if row.environment == name]
    modules = sorted({module for row in rows for module in row.imports})
    try:
        kernel = Kernels().get(rows[0], tmp_path / "install.log")
    except Unavailable as reason:
        missing(str(reason))
    find = f"import importlib.util as u; print([name for name in {modules} if u.find_spec(name) is None])"
    done = subprocess.run([str(kernel.python), "-c", find], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout.strip() == "[]"
