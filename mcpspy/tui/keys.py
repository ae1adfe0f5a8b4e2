"""The table of keys: what the help shows, what the footer shows, and what Textual binds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from ..views.text.line import Line

if TYPE_CHECKING:
    from textual.binding import BindingType


class KeyHelp(NamedTuple):
    """A key, or two that belong together. `bound` has Textual's names of the keys and the actions."""

    context: str
    """The purpose, at the first key that has it; else empty."""
    shown: str
    help: str
    bound: tuple[tuple[str, str], ...]
    footer: str = ""
    """One word for the footer; empty for a key that is not there."""


KEYS: Final = (
    KeyHelp("find", "/", "filter rows as you type; in the detail: search in it", (("slash", "find"),), "filter"),
    KeyHelp("", "n N", "the next match of the filter or search, the one before", (("n", "next(1)"), ("N", "next(-1)"))),
    KeyHelp("", "f F", "the next row with a finding, the one before", (("f", "finding(1)"), ("F", "finding(-1)")), "finding"),
    KeyHelp("", "p s", "the next unanswered call; the slowest, then the next", (("p", "pending"), ("s", "slowest"))),
    KeyHelp("", ":", "go to a row by its number", (("colon", "goto"),)),
    KeyHelp("read", "← →", "the next tab of the detail, the one before", (("left", "tab(-1)"), ("right", "tab(1)"))),
    KeyHelp("", "Tab Enter", "the next part of the screen; open, fold and unfold", (("tab", "part(1)"), ("shift+tab", "part(-1)"))),
    KeyHelp("", "d", "compare with the call before of the same tool", (("d", "compare"),)),
    KeyHelp("", "g", "the diagram of the rows around it, or of those that match", (("g", "diagram"),)),
    KeyHelp("", "o", "open the page in the browser, at this row", (("o", "page"),)),
    KeyHelp("act", "y", "copy: the JSON, curl, the command for replay, a link", (("y", "copy"),)),
    KeyHelp("", "e", "export: a report, a page, a diagram, JSON Lines, HAR", (("e", "export"),)),
    KeyHelp("", "r R", "make this call again; the same, edited first", (("r", "again(0)"), ("R", "again(1)")), "call"),
    KeyHelp("", "b h", "hold messages like this one, or stop that; what is held", (("b", "hold"), ("h", "held")), "hold"),
    KeyHelp("", "x", "restart the server; its client stays connected", (("x", "restart"),)),
    KeyHelp("screen", "l", "show or hide the recordings", (("l", "recordings"),)),
    KeyHelp("", "?", "this help", (("question_mark", "help"),), "help"),
    KeyHelp("", "q", "quit", (("q", "end"),)),
)  # fmt: skip
"""In the order of the help; at most 18."""

ACTIONS: Final = frozenset(action.partition("(")[0] for key in KEYS for _, action in key.bound)
"""The names of the actions."""

MORE: Final = (
    "Arrows, PgUp, PgDn, Home and End move; the mouse clicks and scrolls.",
    "Esc leaves what a key has opened. For a screen reader: mcpspy show",
)


def bindings() -> list[BindingType]:
    """Return what Textual binds: each with priority (see `line_list`)."""
    from textual.binding import Binding  # which the first frame does not wait for

    bound = [Binding(name, action, key.help, show=False, priority=True) for key in KEYS for name, action in key.bound]
    return [*bound, Binding("escape", "leave", show=False, priority=True)]


def footer() -> Line:
    """Return the keys that matter most."""
    line: Line = []
    for key in KEYS:
        if key.footer:
            line += [(f" {key.shown} ", "strong"), (f"{key.footer} ", "dim")]
    return line


def help_lines() -> list[Line]:
    """Return the help."""
    contexts, width = max(len(key.context) for key in KEYS), max(len(key.shown) for key in KEYS)
    lines: list[Line] = [[("Keys", "strong")], []]
    lines += [[(f"{key.context:<{contexts}}  ", "dim"), (f"{key.shown:<{width}}  ", "strong"), (key.help, "")] for key in KEYS]
    return [*lines, [], *([(text, "dim")] for text in MORE)]
