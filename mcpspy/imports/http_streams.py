"""HTTP on one TCP connection: bytes of both directions in, records of its transactions out, cut by the code of the taps.

The taps' recorder of a stream is given in by the caller, because it belongs to another room. After bytes that are not HTTP, or are
missing, nothing more is read until the client begins a request again.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from functools import lru_cache
from typing import Final, Protocol

import msgspec

from ..records import CLIENT, SERVER, Frame, Gap, Note, Open, Partial, Record, Side
from ..wire.http import HttpMessages
from ..wire.http_body import Body, BodyEnd, IncompleteMessage, RefusedBytes, body_framing
from ..wire.http_head import RequestHead, ResponseHead
from ..wire.sse import SseEvents

PARTIAL_NS: Final = 5_000_000_000
"""A frame that waits so long for its end is recorded as far as it has come, as a tap does."""

MAX_EARLY_BYTES: Final = 1 << 22
"""So many bytes of responses wait for a request that the file has later."""

MAX_REQUESTS: Final = 10_000
"""So many requests wait for their responses on one connection."""

_END_OF_HEAD: Final = b"\r\n\r\n"

_framing = lru_cache(256)(body_framing)
"""The framing of a body, remembered: the same few fields come with every message."""

_begins_request: Final = re.compile(rb"[A-Z]{3,16} [!-~]{1,8000} HTTP/1\.[01]\r\n").match
_may_begin_request: Final = re.compile(rb"[A-Z]{1,16}(?: [!-~]{0,8000}(?: [HTP/1.0]{0,8}\r?)?)?").fullmatch
_begins_response: Final = re.compile(rb"HTTP/1\.[01] \d{3}").match
_is_authority: Final = re.compile(rb"(?:\[[0-9A-Fa-f:.]{2,45}\]|[0-9A-Za-z._~%!$&'()*+,;=-]{1,255})(?::\d{1,5})?").fullmatch
_absolute: Final = re.compile(rb"https?://([^/?#]*)([^?#]*)").match
announces_endpoint: Final = re.compile(rb"event: ?endpoint[\r\n]").match
"""Match the event with which a server of HTTP+SSE begins. Its client may not have named events in Accept: curl does not."""


class StreamMaker(Protocol):
    """The taps' maker of the records of one stream."""

    is_open: bool
    framing: str

    @property
    def waits_since_ns(self) -> int | None: ...

    def partial(self, now_ns: int) -> Partial: ...

    def open(self, now_ns: int, head: bytes, *, transaction: int, connection: int) -> Open: ...

    def feed(self, body: Body, now_ns: int) -> list[Record]: ...

    def close(
        self, now_ns: int, by: str, how: str, *, trailers: bytes = b"", missing_bytes: int | None = None
    ) -> list[Record]: ...


class StreamMakerClass(Protocol):
    """The class of such makers."""

    def __call__(self, number: int, sender: Side, framing: str, *, flows: bool = False) -> StreamMaker: ...


class Counters:
    """The last numbers that were given in one capture."""

    __slots__ = ("connection", "stream", "transaction")

    def __init__(self) -> None:
        self.connection = self.transaction = 0
        self.stream = -1

    def next_stream(self) -> int:
        self.stream += 1
        return self.stream

    def next_transaction(self) -> int:
        self.transaction += 1
        return self.transaction


class _Transaction(msgspec.Struct):
    """The number and the method of a request, and its response, which is None until its head has come."""

    number: int
    method: bytes
    response: StreamMaker | None = None


class HttpConnection:
    """The transactions on the connection `number`. `client` and `server` take bytes, `lose` what the file lacks; `end` is the last.

    `is_mcp` becomes true when a head, a body or an event looks like MCP's, `is_model` when a body looks like a prompt.
    """

    __slots__ = (
        "_begun", "_counters", "_early", "_early_bytes", "_first", "_is_blind", "_is_lost", "_left", "_make", "_requests",
        "_responses", "_sending", "_waiting", "is_answered_late", "is_mcp", "is_model", "number", "why_not",
    )  # fmt: skip

    def __init__(self, number: int, counters: Counters, make: StreamMakerClass, *, is_begun: bool) -> None:
        self.number = number
        self.is_mcp = self.is_model = False
        self.is_answered_late = False
        """True if the client closed its half, and responses came after that of which it is not known whether the client took them."""
        self.why_not = ""
        """The reason for which its bytes are not read; empty while they are."""
        self._counters = counters
        self._make = make
        self._first: RequestHead | None = None  # that looks like MCP's; until then the latest
        self._requests = HttpMessages.of_requests()
        self._responses = HttpMessages.of_responses()
        self._waiting: deque[_Transaction] = deque()
        self._sending: StreamMaker | None = None
        self._begun = b""  # while it is lost: what may be the beginning of a request
        self._early: list[tuple[int, bytes]] = []
        self._early_bytes = 0
        self._left: dict[
            int, bool
        ] = {}  # transactions whose client closed its half before: whether they were answered after that
        self._is_lost = True  # until a request begins
        self._is_blind = not is_begun  # a request may have come that was not read: the next response may be its answer

    def server_named(self, address: str) -> tuple[str, str]:
        """Return host and port of the server, as the first request that looks like MCP's names it, and the path of that.

        `address` names a server that the request does not name.
        """
        if self._first is None:
            return address, ""
        authority, path = _named_by(self._first)
        return authority or address, path

    def client(self, at_ns: int, data: bytes) -> list[Record]:
        """Take bytes of the client."""
        if self._is_lost:
            data, was_held = self._begun + data, bool(self._begun)
            if not _begins_request(data):
                self._begun = data if _may_begin_request(data) else b""
                self.why_not = self.why_not or _other_protocol(data)
                self._is_blind = True
                return []
            if was_held:
                self._begun, self.why_not = b"", ""
            self._restart()
        if len(self._waiting) > MAX_REQUESTS:
            return self._give_up(at_ns, f"more than {MAX_REQUESTS} requests wait for their responses")
        records: list[Record] = []
        for piece in self._requests.feed(data):
            if isinstance(piece, RequestHead):
                self._begin(piece, at_ns, records)
            elif isinstance(piece, Body) and self._sending is not None:
                self._look(piece.payload)
                records += self._sending.feed(piece, at_ns)
            elif isinstance(piece, BodyEnd) and self._sending is not None:
                records += self._ended_request(self._sending.close(at_ns, CLIENT, "eof", trailers=piece.trailers))
            elif isinstance(piece, RefusedBytes):
                records += self._give_up(at_ns, f"a request is not valid HTTP: {piece.reason}")
                return records
        if self._early:
            early, self._early, self._early_bytes = self._early, [], 0
            for came_ns, waiting in early:
                records += self.server(max(at_ns, came_ns), waiting)
        return records

    def server(self, at_ns: int, data: bytes) -> list[Record]:
        """Take bytes of the server."""
        if not self._waiting and not self._is_blind and _begins_response(data) and self._early_bytes < MAX_EARLY_BYTES:
            self._early.append((at_ns, data))  # packets of two directions may be swapped in the file
            self._early_bytes += len(data)
            return []
        if self._is_lost:
            return []
        records: list[Record] = []
        for piece in self._responses.feed(data):
            if isinstance(piece, ResponseHead):
                self._answer(piece, at_ns, records)
            elif isinstance(piece, Body) and self._waiting and (response := self._waiting[0].response) is not None:
                self.is_mcp = self.is_mcp or announces_endpoint(piece.payload) is not None
                records += response.feed(piece, at_ns)
            elif isinstance(piece, BodyEnd) and self._waiting:
                records += self._end_response(at_ns, SERVER, "eof", trailers=piece.trailers)
            elif isinstance(piece, RefusedBytes):
                records += self._give_up(at_ns, f"a response is not valid HTTP: {piece.reason}")
                break
        return records

    def lose(self, at_ns: int, lost_bytes: int, side: Side) -> list[Record]:
        """Take note of bytes of one side that the file does not have."""
        if self._is_lost:
            return []
        why = f"{lost_bytes} bytes of the {side} on connection {self.number} are not in the file"
        gap = Gap(at_ns=at_ns, since_ns=at_ns, frames=1, bytes=lost_bytes, why=why)
        return [gap, *self._give_up(at_ns, "")]

    def half_close(self, at_ns: int) -> list[Record]:
        """Take the end of the client's half of the connection: the client may wait for its response, or have left."""
        if self._is_lost:
            return []
        records = self._end_request(at_ns, CLIENT, "eof")
        text = "the client closed its half of the connection; it may wait for the response, or have left"
        for transaction in self._waiting:
            self._left[transaction.number] = False
            records.append(self._note(at_ns, "half-closed", text, transaction.number, CLIENT))
        return records

    def take(self, at_ns: int, *, is_taken: bool) -> list[Record]:
        """Take note whether the client took the responses that came after it had closed its half."""
        topic = "answer-taken" if is_taken else "answer-refused"
        text = f"the client that had closed its half of the connection {'took the' if is_taken else 'had left: it took no'} response"
        answered = [number for number, is_answered in self._left.items() if is_answered]
        self._left.clear()
        self.is_answered_late = False
        return [self._note(at_ns, topic, text, number, CLIENT) for number in answered]

    def end(self, at_ns: int, by: Side | None, how: str) -> list[Record]:
        """Take the end of the connection, and who ended it; None: the file ends before."""
        if self._is_lost or by is None:
            return []
        records = self._end_request(at_ns, by, how)
        broken = how if how != "eof" else "broken" if by == CLIENT else "abort"
        for answer in self._responses.close():
            response = self._waiting[0].response if self._waiting else None
            if isinstance(answer, BodyEnd) and response is not None:
                is_cut = by == CLIENT and response.framing == SseEvents.name  # it would have gone on
                records += self._end_response(at_ns, by, broken) if is_cut else self._end_response(at_ns, SERVER, how)
            elif isinstance(answer, IncompleteMessage) and response is not None:
                records += self._end_response(at_ns, by, broken, missing_bytes=answer.missing_bytes)
        for transaction in self._waiting:
            if transaction.response is None:
                text = f"{by} closed the connection before the response came"
                records.append(self._note(at_ns, "left", text, transaction.number, by))
        self._waiting.clear()
        self._is_lost = True
        return records

    def _end_request(self, at_ns: int, by: Side, how: str) -> list[Record]:
        """End a request that is not whole."""
        cut = next((piece for piece in self._requests.close() if isinstance(piece, IncompleteMessage)), None)
        if cut is None or self._sending is None:
            return []
        broken = how if how != "eof" else "broken" if by == SERVER else "abort"
        request, self._sending = self._sending, None
        return request.close(at_ns, by, broken, missing_bytes=cut.missing_bytes)

    def _note(self, at_ns: int, topic: str, text: str, transaction: int, by: Side) -> Note:
        extra = {"connection": self.number, "transaction": transaction, "by": by}
        return Note(at_ns=at_ns, topic=topic, text=text, extra=extra)

    def overdue(self, at_ns: int) -> list[Record] | None:
        """Return what has come of frames that have waited for their end for five seconds; None if nothing waits any more."""
        records: list[Record] = []
        waits = False
        for stream in self._under_way():
            since_ns = stream.waits_since_ns
            if since_ns is None:
                continue
            if since_ns + PARTIAL_NS <= at_ns:
                records.append(stream.partial(at_ns))
            else:
                waits = True
        return records if records or waits else None

    def _under_way(self) -> Iterator[StreamMaker]:
        response = self._waiting[0].response if self._waiting else None
        is_its_own = len(self._waiting) == 1
        for stream in (self._sending, response) if is_its_own else (response, self._sending):
            if stream is not None and stream.is_open:
                yield stream

    def _restart(self) -> None:
        self._requests, self._responses = HttpMessages.of_requests(), HttpMessages.of_responses()
        self._waiting.clear()
        self._left.clear()
        self.is_answered_late = False
        self._sending = None
        self._is_lost = self._is_blind = False

    def _give_up(self, at_ns: int, why: str) -> list[Record]:
        """End what is under way, and read on when a request begins."""
        records = [record for stream in self._under_way() for record in stream.close(at_ns, "mcpspy", "abort")]
        if why:
            extra = {"connection": self.number}
            records.append(Note(at_ns=at_ns, topic="import", text=f"{why}; what follows on it is left out", extra=extra))
        self._waiting.clear()
        self._sending = None
        self._is_lost = self._is_blind = True
        return records

    def _ended_request(self, records: list[Record]) -> list[Record]:
        """Take note of a request's end. What shows that it is MCP's may have come in pieces."""
        self._sending = None
        for record in records:
            if isinstance(record, Frame):
                self._look(record.data)
        return records

    def _look(self, body: bytes) -> None:
        """Take note of what the body of a request looks like."""
        self.is_mcp = self.is_mcp or b'"jsonrpc"' in body
        self.is_model = self.is_model or is_prompt(body)

    def _note_request(self, head: RequestHead) -> None:
        if not self.is_mcp:
            self._first = head
            lowered = head.lowered
            is_stream = head.method == b"GET" and b"text/event-stream" in lowered and b"\r\naccept:" in lowered
            self.is_mcp = is_stream or b"\r\nmcp-" in lowered
        self._responses.expect(head.method)

    def _begin(self, head: RequestHead, at_ns: int, records: list[Record]) -> None:
        self._note_request(head)
        framing = _framing(head.value(b"content-type"), head.value(b"content-encoding"))
        request = self._make(self._counters.next_stream(), CLIENT, framing)
        transaction = _Transaction(self._counters.next_transaction(), head.method)
        records.append(request.open(at_ns, head.raw, transaction=transaction.number, connection=self.number))
        self._waiting.append(transaction)
        self._sending = request

    def _answer(self, head: ResponseHead, at_ns: int, records: list[Record]) -> None:
        transaction = self._waiting[0]
        content_type = head.value(b"content-type")
        encoding = head.value(b"content-encoding")
        framing = _framing(content_type, encoding)
        flows = encoding is not None and framing == "body" and _framing(content_type) == "sse"
        response = self._make(self._counters.next_stream(), SERVER, framing, flows=flows)
        records.append(response.open(at_ns, head.raw, transaction=transaction.number, connection=self.number))
        if head.is_interim:
            records += response.close(at_ns, SERVER, "eof")
            return
        transaction.response = response
        if head.ends_by == "upgrade":
            records += self._end_response(at_ns, SERVER, "eof")
            self._is_lost = True

    def _end_response(
        self, at_ns: int, by: str, how: str, *, trailers: bytes = b"", missing_bytes: int | None = None
    ) -> list[Record]:
        transaction = self._waiting.popleft()
        if by == SERVER and transaction.number in self._left:
            self._left[transaction.number] = self.is_answered_late = True
        response = transaction.response
        return [] if response is None else response.close(at_ns, by, how, trailers=trailers, missing_bytes=missing_bytes)


def is_prompt(body: bytes) -> bool:
    """Return whether a body looks like that of a call of a model: it names one, and has messages or an input."""
    return b'"model"' in body and (b'"messages"' in body or b'"input"' in body) and b'"jsonrpc"' not in body


def _named_by(head: RequestHead) -> tuple[str, str]:
    """Return host and port that a request names, and its path. What is in its target counts (RFC 9112, section 3.2.2)."""
    whole = _absolute(head.target)
    host, path = whole.groups() if whole is not None else (head.value(b"host") or b"", head.target.partition(b"?")[0])
    return host.decode("latin-1") if _is_authority(host) else "", path.decode("latin-1")


def _other_protocol(data: bytes) -> str:
    """Name what a client begins with that is no request of HTTP/1.x."""
    if data[:1] == b"\x16" and data[1:2] == b"\x03":
        return "TLS"
    if data.startswith(b"PRI * HTTP/2"):
        return "HTTP/2"
    return "no HTTP"
