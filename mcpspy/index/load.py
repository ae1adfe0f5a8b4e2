"""The transcript of an indexed capture, whose rows are read when somebody takes them."""

from __future__ import annotations

import os
from array import array
from collections.abc import Callable, Sequence
from typing import Any, Final, cast

from ..capture.file.payloads import Payloads
from ..errors import CaptureError
from ..platform.files import BINARY, NOFOLLOW
from ..transcript.findings.run import know_hits, reached_limits
from ..transcript.model import Row, Transcript
from ..transcript.stored_rows import BLOCK_ROWS, COLUMNS, StoredRows
from .entries import rows_from
from .facts import Facts, facts_from, info_from, join_calls
from .file import IndexFile, identity_of, open_index
from .transactions import IndexedCapture, StoredStreams, StoredTransactions, scopes_from, transactions_from

_ESCAPE: Final = b"\\u"
"""The beginning of a letter that is spelled in another way."""


def indexed_transcript(
    path: str, version: str, whole: Callable[[], Transcript], *, keeps_frames: bool = False
) -> Transcript | None:
    """Return the transcript of the capture at `path` from its index; None if it has none that can be used.

    `whole` reads the capture, should a part of the index turn out to be damaged later. With `keeps_frames` streams have their frames.
    """
    try:
        fd = os.open(path, os.O_RDONLY | NOFOLLOW | BINARY)
    except OSError:
        return None
    source = Payloads(fd, path)
    try:
        index = open_index(path, identity_of(fd), version)
        if index is None:
            return None
        facts, transcript = transcript_of_index(index, IndexedCapture(source, keeps_frames=keeps_frames), whole)
        return transcript if facts.info["closed"] and facts.is_checked else None
    except (ValueError, CaptureError, OSError, TypeError, AttributeError, KeyError):
        return None


def transcript_of_index(index: IndexFile, source: IndexedCapture, whole: Callable[[], Transcript]) -> tuple[Facts, Transcript]:
    """Return what an index knows of its capture, and the transcript. Raises: ValueError; CaptureError; OSError."""
    facts = facts_from(index.section("facts"))
    columns = {name: _numbers(code, index.section(name)) for name, code in COLUMNS.items()}
    others = _numbers("I", index.section("others"))
    rows_at = _Blocks(index, "", facts.rows)
    if any(len(column) != len(rows_at) for column in columns.values()):
        raise ValueError("the sections do not fit each other")
    known: list[Transcript] = []

    def all_of_it() -> Transcript:
        known[:] = known or [whole()]
        return known[0]

    def read(block: int) -> list[Row]:
        return rows_from(rows_at.block(block), source)

    def classes() -> tuple[array[int], array[int]]:
        of_rows, samples = _numbers("H", index.section("classes")), _numbers("I", index.section("samples"))
        if len(of_rows) != facts.rows or any(at >= facts.rows for at in samples):
            raise ValueError("the sections do not fit each other")
        return of_rows, samples

    rows: StoredRows[Row] = StoredRows(
        facts.rows, columns, others, facts.figures,
        classes=classes, holds=rows_at.holds, offsets=source.payloads.offsets, read=read, whole=lambda: all_of_it().rows,
        section=index.section,
    )  # fmt: skip
    info = info_from(facts, source.payloads)
    numbers = _numbers("I", index.section("transactions"))
    if numbers:
        carried_by = _Blocks(index, "transaction_", len(numbers))
        source.scopes = scopes_from(facts.scopes)
        transactions = StoredTransactions(
            numbers,
            read=lambda block: transactions_from(carried_by.block(block), source),
            whole=lambda: all_of_it().captures[0].transactions,
        )
        source.transactions = transactions
        info.transactions = cast("dict[int, Any]", transactions)
        streams, carriers = _numbers("I", index.section("streams")), _numbers("I", index.section("carriers"))
        info.streams = cast("dict[int, Any]", StoredStreams(streams, carriers, transactions, info.streams))
    join_calls(facts.calls, info, rows)
    shown = list(rows) if info.is_model else cast("list[Row]", rows)  # those of a model are few, and compared by identity
    transcript = Transcript([info], shown, facts.findings)
    reached_limits(transcript).update(dict.fromkeys(facts.limits))
    if facts.hits is not None:
        know_hits(transcript, facts.hits)
    return facts, transcript


class _Blocks:
    """The blocks of an index that the sections with this prefix list, of `count` rows in all. Raises: ValueError."""

    __slots__ = ("_begins", "_crcs", "_index")

    def __init__(self, index: IndexFile, prefix: str, count: int) -> None:
        self._index = index
        self._begins = _numbers("Q", index.section(prefix + "begins"))
        self._crcs = _numbers("I", index.section(prefix + "crcs"))
        if not len(self._crcs) == len(self._begins) - 1 == (count + BLOCK_ROWS - 1) // BLOCK_ROWS:
            raise ValueError("the sections do not fit each other")

    def __len__(self) -> int:
        return len(self._crcs)

    def block(self, number: int) -> bytes:
        """Read a block. Raises: ValueError: if it is damaged."""
        return self._index.piece(self._begins[number], self._begins[number + 1], self._crcs[number])

    def holds(self, number: int, texts: Sequence[bytes]) -> bool:
        """Return whether a block has all these texts, or cannot be read."""
        try:
            block = self.block(number)
        except ValueError:
            return True
        return all(text in block for text in texts) or _ESCAPE in block


def _numbers(code: str, data: bytes) -> array[int]:
    numbers = array(code)
    numbers.frombytes(data)
    return numbers
