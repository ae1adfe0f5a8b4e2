"""Messages that pass to the exchanges that they belong to, as far as an intercept has to know them. Memory is bounded."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from ..records import OTHER_SIDE, Side
from ..transcript.mcp.methods import CANCELLED, PROGRESS
from ..transcript.message import NOTIFICATION, REQUEST, Kind, Message
from ..transcript.model import Exchange

MAX_WAITING: Final = 4096
"""The oldest of more requests without an answer is forgotten."""

ExchangeKey = tuple[Side, str]
"""The side that sent a request, and the id as it spelled it."""


class PassingExchanges:
    """Exchanges whose answer has not passed yet."""

    __slots__ = ("_by_token", "_waiting")

    def __init__(self) -> None:
        self._waiting: OrderedDict[ExchangeKey, Exchange] = OrderedDict()
        self._by_token: dict[ExchangeKey, ExchangeKey] = {}

    def feed(self, message: Message) -> tuple[Exchange | None, ExchangeKey | None]:
        """Return the exchange of a message and its key; None for a message that belongs to none."""
        sender, id, token = message.sender, message.id, message.correlation_key
        if message.kind is REQUEST and id is not None:
            return self._begin((sender, id), message), (sender, id)
        if message.kind is NOTIFICATION:
            key = None
            if token is not None and message.method == PROGRESS:
                key = self._by_token.get((OTHER_SIDE[sender], token))
            elif token is not None and message.method == CANCELLED:
                key = (sender, token)
            return (None, None) if key is None else (self._waiting.get(key), key)
        if message.kind is Kind.MALFORMED or id is None:
            return None, None
        key = (OTHER_SIDE[sender], id)
        exchange = self._waiting.pop(key, None)
        if exchange is None:
            return None, None
        exchange.response = message
        self._forget(exchange)
        return exchange, key

    def _begin(self, key: ExchangeKey, request: Message) -> Exchange:
        if len(self._waiting) >= MAX_WAITING:
            self._forget(self._waiting.popitem(last=False)[1])
        exchange = Exchange(0, request)
        self._waiting[key] = exchange
        if request.correlation_key is not None:
            self._by_token[key[0], request.correlation_key] = key
        return exchange

    def _forget(self, exchange: Exchange) -> None:
        request = exchange.request
        if request.correlation_key is not None:
            self._by_token.pop((request.sender, request.correlation_key), None)
