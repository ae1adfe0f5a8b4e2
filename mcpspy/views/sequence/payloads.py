"""What a message carries, in one line or in a few: the params of a request, the result or the error of an answer.

Every line is safe. Refuses to show all of it: `show @:7` does.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from json import loads
from typing import TYPE_CHECKING, Final

from ...wire.json_spans import members
from ..text.escape import decoded, one_line, safe_text
from ..text.line import plain
from ..text.pretty import pretty
from ..text.units import counted

if TYPE_CHECKING:
    from ...transcript.message import Message

MAX_LETTERS: Final = 80
"""Of a payload so much stands in one line."""

MAX_LINES: Final = 24
"""So many lines of a payload are shown; more are counted."""

MAX_LINE_LETTERS: Final = 100

MAX_READ_BYTES: Final = 64_000
"""Of a larger payload only the beginning is laid out."""

_NO_NEWS: Final = {b"{}", b"null", b""}

_escapes: Final = re.compile(r"(?<!\\)\\u(?:[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|[0-9a-fA-F]{4})").sub


def in_one_line(message: Message) -> str:
    """What it says, as JSON, cut; of a tool's arguments these alone. Empty where it says nothing."""
    said = _said(message)
    if said is None:
        return ""
    return one_line(_readable(decoded(said[: 6 * MAX_LETTERS])), MAX_LETTERS)


def lines(message: Message) -> tuple[str, ...]:
    """The same laid out for reading."""
    said = _said(message)
    if said is None:
        return ()
    shown = bounded(safe_text(_readable(plain(line))) for line in pretty(said[:MAX_READ_BYTES]))
    return tuple(shown if len(said) <= MAX_READ_BYTES else [*shown[:MAX_LINES], "… and more"])


def bounded(texts: Iterable[str]) -> list[str]:
    """The first of these lines, each cut where it is long, and how many more there are."""
    made: list[str] = []
    count = 0
    for text in texts:
        count += 1
        if count <= MAX_LINES:
            made.append(text if len(text) <= MAX_LINE_LETTERS else text[:MAX_LINE_LETTERS] + "…")
    if count > MAX_LINES:
        made.append(f"… {counted(count - MAX_LINES, 'more line')}")
    return made


def _readable(text: str) -> str:
    r"""JSON with its signs as signs: `\u5317` is 北, `\u00b0` is °; what is of ASCII, or cannot be seen, stays as it is spelled."""
    return _escapes(lambda found: sign if (sign := loads(f'"{found[0]}"')) > "\x7f" and sign.isprintable() else found[0], text)


def _said(message: Message) -> bytes | None:
    """The bytes of what a message says beside its method and its id."""
    found = members(message.raw)
    said = next((bytes(found[name]) for name in ("params", "result", "error") if name in found), b"")
    if message.method == "tools/call" and said:
        said = bytes(members(said).get("arguments", b""))
    return None if said.strip() in _NO_NEWS else said
