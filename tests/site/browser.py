"""A real browser on the pages, opened from the disk; what it complains about or fetches is kept."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, sync_playwright

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
SERIOUS = ("serious", "critical")


@contextmanager
def chromium() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()


class Reader:
    """One reader's window on a site below ``root``; ``troubles`` are errors of the pages and requests that left them."""

    def __init__(self, browser: Browser, root: Path, width: int = 1400, height: int = 900, scheme: str = "light"):
        self.root, self.troubles, self.sizes = root, [], {}
        self.context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
        self.context.grant_permissions(["clipboard-read", "clipboard-write"])
        self.page: Page = self.context.new_page()
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

    def open(self, href: str) -> Page:
        # Chromium takes a new fragment for the same page
        self.page.goto("about:blank")
        self.sizes.clear()
        self.page.goto(f"file://{self.root}/{href}")
        return self.page

    def faults(self) -> list[str]:
        """What axe-core finds serious on the page as it is shown now; from a disk it may not load style sheets anew."""
        found = Axe().run(self.page, options={"preload": False}).response["violations"]
        return [
            f"{one['id']}: {node['target']} {node.get('failureSummary', '')}"
            for one in found
            if one["impact"] in SERIOUS
            for node in one["nodes"][:3]
        ]
