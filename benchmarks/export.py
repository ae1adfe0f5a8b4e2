"""Processor time and memory of each format of `mcpspy export`, next to `show --stats` of the same capture.

python -m benchmarks.export [FORMAT]…
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

from mcpspy.capture.file.format import header_line
from mcpspy.capture.file.writer import Writer
from mcpspy.records import CLIENT, SERVER, Close, Frame, Header, Open, Record

FORMATS = ["mermaid", "plantuml", "svg", "text", "html", "jsonl", "markdown"]
OVER_HTTP = ["har", "curl"]
"""Formats of HTTP alone, which are measured on a capture of that."""

SIZES = [10_000, 20_000]
"""So many exchanges, each of a call with some 100 letters and a result with some 300, half of which are JSON or several lines."""

RUNS = 3
WORDS = [
    "the",
    "quick",
    "brown",
    "fox",
    "in",
    "Berlin",
    "it",
    "is",
    "21",
    "degrees",
    "and",
    "temperature",
    "falls",
    "by",
    "1.5",
    "today",
]

REQUEST = (
    b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:8000\r\nContent-Type: application/json\r\nMcp-Session-Id: redacted-0123\r\n\r\n"
)
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: %b\r\n\r\n"


def messages(exchanges: int) -> Iterator[tuple[bytes, bytes]]:
    """Calls with their results, no two alike."""
    chance = Random(12)

    def sentence(count: int) -> str:
        return " ".join(chance.choices(WORDS, k=count))

    for id in range(exchanges):
        arguments = {"name": f"tool_{id % 17}", "arguments": {"text": sentence(20)}, "_meta": {"progressToken": id}}
        items = {"items": [{"id": number, "title": sentence(4), "at": "2026-11-21T08:00:00Z"} for number in range(4)]}
        text = (sentence(60), json.dumps(items), sentence(60), "\n".join(sentence(6) for _ in range(10)))[id % 4]
        result = {"content": [{"type": "text", "text": text}]}
        yield _line(id, method="tools/call", params=arguments), _line(id, result=result)


def _line(id: int, **members: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": id, **members}).encode() + b"\n"


def on_stdio(exchanges: int) -> Iterator[list[Record]]:
    """Yield the records of one session, with a call each millisecond."""
    yield [Open(at_ns=0, stream=0, sender=CLIENT, name="stdin"), Open(at_ns=0, stream=1, sender=SERVER, name="stdout")]
    for number, pair in enumerate(messages(exchanges)):
        for stream, data in enumerate(pair):
            at_ns = (2 * number + stream) * 500_000
            yield [Frame(stream, at_ns, at_ns, data)]


def over_http(exchanges: int) -> Iterator[list[Record]]:
    """Yield the same over HTTP, a POST each, answered in turns by JSON and by an event."""
    for number, (call, result) in enumerate(messages(exchanges)):
        at_ns, stream = number * 1_000_000, 2 * number
        is_event = number % 2 == 1
        opened: dict[str, Any] = {"connection": 1, "transaction": number + 1}
        yield [
            Open(at_ns=at_ns, stream=stream, sender=CLIENT, name="request", framing="body", head=REQUEST, **opened),
            Frame(stream, at_ns, at_ns, call.strip()),
            Close(at_ns=at_ns, stream=stream, by="client", how="eof"),
        ]
        at_ns += 500_000
        head = ANSWER % (b"text/event-stream" if is_event else b"application/json")
        body = b"event: message\ndata: %b\n\n" % result.strip() if is_event else result.strip()
        framing: Any = "sse" if is_event else "body"
        yield [
            Open(at_ns=at_ns, stream=stream + 1, sender=SERVER, name="response", framing=framing, head=head, **opened),
            Frame(stream + 1, at_ns, at_ns, body),
            Close(at_ns=at_ns, stream=stream + 1, by="server", how="eof"),
        ]


def record(
    path: Path,
    tapped: dict[str, Any],
    records: Iterator[list[Record]],
    last_ns: int,
    *,
    capture_id: str = "big",
    wall_ns: int = 0,
) -> None:
    """Write a capture of these records."""
    header = Header(capture_id=capture_id, wall_ns=wall_ns, monotonic_ns=0, pid=1, label="big", tapped=tapped)
    fd = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
    writer = Writer(fd, header_line(header))
    for some in records:
        writer(some)
    writer.close(last_ns)


def cost(*words: str) -> tuple[float, float]:
    """Measure the least processor time of a few runs, in seconds, and the memory of the last, in MB."""
    least, peak_kb = float("inf"), 0
    for _ in range(RUNS):
        command = [sys.executable, "-m", "mcpspy", *words]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise SystemExit(f"{' '.join(words)} exited {process.returncode}")
        least, peak_kb = min(least, used.ru_utime + used.ru_stime), used.ru_maxrss
    return least, peak_kb / 1000


def measure(path: Path, formats: list[str]) -> None:
    """Print a line for each format."""
    if not formats:
        return
    least_s, peak_mb = cost("show", "--stats", str(path))
    print(f"{path.stem}: show --stats takes {least_s:.2f} s, {peak_mb:.0f} MB")
    for format in formats:
        took_s, peak_mb = cost("export", format, str(path))
        print(f"  {format:<9} {took_s:5.2f} s  {took_s / least_s:4.1f} ×  {peak_mb:4.0f} MB", flush=True)


def main(formats: list[str]) -> None:
    """Measure each size, on both transports."""
    with tempfile.TemporaryDirectory() as folder:
        for size in SIZES:
            path = Path(folder) / f"{size} exchanges on stdio.mcpspy"
            record(path, {"transport": "stdio", "argv": ["big"]}, on_stdio(size), size * 1_000_000)
            measure(path, [name for name in formats if name not in OVER_HTTP])
            path = Path(folder) / f"{size} exchanges over HTTP.mcpspy"
            tapped = {"transport": "http", "url": "http://127.0.0.1:9000/mcp", "listen": "http://127.0.0.1:8000"}
            record(path, tapped, over_http(size), size * 1_000_000)
            measure(path, [name for name in formats if name in OVER_HTTP])


if __name__ == "__main__":
    main(sys.argv[1:] or [*FORMATS, *OVER_HTTP])
