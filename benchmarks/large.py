"""The time to look at a large capture: its first screen, one row, the rows of a filter.

    python -m benchmarks.large
    python -m benchmarks.large --http
    python -m benchmarks.large --sse --messages 375000
    python -m benchmarks.large --messages 100000 --rounds 5

The capture is one of `benchmarks.shapes`, in a store of its own: 310 bytes a message. With `--http` it is one of Streamable HTTP:
calls in one session, each answered by one event, 800 bytes a message. With `--sse` it is one of HTTP+SSE: calls that are answered on
one stream. Each command is a process; the figures are the least of the rounds, in seconds by the clock and of the processor. The
first screen is 24 lines on a terminal.
"""

import argparse
import os
import pty
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.shapes import SHAPES
from mcpspy.platform.files import lock

MCPSPY = (sys.executable, "-m", "mcpspy")
SCREEN_LINES = 24
NAME = "bench"

TARGETS_S = {"first screen": 0.5}
"""Targets by the clock, on a machine that is otherwise idle."""


COMMANDS = {
    "one row": ("show", f"{NAME}:7"),
    "filter": ("show", NAME, "-F", "method:tools/call dur>2s"),
    "list": ("list",),
}


def lock_path(path: Path) -> None:
    """Hold the lock of a capture until this process ends, as the tap does that records it."""
    lock(os.open(path, os.O_RDONLY))


def timed(words: Sequence[str]) -> tuple[float, float]:
    """Run a command to its end. Return its seconds by the clock and of the processor."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    subprocess.run([*MCPSPY, *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    took = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return took, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def first_screen() -> tuple[float, float]:
    """Show the capture on a terminal until a screen is full, and end it. Return the same, of which the second includes the end."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    parent, child = pty.openpty()
    start = time.perf_counter()
    process = subprocess.Popen([*MCPSPY, "show", NAME], stdin=child, stdout=child, stderr=child)
    os.close(child)
    lines = 0
    while lines < SCREEN_LINES:
        lines += os.read(parent, 1 << 16).count(b"\n")
    took = time.perf_counter() - start
    process.kill()
    process.wait()
    os.close(parent)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return took, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main(arguments: list[str] | None = None) -> int:
    """Make the capture, measure, and print a line for each figure. Return 1 where a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--http", action="store_true")
    parser.add_argument("--sse", action="store_true")
    parser.add_argument("--messages", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    chosen = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as home:
        os.environ["MCPSPY_HOME"] = home
        path = Path(home) / "captures" / f"{NAME}.mcpspy"
        path.parent.mkdir(mode=0o700)
        messages = chosen.messages
        SHAPES["POSTs, events" if chosen.http else "HTTP+SSE" if chosen.sse else "in turn"](path, messages)
        print(f"{messages:,} messages, {path.stat().st_size / 1e6:,.0f} MB")
        taken = {name: min(timed(words) for _ in range(chosen.rounds)) for name, words in COMMANDS.items()}
        taken["first screen"] = min(first_screen() for _ in range(chosen.rounds))
    for name, (clock_s, processor_s) in taken.items():
        target = f" (target: at most {TARGETS_S[name]} s)" if name in TARGETS_S else ""
        print(f"{name:26} {clock_s:6.2f} s, processor {processor_s:6.2f} s{target}")
    return int(any(taken[name][0] > target_s for name, target_s in TARGETS_S.items()))


if __name__ == "__main__":
    sys.exit(main())
