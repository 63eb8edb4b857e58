"""``run_all.py verify`` and ``crossload`` for real: every row passes all levels of its kind, trained weights travel, and a row that has
changed since it was verified is no longer shown as one that passes.

Rows that are as they were when the committed report was made are not verified again, but for some drawn at random; with ``--fresh`` all are.
"""

import os
import random
import shutil
import subprocess
import sys

import pytest

from common.data import pictures
from rosetta import catalog, files
from rosetta.errors import RosettaError
from rosetta.paths import checkout
from rosetta.site.pages import TaskContent
from rosetta.tasks import RowFacts
from rosetta.verify import command, conformance
from rosetta.verify.conformance import PROOFS
from rosetta.where import Where

KNOWN = catalog.load()
REAL = bool(os.environ.get("ROSETTA_DATA"))
DRAWN = "2"
# One network in five environments, whose rows decode pictures themselves
DECODERS = ("pytorch", "lightning", "fastai", "flax", "equinox", "paddle", "mindspore", "caffe2")
PICTURES = 10
TRAVELLERS = ("pytorch", "lasagne", "tensorflow1")  # OIHW, mirrored, HWIO; three environments


def call(out, *arguments) -> subprocess.CompletedProcess:
    command = [sys.executable, "run_all.py", *arguments, "--out", str(out), *([] if REAL else ["--synthetic"])]
    return subprocess.run(command, cwd=checkout.root, capture_output=True, text=True, timeout=3500)


@pytest.fixture(scope="module")
def verified(tmp_path_factory, pytestconfig):
    """One run for all tasks: (its exit code and output, what is known of each row then)."""
    out = tmp_path_factory.mktemp("verify")
    shutil.copytree(checkout.results / "conformance", out / "conformance")
    done = call(out, "verify", *(["--all"] if pytestconfig.getoption("--fresh") else ["--drawn", DRAWN]))
    return done, {line.full_name: line for key in KNOWN.tasks for line in conformance.read(out, key).rows}


@pytest.mark.rows
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("row", KNOWN.rows(), ids=lambda row: row.full_name)
def test_row_is_the_same_network(verified, missing, row):
    done, lines = verified
    assert row.full_name in lines, done.stderr
    line = lines[row.full_name]
    assert f"of {len(KNOWN.rows())} rows pass all levels" in done.stdout
    if line.skipped:
        missing(line.skipped)
    assert line.synthetic != REAL
    assert {finding.level for finding in line.findings} <= set(PROOFS[KNOWN.kind(row).name].LEVELS)
    assert line.passed, [finding.reason for finding in line.findings if not finding.passed]


@pytest.mark.rows
@pytest.mark.timeout(900)
def test_weights_travel(tmp_path, missing):
    done = call(
        tmp_path, "crossload", *TRAVELLERS, "--task", "cifar10_cnn", "--train-size", "320", "--test-size", "250"
    )
    matrix = conformance.read(tmp_path, "cifar10_cnn").matrix
    if any("skipped" in error for error in matrix.errors):
        missing("; ".join(matrix.errors))
    assert done.returncode == 0, done.stdout
    assert matrix.others == [[0] * len(TRAVELLERS)] * len(TRAVELLERS)
    assert len({hits[0] for hits in matrix.hits}) > 1, "different trainings classify differently"


@pytest.mark.rows
@pytest.mark.timeout(900)
def test_ten_pictures_have_the_same_neighbours(tmp_path, missing, pytestconfig):
    """Frameworks decode a folder of pictures themselves, and find the same nearest neighbours: three that are drawn, with ``--fresh`` all."""
    task, folder = "resnet50_features", tmp_path / "pictures"
    chance, fresh = random.Random(int(os.environ["ROSETTA_SEED"])), pytestconfig.getoption("--fresh")
    decoders = DECODERS if fresh else chance.sample(DECODERS, 3)
    pictures.write(str(folder), PICTURES, synthetic=not REAL)
    (folder / "broken.jpg").write_text("no picture")
    done = call(tmp_path, "crossload", *(f"{task}/{row}" for row in decoders), "--set", f"IMAGES={folder}")
    (agreement,) = conformance.read(tmp_path, task).agreements
    if any("skipped" in error for error in agreement.errors):
        missing("; ".join(agreement.errors))
    assert done.returncode == 0, done.stdout + done.stderr
    assert agreement.inputs == PICTURES, "the broken one is left out"
    assert agreement.others == [[0] * len(decoders)] * len(decoders) and agreement.own == ["IMAGES"]


@pytest.mark.parametrize("task", KNOWN.tasks)
def test_every_row_was_verified_as_it_is_today(task):
    report = conformance.read(checkout.results, task)
    passed = {line.full_name for _, line in conformance.lines(KNOWN, task, report) if line.passed}
    rows = {row.full_name for row in KNOWN.rows(task)}
    assert passed == rows == {line.full_name for line in report.rows}, "run_all.py verify proves what has changed"


@pytest.mark.parametrize("task", KNOWN.tasks)
def test_row_that_has_changed_is_stale_on_every_page(tmp_path, task):
    report = conformance.read(checkout.results, task)
    changed, rows = report.rows[0], len(report.rows)
    changed.digest = "0" * 64
    files.write(conformance.file_of(tmp_path, task), report)
    text = conformance.page(KNOWN, task, tmp_path)
    assert f"**{rows - 1} of {rows} rows pass" in text and " | stale | stale |" in text
    assert f"| stale | the row has changed since it was verified on {changed.verified:%Y-%m-%d}" in text
    badges = TaskContent(KNOWN, task, [], tmp_path).badges
    assert (badges[changed.name].text, badges[changed.name].badge) == ("stale", "bad")
    assert sum(cell.badge == "good" for cell in badges.values()) == rows - 1


@pytest.mark.parametrize("key", KNOWN.tasks)
def test_every_row_says_what_its_proof_needs(key, tmp_path):
    setting = command.Setting(Where(task=key, synthetic=True, out=tmp_path))
    assert {key for key, _ in setting.references} == {key} and len(setting.digests) == len(KNOWN.rows(key))


@pytest.mark.parametrize(
    "facts, said",
    [
        ({}, "imdb_gru/pytorch has no flavour: it is one of FLAVOURS in common/params/imdb_gru.py; say it below "),
        ({"flavour": "reset_afer"}, "unknown flavour of pytorch in .* reset_afer; did you mean reset_after"),
    ],
)
def test_a_row_that_is_of_no_flavour_is_refused_by_name(facts, said):
    task = KNOWN.task("imdb_gru").model_copy(update={"rows": {"pytorch": RowFacts(**facts)}})
    with pytest.raises(RosettaError, match=said):
        task.expected("pytorch")
