"""Columns as tests read them: each row a dictionary."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from mcpspy.columns.files import files_of


def rows_of(folder: Path, table: str) -> list[dict[str, Any]]:
    """Return the rows of a table in a folder; times as Unix time in nanoseconds."""
    rows: list[dict[str, Any]] = []
    for path in files_of(str(folder), table):
        read = pq.ParquetFile(path).read()
        for at, field in enumerate(read.schema):
            if pa.types.is_timestamp(field.type):
                read = read.set_column(at, field.name, read.column(at).cast(pa.int64()))
        rows += read.to_pylist()
    return rows
