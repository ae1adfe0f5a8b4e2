"""HTTP messages that are taken whole, because an intercept may change them; and the bytes that mcpspy sends in their place.

A body that is changed is sent with its new length and without a content encoding. Of a body that is not, and of a head, no byte
changes but those that have to.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING
from urllib.parse import urljoin, urlsplit

from ...records import Close, Frame, Open
from ...wire.encodings import decode_body
from ...wire.http_head import first_value, with_value, without_field

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...records import Record
    from ...wire.http_body import Body, BodyEnd
    from ...wire.http_head import RequestHead, ResponseHead
    from ..waiting_messages import MessageDecision

LAST_CHUNK = b"0\r\n\r\n"
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"

_TEXT = b"text/plain; charset=utf-8"
_JSON = b"application/json"


class TakenMessage:
    """A message whose body is being collected, with the records of it, which wait too. `head` is the one to forward.

    `opening` is the first record, whose `forwarded` is only known at the end.
    """

    __slots__ = ("_body", "_encoding", "_raw", "content", "head", "opening", "records", "size")

    def __init__(self, opening: Open, records: list[Record], head: bytes) -> None:
        self.opening = opening
        self.records = records
        self.head = head
        self.size = 0
        self.content = b""
        """The body, decoded, once it is whole."""
        self._encoding = first_value(head, head.lower(), b"content-encoding") or b""
        self._raw: list[bytes] = []
        self._body: list[bytes] = []

    def feed(self, body: Body) -> None:
        """Take a part of the body."""
        self._raw.append(body.raw)
        self._body.append(body.payload)
        self.size += len(body.payload)

    def end(self, end: BodyEnd) -> bool:
        """Take the end of the body; return whether there is something that can be read."""
        if end.raw:
            self._raw.append(end.raw)
        body = b"".join(self._body)
        try:
            self.content = decode_body(body, self._encoding) if self._encoding else body
        except ValueError:  # nobody knows what is in it
            return False
        return any(isinstance(record, Frame) for record in self.records)

    def without_expectation(self) -> None:
        """Leave out that the client waits for leave to send the body: it has it. The head is recorded before the body comes."""
        self.head = without_field(self.head, b"expect")
        self.opening.forwarded = self.head

    @property
    def unchanged(self) -> bytes:
        """The bytes that came so far, with the head to forward."""
        return b"".join((self.head, *self._raw))

    @property
    def frame(self) -> Frame:
        """The record of the body, or of its last part."""
        return next(record for record in reversed(self.records) if isinstance(record, Frame))

    def settle(
        self, decision: MessageDecision, frame: Frame, follow: Callable[[bytes, bytes, bytes], bytes] | None = None
    ) -> bytes | None:
        """Complete the records by a decision; return the bytes to send, or None for none. `frame` replaces that of the body.

        `follow` returns a head whose fields follow a body that was changed, as `with_mirrored` does.
        """
        acts, payload, sent = decision.records, decision.payload, self.unchanged
        body = payload if payload is None or decision.noise is None else b"%b\n%b" % (decision.noise, payload)
        if acts:
            at = self.records.index(self.frame)
            if frame is not self.records[at]:
                self._move_to(frame.at_ns)
            self.records[at : at + 1] = [*acts, frame]
            for nth, act in enumerate(acts):
                act.at_ns, act.frame = frame.at_ns, nth - len(acts)
                act.sent = "changed" if act.action == "garbage" and body is not None else act.sent
        if body is None:
            frame.rare["forwarded"] = b""
            return None
        if body != self.content:
            frame.rare["forwarded"] = body
            self.head = self.head if follow is None else follow(self.head, self.content, body)
            self.head = with_length(self.head, len(self.content) if decision.is_cut else len(body))
            self.opening.forwarded = None if self.head == self.opening.head else self.head
            sent = self.head + body
        return sent

    def _move_to(self, at_ns: int) -> None:
        """Date the records: they were held."""
        for record in self.records:
            if isinstance(record, Open | Close | Frame):
                record.at_ns = at_ns


def carries_message(head: RequestHead) -> bool:
    """Return whether a request may carry a message of MCP."""
    return head.method == b"POST" and head.ends_by in ("length", "chunks") and _is_json(head.value(b"content-type"))


def answers_message(head: ResponseHead, method: bytes) -> bool:
    """Return whether the body of a response may be a message of MCP."""
    has_body = head.ends_by in ("chunks", "close") or (head.ends_by == "length" and head.length > 0)
    return method == b"POST" and has_body and not head.is_interim and _is_json(head.value(b"content-type"))


def _is_json(media_type: bytes | None) -> bool:
    return media_type is None or b"json" in media_type.lower()


def with_length(head: bytes, length: int) -> bytes:
    """Return the head of a message whose body is plain, and has this length."""
    for name in (b"transfer-encoding", b"content-encoding", b"trailer"):
        head = without_field(head, name)
    return with_value(head, b"Content-Length", b"%d" % length)


def in_chunks(head: bytes) -> bytes:
    """Return the head of a response whose body has a length, for one that comes in chunks."""
    return with_value(without_field(head, b"content-length"), b"Transfer-Encoding", b"chunked")


def chunk_of(payload: bytes) -> bytes:
    """Return bytes as one chunk; nothing for none, for that would be the last chunk."""
    return b"%x\r\n%b\r\n" % (len(payload), payload) if payload else b""


def junk_events(noise: bytes) -> bytes:
    """Return an event for each line of noise."""
    return b"".join(b"data: %b\n\n" % line for line in noise.split(b"\n"))


def answer_event(answer: bytes) -> bytes:
    """Return the event with an answer by mcpspy."""
    return b"event: message\ndata: %b\n\n" % answer


def own_response(decision: MessageDecision, *, is_over_stream: bool) -> tuple[bytes, bytes] | None:
    """Return head and body of mcpspy's response to a request that is not forwarded; None if there is none.

    With `is_over_stream`, answers are events of another response. A request that is dropped is not answered, and what needs no
    answer is taken.
    """
    if decision.status:
        text = f"mcpspy: status {decision.status} by an intercept\n".encode()
        return _response(decision.status, _TEXT, text, decision.fields)
    if decision.reply is not None and not is_over_stream:
        return _response(200, _JSON, decision.reply)
    if is_over_stream or decision.kind != "request":
        return _response(202, b"", b"")
    return None


def _response(status: int, media_type: bytes, body: bytes, fields: tuple[str, ...] = ()) -> tuple[bytes, bytes]:
    try:
        phrase = HTTPStatus(status).phrase
    except ValueError:
        phrase = "Unknown"
    has_body = status not in (204, 304)
    lines = [b"HTTP/1.1 %d %b" % (status, phrase.encode()), *(field.encode() for field in fields)]
    if has_body and media_type:
        lines.append(b"Content-Type: " + media_type)
    if has_body:
        lines.append(b"Content-Length: %d" % len(body))
    return b"\r\n".join((*lines, b"", b"")), body if has_body else b""


def is_endpoint(target: bytes, endpoint: str, of_stream: bytes) -> bool:
    """Return whether a request goes to the endpoint that was announced on the stream with this target."""
    if not endpoint:
        return False
    if endpoint.lstrip().startswith("{"):  # the dialect with a `uri`
        return target.partition(b"?")[0] in endpoint.encode("utf-8", "surrogateescape")
    try:
        announced = urlsplit(urljoin("http://stream" + of_stream.decode("latin-1"), endpoint.strip()))
    except ValueError:
        return False
    path = announced.path + (f"?{announced.query}" if announced.query else "")
    return path.encode("utf-8", "surrogateescape") == target
