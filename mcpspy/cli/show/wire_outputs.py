"""Where `show --http -f` puts what comes: lines of the wire view, or JSON, a batch at a time."""

from ...transcript.model import Row
from ...views.text.escape import safe_text
from ...views.timeline.live_wire import LiveWire, LiveWireJson
from ..screen import Screen, say
from .follow import Followed


class WireOut:
    """The wire view as it grows: each head, chunk and event when it is there; `only_rows`: of what carries rows that come here."""

    redraw_s: float | None = None

    def __init__(self, screen: Screen, *, only_rows: bool) -> None:
        self._screen = screen
        self._only_rows = only_rows
        self._wires: dict[Followed, LiveWire] = {}
        self._last: Followed | None = None
        self._strangers = _Strangers()

    def row(self, followed: Followed, row: Row, *, ended: bool) -> None:
        """Keep its number: it is said of the transactions that carried it."""
        self._wire(followed).row(row)

    def rest(self, all_followed: list[Followed]) -> None:
        """Print what a batch has brought."""
        self._screen.measure()
        for followed in all_followed:
            wire = self._wire(followed)
            wire.measure(self._screen.width)
            if followed is not self._last:
                wire.interrupt()
            if lines := wire.feed(followed.captures):
                self._screen.lines(lines)
                self._last = followed
            self._strangers.look(followed)

    def close(self, all_followed: list[Followed]) -> None:
        """Print what is left."""
        self.rest(all_followed)

    def _wire(self, followed: Followed) -> LiveWire:
        return self._wires.setdefault(followed, LiveWire(self._screen.width, only_rows=self._only_rows))


class WireStatesOut:
    """JSON: an object for each transaction of which something came; `only_rows` as above."""

    redraw_s: float | None = None

    def __init__(self, screen: Screen, *, only_rows: bool) -> None:
        self._screen = screen
        self._only_rows = only_rows
        self._wires: dict[Followed, LiveWireJson] = {}
        self._strangers = _Strangers()

    def row(self, followed: Followed, row: Row, *, ended: bool) -> None:
        """Keep its number."""
        self._wire(followed).row(row)

    def rest(self, all_followed: list[Followed]) -> None:
        """Print what has changed."""
        for followed in all_followed:
            self._screen.texts(self._wire(followed).feed(followed.captures))
            self._strangers.look(followed)

    def close(self, all_followed: list[Followed]) -> None:
        """Print what is left."""
        self.rest(all_followed)

    def _wire(self, followed: Followed) -> LiveWireJson:
        return self._wires.setdefault(followed, LiveWireJson(only_rows=self._only_rows))


class _Strangers:
    """Captures of stdio, of which there is no HTTP to be shown. Each is told once."""

    def __init__(self) -> None:
        self._told: set[str] = set()

    def look(self, followed: Followed) -> None:
        for source in followed.captures:
            header = source.header
            if header is None or header.tapped.get("transport") == "http" or header.capture_id in self._told:
                continue
            self._told.add(header.capture_id)
            say(f"mcpspy: there is no HTTP in {safe_text(source.server)}; without --http its messages are shown")
