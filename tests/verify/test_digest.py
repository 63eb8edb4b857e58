"""What decides the proof of a row changes its digest, and nothing else does."""

import json
import subprocess
import sys

import pytest

from tests import toys

DIGESTS = """
import json
from rosetta import catalog, identity
from rosetta.run.kernels import Kernels
from rosetta.verify.train import PROOF
known = catalog.load()
print(json.dumps({
    row.name: identity.proof(row, known.task(row.task), PROOF, Kernels().fingerprint(row), synthetic=False, gpu=False)
    for row in known.rows("toy_train")
}))
"""
# What is changed: the file of the checkout, a text of it, and another in its place
DECISIVE = {
    "notebook": ("notebooks/toy_train/numpy.ipynb", "LR * (d.T", "2 * LR * (d.T"),
    "parameters of a variant": ("catalog.toml", "SEED = 2", "SEED = 3"),
    "constants": ("common/params/toy_train.py", "LR = 0.1", "LR = 0.2"),
    "reference": ("common/reference/toy_train.py", '["LR"]', '["LR"] * 2'),
    "data loader": ("common/data/toy.py", "uniform(-1", "uniform(-2"),
    "what a notebook imports": ("common/data/batching.py", "order[start", "order[:][start"),
    "what saves its weights": ("common/weights.py", "np.float32", "np.float16"),
    "lock": ("environments/test/requirements.txt", "", "numpy==1"),
    "recipe": ("environments/test/environment.toml", "python", 'install_flags = ["--no-config"]\npython'),
    "tolerances of the task": ("notebooks/toy_train/task.toml", "[presets]", "tolerances = { loss = 0.1 }\n[presets]"),
    "looser tolerance": (
        "notebooks/toy_train/task.toml",
        "numpy = { ",
        'numpy = { looser.loss = { tolerance = 0.1, reason = "so" }, ',
    ),
    "flavour": ("notebooks/toy_train/task.toml", "numpy = { ", 'numpy = { flavour = "sweet", '),
    "number of the kind's proof": ("rosetta/verify/train.py", "PROOF = 1", "PROOF = 2"),
}
REST = {
    "text of the notebook": ("notebooks/toy_train/numpy.ipynb", "The setup of", "Other words of"),
    "report": ("rosetta/report/tables.py", "", "# a word\n"),
    "runner": ("rosetta/run/execute.py", "", "# a word\n"),
    "code of the verifier": ("rosetta/verify/train.py", "", "# a word\n"),
    "another kind": ("rosetta/verify/infer.py", "PROOF = 1", "PROOF = 2"),
    "another task": ("common/reference/toy_infer.py", "np.maximum", "np.minimum"),
    "words of the task": ("notebooks/toy_train/task.toml", 'title = "toy_train"', 'title = "A toy"'),
    "estimate": ("notebooks/toy_train/task.toml", "start_s = 1", "start_s = 2"),
    "size of the environment": ("environments/test/environment.toml", "python", "disk_gb = 2.0\npython"),
    "another environment": ("environments/other/requirements.txt", "", "numpy==1"),
}


def digests(standin) -> dict[str, str]:
    done = subprocess.run([sys.executable, "-c", DIGESTS], cwd=standin.root, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture
def checkout(standin):
    standin.environment("other", python="3.11", packages="")
    toys.write(standin.root)
    with (standin.root / "catalog.toml").open("a") as catalog:
        catalog.write("[frameworks.numpy.variants.fast]\nparameters = { SEED = 2 }\n")
    return standin


@pytest.mark.parametrize("what", [*DECISIVE, *REST])
def test_digest(checkout, what):
    before = digests(checkout)
    assert before.keys() == {"numpy", "numpy[fast]"} and before["numpy"] != before["numpy[fast]"]
    name, old, new = (DECISIVE | REST)[what]
    file = checkout.root / name
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new, 1))
    after = digests(checkout)
    assert (after != before) == (what in DECISIVE)
