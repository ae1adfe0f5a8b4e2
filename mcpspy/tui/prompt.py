"""The line at the bottom in which the user types: a filter, a text to search for, the number of a row.

A key goes to a row: the next with a finding, the next that waits, the next that matches, or one by its number.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Final

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widgets import Input

from ..errors import FilterError
from ..transcript.model import Exchange, Numbered, Row, Transcript
from ..views.text.escape import safe_text
from ..views.text.line import Line
from .drawing import Letters
from .panes import Bar
from .row_lines import ShownRows

if TYPE_CHECKING:
    from ..transcript.filter.grammar import Filter

MAX_OFFERS = 8

MAX_LOOKED_AT: Final = 20_000
"""So many rows before a call are looked at for one like it."""


class PromptInput(Input):
    """The field. It takes each key at once, as the lists do, so that Enter and what is typed after it come in their order."""

    BINDINGS: ClassVar[list[BindingType]] = [
        *(replace(key, priority=True) for key in Input.BINDINGS if isinstance(key, Binding) and key.action != "submit"),
        Binding("tab", "complete", show=False, priority=True),
        Binding("enter", "finish", show=False, priority=True),
    ]

    def _forward_event(self, event: events.Event) -> None:
        """Take a letter, or what is pasted, at once."""
        match event:
            case events.Key(is_printable=True, character=str(text)) | events.Paste(text=text):
                self.replace("".join(text.splitlines()[:1]), *self.selection)
            case _:
                super()._forward_event(event)

    def action_finish(self) -> None:
        """Take what was typed."""
        if isinstance(self.parent, PromptLine):
            self.parent.finish()

    def action_complete(self) -> None:
        """Complete the key of a filter, as far as it is clear."""
        from ..transcript.filter.keys import KEYS

        if isinstance(self.parent, PromptLine) and self.parent.kind == "filter":
            before, blank, last = self.value[: self.cursor_position].rpartition(" ")
            names = [name for name in KEYS if name.startswith(last)]
            if names and last:
                text = _common(names) + (":" if len(names) == 1 else "")
                rest = self.value[self.cursor_position :]
                self.value = f"{before}{blank}{text}{rest}"
                self.cursor_position = len(self.value) - len(rest)


class PromptLine(Vertical):
    """The field, and below it what is wrong with what was typed, or how it goes on.

    `when_typed` gets the kind of what is asked and the text while it is typed, and `when_finished` with Enter.
    """

    def __init__(self, letters: Letters) -> None:
        super().__init__(id="prompt")
        self.when_typed: Callable[[str, str], None] = _do_nothing
        self.when_finished: Callable[[str, str], None] = _do_nothing
        self.field = PromptInput(compact=True, select_on_focus=False)
        self._hint = Bar(letters, id="hint")
        self._advice = Bar(letters, id="advice")
        self.kind = ""

    def compose(self) -> ComposeResult:
        """Make the parts."""
        yield self.field
        yield self._hint
        yield self._advice

    def ask(self, kind: str, placeholder: str, text: str = "") -> None:
        """Open the field."""
        self.kind = kind
        self.display = True
        with self.prevent(Input.Changed):
            self.field.value = text
        self.field.placeholder = placeholder
        self.field.cursor_position = len(text)
        self.hint(*(hint_of(text) if kind == "filter" else ([], [])))
        self.screen.set_focus(self.field)

    def hint(self, first: Line, second: Line) -> None:
        """Show two lines below the field."""
        self._hint.show(first)
        self._advice.show(second)

    def on_input_changed(self, event: Input.Changed) -> None:
        """Pass on what is typed."""
        event.stop()
        if self.kind == "filter":  # not `event.value`: meanwhile there may be another one
            self.hint(*hint_of(self.field.value))
        if self.kind:
            self.when_typed(self.kind, self.field.value)

    def finish(self) -> None:
        """Pass on that it is final."""
        self.when_finished(self.kind, self.field.value)


def _do_nothing(kind: str, text: str) -> None:
    """Stand for what is not set yet."""


def hint_of(text: str) -> tuple[Line, Line]:
    """Say which keys can complete the last word, else what is wrong with a filter and where, and what to write instead."""
    from ..transcript.filter.keys import KEYS

    last = text.rpartition(" ")[2]
    names = [name for name in KEYS if last and name.startswith(last)]
    if len(names) == 1:
        return [(f"{names[0]}: ", "strong"), (KEYS[names[0]].meaning, "dim")], [("Tab completes it", "dim")]
    if names:
        return [("  ".join(f"{name}:" for name in names[:MAX_OFFERS]), "")], [("Tab completes", "dim")]
    try:
        read_filter(text)
    except FilterError as error:
        return [(" " * (error.column - 1), ""), ("^ ", "bad"), (safe_text(f"{error.reason}."), "warn")], [
            (safe_text(error.advice), "dim")
        ]
    return [], ([] if text else [('as in  tool:search* dur>2s  or  status:error "text"  (mcpspy help filter)', "dim")])


def _common(names: list[str]) -> str:
    """Return the longest beginning that all names have."""
    first, last = min(names), max(names)
    length = next((at for at, letter in enumerate(first) if letter != last[at : at + 1]), len(first))
    return first[:length]


def read_filter(text: str) -> Filter | None:
    """Read a filter; None for blanks. Raises: FilterError."""
    from ..transcript.filter.filter import filter_of  # with all findings, which the first screen does not wait for

    return filter_of([text]) if text.strip() else None


def number_of(row: Row | None) -> int:
    """Return the number of a row; 0 for one without a number."""
    return row.row if isinstance(row, Numbered) else 0


def beyond(numbers: Sequence[int], number: int, direction: int) -> int | None:
    """Return the next of these numbers in a direction, from the other end after the last; None if there are none."""
    ordered = sorted(numbers)
    if not ordered:
        return None
    if direction > 0:
        return next((other for other in ordered if other > number), ordered[0])
    return next((other for other in reversed(ordered) if other < number), ordered[-1])


def with_finding(transcript: Transcript, number: int, direction: int) -> int | None:
    """Return the number of the next row that a finding is about."""
    return beyond(list({row for finding in transcript.findings for row in finding.rows}), number, direction)


def finding_titles(transcript: Transcript, number: int) -> list[str]:
    """Return what the findings about a row say."""
    return [finding.what for finding in transcript.findings if number in finding.rows]


def pending(transcript: Transcript, number: int) -> int | None:
    """Return the number of the next call that waits for its answer, or never got one."""
    from ..transcript.filter.filter import filter_rows

    condition = read_filter("status:pending or status:unanswered")
    assert condition is not None
    rows = filter_rows(condition, transcript, transcript.rows).rows
    return beyond([row.row for row in rows if isinstance(row, Numbered)], number, 1)


def matching(shown: ShownRows, condition: Filter, at: int, direction: int) -> int | None:
    """Return the position of the next row that matches; from the other end after the last. None if there is none."""
    from ..transcript.filter.filter import FilterMatcher

    test: Callable[[Row], bool] = FilterMatcher(condition, shown.transcript).matches
    count = len(shown)
    for step in range(1, count + 1):
        position = (at + direction * step) % count
        row = shown.row(position)
        if row is not None and test(row):
            return position
    return None


def previous_like(transcript: Transcript, row: Exchange) -> Exchange | None:
    """Return the call before this one that has the same method and target; None if there is none nearby."""
    at = ShownRows(transcript).position(row) or 0
    for position in range(at - 1, max(at - MAX_LOOKED_AT, 0) - 1, -1):
        other = transcript.rows[position]
        if isinstance(other, Exchange) and (other.capture, other.method, other.target) == (row.capture, row.method, row.target):
            return other
    return None
