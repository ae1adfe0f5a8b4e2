"""Pieces of a finding's sentences: calls, quotations, times and lists. Captured text in them is as it was captured."""

from collections.abc import Iterable

from ..definitions import DefinitionKind
from ..model import Exchange, UnpairedMessage

QUOTED_LETTERS = 80


def call_name(row: Exchange | UnpairedMessage) -> str:
    """Name a call by its method and its target: `tools/call search`."""
    message = row.request if isinstance(row, Exchange) else row.message
    return f"{message.method or ''} {message.target or ''}".strip()


def quoted(raw: bytes | str, letters: int = QUOTED_LETTERS) -> str:
    """Put captured bytes, or a text, in quotation marks, cut to the length that fits into a sentence."""
    data = raw.encode("utf-8", "replace") if isinstance(raw, str) else raw
    text = data[: 4 * letters].decode("utf-8", "replace").strip()
    return f"“{text[:letters]}…”" if len(text) > letters else f"“{text}”"


def seconds(ns: int) -> str:
    """Write a time span: `1.2 s`; below 0.1 s in milliseconds: `12 ms`."""
    return f"{ns / 1_000_000_000:.1f} s" if ns >= 100_000_000 or ns <= 0 else f"{ns / 1_000_000:.0f} ms"


def listed(texts: Iterable[str], limit: int, unit: str = "") -> str:
    """Join the first `limit` texts with commas and count the others: `a, b and 3 more kinds`, where the unit is `kinds`."""
    texts = list(texts)
    left = len(texts) - limit
    return ", ".join(texts[:limit]) + (f" and {left:,} more {unit}".rstrip() if left > 0 else "")


def definition_name(kind: DefinitionKind, name: str) -> str:
    """Name a definition at the beginning of a sentence: `The tool “search”`."""
    if kind is DefinitionKind.INSTRUCTIONS:
        return "The text of the server's instructions"
    return f"The {kind} {quoted(name)}"


_CLEAR_LETTERS = 12
"""Texts that both are no longer are quoted whole, and told apart at a glance."""
_SHOWN_LETTERS = 8


def told_apart(sent: str, known: Iterable[str]) -> str:
    """Say where a text of the client begins to differ from the likeliest of those that it got; empty where a glance shows it.

    Quotations are cut, and tokens in them are shortened, so that two that differ may look equal.
    """
    nearest, same = max(((other, _same_letters(sent, other)) for other in known), key=lambda pair: pair[1], default=("", 0))
    if not nearest or max(len(sent), len(nearest)) <= _CLEAR_LETTERS:
        return ""
    parts = [text[same : same + _SHOWN_LETTERS] for text in (sent, nearest)]
    shown = [f"“{part}”" if part else "nothing more" for part in parts]
    return f"; the client's differs from character {same + 1:,} on: {shown[0]} instead of {shown[1]}"


def _same_letters(text: str, other: str) -> int:
    """Count the letters with which both texts begin."""
    return next((at for at, (a, b) in enumerate(zip(text, other, strict=False)) if a != b), min(len(text), len(other)))
