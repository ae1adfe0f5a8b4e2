"""Dialogues between a client and a server, line by line, as the records that a stdio tap makes of them."""

from __future__ import annotations

import json
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any

from mcpspy.records import Close, Damage, End, Exit, Frame, Gap, Header, Note, Open, Partial, Record, Spawn, Stall
from mcpspy.transcript.model import Exchange, Message, Transcript, UnpairedMessage
from mcpspy.transcript.transcribe import transcribe

if TYPE_CHECKING:
    from mcpspy.records import Side
    from mcpspy.transcript.findings.rule import Finding

MS = 1_000_000
STREAMS: tuple[tuple[Side, str], ...] = (("client", "stdin"), ("server", "stdout"), ("server", "stderr"))


class Dialogue:
    """A dialogue over stdio. Each line comes 1 ms after the one before; `records` are the records so far.

    Without `begins` nobody saw the server start: the session may be older.
    """

    def __init__(self, label: str = "weather", *, header: Header | None = None, begins: bool = True) -> None:
        self.records: list[Record] = [header or make_header(label=label)]
        self.at_ns = 0
        for stream, (sender, name) in enumerate(STREAMS):
            self.add(Open(at_ns=0, stream=stream, sender=sender, name=name))
        if begins:
            self.add(Spawn(at_ns=0, pid=101))

    def add(self, record: Record) -> Dialogue:
        record.number = len(self.records)
        self.records.append(record)
        return self

    def wait(self, ms: int) -> Dialogue:
        self.at_ns += ms * MS
        return self

    def client(self, line: Any) -> Dialogue:
        return self.line(0, line)

    def server(self, line: Any) -> Dialogue:
        return self.line(1, line)

    def stderr(self, line: bytes) -> Dialogue:
        return self.line(2, line)

    def line(self, stream: int, line: Any) -> Dialogue:
        """Add a frame: bytes as they are, everything else as JSON on a line."""
        data = line if isinstance(line, bytes) else json.dumps(line).encode() + b"\n"
        self.at_ns += MS
        return self.add(Frame(stream, self.at_ns, self.at_ns, data))

    def parts(self, stream: int, *data: bytes) -> Dialogue:
        """Add a frame that is recorded in parts."""
        first_ns = self.at_ns + MS
        for index, part in enumerate(data):
            self.at_ns += MS
            self.add(Frame(stream, self.at_ns, first_ns if index == 0 else self.at_ns, part, index < len(data) - 1))
        return self

    def client_leaves(self) -> Dialogue:
        return self.add(Close(at_ns=self.tick(), stream=0, by="client", how="eof"))

    def server_closes_stdout(self) -> Dialogue:
        return self.add(Close(at_ns=self.tick(), stream=1, by="server", how="eof"))

    def exits(self, code: int | None = 0, signal: str | None = None, error: str = "") -> Dialogue:
        return self.add(Exit(at_ns=self.tick(), pid=101, code=code, signal=signal, error=error))

    def ends(self) -> Dialogue:
        return self.add(End(at_ns=self.tick(), frames=0, bytes=0))

    def closes(self) -> Dialogue:
        """End as usual: the client closes stdin, the server exits, the capture is complete."""
        return self.client_leaves().server_closes_stdout().exits().ends()

    def gap(self) -> Dialogue:
        return self.add(Gap(at_ns=self.tick(), since_ns=self.at_ns, frames=3, bytes=600, why="No space left on device"))

    def damage(self, reason: str = "crc") -> Dialogue:
        return self.add(Damage(at_ns=self.at_ns, line=9, offset=900, reason=reason, text="the line does not match its CRC"))

    def note(self, topic: str, signal: str = "SIGTERM") -> Dialogue:
        return self.add(Note(at_ns=self.tick(), topic=topic, text=f"{signal} received and forwarded"))

    def stall(
        self, stream: int, lasted_ns: int | None = None, waiting_bytes: int = 65536, incomplete_bytes: int = 0
    ) -> Dialogue:
        record = Stall(at_ns=self.tick(), stream=stream, waiting_bytes=waiting_bytes, lasted_ns=lasted_ns)
        record.incomplete_bytes = incomplete_bytes
        return self.add(record)

    def partial(self, stream: int, data: bytes) -> Dialogue:
        return self.add(Partial(at_ns=self.tick(), stream=stream, first_ns=self.at_ns, data=data))

    def tick(self) -> int:
        self.at_ns += MS
        return self.at_ns

    @property
    def transcript(self) -> Transcript:
        return transcribe(self.records)

    @property
    def exchanges(self) -> list[Exchange]:
        return self.transcript.exchanges

    @property
    def exchange(self) -> Exchange:
        """The only exchange."""
        (exchange,) = self.exchanges
        return exchange

    @property
    def unpaired_messages(self) -> list[Message]:
        return [row.message for row in self.transcript.rows if isinstance(row, UnpairedMessage)]

    @property
    def unpaired(self) -> Message:
        """The only unpaired message."""
        (message,) = self.unpaired_messages
        return message

    @property
    def findings(self) -> list[Finding]:
        return self.transcript.findings

    @property
    def rules(self) -> list[str]:
        return [finding.rule for finding in self.findings]


def make_header(
    *, label: str = "weather", wall_ns: int = 10**18, monotonic_ns: int = 0, boot_id: str = "b", parent: Any = None
) -> Header:
    return Header(
        capture_id=label,
        wall_ns=wall_ns,
        monotonic_ns=monotonic_ns,
        boot_id=boot_id,
        pid=100,
        label=label,
        parent={"pid": 7, "name": "claude", "start": 3} if parent is None else parent,
        tapped={"transport": "stdio", "argv": ["server"], "env": []},
    )


def request(id: Any, method: str = "tools/list", params: Any = None) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "method": method, **({} if params is None else {"params": params})}


def tool_call(id: Any, name: str = "forecast", token: Any = None, **arguments: Any) -> dict[str, Any]:
    meta = {} if token is None else {"_meta": {"progressToken": token}}
    return request(id, "tools/call", {"name": name, **({"arguments": arguments} if arguments else {}), **meta})


def result(id: Any, value: Any = None) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "result": {} if value is None else value}


def error(id: Any, code: int = -32601) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": "no"}}


def notification(method: str = "notifications/initialized", params: Any = None) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": method, **({} if params is None else {"params": params})}


def progress(token: Any, at: int = 1) -> dict[str, Any]:
    return notification("notifications/progress", {"progressToken": token, "progress": at})


def cancelled(id: Any) -> dict[str, Any]:
    return notification("notifications/cancelled", {"requestId": id})


_UNSPELLED = ("assembly", "known", "frames", "payload", "place")


def spelled(value: Any) -> Any:
    """Return everything that a transcript holds, as plain values that can be compared."""
    if is_dataclass(value):
        return (type(value).__name__, *(spelled(getattr(value, field.name)) for field in fields(value)))
    if hasattr(value, "__struct_fields__"):
        name = type(value).__name__
        raw = (value.raw,) if name == "Message" else ()  # wherever the bytes are
        return (name, *raw, *(spelled(getattr(value, name)) for name in value.__struct_fields__ if name not in _UNSPELLED))
    if isinstance(value, list | tuple):
        return [spelled(item) for item in value]
    if isinstance(value, dict):
        return {key: spelled(item) for key, item in value.items()}
    return value
