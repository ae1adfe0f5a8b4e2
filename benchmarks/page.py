"""Time from opening an exported page in Chromium to the first frame with rows, and to the frame with all of them.

python -m benchmarks.page [ROWS]…     sessions of so many calls on stdio; needs Playwright and Chromium
"""

import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.export import on_stdio, record

ROWS = [10_000, 100_000]
RUNS = 5
ROW_PIXELS = 26

FRAME = """(height) => new Promise((resolve) => {
  const look = () => {
    const all = parseFloat(document.querySelector("#space")?.style.height) >= height;
    if (document.querySelector(".line") && all) requestAnimationFrame(() => setTimeout(() => resolve(performance.now())));
    else requestAnimationFrame(look);
  };
  look();
})"""


def opened(browser: Any, path: Path, rows: int) -> tuple[float, float]:
    """Open the page once. Returns when the first rows were on the screen, and when all were in the list, in ms."""
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    page = context.new_page()
    page.goto(f"file://{path}", wait_until="commit")
    first_ms, all_ms = page.evaluate(FRAME, 0), page.evaluate(FRAME, rows * ROW_PIXELS)
    context.close()
    return first_ms, all_ms


def main(sizes: list[int]) -> None:
    """Measure each size."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"])
        for rows in sizes:
            capture, path = Path(folder) / f"{rows}.mcpspy", Path(folder) / f"{rows}.html"
            record(capture, {"transport": "stdio"}, on_stdio(rows), rows * 1_000_000)
            subprocess.run([sys.executable, "-m", "mcpspy", "export", "html", str(capture), "-o", str(path)], check=True)
            times = zip(*(opened(browser, path, rows) for _ in range(RUNS)), strict=True)
            words = [f"{min(some):.0f} ms at best, {statistics.median(some):.0f} ms usually" for some in times]
            size_mb = path.stat().st_size / 1e6
            print(f"{rows:,} calls, {size_mb:.0f} MB: first rows after {words[0]}; all rows after {words[1]}", flush=True)
        browser.close()


if __name__ == "__main__":
    main([int(word) for word in sys.argv[1:]] or ROWS)
