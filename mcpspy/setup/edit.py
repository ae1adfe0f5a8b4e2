"""Put mcpspy before a server's command, and take it away again: the edits of the text, each the other's exact inverse.

A command goes from its place into the arguments in the very letters in which it was written, and comes back in them.
"""

import json
import re
from collections.abc import Sequence

from .entry import Entry, Layout
from .prefix import inner, made_args, words
from .spans import Edit, Member

BLANK = re.compile(r"[ \t\r\n]*+")
COMMA = re.compile(r"[ \t\r\n]*+,")
BETWEEN = re.compile(r"[ \t\r\n]*+,[ \t\r\n]*+")
LINE_REST = re.compile(r"[^\r\n]*+")
NEWLINE = re.compile(r"\r?\n")
HALF = re.compile("[\ud800-\udfff]")


def wrapping(text: str, entry: Entry, program: Sequence[str]) -> list[Edit]:
    """What puts `program run --label NAME --` before the command of a plain entry."""
    command = entry.command
    assert command is not None
    args = entry.args
    argv = words(program, entry.name, new_args=args is None)
    front = ", ".join([*map(quoted, argv[1:]), text[command.value.start : command.value.end]])
    edits = [Edit(start=command.value.start, end=command.value.end, new=quoted(argv[0]))]
    if args is None:
        at, new = _new_args(text, entry, command, front)
    elif args.value.items:
        at = args.value.items[0].start
        lead = text[args.value.start + 1 : at]
        new = f"{front},{lead if lead.isspace() and NEWLINE.search(lead) else ' '}"
    else:
        at, new = args.value.start + 1, front
    return [*edits, Edit(start=at, end=at, new=new)]


def unwrapping(text: str, entry: Entry) -> list[Edit]:
    """What takes mcpspy away from before the command of a wrapped entry."""
    command, args = entry.command, entry.args
    behind = inner(entry.argv)
    assert command is not None
    assert behind is not None
    if behind == 0 or args is None:
        return []
    items = args.value.items
    own = items[behind - 1]
    edits = [Edit(start=command.value.start, end=command.value.end, new=text[own.start : own.end])]
    if behind == len(items) and made_args(entry.argv):
        span = _whole_member(text, entry, args)
        if span:
            return [*edits, Edit(start=span[0], end=span[1], new="")]
    return [*edits, Edit(start=items[0].start, end=_behind(text, own.end), new="")]


def quoted(word: str) -> str:
    """A string as both JSON and TOML spell it; halves of letters, which JSON may hold and UTF-8 may not, by their numbers."""
    spelled = json.dumps(word, ensure_ascii=False).replace("\x7f", "\\u007f")
    return HALF.sub(lambda half: f"\\u{ord(half[0]):04x}", spelled)


def _behind(text: str, end: int) -> int:
    """Where what follows an item begins: behind its comma and the white space after that, if there is a comma."""
    comma = COMMA.match(text, end)
    if not comma:
        return end
    blank = BLANK.match(text, comma.end())
    return blank.end() if blank and not text.startswith("]", blank.end()) else comma.end()


def _new_args(text: str, entry: Entry, command: Member, front: str) -> tuple[int, str]:
    """Where a list of arguments goes that was not there, and its text."""
    if entry.layout is Layout.LINES:
        line_end = _match_end(LINE_REST, text, command.value.end)
        newline = NEWLINE.match(text, line_end) or NEWLINE.search(text)
        indent = text[: command.start].rpartition("\n")[2]
        indent = indent if indent.isspace() else ""
        return line_end, f"{newline[0] if newline else chr(10)}{indent}{command.before}args = [{front}]"
    if entry.layout is Layout.BRACES:
        return command.value.end, f", {command.before}args = [{front}]"
    lead = text[len(text[: command.start].rstrip(" \t\r\n")) : command.start]
    newlines = list(NEWLINE.finditer(lead))
    return command.value.end, f",{lead[newlines[-1].start() :] if newlines else ' '}{quoted('args')}: [{front}]"


def _whole_member(text: str, entry: Entry, member: Member) -> tuple[int, int] | None:
    """The span of a member with what parts it from the one before it; None where something else stands between them."""
    if entry.layout is Layout.LINES:
        before = text[: member.start].rstrip(" \t")
        if not before.endswith("\n"):
            return None
        return len(before) - (2 if before.endswith("\r\n") else 1), member.value.end
    index = entry.members.index(member)
    if index == 0:
        return None
    end = entry.members[index - 1].value.end
    return (end, member.value.end) if BETWEEN.fullmatch(text, end, member.start) else None


def _match_end(pattern: re.Pattern[str], text: str, at: int) -> int:
    found = pattern.match(text, at)
    return found.end() if found else at
