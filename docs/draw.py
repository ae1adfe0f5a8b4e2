"""Draws the pictures of README and docs anew, from the captures in captures/.

python -m docs.draw            the diagrams, as SVG
python -m docs.draw --page     the page too, as a browser shows it: needs Chromium and playwright
"""

import shutil
import sys
import tempfile
from pathlib import Path

from mcpspy import read, transcribe
from mcpspy.cli.export_html import page_files
from mcpspy.views.page.page import page
from mcpspy.views.sequence.layout import Drawing, diagram
from mcpspy.views.sequence.svg import svg

HERE = Path(__file__).parent
CAPTURES = HERE.parent / "captures"

DIAGRAMS = {
    "question": Drawing(title="The user is asked in the middle of a call (2026-07-28)"),
    "sse": Drawing(title="HTTP+SSE: one long stream, many short POSTs", is_http_told=True),
}
"""Which captures are drawn, and how."""


def drawn(name: str) -> str:
    """The SVG of one of them."""
    transcript = transcribe(read(CAPTURES / f"{name}.mcpspy"))
    return "\n".join(svg(diagram(transcript, transcript.rows, DIAGRAMS[name]))) + "\n"


def shoot(target: Path) -> None:
    """The page of one of them, as a browser shows it."""
    from playwright.sync_api import sync_playwright

    transcript = transcribe(read(CAPTURES / "streamable.mcpspy"), keeps_frames=True)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        path = Path(folder) / "page.html"
        texts = page(transcript, transcript.rows, page_files(), title="mcpspy", address="captures/streamable.mcpspy")
        path.write_text("".join(texts), encoding="utf-8")
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        view = browser.new_page(viewport={"width": 1200, "height": 640})
        view.goto(f"file://{path}#row=7")
        view.locator("html[data-ready]").wait_for(state="attached")
        view.screenshot(path=target)
        browser.close()


def main() -> None:
    """Write what is asked for."""
    for name in DIAGRAMS:
        (HERE / "images" / f"{name}.svg").write_text(drawn(name), encoding="utf-8")
    if "--page" in sys.argv[1:]:
        shoot(HERE / "images" / "page.png")


if __name__ == "__main__":
    main()
