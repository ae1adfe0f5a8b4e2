"""The controller's end of a control socket: one line of JSON asks, one answers (docs/control.md)."""

from __future__ import annotations

import json
import os
import time
from collections import deque
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ..errors import ControlError
from ..platform.control_sockets import AVAILABLE, connect

if TYPE_CHECKING:
    from socket import socket

EXTENSION: Final = ".sock"

ANSWER_S: Final = 5.0
"""A tap answers within a millisecond."""

_READ_BYTES: Final = 1 << 16


class Controller:
    """A connection to one tap. Whatever it sets is undone when it is closed, unless it asks to `keep` it."""

    def __init__(self, folder: str, name: str) -> None:
        self._socket: socket = connect(folder, name, ANSWER_S)
        self._held = b""
        self._events: deque[dict[str, Any]] = deque()

    def close(self) -> None:
        self._socket.close()

    def ask(self, do: str, **facts: Any) -> dict[str, Any]:
        """Ask the tap to do something, and return its answer. Raises: ControlError: if it refuses, or has ended."""
        try:
            self._socket.sendall(json.dumps({"do": do, **facts}).encode() + b"\n")
            answer = self._answer()
        except OSError as error:
            raise ControlError(f"the tap does not answer ({error}); it may have ended: mcpspy control") from None
        if not answer.get("ok"):
            raise ControlError(str(answer.get("error")))
        return answer

    def event(self, seconds: float) -> dict[str, Any] | None:
        """Wait for the next event; None if none comes in time. Raises: ControlError: if the tap has ended."""
        if self._events:
            return self._events.popleft()
        try:
            self._socket.settimeout(max(seconds, 0.001))
            return self._line()
        except TimeoutError:
            return None
        except OSError as error:
            raise ControlError(f"the server has ended ({error})") from None
        finally:
            self._socket.settimeout(ANSWER_S)

    def _answer(self) -> dict[str, Any]:
        until_s = time.monotonic() + ANSWER_S
        while "event" in (line := self._line()):
            self._events.append(line)
            if time.monotonic() > until_s:
                raise TimeoutError("only events came")
        return line

    def _line(self) -> dict[str, Any]:
        while b"\n" not in self._held:
            data = self._socket.recv(_READ_BYTES)
            if not data:
                raise ConnectionError("it closed the connection")
            self._held += data
        line, _, self._held = self._held.partition(b"\n")
        answer: dict[str, Any] = json.loads(line)
        return answer


class RunningTap(NamedTuple):
    """A tap that listens, and what it said about itself."""

    id: str
    status: dict[str, Any]


def running_taps(folder: str) -> list[RunningTap]:
    """Ask all taps that listen, oldest first. A socket that a killed tap left is removed."""
    taps = []
    for name in _names(folder):
        try:
            controller = Controller(folder, name)
        except (ConnectionRefusedError, FileNotFoundError):
            _remove(os.path.join(folder, name))
            continue
        except OSError:
            continue  # it is busy, or not ours
        try:
            taps.append(RunningTap(name.removesuffix(EXTENSION), controller.ask("status")))
        except ControlError:
            continue
        finally:
            controller.close()
    return sorted(taps, key=lambda tap: int(tap.status["begin_ns"]))


def _names(folder: str) -> list[str]:
    try:
        return [name for name in os.listdir(folder) if name.endswith(EXTENSION)] if AVAILABLE else []
    except OSError:
        return []


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        pass
