"""Framings: classes that cut a stream of bytes into frames, and on stdio find the payload in a frame.

Captures name the framing in the `open` record of each stream. A new framing for stdio is a module with a class that has the members
of `StdioFraming`, and a row in `STDIO_FRAMINGS`: taps and mocks get the class, readers find it by its name.
"""

from collections.abc import Container
from typing import Final, Protocol

from .body import WholeBody
from .lines import Lines
from .sse import SseEvents


class Framing(Protocol):
    """Frames from chunks cut anywhere. `feed` and `close` return pieces; joined, the pieces are the stream."""

    name: str
    """The name in captures."""
    frame_name: str
    """The words for one frame on the screen: `a line`."""
    end_name: str
    """The words for the end of a frame on the screen: `line end`."""

    @property
    def held_bytes(self) -> int:
        """The number of bytes that wait for the end of their frame."""

    @property
    def held(self) -> bytes:
        """The bytes that wait for the end of their frame, without those of earlier parts."""

    @property
    def is_part(self) -> bool:
        """True if the last piece that `feed` returned is a part: more of the same frame follows. All other pieces end a frame."""

    @property
    def is_between(self) -> bool:
        """True while the next bytes begin a frame."""

    def feed(self, data: bytes) -> list[bytes]:
        """Return the pieces that `data` completes."""

    def close(self) -> list[bytes]:
        """Return the last frame if its end has not come; otherwise nothing."""


class StdioFraming(Framing, Protocol):
    """A framing whose frames carry one payload each: a JSON-RPC message or batch."""

    unended: str
    """The flaw of the last frame of a stream that ended within it."""
    terminator: bytes
    """The byte that ends each frame and is nowhere else in it; empty if frames end in another way. A tap looks for it in each read,
    and does not feed a read that is one whole frame: a call for each would cost 0.3 µs of a round trip of 12."""

    @staticmethod
    def payload_of(frame: bytes) -> bytes:
        """Return the payload of a frame, as it is there; white space around it may stay.

        Bytes that are no frame are their own payload, and go out again as they are. The frame may be the first part of one, or have
        been cut off by the end of its stream. Captures keep payloads unchanged, whatever is redacted elsewhere, so a length in a
        frame stays right.
        """

    @staticmethod
    def frame_of(payload: bytes) -> bytes:
        """Return the frame that carries a payload. A line end after the payload may be stripped."""

    @staticmethod
    def flaw_of(frame: bytes) -> str:
        """Name the flaw of a frame, which becomes one of its messages' flaws; empty if it has none. It may be cut off: `unended`."""


STDIO_FRAMINGS: Final[dict[str, type[StdioFraming]]] = {framing.name: framing for framing in (Lines,)}
"""Framings of a stdio server's messages. Its stderr is always lines."""


UNFRAMED: Final = "unframed"
"""The flaw of noise in a framing other than lines: bytes that are no frame."""


def is_unended(flaws: Container[str]) -> bool:
    """Return whether these flaws of a message say that its stream ended before its frame did."""
    return any(framing.unended in flaws for framing in STDIO_FRAMINGS.values())


FRAMINGS: Final[dict[str, type[Framing]]] = {**STDIO_FRAMINGS, SseEvents.name: SseEvents, WholeBody.name: WholeBody}
"""The framings of stdio and of HTTP bodies."""
