"""Plants small mistakes in the code, one at a time, and lists those that no test notices: ``python -m tests.mutants``.

mutmut makes the mistakes and runs for each the tests that reach it, in a copy of the checkout below ``mutants/``. Here is what
it lacks: a sample that a seed draws over all mistakes, and the list. What was noticed stays noticed: another call tries only
the others, and tests that have changed since. Delete ``mutants/`` to begin anew, as after a change of anything else.

It is a plugin of the tests in that copy, too. They run in one process, so that a mistake reaches them, and fast.
"""

import argparse
import gc
import json
import os
import random
import shutil
import subprocess
import sys
import time
from functools import _lru_cache_wrapper, partial
from pathlib import Path

import psutil
import pytest

COPY = Path("mutants")
FIRST = "common.record.x_finite__mutmut_1"  # any one: to try it, mutmut makes them all
STATS = "mutmut-stats.json"  # in the copy, by mutmut: which functions each test reaches, and its seconds
FAILING = "failing.json"  # in the copy: tests that fail without a mistake
# Fixtures: other processes, which no mistake reaches, and the site of all records, which takes a minute
SLOW = {"standin", "browser", "built"}
ORDINARY_KILL = psutil.Process.kill
# By mutmut's codes; any other is a mistake that was noticed, or that never ended
OPEN = {0: "survived", 5: "only tests that fail reach it", 33: "no test reaches it"}


def looking() -> bool:
    """Whether mutmut runs the tests without a mistake, to see which functions they reach."""
    return os.environ.get("MUTANT_UNDER_TEST") == "stats"


def kill(process: psutil.Process) -> None:
    """In the place of psutil's: a mistake in what kills processes must not end those of anybody else."""
    assert os.getpid() in [parent.pid for parent in process.parents()], "not a process of this test"
    ORDINARY_KILL(process)


def pytest_configure(config):
    psutil.Process.kill = kill
    if looking():
        config.option.maxfail = 0


def pytest_sessionstart():
    """Each mistake has a process that is forked from one in which all tests have run: forget what these have remembered."""
    for name in [name for name in sys.modules if name.startswith("tests.") and ".test_" in name]:
        del sys.modules[name]
    for cached in [one for one in gc.get_objects() if isinstance(one, _lru_cache_wrapper)]:
        if (cached.__module__ or "").startswith(("rosetta", "common", "tests")):
            cached.cache_clear()


def pytest_collection_modifyitems(config, items):
    failing = set() if looking() or not Path(FAILING).exists() else set(json.loads(Path(FAILING).read_text()))
    left_out = [item for item in items if SLOW & set(item.fixturenames) or item.nodeid in failing]
    items[:] = [item for item in items if item not in left_out]
    if not looking() and Path(STATS).exists():  # what takes long comes last: few mistakes get there
        seconds = json.loads(Path(STATS).read_text())["duration_by_test"]
        items.sort(key=lambda item: seconds.get(item.nodeid, 0))
    if os.environ.get("MUTANT_UNDER_TEST") == "":  # mutmut runs them all once more, to see that they pass: one will do
        items[:], left_out = items[:1], left_out + items[1:]
    config.hook.pytest_deselected(items=left_out)


@pytest.fixture(autouse=True)
def in_this_process(monkeypatch):
    """A test that starts a process is skipped there, unless that is quick: git, a script that is measured, what has a guard."""
    start = subprocess.Popen.__init__

    def started(self, command, *more, env=None, **options):
        if command[1:3] == ["-m", "rosetta.run.processes"]:  # without it
            options |= {"cwd": command[3], "stdin": subprocess.DEVNULL}
            command = command[4:]
        elif command[0] not in ("git", "uname") and not Path(command[1]).is_absolute():
            pytest.skip("starts a process")
        env = {name: value for name, value in (env or os.environ).items() if name != "MUTANT_UNDER_TEST"}
        start(self, command, *more, env=env, **options)

    monkeypatch.setattr(subprocess.Popen, "__init__", started)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session):
    """A test that fails without a mistake (for want of time, say) notices none: it is left out from here on."""
    if looking():
        reports = session.config.pluginmanager.get_plugin("terminalreporter").stats
        failing = sorted({report.nodeid for kind in ("failed", "error") for report in reports.get(kind, ())})
        known = json.loads(Path(FAILING).read_text()) if Path(FAILING).exists() else []
        Path(FAILING).write_text(json.dumps(sorted({*known, *failing})))
        session.exitstatus = 0


def codes() -> dict[str, int | None]:
    """Every mistake with mutmut's code of what came of it, None where it was not tried."""
    found: dict[str, int | None] = {}
    for file in sorted(COPY.rglob("*.meta")):
        found |= json.loads(file.read_text())["exit_code_by_key"]
    return found


def mutmut(*arguments: str, **options) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, "-m", "mutmut", *arguments], text=True, check=True, **options)


def renew_tests() -> None:
    """Forget what the tests of changed files reach, so that mutmut looks again. It copies the tests anew by itself."""
    stats, failing = COPY / STATS, COPY / FAILING
    if not stats.exists():
        return
    changed = tuple(
        f"{file}::"
        for file in map(str, Path("tests").rglob("test_*.py"))
        if not (COPY / file).exists() or (COPY / file).read_bytes() != Path(file).read_bytes()
    )
    known = json.loads(stats.read_text())
    known["duration_by_test"] = {
        name: seconds for name, seconds in known["duration_by_test"].items() if not name.startswith(changed)
    }
    known["tests_by_mangled_function_name"] = {
        function: [name for name in names if not name.startswith(changed)]
        for function, names in known["tests_by_mangled_function_name"].items()
    }
    stats.write_text(json.dumps(known))
    failing.write_text(json.dumps([name for name in json.loads(failing.read_text()) if not name.startswith(changed)]))
    shutil.rmtree(COPY / "tests")  # what is left of files that are gone


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--processes", type=int, default=2)
    asked, began = parser.parse_args(), time.monotonic()
    os.environ.setdefault(
        "ROSETTA_SEED", str(asked.seed)
    )  # some tests draw from their cases: the same ones in every call
    os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")  # else they wait for each other
    run = partial(mutmut, "run", "--max-children", str(asked.processes))
    renew_tests()
    if not codes():
        run(FIRST)
    sample = random.Random(asked.seed).sample(sorted(codes()), asked.count)
    due = [name for name in sample if codes()[name] in (None, *OPEN)]
    if due:
        run(*due)
    found = codes()
    open_ = [name for name in sample if found[name] in OPEN]
    for name in sorted(open_, key=lambda name: (found[name], name)):
        difference = mutmut("show", name, stdout=subprocess.PIPE).stdout.splitlines()
        print(f"\n{name}: {OPEN[found[name]]}")
        print(*[line for line in difference if line.startswith(("+ ", "- "))], sep="\n")
    noticed, minutes = len(sample) - len(open_), (time.monotonic() - began) / 60
    print(f"\n{noticed} of {len(sample)} noticed ({noticed / len(sample):.1%}), seed {asked.seed}, {minutes:.0f} min")
    if failing := json.loads((COPY / FAILING).read_text()):
        print("left out, since they fail without a mistake:", *failing, sep="\n")


if __name__ == "__main__":
    main()
