"""Captured text in one safe line, shortened. What goes on longer than it helps is cut, and the cut is shown."""

from .escape import safe_text

PHRASE_LETTERS = 300
"""More of a captured text than this says nothing in one line; `show @:7` has all of it."""


def one_line(text: str, letters: int = PHRASE_LETTERS) -> str:
    """Captured text in one safe line: runs of blanks collapsed, the far end left out."""
    if len(text) > letters:
        text = text[:letters] + "…"
    return safe_text(" ".join(text.split()))
