"""Captures for tests: written by the writer itself, with the facts that a test needs."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from mcpspy.capture.file.format import header_line
from mcpspy.capture.file.writer import Writer
from mcpspy.capture.store.folder import captures_folder
from mcpspy.records import CLIENT, SERVER, Close, Exit, Frame, Gap, Header, Note, Open, Record, Spawn

SECOND_NS = 1_000_000_000
WALL_NS = 1_795_214_221 * SECOND_NS  # 2026-11-20T22:37:01Z
REQUEST = b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n'
RESPONSE = b'{"jsonrpc":"2.0","id":1,"result":{}}\n'


def header(**facts: Any) -> Header:
    """Make a header with all members."""
    known: dict[str, Any] = {
        "capture_id": "0123456789abcdef",
        "wall_ns": WALL_NS,
        "monotonic_ns": 5 * SECOND_NS,
        "boot_id": "boot",
        "pid": 12,
        "start": 3,
        "parent": {"pid": 11, "name": "client", "start": 2},
        "cwd": "/home/me",
        "tapped": {"transport": "stdio", "argv": ["server"], "env": ["HOME", "PATH"]},
        "label": "weather",
        "mcpspy_version": "0.1.0",
    }
    return Header(**{**known, **facts})


def opens() -> list[Record]:
    """Return the first records of every stdio capture."""
    return [
        Spawn(at_ns=1, pid=13, start=4),
        Open(at_ns=1, stream=0, sender=CLIENT, name="stdin"),
        Open(at_ns=1, stream=1, sender=SERVER, name="stdout"),
        Open(at_ns=1, stream=2, sender=SERVER, name="stderr"),
    ]


def talk() -> list[Record]:
    """Return a request and its response, with a line on stderr between them."""
    return [Frame(0, 1_000, 1_000, REQUEST), Frame(2, 2_000, 2_000, b"hm\n"), Frame(1, 3_000, 2_500, RESPONSE)]


def closes(at_ns: int = 4_000) -> list[Record]:
    """Return the last records of a stdio capture."""
    return [Close(at_ns=at_ns, stream=0, by="client", how="eof"), Exit(at_ns=at_ns, pid=13, code=0)]


def lines(records: Iterable[Record], *, end_ns: int | None = 5_000, of: Header | None = None, max_bytes: int = 0) -> bytes:
    """Write a capture that holds `records`, with an `end` record unless `end_ns` is None."""
    reading, writing = os.pipe()
    writer = Writer(writing, header_line(of or header()), max_bytes=max_bytes)
    written = bytearray()
    for record in (None, *records):
        writer(() if record is None else (record,))
        written += os.read(reading, 1 << 16)
    if end_ns is None:
        os.close(writing)
    else:
        writer.close(end_ns)
        written += os.read(reading, 1 << 16)
    os.close(reading)
    return bytes(written)


def stored(
    name: str,
    *,
    begin_s: float = 0,
    lasted_s: float = 1,
    messages: int = 1,
    ended: bool = True,
    gap: bool = False,
    more: Iterable[Record] = (),
    **facts: Any,
) -> str:
    """Put a capture into the store that began at second `begin_s`. Return its path."""
    begin_ns, lasted_ns = int(begin_s * SECOND_NS), int(lasted_s * SECOND_NS)
    known = {"wall_ns": WALL_NS + begin_ns, "monotonic_ns": 7 * SECOND_NS + begin_ns, "capture_id": name, "label": name}
    made = header(**{**known, **facts})
    records = [*opens(), Frame(2, 2, 2, b"up\n"), *(Frame(0, 3, 3, REQUEST) for _ in range(messages)), *more]
    if gap:
        records.append(Gap(at_ns=4, since_ns=3, frames=1, bytes=2, why="No space left on device"))
    records.append(Note(at_ns=lasted_ns, topic="test", text="the last one"))
    path = Path(captures_folder()) / f"{name}.mcpspy"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(lines(records, of=made, end_ns=lasted_ns if ended else None))
    return str(path)
