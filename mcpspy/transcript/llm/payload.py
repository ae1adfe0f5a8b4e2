"""The body of a request or an answer that is one unit: its frames, joined, and its content encoding taken off.

Refuses to raise: what cannot be had is empty, and `flaw` says why.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...wire.encodings import MissingDecoderError, decoded

if TYPE_CHECKING:
    from ...records import Frame
    from ..http.head import Head


class Payload:
    """A body under way. `flaw` is known once it was asked for whole."""

    __slots__ = ("_encoding", "_frames", "flaw")

    def __init__(self, head: Head) -> None:
        self._encoding = head.get("content-encoding")
        self._frames: list[Frame] = []
        self.flaw = ""

    def add(self, frame: Frame) -> None:
        """More of it came."""
        self._frames.append(frame)

    def whole(self) -> bytes:
        """All that came. It is kept no longer."""
        frames, self._frames = self._frames, []
        if any(not frame.data and frame.length for frame in frames):
            self.flaw = "it was not recorded"
            return b""
        data = b"".join(frame.data for frame in frames)
        try:
            return decoded(data, self._encoding.encode("utf-8", "replace")) if self._encoding else data
        except MissingDecoderError as error:
            self.flaw = f"it is compressed with {error.coding}, which cannot be read here"
        except ValueError as error:
            self.flaw = f"it is not what its content encoding says: {error}"
        return b""
