"""The keys that move through the screen and search: they change nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, ClassVar, Final

from textual import on
from textual.binding import BindingType

from ..errors import FilterError
from ..transcript.model import Row
from ..views.text.escape import one_line, safe_text
from ..views.text.line import Line
from . import prompt
from .capture_screen import CaptureScreen
from .drawing import Letters
from .keys import ACTIONS, bindings, help_lines
from .line_list import LineList
from .panes import DetailList, RecordingLines, TabBar
from .row_lines import slowest
from .tabs import TABS

if TYPE_CHECKING:
    from ..transcript.filter.grammar import Filter
    from .source import Desk, RowSource

DETAIL_S: Final = 0.02
"""A row that the cursor only passes is not shown in detail."""

MAX_SLOWEST: Final = 50


class Browser(CaptureScreen):
    """The screen with these keys."""

    BINDINGS: ClassVar[list[BindingType]] = bindings()

    def __init__(self, source: RowSource, desk: Desk, letters: Letters, *, row: int = 0, follows: bool = False) -> None:
        super().__init__(source, desk, letters, row=row, follows=follows)
        self.condition: Filter | None = None
        """The last filter; n and N use it also when all rows are shown."""
        self.looked_up: list[Row] = []
        """The slowest rows, while `s` goes through them."""
        self._hit = 0
        self._part: LineList = self.row_list
        """The part of the screen to which the user returns."""
        self.row_list.when_chosen = lambda: self.set_focus(self.detail.lines)
        self.recordings.when_chosen = self.open_chosen
        self.reading.lines.when_chosen = self.enough
        self.prompt.when_typed, self.prompt.when_finished = self.typed, self.finished

    def show_source(self, source: RowSource, number: int = 0) -> None:
        """Show other captures: what was looked up in those before is forgotten."""
        self.condition = None
        self.looked_up = []
        super().show_source(source, number)

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
        recordings.display = self.recordings_edge.display = not recordings.display
        if recordings.display:
            listed = self.desk.recordings()
            recordings.show(RecordingLines(listed, self.source.name))
            self.set_focus(recordings)
        else:
            self.set_focus(self.row_list)

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
            self.prompt.ask("filter", "filter", self.filter_text if self.shown.condition is not None else "")

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
            condition = prompt.read_filter(text)
        except FilterError:
            return  # the prompt says what is wrong, and stays open
        self.filter_text = text.strip()
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
            at = prompt.matching(self.shown, self.condition, self.row_list.cursor, direction)
            if at is None:
                self.say(f"No row matches {safe_text(self.filter_text)}", "bad")
            else:
                self.row_list.put(at)
                self.say()

    def action_finding(self, direction: int) -> None:
        """Go to the next row with a finding."""
        if self._is_unchecked:
            self.check()
        transcript = self.source.transcript
        number = prompt.with_finding(transcript, prompt.number_of(self.row_list.row), direction)
        if number is None:
            self.say("No finding is about a row." if transcript.findings else "There are no findings.")
        else:
            self.go_to(number, one_line("; ".join(prompt.finding_titles(transcript, number))))

    def action_pending(self) -> None:
        """Go to the next call that waits."""
        number = prompt.pending(self.source.transcript, prompt.number_of(self.row_list.row))
        if number is None:
            self.say("Every call has its answer.")
        else:
            self.go_to(number)

    def action_slowest(self) -> None:
        """Go to the slowest call, then to the next slowest."""
        number = prompt.number_of(self.row_list.row)
        if not self.looked_up or number != prompt.number_of(self.looked_up[0]):
            self.looked_up = list(slowest(self.source.transcript, MAX_SLOWEST))
        else:
            self.looked_up.pop(0)
        if self.looked_up:
            self.go_to(prompt.number_of(self.looked_up[0]))
        else:
            self.say("No call has taken time.")
