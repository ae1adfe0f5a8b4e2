"""The screen: its parts, what is shown in them, and captures that grow. It reads captures and changes nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from signal import SIGTERM, signal
from typing import TYPE_CHECKING, Final

from textual import events
from textual.app import App, ComposeResult
from textual.containers import Container, Horizontal, Vertical
from textual.geometry import Size

from ..errors import McpspyError
from ..transcript.model import Row
from ..views.text.escape import safe_text
from .dialogs import ChoicePane, TextPane
from .drawing import Letters
from .headlines import first_cursor, shares, summary_line, title_line
from .keys import footer
from .line_list import LineList
from .panes import Bar, DetailPane, Divider, RecordingLines, RowList
from .prompt import PromptLine
from .row_lines import RowLines, ShownRows, is_pending

if TYPE_CHECKING:
    from types import FrameType

    from rich.console import RenderableType
    from textual.driver import Driver
    from textual.screen import Screen

    from .source import Desk, RowSource

TICK_S: Final = 0.05
LOOK_S: Final = 1.0
"""Seconds between two looks at the captures, and at the store."""

WHOLE_S: Final = 0.5
"""Then the screen is drawn as it is: on a small one, a part may have no room at all."""

TIMER_TICKS: Final = 4
"""So many ticks after each other, timers are drawn again."""

CHECKED_ROWS: Final = 2_000
"""So many rows are searched for findings without being asked, when nothing comes any more."""

CLEARS: Final = "\x1b[?1049h"
"""The first that the driver writes: it gives the program the whole screen, and clears it."""


class CaptureScreen(App[None]):
    """The screen. `row` is the number of the row to begin with."""

    CSS = """
    Screen { layers: base above; }
    #bar, #foot { height: 1; }
    #main { height: 1fr; }
    #recordings { width: 34; display: none; }
    #recordings-edge { width: 1; height: 1fr; display: none; }
    #rows-side { width: 1fr; height: 1fr; }
    #detail { width: 1fr; height: 1fr; }
    #detail-edge { width: 1fr; height: 1; }
    #main.beside #work { layout: horizontal; }
    #main.beside #detail-edge { width: 1; height: 1fr; }
    #work { width: 1fr; height: 1fr; layout: vertical; }
    #strip { height: 1; display: none; }
    #prompt { height: 3; display: none; }
    PromptInput { height: 1; }
    """

    ENABLE_COMMAND_PALETTE = False

    def __init__(self, source: RowSource, desk: Desk, letters: Letters, *, row: int = 0, follows: bool = False) -> None:
        super().__init__(ansi_color=True)
        self.theme = "ansi-dark"
        self.desk = desk
        self.letters = letters
        self.source = source
        self.shown = ShownRows(source.transcript)
        self.rows = RowLines(self.shown, live=source.live)
        self.crash: Exception | None = None
        """The error that ended it."""
        self.bar = Bar(letters, id="bar", style="bold")
        self.main = Horizontal(id="main")
        self.recordings = LineList(letters, id="recordings")
        self.recordings_edge = Divider(letters, id="recordings-edge")
        self.rows_side = Vertical(id="rows-side")
        self.titles = Bar(letters, id="titles")
        self.row_list = RowList(letters, id="rows")
        self.detail_edge = Divider(letters, id="detail-edge")
        self.detail = DetailPane(letters)
        self.strip = Bar(letters, id="strip", style="reverse")
        self.prompt = PromptLine(letters)
        self.choice = ChoicePane(letters)
        self.reading = TextPane(letters)
        self.foot = Bar(letters, id="foot")
        self._first_row = row
        self._guard: int | None = None
        self._follows = follows
        """True if a newer recording takes the place of this one when the user looks at its end."""
        self._ticks = 0
        self._is_unchecked = source.live
        self._is_whole = False
        """True once all parts of the screen are filled: what a terminal shows before that is the first frame."""
        self.filter_text = ""
        """The text of the last filter."""

    def take_over(self, hand_over: Callable[[], bool], guard: int | None) -> None:
        """Begin on a terminal that `hand_over` gives up; it returns whether a first frame is there. End when `guard` can be read."""
        self.driver_class = _taking_over(self.driver_class, hand_over)
        self._guard = guard

    # --- The screen ---

    def compose(self) -> ComposeResult:
        """Make the parts of the screen."""
        yield self.bar
        with self.main:
            yield self.recordings
            yield self.recordings_edge
            with Container(id="work"):
                with self.rows_side:
                    yield self.titles
                    yield self.row_list
                yield self.detail_edge
                yield self.detail
        yield self.strip
        yield self.prompt
        yield self.choice
        yield self.foot
        yield self.reading

    def on_mount(self) -> None:
        """Begin."""
        loop = asyncio.get_running_loop()

        def end(_number: int, _frame: FrameType | None) -> None:
            loop.call_soon_threadsafe(self.exit)

        if not self.is_headless:
            signal(SIGTERM, end)
        if self._guard is not None:
            loop.add_reader(self._guard, self.exit)
        self.row_list.when_sized = self.detail.lines.when_sized = self.fill
        self.set_focus(self.row_list)
        self.say()
        self.show_source(self.source, self._first_row)
        self.lay_out()
        self.set_timer(WHOLE_S, self.appear)
        self.set_interval(TICK_S, self.tick)
        self.set_interval(LOOK_S, self.look)

    def on_resize(self, event: events.Resize) -> None:
        """Lay the parts out for the size."""
        self.lay_out(event.size)

    def lay_out(self, size: Size | None = None) -> None:
        """Put the detail beside the rows where there is room, else below; rows above it get no more lines than they need."""
        is_beside, height = shares(*(size or self.size), len(self.shown))
        self.main.set_class(is_beside, "beside")
        self.rows_side.styles.height = "1fr" if is_beside else height

    def fill(self) -> None:
        """Fill the parts, whose size is new."""
        self.show_titles()
        self.show_detail()
        if self.row_list.size.width and self.detail.lines.size.width:
            self.appear()

    def appear(self) -> None:
        """Draw from now on."""
        if not self._is_whole:
            self._is_whole = True
            self.screen.refresh()

    def _display(self, screen: Screen[object], renderable: RenderableType | None) -> None:
        """Draw, unless a part of the screen is still empty."""
        if self._is_whole:
            super()._display(screen, renderable)

    def show_source(self, source: RowSource, number: int = 0) -> None:
        """Show other captures, and the row with this number at first."""
        if source is not self.source:
            self.source.close()
        self.source = source
        self.shown = ShownRows(source.transcript)
        self.rows = RowLines(self.shown, live=source.live)
        self._is_unchecked = source.live
        self.read()
        self.rows.seen = len(self.shown)
        if number and source.transcript.row(number) is None:
            self.say(f"There is no row {number}.", "bad")
        self.row_list.show(self.rows, first_cursor(source, self.rows, number))
        self.show_all()

    def show_all(self) -> None:
        """Show what depends on the rows."""
        self.lay_out()
        self.show_titles()
        self.show_bar()
        self.show_detail()

    def show_titles(self) -> None:
        """Show the titles of the columns, once the size of the list is known."""
        if self.row_list.size.width:
            self.titles.show(title_line(self.rows, self.row_list.line_cells))

    def show_bar(self) -> None:
        """Show what is shown: servers and client, how many rows, what is new."""
        self.bar.show(summary_line(self.source, self.rows, self.filter_text))

    def show_detail(self) -> None:
        """Show the row at the cursor in detail, once the size of the detail is known."""
        if not self.detail.lines.size.width:
            return
        row = self.row_list.row
        transcript = self.source.transcript
        state = None
        if row is not None and self.source.live:
            state = is_pending(row, transcript.captures[row.capture]), len(transcript.findings)
        self.detail.show(transcript, row, state=state)

    def say(self, text: str = "", style: str = "wait") -> None:
        """Show a sentence in the place of the footer; without one the footer."""
        self.foot.show([(f" {text}", style)] if text else footer())

    # --- Captures that grow ---

    def read(self) -> list[Row]:
        """Take what is new in the captures."""
        rows = self.source.take()
        if rows:
            self.shown.feed(rows)
            self._is_unchecked = True
        return rows

    def tick(self) -> None:
        """Read what is new, test more rows, draw timers."""
        self._ticks += 1
        was_live, count = self.rows.live, len(self.shown)
        is_at_end = self.row_list.cursor >= count - 1
        row = self.row_list.row
        rows = self.read()
        is_testing = self.shown.work()
        if self._ticks % TIMER_TICKS == 0:
            self.choice.entitle()
        self.rows.live = self.source.live
        if rows or len(self.shown) != count or was_live != self.rows.live:
            follows = is_at_end and self.rows.live and self.focused is self.row_list
            self.keep_place(row, follows=follows, is_redrawn=was_live != self.rows.live or self.is_seen(rows))
        elif self.rows.live and self._ticks % TIMER_TICKS == 0:
            self.row_list.refresh()
        if was_live and not self.rows.live:
            self.check()
        if is_testing:
            self.show_bar()

    def is_seen(self, rows: Sequence[Row]) -> bool:
        """Return whether one of these rows is on the screen, or there is room for more; those that a filter lets through may be."""
        window = self.row_list.window
        end = window.top + window.height
        if self.shown.condition is not None or len(self.shown) - len(rows) < end:
            return True
        seen = {id(self.shown.row(at)) for at in range(window.top, end)}
        return any(id(row) in seen for row in rows)

    def keep_place(self, row: Row | None, *, follows: bool, is_redrawn: bool) -> None:
        """Show the rows that are there now, with the cursor on the row where it was; `follows` puts it on the last one."""
        at = self.row_list.cursor
        if row is not None and self.shown.row(at) is not row and self.shown.condition is not None:
            at = self.shown.nearest(row)
        self.row_list.measure(is_redrawn=is_redrawn)
        self.row_list.cursor = len(self.shown) - 1 if follows else max(0, min(at, len(self.shown) - 1))
        if follows:
            self.rows.seen = len(self.shown)
            self.row_list.reveal()
        self.show_all()

    def look(self) -> None:
        """Look for newer recordings, and for findings when nothing comes."""
        if self._is_unchecked and self.source.live and len(self.source.transcript.rows) <= CHECKED_ROWS and not self.read():
            self.check()
        self.desk.join(self.source)
        recordings = self.recordings
        if not (self._follows or recordings.display):
            return
        listed = self.desk.recordings()
        if recordings.display:
            recordings.model = RecordingLines(listed, self.source.name)
            recordings.measure()
        if self._follows and listed and listed[0].name != self.source.name and listed[0].live:
            is_free = self.row_list.cursor >= len(self.shown) - 1 and self.focused is self.row_list
            if is_free and self.shown.condition is None:
                self.open_recording(listed[0].name)
            else:
                self.say(f"A newer recording has begun: {', '.join(listed[0].servers)}. l lists it")

    def check(self) -> None:
        """Look for findings in the rows so far."""
        self._is_unchecked = False
        self.source.refresh_findings()
        self.rows.forget()
        self.row_list.refresh()
        self.show_all()

    def open_recording(self, name: str) -> None:
        """Show a recording of the store."""
        try:
            source = self.desk.open(name)
        except (McpspyError, OSError) as error:
            self.say(safe_text(str(error)), "bad")
            return
        if source is None:
            self.say("This recording is gone.", "bad")
            return
        self.set_focus(self.row_list)
        self.show_source(source)

    # --- The end ---

    def _fatal_error(self) -> None:
        """Keep the error for whoever started this, and leave the terminal first: no traceback on the alternate screen."""
        self.crash = self._exception
        self._close_messages_no_wait()

    def on_unmount(self) -> None:
        """Close the captures."""
        self.source.close()


def _taking_over(driver_class: type[Driver], hand_over: Callable[[], bool]) -> type[Driver]:
    """Return a driver that first calls `hand_over`, and does not clear the screen if that returns True."""

    class TakenTerminal(driver_class):  # type: ignore[valid-type, misc]  # Textual's class differs by system
        _keeps = False

        def start_application_mode(self) -> None:
            self._keeps = hand_over()
            super().start_application_mode()

        def write(self, data: str) -> None:
            if self._keeps and data == CLEARS:
                self._keeps = False
            else:
                super().write(data)

    return TakenTerminal
