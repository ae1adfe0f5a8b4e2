"""A sink that takes secrets out of HTTP records on their way to the disk: out of heads, `endpoint` events and OAuth's bodies.

JSON-RPC is not looked into. A body is searched if it is a form or a JSON object that asks for tokens, answers one of these, or has
a path like an authorization server's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import TYPE_CHECKING

from ...records import CLIENT, Close, Frame, Open, Partial, Record, RelayEvent
from .names import FORM_TYPES, is_oauth_path
from .oauth_bodies import is_grant
from .redactor import Redactor
from .spans import decode_percent

if TYPE_CHECKING:
    from ..file.format import OpenTemplate
    from .oauth_bodies import BodyFilter

MAX_HEADS = 512
"""So many heads are remembered with their redaction: a client sends the same head often, and redacting one takes 15 µs."""

MAX_PATHS = 512
"""So many paths are remembered, with whether they are OAuth's."""

MAX_LINE_BYTES = 1 << 13
"""Limit of a line of a refused head that comes in pieces; after a longer line, or after the head, the search for secrets ends."""

_LENGTH_AT = len(b"\r\nContent-Length: ")

_ENDS_HEAD = re.compile(rb"\n\r?\n").search

_IS_ERROR = re.compile(rb"HTTP/1\.[01] [45]").match

_IS_REDIRECT = re.compile(rb"HTTP/1\.[01] 3").match

MAX_ENDPOINT_BYTES = 1 << 13
"""Limit of an event that announces an endpoint; a longer one is not searched."""


class RedactingSink:
    """A sink that passes records on to `sink`, redacted. stdio records are passed on as they are."""

    __slots__ = (
        "_bodies",
        "_events",
        "_heads",
        "_message",
        "_oauth",
        "_opaque",
        "_redactor",
        "_requests",
        "_sink",
        "_sse",
        "_template",
        "event",
        "pass_event",
    )

    def __init__(self, sink: Callable[[Sequence[Record]], None], redactor: Redactor) -> None:
        self._sink = sink
        self.event: Callable[[int, int, bytes], None] = getattr(sink, "event", self._event_as_record)
        """As the sink's own: for an event that came as one HTTP chunk without the word `endpoint`, which is all that is sought."""
        self.pass_event: Callable[[RelayEvent, int, int, int, int], tuple[bytes, bool] | None] | None = getattr(
            sink, "pass_event", None
        )
        """As the sink's own, for such events too."""
        self._events: Callable[[Sequence[Record], int, int, list[bytes]], None] | None = getattr(sink, "events", None)
        self._template: Callable[[Open, str], OpenTemplate | None] | None = getattr(sink, "template", None)
        self._message: Callable[..., bool] | None = getattr(sink, "message", None)
        self._redactor = redactor
        self._heads: dict[bytes, tuple[bytes, tuple[tuple[int, int, str], ...]]] = {}
        self._sse: set[int] = set()  # streams of events, which may announce an endpoint
        # the filters of streams with OAuth bodies, their transactions, and what makes another filter
        self._bodies: dict[int, tuple[BodyFilter, int, Callable[[], BodyFilter]]] = {}
        # streams without a head, which may begin with a head that was refused: the last line of that so far
        self._opaque: dict[int, bytes] = {}
        # transactions at OAuth's paths, and those with a form, whose response is never JSON-RPC: whether it may be
        self._oauth: dict[int, bool] = {}
        # bodies of other requests, which may ask for tokens all the same, and their transactions
        self._requests: dict[int, int] = {}

    def __call__(self, records: Sequence[Record]) -> None:
        self._sink(self._redacted(records))

    def _redacted(self, records: Sequence[Record]) -> list[Record]:
        passed: list[Record] = []
        for record in records:
            if isinstance(record, Frame):
                self._frame(record)
            elif isinstance(record, Close):
                if record.stream in self._bodies or record.extra:
                    passed += self._close(record)
                else:
                    self._forget(record.stream)
            elif isinstance(record, Open):
                if record.head:
                    self._open(record)
                elif record.connection:
                    self._opaque[record.stream] = b""
            elif isinstance(record, Partial):
                self._partial(record)
            passed.append(record)
        return passed

    def _event_as_record(self, stream: int, at_ns: int, data: bytes) -> None:
        self((Frame(stream, at_ns, at_ns, data, chunks=(len(data),)),))

    def events(self, before: Sequence[Record], stream: int, at_ns: int, events: list[bytes]) -> None:
        """Take records, and after them events that came in one HTTP chunk each."""
        if self._events is None or b"endpoint" in b"".join(events):
            self((*before, *(Frame(stream, at_ns, at_ns, data, chunks=(len(data),)) for data in events)))
        else:
            self._events(self._redacted(before), stream, at_ns, events)

    def template(self, record: Open, length: str) -> OpenTemplate | None:
        """Render an `open` record for `message`, redacted; None if the bodies of such streams have to be looked into."""
        is_oauth = record.name == "request" and _is_oauth_path(_path(record.head))
        if self._template is None or is_oauth or _value(record.head, b"content-type").startswith(FORM_TYPES):
            return None
        self._redact_heads(record)
        return self._template(record, length)

    def message(self, transaction: int, stream: int, at_ns: int, opening: str, data: bytes, by: str, is_sse: bool) -> bool:  # noqa: FBT001
        """Take `open`, frame and `close` of one stream, each if there is one; return False if they may have to be redacted."""
        if self._message is None or transaction in self._oauth or stream in self._bodies or (is_sse and b"endpoint" in data):
            return False
        if by == CLIENT and is_grant(data):
            return False
        is_taken = self._message(transaction, stream, at_ns, opening, data, by, is_sse)
        if is_taken and is_sse:
            (self._sse.discard if by else self._sse.add)(stream)
        elif is_taken and by:
            self._requests.pop(stream, None)
        elif is_taken and '"name":"request"' in opening:
            self._requests[stream] = transaction  # its body is yet to come
        return is_taken

    def _frame(self, record: Frame) -> None:
        stream = record.stream
        if stream in self._sse:
            self._endpoint(record)
        elif stream in self._bodies:
            self._body(record, *self._bodies[stream])
        elif stream in self._requests:
            self._request(record, self._requests.pop(stream))
        elif stream in self._opaque:
            self._refused_head(record, self._opaque.pop(stream))

    def _request(self, record: Frame, transaction: int) -> None:
        """Redact a body, or its first part, that asks for tokens; the response to it then has some."""
        if is_grant(record.data):
            self._oauth[transaction] = False
            self._search(record.stream, transaction, partial(self._redactor.body_filter, "", may_be_rpc=False))
            self._body(record, *self._bodies[record.stream])

    def _refused_head(self, record: Frame, begun: bytes) -> None:
        """Redact what may be a piece of a refused head; `begun` is its last line so far, with the end of the line before that."""
        whole = begun + record.data
        data, redacted = self._redactor.head(whole)
        if not data.startswith(begun):  # a secret continues: its beginning went to the disk under another pseudonym
            rest = record.data.partition(b"\n")[0].rstrip(b"\r")
            name = self._redactor.pseudonym(rest) if rest else b""
            data, more = self._redactor.head(record.data[len(rest) :])
            first = ((0, len(name), redacted[0][2]),) if name else ()
            redacted = (*first, *((at + len(name), length, kind) for at, length, kind in more))
            record.data = name + data
        else:
            record.data = data[len(begun) :]
            redacted = tuple((at - len(begun), length, kind) for at, length, kind in redacted)
        _mark(record, redacted)
        last_line = whole[max(whole.rfind(b"\n"), 0) :]
        if not _ENDS_HEAD(whole) and len(last_line) <= MAX_LINE_BYTES:
            self._opaque[record.stream] = last_line

    def _partial(self, record: Partial) -> None:
        """Keep only the length of bytes that wait, as they may hold the beginning of a secret; MCP's own messages are kept."""
        stream = record.stream
        is_rpc = b'"jsonrpc"' in record.data
        if (
            stream in self._bodies
            or stream in self._opaque
            or (not is_rpc and (stream in self._sse or stream in self._requests))
        ):
            record.data = b""

    def _open(self, record: Open) -> None:
        content_type = _value(record.head, b"content-type")
        is_form = content_type.startswith(FORM_TYPES)
        if record.name == "request":
            if is_form:
                self._oauth[record.transaction] = False
            elif _is_oauth_path(_path(record.head)):
                self._oauth[record.transaction] = True
        may_be_rpc = self._oauth.get(record.transaction)
        if record.framing == "sse":
            self._sse.add(record.stream)
        elif is_form or may_be_rpc is not None:
            # a part of a multipart form is named in a line before it
            is_sealed = _value(record.head, b"content-encoding") not in ("", "identity") or content_type.startswith(
                "multipart/"
            )
            # a page of HTML that says what went wrong is kept
            seals_markup = record.name == "response" and not _IS_ERROR(record.head)
            made = partial(
                self._redactor.body_filter,
                content_type,
                is_sealed=is_sealed,
                may_be_rpc=may_be_rpc is not False,
                seals_markup=seals_markup,
            )
            self._search(record.stream, record.transaction, made)
        elif record.name == "request":
            self._requests[record.stream] = record.transaction
        self._redact_heads(record)
        if record.redacted and _IS_REDIRECT(record.head):
            # its body repeats the location: `Found. Redirecting to http://localhost/callback?code=…`
            self._search(record.stream, record.transaction, partial(self._redactor.body_filter, "", is_sealed=True))
        if record.name == "response" and not record.head.startswith((b"HTTP/1.1 1", b"HTTP/1.0 1")):
            self._oauth.pop(record.transaction, None)

    def _search(self, stream: int, transaction: int, body_filter: Callable[[], BodyFilter]) -> None:
        self._bodies[stream] = body_filter(), transaction, body_filter

    def _redact_heads(self, record: Open) -> None:
        record.head, record.redacted = self._head(record.head)
        if record.forwarded is not None:
            record.forwarded, _ = self._head(record.forwarded)

    def _head(self, head: bytes) -> tuple[bytes, tuple[tuple[int, int, str], ...]]:
        begin, end = _digits_of_length(head)
        digits, blank = head[begin:end], bytes(end - begin)  # of NULs, which no sound head has
        key = head[:begin] + blank + head[end:] if digits else head
        redacted = self._heads.get(key)
        if redacted is None:
            if len(self._heads) >= MAX_HEADS:
                self._heads.clear()
            redacted = self._heads[key] = self._redactor.head(key)
        return (redacted[0].replace(blank, digits, 1), redacted[1]) if digits else redacted

    def _close(self, record: Close) -> list[Record]:
        """End a stream. Return the rest of a body that did not come to its end."""
        self._forget(record.stream)
        body, *_ = self._bodies.pop(record.stream, (None,))
        data, redacted = (b"", ()) if body is None else body.close()
        if trailers := record.extra.get("trailers"):
            record.extra["trailers"] = self._redactor.trailers(trailers)
        rest = Frame(record.stream, record.at_ns, record.at_ns, data)
        _mark(rest, redacted)
        return [rest] if data else []

    def _forget(self, stream: int) -> None:
        self._sse.discard(stream)
        self._opaque.pop(stream, None)
        self._requests.pop(stream, None)

    def _body(self, record: Frame, body: BodyFilter, transaction: int, body_filter: Callable[[], BodyFilter]) -> None:
        """Redact a body, or a part of one: a secret may begin in one part and end in the next, where its pseudonym goes."""
        data, redacted = body.feed(record.data)
        if not record.part:
            rest, more = body.close()
            redacted = (*redacted, *((len(data) + at, length, kind) for at, length, kind in more))
            data += rest
        if body.is_rpc:  # and so is its response, even where that is compressed
            self._oauth.pop(transaction, None)
        record.data = data
        _mark(record, redacted)
        if record.forwarded:
            sent = body_filter()
            record.rare["forwarded"] = sent.feed(record.forwarded)[0] + sent.close()[0]

    def _endpoint(self, record: Frame) -> None:
        if len(record.data) > MAX_ENDPOINT_BYTES or b"endpoint" not in record.data:
            return
        record.data, redacted = self._redactor.endpoint(record.data)
        _mark(record, redacted)
        if record.forwarded is not None:
            record.rare["forwarded"], _ = self._redactor.endpoint(record.forwarded)


@lru_cache(MAX_PATHS)
def _is_oauth_path(path: bytes) -> bool:
    return is_oauth_path(decode_percent(path).decode("latin-1"))


def _path(head: bytes) -> bytes:
    return head.split(b" ", 2)[1].partition(b"?")[0]


def _digits_of_length(head: bytes) -> tuple[int, int]:
    """Return where the digits of Content-Length are, in which heads of one client differ; nowhere if it is in another form."""
    at = head.find(b"\r\nContent-Length: ")
    if at < 0:
        at = head.find(b"\r\ncontent-length: ")
    begin, end = at + _LENGTH_AT, head.find(b"\r\n", at + 2)
    return (begin, end) if at >= 0 and head[begin:end].isdigit() and b"\0" not in head else (0, 0)


def _mark(record: Frame, redacted: tuple[tuple[int, int, str], ...]) -> None:
    if redacted:
        record.rare["redacted"] = redacted


def _value(head: bytes, name: bytes) -> str:
    """Return the first value of a field, in lower case; empty if there is none."""
    sought = b"\r\n%b:" % name
    at = head.lower().find(sought)
    if at < 0:
        return ""
    begin = at + len(sought)
    return head[begin : head.find(b"\r\n", begin)].strip().decode("latin-1").lower()
