"""`mcpspy query`: SQL over the captures of the store, or over a folder of columns, with DuckDB."""

from __future__ import annotations

import os
import sys
from datetime import date as calendar_date
from typing import TYPE_CHECKING

import click

from ...capture.store.catalog import capture_paths, elsewhere
from ...capture.store.columns import columns_folder, remove_unfinished
from ...errors import AddressError
from ...views.text.escape import safe_text
from ...views.text.units import counted
from ..screen import Screen, say
from ..since import Since, since_option
from .extras import require
from .known import KnownFiles, are_alike, written_by
from .results import replaced

if TYPE_CHECKING:
    from ...columns.database import QueryResult

WILDCARDS = "*?["
FORMATS = ("table", "csv", "json", "parquet")


@click.command("query")
@click.argument("sql", required=False)
@click.option("--columns", "folder", metavar="DIR", help="Query the tables that mcpspy export parquet wrote, not the store.")
@click.option("--recipes", "lists", is_flag=True, help="List the recipes: ready-made queries.")
@click.option("--recipe", metavar="NAME", help="Run a recipe.")
@click.option("--date", metavar="DATE", help="The date of the recipe before-after: 2026-11-20, in UTC.")
@click.option("--sql", "shows", is_flag=True, help="With --recipe: print its SQL, and do not run it.")
@click.option(
    "--format", type=click.Choice(FORMATS), default="table", show_default=True, help="The output's format; parquet needs -o."
)
@click.option("--json", "as_json", is_flag=True, help="The same as --format json (docs/json.md).")
@click.option("-o", "--output", metavar="FILE", type=click.Path(dir_okay=False), help="Write to FILE, not standard output.")
@since_option
def command(
    sql: str | None,
    folder: str | None,
    *,
    lists: bool,
    recipe: str | None,
    date: str | None,
    shows: bool,
    format: str,
    as_json: bool,
    output: str | None,
    since: Since | None,
) -> None:
    """Run SQL over all captures of the store. docs/columns.md has the tables and their columns.

    The tables of the store are brought up to date first: captures that are new or have changed are read, which takes somewhat
    longer than `mcpspy check`. DuckDB runs one SELECT, which can read only these tables, no other file. --since leaves out
    captures that ended before then, and rows from before then.

    \b
    It needs the extra `columns`; in a clone:
      pip install '.[columns]'

    \b
    Examples:
      mcpspy query 'SELECT server, count(*) AS n FROM captures GROUP BY server'
      mcpspy query "SELECT * FROM findings WHERE severity = 'error'" --since 1d
      mcpspy query --recipes
      mcpspy query --recipe slowest-tools --since 30d
    """
    if as_json and format not in ("table", "json"):
        raise click.UsageError(f"--json cannot be combined with --format {format}; leave one out.")
    format = "json" if as_json else format
    if lists:
        _list(format, output)
        return
    text = _sql(sql, recipe, date)
    if format == "parquet" and output is None:
        raise click.UsageError("Parquet is for a file; name one with -o.")
    if shows:
        click.echo(text)
        return
    require("mcpspy query", "pyarrow", "duckdb")
    with replaced(output) as path:
        _run(text, _columns(folder, text), None if since is None else since.wall_ns, format, path)


def _columns(folder: str | None, sql: str) -> str:
    """Return the folder of the columns to query: this one, or the store's. Raises: AddressError: if DuckDB cannot read it."""
    if folder is None:
        folder = _store_columns(sql)
    elif not os.path.isdir(os.path.join(folder, "captures")):
        raise AddressError(folder, "it has no tables; mcpspy export parquet WHAT -o DIR writes them")
    if any(letter in os.path.abspath(folder) for letter in WILDCARDS):
        raise AddressError(folder, "DuckDB takes *, ? and [ in its path for wildcards; give the folder another name")
    return folder


def _refuse_wrong(sql: str) -> None:
    """Refuse what DuckDB cannot parse, or what does not only read. Raises: SqlError."""
    from ...columns.database import QueryError, require_reading
    from ...errors import SqlError

    try:
        require_reading(sql)
    except QueryError as error:
        raise SqlError(str(error)) from error


def _run(sql: str, folder: str, since_ns: int | None, format: str, output: str | None) -> None:
    """Run a query and print the result, or write it to `output`. `since_ns` is Unix time. Raises: SqlError."""
    from ...columns.database import Database, QueryError
    from ...errors import SqlError

    try:
        database = Database(folder, since_ns, are_alike=are_alike(folder))
        if format == "parquet":
            database.write(sql, output or "")
        else:
            _print(database.query(sql), format, output)
    except QueryError as error:
        raise SqlError(str(error)) from error


def _sql(sql: str | None, recipe: str | None, date: str | None) -> str:
    """Return the SQL that was given, or that of a recipe. Raises: click.UsageError."""
    from ...columns.recipes import RECIPES

    if (sql is None) is (recipe is None):
        raise click.UsageError("Give one query: SQL, or --recipe NAME. mcpspy query --recipes lists the recipes.")
    if recipe is None:
        if date is not None:
            raise click.UsageError("--date is for --recipe before-after; write the date into the SQL.")
        return sql or ""
    known = RECIPES.get(recipe)
    if known is None:
        raise click.UsageError(f"there is no recipe {safe_text(recipe)}; the recipes are {', '.join(RECIPES)}.")
    if known.needs_date is (date is None):
        raise click.UsageError(
            f"{recipe} needs a date, as in --date 2026-11-20." if date is None else f"{recipe} takes no --date."
        )
    return _dedented(known.sql if date is None else known.sql.replace("{date}", _calendar_date(date)))


def _calendar_date(text: str) -> str:
    try:
        return calendar_date.fromisoformat(text).isoformat()
    except ValueError as error:
        raise click.UsageError(f"--date takes a date, as in --date 2026-11-20; not {safe_text(text)}.") from error


def _dedented(sql: str) -> str:
    from textwrap import dedent

    return dedent(sql).strip()


def _list(format: str, output: str | None) -> None:
    """List the recipes, as text or as JSON. Raises: click.UsageError."""
    from ...columns.recipes import RECIPES
    from ...views.text.json_text import SCHEMA, with_lines

    if format not in ("table", "json") or output is not None:
        raise click.UsageError("--recipes lists as text, or with --json; leave out -o and other formats.")
    if format == "json":
        recipes = ({"name": name, "about": recipe.about, "needs_date": recipe.needs_date} for name, recipe in RECIPES.items())
        sys.stdout.write(with_lines({"schema": SCHEMA}, "recipes", recipes))
        return
    width = max(map(len, RECIPES))
    Screen().texts(f"{name:{width}}  {recipe.about}" for name, recipe in RECIPES.items())


def _store_columns(sql: str) -> str:
    """Bring the columns of the store up to date, for this query. Return their folder. Raises: AddressError, SqlError."""
    folder, paths = columns_folder(), capture_paths()
    if not paths:
        advice = elsewhere() or "mcpspy wrap inserts mcpspy between clients and servers"
        raise AddressError("the store", f"nothing has been recorded yet; {advice}")
    os.makedirs(folder, 0o700, exist_ok=True)
    if KnownFiles(folder, written_by(payloads=False)).are(paths):
        return folder
    _refuse_wrong(sql)  # before it waits for captures to be read
    from .update import remove_gone, update  # which imports all that reads and checks captures

    remove_unfinished(folder)
    updated = update(paths, folder, forgets_others=True)
    remove_gone(folder, updated.keys)
    if updated.written:
        say(f"mcpspy: {counted(updated.written, 'new or changed capture')} read")
    return folder


def _print(result: QueryResult, format: str, output: str | None) -> None:
    from .results import csv_lines, json_pieces, table_texts

    screen = Screen()
    match format:
        case "csv":
            texts = csv_lines(result)
        case "json":
            texts = json_pieces(result)
        case _:
            texts = table_texts(result, screen if output is None else None)
    if output is None:
        sys.stdout.writelines(texts)
        if screen.terminal and format == "table" and not result.count:
            say("mcpspy: no rows")
        return
    with open(output, "w", encoding="utf-8", newline="") as file:
        file.writelines(texts)
