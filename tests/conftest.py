"""Options and fixtures shared by the tests of the runner."""

import os
import random
import shutil
import signal
from collections import defaultdict

import pytest

EVERY = bool(os.environ.get("ROSETTA_ALL"))  # every row is tested, and nothing is skipped

# A shell ignores it for what it starts in the background, and the runners that tests start would inherit that
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser):
    group = parser.getgroup("rosetta", "the collection")
    group.addoption(
        "--all",
        action="store_true",
        default=EVERY,
        help="test every row and environment, and the site in a browser; of rows unchanged since they were verified only some, drawn by ROSETTA_SEED",
    )
    group.addoption(
        "--fresh", action="store_true", help="every unchanged row (with --all), and every case of tests that draw some"
    )


def pytest_configure():
    os.environ["ROSETTA_BUSY"] = "100"  # tests compute beside each other
    os.environ.setdefault("ROSETTA_SEED", str(random.randrange(10**6)))  # the commands that tests call draw by it, too


def pytest_report_header(config):
    if config.getoption("--all") and not config.getoption("--fresh"):
        return f"unchanged rows are drawn with ROSETTA_SEED={os.environ['ROSETTA_SEED']}"


def pytest_collection_modifyitems(config, items):
    """A newcomer has the result in minutes: tests marked ``rows``, ``long`` or ``browser`` are left out where nobody asked for
    them; of the cases of one marked ``drawn(N)`` N are taken, by ROSETTA_SEED."""
    for item in items:
        if "browser" in getattr(item, "fixturenames", ()):
            item.add_marker("browser")
    left_out = [] if config.getoption("--fresh") else _not_drawn(items)
    if not config.getoption("--all"):
        left_out += [item for item in items if any(map(item.get_closest_marker, ("rows", "long", "browser")))]
    items[:] = [item for item in items if item not in left_out]
    config.hook.pytest_deselected(items=left_out)


def _not_drawn(items: list) -> list:
    """The cases of tests marked ``drawn`` but for some of each test."""
    cases = defaultdict(list)
    for item in items:
        if marker := item.get_closest_marker("drawn"):
            cases[item.path, item.originalname, *marker.args].append(item)
    chance = random.Random(int(os.environ["ROSETTA_SEED"]))
    kept = [item for (*_, count), each in cases.items() for item in chance.sample(each, min(count, len(each)))]
    return [item for each in cases.values() for item in each if item not in kept]


@pytest.fixture
def standin(tmp_path):
    """A small checkout with notebooks that misbehave on purpose."""
    from tests.standin import StandIn  # here, because the tests of common/ run on Pythons without the runner's packages

    return StandIn(tmp_path / "checkout")


@pytest.fixture
def record():
    """Any of the committed records."""
    from rosetta import files, records, tasks
    from rosetta.paths import checkout

    return files.load(records.Record, next(checkout.results.glob(f"*/*/{tasks.UNTIMED}/*.json")))


@pytest.fixture
def inside(tmp_path, monkeypatch):
    """The same checkout, for commands that work in this process."""
    from tests.inside import Inside

    return Inside(tmp_path / "checkout", monkeypatch)


@pytest.fixture
def missing():
    """What a test does about something this machine lacks: a skip with its reason for users, a failure where everything is required."""
    return pytest.fail if EVERY else pytest.skip


@pytest.fixture(scope="session")
def browser():
    """One Chromium for all tests that read pages."""
    from playwright.sync_api import sync_playwright

    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if chromium is None:
        reason = "no Chromium on this machine: install it with the system's package manager"
        (pytest.fail if EVERY else pytest.skip)(reason)
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield running
        running.close()
