"""Carry a change out: look once more, keep a copy, replace the file and keep the places, in an order in which nothing can be lost."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from ..errors import SetupError
from .files import keep, replace, write_own
from .lock import turn
from .plan import Aim, Change, Found, Means, change, look
from .ports import FILE, Places, read_places

BACKUPS = "backups"


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """What was changed, and where a copy of the file as it was lies; None on a dry run."""

    change: Change
    kept: Path | None = None


def carry_out(planned: Change, means: Means, folder: Path) -> Done | None:
    """Do what was planned, to the file as it is now: clients write to theirs while somebody is being asked.

    `folder` is our own, for copies and places. None if there is nothing left to do. Raises: SetupError.
    """
    with turn(folder):
        places = read_places(folder)
        looked = look(planned.looked.config, places, folder / BACKUPS)
        if looked is None:
            raise SetupError(str(planned.looked.config.file), "was not changed: it is gone")
        now = change(looked, _same(planned, looked.servers), means)
        if now is None:
            return None
        kept = keep(looked.snapshot, folder / BACKUPS)
        # A place that nobody uses does no harm. A URL at a place that nobody knows would.
        if means.aim is Aim.WRAP:
            _keep_places(now.places, places, folder)
        replace(looked.snapshot, now.text)
        if means.aim is Aim.UNWRAP:
            _keep_places(now.places, places, folder)
        return Done(change=now, kept=kept)


def _same(planned: Change, servers: Iterable[Found]) -> list[Found]:
    """The servers that were planned for, as they are now. Raises: SetupError: if one is another now."""
    now = {(one.section, one.entry.path): one for one in servers}
    same: list[Found] = []
    for one in planned.servers:
        found = now.get((one.section, one.entry.path))
        if found is None or _what(found) != _what(one):
            reason = f"was not changed: somebody else changed its server {one.entry.name!r} meanwhile; try again"
            raise SetupError(str(planned.looked.config.file), reason)
        same.append(found)
    return same


def _what(found: Found) -> tuple[str, list[str]]:
    return found.entry.server_url, found.entry.server_argv


def _keep_places(now: Places, before: Places, folder: Path) -> None:
    if now != before:
        write_own(folder / FILE, now.text().encode())
