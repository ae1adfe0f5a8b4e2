"""Time that a filter takes for each message of a transcript in memory, without the time to read and pair them.

    python -m benchmarks.filters
    python -m benchmarks.filters --messages 100000 'tool:search* dur>2s'

The messages are those of `shapes`: calls of a tool and their results in turn. Times are of the processor, the best
of so many rounds; each filter is held against every row.
"""

import argparse
import time
from typing import NamedTuple

from benchmarks.shapes import frames
from mcpspy.records import CLIENT, SERVER, Header, Open
from mcpspy.transcript.filter.filter import FilterMatcher, filter_of
from mcpspy.transcript.model import Transcript
from mcpspy.transcript.transcribe import Transcriber

FILTERS = (
    "method:tools/call dur>2s",
    "tool:se*ch status:error",
    "kind:result bytes>1kb",
    "not kind:progress",
    "after:12:00",
    "server:x* or client:y*",
    '"needle"',
)
MICROSECONDS = 1e6


class Cost(NamedTuple):
    """Time for each message, and number of rows that matched."""

    us: float
    rows: int


def transcript(messages: int) -> Transcript:
    """Make a transcript of so many messages on stdio, paired."""
    transcriber = Transcriber()
    tapped = {"transport": "stdio", "argv": ["server"]}
    transcriber.feed(Header(capture_id="bench", wall_ns=0, monotonic_ns=0, pid=1, tapped=tapped))
    for stream, (sender, name) in enumerate(((CLIENT, "stdin"), (SERVER, "stdout"))):
        transcriber.feed(Open(at_ns=0, stream=stream, sender=sender, name=name))
    for frame in frames(messages):
        transcriber.feed(frame)
    return transcriber.transcript


def cost(expression: str, on: Transcript, rounds: int) -> Cost:
    """Measure the best of so many rounds."""
    wanted = filter_of([expression])
    assert wanted is not None
    best_s, rows = float("inf"), 0
    for _ in range(rounds):
        matches = FilterMatcher(wanted, on).matches
        began_s = time.process_time()
        rows = sum(1 for row in on.rows if matches(row))
        best_s = min(best_s, time.process_time() - began_s)
    return Cost(best_s * MICROSECONDS / on.captures[0].messages, rows)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("filters", nargs="*", default=FILTERS)
    chosen = parser.parse_args()
    on = transcript(chosen.messages)
    print(f"{'filter':32} {'µs a message':>12} {'rows':>9}")
    for expression in chosen.filters:
        us, rows = cost(expression, on, chosen.rounds)
        print(f"{expression:32} {us:12.2f} {rows:9,}")


if __name__ == "__main__":
    main()
