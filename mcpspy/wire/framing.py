"""Framings: classes that cut a stream of bytes into frames. Captures name them in the `open` record of each stream."""

from typing import Final, Protocol

from .http_body import WholeBody
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


FRAMINGS: Final[dict[str, type[Framing]]] = {framing.name: framing for framing in (Lines, SseEvents, WholeBody)}
"""By their names in captures. A line of stdio is a message, or one of the log."""
