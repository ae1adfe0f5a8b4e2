"""The output of `show --http -f`: lines of the wire view, or JSON."""

from ...transcript.model import Row
from ...views.json.transactions import LiveWireJson
from ...views.text.escape import safe_text
from ...views.timeline.http_wire import LiveWire
from ..screen import Screen, say
from .follow import FollowedRecording


class WireOutput:
    """The wire view as it grows: each head, chunk and event when it is read; as JSON, an object whenever a transaction changes.

    With `only_rows`, of transactions with rows. A capture of stdio, which has no HTTP to show, gets a notice on stderr.
    """

    redraw_s: float | None = None

    def __init__(self, screen: Screen, *, as_json: bool, only_rows: bool) -> None:
        self._screen = screen
        self._as_json = as_json
        self._only_rows = only_rows
        self._wires: dict[FollowedRecording, LiveWire | LiveWireJson] = {}
        self._last: FollowedRecording | None = None
        self._noticed: set[str] = set()

    def row(self, followed: FollowedRecording, row: Row, *, ended: bool) -> None:
        """Note a row, which is named with the transactions that carried it."""
        self._wire(followed).row(row)

    def rest(self, all_followed: list[FollowedRecording]) -> None:
        """Print what is new."""
        self._screen.measure()
        for followed in all_followed:
            wire = self._wire(followed)
            if isinstance(wire, LiveWireJson):
                self._screen.texts(wire.feed(followed.captures))
            else:
                self._print(followed, wire)
            self._notice(followed)

    def close(self, all_followed: list[FollowedRecording]) -> None:
        """Print the rest."""
        self.rest(all_followed)

    def _wire(self, followed: FollowedRecording) -> LiveWire | LiveWireJson:
        if followed not in self._wires:
            only_rows = self._only_rows
            wire = LiveWireJson(only_rows=only_rows) if self._as_json else LiveWire(self._screen.width, only_rows=only_rows)
            self._wires[followed] = wire
        return self._wires[followed]

    def _print(self, followed: FollowedRecording, wire: LiveWire) -> None:
        wire.measure(self._screen.width)
        if followed is not self._last:
            wire.interrupt()
        if lines := wire.feed(followed.captures):
            self._screen.lines(lines)
            self._last = followed

    def _notice(self, followed: FollowedRecording) -> None:
        for capture in followed.captures:
            header = capture.header
            if header is None or header.tapped.get("transport") == "http" or header.capture_id in self._noticed:
                continue
            self._noticed.add(header.capture_id)
            say(f"mcpspy: there is no HTTP in {safe_text(capture.server)}; leave out --http to see its messages")
