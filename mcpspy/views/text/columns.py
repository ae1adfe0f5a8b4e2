"""The columns of a timeline: which ones fit, how wide each is, and the left part of every line.

Numbers are on the left, in columns. Words follow them, and the last words may be of any length. Does not know what a row is.
The lane column names the server of each row where there are several, else the client.
"""

import msgspec
from msgspec.structs import replace

from ...transcript.model import CaptureInfo, Row
from .cells import cells, cut, padded, padded_left
from .escape import safe_text
from .line import Line, lane_style
from .units import at_least, duration, seconds, size

TOOK_CELLS = 7
SIZE_CELLS = 6
GAP = "  "

MAX_ID_CELLS = 6
MAX_WIDE_ID_CELLS = 14
MAX_NARROW_ID_CELLS = 4
MAX_LANE_CELLS = 10
MAX_WIDE_LANE_CELLS = 24
MAX_WORDS_CELLS = 48

WIDE_CELLS = 110
"""From this width on, longer ids and lanes are shown."""

FULL_CELLS = 72
"""Below this width the id is left out, and the size. The size also gives way to a lane below WIDE_CELLS."""

SHORT_CELLS = 52
"""Below this width the duration is left out."""

TINY_CELLS = 34
"""Below this width the time is left out."""

OUTCOME_CELLS = 16
"""The cells kept free for the outcome, which follows the method and its target."""

MIN_WORDS_CELLS = 8

WORDS_SHARE = 0.6
"""The share of the room for words that the call may take where rows show params; the rest is for the outcome."""

MAX_PARAMS_CELLS = 72
"""The widest column of calls with params; on a pipe longer ones stick out."""


class Columns(msgspec.Struct, frozen=True, kw_only=True):
    """Widths of the columns in cells; 0 for a column that is left out.

    `width` is that of the whole line, None where it is unbounded. `words` is the column of method and target; the outcomes
    are aligned after it.
    """

    width: int | None
    row: int
    id: int
    at: int
    took: int
    size: int
    lane: int
    words: int
    lane_role: str = "server"
    """The title of the lane column: `server`, `client` or `lane`."""
    counts_tokens: bool = False
    """True if the column of sizes has tokens."""

    @property
    def size_name(self) -> str:
        """The title of the column of sizes."""
        return "tokens" if self.counts_tokens else "size"

    @property
    def left(self) -> int:
        """The cell in which the words begin, after the arrow."""
        widths = [self.row, self.id, self.at, self.took, self.size]
        return sum(widths) + sum(1 for width in widths if width) + (self.lane + 1 if self.lane else 0) + len(" → ")

    def header(self) -> Line:
        """Return the line of column titles."""
        cells = self._numbers("row", "id", "seconds" if self.at >= len("seconds") else "sec", "took", self.size_name)
        lane = padded(self.lane_role, self.lane) + " " if self.lane else ""
        return [(cells + lane + "   " + padded("call", self.words) + GAP + "outcome", "dim")]

    def left_part(
        self,
        *,
        row: int | None,
        id: str,
        at_ns: int,
        took_ns: int | None,
        size_bytes: int | None,
        lane: str,
        lane_style: str,
        waited_ns: int | None = None,
    ) -> Line:
        """Return the numbers of one line and its lane. A value that is None or empty stays blank.

        `waited_ns` is the time without an answer, for a line without `took_ns`.
        """
        line: Line = []
        number = "" if row is None else str(row)
        # what is counted or measured has a letter a cell: `cells` would cost a quarter of a row
        line.append((number.rjust(self.row) + " ", "strong"))
        if self.id:
            line.append((padded(cut(id, self.id), self.id) + " ", "dim"))
        if self.at:
            line.append((seconds(at_ns).rjust(self.at) + " ", "dim"))
        if self.took:
            if took_ns is None and waited_ns is not None:
                line.append((at_least(waited_ns).rjust(self.took) + " ", "wait"))
            else:
                line.append((("" if took_ns is None else duration(took_ns)).rjust(self.took) + " ", ""))
        if self.size:
            figure = "" if size_bytes is None else f"{size_bytes}" if self.counts_tokens else size(size_bytes)
            line.append((figure.rjust(self.size) + " ", "dim"))
        if self.lane:
            line.append((padded(cut(lane, self.lane), self.lane) + " ", lane_style))
        return line

    def _numbers(self, row: str, id: str, at: str, took: str, size: str) -> str:
        parts = [padded_left(row, self.row)]
        if self.id:
            parts.append(padded(id, self.id))
        parts += [padded_left(name, width) for name, width in ((at, self.at), (took, self.took), (size, self.size)) if width]
        return " ".join(parts) + " "


def columns(
    *,
    width: int | None,
    last_row: int,
    last_ns: int,
    longest_id: int,
    lanes: list[str],
    longest_words: int,
    lane_role: str = "server",
    with_params: bool = False,
) -> Columns:
    """Choose columns that fit into `width` cells and are wide enough for the last row and the longest id.

    `lanes` are the safe names for the lane column, empty where one server and one client make it pointless. `lane_role` is
    the column's title. `with_params` says that calls are shown with their params, which need more room. Rows whose last time is 0 are
    of a source without times, and get no columns for them.
    """
    room = WIDE_CELLS if width is None else width
    wide = room >= WIDE_CELLS
    longest = MAX_WIDE_ID_CELLS if wide else (MAX_NARROW_ID_CELLS if lanes else MAX_ID_CELLS)
    shape = Columns(
        width=width,
        row=max(3, len(str(last_row))),
        id=max(2, min(longest_id, longest)) if room >= FULL_CELLS else 0,
        at=max(7, len(seconds(last_ns))) if room >= TINY_CELLS and last_ns else 0,
        took=TOOK_CELLS if room >= SHORT_CELLS and last_ns else 0,
        size=SIZE_CELLS if wide or (room >= FULL_CELLS and not lanes) else 0,
        lane=_lane_cells(lanes, lane_role, room),
        words=0,
        lane_role=lane_role,
    )
    most = widest_words(width, shape.left) if with_params else MAX_WORDS_CELLS
    free = most if width is None else width - shape.left - len(GAP) - OUTCOME_CELLS
    return replace(shape, words=max(min(longest_words, free, most), MIN_WORDS_CELLS))


def widest_words(width: int | None, left: int = 0) -> int:
    """Return the most cells of a call with its params, on a line whose words begin at `left`."""
    return MAX_PARAMS_CELLS if width is None else min(int((width - left - len(GAP)) * WORDS_SHARE), MAX_PARAMS_CELLS)


def _lane_cells(lanes: list[str], role: str, room: int) -> int:
    if not lanes or room < SHORT_CELLS:
        return 0
    limit = MAX_WIDE_LANE_CELLS if room >= WIDE_CELLS else MAX_LANE_CELLS
    return min(max(map(cells, [role, *lanes])), limit)


class Lanes:
    """Names and styles for the lane column: the server or model of a row if there are several, else its client if there are several.

    `role` is the column's title; empty where one server and one client make the column pointless.
    """

    __slots__ = ("_is_by_server", "_known", "_styles", "role", "captures")

    def __init__(self, captures: list[CaptureInfo]) -> None:
        self.captures = captures
        self._known = _participants(captures)
        servers = list(dict.fromkeys(capture.server for capture in captures))
        clients = list(dict.fromkeys(name for capture in captures for name in capture.clients))
        self._is_by_server = len(servers) > 1
        is_mixed = any(capture.is_model for capture in captures)
        self.role = ("lane" if is_mixed else "server") if self._is_by_server else "client" if len(clients) > 1 else ""
        names = servers if self._is_by_server else clients if self.role else []
        self._styles = {name: lane_style(index) for index, name in enumerate(names)}

    @property
    def names(self) -> list[str]:
        """The names for the column, safe; empty where the column is left out."""
        return [safe_text(name) for name in self._styles]

    def knows(self, captures: list[CaptureInfo]) -> bool:
        """Return whether no server and no client name has been added since."""
        return self._known == _participants(captures)

    def of(self, row: Row) -> tuple[str, str]:
        """Return name and style of the lane of a row."""
        if not self._styles or row.capture >= len(self.captures):
            return "", ""
        capture = self.captures[row.capture]
        name = capture.server if self._is_by_server else capture.client_of(row)
        return safe_text(name), self._styles.get(name, "")


def _participants(captures: list[CaptureInfo]) -> int:
    return len(captures) + sum(len(capture.client_names) for capture in captures)
