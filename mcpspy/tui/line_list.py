"""A list of lines of which only those on the screen are made, with a cursor. What the lines are, its model says.

All keys of the interface are bound with priority: Textual then acts on a key before it reads the next one. Without, a key goes to the
widget that had the focus when the key before it was read, however fast the user types.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Final, Protocol

from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from ..views.text.line import Line
from .drawing import Letters, strip_of

MARK_CELLS = 2
"""The cells before a line, which show the cursor."""


MOVING: Final = (
    Binding("up", "move(-1)", show=False, priority=True),
    Binding("down", "move(1)", show=False, priority=True),
    Binding("pageup", "page(-1)", show=False, priority=True),
    Binding("pagedown", "page(1)", show=False, priority=True),
    Binding("home", "edge(0)", show=False, priority=True),
    Binding("end", "edge(1)", show=False, priority=True),
    Binding("enter,space", "choose", show=False, priority=True),
)
"""The keys of every list."""


class LineModel(Protocol):
    """Lines by their positions."""

    def __len__(self) -> int: ...

    def line(self, at: int, width: int) -> Line:
        """Make a line in at most `width` cells."""

    def mark(self, at: int) -> str:
        """Return a sign to show before a line, or an empty text."""


class EmptyLines:
    """No lines."""

    def __len__(self) -> int:
        return 0

    def line(self, at: int, width: int) -> Line:
        """Return nothing: there is none."""
        return []

    def mark(self, at: int) -> str:
        """Return nothing."""
        return ""


class LineList(ScrollView, can_focus=True):
    """The widget. It says `CursorMoved` when the cursor is on another line, and calls `when_chosen` when the user takes a line."""

    DEFAULT_CSS = """
    LineList { overflow-x: hidden; overflow-y: scroll; scrollbar-size-vertical: 1; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        *MOVING,
        Binding("k", "move(-1)", show=False, priority=True),
        Binding("j", "move(1)", show=False, priority=True),
    ]

    class CursorMoved(Message):
        """The cursor is on another line, because the user moved it."""

        def __init__(self, line_list: LineList) -> None:
            super().__init__()
            self.line_list = line_list

        @property
        def control(self) -> LineList:
            """The list, by whose id handlers are chosen."""
            return self.line_list

    def __init__(self, letters: Letters, *, id: str) -> None:
        super().__init__(id=id)
        self.letters = letters
        self.model: LineModel = EmptyLines()
        self.cursor = 0
        self.when_chosen: Callable[[], None] = lambda: None
        self.when_sized: Callable[[], None] = lambda: None

    @property
    def line_cells(self) -> int:
        """The cells that a line may take."""
        return max(self.scrollable_content_region.width - MARK_CELLS, 1)

    def show(self, model: LineModel, cursor: int = 0) -> None:
        """Show another model, with the cursor on a line."""
        self.model = model
        self.cursor = cursor
        self.measure()
        self.reveal()

    def measure(self) -> None:
        """Take the number of lines from the model again."""
        self.virtual_size = Size(max(self.size.width, 1), len(self.model))
        self.cursor = max(0, min(self.cursor, len(self.model) - 1))
        self.refresh()

    def reveal(self) -> None:
        """Scroll so that the cursor is on the screen. Before the list has a size, nothing is done: it does this when it gets one."""
        height = self.scrollable_content_region.height
        if not height:
            return
        top = round(self.scroll_offset.y)
        if self.cursor < top:
            top = self.cursor
        elif self.cursor >= top + height:
            top = self.cursor - height + 1
        self.scroll_to(y=top, animate=False, force=True)
        self.refresh()

    def put(self, cursor: int) -> None:
        """Move the cursor to a line as the user would."""
        cursor = max(0, min(cursor, len(self.model) - 1))
        has_moved = cursor != self.cursor
        self.cursor = cursor
        self.reveal()
        if has_moved:
            self.post_message(self.CursorMoved(self))

    def action_move(self, lines: int) -> None:
        """Move the cursor by some lines."""
        self.put(self.cursor + lines)

    def action_page(self, pages: int) -> None:
        """Move the cursor by a screen."""
        height = max(self.scrollable_content_region.height - 1, 1)
        self.scroll_to(y=self.scroll_offset.y + pages * height, animate=False, force=True)
        self.put(self.cursor + pages * height)

    def action_edge(self, edge: int) -> None:
        """Move the cursor to the first line, or with 1 to the last."""
        self.put(len(self.model) - 1 if edge else 0)

    def action_choose(self) -> None:
        """Take the line at the cursor."""
        if len(self.model):
            self.when_chosen()

    def on_click(self, event: events.Click) -> None:
        """Move the cursor to a line; take it with a second click."""
        at = event.y + round(self.scroll_offset.y)
        if at < len(self.model):
            self.put(at)
            if event.chain > 1:
                self.action_choose()

    def on_resize(self) -> None:
        """Keep the cursor on the screen."""
        self.measure()
        self.when_sized()
        self.call_after_refresh(self.reveal)

    def on_focus(self) -> None:
        """Show the cursor as that of the list in use."""
        self.refresh()

    def on_blur(self) -> None:
        """Show it as that of another one."""
        self.refresh()

    def render_line(self, y: int) -> Strip:
        """Draw one line of the screen."""
        at = y + round(self.scroll_offset.y)
        width = self.scrollable_content_region.width
        if at >= len(self.model):
            return Strip.blank(width)
        is_cursor = at == self.cursor
        mark = "►" if is_cursor else self.model.mark(at)
        line: Line = [(f"{mark or ' '} ", "strong" if is_cursor else "wait"), *self.model.line(at, self.line_cells)]
        return strip_of(line, width, self.letters, "reverse" if is_cursor and self.has_focus else "")
