"""The parts of the screen: the list of rows, the detail of one, the recordings, and bars of one line."""

from __future__ import annotations

from collections.abc import Sequence

from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from ..transcript.model import Row, Transcript
from ..views.text.line import Line
from .drawing import EmptyLines, Letters
from .headlines import HORIZONTAL, VERTICAL, row_line, tab_line
from .json_tree import JsonTree
from .line_list import LineList, strip_of
from .row_lines import RowLines
from .source import ListedRecording
from .tabs import TABS, TakenLines


class Bar(Widget):
    """One line."""

    DEFAULT_CSS = "Bar { height: 1; }"

    def __init__(self, letters: Letters, *, id: str, style: str = "") -> None:
        super().__init__(id=id)
        self._letters = letters
        self._style = style
        self.content: Line = []

    def show(self, line: Line) -> None:
        """Show another line."""
        if line != self.content:
            self.content = line
            self.refresh()

    def render_line(self, y: int) -> Strip:
        """Draw it."""
        return strip_of(self.content if y == 0 else [], self.size.width, self._letters, self._style)


class Divider(Bar):
    """A line between two parts of the screen: across if it is one line high, else down."""

    def render_line(self, y: int) -> Strip:
        """Draw it."""
        sign = HORIZONTAL if self.size.height == 1 else VERTICAL
        return strip_of([(sign * self.size.width, "dim")], self.size.width, self._letters)


class TabBar(Bar):
    """The tabs of the detail. A click chooses one."""

    class TabChosen(Message):
        """A tab was clicked."""

        def __init__(self, tab: int) -> None:
            super().__init__()
            self.tab = tab

    def mark(self, tab: int) -> None:
        """Show which tab is open."""
        self._titles = tab_line(tab)
        self.show([piece for title, _ in self._titles for piece in title])

    _titles: Sequence[tuple[Line, str]] = ()

    def render_line(self, y: int) -> Strip:
        """Draw the titles, the open one reversed."""
        parts = [strip_of(title, len(title[0][0]), self._letters, style) for title, style in self._titles if y == 0]
        return Strip.join(parts).adjust_cell_length(self.size.width)

    def on_click(self, event: events.Click) -> None:
        """Find the tab under the mouse."""
        end = 0
        for at, (text, _) in enumerate(self.content):
            end += len(text)
            if event.x < end:
                self.post_message(self.TabChosen(at))
                return


class RowList(LineList):
    """The list of rows."""

    @property
    def rows(self) -> RowLines | None:
        """The model."""
        return self.model if isinstance(self.model, RowLines) else None

    @property
    def row(self) -> Row | None:
        """The row at the cursor."""
        return None if self.rows is None else self.rows.shown.row(self.cursor)


class TextList(LineList):
    """Lines to read, which are made as the user comes to them."""

    def on_line_list_cursor_moved(self) -> None:
        """Take more lines when the last ones are looked at."""
        if isinstance(self.model, TakenLines) and self.model.grow(self.cursor):
            self.measure()


class DetailList(TextList):
    """The lines of the detail."""

    def action_choose(self) -> None:
        """Fold or unfold."""
        if isinstance(self.model, JsonTree):
            self.model.toggle(self.cursor)
            self.measure()


class DetailPane(Vertical):
    """The detail of one row: a heading, tabs, and the lines of the open one."""

    def __init__(self, letters: Letters) -> None:
        super().__init__(id="detail")
        self.heading = Bar(letters, id="heading")
        self.tabs = TabBar(letters, id="tabs")
        self.lines = DetailList(letters, id="lines")
        self.tab = 0
        self._shown: tuple[Row | None, int, int, object] | None = None

    def compose(self) -> ComposeResult:
        """Make the parts."""
        yield self.heading
        yield self.tabs
        yield self.lines

    def show(self, transcript: Transcript, row: Row | None, *, state: object = None) -> None:
        """Show a row. Nothing happens if it is shown already, with the same tab and width and in the same state."""
        shown = row, self.tab, self.lines.line_cells, state
        before = self._shown
        if before is not None and before[0] is row and before[1:] == shown[1:]:
            return
        is_same = before is not None and before[0] is row and before[1] == self.tab
        self._shown = shown
        self.tabs.mark(self.tab)
        if row is None:
            self.heading.show([])
            self.lines.show(EmptyLines())
            return
        self.heading.show(row_line(transcript, row, self.size.width))
        self.lines.show(TABS[self.tab].content(transcript, row, self.lines.line_cells), self.lines.cursor if is_same else 0)


class RecordingLines:
    """The model of the list of recordings."""

    def __init__(self, listed: list[ListedRecording], shown: str) -> None:
        self.listed = listed
        self.shown = shown

    def __len__(self) -> int:
        return len(self.listed)

    def mark(self, at: int) -> str:
        """Mark those that are being recorded."""
        return "●" if self.listed[at].live else ""

    def line(self, at: int, width: int) -> Line:
        """Draw a recording: when, which servers, which client."""
        item = self.listed[at]
        style = "strong" if item.name == self.shown else ""
        return [(f"{item.when} ", "dim"), (", ".join(item.servers), style), (f" ← {item.client}", "dim")]
