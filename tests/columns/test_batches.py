"""Rows become columns, whatever their values have in common; and files wait for what a thread writes."""

import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.columns import files
from mcpspy.columns.batches import BATCH_ROWS, TableBatches
from mcpspy.columns.files import ColumnFiles
from mcpspy.columns.schema import TABLES
from tests.deadlines import DEADLINE_S

LONG = "x" * 100_000
NAMES = [column.name for column in TABLES["definitions"].columns]
ROW: dict[str, Any] = {
    "capture_id": "c", "kind": "tool", "name": "n", "row": 1, "record": 2, "time": 3, "is_current": True, "sha256": "d", "bytes": 4,
    "tokens": None, "definition": "{}",
}  # fmt: skip


class NoMask:
    """A mask that leaves all texts as they are."""

    def texts(self, texts: list[str | None]) -> list[str | None]:
        return texts

    def payload(self, payload: bytes) -> str:
        return payload.decode()


def columns_of(rows: list[dict[str, Any]], *, at_once: int) -> dict[str, list[Any]]:
    """Return what a table makes of rows that are handed over so many at once."""
    batches: list[pa.RecordBatch] = []
    table = TableBatches("definitions", lambda _, batch: batches.append(batch), NoMask(), payloads=False)
    for first in range(0, len(rows), at_once):
        some = rows[first : first + at_once]
        table.extend([[row[name] for row in some] for name in NAMES])
    table.close()
    written = pa.Table.from_batches(batches)
    return {name: written.column(name).to_pylist() for name in written.column_names if name != "time"}


@given(
    st.lists(
        st.tuples(st.integers(1, 1_500), st.sampled_from(["a", "b"]), st.sampled_from([None, 0, 7])), min_size=1, max_size=5
    ),
    st.sampled_from([1, 700, 1_200]),
)
def test_columns_have_the_values_of_their_rows(runs: list[tuple[int, str, int | None]], at_once: int) -> None:
    rows = [ROW | {"name": name, "tokens": tokens} for count, name, tokens in runs for _ in range(count)]
    columns = columns_of(rows, at_once=at_once)
    for name, values in columns.items():
        assert values == [row[name] for row in rows]


def test_a_long_text_is_not_copied_into_rows_that_there_are_not() -> None:
    before = pa.total_allocated_bytes()
    batches: list[pa.RecordBatch] = []
    table = TableBatches("definitions", lambda _, batch: batches.append(batch), NoMask(), payloads=True)
    table.feed(tuple((ROW | {"definition": LONG})[name] for name in NAMES))
    table.close()
    assert len(batches[0]) == 1 < BATCH_ROWS
    assert pa.total_allocated_bytes() - before < 3 * len(LONG)


def test_files_that_are_discarded_wait_for_what_is_being_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An interrupt comes while a row group is written: its file must not be closed before."""
    is_writing, may_end = threading.Event(), threading.Event()
    write = files._write

    def slow(writer: pq.ParquetWriter, rows: pa.Table) -> None:
        is_writing.set()
        assert may_end.wait(DEADLINE_S)
        assert writer.is_open
        write(writer, rows)

    monkeypatch.setattr(files, "_write", slow)
    monkeypatch.setattr(files, "GROUP_ROWS", 1)
    columns = ColumnFiles(lambda table: str(tmp_path / f"{table}.parquet"))
    batch = pa.record_batch({"a": pa.array([1])})
    columns.feed("calls", batch)
    assert is_writing.wait(DEADLINE_S)

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(columns._written, "result", interrupted)
        with pytest.raises(KeyboardInterrupt):
            columns.feed("calls", batch)
    written = columns._written
    assert written is not None
    discarding = threading.Thread(target=columns.discard)
    discarding.start()
    may_end.set()
    discarding.join(DEADLINE_S)
    assert not discarding.is_alive()
    assert written.exception() is None
    assert list(tmp_path.iterdir()) == []
