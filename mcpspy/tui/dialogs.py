"""Screens above the others: lines to read, and a list to choose from."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import ModalScreen

from ..views.text.line import Line
from .drawing import Letters
from .line_list import LineList
from .panes import Bar
from .taken_lines import TakenLines


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
