import time
from pathlib import Path

import pytest

from rosetta.paths import RESULTS, ROOT
from rosetta.site import build

SCREENSHOTS = ROOT / ".screenshots"  # to be looked at after the tests


@pytest.fixture(scope="session")
def built(tmp_path_factory) -> tuple[Path, float]:
    """The site of the committed records, and the processor seconds that it took."""
    out = tmp_path_factory.mktemp("site") / "site"
    started = time.process_time()  # of this process alone: others may be at work
    build.write(out, RESULTS, None)
    return out, time.process_time() - started


@pytest.fixture
def site(built) -> Path:
    return built[0]


@pytest.fixture
def reader(browser, site):
    from tests.site.browser import Reader

    one = Reader(browser, site)
    yield one
    one.context.close()
    assert not one.troubles


@pytest.fixture
def screenshot(request):
    """Keeps what a page looks like, by the name of the test."""

    def keep(page, name: str = "") -> None:
        SCREENSHOTS.mkdir(exist_ok=True)
        page.screenshot(path=SCREENSHOTS / f"{request.node.name}{name and '-' + name}.png")

    return keep
