"""The site of all records, and windows in which a real browser reads it from the disk; what a page complains about is kept."""

import time
from pathlib import Path

import pytest

from rosetta.paths import checkout
from rosetta.site import build

SCREENSHOTS = checkout.root / ".screenshots"  # to be looked at after the tests


class Reader:
    """One reader's window on a site below ``root``; ``troubles`` are errors of the pages and requests that left them."""

    def __init__(self, browser, root: Path, width: int = 1400, height: int = 900, scheme: str = "light"):
        self.root, self.troubles, self.sizes = root, [], {}
        self.context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
        self.context.grant_permissions(["clipboard-read", "clipboard-write"])
        self.page = self.context.new_page()
        self.page.on("console", lambda message: message.type == "error" and self.troubles.append(message.text))
        self.page.on("pageerror", lambda error: self.troubles.append(str(error)))
        self.page.on("request", self._requested)
        self.page.on("requestfailed", self._failed)

    def _requested(self, request) -> None:
        if request.url.startswith("data:"):
            return
        file = Path(request.url.removeprefix("file://").partition("#")[0].partition("?")[0])
        if not request.url.startswith("file://") or not file.is_relative_to(self.root):
            self.troubles.append(f"left the site: {request.url}")
        elif file.is_file():
            self.sizes[file] = file.stat().st_size

    def _failed(self, request) -> None:
        if request.failure != "net::ERR_ABORTED":  # by the reader, who goes on while pictures are still being loaded
            self.troubles.append(f"failed: {request.url}: {request.failure}")

    def open(self, href: str):
        # Chromium takes a new fragment for the same page
        self.page.goto("about:blank")
        self.sizes.clear()
        self.page.goto(f"file://{self.root}/{href}")
        return self.page

    def faults(self) -> list[str]:
        """What axe-core finds serious on the page as it is shown now; from a disk it may not load style sheets anew."""
        from axe_playwright_python.sync_playwright import Axe

        return [
            f"{one['id']}: {node['target']} {node.get('failureSummary', '')}"
            for one in Axe().run(self.page, options={"preload": False}).response["violations"]
            if one["impact"] in ("serious", "critical")
            for node in one["nodes"][:3]
        ]


@pytest.fixture(scope="session")
def built(tmp_path_factory) -> tuple[Path, float]:
    """The site of the committed records, and the processor seconds that it took."""
    out = tmp_path_factory.mktemp("site") / "site"
    started = time.process_time()  # of this process alone: others may be at work
    build.write(out, checkout.results, None)
    return out, time.process_time() - started


@pytest.fixture
def site(built) -> Path:
    return built[0]


@pytest.fixture
def window(browser):
    """Opens windows on a site; in the end nothing may have gone wrong in them."""
    readers = []

    def opened(root: Path, **options) -> Reader:
        readers.append(Reader(browser, root, **options))
        return readers[-1]

    yield opened
    for reader in readers:
        reader.context.close()
        assert not reader.troubles


@pytest.fixture
def reader(window, site) -> Reader:
    return window(site)


@pytest.fixture
def screenshot(request):
    """Keeps what a page looks like, by the name of the test."""

    def keep(page, name: str = "") -> None:
        SCREENSHOTS.mkdir(exist_ok=True)
        page.screenshot(path=SCREENSHOTS / f"{request.node.name}{name and '-' + name}.png")

    return keep
