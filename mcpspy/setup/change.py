"""A configuration text with some of its servers wrapped or unwrapped, and held against what it was before anyone gets it."""

from collections.abc import Collection, Sequence

from .edit import unwrapping, wrapping
from .entry import Entry, Path, State, Syntax, entries
from .spans import Unreadable, edited


def wrapped(text: str, syntax: Syntax, section: Path, names: Collection[Path], program: Sequence[str]) -> str:
    """`text` with the servers at `names` behind `program`; what is wrapped already is wrapped anew. Raises: Unreadable."""
    bare = unwrapped(text, syntax, section, names)
    chosen = [one for one in entries(bare, syntax, section) if one.path in names and one.state is State.PLAIN]
    return _checked(bare, edited(bare, [edit for one in chosen for edit in wrapping(bare, one, program)]), syntax, section)


def unwrapped(text: str, syntax: Syntax, section: Path, names: Collection[Path]) -> str:
    """`text` without mcpspy before the servers at `names`. Raises: Unreadable."""
    chosen = [one for one in entries(text, syntax, section) if one.path in names and one.state is State.WRAPPED]
    return _checked(text, edited(text, [edit for one in chosen for edit in unwrapping(text, one)]), syntax, section)


def _checked(before: str, after: str, syntax: Syntax, section: Path) -> str:
    """`after`, if it can be read and names the same servers. Nothing known makes it otherwise; a file is worth a second look."""
    if _servers(entries(before, syntax, section)) != _servers(entries(after, syntax, section)):
        raise Unreadable("the change would have altered what it must not; nothing was changed")
    return after


def _servers(found: list[Entry]) -> dict[Path, tuple[str, list[str], list[str]]]:
    return {
        one.path: (one.url, one.server_argv, [member.key for member in one.members if member.key != "args"]) for one in found
    }
