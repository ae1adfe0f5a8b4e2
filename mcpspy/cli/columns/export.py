"""`mcpspy export parquet`: captures as columns, for DuckDB, Spark and whatever reads Parquet."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from ...capture.store.address import STDIN
from ...capture.store.columns import remove_unfinished
from ...capture.store.folder import EXTENSION
from ...errors import AddressError
from ...views.text.escape import safe_text
from ...views.text.units import counted
from ..click_types import WhatCommand
from ..fifo import named_file
from ..screen import say
from ..since import Since, captures_since, select_captures_since, since_option
from ..transcripts import CaptureSelection, select_captures
from .extras import require

if TYPE_CHECKING:
    from .update import Updated

MAX_NAMED = 5
"""So many files that cannot be read are named, and so many that are left out."""


@click.command("parquet", cls=WhatCommand)
@click.argument("what", nargs=-1)
@click.option("-o", "--output", metavar="DIR", required=True, help="The folder to write to, or to bring up to date.")
@click.option("--payloads", is_flag=True, help="Write payloads too, without the secrets that `export share` replaces.")
@since_option
def command(what: tuple[str, ...], output: str, *, payloads: bool, since: Since | None) -> None:
    """Write captures as columns: Parquet files that DuckDB, Spark and others read (docs/columns.md).

    There are seven tables: captures, messages, calls, transactions, findings, definitions, model_calls. Each capture has its own
    file in each table, and is written again only if it has changed. Damaged and incomplete captures are written as far as they can
    be read.

    WHAT is as in `mcpspy show`, or a folder of captures. --since leaves out captures into which nothing was recorded since then, and
    writes the others whole.

    \b
    It needs the extra `columns`; in a clone:
      pip install '.[columns]'

    \b
    Examples:
      mcpspy export parquet @ -o columns
      mcpspy export parquet --since 30d -o columns
      mcpspy export parquet ~/.mcpspy/captures -o columns
    """
    require("mcpspy export parquet", "pyarrow")
    from .update import update

    if not output:
        raise click.UsageError("-o needs the name of a folder, as in -o columns.")
    if os.path.exists(output) and not os.path.isdir(output):
        raise click.UsageError(f"{safe_text(output)} is a file; name a folder with -o.")
    folders = [word for word in what if os.path.isdir(word)]
    others = tuple(word for word in what if not os.path.isdir(word))
    paths = [path for folder in folders for path in _captures_in(folder)]
    if others or not folders:
        paths += _selected(others, since).paths
    if what and since is not None:
        paths = captures_since(paths, since)
    remove_unfinished(output)
    _report(update(sorted(set(paths), key=_longest_first), output, payloads=payloads), output)


def _selected(what: tuple[str, ...], since: Since | None) -> CaptureSelection:
    """Select whole captures. Raises: AddressError, click.UsageError."""
    selection = select_captures(what) if since is None else select_captures_since(what, since)[0]
    if selection.rows is not None:
        raise AddressError(selection.what, "columns are of whole captures; leave out the rows")
    if STDIN in selection.paths:
        raise AddressError(STDIN, "standard input has no name in columns; write it to a file first")
    return selection


def _longest_first(path: str) -> tuple[int, str]:
    """Return the sort key of a file: the longest of several with the same capture comes first, as in a Spark job."""
    return -os.path.getsize(path) if os.path.isfile(path) else 0, path


def _captures_in(folder: str) -> Iterator[str]:
    """Yield the captures in a folder and below it, except FIFOs, which are read only if they are named.

    Raises: AddressError: if there is none.
    """
    found = False
    for parent, _, names in os.walk(folder):
        for path in (os.path.join(parent, name) for name in names if name.endswith(EXTENSION)):
            if os.path.isfile(path) or not os.path.exists(path):
                found = True
                yield path
    if not found:
        raise AddressError(folder, f"there is no capture in this folder; their names end with {EXTENSION}")


def _report(updated: Updated, output: str) -> None:
    """Say on stderr what was done, and what could not be read."""
    for path, problem in updated.unreadable[:MAX_NAMED]:
        say(f"mcpspy: {safe_text(named_file(path))}: {safe_text(problem)}")
    if len(updated.unreadable) > MAX_NAMED:
        say(
            f"mcpspy: {counted(len(updated.unreadable) - MAX_NAMED, 'more file')} could not be read; the table captures has them"
        )
    for path, other in updated.repeated[:MAX_NAMED]:
        say(f"mcpspy: {safe_text(path)} is left out: it is the same capture as {safe_text(other)}")
    if len(updated.repeated) > MAX_NAMED:
        say(
            f"mcpspy: {counted(len(updated.repeated) - MAX_NAMED, 'more file')} left out: their captures are in other files too"
        )
    unchanged = f", {updated.unchanged:,} unchanged" if updated.unchanged else ""
    unread = (
        f"; {len(updated.unreadable):,} of them could not be read (column problem of captures)" if updated.unreadable else ""
    )
    say(f"mcpspy: {safe_text(output)}: {counted(updated.written, 'capture')} written{unchanged}{unread}")
