"""Filters to bounds of the columns that an index has for each block of rows: blocks outside of them have no row that matches.

Only terms that have to match give bounds: of `tool:x dur>2s` both, and of alternatives none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import tzinfo
from typing import Final, TypeAlias

from ...lazy_pattern import lazy_pattern
from ..model import Transcript
from .facts import Subject
from .grammar import AllOf, Node, Term, Text
from .values import COUNTS, DURATIONS_NS, SIZES_BYTES, amount, moment, on_clock_ns

Bounds: TypeAlias = list[tuple[str, int, int]]
"""Columns of blocks, and the least and the most that a block may have there."""

EVER: Final = 1 << 80

_AT_LEAST: Final = {
    "dur": ("longest", DURATIONS_NS),
    "total": ("longest", DURATIONS_NS),
    "size": ("largest", SIZES_BYTES),
    "bytes": ("largest", SIZES_BYTES),
    "progress": ("progress", COUNTS),
}

_LITERAL: Final = ("id", "token")
"""Keys of texts that an index spells as messages do, if they are plain."""

_plain_part = lazy_pattern(r"[A-Za-z0-9-]+", re.ASCII)


def needed(node: Node) -> tuple[Node, ...]:
    """Return the parts that have to match."""
    return node.parts if isinstance(node, AllOf) else (node,)


def bounds(node: Node, transcript: Transcript, zone: tzinfo | None) -> Bounds:
    """Return the bounds within which a row of a transcript of one capture may match."""
    return [bound for part in needed(node) if isinstance(part, Term) for bound in _bounds(part, transcript, zone)]


def _bounds(term: Term, transcript: Transcript, zone: tzinfo | None) -> Iterator[tuple[str, int, int]]:
    key = term.key
    if key in _AT_LEAST:
        column, units = _AT_LEAST[key]
        yield column, _range(term, units)[0], EVER
    elif key in ("row", "call"):
        low, high = _range(term, COUNTS)
        if key == "call":
            calls = transcript.captures[0].calls
            rows = [row for row, call in calls.items() if low <= call.row <= high]
            low, high = min((low, *rows)), max((high, *rows))
        yield "lasts", low, EVER
        yield "firsts", 0, high
    elif key in ("after", "before"):
        begin_ns = Subject(transcript.captures, {}, zone).begin_ns
        bound_ns = on_clock_ns(moment(term.value), begin_ns, zone)
        if bound_ns is not None:
            yield ("latest", bound_ns, EVER) if key == "after" else ("earliest", -EVER, bound_ns)


def _range(term: Term, units: dict[str, int]) -> tuple[int, int]:
    """Return the least and the most that an amount may be."""
    low_text, dots, high_text = term.value.partition("..")
    low = amount(low_text, units)
    match term.operator:
        case ">":
            return low + 1, EVER
        case ">=":
            return low, EVER
        case "<" | "<=":
            return 0, low
    return low, amount(high_text, units) if dots else low


def literals(node: Node) -> list[bytes]:
    """Return texts that the entry of a row has that matches: of ids and tokens the longest part without signs."""
    values = [part.value for part in needed(node) if isinstance(part, Term) and part.key in _LITERAL]
    parts = [max(_plain_part.findall(value), key=len, default="") for value in values]
    return [part.encode() for part in parts if part]


def texts(node: Node) -> list[str]:
    """Return the texts that the payload of a row has that matches, the longest first."""
    return sorted((part.text for part in needed(node) if isinstance(part, Text)), key=len, reverse=True)
