"""The time in which `mcpspy mcp` answers about two captures of 1 GB that have indexes.

    python -m benchmarks.agent
    python -m benchmarks.agent --messages 1000000 --rounds 5

The captures are those of `benchmarks.index`; in the second, one answer differs and one call is more. Each question is asked of a
source of its own, in this process, after a first one that imports what is needed. The figures are the least of the rounds, in seconds
by the clock and of the processor.
"""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from benchmarks.index import STDIO_MESSAGES, timed, write_all
from benchmarks.reader import frames, opened
from mcpspy.agent.fence import Fence
from mcpspy.agent.resources import resource_text
from mcpspy.agent.tools import report
from mcpspy.cli.web.agent_captures import StoredCaptures
from mcpspy.records import Frame, Record

TARGET_S = 0.5
"""By the clock, on a machine that is otherwise idle."""

NAMES = ("before", "after")
DAY_NS = 86_400 * 10**9

CALLS = {
    "recordings": ("recordings", {}),
    "timeline": ("timeline", {"what": "after"}),
    "timeline, far down": ("timeline", {"what": "after", "cursor": "400000"}),
    "timeline of a filter": ("timeline", {"what": "after", "filter": "tool:nothing"}),
    "row": ("row", {"what": "after:77777"}),
    "findings": ("findings", {"what": "after"}),
    "compare": ("compare", {"before": "before", "after": "after"}),
    "compare some rows": ("compare", {"before": "before:1..500", "after": "after:1..500"}),
}


def other_records(records: Iterator[Record], messages: int) -> Iterator[Record]:
    """Change one answer in the middle, and add a call in the middle of the second half."""
    for number, record in enumerate(records):
        if isinstance(record, Frame) and number == messages // 2 // 2 * 2 + 1:
            changed = record.data.replace(b'"text":"', b'"text":"other ', 1)
            record = Frame(record.stream, record.at_ns, record.at_ns, changed)  # noqa: PLW2901 - the changed one
        yield record
        if number == messages * 3 // 4 // 2 * 2 + 1:
            yield Frame(0, record.at_ns, record.at_ns, b'{"jsonrpc":"2.0","id":"more","method":"ping"}\n')
            yield Frame(1, record.at_ns, record.at_ns, b'{"jsonrpc":"2.0","id":"more","result":{}}\n')


def least(ask: Callable[[], object], rounds: int) -> tuple[float, float]:
    """Return the least seconds by the clock, and of the processor."""
    taken: list[tuple[float, float]] = []
    for _ in range(rounds):
        clock_s, processor_s = time.perf_counter(), time.process_time()
        ask()
        taken.append((time.perf_counter() - clock_s, time.process_time() - processor_s))
    return min(clock_s for clock_s, _ in taken), min(processor_s for _, processor_s in taken)


def main(arguments: list[str] | None = None) -> int:
    """Make the captures and their indexes, ask, and print a line for each figure. Return 1 where the target is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=STDIO_MESSAGES)
    parser.add_argument("--rounds", type=int, default=5)
    chosen = parser.parse_args(arguments)
    messages, fence = chosen.messages, Fence("benchmark")
    with tempfile.TemporaryDirectory() as home:
        os.environ["MCPSPY_HOME"] = home
        folder = Path(home) / "captures"
        folder.mkdir(mode=0o700)
        for number, name in enumerate(NAMES, 1):
            path = folder / f"{name}.mcpspy"
            writer, records = opened(path, wall_ns=number * DAY_NS), iter(frames(messages))
            write_all(writer, records if name == NAMES[0] else other_records(records, messages))
            writer.close(messages * 1_000_000)
            clock_s, processor_s = timed(("show", f"{path}:7"))
            print(
                f"{path.stat().st_size / 1e6:,.0f} MB; read and indexed in {clock_s:.1f} s, processor {processor_s:.1f} s",
                flush=True,
            )
            print(f"index {path.with_name(f'{path.name}.idx').stat().st_size / 1e6:,.0f} MB")

        def source() -> StoredCaptures:
            return StoredCaptures(tuple(str(folder / f"{name}.mcpspy") for name in NAMES))

        asks: dict[str, Callable[[], object]] = {}
        for name, (tool, given) in CALLS.items():
            named = {key: _named(folder, value) for key, value in given.items()}
            asks[name] = partial(_ask, source, fence, tool, named)
        (newest, *_) = StoredCaptures(()).recordings()
        for kind in ("numbers", "diagram"):
            asks[kind] = partial(_read, f"mcpspy://recording/{newest.id}/{kind}", fence)
        figures = {name: least(ask, chosen.rounds) for name, ask in asks.items()}
    for name, (clock_s, processor_s) in figures.items():
        print(f"{name:24} {clock_s:6.2f} s, processor {processor_s:6.2f} s")
    return int(any(clock_s > TARGET_S for clock_s, _ in figures.values()))


def _ask(source: Callable[[], StoredCaptures], fence: Fence, tool: str, arguments: dict[str, str]) -> None:
    report(source(), fence, tool, arguments)


def _read(uri: str, fence: Fence) -> None:
    resource_text(StoredCaptures(()), uri, fence)


def _named(folder: Path, value: str) -> str:
    """Name a capture by its path."""
    name, colon, rows = value.partition(":")
    return f"{folder / name}.mcpspy{colon}{rows}" if name in NAMES else value


if __name__ == "__main__":
    sys.exit(main())
