"""One time axis for several captures. Refuses to read a clock: the headers say when each capture began."""

from ..records import Header


class Clock:
    """Where captures lie on the axis that begins with the first one asked about.

    Captures of one boot are compared by the monotonic clock, which nobody sets; others by wall time.
    """

    __slots__ = ("_boots", "_wall_ns")

    def __init__(self) -> None:
        self._wall_ns: int | None = None
        self._boots: dict[str, int] = {}

    def shift_ns(self, header: Header) -> int:
        """What to add to the times of this capture's records."""
        if self._wall_ns is None:
            self._wall_ns = header.wall_ns
        shift_ns = header.wall_ns - self._wall_ns
        if not header.boot_id:
            return shift_ns
        began_ns = self._boots.setdefault(header.boot_id, header.monotonic_ns - shift_ns)
        return header.monotonic_ns - began_ns
