"""mcpspy's own entry, for `mcpspy mcp`, in a configuration text: put in, and taken out again byte for byte.

In JSON it is put before the other servers:

    "mcpServers": {"time": …}      "mcpServers": {"mcpspy": {"command": "/opt/bin/mcpspy", "args": ["mcp"]}, "time": …}

A section that comes with it has a space within its braces, `{ "mcpspy": … }`, and goes with it. In TOML it is a table at the end,
or within the braces of the others.
"""

from collections.abc import Sequence

from . import jsonc, toml
from .edit import BETWEEN, LINE_REST, NEWLINE, checked, next_item_at, quoted
from .entry import EntryState, Path, Syntax, entries
from .spans import ConfigEdit, Member, Unreadable, Value, edited, unreadable
from .wrapping import OWN_NAME, OWN_VERB

BY_HAND = "change it by hand"


def added(text: str, syntax: Syntax, section: Path, program: Sequence[str]) -> str:
    """Put the entry into `section`. Raises: Unreadable."""
    argv = [*program, OWN_VERB]
    after = _with_table(text, section, argv) if syntax is Syntax.TOML else _with_member(text, section, argv)
    path = (*section, OWN_NAME)
    if syntax is Syntax.TOML:
        try:
            toml.lines(after)
        except Unreadable as error:
            raise Unreadable(f"its servers are not in tables of their own; {BY_HAND}") from error
    checked(text, after, syntax, section, but={path})
    if not any(entry.path == path and entry.state is EntryState.OWN for entry in entries(after, syntax, section)):
        raise Unreadable(f"the entry could not be put in; {BY_HAND}")
    return after


def removed(text: str, syntax: Syntax, section: Path, path: Path) -> str:
    """Take out the entry at `path`. Raises: Unreadable."""
    after = _without_tables(text, path) if syntax is Syntax.TOML else _without_member(text, path)
    if any(entry.path == path for entry in entries(after, syntax, section)):
        raise Unreadable(f"the entry {path[-1]!r} is there twice; {BY_HAND}")
    checked(text, after, syntax, section, but={path})
    return after


# --- JSON ---


def _with_member(text: str, section: Path, argv: Sequence[str]) -> str:
    if not text.strip("\ufeff \t\r\n"):
        raise Unreadable("it is empty; write {} into it first")
    root = jsonc.parse(text, section)
    key = section[-1]
    member = root.member(key)
    entry = f'"{OWN_NAME}": {{"command": {quoted(argv[0])}, "args": [{", ".join(map(quoted, argv[1:]))}]}}'
    if member is None:
        return _put_first(text, root, f'"{key}": {{ {entry} }}')
    return _put_first(text, member.value, entry)


def _put_first(text: str, value: Value, new: str) -> str:
    """Put a member before the others of an object."""
    if value.kind != "object":
        raise unreadable(text, value.start, "this is not an object")
    if not value.members:
        at = value.start + 1
        return edited(text, [ConfigEdit(start=at, end=at, new=new)])
    at = value.members[0].start
    lead = text[value.start + 1 : at]
    blank = lead[len(lead.rstrip(" \t\r\n")) :]
    return edited(text, [ConfigEdit(start=at, end=at, new=f"{new},{blank if NEWLINE.search(blank) else ' '}")])


def _without_member(text: str, path: Path) -> str:
    chain = _chain(text, path)
    owner, member = chain[-1]
    if (
        len(owner.members) == 1
        and len(chain) > 1
        and text[owner.start : member.start] == "{ "
        and _ends(text, owner, member, " ")
    ):
        owner, member = chain[-2]
    return edited(text, [_cut_out(text, owner, member)])


def _chain(text: str, path: Path) -> list[tuple[Value, Member]]:
    """Find the objects along a path, each with its member on the path."""
    value = jsonc.parse(text, path)
    chain = []
    for key in path:
        member = value.member(key)
        assert member is not None
        chain.append((value, member))
        value = member.value
    return chain


def _cut_out(text: str, owner: Value, member: Member) -> ConfigEdit:
    """Cut out a member with its comma."""
    end = next_item_at(text, member.value.end)
    index = owner.members.index(member)
    if end == member.value.end and index:
        before = owner.members[index - 1].value.end
        if BETWEEN.fullmatch(text, before, member.start):
            return ConfigEdit(start=before, end=end, new="")
    lead = text[owner.start + 1 : member.start]
    if len(owner.members) == 1 and lead and not lead.strip() and _ends(text, owner, member, ""):  # a client wrote it anew
        return ConfigEdit(start=owner.start + 1, end=owner.end - 1, new="")
    return ConfigEdit(start=member.start, end=end, new="")


def _ends(text: str, owner: Value, member: Member, blank: str) -> bool:
    """Return whether only white space follows a member in its object; `blank`, unless that is empty."""
    rest = text[member.value.end : owner.end - 1]
    return rest == blank if blank else not rest.strip()


# --- TOML ---


def _with_table(text: str, section: Path, argv: Sequence[str]) -> str:
    braces = _in_braces(text, section)
    if braces is not None:
        args = ", ".join(map(quoted, argv[1:]))
        return _put_first(text, braces, f"{OWN_NAME} = {{ command = {quoted(argv[0])}, args = [{args}] }}")
    found = NEWLINE.search(text)
    newline = found[0] if found else "\n"
    words = ", ".join(map(quoted, argv[1:]))
    lines = [f"[{'.'.join(section)}.{OWN_NAME}]", f"command = {quoted(argv[0])}", f"args = [{words}]"]
    block = newline.join(lines)
    if not text.strip("\ufeff"):
        return text + block + newline
    return text + newline + block + (newline if text.endswith("\n") else "")


def _in_braces(text: str, section: Path) -> Value | None:
    """Find the value of a section that is written within braces."""
    return next((line.member.value for line in toml.lines(text) if line.path == section), None)


def _without_tables(text: str, path: Path) -> str:
    """Cut out the table at `path` and those below it, the last first."""
    braces = _in_braces(text, path[:-1])
    if braces is not None and (member := braces.member(path[-1])):
        return edited(text, [_cut_out(text, braces, member)])
    lines = toml.lines(text)
    starts = {line.table_at for line in lines if line.path[: len(path)] == path}
    for start in sorted(starts, reverse=True):
        table = [line for line in lines if line.table_at == start]
        if start < 0 or any(line.path[: len(path)] != path or line.path == path for line in table):
            raise Unreadable(f"the entry {path[-1]!r} is not a table of its own; {BY_HAND}")
        text = _without_lines(text, start, table[-1].member.value.end)
    return text


def _without_lines(text: str, start: int, end: int) -> str:
    """Cut out a table, and the line end before it, which came with it.

    Where that ended the line before, it stays, unless the file ended there without one.
    """
    line_end = toml.match_end(LINE_REST, text, end)
    newline = NEWLINE.match(text, line_end)
    before = text[:start].rstrip(" \t")
    head = before.removesuffix("\n").removesuffix("\r") if before.endswith("\n") else before
    if head and not head.endswith("\n") and newline:
        head = before
    return head + text[newline.end() if newline else line_end :]
