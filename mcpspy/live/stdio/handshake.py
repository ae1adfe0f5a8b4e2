"""A server that has been started and has not taken over: it is told what the client told the old one, and asked for its lists.

    mcpspy                                  new server
      initialize, as the client sent it  →
                                         ←  result
      notifications/initialized          →
      logging/setLevel, resources/…      →
      tools/list, with an id of ours     →
                                         ←  results: it is ready

What only mcpspy and this server say to each other is recorded on two streams of its own. Messages in, messages out; no clock,
no I/O.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from ...records import BESIDE, CLIENT, SERVER, Frame, Open, Spawn
from ...replay.json_values import canonical, read
from ...transcript.mcp.methods import INITIALIZE
from ...wire.jsonrpc import Piece, cut
from ...wire.lines import one_line
from .session_memory import LISTS, SessionMemory, entries, next_cursor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ...records import Sink
    from .server_ends import ServerEnd

OWN_ID: Final = "mcpspy-"
"""The beginning of ids that mcpspy makes."""

MAX_PAGES: Final = 200

MAX_WAITING: Final = 1000
"""So many of its notifications wait for it to take over."""

_FIRST_STREAM: Final = 3


class _ServerHandshake:
    """A handshake, as long as `waits`. `failure` says why the server is of no use; it is empty while all is well.

    `send` gets the messages for the server.
    """

    def __init__(self, memory: SessionMemory, send: Callable[[bytes], None]) -> None:
        self.failure = ""
        self._memory = memory
        self._send = send
        self._waiting: dict[str, str] = {}
        self._answers: dict[str, list[bytes]] = {}
        self._last_id = 0

    @property
    def waits(self) -> bool:
        """True until the server has answered everything."""
        return bool(self._waiting)

    def begin(self) -> None:
        """Send what the client opened with. If it has not, as it need not from 2026-07-28 on, ask for the lists that it has seen."""
        if self._memory.opening is not None:
            self._ask(self._memory.opening[0])
            return
        for name in self._memory.lists:
            self._ask_for(name)

    def take(self, piece: Piece) -> bool:
        """Take a message of the server. Return whether it was an answer to us."""
        if piece.kind not in ("result", "error") or piece.id not in self._waiting:
            return False
        method = self._waiting.pop(piece.id)
        if self._memory.opening is not None and method == cut(self._memory.opening[0])[0].method:
            self._opened(piece, method)
        elif method in LISTS and piece.kind == "result":
            pages = self._answers.setdefault(method, [])
            pages.append(piece.raw)
            cursor = next_cursor(piece.raw)
            if cursor is not None and len(pages) < MAX_PAGES:
                self._ask_for(method, cursor)
        return True

    def changed(self) -> list[str]:
        """Return the notifications for the lists that are not those that the client saw."""
        changed = [
            LISTS[method][1]
            for method in self._memory.lists
            if _comparable(entries(method, self._answers.get(method, ()))) != _comparable(self._memory.values_of(method))
        ]
        return list(dict.fromkeys(changed))

    def learn(self) -> None:
        """Let the memory know the new server's lists in place of the old ones'."""
        for method, pages in self._memory.lists.items():
            if method in self._answers:
                self._memory.lists[method] = [(pages[0][0], answer) for answer in self._answers[method]]

    def _opened(self, piece: Piece, method: str) -> None:
        if piece.kind == "error":
            self.failure = f"it answered {method} with an error: {piece.content.decode('utf-8', 'replace')[:500]}"
            return
        memory = self._memory
        if method == INITIALIZE and memory.initialized is not None:
            self._send(memory.initialized)
        for request, _ in memory.settings.values():
            self._ask(request)
        for name in memory.lists:
            self._ask_for(name)

    def _ask(self, request: bytes) -> None:
        piece = cut(request)[0]
        self._waiting[piece.id or ""] = piece.method or ""
        self._send(request)

    def _ask_for(self, method: str, cursor: Any = None) -> None:
        """Ask for a page of a list as the client did, with an id of ours."""
        request = json.loads(self._memory.lists[method][0][0])
        self._last_id += 1
        request["id"] = f"{OWN_ID}{self._last_id}"
        if cursor is not None:
            request["params"] = {**request.get("params", {}), "cursor": cursor}
        self._ask(json.dumps(request, ensure_ascii=False).encode("utf-8", "surrogatepass"))


def _comparable(values: Iterable[Any]) -> list[str]:
    """Return the entries of a list in a form in which lists are compared: by meaning, and in any order."""
    return sorted(canonical(read(json.dumps(value).encode())) for value in values)


class NewServer:
    """A new server. `end` is the one that it will be; it `is_ready` when it has answered all that it was asked."""

    def __init__(self, end: ServerEnd, memory: SessionMemory, sink: Sink, now_ns: Callable[[], int]) -> None:
        self.end = end
        self.handshake = _ServerHandshake(memory, self.tell)
        self._sink = sink
        self._now_ns = now_ns
        self._stdin = _FIRST_STREAM + 2 * (end.number - 2)
        self._stdout = self._stdin + 1

    @property
    def is_ready(self) -> bool:
        """True if it may take over."""
        return not self.handshake.waits

    def report(self, at_ns: int) -> None:
        """Record that it has been started."""
        extra, server = {BESIDE: True}, self.end
        self._sink((
            Spawn(at_ns=at_ns, pid=server.pid, start=server.start, extra={"server": server.number}),
            Open(at_ns=at_ns, stream=self._stdin, sender=CLIENT, name="stdin", extra=extra),
            Open(at_ns=at_ns, stream=self._stdout, sender=SERVER, name="stdout", extra=extra),
        ))  # fmt: skip

    def tell(self, payload: bytes) -> None:
        """Send a message that the client does not know of."""
        data, now_ns = one_line(payload), self._now_ns()
        self._sink((Frame(self._stdin, now_ns, now_ns, data, injected=True),))
        assert self.end.outlet is not None
        self.end.outlet.write(data)

    def hear(self, frame: Frame, whole: bytes) -> bool:
        """Take a message. Return false if it is a request, which is for the client."""
        pieces = cut(whole) if whole else []
        piece = pieces[0] if len(pieces) == 1 else None
        if piece is not None and piece.kind == "request":
            return False
        if piece is not None and piece.kind == "notification" and len(self.end.waiting) < MAX_WAITING:
            self.end.waiting.append(frame)
            return True
        self._sink((Frame(self._stdout, frame.at_ns, frame.first_ns, frame.data, frame.part),))
        if piece is not None:
            self.handshake.take(piece)
        return True

    def record_waiting(self) -> None:
        """Record the notifications that the client will not get."""
        for frame in self.end.waiting:
            self._sink((Frame(self._stdout, self._now_ns(), frame.first_ns, frame.data),))
