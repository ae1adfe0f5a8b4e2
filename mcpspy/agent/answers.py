"""The answer of a tool: a text that stands alone, and the same in members for programs.

Members named `captured` hold captured text; all other members are ours.
"""

from typing import Any, NamedTuple


class ToolAnswer(NamedTuple):
    """The answer of a tool: its text, and its structured content."""

    text: str
    content: dict[str, Any]


def page_members(next_cursor: int | None) -> dict[str, Any]:
    """Return the member that names the next page; none on the last."""
    return {} if next_cursor is None else {"next_cursor": str(next_cursor)}


def more_words(next_cursor: int | None, left: int, noun: str) -> str:
    """Say what was left out, and how to get it; empty if nothing was."""
    if next_cursor is None:
        return ""
    return f'\n{left:,} more {noun}: call again with cursor "{next_cursor}", or with more max_tokens.'
