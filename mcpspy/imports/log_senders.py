"""Senders of the messages of a log: by words before them, by methods that only one side may send, by the ids of requests.

Words such as `received` and `sent` say it once it is known whose log it is:

    收到请求: {"method":"initialize",…}      received, and only a client sends it: this is the server's log
    发送响应: {"id":0,"result":…}            sent, by the side whose log it is: the server
"""

from __future__ import annotations

import re
from typing import Any, Final, Literal, TypeAlias

from ..records import CLIENT, OTHER_SIDE, SERVER, Side
from ..transcript.mcp.methods import METHODS

Relation: TypeAlias = Literal["sent", "received"]

_NEAR_LETTERS: Final = 160
"""Words farther before a message are about something else."""

_CLIENT = r"(?:client|editor|host|agent|客户端)"
_SERVER = r"(?:server|服务器|服务端)"
_ARROW = r"\s*(?:-+>|=+>|→|⇒|➜|»)\s*"
_BACK = r"\s*(?:<-+|<=+|←|⇐|«)\s*"
_FROM_CLIENT: Final = re.compile(
    rf"from (?:the )?{_CLIENT}|to (?:the )?{_SERVER}|{_CLIENT}(?:{_ARROW}|[ _-]?to[ _-]?|_?2_?)[\w.-]*{_SERVER}"
    rf"|{_CLIENT}{_ARROW}|{_ARROW}{_SERVER}|{_SERVER}{_BACK}|\bc2s\b|\bc->s\b|\bstdin\b|{_CLIENT}'?s? (?:message|says)"
)
_FROM_SERVER: Final = re.compile(
    rf"from (?:the )?{_SERVER}|to (?:the )?{_CLIENT}|{_SERVER}(?:{_ARROW}|[ _-]?to[ _-]?|_?2_?)[\w.-]*{_CLIENT}"
    rf"|{_SERVER}{_ARROW}|{_ARROW}{_CLIENT}|{_CLIENT}{_BACK}|\bs2c\b|\bs->c\b|\bstdout\b|{_SERVER}'?s? (?:message|says)|\bsse message"
)
_RECEIVED: Final = re.compile(
    r"\breceiv\w*|\brecv\w*|\bincoming\b|\binbound\b|\bgot\b|\bread\b|<<<?|<--?|⇐|←|\bin\b\s*[:=]|direction=in\b|收到|接收"
)
_SENT: Final = re.compile(
    r"\bsen[dt]\w*|\boutgoing\b|\boutbound\b|\bwrit\w*|\bwrote\b|\brespond\w*|\brepl(?:y|ied)\w*|>>>?|--?>|⇒|→"
    r"|\bout\b\s*[:=]|direction=out\b|发送|发出|返回"
)

_SENDERS: Final[dict[str, set[Side]]] = {}
for _method in METHODS:
    _SENDERS.setdefault(_method.name, set()).add(_method.sender)


def sender_in_words(words: str) -> Side | None:
    """Return the side that the words before a message name as its sender."""
    client, server = _last(_FROM_CLIENT, words), _last(_FROM_SERVER, words)
    if client == server:
        return None
    return CLIENT if client > server else SERVER


def relation_in_words(words: str) -> Relation | None:
    """Return whether the words before a message say that it was sent, or received."""
    received, sent = _last(_RECEIVED, words), _last(_SENT, words)
    if received == sent:
        return None
    return "received" if received > sent else "sent"


def _last(pattern: re.Pattern[str], words: str) -> int:
    """Return where the last match ends; -1 without one. The nearest word counts."""
    return max((match.end() for match in pattern.finditer(words[-_NEAR_LETTERS:].lower())), default=-1)


class Senders:
    """Senders of the messages of one session, in order. `owner` is the side whose log it is, as soon as that is known."""

    __slots__ = ("_requests", "_tokens", "owner")

    def __init__(self) -> None:
        self.owner: Side | None = None
        self._requests: dict[str, list[Side]] = {}
        self._tokens: dict[str, Side] = {}

    def sender(self, value: Any, words: str) -> Side | None:
        """Return the sender of a message; None if nothing says it, or nothing yet."""
        message = value[0] if isinstance(value, list) else value
        named, relation = sender_in_words(words), relation_in_words(words)
        own = self._by_content(message)
        if named is None and relation is not None and self.owner is None and own is not None:
            self.owner = own if relation == "sent" else OTHER_SIDE[own]
        side = named
        if side is None and relation is not None and self.owner is not None:
            side = self.owner if relation == "sent" else OTHER_SIDE[self.owner]
        return side or own

    def take(self, value: Any, sender: Side) -> None:
        """Note a message whose sender is known."""
        for message in value if isinstance(value, list) else (value,):
            if not isinstance(message, dict):
                continue
            key = repr(message.get("id"))
            if "method" in message and message.get("id") is not None:
                self._requests.setdefault(key, []).append(sender)
                token = _member(message, "params", "_meta", "progressToken")
                if token is not None:
                    self._tokens[repr(token)] = sender
            elif "method" not in message and (asked := self._requests.get(key)) is not None:
                if OTHER_SIDE[sender] in asked:
                    asked.remove(OTHER_SIDE[sender])
                if not asked:
                    del self._requests[key]

    def open_requests(self) -> int:
        """Return the number of requests that no message has answered."""
        return sum(map(len, self._requests.values()))

    def _by_content(self, message: Any) -> Side | None:
        """Return the only side that can have sent a message, by its method, or by the ids of requests that are open."""
        method = message.get("method")
        if method is None:
            sides = set(self._requests.get(repr(message.get("id")), ()))
            return OTHER_SIDE[sides.pop()] if len(sides) == 1 else None
        senders = _SENDERS.get(str(method), set())
        if len(senders) == 1:
            return next(iter(senders))
        if method == "notifications/cancelled":
            sides = set(self._requests.get(repr(_member(message, "params", "requestId")), ()))
            return sides.pop() if len(sides) == 1 else None
        if method == "notifications/progress":
            asker = self._tokens.get(repr(_member(message, "params", "progressToken")))
            return None if asker is None else OTHER_SIDE[asker]
        return None


def _member(value: Any, *names: str) -> Any:
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value
