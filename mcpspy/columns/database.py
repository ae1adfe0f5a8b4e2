"""A folder of columns as a database in memory: DuckDB with a view for each table, which can read nothing but this folder.

Nothing is fetched or loaded, whatever the SQL says, and one statement that reads is all that it may have.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from glob import iglob
from typing import Any, Final, NamedTuple

import duckdb

from .schema import BOOLEAN, INTEGER, INTEGERS, STRING, STRINGS, TABLES, TIME

_CONFIGURATION: Final[dict[str, Any]] = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
}
_READING: Final = "SELECT"
"""The only statement that is run. `EXPLAIN ANALYZE COPY` would write to the folder of columns."""

_ROWS_AT_ONCE: Final = 10_000
_TIMES: Final = {"captures": "ended"}
"""The column by which a table is cut to what was since a moment, where it is not `time`."""
_TYPES: Final = {
    STRING: "VARCHAR",
    INTEGER: "BIGINT",
    BOOLEAN: "BOOLEAN",
    TIME: "TIMESTAMPTZ_NS",
    STRINGS: "VARCHAR[]",
    INTEGERS: "BIGINT[]",
}


_UNKNOWN_TABLE: Final = re.compile(r"Table with name (.+?) does not exist!")
_NO_PAYLOAD: Final = re.compile(r'column (?:named )?"(payload|definition)"')
"""Errors in DuckDB's words, about a table, and about a column that is left out without payloads."""

_WITH_PAYLOADS: Final = {"payload": "the table messages", "definition": "the table definitions"}
"""By the name of such a column: where it is."""


class QueryError(Exception):
    """SQL that the database refuses, with its reason."""


class ResultColumn(NamedTuple):
    """A column of a result: its name, and its type in DuckDB's words."""

    name: str
    type: str


class Database:
    """The tables of a folder; with `since_ns`, Unix time, only what was later.

    `are_alike` says that all files of a table have the same columns. Then those that a query does not need are not opened before it.
    """

    __slots__ = ("_are_alike", "_connection", "_folder", "_since_ns")

    def __init__(self, folder: str, since_ns: int | None = None, *, are_alike: bool = False) -> None:
        self._folder = folder
        self._are_alike = are_alike
        self._since_ns = since_ns
        self._connection = connection = duckdb.connect(":memory:", config=_CONFIGURATION)
        connection.execute("SET TimeZone = 'UTC'")
        path = os.path.join(os.path.abspath(folder), "")
        connection.execute(f"SET allowed_directories = [{_quoted(path)}]")
        connection.execute("SET enable_external_access = false")
        connection.execute("SET lock_configuration = true")

    def _view(self, table: str) -> None:
        folder, since_ns = self._folder, self._since_ns
        path = os.path.join(os.path.abspath(folder), table, "*", "*.parquet")
        if next(iglob(path), None) is not None:
            union = "false" if self._are_alike else "true"
            source = f"read_parquet({_quoted(path)}, hive_partitioning = true, union_by_name = {union})"
        else:
            source = f"({_no_rows(table)})"
        condition = ""
        if since_ns is not None and ("time" in _names(table) or table in _TIMES):
            condition = f" WHERE {_TIMES.get(table, 'time')} >= make_timestamp_ns({since_ns})::TIMESTAMPTZ"
        self._connection.execute(f"CREATE OR REPLACE VIEW {table} AS SELECT * FROM {source}{condition}")  # noqa: S608 - our names

    def query(self, sql: str) -> QueryResult:
        """Run a statement that reads. Raises: QueryError."""
        statement = self._statement(sql)
        try:
            return QueryResult(self._connection.execute(statement))
        except duckdb.Error as error:
            raise QueryError(_reason(error)) from error

    def write(self, sql: str, path: str) -> None:
        """Run a statement that reads, and write its result to a Parquet file. Raises: QueryError, OSError."""
        import pyarrow as pa  # takes a sixth of the start; other queries do without it
        import pyarrow.parquet as pq

        from .files import naming

        statement = self._statement(sql)
        try:
            batches = self._connection.sql(statement).to_arrow_reader(_ROWS_AT_ONCE)
            with naming(path), pq.ParquetWriter(path, batches.schema, compression="zstd") as writer:
                for batch in batches:
                    writer.write_batch(batch)
        except duckdb.Error as error:
            raise QueryError(_reason(error)) from error
        except pa.ArrowNotImplementedError as error:
            raise QueryError(f"Parquet has no such type: {error}") from error

    def _statement(self, sql: str) -> duckdb.Statement:
        """Read a statement, and make the views that it may need. Raises: QueryError: if it does not only read."""
        statement = _only_reading(self._connection, sql)
        try:
            named = [table for table in TABLES if table in sql.lower()]  # a view opens all files of its table
            for table in named or TABLES:  # all of them for SHOW TABLES, and for an error that names the nearest table
                self._view(table)
        except duckdb.Error as error:
            raise QueryError(_reason(error)) from error
        return statement


def require_reading(sql: str) -> None:
    """Refuse what is no statement that only reads, or no SQL at all, without a database. Raises: QueryError."""
    with duckdb.connect(":memory:", config=_CONFIGURATION) as connection:
        _only_reading(connection, sql)


def _only_reading(connection: duckdb.DuckDBPyConnection, sql: str) -> duckdb.Statement:
    """Read a statement. Raises: QueryError: if it does not only read."""
    try:
        statements = connection.extract_statements(sql)
    except duckdb.Error as error:
        raise QueryError(_reason(error)) from error
    if len(statements) != 1:
        raise QueryError(f"there are {len(statements)} statements; give one SELECT")
    kind = statements[0].type.name
    if kind != _READING:
        raise QueryError(f"{kind} is not allowed; give one SELECT")
    return statements[0]


class QueryResult:
    """The columns of a result, and its rows, which are read once. `count` is how many were read so far."""

    __slots__ = ("_connection", "columns", "count")

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection
        self.count = 0
        self.columns = [ResultColumn(str(about[0]), str(about[1])) for about in connection.description or ()]

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """Yield the rows. Raises: QueryError."""
        try:
            while rows := self._connection.fetchmany(_ROWS_AT_ONCE):
                self.count += len(rows)
                yield from rows
        except duckdb.Error as error:
            raise QueryError(_reason(error)) from error


def _reason(error: duckdb.Error) -> str:
    """Return the sentences of an error without the SQL below them; our own for a table that is none of ours, and for payloads."""
    text = " ".join(str(error).partition("\n\nLINE")[0].split())
    unknown = _UNKNOWN_TABLE.search(text)
    if unknown and not any(f'"{table}"' in text for table in TABLES):  # it may suggest one of ours
        return f"there is no table {unknown[1]}; the tables are {', '.join(TABLES)}"
    if missing := _NO_PAYLOAD.search(text):
        table = _WITH_PAYLOADS[missing[1]]
        return (
            f"{missing[1]} is only in {table} that mcpspy export parquet --payloads -o DIR writes; query it with --columns DIR"
        )
    return text


def _names(table: str) -> list[str]:
    return [column.name for column in TABLES[table].columns]


def _no_rows(table: str) -> str:
    """Return the SQL of a table without rows."""
    columns = [f"NULL::{_TYPES[column.type]} AS {column.name}" for _, column in TABLES[table].kept(payloads=False)]
    return f"SELECT {', '.join(columns)}, NULL::DATE AS date WHERE false"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
