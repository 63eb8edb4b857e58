"""The programs that notebooks are measured against compute the same network as the notebooks."""

import os
from pathlib import Path

import pytest

from rosetta import catalog
from rosetta.catalog import Row
from rosetta.notebook import changed, changes, program
from rosetta.run import devices
from rosetta.run.devices import Workers
from rosetta.run.kernels import Kernels
from rosetta.verify import infer, speed, train
from rosetta.verify.conformance import PROOFS
from rosetta.verify.proof import Bench, tolerances
from rosetta.verify.train import BATCH, Size
from tests.verify.copies import Copy, copied, edited

KNOWN = catalog.load()
ROWS = [row for row in KNOWN.rows() if KNOWN.kind(row).turns and program("fastest", row.task, row.framework).is_file()]
# Their programs are those of other rows here, with nothing that depends on the variant
LEFT_OUT = (
    "pytorch[compiled]",
    "pytorch[graphs]",
    "pytorch[tf32]",
    "pytorch[bf16]",
    "pytorch[torch1]",
    "tensorflow[xla]",
    "flax[scan]",
    "tinygrad",  # the notebook itself, but on a GPU
)
# Convolutions in a loop are slow on a CPU
UNROLLED = [
    ("train", '0 if device.platform == "cpu" else ', ""),
    ("train", ", state, batches)", ", state, batches, unroll=0)"),
]
# What the programs do on a GPU alone, made to happen on any processor
ON_A_GPU = {
    "cifar10_cnn/pytorch": [("optimizer", 'if device.type == "cuda":', "if True:")],
    "cifar10_cnn/tensorflow": [("train", 'jit_compile="GPU" in device', "jit_compile=True")],
    "cifar10_cnn/keras[tensorflow]": [("train", "jit_compile=model.jit_compile", "jit_compile=True")],
    "cifar10_cnn/flax": UNROLLED,
    "cifar10_cnn/equinox": UNROLLED,
    "imdb_gru/chainer": [("model", "if gpu:", "if True:")],
}
FULL_BATCH = f"BATCHSIZE = {BATCH}\n\n"  # the probes' only batch is a short one, and scans leave that out
SIZE = Size(n_test=20, drop_steps=0, n_drop_test=0)
CASES = {row.full_name: (row, False) for row in ROWS if row.name not in LEFT_OUT}
CASES |= {f"{row.full_name} as on a GPU": (row, True) for row in ROWS if row.full_name in ON_A_GPU}
NETWORKS = ("alexnet_r", "resnet56")  # on which programs of a task of networks are proven: their steps
LEVELS = {"train": [1, 3, 4], "infer": [1, 3], "speed": [4]}
REAL = bool(os.environ.get("ROSETTA_DATA"))


def rewritten(row: Row, on_a_gpu: bool, folder: Path) -> Copy:
    """The row's notebook with its program's cells."""
    code = changed(row.code, *changes(program("fastest", row.task, row.framework), KNOWN.kind(row).names))
    if on_a_gpu:
        code = edited(code, ON_A_GPU[row.full_name])
    if KNOWN.kind(row).trains:
        code["setup"] = FULL_BATCH + code["setup"]
    return copied(row, code, folder)


@pytest.fixture(scope="module")
def findings(request, tmp_path_factory) -> dict:
    """What the levels found of every program that is asked for, or why it could not run here; two at a time. Level 4 is the last."""
    asked = [item.callspec.params for item in request.session.items if item.originalname == "test_computes_the_network"]
    # Made here: threads would race for the first
    folders, references = {params["case"]: tmp_path_factory.mktemp("program") for params in asked}, {}
    for key in {(row.task, row.facts.flavour) for row, _ in map(CASES.get, folders)}:
        task = KNOWN.task(key[0])
        references[key] = PROOFS[task.kind_name].Reference(task, key[1], synthetic=not REAL)
    bench = Bench(Kernels(), Workers(devices.shared(gpus=None, jobs=None)))

    def judge(case: str):
        row, on_a_gpu = CASES[case]
        own = rewritten(row, on_a_gpu, folders[case])
        reference = references[row.task, row.facts.flavour]
        if KNOWN.kind(row).name == "speed":
            trained = {name: reference.network.TRAINED[name] for name in NETWORKS}
            found = speed.steps(row, bench.prober(own, reference), reference, trained)
            return case, found.reason if "skipped: " in (found.reason or "") else [found]
        if not KNOWN.kind(row).trains:
            found, outputs = infer.judge(row, bench.prober(own, reference), reference, gpu=False)
            return case, outputs.error if outputs.skipped else found
        limits = tolerances(train.TOLERANCES, reference.task, row)
        found, outputs = train.trained(bench.prober(own, reference), reference, limits, SIZE)
        return case, outputs.error if outputs.skipped else found

    return dict(bench.workers.each(judge, list(folders)))


@pytest.mark.rows
@pytest.mark.drawn(2)
@pytest.mark.timeout(1500)
@pytest.mark.parametrize("case", CASES)
def test_computes_the_network(findings, missing, case):
    found = findings[case]
    if isinstance(found, str):
        missing(found)
    assert [finding.level for finding in found] == LEVELS[KNOWN.kind(CASES[case][0]).name]
    assert all(finding.passed for finding in found), [finding.reason for finding in found if not finding.passed]
