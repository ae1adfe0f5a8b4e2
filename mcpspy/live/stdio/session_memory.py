"""Messages of a session in, what a new server has to be given of it out: the client's opening, its log level, its subscriptions.

It also keeps the lists that the client has seen, to compare them with those of the new server. Fed with the messages that passed;
no clock, no I/O. The same class reads the capture of a tap that is asked for a restart later.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from ...records import CLIENT, SERVER, Side
from ...transcript.mcp.methods import DISCOVER, INITIALIZED, LISTEN, OPENINGS
from ...wire.jsonrpc import Piece, cut

if TYPE_CHECKING:
    from collections.abc import Iterable

LISTS: Final = {
    "tools/list": ("tools", "notifications/tools/list_changed"),
    "prompts/list": ("prompts", "notifications/prompts/list_changed"),
    "resources/list": ("resources", "notifications/resources/list_changed"),
    "resources/templates/list": ("resourceTemplates", "notifications/resources/list_changed"),
}
"""For each list: the member of its result, and the notification that it has changed."""

MAX_OPEN: Final = 4096
"""The oldest of more requests without an answer is forgotten."""

_SET_LEVEL: Final = "logging/setLevel"
_SUBSCRIBE: Final = "resources/subscribe"
_UNSUBSCRIBE: Final = "resources/unsubscribe"
_KEPT: Final = {*OPENINGS, _SET_LEVEL, _SUBSCRIBE, _UNSUBSCRIBE, *LISTS}

Exchanged = tuple[bytes, bytes]
"""A request and its answer, as they were sent."""


class SessionMemory:
    """A session as far as another server has to know it. `open` has the requests of the client that wait, by their ids.

    `asked` has those of the server. `unasked` has the senders and ids of answers to requests that it does not know.
    """

    __slots__ = ("asked", "initialized", "lists", "open", "opening", "settings", "unasked")

    def __init__(self) -> None:
        self.opening: Exchanged | None = None
        self.initialized: bytes | None = None
        self.settings: dict[str, Exchanged] = {}
        """The log level and the subscriptions, by method and target."""
        self.lists: dict[str, list[Exchanged]] = {}
        """The pages of each list, as the client saw it last."""
        self.open: dict[str, bytes] = {}
        self.asked: dict[str, bytes] = {}
        self.unasked: set[tuple[Side, str]] = set()

    @property
    def is_modern(self) -> bool:
        """True from 2026-07-28 on: nothing is initialized, and only subscriptions get notifications about lists."""
        return self.opening is None or cut(self.opening[0])[0].method == DISCOVER

    def feed(self, sender: Side, payload: bytes) -> None:
        """Take in a message or a batch that was received."""
        for piece in cut(payload):
            if sender == CLIENT:
                self._of_client(piece)
            elif piece.id is not None:
                self._of_server(piece)

    def messages(self) -> list[tuple[Side, bytes]]:
        """Return messages that make another memory know the same."""
        known = [
            *([self.opening] if self.opening else []),
            *self.settings.values(),
            *(page for pages in self.lists.values() for page in pages),
        ]
        told: list[tuple[Side, bytes]] = []
        for request, answer in known:
            told += [(CLIENT, request), (SERVER, answer)]
        told += [(CLIENT, self.initialized)] if self.initialized else []
        told += [(CLIENT, request) for request in self.open.values()]
        return told + [(SERVER, request) for request in self.asked.values()]

    def after(self, earlier: Iterable[tuple[Side, bytes]]) -> SessionMemory:
        """Return what is known if these messages were before the first one."""
        whole = SessionMemory()
        later = [*self.messages(), *((sender, b'{"id":%s,"result":{}}' % id.encode()) for sender, id in self.unasked)]
        for sender, payload in (*earlier, *later):
            whole.feed(sender, payload)
        return whole

    def values_of(self, method: str) -> list[Any]:
        """Return the entries of a list that the client saw."""
        return entries(method, [answer for _, answer in self.lists.get(method, ())])

    def _of_client(self, piece: Piece) -> None:
        if piece.kind == "request" and piece.id is not None:
            if len(self.open) >= MAX_OPEN:
                self.open.pop(next(iter(self.open)))
            self.open[piece.id] = piece.raw
        elif piece.kind == "notification" and piece.method == INITIALIZED:
            self.initialized = piece.raw
        elif piece.kind in ("result", "error") and piece.id is not None and self.asked.pop(piece.id, None) is None:
            self.unasked.add((CLIENT, piece.id))

    def _of_server(self, piece: Piece) -> None:
        id = piece.id or ""
        if piece.kind == "request":
            self.asked[id] = piece.raw
        request = self.open.pop(id, None) if piece.kind in ("result", "error") else None
        if request is None:
            self.unasked.update({(SERVER, id)} if piece.kind in ("result", "error") else ())
            return
        method = cut(request)[0].method or ""
        if piece.kind == "error" or method not in _KEPT:
            return
        exchanged, params = (request, piece.raw), _params(request)
        if method in OPENINGS:
            self.opening = exchanged
        elif method == _SET_LEVEL:
            self.settings[method] = exchanged
        elif method == _SUBSCRIBE:
            self.settings[f"{method} {params.get('uri')}"] = exchanged
        elif method == _UNSUBSCRIBE:
            self.settings.pop(f"{_SUBSCRIBE} {params.get('uri')}", None)
        elif "cursor" in params:
            self.lists.setdefault(method, []).append(exchanged)
        else:
            self.lists[method] = [exchanged]


def is_listening(request: bytes) -> bool:
    """Return whether a request is a subscription that stays open (2026-07-28)."""
    return cut(request)[0].method == LISTEN


def is_opening(request: bytes) -> bool:
    """Return whether a client opens with a request."""
    return cut(request)[0].method in OPENINGS


def entries(method: str, answers: Iterable[bytes]) -> list[Any]:
    """Return the entries of the pages of a list."""
    name = LISTS[method][0]
    pages = [_object(_object(_value(answer)).get("result")).get(name) for answer in answers]
    return [entry for page in pages if isinstance(page, list) for entry in page]


def next_cursor(answer: bytes) -> Any:
    """Return the cursor of the next page; None for the last one."""
    return _object(_object(_value(answer)).get("result")).get("nextCursor")


def _params(request: bytes) -> dict[str, Any]:
    return _object(_object(_value(request)).get("params"))


def _value(payload: bytes) -> Any:
    try:
        return json.loads(payload)
    except (ValueError, RecursionError):
        return None


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
