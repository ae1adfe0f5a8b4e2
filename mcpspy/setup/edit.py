"""A configuration text with some servers wrapped or unwrapped, or with mcpspy's own entry, for `mcpspy mcp`.

The edits of wrapping and unwrapping are each other's exact inverse. Wrapping a command moves it into the arguments, in its own
spelling, and unwrapping moves it back. Wrapping a URL replaces its origin by one of this machine, and moves the old one, in its own
spelling, to the end as a fragment.

The own entry is put in, and taken out again byte for byte. In JSON it is put before the other servers:

    "mcpServers": {"time": …}      "mcpServers": {"mcpspy": {"command": "/opt/bin/mcpspy", "args": ["mcp"]}, "time": …}

A section that comes with it has a space within its braces, `{ "mcpspy": … }`, and goes with it. In TOML it is a table at the end,
or within the braces of the others.
"""

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence

from ..lazy_pattern import lazy_pattern
from . import jsonc, toml
from .entry import ConfigEntry, EntryLayout, EntryState, Path, Syntax, entries
from .ports import ReservedPort
from .spans import ConfigEdit, Member, Unreadable, Value, edited, unreadable
from .toml import match_end
from .wrapping import (
    FRAGMENT,
    LOCAL_ORIGIN,
    OWN_NAME,
    OWN_VERB,
    command_prefix,
    had_no_args,
    local_origin,
    origin_of,
    original_origin,
    server_command_at,
)

BLANK = lazy_pattern(r"[ \t\r\n]*+")
COMMA = lazy_pattern(r"[ \t\r\n]*+,")
_BETWEEN = lazy_pattern(r"[ \t\r\n]*+,[ \t\r\n]*+")
_LINE_REST = lazy_pattern(r"[^\r\n]*+")
_NEWLINE = lazy_pattern(r"\r?\n")
SURROGATE = lazy_pattern("[\ud800-\udfff]")
LETTER = lazy_pattern(r"\\u[dD][89abAB]..\\u[dD][c-fC-F]..|\\u.{4}|\\U.{8}|\\x..|\\.|[^\\]", re.DOTALL)
"""The spelling of one character within quotes."""

PortsByNumber = Mapping[int, ReservedPort]

BY_HAND = "change it by hand"


def wrapped(
    text: str,
    syntax: Syntax,
    section: Path,
    names: Collection[Path],
    program: Sequence[str],
    new_ports: Mapping[Path, int] | None = None,
    ports: PortsByNumber | None = None,
) -> str:
    """Wrap the servers at `names`: commands with `program`, URLs with `new_ports`. Those that are wrapped are wrapped again.

    `ports` are the reserved ports of the file, with the new ones. Raises: Unreadable.
    """
    bare = unwrapped(text, syntax, section, names, ports)
    chosen = [entry for entry in entries(bare, syntax, section, ports) if entry.path in names]
    edits = [edit for entry in chosen for edit in _wrapping_edits(bare, entry, program, new_ports or {})]
    return _checked(bare, edited(bare, edits), syntax, section, ports)


def unwrapped(text: str, syntax: Syntax, section: Path, names: Collection[Path], ports: PortsByNumber | None = None) -> str:
    """Unwrap those of the servers at `names` that are wrapped. Raises: Unreadable."""
    chosen = [
        entry for entry in entries(text, syntax, section, ports) if entry.path in names and entry.state is EntryState.WRAPPED
    ]
    edits = [edit for entry in chosen for edit in (restore_url if entry.is_http else restore_command)(text, entry)]
    return _checked(text, edited(text, edits), syntax, section, ports)


def _wrapping_edits(text: str, entry: ConfigEntry, program: Sequence[str], new_ports: Mapping[Path, int]) -> list[ConfigEdit]:
    if entry.is_http:
        is_plain = entry.state in (EntryState.PLAIN, EntryState.LOGIN)
        return wrap_url(text, entry, new_ports[entry.path]) if entry.path in new_ports and is_plain else []
    return wrap_command(text, entry, program) if entry.state is EntryState.PLAIN else []


def _checked(
    before: str,
    after: str,
    syntax: Syntax,
    section: Path,
    ports: PortsByNumber | None = None,
    *,
    but: Collection[Path] = (),
) -> str:
    """Return `after` if it can be read and names the same servers, `but` those at some paths.

    No known edit breaks that, but a file deserves a check. Raises: Unreadable.
    """
    texts = (before, after)
    servers = [_servers(entry for entry in entries(text, syntax, section, ports) if entry.path not in but) for text in texts]
    if servers[0] != servers[1]:
        raise Unreadable("nothing was changed, because other parts of the file would have changed too; change it by hand")
    return after


def _servers(some: Iterable[ConfigEntry]) -> dict[Path, tuple[str, list[str], list[str]]]:
    return {
        entry.path: (
            entry.server_url,
            entry.server_argv,
            [member.key for member in entry.members if member.key != "args"],
        )
        for entry in some
    }


# --- Commands ---


def wrap_command(text: str, entry: ConfigEntry, program: Sequence[str]) -> list[ConfigEdit]:
    """Insert `program run --label NAME --` before the command of a plain entry."""
    command = entry.command
    assert command is not None
    args = entry.args
    argv = command_prefix(program, entry.name, new_args=args is None)
    front = ", ".join([*map(_quoted, argv[1:]), text[command.value.start : command.value.end]])
    edits = [ConfigEdit(start=command.value.start, end=command.value.end, new=_quoted(argv[0]))]
    if args is None:
        at, new = _new_args(text, entry, command, front)
    elif args.value.items:
        at = args.value.items[0].start
        lead = text[args.value.start + 1 : at]
        new = f"{front},{lead if lead.isspace() and _NEWLINE.search(lead) else ' '}"
    else:
        at, new = args.value.start + 1, front
    return [*edits, ConfigEdit(start=at, end=at, new=new)]


def restore_command(text: str, entry: ConfigEntry) -> list[ConfigEdit]:
    """Remove mcpspy from before the command of a wrapped entry."""
    command, args = entry.command, entry.args
    own_at = server_command_at(entry.argv)
    assert command is not None
    assert own_at is not None
    if own_at == 0 or args is None:
        return []
    items = args.value.items
    own = items[own_at - 1]
    edits = [ConfigEdit(start=command.value.start, end=command.value.end, new=text[own.start : own.end])]
    if own_at == len(items) and had_no_args(entry.argv):
        span = _whole_member(text, entry, args)
        if span:
            return [*edits, ConfigEdit(start=span[0], end=span[1], new="")]
    return [*edits, ConfigEdit(start=items[0].start, end=_next_item_at(text, own.end), new="")]


def _quoted(word: str) -> str:
    """Write a string as both JSON and TOML spell it; lone surrogates, which JSON allows and UTF-8 does not, as escapes."""
    spelled = json.dumps(word, ensure_ascii=False).replace("\x7f", "\\u007f")
    return SURROGATE.sub(lambda match: f"\\u{ord(match[0]):04x}", spelled)


def _next_item_at(text: str, end: int) -> int:
    """Find the end of an item's comma and of the white space after it; the item's own end if it has no comma."""
    comma = COMMA.match(text, end)
    if not comma:
        return end
    blank = BLANK.match(text, comma.end())
    return blank.end() if blank and not text.startswith(("]", "}"), blank.end()) else comma.end()


def _new_args(text: str, entry: ConfigEntry, command: Member, front: str) -> tuple[int, str]:
    """Write a list of arguments for an entry without one. Returns its position and its text."""
    if entry.layout is EntryLayout.LINES:
        line_end = match_end(_LINE_REST, text, command.value.end)
        newline = _NEWLINE.match(text, line_end) or _NEWLINE.search(text)
        indent = text[: command.start].rpartition("\n")[2]
        indent = indent if indent.isspace() else ""
        return line_end, f"{newline[0] if newline else chr(10)}{indent}{command.before}args = [{front}]"
    if entry.layout is EntryLayout.BRACES:
        return command.value.end, f", {command.before}args = [{front}]"
    lead = text[len(text[: command.start].rstrip(" \t\r\n")) : command.start]
    newlines = list(_NEWLINE.finditer(lead))
    return command.value.end, f",{lead[newlines[-1].start() :] if newlines else ' '}{_quoted('args')}: [{front}]"


def _whole_member(text: str, entry: ConfigEntry, member: Member) -> tuple[int, int] | None:
    """Find the span of a member and of its separator from the one before; None if more than that is between them."""
    if entry.layout is EntryLayout.LINES:
        before = text[: member.start].rstrip(" \t")
        if not before.endswith("\n"):
            return None
        return len(before) - (2 if before.endswith("\r\n") else 1), member.value.end
    index = entry.members.index(member)
    if index == 0:
        return None
    end = entry.members[index - 1].value.end
    return (end, member.value.end) if _BETWEEN.fullmatch(text, end, member.start) else None


# --- URLs ---


def wrap_url(text: str, entry: ConfigEntry, port: int) -> list[ConfigEdit]:
    """Replace the origin in the URL of a plain entry by the reserved `port`.

    A URL that a client may be logged in to gets no fragment: VS Code compares it with the server's metadata letter by letter
    (microsoft/vscode#259251). Only the reserved port has its original.
    """
    begin, end, cut = _cut(text, entry.url_value, len(origin_of(entry.url)))
    edits = [ConfigEdit(start=begin, end=cut, new=local_origin(port))]
    if not entry.may_log_in:
        edits.append(ConfigEdit(start=end, end=end, new=FRAGMENT + text[begin:cut]))
    return edits


def restore_url(text: str, entry: ConfigEntry) -> list[ConfigEdit]:
    """Restore the original URL of a wrapped entry."""
    match = LOCAL_ORIGIN.match(entry.url)
    assert match is not None
    begin, end, cut = _cut(text, entry.url_value, match.end())
    if original_origin(entry.url):
        at = text.index(FRAGMENT, begin)
        origin = text[at + len(FRAGMENT) : end]
        return [ConfigEdit(start=begin, end=cut, new=origin), ConfigEdit(start=at, end=end, new="")]
    assert entry.reserved_port is not None
    return [ConfigEdit(start=begin, end=cut, new=entry.reserved_port.letters)]


def origin_letters(text: str, entry: ConfigEntry) -> str:
    """Read the origin of a plain entry's URL in the spelling of the file."""
    begin, _, cut = _cut(text, entry.url_value, len(origin_of(entry.url)))
    return text[begin:cut]


def _cut(text: str, value: Value, letters: int) -> tuple[int, int, int]:
    """Find where the text within quotes begins and ends, and where its first `letters` characters end. Raises: Unreadable."""
    quotes = 3 if text[value.start : value.start + 3] in ('"""', "'''") and value.end - value.start >= 6 else 1
    begin, end = value.start + quotes, value.end - quotes
    inside = text[begin:end]
    if "\\" not in inside or text[value.start] == "'":
        pieces = list(inside)
    else:
        pieces = LETTER.findall(inside)
    if len(pieces) != len(value.string):
        raise unreadable(text, value.start, "mcpspy cannot read the spelling of this URL")
    return begin, end, begin + sum(map(len, pieces[:letters]))


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
    _checked(text, after, syntax, section, but={path})
    if not any(entry.path == path and entry.state is EntryState.OWN for entry in entries(after, syntax, section)):
        raise Unreadable(f"the entry could not be put in; {BY_HAND}")
    return after


def removed(text: str, syntax: Syntax, section: Path, path: Path) -> str:
    """Take out the entry at `path`. Raises: Unreadable."""
    after = _without_tables(text, path) if syntax is Syntax.TOML else _without_member(text, path)
    if any(entry.path == path for entry in entries(after, syntax, section)):
        raise Unreadable(f"the entry {path[-1]!r} is there twice; {BY_HAND}")
    _checked(text, after, syntax, section, but={path})
    return after


# --- JSON ---


def _with_member(text: str, section: Path, argv: Sequence[str]) -> str:
    if not text.strip("\ufeff \t\r\n"):
        raise Unreadable("it is empty; write {} into it first")
    root = jsonc.parse(text, section)
    key = section[-1]
    member = root.member(key)
    entry = f'"{OWN_NAME}": {{"command": {_quoted(argv[0])}, "args": [{", ".join(map(_quoted, argv[1:]))}]}}'
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
    return edited(text, [ConfigEdit(start=at, end=at, new=f"{new},{blank if _NEWLINE.search(blank) else ' '}")])


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
    end = _next_item_at(text, member.value.end)
    index = owner.members.index(member)
    if end == member.value.end and index:
        before = owner.members[index - 1].value.end
        if _BETWEEN.fullmatch(text, before, member.start):
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
        args = ", ".join(map(_quoted, argv[1:]))
        return _put_first(text, braces, f"{OWN_NAME} = {{ command = {_quoted(argv[0])}, args = [{args}] }}")
    found = _NEWLINE.search(text)
    newline = found[0] if found else "\n"
    words = ", ".join(map(_quoted, argv[1:]))
    lines = [f"[{'.'.join(section)}.{OWN_NAME}]", f"command = {_quoted(argv[0])}", f"args = [{words}]"]
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
    line_end = toml.match_end(_LINE_REST, text, end)
    newline = _NEWLINE.match(text, line_end)
    before = text[:start].rstrip(" \t")
    head = before.removesuffix("\n").removesuffix("\r") if before.endswith("\n") else before
    if head and not head.endswith("\n") and newline:
        head = before
    return head + text[newline.end() if newline else line_end :]
