"""The controller's end of a control socket: one line of JSON asks, one answers (docs/control.md).

What listens there may be no tap. So the size and the time of an answer are bounded, and one that no tap gives is a ControlError.
"""

from __future__ import annotations

import json
import os
import time
from collections import deque
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ..errors import ControlError
from ..platform.control_sockets import AVAILABLE, connect, names

if TYPE_CHECKING:
    from socket import socket

EXTENSION: Final = ".sock"

ANSWER_S: Final = 5.0
"""A tap answers within a millisecond."""

MAX_LINE_BYTES: Final = 1 << 25
"""A tap sends no longer line: it disconnects a controller for which more waits."""

_READ_BYTES: Final = 1 << 16
_ID_LETTERS: Final = frozenset("0123456789abcdef")


class TapAnswer(dict[str, Any]):
    """An object in an answer. A member that it lacks is a ControlError."""

    def __missing__(self, name: str) -> Any:
        raise ControlError(f"what listens there is not a tap of this mcpspy: its answer has no {name}")


class Controller:
    """A connection to one tap. Whatever it sets is undone when it is closed, unless it asks to `keep` it."""

    def __init__(self, folder: str, name: str) -> None:
        self._socket: socket = connect(folder, name, ANSWER_S)
        self._held = bytearray()
        self._events: deque[dict[str, Any]] = deque()

    def close(self) -> None:
        self._socket.close()

    def ask(self, do: str, **facts: Any) -> dict[str, Any]:
        """Ask the tap to do something, and return its answer. Raises: ControlError: if it refuses, or has ended."""
        until_s = time.monotonic() + ANSWER_S
        try:
            self._socket.settimeout(ANSWER_S)
            self._socket.sendall(json.dumps({"do": do, **facts}).encode() + b"\n")
            while "event" in (answer := self._line(until_s)):
                self._events.append(answer)
        except OSError as error:
            raise ControlError(f"the tap does not answer ({error}); it may have ended: mcpspy control") from None
        if not answer.get("ok"):
            raise ControlError(str(answer.get("error")))
        if do == "status" and not _is_status(answer):
            raise ControlError("what listens there is not a tap of this mcpspy: its answer makes no sense")
        return answer

    def event(self, seconds: float) -> dict[str, Any] | None:
        """Wait for the next event; None if none comes in time. Raises: ControlError: if the tap has ended."""
        try:
            event = self._events.popleft() if self._events else self._line(time.monotonic() + seconds)
        except TimeoutError:
            return None
        except OSError as error:
            raise ControlError(f"the server has ended ({error})") from None
        return event if _is_event(event) else None

    def _line(self, until_s: float) -> dict[str, Any]:
        """Return the next line. Raises: OSError: if none comes, or one that no tap sends."""
        searched = 0
        while (end := self._held.find(b"\n", searched)) < 0:
            searched = len(self._held)
            if searched > MAX_LINE_BYTES:
                raise ConnectionError("its line has no end")
            self._held += self._received(until_s)
        line = bytes(self._held[:end])
        del self._held[: end + 1]
        try:
            answer = json.loads(line, object_hook=TapAnswer)
        except (ValueError, RecursionError):
            answer = None
        if not isinstance(answer, dict):
            raise ConnectionError("it sent no object of JSON")
        return answer

    def _received(self, until_s: float) -> bytes:
        left_s = until_s - time.monotonic()
        if left_s <= 0:
            raise TimeoutError("there was no answer in time")
        self._socket.settimeout(left_s)
        data = self._socket.recv(_READ_BYTES)
        if not data:
            raise ConnectionError("it closed the connection")
        return data


class RunningTap(NamedTuple):
    """A tap that listens, and what it said about itself."""

    id: str
    status: dict[str, Any]


def running_taps(folder: str) -> list[RunningTap]:
    """Ask all taps that listen, oldest first. A socket that a killed tap left is removed.

    Raises: ControlError: if others may use the folder.
    """
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
        listed = names(folder) if AVAILABLE else []
    except OSError as error:
        reason = f"is not a private folder ({error.strerror}), so its sockets are ignored"
        raise ControlError(f"{folder} {reason}; it has to be your own folder with mode 0700, not a link") from error
    return [name for name in listed if name.endswith(EXTENSION) and _ID_LETTERS.issuperset(name.removesuffix(EXTENSION))]


def _is_status(answer: dict[str, Any]) -> bool:
    """Return whether an answer has what a tap says about itself, as far as it is used."""
    match answer:
        case {"label": str(), "pid": int(), "capture": str(), "begin_ns": int(), "intercepts": [*intercepts], "held": [*held]}:
            is_listed = all(map(_is_intercept, intercepts)) and all(map(_is_held, held))
            return is_listed and isinstance(answer.get("transport", ""), str)
    return False


def _is_intercept(item: Any) -> bool:
    match item:
        case {"id": int() | None, "text": str(), "by": str()}:
            return True
    return False


def _is_held(item: Any) -> bool:
    match item:
        case {"id": int(), "sender": str(), "held_ns": int(), "text": str(), "bytes": int(), "payload": str()}:
            return True
    return False


def _is_event(event: dict[str, Any]) -> bool:
    match event:
        case {"event": "answer" | "progress", "id": str(), "payload": str(), "took_ns": int()}:
            return True
        case {"event": "failed", "id": str(), "text": str()} | {"event": "note", "text": str()}:
            return True
    return False


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        pass
