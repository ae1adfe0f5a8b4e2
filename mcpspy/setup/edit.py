"""A configuration text with some servers wrapped or unwrapped. The edits of the two are each other's exact inverse.

Wrapping a command moves it into the arguments, in its own spelling, and unwrapping moves it back. Wrapping a URL replaces its origin
by one of this machine, and moves the old one, in its own spelling, to the end as a fragment.
"""

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence

from ..lazy_pattern import lazy_pattern
from .entry import ConfigEntry, EntryLayout, EntryState, Path, Syntax, entries
from .ports import ReservedPort
from .spans import ConfigEdit, Member, Unreadable, Value, edited, unreadable
from .toml import match_end
from .wrapping import (
    FRAGMENT,
    LOCAL_ORIGIN,
    command_prefix,
    had_no_args,
    local_origin,
    origin_of,
    original_origin,
    server_command_at,
)

BLANK = lazy_pattern(r"[ \t\r\n]*+")
COMMA = lazy_pattern(r"[ \t\r\n]*+,")
BETWEEN = lazy_pattern(r"[ \t\r\n]*+,[ \t\r\n]*+")
LINE_REST = lazy_pattern(r"[^\r\n]*+")
NEWLINE = lazy_pattern(r"\r?\n")
SURROGATE = lazy_pattern("[\ud800-\udfff]")
LETTER = lazy_pattern(r"\\u[dD][89abAB]..\\u[dD][c-fC-F]..|\\u.{4}|\\U.{8}|\\x..|\\.|[^\\]", re.DOTALL)
"""The spelling of one character within quotes."""

PortsByNumber = Mapping[int, ReservedPort]


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
    return checked(bare, edited(bare, edits), syntax, section, ports)


def unwrapped(text: str, syntax: Syntax, section: Path, names: Collection[Path], ports: PortsByNumber | None = None) -> str:
    """Unwrap those of the servers at `names` that are wrapped. Raises: Unreadable."""
    chosen = [
        entry for entry in entries(text, syntax, section, ports) if entry.path in names and entry.state is EntryState.WRAPPED
    ]
    edits = [edit for entry in chosen for edit in (restore_url if entry.is_http else restore_command)(text, entry)]
    return checked(text, edited(text, edits), syntax, section, ports)


def _wrapping_edits(text: str, entry: ConfigEntry, program: Sequence[str], new_ports: Mapping[Path, int]) -> list[ConfigEdit]:
    if entry.is_http:
        is_plain = entry.state in (EntryState.PLAIN, EntryState.LOGIN)
        return wrap_url(text, entry, new_ports[entry.path]) if entry.path in new_ports and is_plain else []
    return wrap_command(text, entry, program) if entry.state is EntryState.PLAIN else []


def checked(
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
    front = ", ".join([*map(quoted, argv[1:]), text[command.value.start : command.value.end]])
    edits = [ConfigEdit(start=command.value.start, end=command.value.end, new=quoted(argv[0]))]
    if args is None:
        at, new = _new_args(text, entry, command, front)
    elif args.value.items:
        at = args.value.items[0].start
        lead = text[args.value.start + 1 : at]
        new = f"{front},{lead if lead.isspace() and NEWLINE.search(lead) else ' '}"
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
    return [*edits, ConfigEdit(start=items[0].start, end=next_item_at(text, own.end), new="")]


def quoted(word: str) -> str:
    """Write a string as both JSON and TOML spell it; lone surrogates, which JSON allows and UTF-8 does not, as escapes."""
    spelled = json.dumps(word, ensure_ascii=False).replace("\x7f", "\\u007f")
    return SURROGATE.sub(lambda match: f"\\u{ord(match[0]):04x}", spelled)


def next_item_at(text: str, end: int) -> int:
    """Find the end of an item's comma and of the white space after it; the item's own end if it has no comma."""
    comma = COMMA.match(text, end)
    if not comma:
        return end
    blank = BLANK.match(text, comma.end())
    return blank.end() if blank and not text.startswith(("]", "}"), blank.end()) else comma.end()


def _new_args(text: str, entry: ConfigEntry, command: Member, front: str) -> tuple[int, str]:
    """Write a list of arguments for an entry without one. Returns its position and its text."""
    if entry.layout is EntryLayout.LINES:
        line_end = match_end(LINE_REST, text, command.value.end)
        newline = NEWLINE.match(text, line_end) or NEWLINE.search(text)
        indent = text[: command.start].rpartition("\n")[2]
        indent = indent if indent.isspace() else ""
        return line_end, f"{newline[0] if newline else chr(10)}{indent}{command.before}args = [{front}]"
    if entry.layout is EntryLayout.BRACES:
        return command.value.end, f", {command.before}args = [{front}]"
    lead = text[len(text[: command.start].rstrip(" \t\r\n")) : command.start]
    newlines = list(NEWLINE.finditer(lead))
    return command.value.end, f",{lead[newlines[-1].start() :] if newlines else ' '}{quoted('args')}: [{front}]"


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
    return (end, member.value.end) if BETWEEN.fullmatch(text, end, member.start) else None


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
