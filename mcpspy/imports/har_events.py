"""Bodies of a HAR: the texts in, frames of a response with their times out.

A HAR has the times of events only if a browser wrote it, and not always then. Without them, events have the time of the end of
their response; but one to which the client reacted has come before that:

    POST tools/call             10.0 … 10.9     a stream of two events without times
      ← elicitation/create      10.9 → 10.5     because the client has answered it by then
    POST its answer             10.5 … 10.6
      ← the result of the call  10.9
"""

from __future__ import annotations

from base64 import b64decode
from bisect import bisect_left, insort
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from ..records import Frame
from ..wire.body import body_framing
from ..wire.framing import FRAMINGS
from ..wire.sse import SseEvents, parse

PLAYWRIGHT: Final = "Playwright"
"""The program whose HARs have events as Chromium decodes text without a character set: as Windows-1252, though they are UTF-8."""

_NO_RAW: Final = msgspec.Raw(b"")
_WINDOWS_1252: Final = {
    ord(character): byte
    for byte in range(0x80, 0xA0)
    if (character := bytes([byte]).decode("cp1252", "replace")) != "\N{REPLACEMENT CHARACTER}"
}


class _HarMessage(msgspec.Struct):
    """The members of a message that tell whether it asks or answers."""

    id: msgspec.Raw = _NO_RAW
    method: str | None = None


_decode = msgspec.json.Decoder(_HarMessage).decode


class Content(msgspec.Struct, kw_only=True):
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
        return body_framing(header_value(self.fields, "content-type")) == SseEvents.name

    @property
    def size_bytes(self) -> int:
        """Its size as far as it is known, else 0."""
        size = self.content.get("size")
        return size if isinstance(size, int) and 0 < size < 1 << 40 else 0

    def pieces(self) -> list[tuple[bytes, int]]:
        """Return its frames, each with its time."""
        times = [_seconds_ns(message.get("time")) for message in self.messages] if isinstance(self.messages, list) else []
        content_type = header_value(self.fields, "content-type")
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
        return encoded(text, (size, _sum(size, self.content.get("compression"))), is_misread=is_misread)


class Reactions:
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


def encoded(text: str, sizes: tuple[Any, ...], *, is_misread: bool = False) -> bytes:
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


def header_value(fields: list[tuple[str, str]], name: str) -> bytes | None:
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
