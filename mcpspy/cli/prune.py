"""`mcpspy prune`: delete old captures from the store, once or from now on by a quota."""

import os
import time
from typing import Any

import click

from ..capture.store.catalog import Recording, entries, recordings
from ..capture.store.pruning import (
    Bounds,
    empty_files,
    last_ns,
    prune,
    recordings_beyond,
    remove_empty_files,
    remove_indexes,
    size_bytes,
)
from ..capture.store.quota import quota_bytes, set_quota, store_size
from ..views.listing import keeping_line
from ..views.text.escape import safe_text
from ..views.text.json_text import SCHEMA, as_json
from ..views.text.units import counted, size, wall_time
from .click_types import AGE, QUOTA, SIZE
from .screen import say

MAX_LISTED = 20


@click.command("prune")
@click.option(
    "--older-than", "age_ns", type=AGE, metavar="AGE", help="Delete recordings that ended longer ago than this: 30d, 12h, 2w."
)
@click.option("--keep", metavar="N", type=click.IntRange(min=0), help="Delete all but the newest N recordings.")
@click.option(
    "--max-size",
    "max_bytes",
    type=SIZE,
    metavar="SIZE",
    help="Delete the oldest recordings, until the store has at most this size: 2gb.",
)
@click.option(
    "--quota",
    metavar="SIZE|none",
    type=QUOTA,
    help="From now on, keep the store below this size: 2gb. `none` removes the quota.",
)
@click.option("--dry-run", is_flag=True, help="List what would be deleted, and delete nothing.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@click.option("--json", "as_json_", is_flag=True, help="Print JSON for programs (docs/json.md).")
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
    """Delete old recordings from the store, the oldest first. A recording in progress always stays.

    Give at least one limit; if you give several, all apply. On a terminal it lists the recordings and asks. `mcpspy list` says
    how much was deleted. Empty files are deleted too.

    Without --quota, this deletes once. A quota applies from now on: whenever the store is full, the oldest recordings are deleted,
    then finished captures of recordings in progress. If that is not enough, only the length and SHA-256 of
    payloads are recorded until there is room.

    \b
    Examples:
      mcpspy prune --older-than 30d --dry-run
      mcpspy prune --keep 50 --max-size 2gb
      mcpspy prune --quota 2gb
    """
    if age_ns is None and keep is None and max_bytes is None and quota is None:
        raise click.UsageError("What to delete? Give --older-than AGE, --keep N, --max-size SIZE or --quota SIZE.")
    now_ns = time.time_ns()
    limits = [limit for limit in (max_bytes, quota) if limit]
    bounds = Bounds(
        before_ns=None if age_ns is None else now_ns - age_ns, recordings=keep, max_bytes=min(limits) if limits else None
    )
    stored = recordings(entries(), each_once=True)
    old = recordings_beyond(stored, bounds)
    if as_json_:
        empty = len(empty_files(wall_ns=now_ns))
        if not dry_run:
            prune(old, wall_ns=now_ns)
            empty = remove_empty_files(wall_ns=now_ns)
            remove_indexes()
            _set_quota(quota)
        click.echo(_document(old, stored, empty, dry_run=dry_run))
        return 0
    return _prune(old, stored, now_ns, quota, dry_run=dry_run, asks=not yes)


def _set_quota(quota: int | None) -> None:
    """Set or remove the quota, if one was given."""
    if quota is not None:
        set_quota(quota or None)


def _prune(old: list[Recording], stored: list[Recording], now_ns: int, quota: int | None, *, dry_run: bool, asks: bool) -> int:
    _list(old)
    if dry_run:
        say(f"mcpspy: {_total(old)} of {_total(stored)} would be deleted; nothing was deleted")
        return 0
    if old and asks and os.isatty(0) and os.isatty(2) and not click.confirm(f"Delete {_total(old)}?", err=True):
        say("mcpspy: nothing was deleted")
        return 0
    deleted = prune(old, wall_ns=now_ns)
    empty = remove_empty_files(wall_ns=now_ns)
    remove_indexes()
    if empty:
        say(f"mcpspy: {counted(empty, 'empty file')} deleted, left by mcpspy processes that were killed at once")
    left = counted(len(stored) - deleted.recordings, "recording")
    if old:
        say(f"mcpspy: {counted(deleted.recordings, 'recording')}, {size(deleted.bytes)}, deleted; {left} left")
    else:
        say(f"mcpspy: nothing to delete; the store has {_total(stored)}")
    _set_quota(quota)  # last: on a full disk it needs the space that was just freed
    if quota is not None:
        say(f"mcpspy: {keeping_line(*store_size(), quota_bytes())}")
    return 0


def _list(old: list[Recording]) -> None:
    for recording in old[:MAX_LISTED]:
        when = wall_time(last_ns(recording)).strftime("%Y-%m-%d %H:%M")
        labels = ", ".join(safe_text(capture.label) for capture in recording.entries)
        client = f"{safe_text(recording.client)}: " if recording.client else ""
        click.echo(f"{when}  {size(size_bytes(recording)):>8}  {client}{labels}")
    if len(old) > MAX_LISTED:
        click.echo(f"… {counted(len(old) - MAX_LISTED, 'more recording')}")


def _total(some: list[Recording]) -> str:
    return f"{counted(len(some), 'recording')} ({size(sum(map(size_bytes, some)))})"


def _document(old: list[Recording], stored: list[Recording], empty: int, *, dry_run: bool) -> str:
    document = {
        "schema": SCHEMA,
        "dry_run": dry_run,
        "recordings": len(stored),
        "bytes": sum(map(size_bytes, stored)),
        "max_bytes": quota_bytes(),
        "empty_files": empty,
        "removed": [_object(recording) for recording in old],
    }
    return as_json(document)


def _object(recording: Recording) -> dict[str, Any]:
    paths = [capture.path for capture in recording.entries]
    return {
        "client": recording.client,
        "last_wall_ns": last_ns(recording),
        "bytes": size_bytes(recording),
        "paths": paths,
    }
