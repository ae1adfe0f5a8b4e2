"""`mcpspy prune`: old captures out of the store, when the user asks for it and never else."""

import os
import time
from typing import Any

import click

from ..capture.store.catalog import Recording, entries, recordings
from ..capture.store.pruning import Bounds, beyond, empty_files, last_ns, prune, remove_empty_files, size_bytes
from ..capture.store.quota import quota_bytes, set_quota, taken
from ..views.store.usage import keeping_line
from ..views.text.escape import safe_text
from ..views.text.json_text import SCHEMA, as_json
from ..views.text.units import counted, size, wall_time
from .screen import say
from .units import AGE, QUOTA, SIZE

MAX_LISTED = 20


@click.command("prune")
@click.option(
    "--older-than", "age_ns", type=AGE, metavar="AGE", help="What was last heard of longer ago than this: 30d, 12h, 2w."
)
@click.option("--keep", metavar="N", type=click.IntRange(min=0), help="All but the newest N recordings.")
@click.option(
    "--max-size", "max_bytes", type=SIZE, metavar="SIZE", help="The oldest, until the store takes no more than this: 2gb."
)
@click.option(
    "--quota",
    metavar="SIZE|none",
    type=QUOTA,
    help="From now on: taps keep the store below this by themselves. None lifts that.",
)
@click.option("--dry-run", is_flag=True, help="Say what would go; remove nothing.")
@click.option("-y", "--yes", is_flag=True, help="Ask nothing.")
@click.option("--json", "as_json_", is_flag=True, help="One JSON document (docs/json.md).")
def command(
    *,
    age_ns: int | None,
    keep: int | None,
    max_bytes: int | None,
    quota: int | None,
    dry_run: bool,
    yes: bool,
    as_json_: bool,
) -> int:
    """Remove old recordings from the store, the oldest first. A recording that is being recorded always stays.

    Nothing is removed unless it is asked for: name at least one bound. Of several, each counts. On a terminal it shows what goes and
    asks. `mcpspy list` says what went. Empty files go as well: taps leave them that are killed before they wrote anything.

    There is no quota unless you set one. With `--quota` taps keep it from now on: the oldest recordings go, then what has ended of
    those that are being recorded; where that is not enough, taps record length and SHA-256 of payloads until there is room.

    \b
    Examples:
      mcpspy prune --older-than 30d --dry-run
      mcpspy prune --keep 50 --max-size 2gb
      mcpspy prune --quota 2gb
    """
    if age_ns is None and keep is None and max_bytes is None and quota is None:
        raise click.UsageError("What may go? Name --older-than AGE, --keep N, --max-size SIZE or --quota SIZE.")
    now_ns = time.time_ns()
    limits = [one for one in (max_bytes, quota) if one]
    bounds = Bounds(
        before_ns=None if age_ns is None else now_ns - age_ns, recordings=keep, max_bytes=min(limits) if limits else None
    )
    found = recordings(entries(), shares_models=False)
    going = beyond(found, bounds)
    if as_json_:
        empty = len(empty_files(wall_ns=now_ns))
        if not dry_run:
            prune(going, wall_ns=now_ns)
            empty = remove_empty_files(wall_ns=now_ns)
            _set(quota)
        click.echo(_document(going, found, empty, dry_run=dry_run))
        return 0
    return _by_hand(going, found, now_ns, quota, dry_run=dry_run, asks=not yes)


def _set(quota: int | None) -> None:
    """Remember the quota that was asked for, if one was."""
    if quota is not None:
        set_quota(quota or None)


def _by_hand(
    going: list[Recording], found: list[Recording], now_ns: int, quota: int | None, *, dry_run: bool, asks: bool
) -> int:
    _show(going)
    if dry_run:
        say(f"mcpspy: {_told(going)} of {_told(found)} would go; nothing was removed")
        return 0
    if going and asks and os.isatty(0) and os.isatty(2) and not click.confirm(f"Remove {_told(going)}?", err=True):
        say("mcpspy: nothing was removed")
        return 0
    made = prune(going, wall_ns=now_ns)
    empty = remove_empty_files(wall_ns=now_ns)
    if empty:
        say(f"mcpspy: {counted(empty, 'empty file')} removed: their taps were killed before they wrote anything")
    left = counted(len(found) - made.recordings, "recording")
    if going:
        say(f"mcpspy: {counted(made.recordings, 'recording')}, {size(made.bytes)}, removed; {left} left")
    else:
        say(f"mcpspy: nothing to remove; {_told(found)} in the store")
    _set(quota)  # last: on a disk that is full it takes what went
    if quota is not None:
        say(f"mcpspy: {keeping_line(*taken(), quota_bytes())}")
    return 0


def _show(going: list[Recording]) -> None:
    for one in going[:MAX_LISTED]:
        when = wall_time(last_ns(one)).strftime("%Y-%m-%d %H:%M")
        labels = ", ".join(safe_text(entry.label) for entry in one.entries)
        click.echo(f"{when}  {size(size_bytes(one)):>8}  {safe_text(one.client)}: {labels}")
    if len(going) > MAX_LISTED:
        click.echo(f"… {counted(len(going) - MAX_LISTED, 'more recording')}")


def _told(some: list[Recording]) -> str:
    return f"{counted(len(some), 'recording')} ({size(sum(map(size_bytes, some)))})"


def _document(going: list[Recording], found: list[Recording], empty: int, *, dry_run: bool) -> str:
    total = sum(map(size_bytes, found))
    made = {
        "schema": SCHEMA,
        "dry_run": dry_run,
        "recordings": len(found),
        "bytes": total,
        "max_bytes": quota_bytes(),
        "empty_files": empty,
        "removed": [_object(one) for one in going],
    }
    return as_json(made)


def _object(one: Recording) -> dict[str, Any]:
    paths = [entry.path for entry in one.entries]
    return {"client": one.client, "last_wall_ns": last_ns(one), "bytes": size_bytes(one), "paths": paths}
