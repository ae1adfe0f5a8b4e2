r"""The language of the rules' examples: a short account of a session, and the records that a tap would make of it.

Line by line, each 1 ms after the one before:

    → LINE                       the client writes a line on stdin
    ← LINE                       the server writes one on stdout
    ! LINE                       the server writes one on stderr
    → POST /mcp                  the client makes an HTTP request; fields and a body follow, indented
    ← 200 OK                     the server answers the last one (`#1 200 OK`: the first); fields, a body or events, indented
    ← data: …                    an event on the stream of events that was opened last; `#1 data: …` on that of the first request
    · 30.0 s later
    · handshake 2025-11-25, client: roots, server: tools logging     the usual beginning, on stdio or, after `· HTTP`, in a session
    · revision 2026-07-28        from here on short requests of the client name it in their `_meta`; `none` ends that

A LINE is what it says, or short for JSON-RPC: `tools/call 7 {"name":"add"}`, `notifications/initialized`, `result 7 {…}`,
`error 7 -32601 no such method`. In it `\x` and two digits are a byte, `\r` at its end is a CR, and `…` at its end says that
there is no line feed, or after an event no blank line; `⟪ab×3⟫` is `ababab`. `_EVENTS` has everything that may follow `·`. Lines
with `⇒` and `⇐` are model API traffic, which has a capture of its own: see `model_account`.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from mcpspy.capture.file.format import header_line, record_line
from mcpspy.records import CLIENT_PROCESSES, Close, End, Exit, Frame, Gap, Header, Note, Open, Partial, Record, Spawn, Stall

if TYPE_CHECKING:
    from collections.abc import Callable

    from .model_account import ModelAccount

MS = 1_000_000
SECOND = 1_000 * MS
PARTIAL_NS = 5 * SECOND
URL = "http://127.0.0.1:3001/mcp"
CLIENT_INFO = {"name": "client", "version": "1"}
SERVER_INFO = {"name": "server", "version": "1"}

_short = re.compile(
    r'(?P<word>initialize|ping|pong|[a-z]+(?:/[A-Za-z_]+)+)(?: (?P<id>-?\d+|"[^"]*"))?(?: (?P<rest>\{.*))?', re.DOTALL
)
_answer = re.compile(r'(?P<word>result|error) (?P<id>-?\d+|"[^"]*"|null)(?: (?P<rest>.*))?', re.DOTALL)
_repeat = re.compile(r"⟪(.*?)×(\d+)⟫").sub
_field = re.compile(r"[A-Za-z][A-Za-z-]*: ")
_EVENT_FIELDS = ("data:", "event:", "id:", "retry:", ":")


ANOTHER_SERVER = "\n· another server\n"
"""The line between two sessions that one client has with two servers."""

BEHIND_GATEWAY = "\n· behind the gateway\n"
"""The line between a session with a gateway and the one that this has with its server."""

ANOTHER_SESSION = "\n· another session\n"
"""The line between two sessions with the same server."""


def records(text: str) -> list[Record]:
    """Make the records of the account `text`, numbered; the header is the first."""
    return Account(text).records


def captures(text: str, label: str = "example") -> list[bytes]:
    """Make the captures of the account `text`: of the server with this label, and of the model; each if it has any messages."""
    account = Account(text, label)
    accounts = [account] if re.search("^[→←]", text, re.MULTILINE) or account.model is None else []
    return [_capture(part) for part in ([*accounts, account.model] if account.model is not None else accounts)]


def _capture(account: Account) -> bytes:
    header = account.records[0]
    assert isinstance(header, Header)
    lines = [header_line(header), *(record_line(number, record) for number, record in enumerate(account.records[1:], 1))]
    for at, change in account.changes:
        lines[at] = change(lines[at])
    return b"".join(lines)


class _Call:
    """An HTTP request, and the streams of its transaction."""

    def __init__(self, number: int, request: int) -> None:
        self.number, self.request, self.response = number, request, -1
        self.is_open = False


class Account:
    """Records of an account. `changes` are edits of the capture's lines, as by a person or a bad disk."""

    def __init__(self, text: str, label: str = "example") -> None:
        lines = _repeat(lambda match: match[1] * int(match[2]), text).split("\n")
        self.label = label
        self.model: ModelAccount | None = None
        self.is_http = any(re.match(r"→ [A-Z]+ /|· HTTP", line) for line in lines)
        self.at_ns = 0
        self.records: list[Record] = [self._header()]
        self.changes: list[tuple[int, Callable[[bytes], bytes]]] = []
        self.revision = ""
        self.capabilities: Any = {}
        self.session = ""
        self.agreed: list[str] = []
        self.calls: list[_Call] = []
        self.streams = 0
        self.halves: dict[int, tuple[int, bytes]] = {}
        self.client_left = self.server_left = self.is_over = False
        if not self.is_http:
            for stream, (sender, name) in enumerate((("client", "stdin"), ("server", "stdout"), ("server", "stderr"))):
                self.add(Open(at_ns=0, stream=stream, sender=sender, name=name))  # type: ignore[arg-type]  # a Side
            self.add(Spawn(at_ns=0, pid=101, start=1))
        self._play(lines)
        self._end()

    def _header(self) -> Header:
        tapped: dict[str, Any] = {
            "transport": "stdio",
            "argv": ["server" if self.label == "example" else self.label],
            "env": [],
        }
        if self.is_http:
            tapped = {"transport": "http", "url": URL, "listen": "http://127.0.0.1:7777"}
        parent: dict[str, Any] = {"pid": 7, "name": "client", "start": 3}
        if self.label == "behind":
            parent = {"pid": 101, "name": "gateway", "start": 1}
        return Header(
            capture_id="20261118T100000Z-example", wall_ns=1_794_996_000 * SECOND, monotonic_ns=0, boot_id="b", pid=100, start=1,
            label=self.label, parent=parent, cwd="/", tapped=tapped, mcpspy_version="1",
        )  # fmt: skip

    def add(self, record: Record) -> None:
        record.number = len(self.records)
        self.records.append(record)

    def tick(self) -> int:
        self.at_ns += MS
        return self.at_ns

    def _play(self, lines: list[str]) -> None:
        at = 0
        while at < len(lines):
            line, at = lines[at], at + 1
            more = []
            while at < len(lines) and (lines[at].startswith("  ") or (not lines[at] and at + 1 < len(lines))):
                more.append(lines[at][2:])
                at += 1
            if line:
                self._line(line[0], line[2:].rstrip() if line[0] == "!" else line[1:].strip(), more)

    def _line(self, sign: str, text: str, more: list[str]) -> None:
        if sign in "⇒⇐":
            self._model_account().model_line(sign, text, more)
        elif sign == "·":
            self._event(text)
        elif sign == "!":
            self._write(2, text)
        elif not self.is_http:
            self._write(0 if sign == "→" else 1, text)
        elif sign == "→":
            self._request(text, more)
        else:
            self._answer(text, more)

    def _model_account(self) -> ModelAccount:
        from .model_account import ModelAccount

        if self.model is None:
            self.model = ModelAccount(self)
        return self.model

    # stdio

    def _write(self, stream: int, text: str) -> None:
        has_end = not text.endswith("…")
        raw = _bytes(self.spelled(text.removesuffix("…"), is_client=stream == 0))
        if has_end:
            self.add(Frame(stream, self.tick(), self.at_ns, raw + b"\n"))
        else:
            self.halves[stream] = self.tick(), raw

    def spelled(self, text: str, *, is_client: bool) -> str:
        """Give `text`, or the JSON that it is short for."""
        if answer := _answer.fullmatch(text):
            id, rest = json.loads(answer["id"]), answer["rest"] or ""
            if answer["word"] == "result":
                return _json({"jsonrpc": "2.0", "id": id, "result": json.loads(rest or "{}")})
            code, _, text = rest.partition(" ")
            return _json({"jsonrpc": "2.0", "id": id, "error": {"code": int(code), "message": text or "no"}})
        short = _short.fullmatch(text)
        if short is None:
            return text
        message: dict[str, Any] = {"jsonrpc": "2.0"}
        if short["id"] is not None:
            message["id"] = json.loads(short["id"])
        message["method"] = short["word"]
        params = json.loads(short["rest"]) if short["rest"] else {}
        if is_client and self.revision and short["id"] is not None:
            prefix = "io.modelcontextprotocol/"
            meta = {f"{prefix}protocolVersion": self.revision, f"{prefix}clientCapabilities": self.capabilities}
            params["_meta"] = meta | params.get("_meta", {})
        if params:
            message["params"] = params
        return _json(message)

    # HTTP

    def _request(self, first: str, more: list[str]) -> None:
        fields, body = _head_and_body(more)
        if self.session:
            fields = [f"Mcp-Session-Id: {self.session}", *self.agreed, *fields]
        if not any(field.lower().startswith("host:") for field in fields):
            fields = ["Host: 127.0.0.1:7777", *fields]
        data = _bytes(self.spelled(body[0], is_client=True) if len(body) == 1 else "\n".join(body))
        if body and self.revision:
            fields = [f"MCP-Protocol-Version: {self.revision}", *fields]
        if body:
            fields += ["Content-Type: application/json", f"Content-Length: {len(data)}"]
        call = _Call(len(self.calls) + 1, self.streams)
        self.calls.append(call)
        self._open(call, "request", f"{first} HTTP/1.1", fields, "body")
        if data:
            self.add(Frame(call.request, self.tick(), self.at_ns, data))
        self.add(Close(at_ns=self.tick(), stream=call.request, by="client", how="eof"))

    def _answer(self, text: str, more: list[str]) -> None:
        call, text = self._named(text)
        if text.startswith(_EVENT_FIELDS):
            for event in _events([text, *more]):
                self._send(call or next(known for known in reversed(self.calls) if known.is_open), event)
            return
        call = call or self.calls[-1]
        fields, body = _head_and_body(more)
        is_stream = any(line.startswith(_EVENT_FIELDS) for line in body)
        call.response = self.streams
        if is_stream or "Content-Type: text/event-stream" in fields:
            fields = ["Content-Type: text/event-stream", *(field for field in fields if not field.startswith("Content-Type"))]
            self._open(call, "response", f"HTTP/1.1 {text}", fields, "sse")
            call.is_open = True
            for event in _events(body):
                self._send(call, event)
            return
        late = re.match(r"body (\d+) ms later: ", body[0]) if body else None
        if late:
            body[0] = body[0][late.end() :]
        data = _bytes(self.spelled(body[0], is_client=False) if len(body) == 1 else "\n".join(body))
        if body and not any(field.startswith("Content-Type") for field in fields):
            fields.append("Content-Type: application/json")
        self._open(call, "response", f"HTTP/1.1 {text}", [*fields, f"Content-Length: {len(data)}"], "body")
        self.at_ns += int(late[1]) * MS if late else 0
        if data:
            self.add(Frame(call.response, self.tick(), self.at_ns, data))
        self.add(Close(at_ns=self.tick(), stream=call.response, by="server", how="eof"))

    def _send(self, call: _Call, event: list[str]) -> None:
        lines = [
            f"data: {self.spelled(line[6:].removesuffix('…'), is_client=False)}{'…' * line.endswith('…')}"
            if line.startswith("data: ")
            else line
            for line in event
        ]
        lines = [line.removesuffix("…") for line in lines] if lines[-1].endswith("…") else [*lines, ""]
        self.add(Frame(call.response, self.tick(), self.at_ns, "".join(f"{line}\n" for line in lines).encode()))

    def _open(self, call: _Call, name: str, first: str, fields: list[str], framing: str, *, injected: bool = False) -> None:
        head = "".join(f"{line}\r\n" for line in [first, *fields, ""]).encode()
        sender = "client" if name == "request" else "server"
        stream, self.streams = self.streams, self.streams + 1
        self.add(
            Open(
                at_ns=self.tick(), stream=stream, sender=sender, name=name, framing=framing, connection=call.number,  # type: ignore[arg-type]  # a Side, a Framing
                transaction=call.number, head=head, injected=injected,
            )
        )  # fmt: skip

    def _named(self, text: str) -> tuple[_Call | None, str]:
        """Give the call that `#1` before a text names, and the rest of the text."""
        match = re.match(r"#(\d+) ?(.*)", text, re.DOTALL)
        return (self.calls[int(match[1]) - 1], match[2]) if match else (None, text)

    # What else happens

    def _event(self, text: str) -> None:
        for pattern, play in _EVENTS:
            match = re.fullmatch(pattern, text)
            if match:
                play(self, *match.groups())
                return
        raise ValueError(f"an account has no such line: {text}")

    def later(self, seconds: str) -> None:
        until_ns = self.at_ns + round(float(seconds) * SECOND)
        for stream, (since_ns, data) in self.halves.items():
            if until_ns >= since_ns + PARTIAL_NS:
                self.add(Partial(at_ns=since_ns + PARTIAL_NS, stream=stream, first_ns=since_ns, data=data))
        self.at_ns = until_ns

    def http(self) -> None:
        """Make the rest of the account HTTP."""

    def revise(self, revision: str, capabilities: str | None) -> None:
        self.revision, self.capabilities = "" if revision == "none" else revision, _capabilities(capabilities)

    def handshake(self, revision: str, session: str | None, client: str | None, server: str | None) -> None:
        params = {"protocolVersion": revision, "capabilities": _capabilities(client), "clientInfo": CLIENT_INFO}
        result = {"protocolVersion": revision, "capabilities": _capabilities(server), "serverInfo": SERVER_INFO}
        request, response = f"initialize 0 {_json(params)}", f"result 0 {_json(result)}"
        if not self.is_http:
            for sign, line in (("→", request), ("←", response), ("→", "notifications/initialized")):
                self._line(sign, line, [])
            return
        self._request("POST /mcp", [request])
        self._answer("200 OK", [f"Mcp-Session-Id: {session or '5f2c'}", response])
        self.session = session or "5f2c"
        self.agreed = [f"MCP-Protocol-Version: {revision}"] if revision >= "2025-06-18" else []
        self._request("POST /mcp", ["notifications/initialized"])
        self._answer("202 Accepted", [])

    def session_is(self, session: str) -> None:
        self.session = "" if session == "none" else session

    def close_stdin(self) -> None:
        self.client_left = True
        self.add(Close(at_ns=self.tick(), stream=0, by="client", how="eof"))

    def close_stream(self, side: str, number: str | None, how: str | None) -> None:
        open_calls = [known for known in self.calls if known.is_open]
        call = self.calls[int(number) - 1] if number else open_calls[-1]
        call.is_open = False
        self.add(Close(at_ns=self.tick(), stream=call.response, by=side, how="reset" if how else "eof"))

    def exits(self, code: str | None, signal: str | None, left: str | None) -> None:
        self._flush()
        self.server_left = True
        self.add(Close(at_ns=self.tick(), stream=1, by="server", how="eof"))
        descendants = tuple({"pid": 200 + at, "name": name} for at, name in enumerate((left or "").split(", ")) if name)
        status = None if code is None else int(code)
        self.add(Exit(at_ns=self.tick(), pid=101, code=status, signal=signal, descendants=descendants))
        if descendants:
            self.add(Note(at_ns=self.tick(), topic="descendants-running", text="processes that the server left still run"))

    def signals(self, name: str, waited_s: str | None) -> None:
        waited = {"waited_ns": int(float(waited_s) * 1e9)} if waited_s else {}
        self.add(Note(at_ns=self.tick(), topic="signal", text=f"{name} received and forwarded", extra=waited))

    def is_late(self, waited_s: str) -> None:
        waited = {"waited_ns": int(float(waited_s) * 1e9)}
        self.add(Note(at_ns=self.tick(), topic="late-output", text="the server waited for a processor", extra=waited))

    def escalates(self, name: str) -> None:
        self.add(Note(at_ns=self.tick(), topic="escalation", text=f"{name} to server (101): the client sent a signal"))

    def never_starts(self, why: str) -> None:
        self.server_left = True
        self.add(Exit(at_ns=self.tick(), pid=101, error=why))

    def breaks_off(self) -> None:
        self.is_over = True

    def flipped(self) -> None:
        self.changes.append((len(self.records) - 1, lambda line: line.replace(b'"kind"', b'"kimd"', 1)))

    def edited(self) -> None:
        self.changes.append((len(self.records) - 1, lambda line: re.sub(rb',"crc":"[0-9a-f]{8}"', b"", line)))

    def gap(self, why: str, frames: str, size: str) -> None:
        self.add(Gap(at_ns=self.tick(), since_ns=self.at_ns, frames=int(frames), bytes=int(size), why=why))

    def stalls(self, name: str, size: str) -> None:
        self.add(Stall(at_ns=self.tick(), stream=_stdio(name), waiting_bytes=int(size)))

    def flows(self, name: str, seconds: str) -> None:
        lasted_ns = round(float(seconds) * SECOND)
        self.add(Stall(at_ns=self.tick(), stream=_stdio(name), waiting_bytes=0, lasted_ns=lasted_ns))

    def injected(self, status: str, reason: str) -> None:
        call, data = self.calls[-1], f"mcpspy: {reason}\n".encode()
        call.response = self.streams
        fields = ["Content-Type: text/plain", f"Content-Length: {len(data)}"]
        self._open(call, "response", f"HTTP/1.1 {status} ", fields, "body", injected=True)
        self.add(Frame(call.response, self.tick(), self.at_ns, data))
        self.add(Close(at_ns=self.tick(), stream=call.response, by="mcpspy", how="eof"))

    def connected(self, age: str, numbers: str) -> None:
        process = {
            "pid": 300 + len(self.records),
            "start": 9 if age == "a new process" else 1,
            "first_ns": 0,
            "last_ns": self.at_ns,
        }
        extra = {"processes": [process], "connections": [[process["pid"], *map(int, numbers.split())]]}
        self.add(Note(at_ns=self.tick(), topic=CLIENT_PROCESSES, text="processes of connections", extra=extra))

    def leaves(self) -> None:
        extra = {"transaction": self.calls[-1].number, "by": "client"}
        self.add(
            Note(at_ns=self.tick(), topic="left", text="client closed the connection before the response came", extra=extra)
        )

    # The end

    def _flush(self) -> None:
        """Make frames of half lines, as at the end of their stream."""
        for stream, (since_ns, data) in sorted(self.halves.items()):
            self.add(Frame(stream, self.tick(), since_ns, data))
        self.halves.clear()

    def _end(self) -> None:
        if self.model is not None:
            self.model.end()
        if self.is_over:
            return
        if not self.is_http:
            self._flush()
            if not self.server_left:
                if not self.client_left:
                    self.close_stdin()
                self.exits("0", None, None)
        frames = sum(isinstance(record, Frame) for record in self.records)
        size = sum(len(record_line(number, record)) for number, record in enumerate(self.records[1:], 1))
        self.add(End(at_ns=self.tick(), frames=frames, bytes=size, messages=frames))


_EVENTS: tuple[tuple[str, Callable[..., None]], ...] = (
    (r"(\d+\.\d+) s later", Account.later),
    (r"HTTP", Account.http),
    (r"revision ([^,]+)(?:, client: (.+))?", Account.revise),
    (r"handshake ([^, ]+)(?: again as (\w+))?(?:, client: ([^,]+))?(?:, server: (.+))?", Account.handshake),
    (r"session (\S+)", Account.session_is),
    (r"the client closes stdin", Account.close_stdin),
    (r"the (client|server) (?:closes|breaks off) the stream(?: of #(\d+))?(, broken)?", Account.close_stream),
    (r"the client leaves", Account.leaves),
    (r"connections of (a new process|a process from before the capture): ([\d ]+)", Account.connected),
    (r"the server exits(?: (\d+))?(?: by (SIG\w+))?(?:, leaving (.+))?", Account.exits),
    (r"the client sends (SIG\w+)(?:, when the server has waited (\S+) s for a processor)?", Account.signals),
    (r"the server has waited (\S+) s for a processor before its first output", Account.is_late),
    (r"mcpspy sends (SIG\w+)", Account.escalates),
    (r"the server does not start: (.+)", Account.never_starts),
    (r"the capture breaks off", Account.breaks_off),
    (r"the line before is flipped", Account.flipped),
    (r"the line before is edited", Account.edited),
    (r"(.+): (\d+) frames, (\d+) bytes", Account.gap),
    (r"(\w+) stalls: (\d+) bytes waiting", Account.stalls),
    (r"(\w+) flows again after (\S+) s", Account.flows),
    (r"mcpspy answers (\d+): (.+)", Account.injected),
)


def _bytes(text: str) -> bytes:
    if text.endswith("\\r"):
        text = text[:-2] + "\r"
    return re.sub(rb"\\x([0-9a-f]{2})", lambda match: bytes.fromhex(match[1].decode()), text.encode())


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _capabilities(words: str | None) -> Any:
    """Read `tools.listChanged tasks.requests.tools.call` as an object: one part is a boolean, more parts are objects."""
    made: dict[str, Any] = {}
    for word in (words or "").split():
        name, *parts = word.split(".")
        into = made.setdefault(name, {})
        if len(parts) == 1:
            into[parts[0]] = True
        elif parts:
            for part in parts:
                into = into.setdefault(part, {})
    return made


def _head_and_body(lines: list[str]) -> tuple[list[str], list[str]]:
    fields: list[str] = []
    for at, line in enumerate(lines):
        if not _field.match(line) or line.startswith(_EVENT_FIELDS):
            return fields, lines[at:]
        fields.append(line)
    return fields, []


def _events(lines: list[str]) -> list[list[str]]:
    """Split lines into events, at empty lines."""
    events: list[list[str]] = [[]]
    for line in lines:
        if line:
            events[-1].append(line)
        elif events[-1]:
            events.append([])
    return [event for event in events if event]


def _stdio(name: str) -> int:
    return ("stdin", "stdout", "stderr").index(name)
