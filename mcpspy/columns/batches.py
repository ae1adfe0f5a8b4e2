"""Rows of one table to Arrow record batches, some thousand at a time. Values wait in a list for each column.

A value that its column cannot hold does not raise: a number becomes the nearest that fits, half a character becomes `?`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, Protocol, TypeAlias

import pyarrow as pa

from .schema import STRINGS, TABLES, TableColumn, arrow_schema

BATCH_ROWS: Final = 1_000
SHORT_ID: Final = 16
"""Ids of so many letters are not looked at."""

_LARGEST: Final = 2**63 - 1

Values: TypeAlias = tuple[Any, ...]
"""The values of a row, one for each column of the table."""

Sink: TypeAlias = Callable[[str, pa.RecordBatch], None]
"""It takes the next rows of the table with this name."""


class TextMask(Protocol):
    """A mask of captured texts. `texts` replaces credentials in those of a column, `payload` all secrets of a payload."""

    def texts(self, texts: list[str | None]) -> list[str | None]: ...

    def payload(self, payload: bytes) -> str: ...


class TableBatches:
    """The rows of one table, column by column. `feed`, `extend` and `close` hand batches to the sink."""

    __slots__ = ("_columns", "_equal", "_kept", "_mask", "_name", "_schema", "_sink", "count")

    def __init__(self, name: str, sink: Sink, mask: TextMask, *, payloads: bool) -> None:
        self._name = name
        self._sink = sink
        self._mask = mask
        self._kept = TABLES[name].kept(payloads=payloads)
        self._schema = arrow_schema(name, payloads=payloads)
        self._columns: list[list[Any]] = [[] for _ in TABLES[name].columns]
        self._equal: dict[int, tuple[Any, pa.Array]] = {}
        """By position: the value that all rows of a column had, as in many columns, and an array of it."""
        self.count = 0

    def feed(self, row: Values) -> None:
        """Add a row."""
        for column, value in zip(self._columns, row, strict=True):
            column.append(value)
        self._flush_if_many()

    def extend(self, columns: Sequence[Iterable[Any]]) -> None:
        """Add rows, given as their columns. A column that is not written may be empty."""
        lists = [values if isinstance(values, list | tuple) else list(values) for values in columns]
        if len(lists[0]) >= BATCH_ROWS and not self._columns[0]:
            self._hand_over(lists)
            return
        for waiting, values in zip(self._columns, lists, strict=True):
            waiting.extend(values)
        self._flush_if_many()

    def close(self) -> None:
        """Hand over the rest."""
        if self._columns[0]:
            self._flush()

    def _flush_if_many(self) -> None:
        if len(self._columns[0]) >= BATCH_ROWS:
            self._flush()

    def _flush(self) -> None:
        self._hand_over(self._columns)
        for values in self._columns:
            values.clear()

    def _hand_over(self, columns: Sequence[Sequence[Any]]) -> None:
        arrays = [self._array(at, column, columns[at]) for at, column in self._kept]
        self.count += len(columns[0])
        self._sink(self._name, pa.RecordBatch.from_arrays(arrays, schema=self._schema))

    def _array(self, at: int, column: TableColumn, values: Sequence[Any]) -> pa.Array:
        if len(values) < BATCH_ROWS or values.count(values[0]) < len(values):
            return self._made(column, values)
        value, array = self._equal.get(at, (None, ()))
        if value != values[0] or len(array) < len(values):
            array = pa.repeat(self._made(column, values[:1])[0], len(values))
            self._equal[at] = values[0], array
        return array[: len(values)]

    def _masked_ids(self, ids: Sequence[str | None]) -> Sequence[str | None]:
        """Mask long ids, without the quotes in which all strings are. Others are too short for a credential."""
        long = [id for id in ids if id is not None and len(id) > SHORT_ID]
        if not long:
            return ids
        bare = [id.strip('"') for id in long]
        masked = self._mask.texts([*bare])
        new = {id: f'"{text}"' for id, old, text in zip(long, bare, masked, strict=True) if text != old}
        return [None if id is None else new.get(id, id) for id in ids] if new else ids

    def _made(self, column: TableColumn, values: Sequence[Any]) -> pa.Array:
        if column.is_id:
            values = self._masked_ids(values)
        if column.is_text and any(values):
            if column.type == STRINGS:
                values = [self._mask.texts(list(value)) if value else value for value in values]
            else:
                values = self._mask.texts([*values])
        arrow_type = self._schema.field(column.name).type
        try:
            return pa.array(values, arrow_type)
        except (OverflowError, UnicodeEncodeError, pa.ArrowInvalid):
            return pa.array(list(map(_fitting, values)), arrow_type)


def _fitting(value: Any) -> Any:
    if isinstance(value, int) and not isinstance(value, bool):
        return max(-_LARGEST, min(_LARGEST, value))
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, Sequence):
        return [_fitting(item) for item in value]
    return value
