"""The write of a planned change: read the file again, keep a copy, replace the file and keep the reserved ports.

The order is such that nothing is lost if mcpspy is killed at any instant.
"""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ..errors import SetupError
from ..platform.files import lock
from .files import keep, replace, write_own
from .plan import Aim, ConfigChange, ConfiguredServer, WrapSettings, plan_change, read_state
from .ports import FILE, OLD_FILE, ReservedPorts, read_reserved_ports

BACKUPS = "backups"
LOCK_FILE = "setup.lock"


@dataclass(frozen=True, slots=True, kw_only=True)
class AppliedChange:
    """A change that was made, and the path of a copy of the file before it; None on a dry run."""

    change: ConfigChange
    kept: Path | None = None


def apply_change(planned: ConfigChange, settings: WrapSettings, folder: Path) -> AppliedChange | None:
    """Make a planned change to the file as it is now: clients write to their files while the user is being asked.

    `folder` is mcpspy's own, for copies and reserved ports. None if nothing is left to do. Raises: SetupError.
    """
    with setup_lock(folder):
        ports = read_reserved_ports(folder)
        state = read_state(planned.state.file, ports, folder / BACKUPS)
        if state is None:
            raise SetupError(str(planned.state.file.path), "was not changed: it is gone; try again, to see what there is now")
        now = plan_change(state, _same_servers(planned, state.servers), settings)
        if now is None:
            return None
        kept = keep(state.snapshot, folder / BACKUPS)
        # A reserved port that no URL uses does no harm. A URL at a port that is not reserved would.
        if settings.aim is Aim.WRAP:
            _write_ports(now.ports, ports, folder)
        replace(state.snapshot, now.text)
        if settings.aim is Aim.UNWRAP:
            _write_ports(now.ports, ports, folder)
        return AppliedChange(change=now, kept=kept)


@contextmanager
def setup_lock(folder: Path) -> Iterator[None]:
    """Wait until no other mcpspy with this folder changes files: two at once must not undo each other's changes.

    Raises: SetupError: if nothing can be written to the folder.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        fd = os.open(folder / LOCK_FILE, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise SetupError(
            str(folder), f"nothing was changed: no backup can be kept there ({error.strerror}); make it writable"
        ) from error
    try:
        _lock(fd)
        yield
    finally:
        os.close(fd)


def _lock(fd: int) -> None:
    try:
        lock(fd)
    except OSError:  # a file system without locks
        pass


def _same_servers(planned: ConfigChange, servers: Iterable[ConfiguredServer]) -> list[ConfiguredServer]:
    """Find the planned servers in the file as it is now. Raises: SetupError: if one was changed."""
    now = {(server.section, server.entry.path): server for server in servers}
    same: list[ConfiguredServer] = []
    for server in planned.servers:
        current = now.get((server.section, server.entry.path), server if server.entry.is_absent else None)
        if current is None or _identity(current) != _identity(server):
            reason = f"was not changed: another program changed its server {server.entry.name!r} meanwhile; try again"
            raise SetupError(str(planned.state.file.path), reason)
        same.append(current)
    return same


def _identity(server: ConfiguredServer) -> tuple[str, list[str]]:
    return server.entry.server_url, server.entry.server_argv


def _write_ports(now: ReservedPorts, before: ReservedPorts, folder: Path) -> None:
    if now != before:
        write_own(folder / FILE, now.text().encode())
        try:
            os.unlink(folder / OLD_FILE)
        except OSError:  # there is none, or it stays and is not read any more
            pass
