"""`mcpspy prune`: old captures out of the store, when the user asks for it and never else."""

import os
import time
from datetime import UTC, datetime
from typing import Any

import click

from ..capture.catalog import Sitting, entries, sittings
from ..capture.pruning import Bounds, beyond, last_ns, prune, size_bytes
from ..views.escape import safe_text
from ..views.json_text import SCHEMA, as_json
from ..views.units import counted, size
from .amounts import AGE, SIZE
from .screen import say

MAX_LISTED = 20


@click.command("prune")
@click.option(
    "--older-than", "age_ns", type=AGE, metavar="AGE", help="What was last heard of longer ago than this: 30d, 12h, 2w."
)
@click.option("--keep", metavar="N", type=click.IntRange(min=0), help="All but the newest N sittings.")
@click.option(
    "--max-size", "max_bytes", type=SIZE, metavar="SIZE", help="The oldest, until the store takes no more than this: 2gb."
)
@click.option("--dry-run", is_flag=True, help="Say what would go; remove nothing.")
@click.option("-y", "--yes", is_flag=True, help="Ask nothing.")
@click.option("--json", "as_json_", is_flag=True, help="One JSON document (docs/json.md).")
def command(*, age_ns: int | None, keep: int | None, max_bytes: int | None, dry_run: bool, yes: bool, as_json_: bool) -> int:
    """Remove old sittings from the store, the oldest first. A sitting that is being recorded always stays.

    Nothing is removed unless it is asked for: name at least one bound. Of several, each counts. On a terminal it shows what goes and
    asks. `mcpspy list` says what went.

    \b
    Examples:
      mcpspy prune --older-than 30d --dry-run
      mcpspy prune --keep 50 --max-size 2gb
    """
    if age_ns is None and keep is None and max_bytes is None:
        raise click.UsageError("What may go? Name --older-than AGE, --keep N or --max-size SIZE.")
    now_ns = time.time_ns()
    bounds = Bounds(before_ns=None if age_ns is None else now_ns - age_ns, sittings=keep, max_bytes=max_bytes)
    found = sittings(entries())
    going = beyond(found, bounds)
    if as_json_:
        if not dry_run:
            prune(going, wall_ns=now_ns)
        click.echo(_document(going, found, dry_run=dry_run))
        return 0
    return _by_hand(going, found, now_ns, dry_run=dry_run, asks=not yes)


def _by_hand(going: list[Sitting], found: list[Sitting], now_ns: int, *, dry_run: bool, asks: bool) -> int:
    if not going:
        say(f"mcpspy: nothing to remove; {_told(found)} in the store")
        return 0
    for one in going[:MAX_LISTED]:
        when = datetime.fromtimestamp(last_ns(one) / 1_000_000_000, UTC).astimezone().strftime("%Y-%m-%d %H:%M")
        labels = ", ".join(safe_text(entry.label) for entry in one.entries)
        click.echo(f"{when}  {size(size_bytes(one)):>8}  {safe_text(one.client)}: {labels}")
    if len(going) > MAX_LISTED:
        click.echo(f"… {counted(len(going) - MAX_LISTED, 'more sitting')}")
    if dry_run:
        say(f"mcpspy: {_told(going)} of {_told(found)} would go; nothing was removed")
        return 0
    if asks and os.isatty(0) and os.isatty(2) and not click.confirm(f"Remove {_told(going)}?", err=True):
        say("mcpspy: nothing was removed")
        return 0
    made = prune(going, wall_ns=now_ns)
    left = counted(len(found) - made.sittings, "sitting")
    say(f"mcpspy: {counted(made.sittings, 'sitting')}, {size(made.bytes)}, removed; {left} left")
    return 0


def _told(some: list[Sitting]) -> str:
    return f"{counted(len(some), 'sitting')} ({size(sum(map(size_bytes, some)))})"


def _document(going: list[Sitting], found: list[Sitting], *, dry_run: bool) -> str:
    total = sum(map(size_bytes, found))
    made = {
        "schema": SCHEMA,
        "dry_run": dry_run,
        "sittings": len(found),
        "bytes": total,
        "removed": [_object(one) for one in going],
    }
    return as_json(made)


def _object(one: Sitting) -> dict[str, Any]:
    paths = [entry.path for entry in one.entries]
    return {"client": one.client, "last_wall_ns": last_ns(one), "bytes": size_bytes(one), "paths": paths}
