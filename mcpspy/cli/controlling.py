"""The tap's end of its control socket: what controllers ask for is done here. Imported when the first one connects.

docs/control.md describes the lines of JSON. Whatever a controller has set is undone when its connection ends.
"""

from __future__ import annotations

import json
import os
import re
from contextlib import suppress
from random import Random
from socket import SHUT_RDWR
from typing import TYPE_CHECKING, Any, Final

from ..errors import InterceptError
from ..intercept.decisions import Intercepts
from ..intercept.syntax import parse_intercept
from ..json_path import in_ascii, one_line
from ..lazy_pattern import lazy_pattern
from ..live.stdio.intercepting import InterceptingTap, give_back, take_over
from ..live.stdio.restartable import RestartableTap
from ..live.stdio.restarts import Restarts
from ..live.waiting_messages import HeldMessage
from ..platform.control_sockets import MAX_CONTROLLERS, accept, own_user
from ..platform.descriptors import POLLIN, POLLOUT
from ..records import CLIENT, SERVER, Note
from .call.injected import CallRefusedError, InjectedCalls
from .new_capture import report

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from socket import socket
    from typing import Protocol

    from ..live.stdio.tap import StdioTap
    from ..live.waiting_messages import Decider
    from ..records import Intercept, Side, Sink
    from .call.injected import CallRoute

    class HeldBy(Protocol):
        """The direction in which a message is held."""

        @property
        def writer(self) -> str: ...

        @property
        def release(self) -> Callable[..., None]: ...

    class ControlHands(Protocol):
        """A tap of any transport, as controllers need it."""

        transport: str

        @property
        def intercepts(self) -> Decider | None: ...

        def now_ns(self) -> int: ...

        def watch(self, fd: int, events: int, callback: Callable[[int], None]) -> None: ...

        def forget(self, fd: int) -> None: ...

        def held(self) -> Sequence[tuple[HeldBy, HeldMessage]]: ...

        def release_those_of(self, handle: int) -> None: ...

        def take_over(self, intercepts: Intercepts) -> None: ...

        def route(self, request: dict[str, Any], intercepts: Intercepts) -> CallRoute:
            """Return the way of a call to the server. Raises: CallRefusedError: if there is none."""

        def call_when_idle(self, action: Callable[[], None]) -> None: ...

        def give_back(self) -> None: ...

        def send_all(self) -> None:
            """Send what an intercept keeps waiting."""

        @property
        def restarts(self) -> Restarts | None: ...

        def follow(self) -> Restarts | None: ...


MAX_LINE_BYTES: Final = 1 << 24
_READ_BYTES: Final = 1 << 16

MAX_SHOWN: Final = 10_000
MAX_LISTED: Final = 10
"""So much of a held message is told, and of so many."""

MAX_WAITING_BYTES: Final = 1 << 25
"""A controller that leaves more than this unread is disconnected: the longest answer of a server, escaped, is as long."""


_AROUND: Final = "\ufeff \t\r\n"
_units = lazy_pattern(r"\r\n|.", re.DOTALL)
_not_utf8 = lazy_pattern("[\udc80-\udcff]")


class _RefusedError(Exception):
    """A request of a controller that is not done; the text says why."""


class StdioHands:
    """A tap of stdio, as controllers need it. `argv` is that of its server."""

    transport = "stdio"

    def __init__(self, tap: StdioTap, sink: Sink, argv: list[str]) -> None:
        self.tap = tap
        self._sink, self._argv = sink, argv
        self.now_ns, self.watch, self.forget = tap.now_ns, tap.watch, tap.forget

    @property
    def intercepts(self) -> Decider | None:
        return self.tap.intercepts if isinstance(self.tap.intercepts, Intercepts) else None

    def held(self) -> Sequence[tuple[HeldBy, HeldMessage]]:
        return self.tap.held() if isinstance(self.tap, InterceptingTap) else ()

    def release_those_of(self, handle: int) -> None:
        if isinstance(self.tap, InterceptingTap):
            self.tap.release_those_of(handle)

    def take_over(self, intercepts: Intercepts) -> None:
        take_over(self.tap, intercepts)

    def route(self, request: dict[str, Any], intercepts: Intercepts) -> StdioHands:
        return self

    def begin(self, on_failed: Callable[[str], None]) -> None:
        """Do nothing: a server on stdio answers, or ends with its tap."""

    def send(self, payload: bytes, act: Intercept) -> bool:
        """Send a message of a controller to the server; return whether that takes messages."""
        return isinstance(self.tap, InterceptingTap) and self.tap.send_to_server(payload, act)

    def call_when_idle(self, action: Callable[[], None]) -> None:
        assert isinstance(self.tap, InterceptingTap)
        self.tap.call_when_idle(action)

    def give_back(self) -> None:
        if isinstance(self.tap, InterceptingTap):
            give_back(self.tap)

    def send_all(self) -> None:
        if isinstance(self.tap, InterceptingTap):
            self.tap.send_all()

    @property
    def restarts(self) -> Restarts | None:
        tap = self.tap
        return tap.router if isinstance(tap, RestartableTap) and isinstance(tap.router, Restarts) else None

    def follow(self) -> Restarts | None:
        if self.restarts is None:
            Restarts(self.tap, self._sink, self._argv, say=report).mark_beginning()
        return self.restarts


class ControlPoint:
    """All controllers of one tap, which is in `hands`. `facts` tell them about it."""

    def __init__(self, hands: ControlHands, sink: Sink, facts: dict[str, Any]) -> None:
        self.hands = hands
        self._sink = sink
        self._facts = {**facts, "transport": hands.transport}
        self._connections: list[_Controller] = []
        self._last_id = self._last_name = 0
        self._added: dict[int, tuple[str, str, int]] = {}
        self._own = hands.intercepts if isinstance(hands.intercepts, Intercepts) else None
        self._intercepts = self._own or Intercepts((), (), int.from_bytes(os.urandom(4), "big"))
        self._intercepts.say, self._intercepts.sink = self._say, sink
        self._calls = InjectedCalls(self._intercepts, hands.now_ns)

    def connected(self, listener: socket) -> None:
        """Take a new controller, if it belongs to our user."""
        try:
            connection, user, pid = accept(listener)
        except OSError:
            return  # it has gone again
        if user != own_user():
            self.note(f"a process of user {user} was refused at the control socket")
        if user != own_user() or len(self._connections) >= MAX_CONTROLLERS:
            connection.close()
            return
        self._last_name += 1
        self._connections.append(_Controller(self, connection, f"controller {self._last_name} (pid {pid})"))

    def note(self, text: str) -> None:
        """Record something about controllers."""
        self._sink((Note(at_ns=self.hands.now_ns(), topic="control", text=text),))

    def _say(self, text: str, handle: int) -> None:
        """Say on stderr, and to the controller that added it, what an intercept did not do."""
        report(f"mcpspy: {text}")
        for connection in self._connections:
            if any(self._added[id][2] == handle for id in connection.own):
                connection.tell({"event": "note", "text": text})

    def left(self, connection: _Controller) -> None:
        """Undo what a controller has set."""
        self._connections.remove(connection)
        for id in connection.own:
            self._remove(id)
        self._calls.abandon(connection)
        if connection.has_acted:
            kept = f"; intercepts that stay: {len(connection.kept)}" if connection.kept else ""
            self.note(f"{connection.name} left{kept}")

    def do(self, request: dict[str, Any], by: _Controller) -> dict[str, Any]:
        """Do what a controller asks for. Raises: _RefusedError."""
        match request.get("do"):
            case "status":
                restarts = self.hands.restarts
                restart = {} if restarts is None else {"restart": restarts.state}
                return {**self._facts, "intercepts": self._listed(), "held": self._held(), **restart}
            case "intercept":
                return self._add(request, by)
            case "remove":
                id = request.get("id")
                if id not in self._added:
                    raise _RefusedError(f"there is no intercept {id} of a controller")
                self.note(f"{by.name} removed intercept {id}: {self._added[id][0]}")
                by.has_acted = True
                self._remove(id)
                return {}
            case "release" | "drop" | "edit" as what:
                self._let_go(what, request, by)
                return {}
            case "follow":
                restarts = self.hands.follow()
                if restarts is None:
                    raise _RefusedError("a server over HTTP is not restarted here: restart it behind the proxy")
                return {"knows": restarts.knows_session}
            case "restart":
                return self._restart(request, by)
            case "send":
                return self._send(request, by)
            case "cancel":
                self._calls.cancel(str(request.get("id")), by)
                return {}
            case "keep":
                by.kept += by.own
                by.own = []
                return {}
        raise _RefusedError(f"there is nothing to do that is called {request.get('do')!r}")

    def _restart(self, request: dict[str, Any], by: _Controller) -> dict[str, Any]:
        """Restart the server. `messages` are those of before we were told to follow, as far as a new server has to know them."""
        restarts = self.hands.restarts
        if restarts is None:
            raise _RefusedError("restart comes after follow")
        earlier: list[tuple[Side, bytes]] = []
        for message in request.get("messages", ()):
            match message:
                case ["client" | "server" as sender, str(payload)]:
                    earlier.append((CLIENT if sender == CLIENT else SERVER, payload.encode("utf-8", "surrogateescape")))
                case _:
                    raise _RefusedError("messages are a list of pairs: client or server, and a text")
        if earlier:
            restarts.knows_since(earlier)
        by.has_acted = True
        restarts.restart(by.name, stops_first=bool(request.get("stop_first")))
        return {"restart": restarts.state}

    def _listed(self) -> list[dict[str, Any]]:
        verb = "run" if self.hands.transport == "stdio" else "proxy"
        by_run = [{"id": None, "text": text, "by": verb} for text in self._intercepts.texts[: self._given]]
        return [*by_run, *({"id": id, "text": text, "by": by} for id, (text, by, _) in self._added.items())]

    def _held(self) -> list[dict[str, Any]]:
        return [
            {
                "id": item.number,
                "sender": pump.writer,
                "held_ns": self.hands.now_ns() - item.frame.at_ns,
                "text": item.decision.records[0].text,
                "bytes": len(item.decision.payload or b""),
                "payload": _shown((item.decision.payload or b"").decode("utf-8", "surrogateescape").rstrip("\r\n"))[:MAX_SHOWN],
            }
            for pump, item in self.hands.held()[:MAX_LISTED]
        ]

    def _let_go(self, what: str, request: dict[str, Any], by: _Controller) -> None:
        """Release, drop or edit a held message; `payload` is the edited one."""
        id, payload = request.get("id"), request.get("payload")
        found = next(((pump, item) for pump, item in self.hands.held() if item.number == id), None)
        if found is None:
            raise _RefusedError(f"message {id} is not held")
        pump, item = found
        before = item.decision.payload or b""
        sent = _edited(before, payload) if what == "edit" else before if what == "release" else None
        words = {"release": "released", "drop": "dropped", "edit": "edited"}[what]
        self.note(f"{by.name} {words} message {id}")
        by.has_acted = True
        pump.release(item.number, sent, "" if sent == before else words)

    @property
    def _given(self) -> int:
        return len(self._intercepts.texts) - len(self._added)

    def _add(self, request: dict[str, Any], by: _Controller) -> dict[str, Any]:
        text, answers = request.get("text"), request.get("answers", {})
        if not isinstance(text, str) or not isinstance(answers, dict):
            raise _RefusedError("intercept needs a text, and answers are an object")

        def answer(name: str) -> bytes:
            if not isinstance(answers.get(name), str):
                raise ValueError(f"{name} was not sent along")
            return str(answers[name]).encode("utf-8", "surrogatepass")

        try:
            rule = parse_intercept(text, answer, self.hands.transport)
        except InterceptError as error:
            raise _RefusedError(str(error)) from None
        self._last_id += 1
        id = self._last_id
        self.note(f"{by.name} added intercept {id}: {rule.text}")
        handle = self._intercepts.add(rule, Random(f"{self._intercepts.seed} by control {id}"))  # noqa: S311 - no secret
        self._added[id] = (rule.text, by.name, handle)
        by.has_acted = True
        by.own.append(id)
        self._take_over()
        return {"id": id}

    def _send(self, request: dict[str, Any], by: _Controller) -> dict[str, Any]:
        """Send a request of a controller to the server; the answer is for the controller alone."""
        self._take_over()
        by.has_acted = True
        try:
            route = self.hands.route(request, self._intercepts)
            id = self._calls.send(request.get("payload"), by, route, self._on_answer)
        except CallRefusedError as error:
            self._on_answer()
            raise _RefusedError(str(error)) from None
        return {"id": id}

    def _on_answer(self) -> None:
        """Note that a call waits no more. A message is being passed on just now, so nothing is given back before it has been."""
        self.hands.call_when_idle(self._give_back)

    def _take_over(self) -> None:
        if self._own is None:
            self.hands.take_over(self._intercepts)

    def _give_back(self) -> None:
        """Let the tap run as before, if nothing needs that it takes messages whole: an answer to a call may still come."""
        if self._own is not None or self._added:
            return
        if self._intercepts.calls:
            self.hands.send_all()
        else:
            self.hands.give_back()

    def _remove(self, id: int) -> None:
        if id not in self._added:
            return
        handle = self._added.pop(id)[2]
        self._intercepts.remove(handle)
        self.hands.release_those_of(handle)
        self._give_back()


def _shown(text: str) -> str:
    """Return a message for an editor, where each byte that is not UTF-8 is U+FFFD."""
    return _not_utf8.sub("\ufffd", text)


def _common_letters(left: str, right: str) -> int:
    """Count the letters with which both begin."""
    pairs = enumerate(zip(left, right, strict=False))
    return next((at for at, (letter, other) in pairs if letter != other), min(len(left), len(right)))


def _edited(payload: bytes, text: object) -> bytes:
    """Change in a message what a user changed in the text that was shown of it; all other bytes stay. Raises: _RefusedError.

    What editors change by themselves does not count: CR LF is as LF, and around the message are neither white space nor a BOM.
    """
    if not isinstance(text, str) or one_line(text := text.strip(_AROUND)) is None:
        raise _RefusedError("this is not JSON, so it was not sent; the message is still held")
    whole = payload.decode("utf-8", "surrogateescape")
    if len(whole.rstrip("\r\n")) > MAX_SHOWN:
        raise _RefusedError("this message is too long to be edited")
    message = whole.strip(_AROUND)
    units = _units.findall(message)
    old, new = _shown(message).replace("\r\n", "\n"), text.replace("\r\n", "\n")
    begin = _common_letters(old, new)
    same = _common_letters(old[begin:][::-1], new[begin:][::-1])
    end = len(units) - same
    written = " ".join(re.split("[\r\n]", new[begin : len(new) - same]))
    if "\ufffd" in written and _not_utf8.search("".join(units[begin:end])):
        raise _RefusedError("bytes that are not UTF-8 are between what was changed first and last; change one part alone")
    if _not_utf8.search(whole):
        written = in_ascii(written)
    before, _, after = whole.partition(message)
    return "".join((before, *units[:begin], written, *units[end:], after)).encode("utf-8", "surrogateescape")


class _Controller:
    """One controller."""

    def __init__(self, point: ControlPoint, connection: socket, name: str) -> None:
        self.name = name
        self.own: list[int] = []
        self.kept: list[int] = []
        self.has_acted = False
        self._point = point
        self._connection = connection
        self._held = b""
        self._unsent = b""
        point.hands.watch(connection.fileno(), POLLIN, self._readable)

    def _readable(self, events: int) -> None:
        try:
            data = self._connection.recv(_READ_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._close()
            return
        self._held += data
        *lines, self._held = self._held.split(b"\n")
        try:
            for line in lines:
                self._answer(line)
            if len(self._held) > MAX_LINE_BYTES:
                self._close()
        except OSError:  # it is gone, or does not read: the tap waits for nobody
            self._close()

    def _answer(self, line: bytes) -> None:
        try:
            request = json.loads(line)
            if not isinstance(request, dict):
                raise _RefusedError("a request is an object of JSON")
            answer = {"ok": True, **self._point.do(request, self)}
        except (ValueError, RecursionError):
            answer = {"ok": False, "error": "a request is one line of JSON"}
        except _RefusedError as error:
            answer = {"ok": False, "error": str(error)}
        except Exception as error:  # noqa: BLE001  # whatever a controller asks for, the messages pass
            answer = {"ok": False, "error": f"this request makes no sense ({type(error).__name__})"}
        self._write(answer)

    def tell(self, event: dict[str, Any]) -> None:
        """Tell the controller what it did not ask for just now."""
        try:
            self._write(event)
        except OSError:  # not closed here, for a message is being passed on just now
            self._unsent = b""
            with suppress(OSError):
                self._connection.shutdown(SHUT_RDWR)

    def _write(self, line: dict[str, Any]) -> None:
        """Write a line; what the controller does not take at once waits. Raises: OSError: if too much waits, or it has gone."""
        self._unsent += json.dumps(line).encode() + b"\n"
        if len(self._unsent) > MAX_WAITING_BYTES:
            raise BlockingIOError
        self._flush()

    def _flush(self) -> None:
        try:
            self._unsent = self._unsent[self._connection.send(self._unsent) :]
        except BlockingIOError:
            pass
        self._point.hands.watch(self._connection.fileno(), POLLIN | (POLLOUT if self._unsent else 0), self._ready)

    def _ready(self, events: int) -> None:
        if events & POLLOUT:
            try:
                self._flush()
            except OSError:
                self._close()
                return
        if events & ~POLLOUT:
            self._readable(events)

    def _close(self) -> None:
        self._point.hands.forget(self._connection.fileno())
        self._connection.close()
        self._point.left(self)
