"""HAR 1.2, of browsers, mitmproxy and mcpspy itself: a file in, records of one session for each server out.

A HAR has heads and bodies as texts, with times to the millisecond. Heads are written anew from it, in HTTP/1.1, and bodies
are what is left of them after decoding; the chunks are not in it, nor who ended a stream. Source: the specification of HAR
1.2 by Jan Odvarko.

Events have times of their own where the file has `_eventSourceMessages`, which only browsers write. Without them, events have
the time of the end of their response; but one to which the client reacted has come before that:

    POST tools/call             10.0 … 10.9     a stream of two events without times
      ← elicitation/create      10.9 → 10.5     because the client has answered it by then
    POST its answer             10.5 … 10.6
      ← the result of the call  10.9
"""

from __future__ import annotations

import json
from base64 import b64decode
from bisect import bisect_left, insort
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from ..records import CLIENT, SERVER, Close, End, Frame, Gap, Note, Open, Side
from ..wire.framing import FRAMINGS
from ..wire.http_body import body_framing
from ..wire.sse import SseEvents, parse
from .http_streams import announces_endpoint, is_prompt
from .session import NOTE_TOPIC
from .source import EXACT, MISSING, RECONSTRUCTED, SessionRecord, Source, WholeFileImporter, header

_MS_NS: Final = 1_000_000
_DECODED: Final = ("content-encoding",)
_ENDED: Final = "connection closed by "
"""The words of mcpspy for an entry without a response."""

_OWN: Final = "mcpspy"
_ACCEPTED: Final = 202
_EVENTS: Final = b"text/event-stream"
_HALF: Final = "the HAR has requests of HTTP+SSE and not its event stream"
_SILENT: Final = "nothing but a request for events is in the HAR: it does not show whether the server speaks MCP"

TimedRecord = Open | Frame | Close | Note | Gap

PLAYWRIGHT: Final = "Playwright"
"""The program whose HARs have events as Chromium decodes text without a character set: as Windows-1252, though they are UTF-8."""

_NO_RAW: Final = msgspec.Raw(b"")
_WINDOWS_1252: Final = {
    ord(character): byte
    for byte in range(0x80, 0xA0)
    if (character := bytes([byte]).decode("cp1252", "replace")) != "\N{REPLACEMENT CHARACTER}"
}


def is_har(head: bytes) -> bool:
    """Return whether a file that begins with these bytes is a HAR."""
    begin = head[:4096].lstrip(b"\xef\xbb\xbf \t\r\n")
    return begin.startswith(b"{") and b'"log"' in begin and (b'"creator"' in begin or b'"entries"' in begin)


class _HarServer:
    """The records of one server, with their times in Unix nanoseconds, and its event streams, each after its beginning."""

    __slots__ = (
        "accepted_ns", "begins", "behind", "connections", "events_path", "gaps", "is_heard", "is_mcp", "is_model", "path",
        "reactions", "records", "streams", "transactions", "with_events",
    )  # fmt: skip

    def __init__(self) -> None:
        self.records: list[TimedRecord] = []
        self.with_events: list[tuple[int, list[Frame]]] = []
        self.reactions = _Reactions()
        self.connections: dict[str, int] = {}
        self.streams = -1
        self.transactions = 0
        self.path = ""
        self.events_path = ""  # of the first GET for events, as pages of other kinds make too
        self.behind = ""  # the URL of the server before which mcpspy stood
        self.gaps: list[Gap] = []  # up to the end
        self.accepted_ns = 0  # when a request was first answered with 202, as over HTTP+SSE
        self.is_heard = self.is_mcp = self.is_model = self.begins = False

    def lacks(self, since_ns: int, until_ns: int | None, why: str, size_bytes: int = 0) -> None:
        """Note what the HAR does not have. `until_ns` is None for events, which may have come until the end."""
        gap = Gap(at_ns=until_ns or since_ns, since_ns=since_ns, frames=1, bytes=size_bytes, why=why)
        (self.records if until_ns else self.gaps).append(gap)

    def sorted_records(self) -> list[TimedRecord]:
        """Return the records in the order of their times."""
        if self.accepted_ns and not self.is_heard and not self.gaps:
            self.lacks(self.accepted_ns, None, _HALF)
        for stream_ns, events in self.with_events:
            self.reactions.settle(events, stream_ns)
        timed = sorted(self.records, key=lambda record: record.at_ns)
        for gap in self.gaps:
            gap.at_ns = timed[-1].at_ns
        return [*timed, *self.gaps]


class HarImporter(WholeFileImporter):
    """Records from the bytes of a HAR, which is one JSON value; each after the number of its session."""

    __slots__ = ("_creator", "_servers")

    def __init__(self, source: Source) -> None:
        super().__init__(source)
        self._creator = ""
        self._servers: dict[str, _HarServer] = {}

    def close(self) -> list[SessionRecord]:
        entries = self._entries()
        entries.reverse()
        while entries:  # an entry goes as soon as it is read
            try:
                self._entry(entries.pop())
            except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
                self._count("an entry that is not as HAR 1.2 has it")
        spoken = {origin: server for origin, server in self._servers.items() if server.is_mcp or server.is_model}
        if not any(server.is_mcp for server in spoken.values()):
            spoken |= self._silent()
        return [
            record for number, (origin, server) in enumerate(spoken.items()) for record in self._session(number, origin, server)
        ]

    def _silent(self) -> dict[str, _HarServer]:
        """Return the servers that were asked for events, where nothing speaks MCP: one may be a server of HTTP+SSE that is silent."""
        servers = {origin: server for origin, server in self._servers.items() if server.events_path}
        for server in servers.values():
            server.path = server.events_path
            server.records.append(Note(at_ns=server.records[-1].at_ns, topic=NOTE_TOPIC, text=_SILENT))
        return servers

    def _entries(self) -> list[Any]:
        if (data := self._whole()) is None:
            return []
        try:
            log = _json(data)["log"]
            entries = log["entries"]
        except (ValueError, TypeError, KeyError, RecursionError):
            self._count("a file that is no JSON, or has no log.entries")
            return []
        creator = log.get("creator")
        self._creator = str(creator.get("name")) if isinstance(creator, dict) else ""
        return entries if isinstance(entries, list) else []

    def _entry(self, entry: dict[str, Any]) -> None:
        """Take one request and its response."""
        request, response = entry["request"], entry["response"]
        url = urlsplit(str(request["url"]))
        server = self._servers.setdefault(f"{url.scheme}://{url.netloc}", _HarServer())
        began_ns, sent_ns, head_ns, end_ns = _times(entry)
        if self._creator == _OWN and urlsplit(own := str(entry.get("_server") or "")).netloc:
            server.behind = own
        server.transactions += 1
        connection = _connection(server, entry)
        target = (url.path or "/") + (f"?{url.query}" if url.query else "")
        fields = _fields(request.get("headers"))
        body = _encoded(str((request.get("postData") or {}).get("text") or ""), (request.get("bodySize"),))
        opening = _head(f"{request['method']} {target} HTTP/1.1", fields)
        is_mcp = b'"jsonrpc"' in body
        if is_prompt(body) and not (server.is_mcp or server.is_model):
            server.is_model, server.path = True, url.path
        if is_mcp and not server.is_mcp:
            server.is_mcp, server.path = True, url.path
            server.begins = b'"initialize"' in body or b"server/discover" in body
        if request["method"] == "GET" and _EVENTS in (_header_value(fields, "accept") or b""):
            server.events_path = server.events_path or url.path
        if body:
            server.reactions.add(began_ns, target, body)
        self._stream(server, CLIENT, connection, opening, fields, [(body, sent_ns)], (began_ns, sent_ns))
        status = response.get("status")
        if not isinstance(status, int) or not 100 <= status <= 999:
            error = str(response.get("_error") or entry.get("_error") or "no response")
            by = error.removeprefix(_ENDED) if error.startswith(_ENDED) else "server"
            extra = {"connection": connection, "transaction": server.transactions, "by": by}
            server.records.append(Note(at_ns=end_ns, topic="left", text=error, extra=extra))
            return
        fields = _fields(response.get("headers"))
        opening = _head(f"HTTP/1.1 {status} {response.get('statusText') or ''}".rstrip(), fields)
        content = _Content(
            content=response.get("content") or {}, fields=fields, messages=entry.get("_eventSourceMessages"),
            creator=self._creator, end_ns=end_ns,
        )  # fmt: skip
        pieces = content.pieces()
        if not server.is_mcp and any(announces_endpoint(data) for data, _ in pieces):
            server.is_mcp, server.path = True, url.path
        self._stream(server, SERVER, connection, opening, fields, pieces, (head_ns, end_ns))
        if content.is_absent and (is_mcp or content.is_events):
            why = f"the HAR does not have the body of the response to {request['method']} {url.path}"
            server.lacks(head_ns, None if content.is_events else end_ns, why, content.size_bytes)
        elif is_mcp and status == _ACCEPTED and b'"method"' in body and b'"id"' in body:
            server.accepted_ns = server.accepted_ns or head_ns
        server.is_heard = server.is_heard or any(b'"jsonrpc"' in data for data, _ in pieces)

    def _stream(
        self,
        server: _HarServer,
        sender: Side,
        connection: int,
        head: bytes,
        fields: list[tuple[str, str]],
        pieces: list[tuple[bytes, int]],
        span: tuple[int, int],
    ) -> None:
        """Add the records of a request or a response. Nobody knows who ended a stream of events: it has no end."""
        server.streams += 1
        number, framing = server.streams, body_framing(_header_value(fields, "content-type"))
        opened = Open(
            at_ns=span[0], stream=number, sender=sender, name="request" if sender == CLIENT else "response", framing=framing,
            connection=connection, transaction=server.transactions, head=head,
        )  # fmt: skip
        frames = [Frame(number, due, due, data) for data, at_ns in pieces if data and (due := max(at_ns, span[0]))]
        server.records += [opened, *frames]
        if framing != SseEvents.name:
            server.records.append(Close(at_ns=span[1], by=sender, how="eof", stream=number))
        elif frames:
            server.with_events.append((span[0], frames))

    def _session(self, number: int, origin: str, server: _HarServer) -> list[SessionRecord]:
        timed = server.sorted_records()
        begin_ns = timed[0].at_ns
        facts = {
            "bytes": RECONSTRUCTED, "senders": EXACT, "times": RECONSTRUCTED, "ends": MISSING, "noise": EXACT,
            "process": MISSING, "heads": RECONSTRUCTED, "beginning": EXACT if server.begins else MISSING,
        }  # fmt: skip
        url = origin + server.path
        ends = {"url": server.behind, "listen": url} if server.behind else {"url": url}
        ends |= {} if server.is_mcp or not server.is_model else {"leg": "model"}
        label = urlsplit(ends["url"]).netloc.rpartition("@")[2]
        head = header(self._source, number, label=label, wall_ns=begin_ns, facts=facts, tapped={"transport": "http", **ends})
        records: list[SessionRecord] = [(number, head)]
        end_ns = timed[-1].at_ns - begin_ns
        for record in timed:
            record.at_ns -= begin_ns
            if isinstance(record, Frame):
                record.first_ns = record.at_ns
            elif isinstance(record, Gap):
                record.since_ns -= begin_ns
            records.append((number, record))
        return [*records, (number, End(at_ns=end_ns, bytes=0, frames=0, why="end of the HAR"))]


def _json(data: bytearray) -> Any:
    """Return the value of a JSON text. msgspec is twice as fast, and refuses half a surrogate pair, which others write."""
    try:
        return msgspec.json.decode(data)
    except msgspec.MsgspecError:
        return json.loads(data.decode("utf-8-sig"))


def _times(entry: dict[str, Any]) -> tuple[int, int, int, int]:
    """Return when a request began and was sent, and when its response began and ended. Only browsers say how long it was blocked."""
    timings = entry.get("timings") or {}
    began_ns = started_ns = _time_ns(str(entry["startedDateTime"]))
    if isinstance(timings.get("blocked"), int | float):
        began_ns += sum(_span_ns(timings.get(name)) for name in ("blocked", "dns", "connect"))
    sent_ns = began_ns + _span_ns(timings.get("send"))
    head_ns = sent_ns + _span_ns(timings.get("wait"))
    return began_ns, sent_ns, head_ns, max(head_ns, started_ns + _span_ns(entry.get("time")))


def _connection(server: _HarServer, entry: dict[str, Any]) -> int:
    """Return the number of the connection of an entry. Chromium has the server's port as `connection`, and a number of its own."""
    name = str(entry.get("_connectionId") or entry.get("connection") or "")
    return server.connections.setdefault(name, len(server.connections) + 1)


def _fields(members: Any) -> list[tuple[str, str]]:
    """Return header fields; not those of HTTP/2's own, and none of codings that are undone already."""
    named = [(str(member["name"]), str(member["value"])) for member in members or ()]
    return [(name, value) for name, value in named if not name.startswith(":") and name.lower() not in _DECODED]


def _head(line: str, fields: list[tuple[str, str]]) -> bytes:
    lines = [line, *(f"{name}: {value}" for name, value in fields)]
    return ("\r\n".join(text.replace("\r", " ").replace("\n", " ") for text in lines) + "\r\n\r\n").encode("utf-8", "replace")


def _time_ns(text: str) -> int:
    at = datetime.fromisoformat(text)
    at = at if at.tzinfo else at.replace(tzinfo=UTC)
    return int(at.timestamp()) * 1_000_000_000 + at.microsecond * 1_000


def _span_ns(milliseconds: Any) -> int:
    """Return a duration of HAR; 0 for one that is unknown."""
    is_known = isinstance(milliseconds, int | float) and 0 < milliseconds < 1e12
    return round(milliseconds * _MS_NS) if is_known else 0


class _HarMessage(msgspec.Struct):
    """The members of a message that tell whether it asks or answers."""

    id: msgspec.Raw = _NO_RAW
    method: str | None = None


_decode = msgspec.json.Decoder(_HarMessage).decode


class _Content(msgspec.Struct, kw_only=True):
    """The content of a response, as a HAR has it. `is_named` is true if its type names a character set."""

    content: dict[str, Any]
    fields: list[tuple[str, str]]
    messages: Any
    creator: str
    end_ns: int

    @property
    def is_absent(self) -> bool:
        """True if there was a body that the HAR does not have."""
        return not self.content.get("text") and not self.messages and self.content.get("size") != 0

    @property
    def is_events(self) -> bool:
        """True if its type is that of event streams."""
        return body_framing(_header_value(self.fields, "content-type")) == SseEvents.name

    @property
    def size_bytes(self) -> int:
        """Its size as far as it is known, else 0."""
        size = self.content.get("size")
        return size if isinstance(size, int) and 0 < size < 1 << 40 else 0

    def pieces(self) -> list[tuple[bytes, int]]:
        """Return its frames, each with its time."""
        times = [_seconds_ns(message.get("time")) for message in self.messages] if isinstance(self.messages, list) else []
        content_type = _header_value(self.fields, "content-type")
        framing = body_framing(content_type)
        body = self._body(is_events=framing == SseEvents.name, content_type=content_type)
        if framing != SseEvents.name:
            return [(body, self.end_ns)]
        if not body and times:  # as browsers write a stream that they do not keep
            return [(_event(message), at_ns or self.end_ns) for message, at_ns in zip(self.messages, times, strict=True)]
        machine = FRAMINGS[framing]()
        events = [*machine.feed(body), *machine.close()]
        due = iter(times if len(times) == sum(parse(event).data is not None for event in events) else ())
        pieces: list[tuple[bytes, int]] = []
        for event in events:
            at_ns = next(due, 0) if parse(event).data is not None else 0
            pieces.append((event, at_ns or (pieces[-1][1] if pieces and times else self.end_ns)))
        return pieces

    def _body(self, *, is_events: bool, content_type: bytes | None) -> bytes:
        text = str(self.content.get("text") or "")
        if self.content.get("encoding") == "base64":
            return b64decode(text)
        size = self.content.get("size")
        has_no_charset = b"charset" not in (content_type or b"").lower()
        is_misread = is_events and has_no_charset and self.creator == PLAYWRIGHT
        return _encoded(text, (size, _sum(size, self.content.get("compression"))), is_misread=is_misread)


class _Reactions:
    """Requests of a client to one server that it sent because of an event: the first to an endpoint, and answers."""

    __slots__ = ("_answers", "_posts")

    def __init__(self) -> None:
        self._posts: dict[str, int] = {}
        self._answers: dict[bytes, list[int]] = {}

    def add(self, at_ns: int, target: str, body: bytes) -> None:
        """Take a request."""
        self._posts[target] = min(at_ns, self._posts.get(target, at_ns))
        if (b'"result"' in body or b'"error"' in body) and (message := _read(body)) is not None and message.method is None:
            insort(self._answers.setdefault(bytes(message.id), []), at_ns)

    def settle(self, events: list[Frame], begin_ns: int) -> None:
        """Let each event of a stream that begins at `begin_ns` have come before the client reacted to it, or to one after it."""
        bound_ns = None
        for event in reversed(events):
            reaction_ns = self._reaction_ns(event.data, begin_ns)
            if reaction_ns is not None and (bound_ns is None or reaction_ns <= bound_ns):
                bound_ns = reaction_ns - 1
            if bound_ns is not None and event.at_ns > bound_ns:
                event.at_ns = event.first_ns = max(begin_ns, bound_ns)

    def _reaction_ns(self, event: bytes, begin_ns: int) -> int | None:
        """Return when the client reacted to an event, as far as that is known."""
        if b'"method"' in event and b'"id"' in event:
            message = _read(parse(event).data or b"")
            times = self._answers.get(bytes(message.id), []) if message is not None and message.method is not None else []
            return next(iter(times[bisect_left(times, begin_ns) :]), None)
        if b"endpoint" in event[:100] and (endpoint := parse(event)).type == "endpoint":
            url = urlsplit(endpoint.text.strip())
            return self._posts.get(url.path + (f"?{url.query}" if url.query else ""))
        return None


def _encoded(text: str, sizes: tuple[Any, ...], *, is_misread: bool = False) -> bytes:
    """Return the bytes of a text.

    mitmproxy decodes events as Latin-1, though they are UTF-8: their number in bytes gives it away. `is_misread` says that the
    program is known to do that, or to take them for Windows-1252.
    """
    data = text.encode("utf-8", "surrogatepass")
    if len(text) == len(data) or (not is_misread and (len(data) in sizes or len(text) not in sizes)):
        return data
    try:
        wire = text.translate(_WINDOWS_1252).encode("latin-1")
        wire.decode("utf-8")
    except UnicodeError:
        return data
    return wire


def _header_value(fields: list[tuple[str, str]], name: str) -> bytes | None:
    """Return the value of the first header field of this name."""
    return next((value.encode("utf-8", "replace") for other, value in fields if other.lower() == name), None)


def _read(data: bytes) -> _HarMessage | None:
    try:
        return _decode(data)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None


def _sum(size: Any, more: Any) -> int:
    return size + more if isinstance(size, int) and isinstance(more, int) else -1


def _event(message: dict[str, Any]) -> bytes:
    lines = [f"event: {message['eventName']}"] if message.get("eventName") not in (None, "", "message") else []
    lines += [f"id: {message['eventId']}"] if message.get("eventId") else []
    lines += [f"data: {line}" for line in str(message.get("data") or "").split("\n")]
    return ("\n".join(lines) + "\n\n").encode("utf-8", "surrogatepass")


def _seconds_ns(seconds: Any) -> int:
    return round(seconds * 1e9) if isinstance(seconds, int | float) and 0 < seconds < 1e11 else 0
