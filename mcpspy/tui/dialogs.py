"""Panes that open above or below the others until the user has answered: lines to read, and a few things to choose from.

They are no screens of Textual: one that closes takes keys for a while that are meant for what was below it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from string import ascii_letters, digits
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical

from ..views.text.line import Line
from .drawing import EmptyLines, Letters
from .line_list import MOVING, LineList
from .panes import Bar, TextList
from .tabs import TakenLines


class ReadingList(TextList):
    """The lines of a text. Enter, Space and q close it."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("q,question_mark", "choose", show=False, priority=True)]


class TextPane(Vertical):
    """Lines to read, on the whole screen."""

    DEFAULT_CSS = """
    TextPane { layer: above; width: 100%; height: 100%; display: none; }
    """

    def __init__(self, letters: Letters) -> None:
        super().__init__(id="reading")
        self.lines = ReadingList(letters, id="text")
        self._foot = Bar(letters, id="text-foot")

    def compose(self) -> ComposeResult:
        """Make the parts."""
        yield self.lines
        yield self._foot

    def show(self, lines: Iterable[Line], words: str = "back") -> None:
        """Show lines; `words` say what Esc does."""
        self.display = True
        self.lines.show(TakenLines(lines))
        self._foot.show([(" Esc", "strong"), (f" {words}", "dim")])
        self.screen.set_focus(self.lines)

    def close(self) -> None:
        """Close it; the caller gives the focus to something else first."""
        self.display = False
        self.lines.show(EmptyLines())


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


class ChoiceList(LineList, inherit_bindings=False):
    """The list of things to choose from, each of which has a key."""

    BINDINGS: ClassVar[list[BindingType]] = [
        *MOVING,
        *(Binding(key, f"take({key!r})", show=False, priority=True) for key in ascii_letters + digits),
    ]

    def action_take(self, key: str) -> None:
        """Take a choice by its key."""
        keys = [choice[0] for choice in self.model.choices] if isinstance(self.model, ChoiceLines) else []
        if key in keys:
            self.cursor = keys.index(key)
            self.action_choose()


class ChoicePane(Vertical):
    """A few things of which the user takes one, by its key or with Enter.

    The title is asked again while the user looks: it may have a countdown.
    """

    DEFAULT_CSS = """
    ChoicePane { height: auto; display: none; }
    ChoicePane Bar { text-style: bold; }
    """

    def __init__(self, letters: Letters) -> None:
        super().__init__(id="choosing")
        self._title: Callable[[], Line] = list
        self._bar = Bar(letters, id="choice-title", style="reverse")
        self.lines = ChoiceList(letters, id="choices")

    def compose(self) -> ComposeResult:
        """Make the parts."""
        yield self._bar
        yield self.lines

    def ask(self, title: Callable[[], Line], choices: Sequence[tuple[str, str]], then: Callable[[str], None]) -> None:
        """Show the choices; `then` gets the key of the one that is taken."""
        self._title = title
        self.display = True
        self.lines.styles.height = len(choices)
        self.lines.show(ChoiceLines(choices))
        self.lines.when_chosen = lambda: then(choices[self.lines.cursor][0])
        self.entitle()
        self.screen.set_focus(self.lines)

    def entitle(self) -> None:
        """Show the title as it is now."""
        if self.display:
            self._bar.show([(" ", ""), *self._title()])

    def close(self) -> None:
        """Close it; the caller gives the focus to something else first."""
        self.display = False
