"""The answer of a tool: a text that stands alone, and the same in members for programs.

Members named `captured` hold captured text; all other members are ours.
"""

import re
from typing import Any, Final, NamedTuple

_ADDRESS: Final = re.compile(r"@[0-9a-f]{0,8}(?::[0-9]{1,9}(?:\.\.[0-9]{1,9})?)?")


class ToolAnswer(NamedTuple):
    """The answer of a tool: its text, and its structured content."""

    text: str
    content: dict[str, Any]


def named(what: str) -> str:
    """Return a WHAT for words of ours. A label or a file's name is not repeated: a stranger may have written it."""
    return what if _ADDRESS.fullmatch(what) else "that capture"


def page_members(next_cursor: int | None) -> dict[str, Any]:
    """Return the member that names the next page; none on the last."""
    return {} if next_cursor is None else {"next_cursor": str(next_cursor)}


def more_words(next_cursor: int | None, left: int, noun: str) -> str:
    """Say what was left out, and how to get it; empty if nothing was."""
    if next_cursor is None:
        return ""
    return f'\n{left:,} more {noun}: call again with cursor "{next_cursor}", or with more max_tokens.'
