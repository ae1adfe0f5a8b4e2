"""HAR 1.2, of browsers, mitmproxy and mcpspy itself: a file in, records of one session for each server out.

A HAR has heads and bodies as texts, with times to the millisecond. Heads are written anew from it, in HTTP/1.1, and bodies are what
is left of them after decoding; the chunks are not in it, nor who ended a stream. Events have times of their own where the file has
`_eventSourceMessages`; else they have that of the end. Source: the specification of HAR 1.2 by Jan Odvarko.
"""

from __future__ import annotations

import json
from base64 import b64decode
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import urlsplit

from ..records import CLIENT, SERVER, Close, End, Frame, Note, Open, Record, Side
from ..wire.body import body_framing
from ..wire.framing import FRAMINGS
from ..wire.sse import SseEvents, parse
from .source import EXACT, MISSING, RECONSTRUCTED, SessionRecord, Source, header
from .whole_file import WholeFileImporter

_MS_NS: Final = 1_000_000
_DECODED: Final = ("content-encoding",)
_ENDED: Final = "connection closed by "
"""The words of mcpspy for an entry without a response."""

TimedRecord = tuple[int, Record]


def is_har(head: bytes) -> bool:
    """Return whether a file that begins with these bytes is a HAR."""
    begin = head[:4096].lstrip(b"\xef\xbb\xbf \t\r\n")
    return begin.startswith(b"{") and b'"log"' in begin and (b'"creator"' in begin or b'"entries"' in begin)


class _HarServer:
    """The records of one server, with their times in Unix nanoseconds."""

    __slots__ = ("begins", "connections", "is_mcp", "path", "records", "streams", "transactions")

    def __init__(self) -> None:
        self.records: list[TimedRecord] = []
        self.connections: dict[str, int] = {}
        self.streams = -1
        self.transactions = 0
        self.path = ""
        self.is_mcp = self.begins = False


class HarImporter(WholeFileImporter):
    """Records from the bytes of a HAR, which is one JSON value; each after the number of its session."""

    __slots__ = ("_servers",)

    def __init__(self, source: Source) -> None:
        super().__init__(source)
        self._servers: dict[str, _HarServer] = {}

    def close(self) -> list[SessionRecord]:
        for entry in self._entries():
            try:
                self._entry(entry)
            except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
                self._count("an entry that is not as HAR 1.2 has it")
        spoken = [(origin, server) for origin, server in self._servers.items() if server.is_mcp]
        return [record for number, (origin, server) in enumerate(spoken) for record in self._session(number, origin, server)]

    def _entries(self) -> list[Any]:
        if (data := self._whole()) is None:
            return []
        try:
            entries = json.loads(data.decode("utf-8-sig"))["log"]["entries"]
        except (ValueError, TypeError, KeyError, RecursionError):
            self._count("a file that is no JSON, or has no log.entries")
            return []
        return entries if isinstance(entries, list) else []

    def _entry(self, entry: dict[str, Any]) -> None:
        """Take one request and its response."""
        request, response = entry["request"], entry["response"]
        url = urlsplit(str(request["url"]))
        server = self._servers.setdefault(f"{url.scheme}://{url.netloc}", _HarServer())
        began_ns = _time_ns(str(entry["startedDateTime"]))
        timings = entry.get("timings") or {}
        sent_ns = began_ns + _span_ns(timings.get("send"))
        head_ns = sent_ns + _span_ns(timings.get("wait"))
        end_ns = max(head_ns, began_ns + _span_ns(entry.get("time")))
        server.transactions += 1
        connection = server.connections.setdefault(str(entry.get("connection", "")), len(server.connections) + 1)
        target = (url.path or "/") + (f"?{url.query}" if url.query else "")
        fields = _fields(request.get("headers"))
        body = _encoded(str((request.get("postData") or {}).get("text") or ""), (request.get("bodySize"),))
        opening = _head(f"{request['method']} {target} HTTP/1.1", fields)
        if b'"jsonrpc"' in body and not server.is_mcp:
            server.is_mcp, server.path = True, url.path
            server.begins = b'"initialize"' in body or b"server/discover" in body
        self._stream(server, CLIENT, connection, opening, fields, [(body, sent_ns)], (began_ns, sent_ns))
        status = response.get("status")
        if not isinstance(status, int) or not 100 <= status <= 999:
            error = str(response.get("_error") or entry.get("_error") or "no response")
            by = error.removeprefix(_ENDED) if error.startswith(_ENDED) else "server"
            extra = {"connection": connection, "transaction": server.transactions, "by": by}
            server.records.append((end_ns, Note(at_ns=0, topic="left", text=error, extra=extra)))
            return
        fields = _fields(response.get("headers"))
        opening = _head(f"HTTP/1.1 {status} {response.get('statusText') or ''}".rstrip(), fields)
        pieces = _pieces(response.get("content") or {}, fields, entry, end_ns)
        self._stream(server, SERVER, connection, opening, fields, pieces, (head_ns, end_ns))

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
        number, framing = server.streams, body_framing(_value(fields, "content-type"))
        opened = Open(
            at_ns=0, stream=number, sender=sender, name="request" if sender == CLIENT else "response", framing=framing,
            connection=connection, transaction=server.transactions, head=head,
        )  # fmt: skip
        server.records.append((span[0], opened))
        server.records += [(max(at_ns, span[0]), Frame(number, 0, 0, data)) for data, at_ns in pieces if data]
        if framing != SseEvents.name:
            server.records.append((span[1], Close(at_ns=0, by=sender, how="eof", stream=number)))

    def _session(self, number: int, origin: str, server: _HarServer) -> list[SessionRecord]:
        timed = sorted(server.records, key=lambda record: record[0])
        begin_ns = timed[0][0]
        facts = {
            "bytes": RECONSTRUCTED, "senders": EXACT, "times": RECONSTRUCTED, "ends": MISSING, "noise": EXACT,
            "process": MISSING, "heads": RECONSTRUCTED, "beginning": EXACT if server.begins else MISSING,
        }  # fmt: skip
        tapped = {"transport": "http", "url": origin + server.path}
        head = header(self._source, number, label="", wall_ns=begin_ns, facts=facts, tapped=tapped)
        records: list[SessionRecord] = [(number, head)]
        for wall_ns, record in timed:
            record.at_ns = wall_ns - begin_ns
            if isinstance(record, Frame):
                record.first_ns = record.at_ns
            records.append((number, record))
        end = End(at_ns=timed[-1][0] - begin_ns, bytes=0, frames=0, why="end of the HAR")
        return [*records, (number, end)]


def _pieces(
    content: dict[str, Any], fields: list[tuple[str, str]], entry: dict[str, Any], end_ns: int
) -> list[tuple[bytes, int]]:
    """Return the frames of a response, each with its time."""
    text = str(content.get("text") or "")
    sizes = (content.get("size"), _sum(content.get("size"), content.get("compression")))
    body = b64decode(text) if content.get("encoding") == "base64" else _encoded(text, sizes)
    messages = entry.get("_eventSourceMessages")
    times = [_seconds_ns(message.get("time")) for message in messages] if isinstance(messages, list) else []
    framing = body_framing(_value(fields, "content-type"))
    if framing != SseEvents.name:
        return [(body, end_ns)]
    if not body and isinstance(messages, list):  # as browsers write a stream that they do not keep
        return [(_event(message), at_ns or end_ns) for message, at_ns in zip(messages, times, strict=True)]
    machine = FRAMINGS[framing]()
    events = [*machine.feed(body), *machine.close()]
    due = iter(times if len(times) == sum(parse(event).data is not None for event in events) else ())
    pieces: list[tuple[bytes, int]] = []
    for event in events:
        at_ns = next(due, 0) if parse(event).data is not None else 0
        pieces.append((event, at_ns or (pieces[-1][1] if pieces and times else end_ns)))
    return pieces


def _encoded(text: str, sizes: tuple[Any, ...]) -> bytes:
    """Return the bytes of a text. mitmproxy decodes events as Latin-1, though they are UTF-8: their number in bytes gives it away."""
    data = text.encode("utf-8", "surrogatepass")
    if len(text) == len(data) or len(data) in sizes or len(text) not in sizes:
        return data
    try:
        wire = text.encode("latin-1")
        wire.decode("utf-8")
    except UnicodeError:
        return data
    return wire


def _sum(size: Any, more: Any) -> int:
    return size + more if isinstance(size, int) and isinstance(more, int) else -1


def _event(message: dict[str, Any]) -> bytes:
    lines = [f"event: {message['eventName']}"] if message.get("eventName") not in (None, "", "message") else []
    lines += [f"id: {message['eventId']}"] if message.get("eventId") else []
    lines += [f"data: {line}" for line in str(message.get("data") or "").split("\n")]
    return ("\n".join(lines) + "\n\n").encode("utf-8", "surrogatepass")


def _fields(members: Any) -> list[tuple[str, str]]:
    """Return header fields; not those of HTTP/2's own, and none of codings that are undone already."""
    named = [(str(member["name"]), str(member["value"])) for member in members or ()]
    return [(name, value) for name, value in named if not name.startswith(":") and name.lower() not in _DECODED]


def _value(fields: list[tuple[str, str]], name: str) -> bytes | None:
    return next((value.encode("utf-8", "replace") for other, value in fields if other.lower() == name), None)


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


def _seconds_ns(seconds: Any) -> int:
    return round(seconds * 1e9) if isinstance(seconds, int | float) and 0 < seconds < 1e11 else 0
