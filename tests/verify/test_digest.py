"""What decides the proof of a row changes its digest, and nothing else does."""

import pytest

from rosetta import catalog, identity
from rosetta.run.kernels import Kernels
from rosetta.verify.train import PROOF
from tests import toys
from tests.inside import Inside

# What is changed: the file of the checkout, a text of it, and another in its place
DECISIVE = {
    "notebook": ("notebooks/toy_train/numpy.ipynb", "LR * (d.T", "2 * LR * (d.T"),
    "parameters of a variant": ("catalog.toml", "SEED = 2", "SEED = 3"),
    "constants": ("common/params/toy_train.py", "LR = 0.1", "LR = 0.2"),
    "reference": ("common/reference/toy_train.py", '["LR"]', '["LR"] * 2'),
    "data loader": ("common/data/toy.py", "uniform(-1", "uniform(-2"),
    "what a notebook imports": ("common/data/batching.py", "order[start", "order[:][start"),
    "what saves its weights": ("common/weights.py", "np.float32", "np.float16"),
    "lock": ("environments/test/requirements.txt", "", "numpy==1\n    # via -r requirements.in\n"),
    "recipe": ("environments/test/environment.toml", "python", 'install_flags = ["--no-config"]\npython'),
    "tolerances of the task": ("notebooks/toy_train/task.toml", "[presets]", "tolerances = { loss = 0.1 }\n[presets]"),
    "looser tolerance": (
        "notebooks/toy_train/task.toml",
        "numpy = { ",
        'numpy = { looser.loss = { tolerance = 0.1, reason = "so" }, ',
    ),
    "flavour": ("notebooks/toy_train/task.toml", "numpy = { ", 'numpy = { flavour = "sweet", '),
}
REST = {
    "text of the notebook": ("notebooks/toy_train/numpy.ipynb", "Say what is", "Say what was"),
    "runner": ("rosetta/run/execute.py", "", "# a word\n"),
    "code of the verifier": ("rosetta/verify/train.py", "", "# a word\n"),
    "another task": ("common/reference/toy_infer.py", "np.maximum", "np.minimum"),
    "words of the task": ("notebooks/toy_train/task.toml", 'title = "toy_train"', 'title = "A toy"'),
    "estimate": ("notebooks/toy_train/task.toml", "start_s = 1", "start_s = 2"),
    "size of the environment": ("environments/test/environment.toml", "python", "disk_gb = 2.0\npython"),
    "another environment": ("environments/other/requirements.txt", "", "numpy==1"),
}


def digests(number: int = PROOF, synthetic: bool = False) -> dict[str, str]:
    """Of the rows of toy_train, by what is on the disk now."""
    identity._read.cache_clear()
    known, kernels = catalog.load(), Kernels()
    task = known.task("toy_train")
    return {
        row.name: identity.proof(row, task, number, kernels.fingerprint(row), synthetic, gpu=False)
        for row in known.rows("toy_train")
    }


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        standin = Inside(tmp_path_factory.mktemp("digest") / "checkout", patch)
        standin.environment("other", python="3.11", packages="")
        toys.write(standin.root)
        with (standin.root / "catalog.toml").open("a") as file:
            file.write("[frameworks.numpy.variants.fast]\nparameters = { SEED = 2 }\n")
        yield standin.root


@pytest.mark.parametrize("what", [*DECISIVE, *REST])
def test_digest(checkout, what):
    before = digests()
    assert before.keys() == {"numpy", "numpy[fast]"} and before["numpy"] != before["numpy[fast]"]
    name, old, new = (DECISIVE | REST)[what]
    file = checkout / name
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new, 1))
    after = digests()
    file.write_text(text)
    assert (after != before) == (what in DECISIVE)


def test_number_of_the_kind_and_generated_data_change_it(checkout):
    assert len({digests()["numpy"], digests(PROOF + 1)["numpy"], digests(synthetic=True)["numpy"]}) == 3


def test_a_run_is_of_todays_notebook_by_its_code(checkout):
    """Its records are those of an earlier notebook once a cell has other code, not for a text that was mended."""
    file, row = checkout / "notebooks/toy_train/numpy.ipynb", next(iter(catalog.load().rows("toy_train")))
    text, digests = file.read_text(), {}
    for name, (_, old, new) in (("text", REST["text of the notebook"]), ("code", DECISIVE["notebook"])):
        before = identity.of_row(row), identity.run(row, {}, "", "")
        file.write_text(text.replace(old, new, 1))
        digests[name] = [
            one == other for one, other in zip(before, (identity.of_row(row), identity.run(row, {}, "", "")))
        ]
        file.write_text(text)
    assert digests == {"text": [True, True], "code": [False, False]}
