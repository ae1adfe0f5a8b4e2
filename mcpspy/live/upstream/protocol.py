"""What a live server is to whoever plays its client: the driver, and a mock that forwards.

A peer sends what it is given, once, and tells what it hears; it keeps the session, and closes it as the specification has it. All
of it is recorded as a tap would have recorded it, what we send being injected. Refuses to understand: ids are taken from the bytes
to know which stream answers which request, and nothing is ever sent again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeAlias

MAX_MESSAGE_BYTES = 1 << 26
"""A longer message is recorded, and not heard: a server that never ends its line must not take all memory. 64 MiB."""

Heard: TypeAlias = Callable[[bytes, str | None], None]
"""Takes one JSON-RPC message of the server, without its line end; of a batch, one after the other. The second argument is the token
of the id of the request on whose own stream it came (HTTP), None where no stream says so."""

Lost: TypeAlias = Callable[[str], None]
"""Takes why the server is gone. It is called once, and nothing is heard after it; not for a server that we left by `close`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A message that will get no answer, while the server is still there.

    `id` is the token of the request's id, None for a notification or an answer; `status` is the HTTP status, 0 where there was none.
    """

    id: str | None
    method: str
    status: int = 0
    why: str


Failed: TypeAlias = Callable[[Failure], None]


class UpstreamClient(Protocol):
    """A live server. Its callbacks are called one at a time, in the thread of the event loop, and must not block."""

    async def start(self) -> None:
        """Start the server, or connect to it. Raises: UpstreamError: if it cannot be."""

    async def send(self, data: bytes) -> None:
        """Send one JSON-RPC message, with or without a line end. It is written once, whatever becomes of it.

        Returns when it is written; over HTTP, for all but requests, when the server has taken it, so that what is sent next comes
        behind it. A server that is gone raises nothing: that is told to `lost` or `failed`.
        """

    async def cancel(self, id: str) -> None:
        """Give up the request with this id, a token: in the way of its transport and era."""

    def hold(self, *, holds: bool) -> None:
        """Read nothing more of what the server says, or read on: for whoever cannot pass it on as fast."""

    async def close(self) -> None:
        """Leave the server, and see to it that a process ends. Afterwards everything is recorded. May be called again."""


def ignored(_: object) -> None:
    """What a callback is that nobody wants."""
