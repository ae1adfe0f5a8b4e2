"""The short way of the usual messages through an HTTP tap. To understand mcpspy, skip this module.

`ConnectionPair` and `ResponseRelay` are the general path. They can take every read, and what they do with it is what mcpspy does.
This module does the same with the reads that traffic mostly consists of, in a third of the time, and leaves all others to them,
untouched. tests/live/http/test_usual.py holds the two against each other, byte for byte and record for record.

A usual read is one of these, and nothing more or less:

- a POST with a known head and its whole body; or only that head; or a whole body whose head came before
- the response to a POST, in the same three ways
- the same where the response is a stream of events: its head, alone, with the first event, or with all there is; and its end,
  alone or with the last event. Events between them have a short way in `ConnectionPair`.

A head is known from the third time on. All that depends on it was decided by the general path: that it is sound, may pass, and how
it is forwarded; that nothing in it is unusual; that its body is not looked into. What is recorded of it is kept rendered and
redacted. Heads that differ only in the digits of their Content-Length are one head; if they are as many, so that offsets hold.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable
from typing import Final, Protocol

from ...compiled import compiled
from ...records import CLIENT, SERVER, Open, Side, Sink
from ...wire.http import HttpMessages
from ...wire.http_head import RequestHead, ResponseHead
from ...wire.sse import event_of_chunk
from .recorder import Numbers, StreamRecorder
from .transaction import ProxiedTransaction, RequestPlan, ResponsePlan

IS_ON = True
"""Tests set it to False: then every read takes the general path."""

MIN_SIGHTS = 2
"""A head is learnt when it comes so often. Learning one takes 30 µs, and there are clients that never send the same head twice."""

MAX_KNOWN = 256
MAX_KNOWN_BYTES = 1 << 12
"""So many heads, up to this size, are known or counted; then all are forgotten."""

_EMPTY_LINE: Final = b"\r\n\r\n"
_LENGTH: Final = b"\r\nContent-Length: "
_LOWER_LENGTH: Final = b"\r\ncontent-length: "
_ZEROS: Final = [b"0" * count for count in range(16)]
_LAST_CHUNK: Final = b"0\r\n\r\n"
_CHUNKED: Final = b"\r\ntransfer-encoding: chunked\r\n"
_UNUSUAL: Final = (b"\r\nexpect:", b"\r\nupgrade:", b"\r\ntrailer:")

_event_of_chunk = compiled(event_of_chunk)

_Key = tuple[bytes, bytes, int]
_NO_KEY: Final[_Key] = (b"", b"", 0)

_ENDED: Final = StreamRecorder(-1, CLIENT, "body")
"""The recorder of a request that came whole: nothing is left to record."""
_ENDED.is_open = False


class _Rendered(Protocol):
    """An `open` record that the sink has rendered."""

    def opening(self, connection: int, transaction: int, length: str) -> str: ...


class KnownHead:
    """A head that came before, with whatever digits in its Content-Length. `before` and `after` these is what to forward.

    `opening` renders its record. `is_sse` if a stream of events follows, `is_changed` if it is not forwarded as it came.
    """

    __slots__ = ("after", "before", "is_changed", "is_sse", "opening")

    def __init__(self, raw: bytes, forwarded: bytes, framing: str, rendered: _Rendered) -> None:
        self.opening = rendered.opening
        self.is_sse = framing == "sse"
        self.is_changed = forwarded != raw
        begin, end = _digits(forwarded, len(forwarded))
        self.before, self.after = forwarded[:begin], forwarded[end:]


class KnownHeads:
    """The heads that a tap knows, under their keys; those of responses are known for each name that clients have for the tap."""

    __slots__ = ("_sights", "_template", "message", "requests", "responses")

    def __init__(self, sink: Sink) -> None:
        self.requests: dict[bytes, tuple[KnownHead, RequestPlan]] = {}
        self.responses: dict[tuple[bytes, str], KnownHead] = {}
        self._sights: dict[Hashable, int] = {}
        self._template: Callable[[Open, str], _Rendered | None] = getattr(sink, "template", _no_template)
        self.message: Callable[[int, int, int, str, bytes, str, bool], bool] = _no_message
        if IS_ON:
            self.message = getattr(sink, "message", _no_message)

    def forget(self) -> None:
        """Forget all heads."""
        self._sights.clear()
        self.requests.clear()
        self.responses.clear()

    def see_request(self, head: RequestHead, plan: RequestPlan) -> None:
        """Take note of a request's head that came the general way, and learn it if it is usual and due."""
        key, digits, _ = _keyed(head.raw)
        if not digits or not self._is_due(key, head.raw) or plan.refusal is not None or plan.proves_address:
            return
        if plan.is_usual_post and head.ends_by == "length" and _is_usual(head.lowered) and plan.framing == "body":
            known = self._known(head.raw, plan.forwarded, plan.framing, CLIENT, digits)
            if known is not None:
                self.requests[key] = known, plan

    def see_response(self, head: ResponseHead, plan: ResponsePlan, transaction: RequestPlan) -> None:
        """Take note of a response's head that came the general way, and learn it if it is usual and due."""
        raw_key, digits, _ = _keyed(head.raw)
        key = raw_key, transaction.rewriting.own
        if not transaction.is_usual_post or not self._is_due(key, head.raw) or head.is_interim or plan.flows:
            return
        is_body = digits and head.ends_by == "length" and plan.framing == "body"
        is_sse = head.ends_by == "chunks" and plan.framing == "sse" and _CHUNKED in head.lowered
        if (is_body or is_sse) and _is_usual(head.lowered):
            known = self._known(head.raw, plan.forwarded, plan.framing, SERVER, digits)
            if known is not None:
                self.responses[key] = known

    def _is_due(self, key: Hashable, raw: bytes) -> bool:
        """Count a head; return True the one time that it is to be learnt."""
        if self.message is _no_message or len(raw) > MAX_KNOWN_BYTES:
            return False
        sights = self._sights.get(key, 0) + 1
        if sights == 1 and len(self._sights) >= MAX_KNOWN:
            self.forget()
        self._sights[key] = sights
        return sights == MIN_SIGHTS

    def _known(self, raw: bytes, forwarded: bytes, framing: str, sender: Side, digits: bytes) -> KnownHead | None:
        is_changed = forwarded != raw
        if is_changed and _keyed(forwarded)[1] != digits:
            return None
        opening = Open(
            at_ns=0,
            stream=0,
            sender=sender,
            name="request" if sender == CLIENT else "response",
            framing=framing,
            head=raw,
            forwarded=forwarded if is_changed else None,
        )
        rendered = self._template(opening, digits.decode())
        return None if rendered is None else KnownHead(raw, forwarded, framing, rendered)


class UsualMessages:
    """The usual messages of one connection pair. `waiting` are its transactions without a whole response.

    `request` and `response` return what to forward, with everything recorded and counted, or None with nothing done.
    """

    __slots__ = (
        "_connection", "_heads", "_message", "_numbers", "_requests", "_responses", "_waiting", "is_streaming", "request_stream",
        "response_stream", "sending",
    )  # fmt: skip

    def __init__(
        self,
        heads: KnownHeads,
        numbers: Numbers,
        connection: int,
        requests: HttpMessages,
        responses: HttpMessages,
        waiting: deque[ProxiedTransaction],
    ) -> None:
        self._heads = heads
        self._message = heads.message
        self._numbers = numbers
        self._connection = connection
        self._requests = requests
        self._responses = responses
        self._waiting = waiting
        self.sending: ProxiedTransaction | None = None
        """After `request`: whose body is still to come."""
        self.is_streaming = False
        """After `response`: events may follow."""
        self.request_stream = self.response_stream = -1

    def request(self, data: bytes, now_ns: int, sending: ProxiedTransaction | None) -> bytes | None:
        """Take a read from the client. `sending` is the request whose body is still to come."""
        requests = self._requests
        if not requests.is_between:
            return self._request_body(data, now_ns, sending)
        key, digits, end = _keyed(data)
        known = self._heads.requests.get(key)
        if known is None:
            return None
        body = data[end:]
        length = int(digits)
        is_whole = len(body) == length
        if body and not is_whole:
            return None
        head, plan = known
        stream, number = self._numbers.last_stream + 1, self._numbers.last_transaction + 1
        opening = head.opening(self._connection, number, digits.decode())
        if not self._message(number, stream, now_ns, opening, body, CLIENT if is_whole else "", False):
            return None
        self._numbers.last_stream = self.request_stream = stream
        self._numbers.last_transaction = number
        if is_whole:
            transaction = ProxiedTransaction(number, plan, _ENDED)
            self.sending = None
        else:
            transaction = self.sending = ProxiedTransaction(number, plan, StreamRecorder(stream, CLIENT, "body"))
            requests.begin_body(length)
        self._waiting.append(transaction)
        self._responses.expect(b"POST")
        return b"%b%b%b%b" % (head.before, digits, head.after, body)

    def whole_request(self, data: bytes) -> tuple[RequestPlan, bytes] | None:
        """Return plan and body of a request that `request` would take, whole; None for another read. Nothing is done."""
        if not self._requests.is_between:
            return None
        key, digits, end = _keyed(data)
        known = self._heads.requests.get(key)
        return None if known is None or len(data) - end != int(digits) or len(data) == end else (known[1], data[end:])

    def whole_response(self, data: bytes) -> tuple[bytes, bool] | None:
        """Return the body of a response that `response` would take, whole, and whether it is an event; None for another read."""
        waiting = self._waiting
        if (
            not waiting
            or waiting[0].response is not None
            or not waiting[0].plan.is_usual_post
            or not self._responses.is_between
        ):
            return None
        key, digits, end = _keyed(data)
        head = self._heads.responses.get((key, waiting[0].plan.rewriting.own))
        if head is None or len(data) == end:
            return None
        if not head.is_sse:
            return (data[end:], False) if len(data) - end == int(digits) else None
        event = _event(data[end:], is_whole=True) if data.endswith(_LAST_CHUNK) else None
        return (event, True) if event else None

    def _request_body(self, data: bytes, now_ns: int, sending: ProxiedTransaction | None) -> bytes | None:
        """Take the whole body of a request whose head came before, and was sent on."""
        if sending is None or not sending.plan.is_usual_post or not self._requests.lacks(len(data)):
            return None
        if not sending.request.is_untouched:
            return None
        stream = sending.request.number
        if not self._message(sending.number, stream, now_ns, "", data, CLIENT, False):
            return None
        sending.request.is_open = False
        self._requests.end_body()
        self.sending = None
        self.request_stream = stream
        return data

    def response(self, data: bytes, now_ns: int) -> bytes | None:
        """Take a read from the upstream."""
        waiting = self._waiting
        if not waiting:
            return None
        transaction = waiting[0]
        if not transaction.plan.is_usual_post:
            return None
        if transaction.response is not None:
            return self._response_end(data, now_ns, transaction, transaction.response)
        if not self._responses.is_between:
            return None
        key, digits, end = _keyed(data)
        head = self._heads.responses.get((key, transaction.plan.rewriting.own))
        if head is None:
            return None
        body = data[end:]
        if not head.is_sse:
            is_whole = len(body) == int(digits)
            if body and not is_whole:
                return None
            left: int | None = int(digits)
            frame = body
        else:
            is_whole = body.endswith(_LAST_CHUNK)
            event = _event(body, is_whole=is_whole)
            if event is None:
                return None
            left, frame = None, event
        stream = self._numbers.last_stream + 1
        opening = head.opening(self._connection, transaction.number, digits.decode())
        if not self._message(transaction.number, stream, now_ns, opening, frame, SERVER if is_whole else "", head.is_sse):
            return None
        self._numbers.last_stream = self.response_stream = stream
        self._responses.begin_response()
        self.is_streaming = False
        if is_whole:
            waiting.popleft()
        else:
            transaction.response = StreamRecorder(stream, SERVER, "sse" if head.is_sse else "body")
            self._responses.begin_body(left)
            self.is_streaming = head.is_sse
        return b"%b%b%b%b" % (head.before, digits, head.after, body) if head.is_changed else data

    def _response_end(
        self, data: bytes, now_ns: int, transaction: ProxiedTransaction, response: StreamRecorder
    ) -> bytes | None:
        """Take the whole body of a response whose head came before; or the end of a stream, with or without its last event."""
        is_sse = response.is_between_events and self._responses.is_between_chunks and data.endswith(_LAST_CHUNK)
        if is_sse:
            frame = _event(data, is_whole=True)
        else:
            frame = data if self._responses.lacks(len(data)) and response.is_untouched else None
        if frame is None or not self._message(transaction.number, response.number, now_ns, "", frame, SERVER, is_sse):
            return None
        response.is_open = False
        self._waiting.popleft()
        self._responses.end_body()
        self.response_stream = response.number
        self.is_streaming = False
        return data


def _keyed(data: bytes) -> _Key:
    """Return the key of the head that `data` begins with, the digits of its Content-Length or nothing, and where it ends."""
    end = data.find(_EMPTY_LINE) + 4
    begin, after = _digits(data, end)
    digits = data[begin:after]
    if not digits:
        return data[:end], b"", end
    if not digits.isdigit() or len(digits) >= len(_ZEROS):
        return _NO_KEY
    return data[:begin] + _ZEROS[len(digits)] + data[after:end], digits, end


def _digits(data: bytes, end: int) -> tuple[int, int]:
    """Return where the value of Content-Length begins and ends in a head; both the head's end if there is none."""
    at = data.find(_LENGTH, 0, end)
    if at < 0:
        at = data.find(_LOWER_LENGTH, 0, end)
        if at < 0:
            return end, end
    at += len(_LENGTH)
    return at, data.find(b"\r\n", at)


def _event(body: bytes, *, is_whole: bool) -> bytes | None:
    """Return the one event in chunks that follow a head, or b"" if there is none; None if it is not as simple as that."""
    if is_whole:
        body = body[: -len(_LAST_CHUNK)]
    return _event_of_chunk(body) if body else b""


def _is_usual(lowered: bytes) -> bool:
    return not any(name in lowered for name in _UNUSUAL)


def _no_template(record: Open, length: str) -> None:
    """Render nothing, for a sink that cannot."""


def _no_message(*_: object) -> bool:
    """Take nothing, for a sink that cannot."""
    return False
