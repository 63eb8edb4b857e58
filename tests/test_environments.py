"""Provisioning: made from hashed pins on first use, made again when they change, reused otherwise."""

import time

import pytest

from tests.standin import one_line

# A wheel of a few kilobytes; the hashes are those of its release files
PACKAGE = "six==1.17.0"
HASHES = (
    "4721f391ed90541fddacab5acf947aa0d3dc7d27b2e1e8eda2be8970586c3274",
    "ff70335d468e7eb6ec65b95b99d3a2836546063f63acc5171de367e834932a81",
)
LOCK = f"{PACKAGE} \\\n    " + " \\\n    ".join(f"--hash=sha256:{digest}" for digest in HASHES) + "\n"


@pytest.fixture
def environment(standin, monkeypatch):
    """Makes environments in the stand-in's folder: (name, recipe keys) -> Environment."""
    from rosetta.run import environments

    monkeypatch.setattr(environments, "ENVIRONMENTS", standin.root / "environments")

    def make(lock=LOCK, python="3.11", **keys):
        standin.environment("tiny", python, PACKAGE + "\n", lock, **keys)
        return environments.load("tiny")

    return make


def test_made_once_and_reused(environment, tmp_path):
    tiny = environment()
    assert not tiny.is_ready()
    tiny.provision(tmp_path / "log")
    assert tiny.is_ready() and list(tiny.folder.glob(".venv/lib/*/site-packages/six.py"))
    assert list(tiny.folder.glob(".venv/lib/*/site-packages/__pycache__/six.*.pyc")), "every run would compile it"
    stamp = tiny.stamp.stat().st_mtime_ns
    started = time.perf_counter()
    tiny.provision(tmp_path / "log")
    assert time.perf_counter() - started < 0.5
    assert tiny.stamp.stat().st_mtime_ns == stamp


def test_changed_pins_make_it_again(environment, tmp_path):
    environment().provision(tmp_path / "log")
    changed = environment(lock="# a comment\n" + LOCK)
    assert not changed.is_ready()
    changed.provision(tmp_path / "log")
    assert changed.is_ready()


def test_wrong_hash_is_refused(environment, tmp_path):
    from rosetta.errors import RosettaError

    tiny = environment(lock=f"{PACKAGE} --hash=sha256:{'0' * 64}\n")
    with pytest.raises(RosettaError, match="environment tiny could not be made: .*(?i:hash)"):
        tiny.provision(tmp_path / "log")
    assert not tiny.is_ready()


def test_cut_short_is_made_again(environment, tmp_path):
    tiny = environment()
    tiny.provision(tmp_path / "log")
    tiny.stamp.unlink()
    assert not tiny.is_ready()


def test_post_install_runs_in_the_environment(environment, standin, tmp_path):
    (standin.root / "environments" / "tiny").mkdir(parents=True)
    (standin.root / "environments" / "tiny" / "after.py").write_text(
        "import six, sys; open(sys.prefix + '/mark', 'w').write(six.__version__)"
    )
    tiny = environment(post_install="after.py")
    tiny.provision(tmp_path / "log")
    assert (tiny.folder / ".venv" / "mark").read_text() == "1.17.0"


def test_post_install_that_fails_is_told(environment, standin, tmp_path):
    from rosetta.errors import RosettaError

    (standin.root / "environments" / "tiny").mkdir(parents=True)
    (standin.root / "environments" / "tiny" / "after.py").write_text("raise SystemExit('no compiler for the stub')")
    with pytest.raises(RosettaError, match="no compiler for the stub"):
        environment(post_install="after.py").provision(tmp_path / "log")


@pytest.mark.parametrize(
    "keys, reason",
    [
        ({"needs": ["no-such-compiler"]}, "environment tiny needs no-such-compiler on this machine"),
        (
            {"python": "3.4"},
            "environment tiny needs Python 3.4, which uv does not offer: install it with pyenv or conda, or name an interpreter",
        ),
    ],
)
def test_what_the_machine_lacks_is_a_skipped_row(environment, standin, keys, reason):
    environment(**keys)
    standin.catalog(standin.entry("good", environment="tiny"))
    done = standin.call("run", "--synthetic", "--preset", "smoke", "--out", str(standin.out), own_python=False)
    assert done.returncode == 0, done.stderr
    record = standin.record("good.failed")
    assert record["status"] == "skipped" and reason in record["error"]
    assert "needs" in standin.table()


def test_environment_that_cannot_be_made_is_a_failed_row(standin):
    standin.environment("tiny", "3.11", PACKAGE + "\n", f"{PACKAGE} --hash=sha256:{'0' * 64}\n")
    standin.catalog(standin.entry("good", environment="tiny"))
    done = standin.call("run", "--synthetic", "--preset", "smoke", "--out", str(standin.out), own_python=False)
    assert done.returncode == 1
    assert standin.record("good.failed")["status"] == "failed"


def test_user_variables_win(environment, monkeypatch):
    tiny = environment()
    tiny.recipe.variables.update(THEANO_FLAGS="base_compiledir={folder}/.cache", OMP_NUM_THREADS="1")
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    assert tiny.variables((), locked=True) == {"THEANO_FLAGS": f"base_compiledir={tiny.folder}/.cache"}


def test_variables_for_a_processor_and_for_the_locked_packages(environment, monkeypatch):
    tiny = environment()
    tiny.recipe.variables_on.update(AuthenticAMD={"MKL_DEBUG_CPU_TYPE": "5"})
    tiny.recipe.variables_of_lock.update(XLA_FLAGS="--new")
    monkeypatch.setattr("rosetta.run.machine.vendor", lambda: "AuthenticAMD")
    assert tiny.variables((), locked=False) == {"MKL_DEBUG_CPU_TYPE": "5"}
    assert tiny.variables((), locked=True) == {"MKL_DEBUG_CPU_TYPE": "5", "XLA_FLAGS": "--new"}
    monkeypatch.setattr("rosetta.run.machine.vendor", lambda: "GenuineIntel")
    assert tiny.variables((), locked=True) == {"XLA_FLAGS": "--new"}


def test_variables_for_a_module_that_the_notebook_imports(environment, monkeypatch):
    tiny = environment()
    tiny.recipe.variables_for.update(mxnet={"OMP_NUM_THREADS": "{processors}"})
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr("rosetta.run.machine.processors", lambda: [0, 1, 2])
    assert tiny.variables(("mxnet",), locked=False) == {"OMP_NUM_THREADS": "3"}
    assert tiny.variables(("torch",), locked=True) == {}


def test_broken_recipe_is_one_line(standin):
    standin.environment("test", "3.11", "", nedes=["g++"])
    done = standin.call("list", own_python=False)
    assert done.returncode == 2 and "environments/test/environment.toml is not valid" in one_line(done.stderr)


def test_pins_are_hashed_and_name_no_index():
    """Of the real environments: each package of a lock has hashes, and no file names a host."""
    from rosetta.run import environments

    names = environments.names()
    assert len(names) == 10
    for name in names:
        folder = environments.load(name).folder
        lock = (folder / "requirements.txt").read_text()
        packages = [line for line in lock.splitlines() if line and line[0].isalnum()]
        assert packages and all(line.rstrip().endswith("\\") for line in packages), name
        assert "://" not in lock and "index-url" not in lock and "find-links" not in lock, name
