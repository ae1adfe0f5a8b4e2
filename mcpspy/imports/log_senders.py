"""Senders of the messages of a log: by methods that only one side may send, by the ids of requests, by words before them.

A word that contradicts a method or an id is about something else, as `stdout` on each line of a container's log, and says nothing
from then on. Words such as `received` and `sent` say it once it is known whose log it is:

    收到请求: {"method":"initialize",…}      received, and only a client sends it: this is the server's log
    发送响应: {"id":0,"result":…}            sent, by the side whose log it is: the server
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Mapping
from typing import Any, Final, Literal, TypeAlias, TypeVar

from ..records import CLIENT, OTHER_SIDE, SERVER, Side
from ..transcript.mcp.methods import METHODS

Relation: TypeAlias = Literal["sent", "received"]
T = TypeVar("T", Side, Literal["sent", "received"])

_NEAR_LETTERS: Final = 160
"""Words farther before a message are about something else."""

LEARNED_MESSAGES: Final = 100
"""After so many messages of a side it is known which words say something."""

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
_NAMES: Final[dict[Side, re.Pattern[str]]] = {CLIENT: _FROM_CLIENT, SERVER: _FROM_SERVER}
_RELATIONS: Final[dict[Relation, re.Pattern[str]]] = {"received": _RECEIVED, "sent": _SENT}

_CLOCK: Final = re.compile(r"\d\d:\d\d")
"""The words before a result have one, or say that it was sent, where it was logged, and not quoted in a document.
A line without words is of a server's output that was saved, if nothing of the client came before."""

_RESULTS: Final[dict[Side, frozenset[str]]] = {
    SERVER: frozenset(
        {"serverInfo", "tools", "content", "resources", "resourceTemplates", "prompts", "contents", "messages", "completion"}
    ),
    CLIENT: frozenset({"roots", "action", "model"}),
}
"""Members of the results of each side. One with a `model` and `content` may be of both."""

_SENDERS: Final[dict[str, set[Side]]] = {}
for _method in METHODS:
    _SENDERS.setdefault(_method.name, set()).add(_method.sender)


def _nearest(words: str, patterns: Mapping[T, re.Pattern[str]], distrusted: Container[str]) -> tuple[T | None, str]:
    """Return what the nearest word before a message says, and that word; None if nothing says anything."""
    near = words[-_NEAR_LETTERS:].lower()
    found = [
        (match.end(), says, match.group())
        for says, pattern in patterns.items()
        for match in pattern.finditer(near)
        if match.group() not in distrusted
    ]
    last = max((end for end, _, _ in found), default=0)
    nearest = [(says, word) for end, says, word in found if end == last]
    return nearest[0] if len({says for says, _ in nearest}) == 1 else (None, "")


class Senders:
    """Senders of the messages of one session, in order. `owner` is the side whose log it is, as soon as that is known.

    `trusts_words` is for logs whose words are those of a program that is known, and right.
    """

    __slots__ = ("_distrusted", "_initialize", "_requests", "_tokens", "_trusts_words", "is_ready", "last_id", "owner", "sent")

    def __init__(self, *, trusts_words: bool = False) -> None:
        self.owner: Side | None = None
        self.sent: Counter[Side] = Counter()
        self.last_id = -1
        """The last id of the client that is a number."""
        self.is_ready = False
        """True if the client has said that it took the answer to `initialize`."""
        self._trusts_words = trusts_words
        self._distrusted: set[str] = set()
        self._requests: dict[str, list[Side]] = {}
        self._tokens: dict[str, Side] = {}
        self._initialize = ""

    def sender(self, value: Any, words: str) -> Side | None:
        """Return the sender of a message; None if nothing says it, or nothing yet."""
        message = value[0] if isinstance(value, list) else value
        own = self._by_content(message)
        if own is not None and self.owner is not None and self.sent[own] > LEARNED_MESSAGES:
            return own
        named, word = _nearest(words, _NAMES, self._distrusted)
        while own is not None and named not in (None, own) and not self._trusts_words:
            self._distrusted.add(word)
            named, word = _nearest(words, _NAMES, self._distrusted)
        relation, word = _nearest(words, _RELATIONS, self._distrusted)
        if relation is not None and self.owner is None and named is None and own is not None:
            self.owner = own if relation == "sent" else OTHER_SIDE[own]
        if named is not None or relation is None or self.owner is None:
            is_output = not words.strip() and not self.sent[CLIENT]
            return named or own or (_by_result(message) if relation or is_output or _CLOCK.search(words) else None)
        side = self.owner if relation == "sent" else OTHER_SIDE[self.owner]
        if own not in (None, side):
            self._distrusted.add(word)
        return own or side

    def fits(self, message: dict[str, Any]) -> bool:
        """Return whether a message is one that is due: an answer to an open request, the client's next request, what it refers to."""
        method, id = message.get("method"), message.get("id")
        if method is None:
            return repr(id) in self._requests
        if method == "notifications/initialized":
            return not self.is_ready and self.last_id >= 0 and not self.awaits_initialize
        if id is not None:
            return isinstance(id, int) and id == self.last_id + 1
        token = _member(message, "params", "progressToken")
        return repr(_member(message, "params", "requestId")) in self._requests or repr(token) in self._tokens

    def take(self, value: Any, sender: Side) -> None:
        """Note a message whose sender is known."""
        for message in value if isinstance(value, list) else (value,):
            if not isinstance(message, dict):
                continue
            id = message.get("id")
            key = repr(id)
            self.sent[sender] += 1
            self.is_ready = self.is_ready or message.get("method") == "notifications/initialized"
            if "method" in message and id is not None:
                if sender == CLIENT:
                    self.last_id = id if isinstance(id, int) else self.last_id
                    self._initialize = key if message["method"] == "initialize" else self._initialize
                self._requests.setdefault(key, []).append(sender)
                token = _member(message, "params", "_meta", "progressToken")
                if token is not None:
                    self._tokens[repr(token)] = sender
            elif "method" not in message and (asked := self._requests.get(key)) is not None:
                if OTHER_SIDE[sender] in asked:
                    asked.remove(OTHER_SIDE[sender])
                if not asked:
                    del self._requests[key]

    @property
    def awaits_initialize(self) -> bool:
        """True if `initialize` has no answer yet."""
        return self._initialize in self._requests

    def open_requests(self) -> int:
        """Return the number of requests that no message has answered."""
        return sum(map(len, self._requests.values()))

    def missing(self) -> str:
        """Say which messages have to be somewhere else, by those that are here; empty if none have."""
        if not self.sent[CLIENT]:
            return "the log does not have the messages of the client"
        if self.open_requests() and not self.sent[SERVER]:
            return "the log does not have the messages of the server"
        is_left_out = self.is_ready and self.awaits_initialize
        return "the log does not have all messages of the server" if is_left_out else ""

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


def _by_result(message: Any) -> Side | None:
    """Return the only side that sends results with such members."""
    members = message.get("result")
    sides = [side for side, names in _RESULTS.items() if isinstance(members, dict) and not names.isdisjoint(members)]
    return sides[0] if len(sides) == 1 else None


def _member(value: Any, *names: str) -> Any:
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value
