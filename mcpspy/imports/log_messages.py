"""JSON-RPC messages in a line of text: as JSON, as JSON in a string of JSON, or as Python's SDK prints its objects.

A line in; out its message, as text and parsed, and what is before it. Work is linear in the line: few places are tried.
"""

from __future__ import annotations

import ast
import json
import re
from typing import Any, Final

import msgspec

MAX_PLACES: Final = 8
"""So many places of a line are tried as the beginning of a message, each to the line's end at most."""

MAX_PYTHON_LETTERS: Final = 1 << 20
"""Longer texts of Python's objects are not parsed, which takes a hundred times the memory."""

_OPENING: Final = re.compile(r'\{\s*"|\[\s*\{\s*"')
_PYTHON: Final = re.compile(r"\bJSONRPC(?:Request|Notification|(?:Result)?Response|Error(?:Response)?)\(")
_FIELDS: Final = re.compile(r"(?<![\w.])jsonrpc='2\.0' (?=[a-z]+=)")
_FIELD_PIECE: Final = re.compile(r"""[()\[\]{}]|'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\"| [a-z]+=""")
_PYTHON_PIECE: Final = re.compile(r"""[()\[\]{}]|'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\"""")
_CUT: Final = re.compile(r'\{\s*"(?:jsonrpc"\s*:\s*"2\.0"|method"\s*:\s*"[a-z]+/?[A-Za-z/]*"\s*,|result"\s*:)')
_decoder: Final = json.JSONDecoder()


class LineMessage(msgspec.Struct, frozen=True):
    """A message in a line. `before` is the text before it; `value` None says that the line has only its beginning."""

    text: str
    value: Any
    before: str
    is_printed: bool = True
    """True if `text` stands in the log as it is; false if it was made of another form."""


def message_in(line: str) -> LineMessage | None:
    """Return the first message of a line; None if it has none."""
    is_cut = False
    end = 0
    for place, opening in enumerate(_OPENING.finditer(line)):
        if place == MAX_PLACES:
            break
        if opening.start() < end:
            continue  # within a value that is no message
        try:
            value, end = _decoder.raw_decode(line, opening.start())
        except (ValueError, RecursionError):
            is_cut = is_cut or _CUT.match(line, opening.start()) is not None
            continue
        if is_message(value):
            return LineMessage(line[opening.start() : end], value, line[: opening.start()])
        wrapped = _wrapped(value, line[: opening.start()])
        if wrapped is not None:
            return wrapped
    if (python := _python_message(line)) is not None:
        return python
    if is_cut:
        begin = _CUT.search(line)
        if begin is not None:
            return LineMessage(line[begin.start() :], None, line[: begin.start()])
    return None


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


def _wrapped(value: Any, before: str) -> LineMessage | None:
    """Return the message in a member of an object that a logger wrote; its other short members are words about it."""
    if not isinstance(value, dict):
        return None
    for name, member in value.items():
        inner: LineMessage | None = None
        if isinstance(member, str) and "{" in member and "\n" not in member.rstrip("\n"):
            inner = _in_string(member)
        elif is_message(member):
            inner = LineMessage(json.dumps(member, ensure_ascii=False, separators=(",", ":")), member, "", is_printed=False)
        if inner is not None:
            others = (f"{key}={word}" for key, word in value.items() if key != name and isinstance(word, str | int | float))
            words = " ".join((before, *(other for other in others if len(other) < 200), f"{name}:", inner.before))
            return LineMessage(inner.text, inner.value, words, is_printed=False)
    return None


def _in_string(text: str) -> LineMessage | None:
    """Return the message in a string of an object: one such string in another is not looked into."""
    for opening in list(_OPENING.finditer(text))[:MAX_PLACES]:
        try:
            value, end = _decoder.raw_decode(text, opening.start())
        except (ValueError, RecursionError):
            continue
        if is_message(value):
            return LineMessage(text[opening.start() : end], value, text[: opening.start()])
    return None


def _python_message(line: str) -> LineMessage | None:
    """Return the message that the official SDK for Python printed as an object."""
    begin = _PYTHON.search(line)
    if begin is None:
        return _python_fields(line)
    if len(line) - begin.start() > MAX_PYTHON_LETTERS:
        return None
    depth = 0
    for piece in _PYTHON_PIECE.finditer(line, begin.end() - 1):
        sign = piece.group()
        depth += (sign in "([{") - (sign in ")]}")
        if depth == 0:
            break
    else:
        return None
    return _python_value(line[begin.start() : piece.end()], line[: begin.start()])


def _python_fields(line: str) -> LineMessage | None:
    """Return the message that version 2 of that SDK printed without the name of its class: `jsonrpc='2.0' id=1 method='ping'`."""
    begin = _FIELDS.search(line)
    if begin is None or len(line) - begin.start() > MAX_PYTHON_LETTERS:
        return None
    depth, last, words = 0, begin.start(), []
    for piece in _FIELD_PIECE.finditer(line, begin.start()):
        sign = piece.group()
        depth += (sign in "([{") - (sign in ")]}")
        if depth == 0 and sign.startswith(" "):
            words.append(line[last : piece.start()])
            last = piece.start() + 1
    return _python_value(f"JSONRPCMessage({', '.join([*words, line[last:].rstrip()])})", line[: begin.start()])


def _python_value(source: str, before: str) -> LineMessage | None:
    """Return the message that a text of Python constructs; None if it constructs none."""
    try:
        tree = ast.parse(source, mode="eval")
        value = _plain(tree.body)
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        return None
    return LineMessage(text, value, before, is_printed=False) if is_message(value) else None


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
