"""Bodies that are one unit, JSON or anything else: chunks in, the whole body or parts of it out; and the framing of a body.

A body is kept as it was sent; `encodings` decodes it when somebody looks at it.
"""

from typing import Final

from .lines import MAX_HELD_BYTES, character_boundary

_LINE_TYPES: Final = ("application/x-ndjson", "application/ndjson", "application/jsonl", "application/jsonlines")


class WholeBody:
    """A body as one frame, from chunks cut anywhere: complete when it closes, in parts from `max_held_bytes` on.

    `feed` and `close` return pieces; joined, the pieces are the body. What `feed` returns is a part, and more of the body follows;
    what `close` returns completes it: nothing only if the body was empty. A part ends on a character boundary where the bytes are
    UTF-8.
    """

    name = "body"
    frame_name = "a body"
    end_name = "end of the body"
    is_part = True
    """True at all times: `feed` returns parts only."""
    is_between = False
    """False at all times: the stream is one frame."""

    __slots__ = ("_held", "_max_held_bytes", "held_bytes")

    def __init__(self, max_held_bytes: int = MAX_HELD_BYTES) -> None:
        self._max_held_bytes = max_held_bytes
        self._held: list[bytes] = []
        self.held_bytes = 0
        """The number of bytes that wait for the end of the body."""

    @property
    def held(self) -> bytes:
        """The bytes that wait for the end of the body, without those of earlier parts."""
        return b"".join(self._held)

    def feed(self, data: bytes) -> list[bytes]:
        """Return nothing, or one part: all bytes held but the last character, so that something is left to complete the body."""
        self._held.append(data)
        self.held_bytes += len(data)
        if self.held_bytes < self._max_held_bytes:
            return []
        held = self.held
        part = held[: character_boundary(held[:-1])]
        self._held = [held[len(part) :]]
        self.held_bytes = len(held) - len(part)
        return [part] if part else []

    def close(self) -> list[bytes]:
        """Return the body, or the last piece of it."""
        rest = self.held
        self._held.clear()
        self.held_bytes = 0
        return [rest] if rest else []


def body_framing(content_type: bytes | None, content_encoding: bytes | None = None) -> str:
    """Name the framing of a body with these header fields. A compressed body is one unit, whatever is in it."""
    if content_encoding is not None and content_encoding.strip().lower() not in (b"", b"identity"):
        return "body"
    media_type = (content_type or b"").partition(b";")[0].strip().lower().decode("latin-1")
    if media_type == "text/event-stream":
        return "sse"
    return "lines" if media_type in _LINE_TYPES else "body"
