"""The import of a packet capture: MB for each second of processor time, and peak memory.

    python -m benchmarks.packets                 120 MB of each scene
    python -m benchmarks.packets --bytes 1000000000 --scenes json1k

A scene is HTTP from 16 clients with connections that are kept, in packets of 1448 bytes with an acknowledgement for each message:
`json` answers in JSON, `sse` with one event in a chunk, of 200 bytes, 1 kB or 100 kB; in `mixed`, one of four has 20 kB.
"""

import argparse
import json
import os
import struct
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from random import Random

from benchmarks.report import table

SEGMENT_BYTES = 1448
CALLS_OF_CONNECTION = 500
CLIENTS = 16
SCENES: dict[str, tuple[str, tuple[int, ...]]] = {
    "json200": ("json", (200,)),
    "json1k": ("json", (1_000,)),
    "json100k": ("json", (100_000,)),
    "sse1k": ("sse", (1_000,)),
    "mixed": ("json", (1_000, 1_000, 1_000, 20_000)),
}
"""The kind of its answers, and their sizes in turn."""

SYN, PUSH_ACK, ACK, SYN_ACK, FIN_ACK = 2, 24, 16, 18, 17
OPTIONS = b"\1\1\10\12" + bytes(8)  # a time stamp, as nearly all TCP has
HEAD = struct.Struct("<IIII12sHBBHHHBBH4s4sHHIIBBHHH")
REQUEST = (
    "POST /mcp HTTP/1.1\r\nHost: 10.0.0.2:8000\r\nAccept: application/json, text/event-stream\r\nAccept-Encoding: gzip, deflate\r\n"
    "Connection: keep-alive\r\nUser-Agent: python-httpx/0.28.1\r\nmcp-session-id: {session}\r\nmcp-protocol-version: 2025-06-18\r\n"
    "Content-Length: {size}\r\nContent-Type: application/json\r\n\r\n"
)
JSON_HEAD = (
    "HTTP/1.1 200 OK\r\ndate: Fri, 27 Nov 2026 12:00:00 GMT\r\nserver: uvicorn\r\ncontent-type: application/json\r\n"
    "mcp-session-id: {session}\r\ncontent-length: {size}\r\n\r\n"
)
SSE_HEAD = (
    "HTTP/1.1 200 OK\r\ndate: Fri, 27 Nov 2026 12:00:00 GMT\r\nserver: uvicorn\r\ncache-control: no-cache, no-transform\r\n"
    "content-type: text/event-stream\r\nmcp-session-id: {session}\r\nTransfer-Encoding: chunked\r\n\r\n"
)


class Connection:
    """The packets of one connection, in its client's words."""

    def __init__(self, client: int, port: int) -> None:
        self._ends = {True: (b"\n\0\0\1", b"\n\0\0\2", port, 8000), False: (b"\n\0\0\2", b"\n\0\0\1", 8000, port)}
        self._sent = {True: 1000, False: 5000}
        self.session = f"{client:032x}"

    def packet(self, at_us: int, *, is_client: bool, flags: int, payload: bytes = b"") -> bytes:
        """Return the record of one packet."""
        source, target, sender, receiver = self._ends[is_client]
        size = 66 + len(payload)
        head = HEAD.pack(
            at_us // 1_000_000, at_us % 1_000_000, size, size, b"\2" * 12, 0x0008, 0x45, 0, _swapped(size - 14), 0, 0, 64, 6, 0,
            source, target, _swapped(sender), _swapped(receiver), _swapped4(self._sent[is_client]),
            _swapped4(self._sent[not is_client]), 8 << 4, flags, 0xFFFF, 0, 0,
        )  # fmt: skip
        self._sent[is_client] += len(payload) + bool(flags & 3)
        return head + OPTIONS + payload

    def say(self, at_us: int, data: bytes, *, is_client: bool) -> Iterator[bytes]:
        """Yield the packets of one message, and its acknowledgement."""
        for begin in range(0, len(data), SEGMENT_BYTES):
            yield self.packet(at_us, is_client=is_client, flags=PUSH_ACK, payload=data[begin : begin + SEGMENT_BYTES])
        yield self.packet(at_us + 20, is_client=not is_client, flags=ACK)


def _swapped(number: int) -> int:
    return int.from_bytes(number.to_bytes(2, "big"), "little")


def _swapped4(number: int) -> int:
    return int.from_bytes((number % (1 << 32)).to_bytes(4, "big"), "little")


def packets(scene: str) -> Iterator[bytes]:
    """Yield the packets of a scene, without end."""
    kind, sizes = SCENES[scene]
    random, at_us, call = Random(7), 1_745_130_721_000_000, 0
    words = "".join(random.choice('abcdefgh ijklm\u00e9\u676d"\n') for _ in range(200_000))
    connections: dict[int, Connection] = {}
    while True:
        call += 1
        client = call % CLIENTS
        if call // CLIENTS % CALLS_OF_CONNECTION == 0 or client not in connections:
            if client in connections:
                yield connections[client].packet(at_us, is_client=True, flags=FIN_ACK)
                yield connections[client].packet(at_us, is_client=False, flags=FIN_ACK)
            connections[client] = connection = Connection(client, 10_000 + (call * 7) % 50_000)
            yield connection.packet(at_us, is_client=True, flags=SYN)
            yield connection.packet(at_us, is_client=False, flags=SYN_ACK)
        connection = connections[client]
        at_us += 150
        asked, answered = _texts(call, sizes[call % len(sizes)], words)
        head = REQUEST.format(session=connection.session, size=len(asked)).encode()
        yield from connection.say(at_us, head + asked, is_client=True)
        if kind == "json":
            answer = JSON_HEAD.format(session=connection.session, size=len(answered)).encode() + answered
            yield from connection.say(at_us + 80, answer, is_client=False)
        else:
            event = b"event: message\r\ndata: " + answered + b"\r\n\r\n"
            yield from connection.say(at_us + 70, SSE_HEAD.format(session=connection.session).encode(), is_client=False)
            yield from connection.say(at_us + 80, b"%x\r\n%b\r\n0\r\n\r\n" % (len(event), event), is_client=False)


def _texts(call: int, size: int, words: str) -> tuple[bytes, bytes]:
    arguments = {"city": "Oslo", "day": call % 365}
    asked = {"jsonrpc": "2.0", "id": call, "method": "tools/call", "params": {"name": "forecast", "arguments": arguments}}
    begin = call * 37 % 90_000
    content = [{"type": "text", "text": words[begin : begin + max(1, size * 4 // 5)]}]
    answered = {"jsonrpc": "2.0", "id": call, "result": {"content": content, "isError": False}}
    return tuple(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode() for value in (asked, answered))  # type: ignore[return-value]  # two


def write(path: Path, scene: str, size_bytes: int) -> None:
    """Write a pcap of about this size."""
    with path.open("wb") as file:
        written = file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 1 << 18, 1))
        for packet in packets(scene):
            written += file.write(packet)
            if written >= size_bytes:
                return


def measured(path: Path, out: Path) -> tuple[float, float]:
    """Import a file; return its processor time in seconds, and its peak memory in MiB."""
    words = [sys.executable, "-m", "mcpspy", "import", "-o", str(out), str(path)]
    pid = os.posix_spawn(sys.executable, words, os.environ, file_actions=[(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)])
    _, status, usage = os.wait4(pid, 0)
    if status:
        raise SystemExit(f"the import ended with {os.waitstatus_to_exitcode(status)}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def main(arguments: list[str] | None = None) -> int:
    """Measure the scenes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bytes", type=int, default=120_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--scenes", default=",".join(SCENES))
    chosen = parser.parse_args(arguments)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for scene in chosen.scenes.split(","):
            path, out = Path(folder, f"{scene}.pcap"), Path(folder, f"{scene}.mcpspy")
            write(path, scene, chosen.bytes)
            times = []
            for _ in range(chosen.rounds):
                times.append(measured(path, out))
                out.unlink()
            seconds, size = min(times)[0], path.stat().st_size
            rows.append(
                [scene, f"{size / 1e6:.0f}", f"{size / 1e6 / seconds:.1f}", f"{max(memory for _, memory in times):.0f}"]
            )
            path.unlink()
    print(table(["scene", "MB", "MB/s of processor time", "peak MiB"], rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
