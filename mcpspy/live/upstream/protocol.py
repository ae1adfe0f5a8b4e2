"""A live server, to the client that mcpspy plays for it: in a replay, and for a mock that passes on what it cannot answer.

An upstream client sends each message once and reports what the server sends. It keeps the session, and closes it as the specification
says. Everything is recorded as by a tap; what we send is injected. It reads only the ids in the bytes, to know which stream answers
which request, and never sends anything twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

MAX_MESSAGE_BYTES = 1 << 26
"""A longer message (64 MiB) is recorded and not reported: a server that never ends its line must not take all memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A message that will get no answer, while the server is still there.

    `id` is the request's id key, None for a notification or a response; `status` is the HTTP status, 0 if there was none.
    """

    id: str | None
    method: str
    status: int = 0
    why: str


def cancellation(id: str) -> bytes:
    """Write the notification that cancels the request with this id key."""
    return b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%b}}' % id.encode()


class ServerListener(Protocol):
    """A receiver of what an upstream client reports.

    It is called in the thread of the event loop, one call at a time, and must not block.
    """

    def on_message(self, data: bytes, about: str | None) -> None:
        """Take one JSON-RPC message of the server, without its line end; the messages of a batch come one by one.

        `about` is the id key of the request on whose own stream it came (HTTP), or None.
        """

    def on_failed(self, failure: Failure) -> None:
        """Note that a message will get no answer."""

    def on_lost(self, why: str) -> None:
        """Note that the server is gone. Called once, after the last message; not called after our own `close`."""

    def on_stderr(self, data: bytes) -> None:
        """Take what a process wrote to its stderr, which is recorded already."""


class UpstreamClient(Protocol):
    """A client of one live server, which reports to a `ServerListener`."""

    async def start(self) -> None:
        """Start the server, or connect to it. Raises: UpstreamError: if it cannot be."""

    async def send(self, data: bytes) -> None:
        """Send one JSON-RPC message, with or without a line end. It is written once, whatever becomes of it.

        Returns when it is written. Over HTTP, for all but requests, returns when the server has accepted it, so that the next message
        comes after it. A server that is gone raises nothing: the listener's `on_lost` or `on_failed` is called.
        """

    async def cancel(self, id: str) -> None:
        """Cancel the request with this id key, in the way of its transport and era."""

    def hold(self, *, holds: bool) -> None:
        """Stop reading from the server, or go on: for a caller that cannot pass messages on as fast."""

    async def close(self) -> None:
        """Leave the server; a process is ended. Afterwards everything is recorded. May be called again."""
