"""What verbs that listen have in common: where they may, how many may connect, and when what they record reaches the disk."""

from __future__ import annotations

import resource
from _thread import start_new_thread
from time import sleep
from typing import TYPE_CHECKING

from ...live.http.listener import authority
from ..options import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

DEFAULT_LISTEN = "127.0.0.1:8765"

SYNC_S = 1.0
"""From the first byte that is not on disk to asking for it, as for stdio."""


def address(text: str, *, remote: bool, behind: str) -> tuple[str, int]:
    """Host and port to listen at; an address that other machines reach, as they then do `behind`, has to be meant.

    Raises: UsageError.
    """
    found = authority(text)
    if found is None or ":" not in text.rpartition("]")[2]:
        raise UsageError(f"--listen takes HOST:PORT, like {DEFAULT_LISTEN}; not {text}.")
    if not found.is_loopback and not remote:
        raise UsageError(
            f"{text} can be reached from other machines, and so could {behind}. If that is meant, add --allow-remote,"
            " and --allowed-host with the name that clients use."
        )
    return found.host, found.port


def allow_many_connections() -> None:
    """Every stream takes two descriptors, and 1,024 is what a process may have unless it asks."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def sync_later(sync: Callable[[], None]) -> None:
    """Call `sync` in a while, in a thread of its own: the disk may take its time over it."""

    def wait_and_sync() -> None:
        sleep(SYNC_S)
        sync()

    start_new_thread(wait_and_sync, ())
