"""JSON-RPC messages in a line of text: as JSON, as JSON in quotes, as JSON in a string of JSON, or as Python prints its objects.

A line in; out its messages, as text and parsed, and what is before each. Work is linear in the line: few places are tried.
"""

from __future__ import annotations

import ast
import json
import re
from typing import Any, Final

import msgspec

MAX_PLACES: Final = 8
"""So many places of a line are tried that are no JSON, each to the line's end at most."""

MAX_DEPTH: Final = 4
"""A message is looked for in texts that are quoted so many times."""

MAX_PYTHON_LETTERS: Final = 1 << 20
"""Longer texts of Python's objects are not parsed, which takes a hundred times the memory."""

_OPENING: Final = re.compile(r"""(?:\[\s*)?\{\s*(\\+)?"|\{'(?=(?:jsonrpc|method|id|params|result|error)')""")
_MEMBERS: Final = re.compile("jsonrpc|method|result|error")
_QUOTED: Final = {'"': re.compile(r'(?:[^"\\]++|\\.)*+', re.DOTALL), "'": re.compile(r"(?:[^'\\]++|\\.)*+", re.DOTALL)}
_PYTHON_STRING: Final = re.compile(r"(?:\b(b)|[=(\[])'[^'{]{0,80}$")
"""The text before a string of Python: `b'…'`, `data='…'`. After other words, quotes may have been put around a message as it is."""
_ESCAPE: Final = re.compile(r"\\(?:x([\da-fA-F]{2})|u([\da-fA-F]{4})|U([\da-fA-F]{8})|(.))", re.DOTALL)
_LETTERS: Final = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "a": "\a", "v": "\v", "0": "\0"}
_CLOCK: Final = re.compile(r"\d\d:\d\d")
_PYTHON: Final = re.compile(r"\bJSONRPC(?:Request|Notification|(?:Result)?Response|Error(?:Response)?)\(")
_FIELDS: Final = re.compile(r"(?<![\w.])jsonrpc='2\.0' (?=[a-z]+=)")
_FIELD_PIECE: Final = re.compile(r"""[()\[\]{}]|'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\"| [a-z]+=""")
_PYTHON_PIECE: Final = re.compile(r"""[()\[\]{}]|'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\"""")
_CUT: Final = re.compile(
    r'\{\s*"(?:id"\s*:\s*(?:\d{1,20}|"[^"]{0,80}")\s*,\s*")?'
    r'(?:jsonrpc"\s*:\s*"2\.0"|method"\s*:\s*"[a-z]+/?[A-Za-z/]*"\s*,|(?:result|error)"\s*:)'
)
PRINTED: Final = re.compile(
    r"""[{,] ?jsonrpc: ['"]2\.0['"]"""
    r"|\bJSONRPC(?:Request|Notification|Response)\[|\bJsonRpc(?:Request|Notification|Response|Error) \{ "
)
"""A message as Node prints an object, Java a record or Rust a struct. They leave out what is deep or long."""
_PRINTED_MEMBER: Final = re.compile(r"\b(?:id|method|result|error|request)[:=]")
_OF_STDERR: Final = "[server stderr]"
_BETWEEN: Final = re.compile(r"(?:[\s,;]|\\[nrt])*")
"""Letters between messages that were pasted into one line, among them line ends that are spelled."""
_decoder: Final = json.JSONDecoder()

_NEAR_LETTERS: Final = 60
"""Words so far before a message are about it, where it comes after one that is cut."""


class LineMessage(msgspec.Struct, frozen=True):
    """A message in a line. `before` is the text before it; `value` None says that the line has only its beginning."""

    text: str
    value: Any
    before: str


def messages_in(line: str, depth: int = MAX_DEPTH) -> list[LineMessage]:
    """Return the messages of a line, in order. Texts in it that are quoted are looked into `depth` times."""
    found: list[LineMessage] = []
    last = skipped = failures = 0
    for opening in _OPENING.finditer(line) if depth and _MEMBERS.search(line) else ():
        begin = opening.start()
        if begin < skipped:
            continue  # within a value that is no message, or one that was taken
        is_cut = bool(found) and found[-1].value is None
        before = line[max(last, begin - _NEAR_LETTERS) if is_cut else last : begin]
        made, end = _made(line, opening, before, depth)
        if not made and end == begin:
            failures += 1
            cut = (_CUT.match if failures <= MAX_PLACES else _CUT.search)(line, begin)
            made = [LineMessage(line[begin:], None, before)] if cut is not None and not is_cut else []
        skipped = max(end, begin + 1)
        made = [message for message in made if message.text == line[begin:end] or not is_cut or message.value is None]
        if found and made and made[0].value == found[-1].value and not _is_pasted(before, found[-1].before):
            made, last = made[1:], end  # the same once more, in another form
        if made:
            found += made
            last = end
        if failures > MAX_PLACES:
            break
    return found or _python_message(line) or _printed_message(line)


def is_printed(message: LineMessage) -> bool:
    """Return whether a message is printed as an object of a language, and not as JSON of which the end is missing."""
    return message.value is None and not message.text[1:].lstrip().startswith('"')


def _printed_message(line: str) -> list[LineMessage]:
    """Return the message that a line has in a form that is not read, unless the line repeats what a server wrote to stderr."""
    printed = PRINTED.search(line)
    if printed is None or _OF_STDERR in line or _PRINTED_MEMBER.search(line) is None:
        return []
    begin = line.find("{") if "jsonrpc" in printed.group() else printed.start()
    return [LineMessage(line[begin:], None, line[:begin])] if begin >= 0 else []


def _is_pasted(before: str, first_before: str) -> bool:
    """Return whether the words before a message, and those before an equal one, show that it was on a line of its own."""
    if _CLOCK.search(before) is not None:
        return True
    words, first_words = (_BETWEEN.sub("", text[-_NEAR_LETTERS:], count=1).strip() for text in (before, first_before))
    return words in ("", first_words)


def _made(line: str, opening: re.Match[str], before: str, depth: int) -> tuple[list[LineMessage], int]:
    """Return the messages that begin at an opening, and where their text ends: where it begins if it is no value."""
    begin = opening.start()
    if line[begin + 1] == "'":
        return _python_object(line, begin, before)
    string = None if opening[1] else _PYTHON_STRING.search(line, max(0, begin - 90), begin)
    if opening[1] or string is not None:
        quoted = _QUOTED["'" if string else '"'].match(line, begin)
        if quoted is not None and "\\" in quoted.group():
            inner = messages_in(_unescaped(quoted.group(), is_bytes=string is not None and bool(string[1])), depth - 1)
            if inner or string is None:
                return _after(before, inner), quoted.end()
    try:
        value, end = _decoder.raw_decode(line, begin)
    except (ValueError, RecursionError):
        return [], begin
    if is_message(value):
        return [LineMessage(line[begin:end], value, before)], end
    return _wrapped(value, before, depth), end


def _after(before: str, messages: list[LineMessage]) -> list[LineMessage]:
    """Return messages of a text of which the first comes after these words."""
    return [LineMessage(first.text, first.value, before + first.before) for first in messages[:1]] + messages[1:]


def _unescaped(text: str, *, is_bytes: bool) -> str:
    """Return a text without the escapes that JSON, Go or Python puts into strings."""

    def letter(escape: re.Match[str]) -> str:
        code = escape[1] or escape[2] or escape[3]
        return _LETTERS.get(escape[4], escape[4]) if code is None else chr(min(int(code, 16), 0x10FFFF))

    plain = _ESCAPE.sub(letter, text)
    if is_bytes:
        return plain.encode("latin-1", "replace").decode("utf-8", "replace")
    return plain.encode("utf-16", "surrogatepass").decode("utf-16", "replace")  # joins surrogate pairs


def is_message(value: Any) -> bool:
    """Return whether a value is a JSON-RPC message, or a batch of them."""
    if isinstance(value, list):
        return bool(value) and all(isinstance(member, dict) and is_message(member) for member in value)
    if not isinstance(value, dict):
        return False
    if value.get("jsonrpc") == "2.0":
        return "method" in value or "result" in value or "error" in value
    if isinstance(value.get("method"), str) and "/" in value["method"]:
        return set(value) <= {"method", "params", "id"}
    return False


def _wrapped(value: Any, before: str, depth: int) -> list[LineMessage]:
    """Return the messages in members of an object that a logger wrote; its other short members are words about them."""
    found: list[LineMessage] = []
    for name, member in value.items() if isinstance(value, dict) else ():
        inner: list[LineMessage] = []
        if isinstance(member, str) and "{" in member:
            inner = messages_in(member, depth - 1)
        elif is_message(member):
            inner = [LineMessage(json.dumps(member, ensure_ascii=False, separators=(",", ":")), member, "")]
        if inner:
            others = (f"{key}={word}" for key, word in value.items() if key != name and isinstance(word, str | int | float))
            words = " ".join((before, *(other for other in others if len(other) < 200), f"{name}: "))
            found += _after(words, inner)
    return found


def _python_message(line: str) -> list[LineMessage]:
    """Return the message that the official SDK for Python printed as an object."""
    begin = _PYTHON.search(line)
    if begin is None:
        return _python_fields(line)
    return _python_object(line, begin.start(), line[: begin.start()])[0]


def _python_object(line: str, begin: int, before: str) -> tuple[list[LineMessage], int]:
    """Return the message that an object of Python is, and where its text ends: where it begins if it is none."""
    if len(line) - begin > MAX_PYTHON_LETTERS:
        return [], begin
    depth = 0
    for piece in _PYTHON_PIECE.finditer(line, begin):
        sign = piece.group()
        depth += (sign in "([{") - (sign in ")]}")
        if depth == 0 and sign in ")]}":
            made = _python_value(line[begin : piece.end()], before)
            return made, piece.end() if made else begin
    return [], begin


def _python_fields(line: str) -> list[LineMessage]:
    """Return the message that version 2 of that SDK printed without the name of its class: `jsonrpc='2.0' id=1 method='ping'`."""
    begin = _FIELDS.search(line)
    if begin is None or len(line) - begin.start() > MAX_PYTHON_LETTERS:
        return []
    depth, last, words = 0, begin.start(), []
    for piece in _FIELD_PIECE.finditer(line, begin.start()):
        sign = piece.group()
        depth += (sign in "([{") - (sign in ")]}")
        if depth == 0 and sign.startswith(" "):
            words.append(line[last : piece.start()])
            last = piece.start() + 1
    return _python_value(f"JSONRPCMessage({', '.join([*words, line[last:].rstrip()])})", line[: begin.start()])


def _python_value(source: str, before: str) -> list[LineMessage]:
    """Return the message that a text of Python constructs; nothing if it constructs none."""
    try:
        tree = ast.parse(source, mode="eval")
        value = _plain(tree.body)
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        return []
    return [LineMessage(text, value, before)] if is_message(value) else []


def _plain(node: ast.expr) -> Any:
    """Return the JSON value of Python's text for it. Raises: ValueError, TypeError: for what is none."""
    if isinstance(node, ast.Call):
        members = {keyword.arg: _plain(keyword.value) for keyword in node.keywords if keyword.arg}
        absent = {"params", "error", "data"} if isinstance(node.func, ast.Name) else set()
        return {name: member for name, member in members.items() if member is not None or name not in absent}
    if isinstance(node, ast.Dict):
        names = [ast.literal_eval(key) if key is not None else None for key in node.keys]
        if not all(isinstance(name, str) for name in names):
            raise ValueError("a name is no string")
        return dict(zip(names, map(_plain, node.values), strict=True))
    if isinstance(node, ast.List | ast.Tuple):
        return list(map(_plain, node.elts))
    return ast.literal_eval(node)
