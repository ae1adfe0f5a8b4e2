"""Draws the pictures of README and docs anew, from the captures in captures/.

python -m docs.draw            the diagrams, as SVG
python -m docs.draw --page     the page too, as a browser shows it: needs Chromium and playwright
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from mcpspy import read, transcribe
from mcpspy.cli.export.formats import page_files
from mcpspy.views.page.page import page
from mcpspy.views.sequence.layout import Drawing, diagram
from mcpspy.views.sequence.svg import svg
from mcpspy.views.timeline.details import Detail

if TYPE_CHECKING:
    from playwright.sync_api import Page

HERE = Path(__file__).parent
CAPTURES = HERE.parent / "captures"

CALM = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip
"""Options of Chromium: run in a container too, and fetch nothing by itself."""

DIAGRAMS = {
    "walkthrough-agent": (
        ["agent-model", "agent-weather"],
        Drawing(title="A user, a client, a model and a server over HTTP+SSE", with_http=True),
    ),
    "walkthrough-tags": (
        ["tags-model", "tags-example-server"],
        Drawing(title="A model that asks for tools in tags", with_http=True),
    ),
    "walkthrough-prompts": (
        ["prompts"],
        Drawing(title="Prompts, on a stream that announces no endpoint", with_http=True, detail=Detail.PARAMS),
    ),
    "walkthrough-logs": (["logs"], Drawing(title="A server on stdio that writes a log", detail=Detail.PARAMS)),
    "walkthrough-channels": (
        ["channels"],
        Drawing(title="Two channels, an answer in parts, and a heartbeat", with_http=True, detail=Detail.PARAMS),
    ),
    "agent": (["agent-model", "agent-weather"], Drawing(title="What does the user wait for? An agent, its model and a server")),
    "question": (["question"], Drawing(title="The user is asked in the middle of a call (2026-07-28)")),
    "sse": (["sse"], Drawing(title="HTTP+SSE: one long stream, many short POSTs", with_http=True)),
}
"""Captures of each picture, and how they are drawn, by the picture's name."""


def drawn(name: str) -> str:
    """Draw the SVG of one of them."""
    captures, drawing = DIAGRAMS[name]
    transcript = transcribe(*(read(CAPTURES / f"{capture}.mcpspy") for capture in captures))
    return "\n".join(svg(diagram(transcript, transcript.rows, drawing))) + "\n"


def shoot(view: Page, folder: Path, target: Path) -> None:
    """Take a picture of a page, which is written into a folder first."""
    transcript = transcribe(read(CAPTURES / "streamable.mcpspy"), keep_frames=True)
    path = folder / "page.html"
    texts = page(transcript, transcript.rows, page_files(), title="mcpspy", addresses=["captures/streamable.mcpspy"])
    path.write_text("".join(texts), encoding="utf-8")
    view.set_viewport_size({"width": 1200, "height": 640})
    view.goto(f"file://{path}#row=7")
    view.locator("html[data-ready]").wait_for(state="attached")
    view.screenshot(path=target)


def shoot_alone(target: Path) -> None:
    """Take it with a browser of its own."""
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=CALM)
        shoot(browser.new_page(), Path(folder), target)
        browser.close()


def main() -> None:
    """Write what is asked for."""
    for name in DIAGRAMS:
        (HERE / "images" / f"{name}.svg").write_text(drawn(name), encoding="utf-8")
    if "--page" in sys.argv[1:]:
        shoot_alone(HERE / "images" / "page.png")


if __name__ == "__main__":
    main()
