"""Screens above the others: lines to read, and a list to choose from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import ModalScreen

from ..views.text.line import Line
from .drawing import Letters
from .line_list import LineList
from .panes import Bar
from .taken_lines import TakenLines

TITLE_S = 0.2


class TextScreen(ModalScreen[None]):
    """Lines to read. Esc, Enter or q closes them."""

    DEFAULT_CSS = """
    TextScreen { align: center middle; }
    TextScreen LineList { width: 100%; height: 1fr; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q,question_mark", "dismiss", show=False)]

    def __init__(self, letters: Letters, lines: Iterable[Line]) -> None:
        super().__init__()
        self._letters = letters
        self._model = TakenLines(lines)

    def compose(self) -> ComposeResult:
        """Make the parts."""
        yield LineList(self._letters, id="text")
        yield Bar(self._letters, id="text-foot")

    def on_mount(self) -> None:
        """Show the lines."""
        self.query_one(LineList).show(self._model)
        self.query_one(Bar).show([(" Esc", "strong"), (" back", "dim")])

    def on_line_list_line_chosen(self) -> None:
        """Close."""
        self.dismiss()


class ChoiceLines:
    """The model of things to choose from: the key of each, and its words."""

    def __init__(self, choices: Sequence[tuple[str, str]]) -> None:
        self.choices = choices

    def __len__(self) -> int:
        return len(self.choices)

    def mark(self, at: int) -> str:
        """Mark nothing."""
        return ""

    def line(self, at: int, width: int) -> Line:
        """Draw a choice."""
        key, words = self.choices[at]
        return [(f"{key}  ", "strong"), (words, "")]


class ChoiceScreen(ModalScreen[str]):
    """A few things of which the user takes one, by its key or with Enter; the result is the key, empty if none was taken.

    `title` is asked again while the user looks: it may have a countdown.
    """

    DEFAULT_CSS = """
    ChoiceScreen { align: left bottom; background: transparent; }
    ChoiceScreen LineList { height: auto; }
    ChoiceScreen Bar { text-style: bold; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "none", show=False)]

    def __init__(self, letters: Letters, title: Callable[[], Line], choices: Sequence[tuple[str, str]]) -> None:
        super().__init__()
        self._title = title
        self._choices = choices
        self._bar = Bar(letters, id="choice-title", style="reverse")
        self._list = LineList(letters, id="choices")

    def compose(self) -> ComposeResult:
        """Make the parts."""
        yield self._bar
        yield self._list

    def on_mount(self) -> None:
        """Show the choices."""
        self._list.styles.height = len(self._choices) + 1
        self._list.show(ChoiceLines(self._choices))
        self._list.focus()
        self.entitle()
        self.set_interval(TITLE_S, self.entitle)

    def entitle(self) -> None:
        """Show the title as it is now."""
        self._bar.show([(" ", ""), *self._title()])

    def action_none(self) -> None:
        """Take nothing."""
        self.dismiss("")

    def on_key(self, event: events.Key) -> None:
        """Take a choice by its key."""
        if event.character and event.character in {key for key, _ in self._choices}:
            event.stop()
            self.dismiss(event.character)

    def on_line_list_line_chosen(self) -> None:
        """Take the choice at the cursor."""
        self.dismiss(self._choices[self._list.cursor][0])
