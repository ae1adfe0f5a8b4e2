"""The time to look at a large capture: its first screen, one row, the rows of a filter.

    python -m benchmarks.large
    python -m benchmarks.large --http
    python -m benchmarks.large --sse --messages 375000
    python -m benchmarks.large --messages 100000 --rounds 5

The capture is the one of `benchmarks.reader`, in a store of its own: 310 bytes a message. With `--http` it is one of Streamable HTTP:
calls in one session, each answered by one event, 800 bytes a message. With `--sse` it is one of HTTP+SSE: calls that are answered on
one stream. Each command is a process; the figures are the least of the rounds, in seconds by the clock and of the processor. The
first screen is 24 lines on a terminal.
"""

import argparse
import json
import os
import pty
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from benchmarks.reader import frames, opened, request, result
from mcpspy.capture.file.format import header_line
from mcpspy.capture.file.writer import Writer
from mcpspy.platform.files import lock
from mcpspy.records import CLIENT, SERVER, Close, Frame, Header, Open, Record

MCPSPY = (sys.executable, "-m", "mcpspy")
SCREEN_LINES = 24
NAME = "bench"

TARGETS_S = {"first screen": 0.5}
"""Targets by the clock, on a machine that is otherwise idle."""


SESSION_FIELD = b"Mcp-Session-Id: 8b0c\r\n"
REQUEST_HEAD = (
    b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:7777\r\nAccept: application/json, text/event-stream\r\nContent-Type: application/json\r\n"
    b"Mcp-Session-Id: 8b0c\r\nMcp-Protocol-Version: 2025-11-25\r\nContent-Length: 199\r\n\r\n"
)
RESPONSE_HEAD = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-cache, no-transform\r\n"
    b"Mcp-Session-Id: 8b0c\r\nTransfer-Encoding: chunked\r\n\r\n"
)

COMMANDS = {
    "one row": ("show", f"{NAME}:7"),
    "filter": ("show", NAME, "-F", "method:tools/call dur>2s"),
    "list": ("list",),
}

ACCEPTED_HEAD = b"HTTP/1.1 202 Accepted\r\nContent-Type: text/plain\r\nContent-Length: 8\r\n\r\n"
ENDPOINT = b"/messages/?session_id=8b0c"


def opened_http(path: Path, *, is_old: bool = False) -> Writer:
    """Open a writer to a new capture of Streamable HTTP, or if it `is_old` of HTTP+SSE, with the beginning of a session."""
    tapped = {"transport": "http", "url": "http://127.0.0.1:3001/mcp", "listen": "http://127.0.0.1:7777"}
    header = Header(capture_id="bench", wall_ns=0, monotonic_ns=0, pid=1, tapped=tapped)
    writer = Writer(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o600), header_line(header))
    params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
    agreed = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "bench", "version": "1"}}
    asked = {"jsonrpc": "2.0", "id": "first", "method": "initialize", "params": params}
    answer = {"jsonrpc": "2.0", "id": "first", "result": agreed}
    records = [*opened_stream()] if is_old else []
    for record in (*records, *(posted if is_old else transaction)(0, json.dumps(asked).encode(), json.dumps(answer).encode())):
        writer((record,))
    return writer


def opened_stream() -> Iterator[Record]:
    """Yield the records of the GET that brings the stream of HTTP+SSE, up to its endpoint."""
    carried: dict[str, Any] = {"connection": 1, "transaction": 1}
    head = b"GET /sse HTTP/1.1\r\nHost: 127.0.0.1:7777\r\nAccept: text/event-stream\r\n\r\n"
    yield Open(at_ns=0, stream=1, sender=CLIENT, name="request", framing="body", head=head, **carried)
    yield Close(at_ns=0, stream=1, by=CLIENT, how="eof")
    head = RESPONSE_HEAD.replace(SESSION_FIELD, b"")
    yield Open(at_ns=0, stream=SSE_STREAM, sender=SERVER, name="response", framing="sse", head=head, **carried)
    event = b"event: endpoint\r\ndata: " + ENDPOINT + b"\r\n\r\n"
    yield Frame(SSE_STREAM, 0, 0, event, chunks=(len(event),))


SSE_STREAM = 2


def posted(number: int, asked: bytes, answer: bytes) -> Iterator[Record]:
    """Yield the records of a POST that is answered on the stream of HTTP+SSE."""
    at_ns, stream = number * 2_000_000, 2 * number + 3
    done_ns, event = at_ns + 1_000_000, b"event: message\r\ndata: " + answer + b"\r\n\r\n"
    carried: dict[str, Any] = {"connection": 2, "transaction": number + 2}
    head = REQUEST_HEAD.replace(SESSION_FIELD, b"").replace(b"/mcp", ENDPOINT)
    yield Open(at_ns=at_ns, stream=stream, sender=CLIENT, name="request", framing="body", head=head, **carried)
    yield Frame(stream, at_ns, at_ns, asked)
    yield Close(at_ns=at_ns, stream=stream, by=CLIENT, how="eof")
    yield Open(at_ns=at_ns, stream=stream + 1, sender=SERVER, name="response", framing="body", head=ACCEPTED_HEAD, **carried)
    yield Frame(stream + 1, at_ns, at_ns, b"Accepted")
    yield Close(at_ns=at_ns, stream=stream + 1, by=SERVER, how="eof")
    yield Frame(SSE_STREAM, done_ns, done_ns, event, chunks=(len(event),))


def transaction(number: int, asked: bytes, answer: bytes) -> Iterator[Record]:
    """Yield the records of a POST that is answered by one event."""
    at_ns, stream = number * 2_000_000, 2 * number
    done_ns, event = at_ns + 1_000_000, b"event: message\r\ndata: " + answer + b"\r\n\r\n"
    carried: dict[str, Any] = {"connection": 1, "transaction": number + 1}
    head = REQUEST_HEAD if number else REQUEST_HEAD.replace(SESSION_FIELD, b"")
    yield Open(at_ns=at_ns, stream=stream, sender=CLIENT, name="request", framing="body", head=head, **carried)
    yield Frame(stream, at_ns, at_ns, asked)
    yield Close(at_ns=at_ns, stream=stream, by=CLIENT, how="eof")
    yield Open(at_ns=done_ns, stream=stream + 1, sender=SERVER, name="response", framing="sse", head=RESPONSE_HEAD, **carried)
    yield Frame(stream + 1, done_ns, done_ns, event, chunks=(len(event),))
    yield Close(at_ns=done_ns, stream=stream + 1, by=SERVER, how="eof")


def http_records(messages: int, *, is_old: bool = False) -> Iterator[Record]:
    """Yield the records of calls and their results, a transaction for each."""
    for id in range(1, messages // 2 + 1):
        yield from (posted if is_old else transaction)(id, request(id).rstrip(), result(id).rstrip())


def write_all(writer: Writer, records: Iterator[Record]) -> None:
    """Write records, many at once."""
    while some := tuple(islice(records, 1000)):
        writer(some)


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
        is_http, messages = chosen.http or chosen.sse, chosen.messages
        writer = opened_http(path, is_old=chosen.sse) if is_http else opened(path)
        write_all(writer, http_records(messages, is_old=chosen.sse) if is_http else iter(frames(messages)))
        writer.close(messages * 1_000_000)
        print(f"{messages:,} messages, {path.stat().st_size / 1e6:,.0f} MB")
        taken = {name: min(timed(words) for _ in range(chosen.rounds)) for name, words in COMMANDS.items()}
        taken["first screen"] = min(first_screen() for _ in range(chosen.rounds))
    for name, (clock_s, processor_s) in taken.items():
        target = f" (target: at most {TARGETS_S[name]} s)" if name in TARGETS_S else ""
        print(f"{name:26} {clock_s:6.2f} s, processor {processor_s:6.2f} s{target}")
    return int(any(taken[name][0] > target_s for name, target_s in TARGETS_S.items()))


if __name__ == "__main__":
    sys.exit(main())
