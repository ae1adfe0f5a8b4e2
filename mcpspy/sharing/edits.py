"""Edits by span: what of some bytes is replaced by what, so that all that stands around it stays as it was.

Refuses to know why.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

_QUOTES = b'\\"'


class Edit(NamedTuple):
    """`data[start:end]` becomes `new`. `kind` is that of a capture's `redacted`."""

    start: int
    end: int
    new: bytes
    kind: str


def settled(data: bytes, edits: Iterable[Edit], stand_in: Callable[[bytes], bytes]) -> list[Edit]:
    """Edits in order, none of which overlap: of those within another the other is taken, and what overlaps is replaced as one.

    Where two take the same span, the first of them counts.
    """
    found: list[Edit] = []
    for one in sorted(edits, key=lambda edit: (edit.start, -edit.end)):
        last = found[-1] if found else None
        if last is None or one.start >= last.end:
            found.append(one)
        elif one.end > last.end:
            found[-1] = Edit(last.start, one.end, stand_in(data[last.start : one.end]), last.kind)
    return found


def renamed(edits: Iterable[Edit], kinds: Mapping[tuple[int, int], str]) -> list[Edit]:
    """The same edits, those whose span has a kind already with that."""
    return [one._replace(kind=kinds.get((one.start, one.end), one.kind)) for one in edits]


def edited(data: bytes, edits: Sequence[Edit]) -> bytes:
    """`data` with these edits made, which are settled."""
    pieces: list[bytes] = []
    done = 0
    for one in edits:
        pieces += (data[done : one.start], one.new)
        done = one.end
    return b"".join((*pieces, data[done:]))


def dealt(parts: Sequence[bytes], edits: Sequence[Edit]) -> list[tuple[bytes, tuple[tuple[int, int, str], ...]]]:
    """The parts of what was edited as a whole, each with `(offset, length, kind)` of what was replaced in it.

    What began in one part and ended in another stands whole in the part in which it ended.
    """
    found: list[tuple[bytes, tuple[tuple[int, int, str], ...]]] = []
    begin = at = 0
    waiting = list(reversed(edits))
    for part in parts:
        end = begin + len(part)
        pieces: list[bytes] = []
        ranges: list[tuple[int, int, str]] = []
        length = 0
        while waiting and waiting[-1].end <= end:
            one = waiting.pop()
            before = part[max(at, begin) - begin : max(one.start - begin, 0)]
            pieces += (before, one.new)
            bare = one.new.strip(_QUOTES)  # those of a number that has become a text
            ranges.append((length + len(before) + one.new.find(bare), len(bare), one.kind))
            length += len(before) + len(one.new)
            at = one.end
        stop = end if not waiting else min(max(waiting[-1].start, begin), end)
        pieces.append(part[max(at, begin) - begin : stop - begin])
        at = max(at, stop)
        begin = end
        found.append((b"".join(pieces), tuple(ranges)))
    return found
