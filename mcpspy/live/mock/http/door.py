"""Where a mock over HTTP lets its clients in.

asyncio's own way tries 1,024 times at once when no descriptor is left, and says each time that it did (CPython 3.11); this one rests.
Refuses to know what a connection is.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ...http.listener import BACKLOG, EXHAUSTED, REST_S

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable


class Door:
    """Lets in whoever comes to `listener`, from the event loop that runs, and makes a `protocol` for each."""

    def __init__(self, listener: socket.socket, protocol: Callable[[], asyncio.Protocol]) -> None:
        self._loop = asyncio.get_running_loop()
        self._listener = listener
        self._protocol = protocol
        self._entering: set[asyncio.Task[object]] = set()
        self._rest: asyncio.TimerHandle | None = None
        listener.listen(BACKLOG)
        listener.setblocking(False)
        self._open()

    def close(self) -> None:
        """Let nobody in any more."""
        self._loop.remove_reader(self._listener)
        self._listener.close()
        if self._rest is not None:
            self._rest.cancel()
        for one in self._entering:
            one.cancel()

    def _open(self) -> None:
        self._loop.add_reader(self._listener, self._enter)

    def _enter(self) -> None:
        """Let in whoever waits."""
        while True:
            try:
                client = self._listener.accept()[0]
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno in EXHAUSTED:
                    self._loop.remove_reader(self._listener)
                    self._rest = self._loop.call_later(REST_S, self._open)
                    return
                continue  # it has left already
            client.setblocking(False)
            entering: asyncio.Task[object] = self._loop.create_task(self._loop.connect_accepted_socket(self._protocol, client))
            self._entering.add(entering)
            entering.add_done_callback(self._entering.discard)
