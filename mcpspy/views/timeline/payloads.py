"""The payload of a message in a few lines: the params of a request, the result or error of a response.

Every line is safe for a terminal, and long payloads are cut; `show @:7` shows all.
"""

from collections.abc import Iterable
from typing import Final

from ...transcript.message import Message
from ...wire.json_spans import members
from ..text.escape import safe_text
from ..text.line import plain
from ..text.pretty import pretty
from ..text.units import counted
from .details import readable

MAX_LINES: Final = 24
"""Lines of a payload that are shown; the rest are counted."""

MAX_LINE_LETTERS: Final = 100

MAX_READ_BYTES: Final = 64_000
"""Of a larger payload only the beginning is laid out."""

_NO_NEWS: Final = {b"{}", b"null", b""}


def lines(message: Message) -> tuple[str, ...]:
    """Show the payload as JSON in several lines."""
    payload = _payload(message)
    if payload is None:
        return ()
    shown = bounded(safe_text(readable(plain(line))) for line in pretty(payload[:MAX_READ_BYTES]))
    return tuple(shown if len(payload) <= MAX_READ_BYTES else [*shown[:MAX_LINES], "… and more"])


def bounded(texts: Iterable[str]) -> list[str]:
    """Keep the first lines, each cut if it is long, and count the rest."""
    made: list[str] = []
    count = 0
    for text in texts:
        count += 1
        if count <= MAX_LINES:
            made.append(text if len(text) <= MAX_LINE_LETTERS else text[:MAX_LINE_LETTERS] + "…")
    if count > MAX_LINES:
        made.append(f"… {counted(count - MAX_LINES, 'more line')}")
    return made


def _payload(message: Message) -> bytes | None:
    """Return the bytes of the params, result or error of a message. None if they are empty."""
    parts = members(message.raw)
    payload = next((bytes(parts[name]) for name in ("params", "result", "error") if name in parts), b"")
    if message.method == "tools/call" and payload:
        payload = bytes(members(payload).get("arguments", b""))
    return None if payload.strip() in _NO_NEWS else payload
