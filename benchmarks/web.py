"""Delay of `mcpspy web`: from the moment when the client has an answer to the row in a browser's DOM.

python -m benchmarks.web [ROWS]…     so many calls are there before; needs Playwright and Chromium
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

ROWS = [0, 1_000, 10_000]
CALLS = 60
EVERY_MS = 173
"""Neither a multiple of the server's turns nor a part of one."""

SETTLE_MS = 5_000
MCPSPY = [sys.executable, "-m", "mcpspy"]

SERVER = """
import sys
for line in sys.stdin.buffer:
    id = line.split(b'"id":', 1)[1].split(b",", 1)[0]
    sys.stdout.buffer.write(b'{"jsonrpc":"2.0","id":' + id + b',"result":{"content":[]}}\\n')
    sys.stdout.buffer.flush()
"""

WATCH = """() => {
  window.seen = {};
  new MutationObserver(() => {
    const now = performance.timeOrigin + performance.now();
    for (const line of document.querySelectorAll(".line")) {
      const found = /new-(\\d+)/.exec(line.textContent);
      if (found && line.textContent.includes("ok")) window.seen[found[1]] ??= now;
    }
  }).observe(document.querySelector("#space"), { childList: true });
  document.querySelector("#scroll").scrollTop = 1e9;
}"""


class Session:
    """A client that speaks to a server through a tap."""

    def __init__(self) -> None:
        self._tap = subprocess.Popen(
            [*MCPSPY, "run", "--", sys.executable, "-c", SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self._last = 0

    def call(self, name: str) -> tuple[int, float]:
        """Call a tool. Returns the number of the call, and when its answer was there, in ms of Unix time."""
        self._last += 1
        line = b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"%s-%d"}}\n' % (
            self._last,
            name.encode(),
            self._last,
        )
        assert self._tap.stdin is not None
        assert self._tap.stdout is not None
        self._tap.stdin.write(line)
        self._tap.stdin.flush()
        self._tap.stdout.readline()
        return self._last, time.time() * 1000

    def close(self) -> None:
        """Disconnect the client."""
        self._tap.communicate(timeout=10)


@contextmanager
def served() -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """A `mcpspy web`: its URL and its process."""
    process = subprocess.Popen([*MCPSPY, "web", "--port", "0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert process.stdout is not None
        yield process.stdout.readline().strip(), process
    finally:
        process.terminate()
        process.wait(10)


def spent_s(pid: int) -> float:
    """Return the processor time of a process so far."""
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(page: Any, rows: int) -> None:
    """Print a line for calls that come when so many have been."""
    session = Session()
    for _ in range(max(rows, 1)):
        session.call("old")
    with served() as (url, process):
        page.goto(url)
        page.locator(".line").first.wait_for()
        page.wait_for_timeout(SETTLE_MS)
        page.evaluate(WATCH)
        before_s, begin_s = spent_s(process.pid), time.monotonic()
        sent = {}
        for _ in range(CALLS):
            number, at_ms = session.call("new")
            sent[str(number)] = at_ms
            page.wait_for_timeout(EVERY_MS)
        busy_ms = 1000 * (spent_s(process.pid) - before_s) / (time.monotonic() - begin_s)
        page.wait_for_timeout(1_000)
        seen = page.evaluate("window.seen")
        before_s = spent_s(process.pid)
        page.wait_for_timeout(SETTLE_MS)
        idle_ms = 1000 * (spent_s(process.pid) - before_s) / (SETTLE_MS / 1000)
    session.close()
    late_ms = sorted(seen[number] - at_ms for number, at_ms in sent.items() if number in seen)
    print(
        f"{rows:>6} calls before: {len(late_ms)} of {CALLS} seen, p50 {statistics.median(late_ms):.0f} ms, worst {late_ms[-1]:.0f} ms"
    )
    print(f"       processor time a second: {busy_ms:.0f} ms; {idle_ms:.0f} ms when nothing happens", flush=True)


def main(sizes: list[int]) -> None:
    """Measure each size, in a store of its own."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox", "--disable-gpu"])
        for size in sizes:
            with tempfile.TemporaryDirectory() as home:
                os.environ["MCPSPY_HOME"] = home
                context = browser.new_context(viewport={"width": 1280, "height": 800})
                measure(context.new_page(), size)
                context.close()
        browser.close()


if __name__ == "__main__":
    main([int(word) for word in sys.argv[1:]] or ROWS)
