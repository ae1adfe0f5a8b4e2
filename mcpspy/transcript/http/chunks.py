"""Which HTTP/1.1 chunks begin in which frame: a chunk that holds several events is recorded with each of them (docs/capture.md)."""

from ...records import Frame


class Chunks:
    """Goes along the frames of one stream. `begun` gives the sizes of the chunks that begin in the next frame."""

    __slots__ = ("_left_bytes", "_size")

    def __init__(self) -> None:
        self._size = 0
        self._left_bytes = 0
        """How many bytes of the last chunk are still to come."""

    def begun(self, frame: Frame) -> tuple[int, ...]:
        """Sizes of chunks, in order; none where the frame lies in a chunk that began before, or came without chunks."""
        sizes = frame.chunks
        if not sizes:
            return ()
        goes_on = self._left_bytes > 0 and sizes[0] == self._size
        new = sizes[1:] if goes_on else sizes
        held_bytes = sum(new) + (self._left_bytes if goes_on else 0)
        self._size = sizes[-1]
        # A redacted frame has another length than it had on the wire: then what is left of the chunk is told by the next frame.
        self._left_bytes = 1 if frame.redacted else max(held_bytes - frame.length, 0)
        return new
