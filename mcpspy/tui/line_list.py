"""A list of lines of which only those on the screen are made, with a cursor. What the lines are, its model says.

All keys of the interface are bound with priority: Textual then acts on a key before it reads the next one. Without, a key goes to the
widget that had the focus when the key before it was read, however fast the user types.

The list scrolls by itself, without Textual's scrolling: that lays the whole screen out anew when a line is added.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Final

from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Region
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from ..views.text.line import Line
from .drawing import EmptyLines, Letters, LineModel, ListWindow, segments_of

WHEEL_LINES: Final = 3

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


class LineList(Widget, can_focus=True):
    """The widget. It says `CursorMoved` when the cursor is on another line, and calls `when_chosen` when the user takes a line."""

    DEFAULT_CSS = "LineList { width: 1fr; height: 1fr; }"

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
        self.top = 0
        """The first line on the screen."""
        self.when_chosen: Callable[[], None] = lambda: None
        self.when_sized: Callable[[], None] = lambda: None

    @property
    def window(self) -> ListWindow:
        """The lines on the screen."""
        return ListWindow(self.model, self.cursor, self.top, *self.size)

    @property
    def line_cells(self) -> int:
        """The cells that a line may take."""
        return self.window.line_cells

    def show(self, model: LineModel, cursor: int = 0) -> None:
        """Show another model, with the cursor on a line."""
        self.model = model
        self.cursor = cursor
        self.measure()
        self.reveal()

    def measure(self, *, is_redrawn: bool = True) -> None:
        """Take the number of lines from the model again. It `is_redrawn` unless no line on the screen has changed."""
        self.cursor = max(0, min(self.cursor, len(self.model) - 1))
        if is_redrawn:
            self.scroll_lines(0)

    def scroll_lines(self, lines: int) -> None:
        """Scroll by some lines, as far as there are any. The cursor stays where it is."""
        self.top = max(0, min(self.top + lines, len(self.model) - self.size.height))
        self.refresh()

    def reveal(self) -> None:
        """Scroll so that the cursor is on the screen. Before the list has a size, nothing is done: it does this when it gets one."""
        if self.size.height:
            self.top = self.window.revealed().top
            self.refresh()

    def put(self, cursor: int) -> None:
        """Move the cursor to a line as the user would."""
        cursor = max(0, min(cursor, len(self.model) - 1))
        before, self.cursor = self.cursor, cursor
        top = self.window.revealed().top
        if top == self.top and self.size.height:
            self.refresh(*(Region(0, line - top, self.size.width, 1) for line in (before, cursor) if top <= line))
        else:
            self.reveal()
        if cursor != before:
            self.post_message(self.CursorMoved(self))

    def action_move(self, lines: int) -> None:
        """Move the cursor by some lines."""
        self.put(self.cursor + lines)

    def action_page(self, pages: int) -> None:
        """Move the cursor by a screen."""
        height = max(self.size.height - 1, 1)
        self.scroll_lines(pages * height)
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
        at = event.y + self.top
        if at < len(self.model) and not self._is_on_the_bar(event):
            self.put(at)
            if event.chain > 1:
                self.action_choose()

    def on_mouse_scroll_down(self) -> None:
        """Scroll down."""
        self.scroll_lines(WHEEL_LINES)

    def on_mouse_scroll_up(self) -> None:
        """Scroll up."""
        self.scroll_lines(-WHEEL_LINES)

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Take hold of the scrollbar."""
        if self._is_on_the_bar(event):
            self.capture_mouse()
            self.on_mouse_move(event)

    def on_mouse_move(self, event: events.MouseEvent) -> None:
        """Scroll to where the scrollbar is dragged."""
        if self.app.mouse_captured is self and self.size.height > 1:
            most = max(len(self.model) - self.size.height, 0)
            self.scroll_lines(round(most * event.y / (self.size.height - 1)) - self.top)

    def on_mouse_up(self) -> None:
        """Let go of the scrollbar."""
        self.release_mouse()

    def _is_on_the_bar(self, event: events.MouseEvent) -> bool:
        return event.x >= self.size.width - 1

    def on_resize(self) -> None:
        """Keep the cursor on the screen."""
        self.measure()
        self.reveal()
        self.when_sized()

    def on_focus(self) -> None:
        """Show the cursor as that of the list in use."""
        self.refresh()

    def on_blur(self) -> None:
        """Show it as that of another one."""
        self.refresh()

    def render_line(self, y: int) -> Strip:
        """Draw one line of the screen."""
        return Strip(self.window.segments(y, self.letters, has_focus=self.has_focus), self.size.width)


def strip_of(line: Line, width: int, letters: Letters, extra: str = "") -> Strip:
    """Draw `line` in exactly `width` cells. `extra` is a style of the whole line, in rich's words."""
    return Strip(segments_of(line, width, letters, extra), max(width, 0))
