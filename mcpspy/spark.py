"""Columns of captures that are too many for one machine: a Spark job that writes the tables of `mcpspy export parquet`.

    binaryFile: captures up to `whole_bytes` ──────┐                     ┌─► DIR/calls/date=2026-11-27/….parquet
    text: lines of larger ones, shuffled by file ──┴─► task: a file on ──┼─► DIR/messages/…
          and sorted, so that one task gets all        disk, its tables  └─► …

A task puts each capture on its own disk and exports it there, so rows and memory are those of the export.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date
from itertools import groupby
from operator import itemgetter
from tempfile import TemporaryDirectory
from typing import Final
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from .capture.store.folder import EXTENSION, key
from .cli.columns.update import update
from .columns.batches import BATCH_ROWS
from .columns.files import LAST, files_of
from .columns.schema import BOOLEAN, INTEGER, INTEGERS, STRING, STRINGS, TABLES, TIME, arrow_schema

WHOLE_BYTES: Final = 64_000_000
"""A capture up to this size comes to its task whole, a larger one in lines."""

_SETTINGS: Final = {
    "spark.sql.execution.arrow.maxRecordsPerBatch": "1000",
    "spark.sql.execution.arrow.maxBytesPerBatch": "16000000",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
}
"""Settings while the job runs: small batches, for a line may have a MB; and times of any year, as others read them."""

_FILES: Final = {"pathGlobFilter": f"*{EXTENSION}", "recursiveFileLookup": "true", "ignoreMissingFiles": "true"}
_PARTS: Final = "table STRING, date STRING, capture_id STRING, bytes BIGINT, path STRING, rows BINARY"
"""Some rows of one table and capture, in Arrow's own format; and the file, with its size, that the capture was in."""

_LISTS: Final = {STRINGS: "ARRAY<STRING>", INTEGERS: "ARRAY<BIGINT>"}
_TYPES: Final = {STRING: "STRING", INTEGER: "BIGINT", BOOLEAN: "BOOLEAN", TIME: "TIMESTAMP"} | _LISTS


def write_columns(
    spark: SparkSession, captures: str | list[str], folder: str, *, mode: str = "errorifexists", whole_bytes: int = WHOLE_BYTES
) -> None:
    """Write the columns of all captures in paths that Spark can read, and below them, to a folder that Spark can write.

    `mode` is that of Spark's writer: `append` adds captures to those of an earlier job, of which none may be in both. Of a capture
    in several files the longest counts. Times have microseconds, as Spark's; there are no payloads. Pseudonyms are the driver's.
    """
    store_key = key()
    with _settings(spark):
        parts = _pieces(spark, captures, whole_bytes).mapInArrow(lambda batches: _parts(batches, store_key), _PARTS).persist()
        try:
            kept = _each_once(parts)
            for table in (*(name for name in TABLES if name != LAST), LAST):
                columns = ", ".join(f"{column.name} {_TYPES[column.type]}" for _, column in TABLES[table].kept(payloads=False))
                rows = kept.where(kept.table == table).hint("rebalance", "date")
                rows = rows.select("date", "rows").mapInArrow(_rows_of(table), f"{columns}, date DATE")
                rows.write.mode(mode).partitionBy("date").option("compression", "zstd").parquet(f"{folder}/{table}")
        finally:
            parts.unpersist()


@contextmanager
def _settings(spark: SparkSession) -> Iterator[None]:
    before = {name: spark.conf.get(name, None) for name in _SETTINGS}
    try:
        for name, value in _SETTINGS.items():
            spark.conf.set(name, value)
        yield
    finally:
        for name, old in before.items():
            spark.conf.unset(name) if old is None else spark.conf.set(name, old)


def _pieces(spark: SparkSession, captures: str | list[str], whole_bytes: int) -> DataFrame:
    """Read captures as pieces that belong together if they follow each other: small ones whole, others line by line."""
    path, size = (sql.col(f"_metadata.file_{name}") for name in ("path", "size"))
    files = spark.read.format("binaryFile").options(**_FILES).load(captures).where(sql.col("length") <= whole_bytes)
    lines = spark.read.options(**_FILES, lineSep="\n").text(captures).where(size > whole_bytes)
    line = sql.concat(lines.value.cast("binary"), sql.lit(bytearray(b"\n")))
    place = (sql.col("_metadata.file_block_start").alias("block"), sql.monotonically_increasing_id().alias("number"))
    lines = lines.select(path.alias("path"), size.alias("length"), line.alias("piece"), *place)
    lines = lines.repartition("path").sortWithinPartitions("path", "block", "number")
    return files.select(path.alias("path"), "length", "content").unionAll(lines.select("path", "length", "piece"))


def _each_once(parts: DataFrame) -> DataFrame:
    """Leave out all but the longest file of each capture; of equal ones the first by its path."""
    files = parts.where(parts.table == LAST).groupBy("capture_id")
    best = sql.min(sql.struct(-sql.col("bytes"), "path")).alias("best")
    several = files.agg(sql.count("*").alias("files"), best).where("files > 1")
    if several.isEmpty():
        return parts
    return parts.join(sql.broadcast(several), "capture_id", "left").where("best IS NULL OR best.path = path")


def _parts(batches: Iterator[pa.RecordBatch], store_key: bytes) -> Iterator[pa.RecordBatch]:
    """Export each capture on the task's disk, and yield the rows of its tables."""
    pieces = (piece for batch in batches for piece in zip(*(column.to_pylist() for column in batch.columns), strict=True))
    for (path, length), group in groupby(pieces, itemgetter(0, 1)):
        with TemporaryDirectory(prefix="mcpspy-") as folder:
            name = unquote(path.rpartition("/")[2]).encode()[-255:].decode("utf-8", "ignore")  # no disk takes longer names
            file, exported = os.path.join(folder, name), os.path.join(folder, "columns")
            with open(file, "wb") as capture:
                capture.writelines(piece for _, _, piece in group)
                capture.truncate(length)  # each line got an end, which the last one may not have
            update([file], exported, store_key=store_key)
            for table in TABLES:
                for part in files_of(exported, table):
                    yield from _read(part, table, length, path)


def _read(part: str, table: str, length: int, path: str) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a file of columns, some at a time."""
    folder, name = os.path.split(part)
    about = (table, os.path.basename(folder).partition("=")[2], name.partition(".")[0], length, path)
    with pq.ParquetFile(part) as file:
        for batch in file.iter_batches(BATCH_ROWS):
            buffer = pa.BufferOutputStream()
            with pa.ipc.new_stream(buffer, batch.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as stream:
                stream.write_batch(batch)
            values = zip(_PARTS.split(", "), (*about, buffer.getvalue().to_pybytes()), strict=True)
            yield pa.RecordBatch.from_pydict({column.partition(" ")[0]: [value] for column, value in values})


def _rows_of(table: str) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return a function that makes rows of parts of a table."""

    def rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        us, of_export = pa.timestamp("us", tz="UTC"), arrow_schema(table, payloads=False)
        schema = pa.schema([field.with_type(us) if pa.types.is_timestamp(field.type) else field for field in of_export])
        for batch in batches:
            for day, data in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                for some in pa.ipc.open_stream(data):
                    days = pa.repeat(pa.scalar(date.fromisoformat(day)), len(some))
                    yield some.cast(schema, safe=False).append_column("date", days)

    return rows
