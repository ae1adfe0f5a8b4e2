"""The outputs of `show --http -f`: lines of the wire view, or JSON."""

from ...transcript.model import Row
from ...views.json.transactions import LiveWireJson
from ...views.text.escape import safe_text
from ...views.timeline.live_wire import LiveWire
from ..screen import Screen, say
from .follow import FollowedRecording


class WireOutput:
    """The wire view as it grows: each head, chunk and event when it is read. With `only_rows`, of transactions with rows."""

    redraw_s: float | None = None

    def __init__(self, screen: Screen, *, only_rows: bool) -> None:
        self._screen = screen
        self._only_rows = only_rows
        self._wires: dict[FollowedRecording, LiveWire] = {}
        self._last: FollowedRecording | None = None
        self._notices = _StdioNotices()

    def row(self, followed: FollowedRecording, row: Row, *, ended: bool) -> None:
        """Note a row, which is named with the transactions that carried it."""
        self._wire(followed).row(row)

    def rest(self, all_followed: list[FollowedRecording]) -> None:
        """Print what is new."""
        self._screen.measure()
        for followed in all_followed:
            wire = self._wire(followed)
            wire.measure(self._screen.width)
            if followed is not self._last:
                wire.interrupt()
            if lines := wire.feed(followed.captures):
                self._screen.lines(lines)
                self._last = followed
            self._notices.look(followed)

    def close(self, all_followed: list[FollowedRecording]) -> None:
        """Print the rest."""
        self.rest(all_followed)

    def _wire(self, followed: FollowedRecording) -> LiveWire:
        return self._wires.setdefault(followed, LiveWire(self._screen.width, only_rows=self._only_rows))


class WireJsonOutput:
    """JSON: an object whenever a transaction changes; `only_rows` as above."""

    redraw_s: float | None = None

    def __init__(self, screen: Screen, *, only_rows: bool) -> None:
        self._screen = screen
        self._only_rows = only_rows
        self._wires: dict[FollowedRecording, LiveWireJson] = {}
        self._notices = _StdioNotices()

    def row(self, followed: FollowedRecording, row: Row, *, ended: bool) -> None:
        """Note a row."""
        self._wire(followed).row(row)

    def rest(self, all_followed: list[FollowedRecording]) -> None:
        """Print the transactions that have changed."""
        for followed in all_followed:
            self._screen.texts(self._wire(followed).feed(followed.captures))
            self._notices.look(followed)

    def close(self, all_followed: list[FollowedRecording]) -> None:
        """Print the rest."""
        self.rest(all_followed)

    def _wire(self, followed: FollowedRecording) -> LiveWireJson:
        return self._wires.setdefault(followed, LiveWireJson(only_rows=self._only_rows))


class _StdioNotices:
    """Notices on stderr, one for each capture of stdio, as it has no HTTP to show."""

    def __init__(self) -> None:
        self._noticed: set[str] = set()

    def look(self, followed: FollowedRecording) -> None:
        for capture in followed.captures:
            header = capture.header
            if header is None or header.tapped.get("transport") == "http" or header.capture_id in self._noticed:
                continue
            self._noticed.add(header.capture_id)
            say(f"mcpspy: there is no HTTP in {safe_text(capture.server)}; leave out --http to see its messages")
