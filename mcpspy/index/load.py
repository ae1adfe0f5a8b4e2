"""The transcript of an indexed capture, whose rows are read when somebody takes them."""

from __future__ import annotations

import os
from array import array
from collections.abc import Callable, Sequence
from typing import cast

from ..capture.file.payloads import Payloads
from ..errors import CaptureError
from ..transcript.model import Row, Transcript
from ..transcript.stored_rows import BLOCK_ROWS, StoredRows
from .entries import rows_from
from .facts import facts_from, info_from, join_calls
from .file import IndexFile, identity_of, open_index


def indexed_transcript(path: str, version: str, whole: Callable[[], Sequence[Row]]) -> Transcript | None:
    """Return the transcript of the capture at `path` from its index; None if it has none that can be used.

    `whole` reads all rows, should a part of the index turn out to be damaged later.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    except OSError:
        return None
    source = Payloads(fd, path)
    try:
        index = open_index(path, identity_of(fd), version)
        return None if index is None else _transcript(index, source, whole)
    except (ValueError, CaptureError, OSError, TypeError, AttributeError):
        return None


def _transcript(index: IndexFile, source: Payloads, whole: Callable[[], Sequence[Row]]) -> Transcript:
    facts = facts_from(index.section("facts"))
    begins, crcs = _numbers("Q", index.section("begins")), _numbers("I", index.section("crcs"))
    firsts, others = _numbers("I", index.section("firsts")), _numbers("I", index.section("others"))
    longest = _numbers("Q", index.section("longest"))
    blocks = (facts.rows + BLOCK_ROWS - 1) // BLOCK_ROWS
    if not (len(crcs) == len(firsts) == len(longest) == blocks == len(begins) - 1):
        raise ValueError("the sections do not fit each other")

    def read(block: int) -> list[Row]:
        return rows_from(index.piece(begins[block], begins[block + 1], crcs[block]), source)

    rows: StoredRows[Row] = StoredRows(facts.rows, firsts, others, longest, facts.figures, read=read, whole=whole)
    info = info_from(facts, source)
    join_calls(facts.calls, info, rows)
    return Transcript([info], cast("list[Row]", rows), facts.findings)


def _numbers(code: str, data: bytes) -> array[int]:
    numbers = array(code)
    numbers.frombytes(data)
    return numbers
