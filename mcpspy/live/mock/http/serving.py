"""Serves mocks over HTTP, one or several, until a signal ends them. Refuses to know what they play."""

from __future__ import annotations

import asyncio
import logging
import os
from typing import TYPE_CHECKING, Any, Final, Protocol

from ...http.recorder import fault_text
from ...stdio.signals import name

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Sequence

_log = logging.getLogger("mcpspy.live")

_ENDING: Final = {"SIGHUP", "SIGINT", "SIGQUIT", "SIGTERM"}


class Served(Protocol):
    """A mock that listens."""

    def open(self, listener: socket.socket) -> None:
        """Let clients in."""

    def noted(self, topic: str, text: str, *, by: str = "") -> None:
        """Write down what happened to the process."""

    def ended(self, why: str) -> None:
        """It is to end, and why: the name of a signal."""

    async def close(self) -> None:
        """Let nobody in any more, and leave who is there."""


async def serve(served: Sequence[tuple[Served, socket.socket]], signals_fd: int, ready: Callable[[], None]) -> None:
    """Serve each mock on its socket until a signal comes on `signals_fd`; `ready` is called once clients can connect."""
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    mocks = [mock for mock, _ in served]

    def signalled() -> None:
        for number in os.read(signals_fd, 512):
            told = name(number)
            for mock in mocks:
                mock.noted("signal", f"{told} received")
                if told in _ENDING:
                    mock.ended(told)
                    ended.set()

    def fault(_loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """A fault of our own, which has ended the connection that it happened on."""
        error = context.get("exception")
        text = fault_text(error) if isinstance(error, BaseException) else str(context.get("message"))
        _log.error("mcpspy: %s", text)
        for mock in mocks:
            mock.noted("fault", text, by="mcpspy")

    loop.set_exception_handler(fault)
    loop.add_reader(signals_fd, signalled)
    for mock, listener in served:
        mock.open(listener)
    try:
        ready()
        await ended.wait()
    finally:
        loop.remove_reader(signals_fd)
        for mock in mocks:
            await mock.close()
