"""One run of which every figure is known beforehand: its clocks, its memory and its GPU are played back.

What the record, the tables and a comparison say of it is asserted value by value.
"""

import json
import sys
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from itertools import cycle
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import pytest

import common.record
from common.data import loaded
from rosetta import catalog, plan, records
from rosetta.figures import Table
from rosetta.paths import DATA, checkout
from rosetta.records import Record
from rosetta.report import pages, tables
from rosetta.report.results import TaskResults
from rosetta.run import devices, execute, machine, telemetry
from rosetta.run.execute import Progress
from rosetta.run.kernels import Kernel
from rosetta.run.processes import JOB, Outcome
from rosetta.run.telemetry import RunMeter
from rosetta.site import build
from tests.fake_nvml import GIB, FakeNvml, cards

KNOWN = catalog.load()
(ROW,) = KNOWN.select(["pytorch"], "cifar10_cnn")
GIVEN = {"EPOCHS": 3, "N_TRAIN": 5000, "BATCHSIZE": 50, "TARGET_ACCURACY": 0.5}
# Seconds that the cells took, in their order
CELLS = {"setup": 1.5, "data": 0.75, "model": 0.5, "weights": 0.25, "optimizer": 0.125, "evaluate": 16.0}
CELLS |= {"train": 32.0, "record": 0.625}
LOSSES = (2.0, 1.5, 1.25)
BEGAN = datetime(2026, 11, 22, 12, tzinfo=UTC)
# At the start; then at the end of each epoch and of the test after it
CLOCK = (10.0, 14.0, 20.0, 22.0, 30.0, 33.0, 40.0)


def process(gibibytes: float, seconds: float) -> Mock:
    """As psutil tells of one."""
    return Mock(
        oneshot=nullcontext,
        cpu_times=lambda: SimpleNamespace(user=seconds, system=0.5),
        memory_info=lambda: SimpleNamespace(rss=int(gibibytes * GIB)),
        is_running=lambda: False,
    )


class Interpreter:
    """In place of Kernels: an interpreter of the user's, which nobody asks."""

    pins = "pins"

    def fingerprint(self, row, gpus):
        return self.pins

    def interpreter(self, environment):
        return Path(sys.executable)

    def has_build(self, row, gpus):
        return True

    def get(self, row, log, tell, gpus):
        return Kernel(Path(sys.executable), {"OF_THE_BUILD": "1"}, "cuda13")


def handed_over(monkeypatch) -> dict:
    """What the notebook's own clock and log make of it."""
    times, shown = iter(CLOCK), []
    monkeypatch.setattr(common.record, "time", SimpleNamespace(perf_counter=lambda: next(times)))
    monkeypatch.setattr(common.record, "_show", lambda payload, text: shown.append(payload))
    monkeypatch.setattr(
        loaded, "description", lambda: {"name": "CIFAR-10", "synthetic": False, "sizes": {"train": 5000, "test": 10000}}
    )
    monkeypatch.setenv(common.record.TEST_EACH_EPOCH, "1")
    log = common.record.EpochLog(3)
    for loss, accuracy in zip(LOSSES, (0.25, 0.5, 0.75)):
        log.epoch(loss, lambda accuracy=accuracy: accuracy)
    common.record.record(log, 0.75, 3441592, [], "cuda:0", None, None)
    (payload,) = shown
    return payload | {"versions": {"python": "3.12.1", "torch": "2.13.0"}, "cuda": {"CUDA": "13.0"}}


def notebook(payload: dict, began: datetime) -> str:
    cells = []
    for role, seconds in CELLS.items():
        metadata = {"tags": [role], "papermill": {"start_time": began.isoformat(), "duration": seconds}}
        metadata["execution"] = {"shell.execute_reply": ""}
        cells.append({"cell_type": "code", "metadata": metadata, "outputs": [], "source": ""})
        began += timedelta(seconds=seconds)
    cells[-1]["outputs"] = [{"data": {common.record.MIME: payload}}]
    return json.dumps({"cells": cells, "metadata": {}})


def play(monkeypatch) -> dict[str, dict]:
    """From now on every run goes so; returns where the variables of its kernel and its parameters will be."""
    gpu = cards("NVIDIA H200")[0]
    gpu.grows, gpu.power = 0, 400_000
    FakeNvml(monkeypatch, [*cards("NVIDIA H200"), gpu])
    monkeypatch.setattr(machine, "processors", lambda: list(range(8)))
    monkeypatch.setattr(telemetry, "INTERVAL_S", 1000.0)  # it looks when it is told to
    looks = cycle(([process(2, 10), process(1, 5)], [process(1, 2)]))
    monkeypatch.setattr(telemetry, "tree", lambda pid: next(looks))
    clock = cycle((100.0, 100.0, 142.5))
    monkeypatch.setattr(execute, "time", SimpleNamespace(monotonic=lambda: next(clock), time=BEGAN.timestamp))
    seen: dict[str, dict] = {}

    def run_process(run, plan, slot, watch):
        job = json.loads((run.folder / JOB).read_text())
        seen.update(variables=job["variables"], injected=job["parameters"])
        payload = handed_over(monkeypatch)
        payload["dataset"] = payload["dataset"] | {"synthetic": plan.synthetic}
        run.executed.write_text(notebook(payload, BEGAN + timedelta(seconds=2.25)))
        gpu.used = GIB
        with RunMeter(1, slot.gpus) as meter:
            meter._sample_processes()
            for epoch, (used, joules) in enumerate(((5, 100), (3, 250), (2, 250)), start=1):
                gpu.used, gpu.energy = used * GIB, gpu.energy + joules * 1000
                meter.mark()
                watch(Progress("running", "epoch", epoch, 3, f"loss {LOSSES[epoch - 1]:.4f}"))
            gpu.energy += 200_000
            meter._sample_processes()
        return Outcome("ok"), meter

    monkeypatch.setattr(execute, "run_process", run_process)
    return seen


@pytest.fixture(scope="module")
def played() -> tuple[Record, dict, dict]:
    """The record of the run, the variables of its kernel, and the parameters that papermill was given."""
    with pytest.MonkeyPatch.context() as patch:
        seen = play(patch)
        (planned,) = plan.make(KNOWN, [ROW], "quick", GIVEN, gpu=True, slot={"THREADS": 4})
        slot = devices.timed("1", threads=4)[0]
        run = execute.execute(planned, slot, Interpreter(), lambda progress: None)
        run.close()
    return run.record, seen["variables"], seen["injected"]


METRICS = {
    "accuracy": 0.75,
    "parameters": 3441592,
    "loss": [2.0, 1.5, 1.25],
    "epoch_s": [4.0, 2.0, 3.0],
    "epoch_accuracy": [0.25, 0.5, 0.75],
    "train_s": 9.0,
    "target_s": 6.0,  # two epochs, the tests off the clock
    "first_epoch_s": 4.0,
    "steady_epoch_s": 2.5,
    "examples_per_s": 2000.0,  # 5,000 in 2.5 s
    "examples_per_j": 20.0,  # 10,000 in the 500 J between the first and the last epoch line
    "start_s": 2.25,
    "setup_s": 1.5,
    "data_s": 0.75,
    "build_s": 0.875,  # model, weights, optimizer
    "evaluate_s": 0.625,
    "wall_s": 42.5,
    "cpu_s": 18.5,  # of three processes, one of which had ended
    "peak_rss": 3 * GIB,
    "peak_gpu_memory": 4 * GIB,  # 1 GiB was in use before
    "energy_j": 800.0,
}
CELLS_OF_THE_TABLE = {
    "framework": "PyTorch",
    "versions": "torch 2.13.0, Python 3.12.1, CUDA 13.0",
    "device": "GPU",
    "accuracy": "learns",
    "train": "9.0 s",
    "to target": "6.0 s",
    "first epoch": "4.0 s",
    "steady": "2.5 s",
    "examples/s": "2,000",
    "data": "0.75 s",
    "build": "0.88 s",
    "test": "0.62 s",
    "wall": "42.5 s",
    "memory": "3.0 GiB",
    "GPU memory": "4.0 GiB",
    "energy": "0.80 kJ",
    "examples/J": "20.0",
    "examples come": "resident",
    "waits every": "epoch",
    "of FP32 peak": "1.1%",  # 2,000 examples of 374 MFLOP a second, of 67 TFLOP
    "record": "record",
}


def test_record(played):
    record, variables, injected = played
    assert (record.status, record.error) == ("ok", None)
    assert record.metrics.model_dump(exclude_none=True) == METRICS
    assert (record.build, record.device, record.threads) == ("cuda13", "cuda:0", 4)
    assert record.cuda == {"CUDA": "13.0"} and record.dataset.sizes == {"train": 5000, "test": 10000}
    assert [gpu.name for gpu in record.machine.gpus] == ["NVIDIA H200"] and record.machine.name == "nvidia-h200"
    assert record.params["EPOCHS"] == 3 and record.params["LR"] == 0.01 and injected == GIVEN
    told = record.telemetry
    assert (told.energy_from, told.power_w, told.utilisation, told.clock_mhz) == ("counter", 400.0, 0.5, 1380)
    assert variables["OF_THE_BUILD"] == "1" and variables["CUDA_VISIBLE_DEVICES"] == "1"
    assert variables["OMP_NUM_THREADS"] == variables["MKL_NUM_THREADS"] == "4"


def test_tables(played, tmp_path):
    record, *_ = played
    written = records.write(record, tmp_path)
    assert written.relative_to(tmp_path).as_posix() == (
        "nvidia-h200/cifar10_cnn/quick,batchsize=50,epochs=3,n_train=5000,target_accuracy=0.5,threads=4/pytorch.json"
    )
    results = TaskResults.of(KNOWN, "cifar10_cnn", [one for _, one in records.read_all(tmp_path)])
    (column,) = results.columns
    table = tables.details(results, column)
    (row,) = table.rows
    headings = [heading.text for heading in table.headings]
    assert dict(zip(headings, (cell.text for cell in row), strict=True)) == CELLS_OF_THE_TABLE
    pages.write(KNOWN, tmp_path)
    (line,) = [line for line in (tmp_path / "cifar10_cnn.md").read_text().splitlines() if "| 2,000 |" in line]
    cells = [cell.strip() for cell in line.strip("|").split("|")]
    assert cells[1:-1] == list(CELLS_OF_THE_TABLE.values())[1:-1]
    headings, *rows = texts(tables.overview(results))
    (first,) = [row for row in rows if row[0] == "PyTorch"]
    figures = dict(zip(headings, first, strict=True))
    assert figures[f"{column.title}: accuracy"] == "learns" and figures["train"] == "9.0 s"


NOTEBOOK = "notebooks/cifar10_cnn/pytorch.ipynb"
KEYS = {
    "the machine": {"machine": "other"},
    "the environment": {"environment": "other"},
    "a parameter": {"EPOCHS": 4},
    "the seed": {"SEED": 1},
    "the data": {"synthetic": True},
    "the notebook's code": {"edited": NOTEBOOK, "old": b"torch.manual_seed(SEED)", "new": b"torch.manual_seed(1)"},
    "what it imports": {"edited": "common/data/cifar10.py"},
    "what that imports": {"edited": "common/data/loaded.py"},
    "a variable of the row": {"variables": {"NVIDIA_TF32_OVERRIDE": ""}},
}


def plan_key(
    machine="here", environment="pins", edited="", old=b"\n", new=b"\n\n", variables=None, synthetic=False, **changed
) -> str:
    row = ROW.model_copy(update={"variables": variables or {}})
    (planned,) = plan.make(KNOWN, [row], "quick", GIVEN | changed, gpu=True, synthetic=synthetic)

    def read(file: Path) -> bytes:
        held = file.read_bytes()
        if file != checkout.root / edited:
            return held
        assert old in held
        return held.replace(old, new)

    return planned.key(environment, machine, read)


@pytest.mark.parametrize(
    "edited",
    ["common/reference/imdb_gru_mistakes.py", "common/params/networks.py", "common/data/download.py", NOTEBOOK],
)
def test_what_a_notebook_does_not_import_and_its_form_are_not_in_its_key(edited):
    """``resume`` keeps what is finished."""
    assert (checkout.root / edited).is_file() and plan_key(edited=edited) == plan_key()


@pytest.mark.parametrize("changed", KEYS.values(), ids=KEYS)
def test_what_decides_a_run_is_in_its_key(changed):
    """Resume and the batch take a record with the same key for this run."""
    assert plan_key(**changed) != plan_key() == plan_key()


def test_key_and_record_have_what_the_process_is_told_by_variables():
    """As records on disk have it; papermill gets none of it."""
    (planned,) = plan.make(KNOWN, [ROW], "full", {}, gpu=True, synthetic=True)
    assert planned.decisive == {"TEST_EACH_EPOCH": True, "SYNTHETIC": True} and planned.parameters == {}
    assert {name for name, value in planned.variables.items() if value} == {common.record.TEST_EACH_EPOCH, DATA}


def test_what_pages_say_of_a_record(played):
    """On a machine whose facts are known."""
    record, *_ = played
    facts = {"cpu": "the processor", "memory": 16 * GIB, "os": "Linux"}
    record = record.model_copy(update={"started": BEGAN, "machine": record.machine.model_copy(update=facts)}, deep=True)
    record.notebook.executed = "pytorch.ipynb"
    failed = record.model_copy(update={"status": "failed", "error": "out of memory", "seed": 1})
    results = TaskResults.of(KNOWN, "cifar10_cnn", [record, failed])
    (column,) = results.columns
    assert column.about() == (
        "the processor, 8 cores, 16 GiB; NVIDIA H200 (141 GiB, driver 580.1); Linux. "
        "3 epochs of 5,000, batch 50, tested on 10,000 (CIFAR-10); run on 2026-11-22."
    )
    assert column.title == "nvidia-h200, quick, BATCHSIZE=50, EPOCHS=3, N_TRAIN=5000, TARGET_ACCURACY=0.5, THREADS=4"
    assert texts(tables.of_framework(results, "pytorch")) == [
        ["row", "where", "status", "accuracy", "train", "executed", "record"],
        ["PyTorch", column.title, "ok", "learns", "9.0 s", "notebook", "record"],
        ["PyTorch, seed 1", column.title, "failed", "learns", "9.0 s", "notebook", "record"],
    ]
    entry = build.entry(record)
    assert {name: entry.pop(name) for name in [*entry][:13]} == {
        "row": "pytorch",
        "framework": "pytorch",
        "title": "PyTorch",
        "machine": "nvidia-h200",
        "gpus": ["NVIDIA H200"],
        "device": "cuda:0",
        "preset": "quick",
        "changed": GIVEN | {"THREADS": 4},
        "synthetic": False,
        "seed": None,
        "status": "ok",
        "started": "2026-11-22T12:00:00+00:00",
        "versions": record.versions,
    }
    assert entry.pop("record").startswith("records/") and entry == record.metrics.model_dump(mode="json")
    flat = {"changed": {"EPOCHS": 3, "LR": 0.5}, "loss": [2.0, 1.5], "gpus": ["NVIDIA H200"], "title": "PyTorch"}
    assert build.spreadsheet([flat]) == "changed,loss,gpus,title\nEPOCHS 3; LR 0.5,2.0; 1.5,NVIDIA H200,PyTorch\n"


def texts(table: Table) -> list[list[str]]:
    return [[heading.text for heading in table.headings], *([cell.text for cell in row] for row in table.rows)]
