"""``run_all.py upgrade``: what it asks for, takes over, and tells; the copies that it makes are played back."""

from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from rosetta.adding import upgrade
from rosetta.errors import RosettaError
from rosetta.terminal import Console

ASKED = "# two of them\nfirst==1.0   # stays a comment\nSecond[cpu]==2.0; sys_platform == 'linux'\nbound<3\n"
OLD = {"first": "1.0", "second": "2.0"}
NEWEST = {"first": "1.5", "second": "3.0"}


def test_pins_and_requirements_without_them(tmp_path):
    (tmp_path / "requirements.in").write_text(ASKED)
    assert upgrade.pins(tmp_path / "requirements.in") == OLD
    newest = upgrade._asking(ASKED, {"first": None, "second": None})
    assert newest == "# two of them\nfirst   # stays a comment\nSecond[cpu]; sys_platform == 'linux'\nbound<3\n"
    assert upgrade._asking(ASKED, {"second": "3.0"}) == ASKED.replace("==2.0", "==3.0")


@pytest.fixture
def played(monkeypatch, tmp_path):
    """An environment ``tiny`` with two rows; ``newest``: what can be had; ``breaks``: (package, version) -> the row that fails."""
    folder = tmp_path / "environments" / "tiny"
    folder.mkdir(parents=True)
    (folder / "requirements.in").write_text(ASKED)
    (folder / "requirements.txt").write_text("old lock")
    world = SimpleNamespace(folder=folder, newest=NEWEST, breaks={}, checked=[])

    @contextmanager
    def trial(name, wanted):
        versions = {package: wanted.get(package, old) or world.newest[package] for package, old in OLD.items()}
        there = tmp_path / "-".join(versions.values())
        there.mkdir(exist_ok=True)
        (there / "requirements.in").write_text(upgrade._asking(ASKED, versions))
        (there / "requirements.txt").write_text("old lock" if versions == OLD else f"lock of {versions}")
        yield there

    def broken(there, rows, options, console):
        world.checked.append(rows)
        failing = [world.breaks.get(pin) for pin in upgrade.pins(there / "requirements.in").items()]
        return next(((row, "verify FAILED  level 4 (training)") for row in rows if row in failing), None)

    facts = SimpleNamespace(gpu_only=None)
    rows = [SimpleNamespace(full_name=f"t/{name}", framework=name, environment="tiny", facts=facts) for name in "ab"]
    frameworks = dict.fromkeys("ab", SimpleNamespace(retired=None))
    monkeypatch.setattr(upgrade.catalog, "load", lambda: SimpleNamespace(rows=lambda: rows, frameworks=frameworks))
    recipe = SimpleNamespace(builds={"cuda13": None, "cuda12": None})
    monkeypatch.setattr(upgrade.environments, "load", lambda name: SimpleNamespace(name=name, recipe=recipe))
    monkeypatch.setattr(upgrade, "ENVIRONMENTS", tmp_path / "environments")
    monkeypatch.setattr(upgrade, "_trial", trial)
    monkeypatch.setattr(upgrade, "_broken", broken)
    return world


def test_a_lock_with_which_all_rows_pass_is_written(played, capsys):
    assert upgrade.upgrade([], []) == 0
    assert upgrade.pins(played.folder / "requirements.in") == NEWEST
    assert (played.folder / "requirements.txt").read_text() == f"lock of {NEWEST}"
    told = capsys.readouterr().out
    assert "first 1.0 -> 1.5" in told and "second 2.0 -> 3.0" in told
    assert "tiny: all rows pass, and the new lock is written: t/a, t/b" in told
    assert "builds for GPUs keep their versions, in cuda13.in, cuda12.in" in told
    assert "run_all.py verify t/a t/b --out results" in told


def test_what_a_lock_has_by_hand_is_told_when_it_is_lost(played, capsys):
    (played.folder / "requirements.txt").write_text("first==1.0\n    # via second\n# one hash is by hand\n")
    assert upgrade.upgrade([], []) == 0
    told = [line for line in capsys.readouterr().out.splitlines() if line.startswith("The earlier lock said")]
    assert len(told) == 1 and told[0].endswith(": # one hash is by hand")


def test_the_package_that_breaks_a_row_is_named(played, capsys):
    played.breaks["second", "3.0"] = "t/b"
    assert upgrade.upgrade([], []) == 1
    assert (played.folder / "requirements.in").read_text() == ASKED
    assert (played.folder / "requirements.txt").read_text() == "old lock"
    told = capsys.readouterr().out
    assert "t/b: verify FAILED  level 4 (training)" in told
    assert "tiny: second 3.0 breaks t/b; the lock stays as it is" in told
    assert played.checked == [["t/a", "t/b"], ["t/b"], ["t/b"]]


def test_nothing_newer(played, capsys):
    played.newest = OLD
    assert upgrade.upgrade([], []) == 0
    assert "tiny: nothing is newer" in capsys.readouterr().out and not played.checked


def test_each_row_is_told_with_its_time_and_the_first_mistake_ends_it(tmp_path, monkeypatch, capsys):
    said = {
        "t/a": (0, "  smoke ok\n"),
        "t/b": (1, "  smoke ok\n  verify FAILED  level 4\n  What the run left is in /x\n"),
    }

    def command(copy, what, row):
        assert (copy, what) == (tmp_path, "check")
        code, out = said[row]
        return SimpleNamespace(returncode=code, stdout=out, stderr="")

    monkeypatch.setattr(upgrade, "_command", command)
    folder = tmp_path / "environments" / "tiny"
    assert upgrade._broken(folder, ["t/a", "t/b", "t/c"], [], Console()) == ("t/b", "verify FAILED  level 4")
    told = capsys.readouterr().out
    assert "  t/a passes  (0 s)" in told and "checking t/b" in told and "t/c" not in told


def test_an_environment_without_rows_is_refused(played):
    with pytest.raises(RosettaError, match="environment empty has no row"):
        upgrade.upgrade(["empty"], [])


@pytest.mark.parametrize(
    "said, why",
    [
        ("ok\n  verify FAILED  level 4 (training)\nthe end\n", "verify FAILED  level 4 (training)"),
        ("ok\nrun_all.py: there is no uv\n", "run_all.py: there is no uv"),
        ("", "check failed"),
    ],
)
def test_first_row_that_fails_in_the_copy_is_told(monkeypatch, tmp_path, capsys, said, why):
    called = []

    def command(copy, *arguments):
        called.append((copy, *arguments))
        return SimpleNamespace(returncode=arguments[1] == "b", stdout=said, stderr="")

    monkeypatch.setattr(upgrade, "_command", command)
    folder = tmp_path / "environments" / "tiny"
    assert upgrade._broken(folder, ["a"], [], Console()) is None
    assert upgrade._broken(folder, ["a", "b", "c"], ["--synthetic"], Console()) == ("b", why)
    assert called[1:] == [(tmp_path, "check", row, "--synthetic") for row in "ab"]
    passing = ["  checking a", "  a passes  (0 s)"]
    assert capsys.readouterr().out.splitlines() == [*passing, *passing, "  checking b"]


def test_trial_is_a_copy_of_the_checkout_locked_anew(monkeypatch, tmp_path):
    for name, text in (("requirements.in", ASKED), ("requirements.txt", "old lock")):
        (tmp_path / "environments" / "tiny").mkdir(parents=True, exist_ok=True)
        (tmp_path / "environments" / "tiny" / name).write_text(text)
    for name in ("runs", ".git", "common"):
        (tmp_path / name).mkdir()
    called, code = [], 0
    answer = lambda *each: called.append(each) or SimpleNamespace(returncode=code, stderr="run_all.py: why\n")  # noqa: E731
    monkeypatch.setattr(upgrade, "_command", answer)
    monkeypatch.setattr(upgrade, "ROOT", tmp_path)
    with upgrade._trial("tiny", {"first": None}) as folder:
        assert (
            "first   #" in (folder / "requirements.in").read_text() and (folder / "requirements.txt").read_text() == ""
        )
        copy = folder.parent.parent
        assert called == [(copy, "env", "tiny", "--lock")]
        assert sorted(path.name for path in copy.iterdir()) == ["common", "environments"]
    assert not folder.exists()
    with upgrade._trial("tiny", {"first": "1.5"}) as folder:
        assert (folder / "requirements.txt").read_text() == "old lock", "others stay while they fit"
    code = 1
    told = "tiny cannot be made of the newest releases: why"
    with pytest.raises(RosettaError, match=told), upgrade._trial("tiny", {"first": "1.5"}):
        pass
