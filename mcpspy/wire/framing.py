"""Framings: how a stream of bytes is cut into frames, and how a frame on stdio carries one payload.

A framing is a class of this room, and captures name it in the `open` record of each stream. A new one for stdio is a module with a
class that has the members of `StdioFraming`, and a row in `STDIO_FRAMINGS`: taps and mocks are given the class, readers find it by
its name.
"""

from typing import Final, Protocol

from .body import WholeBody
from .lines import Lines
from .sse import SseEvents


class Framing(Protocol):
    """Frames from chunks cut anywhere. `feed` and `close` return pieces; joined, the pieces are the stream."""

    name: str
    """As captures spell it."""
    frame_name: str
    """What a person calls one frame: `a line`."""
    end_name: str
    """What a person calls the end of a frame: `line end`."""

    @property
    def held_bytes(self) -> int:
        """How many bytes wait for the end of their frame."""

    @property
    def held(self) -> bytes:
        """The bytes that wait for the end of their frame, those of earlier parts not included."""

    @property
    def is_part(self) -> bool:
        """Whether the last piece that `feed` returned is a part: more of the same frame follows. All others end a frame."""

    @property
    def is_between(self) -> bool:
        """Whether the next bytes begin a frame."""

    def feed(self, data: bytes) -> list[bytes]:
        """Return the pieces that `data` completed."""

    def close(self) -> list[bytes]:
        """Return the last frame, if its end has not come; else nothing."""


class StdioFraming(Framing, Protocol):
    """A framing in which each frame carries one payload: a JSON-RPC message or batch."""

    terminator: bytes
    """The one byte that ends each frame and is nowhere else in it; empty where frames end otherwise. A tap looks for it in what it
    reads, and does not feed what is one whole frame: a call for each would cost 0.3 µs of a round trip of 12."""

    @staticmethod
    def payload_of(frame: bytes) -> bytes:
        """Return what a whole frame carries; white space around the payload may stay. Whatever is no frame is its own payload."""

    @staticmethod
    def frame_of(payload: bytes) -> bytes:
        """Return the frame that carries a payload, which may have a line end."""

    @staticmethod
    def flaw_of(frame: bytes) -> str:
        """Name what is odd about a whole frame, as one of a message's flaws; empty if nothing is."""


STDIO_FRAMINGS: Final[dict[str, type[StdioFraming]]] = {framing.name: framing for framing in (Lines,)}
"""Framings of a stdio server's messages. Its stderr is always lines."""

FRAMINGS: Final[dict[str, type[Framing]]] = {**STDIO_FRAMINGS, SseEvents.name: SseEvents, WholeBody.name: WholeBody}
"""Those, and the framings of HTTP bodies."""
