"""Looking and searching: what is on the screen, and the keys that move through it. It reads captures and changes nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from signal import SIGTERM, signal
from typing import TYPE_CHECKING, ClassVar, Final

from textual import events, on
from textual.app import App, ComposeResult
from textual.binding import BindingType
from textual.containers import Container, Horizontal, Vertical

from ..errors import FilterError, McpspyError
from ..transcript.model import Row
from ..views.text.escape import one_line, safe_text
from ..views.text.line import Line, joined
from ..views.text.units import counted
from . import seeking
from .dialogs import ChoicePane, TextPane
from .drawing import Letters
from .keys import ACTIONS, bindings, footer, help_lines
from .line_list import LineList
from .panes import Bar, DetailList, DetailPane, RecordingLines, RowList, TabBar
from .prompt import PromptLine, read_filter
from .row_lines import RowLines, is_pending
from .shown_rows import ShownRows, slowest
from .tabs import TABS

if TYPE_CHECKING:
    from types import FrameType

    from ..transcript.filter.grammar import Filter
    from .source import Desk, RowSource

BESIDE_CELLS: Final = 150
"""From this width on, the detail is beside the rows and not below them."""

TICK_S: Final = 0.05
LOOK_S: Final = 1.0
"""Seconds between two looks at the captures, and at the store."""

TIMER_TICKS: Final = 4
"""So many ticks after each other, timers are drawn again."""

DETAIL_S: Final = 0.02
"""A row that the cursor only passes is not shown in detail."""

CHECKED_ROWS: Final = 2_000
"""So many rows are searched for findings without being asked, when nothing comes any more."""

MAX_SLOWEST: Final = 50
FIRST_LINES: Final = 20
LEAST_LINES: Final = 4

_BETWEEN = (" · ", "dim")


class Looking(App[None]):
    """The screen and the keys with which one looks and searches. `row` is the number of the row to begin with."""

    CSS = """
    Screen { layers: base above; }
    #bar, #foot { height: 1; }
    #main { height: 1fr; }
    #recordings { width: 34; display: none; border-right: vkey ansi_bright_black; }
    #rows-side { width: 1fr; height: 1fr; }
    #detail { width: 1fr; height: 1fr; border-top: hkey ansi_bright_black; }
    #main.beside #work { layout: horizontal; }
    #main.beside #detail { border-top: none; border-left: vkey ansi_bright_black; }
    #work { width: 1fr; height: 1fr; layout: vertical; }
    #strip { height: 1; display: none; }
    #prompt { height: 3; display: none; }
    PromptInput { height: 1; }
    """

    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = bindings()

    def __init__(self, source: RowSource, desk: Desk, letters: Letters, *, row: int = 0, follows: bool = False) -> None:
        super().__init__(ansi_color=True)
        self.theme = "ansi-dark"
        self.desk = desk
        self.letters = letters
        self.source = source
        self.shown = ShownRows(source.transcript)
        self.rows = RowLines(self.shown, live=source.live)
        self.condition: Filter | None = None
        """The last filter; n and N use it also when all rows are shown."""
        self.looked_up: list[Row] = []
        """The slowest rows, while `s` goes through them."""
        self.crash: Exception | None = None
        """The error that ended it."""
        self.bar = Bar(letters, id="bar", style="bold")
        self.main = Horizontal(id="main")
        self.recordings = LineList(letters, id="recordings")
        self.rows_side = Vertical(id="rows-side")
        self.titles = Bar(letters, id="titles")
        self.row_list = RowList(letters, id="rows")
        self.detail = DetailPane(letters)
        self.strip = Bar(letters, id="strip", style="reverse")
        self.prompt = PromptLine(letters, self.typed, self.finished)
        self.choice = ChoicePane(letters)
        self.reading = TextPane(letters)
        self.foot = Bar(letters, id="foot")
        self._first_row = row
        self._follows = follows
        """True if a newer recording takes the place of this one when the user looks at its end."""
        self._ticks = 0
        self._hit = 0
        self._is_unchecked = source.live
        self._filter_text = ""
        self._part: LineList = self.row_list
        """The part of the screen to which the user returns."""

    # --- The screen ---

    def compose(self) -> ComposeResult:
        """Make the parts of the screen."""
        yield self.bar
        with self.main:
            yield self.recordings
            with Container(id="work"):
                with self.rows_side:
                    yield self.titles
                    yield self.row_list
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
        self.row_list.when_chosen = lambda: self.set_focus(self.detail.lines)
        self.recordings.when_chosen = self.open_chosen
        self.row_list.when_sized = self.show_titles
        self.detail.lines.when_sized = self.show_detail
        self.reading.lines.when_chosen = self.enough
        self.set_focus(self.row_list)
        self.show_source(self.source)
        self.say()
        if self._first_row:
            self.go_to(self._first_row)
        self.lay_out()
        self.set_interval(TICK_S, self.tick)
        self.set_interval(LOOK_S, self.look)

    def on_resize(self, event: events.Resize) -> None:
        """Lay the parts out for the size."""
        self.call_after_refresh(self.lay_out)

    def lay_out(self) -> None:
        """Put the detail beside the rows where there is room, else below."""
        self.main.set_class(self.size.width >= BESIDE_CELLS, "beside")
        self.fit_rows()
        self.call_after_refresh(self.show_detail)
        self.call_after_refresh(self.show_titles)

    def show_source(self, source: RowSource) -> None:
        """Show other captures."""
        if source is not self.source:
            self.source.close()
        self.source = source
        self.shown = ShownRows(source.transcript)
        self.rows = RowLines(self.shown, live=source.live)
        self.looked_up = []
        self._is_unchecked = source.live
        self.read()
        self.rows.seen = len(self.shown)
        self.row_list.show(self.rows, len(self.shown) - 1 if source.live else self.first_numbered())
        self.show_all()

    def first_numbered(self) -> int:
        """Return the position of the first row with a number, which is among the first lines or not worth a search."""
        positions = range(min(len(self.shown), FIRST_LINES))
        return next((at for at in positions if seeking.number_of(self.shown.row(at))), 0)

    def fit_rows(self) -> None:
        """Give rows above the detail no more lines than they need, and half of the screen at most."""
        is_beside = self.size.width >= BESIDE_CELLS
        height = None if is_beside else max(min(len(self.shown) + 1, self.size.height // 2 - 1), LEAST_LINES)
        self.rows_side.styles.height = "1fr" if height is None else height

    def show_all(self) -> None:
        """Show what depends on the rows."""
        self.fit_rows()
        self.show_titles()
        self.show_bar()
        self.show_detail()

    def show_titles(self) -> None:
        """Show the titles of the columns, once the size of the list is known."""
        if not self.row_list.size.width:
            return
        self.titles.show([("  ", ""), *self.rows.title(self.row_list.line_cells)] if len(self.shown) else [])

    def show_bar(self) -> None:
        """Show what is shown: servers and client, how many rows, what is new."""
        captures = self.source.transcript.captures
        sign: Line = [("● ", "bad")] if self.source.live else []
        servers = ", ".join(dict.fromkeys(info.server for info in captures)) or "nothing yet"
        clients = ", ".join(dict.fromkeys(name for info in captures for name in info.clients))
        parts: list[Line] = [[*sign, (one_line(servers), "strong"), (f" ← {one_line(clients)}", "")]]
        total = len(self.source.transcript.rows)
        if self.shown.condition is None:
            parts.append([(counted(total, "line"), "")])
        else:
            parts.append([(f"{len(self.shown):,} of {counted(total, 'line')} match {safe_text(self._filter_text)}", "wait")])
        if self.source.transcript.findings:
            parts.append([(counted(len(self.source.transcript.findings), "finding"), "warn")])
        new = len(self.shown) - self.rows.seen
        if new > 0 and self.shown.condition is None:
            parts.append([(f"{new:,} new: End", "wait")])
        self.bar.show(joined(parts, _BETWEEN))

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
            self.keep_place(row, follows=is_at_end and self.rows.live and self.focused is self.row_list)
        elif self.rows.live and self._ticks % TIMER_TICKS == 0:
            self.row_list.refresh()
        if was_live and not self.rows.live:
            self.check()
        if is_testing:
            self.show_bar()

    def keep_place(self, row: Row | None, *, follows: bool) -> None:
        """Show the rows that are there now, with the cursor on the row where it was; `follows` puts it on the last one."""
        at = self.row_list.cursor
        if row is not None and self.shown.row(at) is not row and self.shown.condition is not None:
            at = self.shown.nearest(row)
        self.row_list.measure()
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
        self.condition = None
        self.set_focus(self.row_list)
        self.show_source(source)

    # --- Moving ---

    @on(LineList.CursorMoved, "#rows")
    def moved(self) -> None:
        """Show the row, once the cursor rests."""
        if self.row_list.cursor >= len(self.shown) - 1:
            self.rows.seen = len(self.shown)
        self.set_timer(DETAIL_S, self.rest)

    def rest(self) -> None:
        """Show the row at the cursor."""
        self.show_bar()
        self.show_detail()

    def on_tab_bar_tab_chosen(self, event: TabBar.TabChosen) -> None:
        """Open a tab."""
        self.open_tab(event.tab)

    def open_tab(self, tab: int) -> None:
        """Open a tab."""
        self.detail.tab = tab % len(TABS)
        self.show_detail()

    def open_chosen(self) -> None:
        """Show the recording at the cursor."""
        model = self.recordings.model
        if isinstance(model, RecordingLines):
            self.open_recording(model.listed[self.recordings.cursor].name)

    def go_to(self, number: int, words: str = "") -> None:
        """Move the cursor to the row with this number; if a filter hides it, all rows are shown."""
        row = self.source.transcript.row(number)
        if row is None:
            self.say(f"There is no row {number}.", "bad")
            return
        at = self.shown.position(row)
        if at is None:
            self.shown.choose(None)
            self.row_list.measure()
            at = self.shown.position(row) or 0
        self.row_list.put(at)
        self.say(words)

    def action_tab(self, step: int) -> None:
        """Open the next tab, or the one before."""
        self.open_tab(self.detail.tab + step)

    def action_recordings(self) -> None:
        """Show or hide the recordings."""
        recordings = self.recordings
        recordings.display = not recordings.display
        if recordings.display:
            listed = self.desk.recordings()
            recordings.show(RecordingLines(listed, self.source.name))
            self.set_focus(recordings)
        else:
            self.set_focus(self.row_list)
        self.call_after_refresh(self.lay_out)

    def action_leave(self) -> None:
        """Leave what a key has opened."""
        if self.reading.display:
            self.close_text()
            return
        if self.choice.display:
            self.close_choice()
            self.say()
            return
        if self.prompt.display:
            if self.prompt.kind == "filter":
                self.filter(None)
            self.close_prompt()
        self.set_focus(self.row_list)
        self.say()

    def action_part(self, step: int) -> None:
        """Go to the next part of the screen."""
        at = next((at for at, part in enumerate(self.parts) if part is self.focused), 0)
        self.set_focus(self.parts[(at + step) % len(self.parts)])

    @property
    def parts(self) -> list[LineList]:
        """The lists on the screen."""
        return [self.row_list, self.detail.lines, *([self.recordings] if self.recordings.display else [])]

    def action_help(self) -> None:
        """Show the keys."""
        self.show_text(help_lines())

    def action_end(self) -> None:
        """End the interface."""
        self.exit()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool:
        """Return whether a key acts: not while the user types, chooses or reads what another key opened."""
        return action not in ACTIONS or not (self.reading.display or self.choice.display or self.prompt.display)

    def show_text(self, lines: Iterable[Line], words: str = "back") -> None:
        """Show lines on the whole screen until the user presses Esc; `words` say what that does."""
        self.remember_part()
        self.reading.show(lines, words)

    def close_text(self) -> None:
        """Close what `show_text` has opened."""
        self.set_focus(self._part)
        self.reading.close()

    def enough(self) -> None:
        """Close it because the user has read it."""
        self.close_text()

    def remember_part(self) -> None:
        """Remember in which part of the screen the user is."""
        self._part = next((part for part in self.parts if part is self.focused), self._part)

    def choose(self, title: str | Callable[[], Line], choices: Sequence[tuple[str, str]], then: Callable[[str], None]) -> None:
        """Let the user choose; `then` gets the key, and nothing happens without one."""

        def take(key: str) -> None:
            self.close_choice()
            then(key)

        self.remember_part()
        self.choice.ask(title if callable(title) else lambda: [(title, "")], choices, take)

    def close_choice(self) -> None:
        """Close what there is to choose from."""
        self.set_focus(self._part)
        self.choice.close()

    # --- Finding ---

    def close_prompt(self) -> None:
        """Close the field."""
        kind, self.prompt.kind = self.prompt.kind, ""
        self.set_focus(self.detail.lines if kind == "search" else self.row_list)
        self.prompt.display = False

    def action_find(self) -> None:
        """Ask for a filter; in the detail for a text to search for."""
        if isinstance(self.focused, DetailList):
            self.prompt.ask("search", "search in this message")
        else:
            self.prompt.ask("filter", "filter", self._filter_text if self.shown.condition is not None else "")

    def action_goto(self) -> None:
        """Ask for the number of a row."""
        self.prompt.ask("row", "number of the row")

    def typed(self, kind: str, text: str) -> None:
        """Do what was typed so far, as far as it can be read."""
        if kind == "filter":
            self.typed_filter(text, is_final=False)

    def finished(self, kind: str, text: str) -> None:
        """Do what was typed."""
        if kind == "filter":
            self.typed_filter(text, is_final=True)
            return
        self.close_prompt()
        if kind == "search":
            self.search(text)
        elif kind != "row":
            self.answered(kind, text.strip())
        elif text.strip().isdecimal():
            self.say()
            self.go_to(int(text))
        else:
            self.say("A row has a number, as in 7.", "bad")

    def answered(self, kind: str, text: str) -> None:
        """Do what was typed for another key."""

    def typed_filter(self, text: str, *, is_final: bool) -> None:
        """Show the rows that match what was typed so far."""
        try:
            condition = read_filter(text)
        except FilterError:
            return  # the prompt says what is wrong, and stays open
        self._filter_text = text.strip()
        self.condition = condition
        self.filter(condition)
        if is_final:
            self.close_prompt()
            self.say("Esc shows all rows; then n goes to the next match" if condition else "")

    def filter(self, condition: Filter | None) -> None:
        """Show the rows that match."""
        row = self.row_list.row
        self.shown.choose(condition)
        self.shown.work(least=1)
        self.rows.seen = max(self.rows.seen, len(self.shown))
        self.row_list.show(self.rows, 0 if row is None else self.shown.nearest(row))
        self.show_all()

    def search(self, text: str) -> None:
        """Search in the detail."""
        model = self.detail.lines.model
        count = model.search(text) if hasattr(model, "search") else 0
        self._hit = -1
        if count:
            self.next_hit(1)
        else:
            self.say(f"{safe_text(text)} is not in it", "bad")

    def next_hit(self, direction: int) -> None:
        """Go to another hit of the search."""
        lines = self.detail.lines
        model = lines.model
        hits = getattr(model, "hits", [])
        if not hits:
            self.say("Search first: /", "bad")
            return
        self._hit = (self._hit + direction) % len(hits)
        at = model.reveal(self._hit)  # type: ignore[attr-defined]  # models with hits have it
        lines.measure()
        lines.put(at)
        self.say(f"{self._hit + 1} of {len(hits)}")

    def action_next(self, direction: int) -> None:
        """Go to the next match of the filter, or of the search where that was made."""
        if isinstance(self.focused, DetailList):
            self.next_hit(direction)
        elif self.shown.condition is not None:
            self.row_list.put((self.row_list.cursor + direction) % max(len(self.shown), 1))
        elif self.condition is None:
            self.say("Filter first: /", "bad")
        else:
            at = seeking.matching(self.shown, self.condition, self.row_list.cursor, direction)
            if at is None:
                self.say(f"No row matches {safe_text(self._filter_text)}", "bad")
            else:
                self.row_list.put(at)
                self.say()

    def action_finding(self, direction: int) -> None:
        """Go to the next row with a finding."""
        if self._is_unchecked:
            self.check()
        transcript = self.source.transcript
        number = seeking.with_finding(transcript, seeking.number_of(self.row_list.row), direction)
        if number is None:
            self.say("No finding is about a row." if transcript.findings else "There are no findings.")
        else:
            self.go_to(number, one_line("; ".join(seeking.finding_titles(transcript, number))))

    def action_pending(self) -> None:
        """Go to the next call that waits."""
        number = seeking.pending(self.source.transcript, seeking.number_of(self.row_list.row))
        if number is None:
            self.say("Every call has its answer.")
        else:
            self.go_to(number)

    def action_slowest(self) -> None:
        """Go to the slowest call, then to the next slowest."""
        number = seeking.number_of(self.row_list.row)
        if not self.looked_up or number != seeking.number_of(self.looked_up[0]):
            self.looked_up = list(slowest(self.source.transcript, MAX_SLOWEST))
        else:
            self.looked_up.pop(0)
        if self.looked_up:
            self.go_to(seeking.number_of(self.looked_up[0]))
        else:
            self.say("No call has taken time.")

    # --- The end ---

    def _fatal_error(self) -> None:
        """Keep the error for whoever started this, and leave the terminal first: no traceback on the alternate screen."""
        self.crash = self._exception
        self._close_messages_no_wait()

    def on_unmount(self) -> None:
        """Close the captures."""
        self.source.close()
