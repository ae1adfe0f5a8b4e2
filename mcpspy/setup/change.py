"""A configuration text with some of its servers wrapped or unwrapped, and held against what it was before anyone gets it."""

from collections.abc import Collection, Mapping, Sequence

from .edit import unwrapping, wrapping
from .edit_url import moving, moving_back
from .entry import Entry, Path, State, Syntax, entries
from .ports import Place
from .spans import Edit, Unreadable, edited

Places = Mapping[int, Place]


def wrapped(
    text: str,
    syntax: Syntax,
    section: Path,
    names: Collection[Path],
    program: Sequence[str],
    ports: Mapping[Path, int] | None = None,
    places: Places | None = None,
) -> str:
    """`text` with the servers at `names` behind `program`, or at their `ports`; what is wrapped already is wrapped anew.

    `places` knows of the ports, too. Raises: Unreadable.
    """
    bare = unwrapped(text, syntax, section, names, places)
    chosen = [one for one in entries(bare, syntax, section, places) if one.path in names]
    edits = [edit for one in chosen for edit in _wrapping(bare, one, program, ports or {})]
    return _checked(bare, edited(bare, edits), syntax, section, places)


def unwrapped(text: str, syntax: Syntax, section: Path, names: Collection[Path], places: Places | None = None) -> str:
    """`text` without mcpspy before the servers at `names`. Raises: Unreadable."""
    chosen = [one for one in entries(text, syntax, section, places) if one.path in names and one.state is State.WRAPPED]
    edits = [edit for one in chosen for edit in (moving_back if one.is_http else unwrapping)(text, one)]
    return _checked(text, edited(text, edits), syntax, section, places)


def _wrapping(text: str, entry: Entry, program: Sequence[str], ports: Mapping[Path, int]) -> list[Edit]:
    if entry.is_http and entry.path in ports and entry.state in (State.PLAIN, State.LOGIN):
        return moving(text, entry, ports[entry.path])
    return wrapping(text, entry, program) if not entry.is_http and entry.state is State.PLAIN else []


def _checked(before: str, after: str, syntax: Syntax, section: Path, places: Places | None) -> str:
    """`after`, if it can be read and names the same servers. Nothing known makes it otherwise; a file is worth a second look."""
    if _servers(entries(before, syntax, section, places)) != _servers(entries(after, syntax, section, places)):
        raise Unreadable("the change would have altered what it must not; nothing was changed")
    return after


def _servers(found: list[Entry]) -> dict[Path, tuple[str, list[str], list[str]]]:
    return {
        one.path: (one.server_url, one.server_argv, [member.key for member in one.members if member.key != "args"])
        for one in found
    }
