"""The columns of an index: what each block of rows has at least and at most, so that a filter reads few of them."""

from __future__ import annotations

from array import array
from collections.abc import Hashable, Sequence
from typing import Final

from ..transcript.http.transaction import Transaction
from ..transcript.model import CaptureInfo, Exchange, Log, ModelCall, Numbered, Row, Transcript, UnpairedMessage
from ..transcript.recent import last_ns
from ..transcript.stored_rows import BLOCK_ROWS, COLUMNS, FOREVER
from ..transcript.waiting import waited_ns

MAX_CLASSES: Final = 4096
"""Rows of further classes are of none: each class costs a filter the reading of a row."""


def row_columns(rows: Sequence[Row], info: CaptureInfo, next_row: int = 1) -> dict[str, array[int]]:
    """Return the columns that follow from the rows, and the positions of those without a number. `next_row` is the first number."""
    columns = {name: array(code) for name, code in COLUMNS.items() if name not in ("begin", "end")}
    others = array("I")
    for begin in range(0, len(rows), BLOCK_ROWS):
        block = rows[begin : begin + BLOCK_ROWS]
        numbers = [row.row for row in block if isinstance(row, Numbered)]
        columns["firsts"].append(numbers[0] if numbers else next_row)
        next_row = numbers[-1] + 1 if numbers else next_row
        columns["lasts"].append(next_row - 1)
        columns["longest"].append(max((_took_ns(row, info) for row in block), default=0))
        columns["largest"].append(max((_bytes(row) for row in block), default=0))
        columns["progress"].append(max((row.progress for row in block if isinstance(row, Exchange)), default=0))
        columns["earliest"].append(max(0, min(map(_first_ns, block))))
        columns["latest"].append(min(FOREVER, max(0, *(max(row.at_ns, last_ns(row, info)) for row in block))))
        others.extend(begin + at for at, row in enumerate(block) if not isinstance(row, Numbered))
    return {**columns, "others": others}


def class_columns(transcript: Transcript) -> dict[str, array[int]]:
    """Return the class of each row, and for each class the position of a row."""
    from ..transcript.filter.filter import rules_by_row  # with all rules, for which nobody waits who reads an index
    from ..transcript.filter.row_classes import row_class

    info, rules = transcript.captures[0], rules_by_row(transcript)
    numbers: dict[Hashable, int] = {}
    of_rows, samples = array("H"), array("I")
    for at, row in enumerate(transcript.rows):
        key = row_class(row, info, rules)
        if key not in numbers and len(numbers) < MAX_CLASSES:
            samples.append(at)
            numbers[key] = len(samples)
        of_rows.append(numbers.get(key, 0))
    return {"classes": of_rows, "samples": samples}


def _first_ns(row: Row) -> int:
    """Return the time of the first message of a row."""
    if isinstance(row, Exchange) and (row.notifications or row.partials or row.more_responses):
        return min(message.at_ns for message in row.messages)
    return row.at_ns


def _took_ns(row: Row, info: CaptureInfo) -> int:
    """Return the time that a row took, or waited, alone or with its whole call."""
    if isinstance(row, Exchange):
        call = info.calls.get(row.row)
        took_ns = row.duration_ns or waited_ns(row, info) or 0
        return max(0, took_ns, (call.duration_ns or 0) if call is not None else 0)
    if isinstance(row, UnpairedMessage):
        call = info.calls.get(row.row)
        return max(0, (call.duration_ns or 0) if call is not None else 0)
    return max(0, row.duration_ns or 0) if isinstance(row, Transaction | ModelCall) else 0


def _bytes(row: Row) -> int:
    """Return the size that a row shows, or that of a message of it if that is larger."""
    if isinstance(row, Exchange):
        both = row.request.size + (0 if row.response is None else row.response.size)
        others = (*row.notifications, *row.partials, *row.more_responses)
        return max(both, max((message.size for message in others), default=0)) if others else both
    if isinstance(row, UnpairedMessage):
        return row.message.size
    if isinstance(row, Transaction):
        return sum(stream.body_bytes for stream in (row.request, row.response) if stream is not None)
    return len(row.raw) if isinstance(row, Log) else 0
