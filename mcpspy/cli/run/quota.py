"""How a tap's thread that waits for the disk also looks after the store: a quota, if one is set, holds while taps record.

`run` comes through here on its way to a server that somebody waits for: nothing is imported before the first look, a second later.
"""

from __future__ import annotations

import os

from ...capture.store.folder import captures_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from ...capture.file.writer import Writer


def guarded(writer: Writer, path: str, later: Callable[[Callable[[], None]], None]) -> Callable[[Callable[[], None]], None]:
    """What calls for the disk as `later` does, and then looks after the store, if the capture at `path` lies there."""
    if os.path.dirname(path) != captures_folder():
        return later
    look: Callable[[], None] | None = None

    def sync_and_look(sync: Callable[[], None]) -> None:
        nonlocal look
        sync()
        if look is None:
            from ...capture.store.quota_guard import Guard

            look = Guard(writer).look
        look()

    return lambda sync: later(lambda: sync_and_look(sync))
