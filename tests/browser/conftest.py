"""A real browser: Debian's Chromium, driven by Playwright, with nothing that it would fetch by itself."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from docs.draw import CALM
from tests.conftest import DebianProgram


class Looking:
    """A page in the browser, and all that it did besides: what it asked for, what it complained about, what it popped up."""

    def __init__(self, page: object) -> None:
        from playwright.sync_api import Page

        assert isinstance(page, Page)
        self.page = page
        self.requests: list[str] = []
        self.complaints: list[str] = []
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("console", lambda message: self.complaints.append(message.text))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("dialog", lambda dialog: self.complaints.append(f"dialog: {dialog.message}"))

    def open(self, path: Path, look: str = "") -> "Looking":
        """Open a file, with what to look at behind `#`."""
        return self.at(f"file://{path}{look}")

    def at(self, url: str) -> "Looking":
        """Open a page, and wait until its script is done."""
        self.page.goto(url)
        self.page.locator("html[data-ready]").wait_for(state="attached")
        return self


Look = Callable[..., Looking]


@pytest.fixture
def look(debian_program: DebianProgram) -> Iterator[Look]:
    """`look(width=…, java_script_enabled=…)` is a new page of the browser; the words are those of Playwright's `new_context`."""
    program = debian_program("chromium")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=CALM)

        def new(width: int = 1280, height: int = 800, **more: object) -> Looking:
            context = browser.new_context(viewport={"width": width, "height": height}, **more)  # type: ignore[arg-type]
            return Looking(context.new_page())

        yield new
        browser.close()
