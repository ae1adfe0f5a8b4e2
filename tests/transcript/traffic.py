"""HTTP traffic transaction by transaction, as the records that an HTTP tap makes of it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from mcpspy.records import Close, Damage, End, Frame, Gap, Header, Note, Open, Record
from mcpspy.transcript.http.transaction import Transaction
from mcpspy.transcript.model import Exchange, Message, Transcript, UnpairedMessage
from mcpspy.transcript.transcribe import Transcriber, transcribe
from tests.transcript.dialogue import MS, make_header

if TYPE_CHECKING:
    from mcpspy.transcript.findings.rule import Finding

SERVER_URL = "http://127.0.0.1:3001/mcp"
TAP_URL = "http://127.0.0.1:7777"
MODERN = {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}
REASONS = {200: "OK", 202: "Accepted", 307: "Temporary Redirect", 400: "Bad Request", 401: "Unauthorized", 404: "Not Found",
           405: "Method Not Allowed", 500: "Internal Server Error", 502: "Bad Gateway"}  # fmt: skip


class Traffic:
    """HTTP traffic of one capture. Each record comes 1 ms after the one before; `records` are the records so far."""

    def __init__(self, label: str = "weather", *, url: str = SERVER_URL, header: Header | None = None) -> None:
        made = header or make_header(label=label)
        made.tapped = {"transport": "http", "url": url, "listen": TAP_URL}
        self.records: list[Record] = [made]
        self.at_ns = 0
        self.calls = 0
        self.streams = 0

    def add(self, record: Record) -> Traffic:
        record.number = len(self.records)
        self.records.append(record)
        return self

    def tick(self) -> int:
        self.at_ns += MS
        return self.at_ns

    def wait(self, ms: int) -> Traffic:
        self.at_ns += ms * MS
        return self

    def call(
        self,
        method: str,
        target: str = "/mcp",
        body: bytes | None = None,
        *,
        connection: int = 0,
        whole: bool = True,
        fields: dict[str, str] | None = None,
    ) -> Call:
        """Make a request. `fields` are header fields, with _ for -. If it is not `whole`, its end is yet to come."""
        self.calls += 1
        call = Call(self, self.calls, connection or self.calls, method)
        named = {"Host": "127.0.0.1:7777", **_spelled(fields or {})}
        if body is not None:
            named.setdefault("Content-Length", str(len(body)))
        head = _head(f"{method} {target} HTTP/1.1", named)
        call.request = self.open(call, "request", head, forwarded=head.replace(b":7777", b":3001"))
        if body:
            self.frame(call.request, body)
        if whole:
            self.close(call.request, "client")
        return call

    def post(
        self,
        message: Any,
        target: str = "/mcp",
        *,
        session: str = "",
        connection: int = 0,
        fields: dict[str, str] | None = None,
        **more: str,
    ) -> Call:
        """POST JSON, or bytes as they are. `fields` and `more` are header fields; those that the revision requires are added."""
        named = {"Content_Type": "application/json", **(fields or {}), **more}
        if session:
            named["Mcp_Session_Id"] = session
            named.setdefault("Mcp_Protocol_Version", "2025-11-25")
        if _is_modern(message):
            about = message["params"].get("name", message["params"].get("uri"))
            mirrored = {"Mcp_Protocol_Version": "2026-07-28", "Mcp_Method": message["method"], "Mcp_Name": about}
            named = {name: value for name, value in mirrored.items() if value} | named
        body = message if isinstance(message, bytes) else json.dumps(message).encode()
        return self.call("POST", target, body, connection=connection, fields=named)

    def get(self, target: str = "/mcp", *, session: str = "", **fields: str) -> Call:
        """Make a GET for a stream of events."""
        if session:
            fields["Mcp_Session_Id"] = session
        fields.setdefault("Accept", "text/event-stream")
        return self.call("GET", target, fields=fields)

    def open(
        self,
        call: Call,
        name: str,
        head: bytes,
        framing: str = "body",
        *,
        forwarded: bytes | None = None,
        injected: bool = False,
    ) -> int:
        stream = self.streams
        self.streams += 1
        self.add(
            Open(
                at_ns=self.tick(),
                stream=stream,
                sender="client" if name == "request" else "server",
                name=name,
                framing=framing,
                connection=call.connection,
                transaction=call.number,
                head=head,
                forwarded=forwarded,
                injected=injected,
            )
        )
        return stream

    def frame(self, stream: int, data: bytes, *, part: bool = False, **rare: Any) -> None:
        at_ns = self.tick()
        self.add(Frame(stream, at_ns, at_ns, data, part, **rare))

    def close(self, stream: int, by: str, how: str = "eof") -> None:
        self.add(Close(at_ns=self.tick(), stream=stream, by=by, how=how))

    def gap(self) -> Traffic:
        return self.add(Gap(at_ns=self.tick(), since_ns=self.at_ns, frames=3, bytes=600, why="No space left on device"))

    def damage(self) -> Traffic:
        return self.add(Damage(at_ns=self.at_ns, line=9, offset=900, reason="crc", text="the line does not match its CRC"))

    def ends(self) -> Traffic:
        return self.add(End(at_ns=self.tick(), frames=0, bytes=0))

    # What is made of it

    @property
    def transcript(self) -> Transcript:
        return transcribe(self.records)

    @property
    def wire(self) -> Transcript:
        """The transcript with the frames of its streams."""
        transcriber = Transcriber(keep_frames=True)
        for record in self.records:
            transcriber.feed(record)
        transcriber.close()
        return transcriber.transcript

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
    def transactions(self) -> list[Transaction]:
        """The transactions with a row of their own."""
        return [row for row in self.transcript.rows if isinstance(row, Transaction)]

    @property
    def findings(self) -> list[Finding]:
        """The findings of the capture if it ends here."""
        is_over = isinstance(self.records[-1], End)
        end = End(at_ns=self.at_ns + MS, frames=0, bytes=0, number=len(self.records))
        return transcribe(self.records if is_over else [*self.records, end]).findings

    @property
    def finding(self) -> Finding:
        """The only finding."""
        (finding,) = self.findings
        return finding

    @property
    def rules(self) -> list[str]:
        return [finding.rule for finding in self.findings]


class Call:
    """One transaction, from its request on."""

    def __init__(self, traffic: Traffic, number: int, connection: int, method: str) -> None:
        self.traffic, self.number, self.connection, self.method = traffic, number, connection, method
        self.request = self.response = -1

    def answer(
        self, status: int = 200, body: Any = b"", *, by: str = "server", how: str = "eof", injected: bool = False, **fields: str
    ) -> Call:
        """Send a response: JSON, or bytes as they are."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        named = _spelled(fields)
        if not isinstance(body, bytes):
            named.setdefault("Content-Type", "application/json")
        named.setdefault("Content-Length", str(len(data)))
        head = _head(f"HTTP/1.1 {status} {REASONS.get(status, '')}", named)
        self.response = self.traffic.open(self, "response", head, injected=injected)
        if data:
            self.traffic.frame(self.response, data)
        return self.close(by, how)

    def stream(self, status: int = 200, **fields: str) -> Call:
        """Send the head of a response that is a stream of events."""
        named = {"Content-Type": "text/event-stream", "Transfer-Encoding": "chunked", **_spelled(fields)}
        self.response = self.traffic.open(self, "response", _head(f"HTTP/1.1 {status} OK", named), "sse")
        return self

    def event(
        self, data: Any = None, *, kind: str = "", id: str = "", chunks: tuple[int, ...] | None = None, forwarded: bytes = b""
    ) -> Call:
        """Send an event: text and bytes as they are, everything else as JSON; in one chunk if no other `chunks` are given."""
        lines = [f"event: {kind}"] if kind else []
        lines += [f"id: {id}"] if id else []
        if data is not None:
            text = data if isinstance(data, str) else json.dumps(data)
            lines += [f"data: {line}" for line in text.split("\n")]
        raw = "".join(line + "\r\n" for line in [*lines, ""]).encode()
        return self.raw(
            raw, chunks=(len(raw),) if chunks is None else chunks, **({"forwarded": forwarded} if forwarded else {})
        )

    def raw(self, data: bytes, **rare: Any) -> Call:
        """Send a frame of the response."""
        self.traffic.frame(self.response, data, **rare)
        return self

    def close(self, by: str = "server", how: str = "eof") -> Call:
        """End the response."""
        self.traffic.close(self.response, by, how)
        return self

    def note(self, topic: str, text: str) -> Call:
        """Add the tap's note about this transaction."""
        self.traffic.add(Note(at_ns=self.traffic.tick(), topic=topic, text=text, extra={"transaction": self.number}))
        return self

    def leave(self) -> Call:
        """Let the client leave before there is a response."""
        text, extra = "client closed the connection before the response came", {"transaction": self.number, "by": "client"}
        self.traffic.add(Note(at_ns=self.traffic.tick(), topic="left", text=text, extra=extra))
        return self


def initialize(id: Any = 0, name: str = "claude-code", *capabilities: str) -> dict[str, Any]:
    """Return the `initialize` of a legacy client."""
    params = {
        "protocolVersion": "2025-11-25",
        "capabilities": {capability: {} for capability in capabilities},
        "clientInfo": {"name": name, "version": "1"},
    }
    return {"jsonrpc": "2.0", "id": id, "method": "initialize", "params": params}


def modern(id: Any, method: str = "tools/list", client: str = "claude-code", **params: Any) -> dict[str, Any]:
    """Return a request of the modern era."""
    meta = {
        **MODERN,
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": client, "version": "1"},
    }
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": {**params, "_meta": meta}}


def opened_session(traffic: Traffic, session: str, name: str = "claude-code", *capabilities: str) -> None:
    """Begin a session of Streamable HTTP, with `initialize` and its notification."""
    traffic.post(initialize(0, name, *capabilities)).answer(
        200, {"jsonrpc": "2.0", "id": 0, "result": {}}, Mcp_Session_Id=session
    )
    traffic.post({"jsonrpc": "2.0", "method": "notifications/initialized"}, session=session).answer(202)


def _is_modern(message: Any) -> bool:
    params = message.get("params") if isinstance(message, dict) else None
    meta = params.get("_meta") if isinstance(params, dict) else None
    return isinstance(meta, dict) and MODERN.items() <= meta.items()


def _spelled(fields: dict[str, str]) -> dict[str, str]:
    return {name.replace("_", "-"): value for name, value in fields.items()}


def _head(first: str, fields: dict[str, str]) -> bytes:
    return "".join(f"{line}\r\n" for line in [first, *(f"{name}: {value}" for name, value in fields.items()), ""]).encode()
