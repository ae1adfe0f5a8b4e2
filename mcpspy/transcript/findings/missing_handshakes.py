"""Sessions of the legacy era without `initialize`, and the requests in them that were refused for want of it.

    → tools/list 1
    ← error 1 -32602 Received request before initialization was complete

Only the beginning of a session shows that there was no handshake: that of a process, or of a stream of HTTP+SSE. A session of
Streamable HTTP may be older than the capture; there only a refusal of a request outside of any session shows it.
"""

import re
from collections.abc import Mapping
from typing import Final

from ...lazy_pattern import lazy_pattern
from ...records import CLIENT
from ..http.transaction import ScopeKind
from ..mcp.blocks import member
from ..mcp.methods import PING
from ..model import Exchange, Kind
from .facts import HANDSHAKE_METHODS, CaptureFacts, ScopeKey, scope_key

_BAD_REQUEST: Final = 400
_REFUSALS: Final = (-32600, -32602)
"""The codes with which servers on the SDKs refuse a request before the handshake."""
_MAX_ERROR_BYTES: Final = 1_000
_names_handshake = lazy_pattern(rb"initiali[sz]", re.IGNORECASE)
_lacks_handshake = lazy_pattern(rb"[^:]{0,40}before initiali[sz][^:]{0,30}|\bnot (?:yet |been )?initiali[sz]ed", re.IGNORECASE)


def without_handshake(facts: CaptureFacts) -> dict[ScopeKey, list[Exchange]]:
    """Return the first request of each kind by session, for those that have no handshake and whose beginning is there."""
    begun = {
        scope_key(opening.transaction) for opening in facts.initializes if opening.transaction is None or _is_result(opening)
    }
    begun |= {scope for _, _, revision, scope in facts.requests if revision is not None}
    sent: dict[ScopeKey, list[Exchange]] = {}
    for (method, sender, _, scope), use in {} if 0 in begun else facts.requests.items():
        first = use.first
        if sender != CLIENT or method in HANDSHAKE_METHODS or scope in begun or not isinstance(first, Exchange):
            continue
        if _has_beginning(facts, first) and not facts.is_unseen(first.at_ns) and not facts.is_shared(first.transaction):
            sent.setdefault(scope, []).append(first)
    return sent


def refused_for_handshake(facts: CaptureFacts, lacking: Mapping[ScopeKey, list[Exchange]]) -> dict[ScopeKey, list[Exchange]]:
    """Return the requests by session that were refused, or not answered, because there was no handshake.

    A session in which anything was served needs none.
    """
    refused: dict[ScopeKey, list[Exchange]] = {}
    served: set[ScopeKey] = set()
    log = handshake_log(facts) if lacking else b""
    for exchange in facts.exchanges if lacking else ():
        scope = scope_key(exchange.transaction)
        if exchange.sender != CLIENT or scope not in lacking or exchange.method == PING:
            continue
        if _is_result(exchange):
            served.add(scope)
        elif exchange.method not in HANDSHAKE_METHODS and _wants_handshake(exchange, log):
            refused.setdefault(scope, []).append(exchange)
    return {scope: exchanges for scope, exchanges in refused.items() if scope not in served}


def handshake_log(facts: CaptureFacts) -> bytes:
    """Return the words in which a server's log says that there was no handshake; a logger may have broken them into lines."""
    match = _lacks_handshake.search(b" ".join(b" ".join(facts.last_lines).split()))
    return b"" if match is None else match[0].strip()


def _has_beginning(facts: CaptureFacts, exchange: Exchange) -> bool:
    transaction = exchange.transaction
    if transaction is None:
        return bool(facts.starts_ns)
    return transaction.scope.kind is ScopeKind.STREAM or (transaction.status == _BAD_REQUEST and not scope_key(transaction))


def _wants_handshake(exchange: Exchange, log: bytes) -> bool:
    """Return whether an error says that there was no handshake, or is about nothing of the request: so SDK servers refuse it."""
    transaction = exchange.transaction
    if exchange.response is None:
        return exchange.over and transaction is None and bool(log)
    raw = exchange.response.raw[:_MAX_ERROR_BYTES]
    if transaction is not None and not scope_key(transaction):
        return transaction.status == _BAD_REQUEST and _lacks_handshake.search(raw) is not None
    if _names_handshake.search(raw) is not None:
        return True
    is_refusal = member(exchange.response.error, "code") in _REFUSALS
    return is_refusal and (bool(log) or not _names_part(exchange))


def _names_part(exchange: Exchange) -> bool:
    """Return whether an error names the target of its request, or one of its parameters and arguments."""
    error = b"" if exchange.response is None else exchange.response.raw[:_MAX_ERROR_BYTES].lower()
    params = exchange.request.params
    arguments = member(params, "arguments")
    names = [exchange.target, *(key for part in (params, arguments) if isinstance(part, dict) for key in part)]
    return any(name.lower().encode("utf-8", "replace") in error for name in names if name)


def _is_result(exchange: Exchange) -> bool:
    return exchange.response is not None and exchange.response.kind is Kind.RESULT
