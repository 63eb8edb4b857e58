"""The multiply-adds that the lists of layers tell are those that a framework counts in its own network."""

import json
import subprocess
from pathlib import Path

import pytest

from common.params import networks
from common.reference import networks as reference
from rosetta import catalog
from rosetta.errors import Unavailable
from rosetta.run.kernels import Kernels


@pytest.mark.rows
@pytest.mark.timeout(300)
def test_pytorch_counts_the_same(tmp_path, missing):
    (row,) = catalog.load().select(["pytorch"], "networks")
    try:
        kernel = Kernels().get(row, tmp_path / "log")
    except Unavailable as reason:
        missing(str(reason))
    script, out = Path(__file__).with_name("multiply_adds_in_torch.py"), tmp_path / "counted.json"
    # -P: the folder tests/common would hide the common/ of the notebooks
    command = [kernel.python, "-P", script, row.notebook, out, *networks.NETWORKS]
    subprocess.run(command, cwd=row.notebook.parent, check=True, timeout=300)
    counted = json.loads(out.read_text(encoding="utf-8"))
    lists = reference.of(row.facts.flavour)
    assert counted == {name: lists.network(name).MULTIPLY_ADDS for name in networks.NETWORKS}
