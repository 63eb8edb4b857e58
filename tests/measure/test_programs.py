"""The programs of benchmarks/ train the same network as the notebooks they are measured against, and their phases are its phases."""

import os
from pathlib import Path

import pytest

from rosetta import catalog
from rosetta.batch.workers import Workers
from rosetta.catalog import Row
from rosetta.run import devices
from rosetta.run.kernels import Kernels
from rosetta.speed import scripts
from rosetta.verify import conformance, probes
from rosetta.verify.levels import TOLERANCES
from rosetta.verify.probes import BATCH, Bench, Reference, Size
from tests.verify.copies import Copy, copied

KNOWN = catalog.load()
TASK = KNOWN.tasks["cifar10_cnn"]
ROWS = KNOWN.rows("cifar10_cnn")
KINDS = ("fastest", "own_layers", "as_in_2018")
# Their programs are those of other rows here, with nothing that depends on the variant
LEFT_OUT = {
    ("fastest", "pytorch[compiled]"),
    ("fastest", "pytorch[torch1]"),
    ("fastest", "tinygrad"),  # the notebook itself, but on a GPU
    ("fastest", "mlx"),  # both are mlx[streams]
    ("fastest", "mlx[streams]"),
    ("own_layers", "mlx[streams]"),
    ("as_in_2018", "pytorch[compiled]"),
    ("as_in_2018", "pytorch"),
    ("as_in_2018", "keras2[theano]"),
    ("as_in_2018", "keras2[cntk]"),
}
# Unrolled altogether, since convolutions in a loop are slow on a CPU
SCAN = [
    ("train", '0 if device.platform == "cpu" else ', ""),
    ("train", ", state, batches)", ", state, batches, unroll=0)"),
]
# What the fastest programs do on a GPU alone, made to happen on any processor
GPU = "fastest on a GPU"
ON_A_GPU = {
    "pytorch": [("optimizer", 'if device.type == "cuda":', "if True:")],
    "lightning": [("weights", 'if accelerator == "gpu":', "if True:")],
    "tensorflow": [("train", 'jit_compile="GPU" in device', "jit_compile=True")],
    "keras[tensorflow]": [("train", "jit_compile=model.jit_compile", "jit_compile=True")],
    "flax": SCAN,
    "equinox": SCAN,
}
FULL_BATCH = f"BATCHSIZE = {BATCH}\n\n"  # the probes' only batch is a short one, and scans leave that out
SIZE = Size(n_test=20, drop_steps=0, n_drop_test=0)
CASES = [
    (kind, row.name)
    for kind in KINDS
    for row in ROWS
    if scripts.program(kind, row).is_file() and (kind, row.name) not in LEFT_OUT
] + [(GPU, name) for name in ON_A_GPU]
REAL = bool(os.environ.get("ROSETTA_DATA"))


def rewritten(row: Row, kind: str, folder: Path) -> Copy:
    """The row's notebook with a program's cells."""
    program = scripts.program("fastest" if kind == GPU else kind, row)
    code = scripts.changed(scripts.cells(row.notebook), scripts.changes(program))
    if kind == GPU:
        code = scripts.edited(code, ON_A_GPU[row.name])
        code["setup"] = FULL_BATCH + code["setup"]
    return copied(row, code, folder)


@pytest.fixture(scope="module")
def findings(request, tmp_path_factory) -> dict:
    """What levels 1, 3 and 4 found of every program that is asked for, or why it could not run here; two at a time."""
    reference = Reference(TASK, synthetic=not REAL)
    bench = Bench(Kernels(), Workers(devices.shared(gpus=None, jobs=None)))

    def judge(case: tuple[str, str]):
        kind, name = case
        (row,) = KNOWN.select("cifar10_cnn", [name])
        own = rewritten(row, kind, tmp_path_factory.mktemp("program"))
        outputs = probes.trained(bench.prober(own, TASK, reference.synthetic), reference, SIZE)
        if outputs.record.status == "skipped":
            return case, outputs.error
        tolerances = TOLERANCES | {quantity: looser.tolerance for quantity, looser in row.looser.items()}
        return case, conformance.of_trained(outputs, reference, tolerances, SIZE)

    asked = [item.callspec.params for item in request.session.items if item.originalname == "test_trains_the_network"]
    return dict(bench.workers.each(judge, [(params["kind"], params["name"]) for params in asked]))


@pytest.mark.timeout(1500)
@pytest.mark.parametrize("kind, name", CASES)
def test_trains_the_network(findings, missing, kind, name):
    found = findings[kind, name]
    if isinstance(found, str):
        missing(found)
    assert [finding.level for finding in found] == [1, 3, 4]
    assert all(finding.passed for finding in found), [finding.reason for finding in found if not finding.passed]
