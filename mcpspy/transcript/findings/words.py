"""Pieces of a finding's sentences: calls, quotations, times and lists. Captured text in them is as it was captured."""

from collections.abc import Iterable

from ..model import Exchange, UnpairedMessage
from ..offers.definitions import DefinitionKind

QUOTED_LETTERS = 80


def call_name(row: Exchange | UnpairedMessage) -> str:
    """Name a call by its method and its target: `tools/call search`."""
    message = row.request if isinstance(row, Exchange) else row.message
    return f"{message.method or ''} {message.target or ''}".strip()


def quoted(raw: bytes, letters: int = QUOTED_LETTERS) -> str:
    """Put captured bytes in quotation marks, cut to the length that fits into a sentence."""
    text = raw[: 4 * letters].decode("utf-8", "replace").strip()
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
    return f"The {kind} {quoted(name.encode('utf-8', 'replace'))}"
