"""`mcpspy prune`: old captures out of the store, when the user asks for it and never else."""

import os
import time
from typing import Any

import click

from ..capture.store.catalog import Sitting, entries, sittings
from ..capture.store.pruning import Bounds, beyond, empty_files, last_ns, prune, remove_empty_files, size_bytes
from ..capture.store.quota import cap_bytes, set_cap, taken
from ..views.store.usage import keeping_line
from ..views.text.clock import wall_time
from ..views.text.escape import safe_text
from ..views.text.json_text import SCHEMA, as_json
from ..views.text.units import counted, size
from .screen import say
from .units import AGE, CAP, SIZE

MAX_LISTED = 20


@click.command("prune")
@click.option(
    "--older-than", "age_ns", type=AGE, metavar="AGE", help="What was last heard of longer ago than this: 30d, 12h, 2w."
)
@click.option("--keep", metavar="N", type=click.IntRange(min=0), help="All but the newest N sittings.")
@click.option(
    "--max-size", "max_bytes", type=SIZE, metavar="SIZE", help="The oldest, until the store takes no more than this: 2gb."
)
@click.option(
    "--cap", metavar="SIZE|none", type=CAP, help="From now on: taps keep the store below this by themselves. None lifts that."
)
@click.option("--dry-run", is_flag=True, help="Say what would go; remove nothing.")
@click.option("-y", "--yes", is_flag=True, help="Ask nothing.")
@click.option("--json", "as_json_", is_flag=True, help="One JSON document (docs/json.md).")
def command(
    *,
    age_ns: int | None,
    keep: int | None,
    max_bytes: int | None,
    cap: int | None,
    dry_run: bool,
    yes: bool,
    as_json_: bool,
) -> int:
    """Remove old sittings from the store, the oldest first. A sitting that is being recorded always stays.

    Nothing is removed unless it is asked for: name at least one bound. Of several, each counts. On a terminal it shows what goes and
    asks. `mcpspy list` says what went. Empty files go as well: taps leave them that are killed before they wrote anything.

    There is no cap unless you set one. With `--cap` taps see to it themselves from now on: the oldest sittings go, then what has
    ended of those that are being recorded; where that is not enough, taps record length and SHA-256 of payloads until there is room.

    \b
    Examples:
      mcpspy prune --older-than 30d --dry-run
      mcpspy prune --keep 50 --max-size 2gb
      mcpspy prune --cap 2gb
    """
    if age_ns is None and keep is None and max_bytes is None and cap is None:
        raise click.UsageError("What may go? Name --older-than AGE, --keep N, --max-size SIZE or --cap SIZE.")
    now_ns = time.time_ns()
    limits = [one for one in (max_bytes, cap) if one]
    bounds = Bounds(
        before_ns=None if age_ns is None else now_ns - age_ns, sittings=keep, max_bytes=min(limits) if limits else None
    )
    found = sittings(entries(), shares_models=False)
    going = beyond(found, bounds)
    if as_json_:
        empty = len(empty_files(wall_ns=now_ns))
        if not dry_run:
            prune(going, wall_ns=now_ns)
            empty = remove_empty_files(wall_ns=now_ns)
            _set(cap)
        click.echo(_document(going, found, empty, dry_run=dry_run))
        return 0
    return _by_hand(going, found, now_ns, cap, dry_run=dry_run, asks=not yes)


def _set(cap: int | None) -> None:
    """Remember the cap that was asked for, if one was."""
    if cap is not None:
        set_cap(cap or None)


def _by_hand(going: list[Sitting], found: list[Sitting], now_ns: int, cap: int | None, *, dry_run: bool, asks: bool) -> int:
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
    left = counted(len(found) - made.sittings, "sitting")
    if going:
        say(f"mcpspy: {counted(made.sittings, 'sitting')}, {size(made.bytes)}, removed; {left} left")
    else:
        say(f"mcpspy: nothing to remove; {_told(found)} in the store")
    _set(cap)  # last: on a disk that is full it takes what went
    if cap is not None:
        say(f"mcpspy: {keeping_line(*taken(), cap_bytes())}")
    return 0


def _show(going: list[Sitting]) -> None:
    for one in going[:MAX_LISTED]:
        when = wall_time(last_ns(one)).strftime("%Y-%m-%d %H:%M")
        labels = ", ".join(safe_text(entry.label) for entry in one.entries)
        click.echo(f"{when}  {size(size_bytes(one)):>8}  {safe_text(one.client)}: {labels}")
    if len(going) > MAX_LISTED:
        click.echo(f"… {counted(len(going) - MAX_LISTED, 'more sitting')}")


def _told(some: list[Sitting]) -> str:
    return f"{counted(len(some), 'sitting')} ({size(sum(map(size_bytes, some)))})"


def _document(going: list[Sitting], found: list[Sitting], empty: int, *, dry_run: bool) -> str:
    total = sum(map(size_bytes, found))
    made = {
        "schema": SCHEMA,
        "dry_run": dry_run,
        "sittings": len(found),
        "bytes": total,
        "max_bytes": cap_bytes(),
        "empty_files": empty,
        "removed": [_object(one) for one in going],
    }
    return as_json(made)


def _object(one: Sitting) -> dict[str, Any]:
    paths = [entry.path for entry in one.entries]
    return {"client": one.client, "last_wall_ns": last_ns(one), "bytes": size_bytes(one), "paths": paths}
