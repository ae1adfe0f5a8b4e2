"""Breakpoints of the user in running taps, and the messages that are held: the controller's end, on which the keys act."""

from __future__ import annotations

import json
from threading import Lock
from typing import Any, Final, NamedTuple

from ..capture.store.folder import live_folder
from ..control.client import EXTENSION, Controller
from ..errors import ControlError, InterceptError
from ..transcript.message import Kind, Message
from ..transcript.model import Exchange, Numbered, Transcript
from ..views.text.escape import one_line
from ..views.text.line import Line
from ..wire.json_spans import members, string

PAYLOAD_LETTERS: Final = 60


class Held(NamedTuple):
    """A message that is held in the tap of a capture. `left_ns` is the time until it goes on by itself."""

    capture_id: str
    id: int
    sender: str
    left_ns: int
    bytes: int
    payload: str

    def line(self, number: int, of: int) -> Line:
        """Say what is held, and for how long yet."""
        arrow = "→" if self.sender == "client" else "←"
        message = members(self.payload.encode("utf-8", "surrogatepass"))
        words = string(message.get("method", b"")) or ("answer" if "result" in message or "error" in message else "message")
        target = string(members(message.get("params", b"")).get("name", b"")) or ""
        which = f"held {number} of {of}" if of > 1 else "held"
        return [(f" {which} {arrow} {one_line(f'{words} {target}')} · goes on in {max(self.left_ns, 0) / 1e9:.0f} s", "")]


class Holding:
    """The controllers, by capture. Closing them removes their breakpoints, and what these hold goes on."""

    def __init__(self) -> None:
        self._controllers: dict[str, Controller] = {}
        self._ids: dict[tuple[str, str], int] = {}
        """The breakpoints, by capture and text."""
        self._asking = Lock()
        """Keys ask in one thread and `held` in another: each waits for its own answer."""

    @property
    def is_in_use(self) -> bool:
        """True if a tap is controlled."""
        return bool(self._controllers)

    @property
    def breakpoints(self) -> list[tuple[str, str]]:
        """The breakpoints in force: capture and text."""
        return list(self._ids)

    def remove(self, chosen: tuple[str, str]) -> None:
        """Remove a breakpoint. Raises: ControlError."""
        id = self._ids.pop(chosen, None)
        if id is not None:
            self._ask(self._controller(chosen[0]), "remove", id=id)

    def hold(self, capture_id: str, text: str) -> None:
        """Set a breakpoint. Raises: ControlError, InterceptError."""
        from ..intercept.actions import Hold
        from ..intercept.syntax import parse_intercept

        key = capture_id, text.strip()
        self.remove(key)
        action = parse_intercept(text, _no_file).action
        if not isinstance(action, Hold):
            raise ControlError("a breakpoint holds: FILTER => hold. For other intercepts: mcpspy control")
        answer = self._ask(self._controller(capture_id), "intercept", text=text, answers={})
        self._ids[key] = int(answer["id"])

    def _ask(self, controller: Controller, do: str, **facts: Any) -> dict[str, Any]:
        with self._asking:
            return controller.ask(do, **facts)

    def _controller(self, capture_id: str) -> Controller:
        if capture_id not in self._controllers:
            try:
                self._controllers[capture_id] = Controller(live_folder(), capture_id + EXTENSION)
            except OSError:
                reason = "this server does not run under mcpspy run any more, or not in a way that can be controlled"
                raise ControlError(reason) from None
        return self._controllers[capture_id]

    def held(self) -> list[Held]:
        """Ask the taps what is held, the message that goes on first being the first. May block."""
        held: list[Held] = []
        for capture_id, controller in list(self._controllers.items()):
            try:
                status = self._ask(controller, "status")
            except ControlError:
                self.leave(capture_id)  # it has ended
                continue
            held += [_held(capture_id, item) for item in status["held"]]
        return sorted(held, key=lambda item: item.left_ns)

    def let_go(self, held: Held, what: str, payload: str = "") -> None:
        """Release a message, drop it, or let it go on edited. Raises: ControlError."""
        facts = {"payload": payload} if what == "edit" else {}
        self._ask(self._controller(held.capture_id), what, id=held.id, **facts)

    def leave(self, capture_id: str) -> None:
        """Close the connection to a tap."""
        controller = self._controllers.pop(capture_id, None)
        if controller is not None:
            controller.close()
        self._ids = {key: id for key, id in self._ids.items() if key[0] != capture_id}

    def close(self) -> None:
        """Remove all breakpoints: what they hold goes on."""
        for capture_id in list(self._controllers):
            self.leave(capture_id)


def _held(capture_id: str, item: dict[str, Any]) -> Held:
    from ..intercept.actions import Hold
    from ..intercept.syntax import HOLD_NS, parse_intercept

    try:
        action = parse_intercept(item["text"], _no_file).action
    except InterceptError:
        action = None
    most_ns = action.most_ns if isinstance(action, Hold) else HOLD_NS
    return Held(capture_id, item["id"], item["sender"], most_ns - item["held_ns"], item["bytes"], item["payload"])


def _no_file(name: str) -> bytes:
    raise ValueError(f"{name} cannot be read here")


def breakpoint_text(row: Numbered, message: Message | None) -> str:
    """Return the breakpoint for messages like that of a row: its tool or method; under Response, the answers."""
    if message is None:
        return ""
    is_answer = message.kind in (Kind.RESULT, Kind.ERROR)
    call = row if isinstance(row, Exchange) else None
    method, target = (message.method, message.target) if call is None else (call.method, call.target)
    if not method:
        return ""
    term = f"tool:{_value(target)}" if method == "tools/call" and target else f"method:{_value(method)}"
    return f"{'(kind:result or kind:error) ' if is_answer else ''}{term} => hold"


def _value(text: str) -> str:
    """Spell a value of a filter."""
    is_plain = text and all(letter.isalnum() or letter in "/_-.$" for letter in text)
    return text if is_plain else json.dumps(text, ensure_ascii=False)


def capture_id(transcript: Transcript, row: Numbered) -> str:
    """Return the id of a row's capture; empty if it has none."""
    header = transcript.captures[row.capture].header
    return "" if header is None else header.capture_id
