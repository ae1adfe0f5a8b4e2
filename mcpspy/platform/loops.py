"""Event loops of asyncio that can wait for sockets, and signals in them: the usual loop of Windows can do neither."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from _thread import start_new_thread
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, Self


def run_with_sockets(main: Coroutine[Any, Any, None]) -> None:
    """Run it in a loop that has `add_reader` for sockets."""
    with asyncio.Runner(loop_factory=asyncio.SelectorEventLoop if sys.platform == "win32" else None) as runner:
        runner.run(main)


def read_signals(loop: asyncio.AbstractEventLoop, fd: int, call: Callable[[bytes], None]) -> Callable[[], object]:
    """Call `call` with the signals that are read from a descriptor. Return what ends that."""
    if sys.platform == "win32":
        return _read_in_a_thread(loop, fd, call)
    loop.add_reader(fd, lambda: call(os.read(fd, 512)))
    return lambda: loop.remove_reader(fd)


def cancel_at_end(task: asyncio.Task[Any]) -> None:
    """Cancel a task for the signals that end a process, besides that of Ctrl-C, which asyncio handles."""
    if sys.platform != "win32":
        for number in (signal.SIGHUP, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, task.cancel)


class Interrupts:
    """Ctrl-C while loops run one after the other: it cancels the task that runs, and `has_come` is true from then on.

    KeyboardInterrupt, which Python raises otherwise, may strike while a loop is made or closed, which then stays half done.
    """

    def __init__(self) -> None:
        self.has_come = False
        self._task: asyncio.Task[Any] | None = None

    def __enter__(self) -> Self:
        self._before = signal.signal(signal.SIGINT, self._take)
        return self

    def __exit__(self, *error: object) -> None:
        signal.signal(signal.SIGINT, self._before)

    def cancel(self, task: asyncio.Task[Any]) -> None:
        """Cancel this task once Ctrl-C comes, or now if it came before."""
        self._task = task
        if self.has_come:
            task.cancel()

    def _take(self, *_: object) -> None:
        self.has_come = True
        if self._task is not None and not self._task.done():
            with suppress(RuntimeError):  # its loop is closed
                self._task.get_loop().call_soon_threadsafe(self._task.cancel)


def _read_in_a_thread(loop: asyncio.AbstractEventLoop, fd: int, call: Callable[[bytes], None]) -> Callable[[], object]:
    reading = [True]

    def read_on() -> None:
        while reading and (numbers := os.read(fd, 512)):
            try:
                loop.call_soon_threadsafe(call, numbers)
            except RuntimeError:
                return  # the loop has ended

    start_new_thread(read_on, ())
    return reading.clear
