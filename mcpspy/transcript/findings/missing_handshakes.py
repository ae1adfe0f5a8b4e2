"""Sessions of the legacy era without `initialize`, and the requests in them that were refused for want of it.

    → tools/list 1
    ← error 1 -32602 Received request before initialization was complete

Only the beginning of a session shows that there was no handshake: that of a process, or of a stream of HTTP+SSE. A session of
Streamable HTTP may be older than the capture; there only a refusal of a request outside of any session shows it. Of a client over
HTTP that was served it also has to be sure that it began after the capture: its process did, and nothing in the request's head
comes from a handshake, or from a client further away.
"""

import re
from collections import Counter
from collections.abc import Mapping
from typing import Final

from ...lazy_pattern import lazy_pattern
from ...records import CLIENT
from ..http.transaction import ScopeKind
from ..mcp.blocks import member
from ..mcp.methods import DISCOVER, INITIALIZE, PING, method_rows
from ..model import Exchange, Kind
from .facts import HANDSHAKE_METHODS, CaptureFacts, MessageKey, Occurrences, ScopeKey, scope_key

_BAD_REQUEST: Final = 400
_REFUSALS: Final = (-32600, -32602)
"""The codes with which servers on the SDKs refuse a request before the handshake."""
_MAX_ERROR_BYTES: Final = 1_000
_MIN_LETTERS: Final = 3
"""A shorter name of an argument is part of many words."""
_OF_OTHERS: Final = ("mcp-protocol-version", "mcp-session-id", "forwarded", "x-forwarded-for", "via")
"""Fields of a client that has agreed on a revision, or that is behind another process."""
_names_handshake = lazy_pattern(rb"initiali[sz]", re.IGNORECASE)
_word = lazy_pattern(rb"[^\W_]+")
_lacks_handshake = lazy_pattern(rb"[^:]{0,40}before initiali[sz][^:]{0,30}|\bnot (?:yet |been )?initiali[sz]ed", re.IGNORECASE)


def without_handshake(facts: CaptureFacts) -> dict[ScopeKey, list[Exchange]]:
    """Return the first request of each kind by session, for those that have no handshake and whose beginning is there."""
    begun = {
        scope_key(opening.transaction) for opening in facts.initializes if opening.transaction is None or _is_result(opening)
    }
    begun |= {key[3] for key, use in facts.requests.items() if _is_without(key, use)}
    sent: dict[ScopeKey, list[Exchange]] = {}
    for (method, sender, _, scope), use in {} if 0 in begun else facts.requests.items():
        first = use.first
        if sender != CLIENT or method in HANDSHAKE_METHODS or scope in begun or not isinstance(first, Exchange):
            continue
        if _may_begin(facts, first) and not facts.is_unseen(first.at_ns) and not facts.is_shared(first.transaction):
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


def first_without(facts: CaptureFacts, lacking: Mapping[ScopeKey, list[Exchange]]) -> dict[ScopeKey, list[Exchange]]:
    """Return those of the requests `lacking` a handshake whose client certainly sent none, by session."""
    if facts.initializes or _has_broken_initialize(facts):
        return {}
    certain = {
        scope: [exchange for exchange in sent if method_rows(exchange.method) and _has_beginning(facts, exchange)]
        for scope, sent in lacking.items()
    }
    return {scope: sent for scope, sent in certain.items() if sent}


def served_without(facts: CaptureFacts, lacking: Mapping[ScopeKey, list[Exchange]]) -> set[ScopeKey]:
    """Return the sessions without a handshake whose server goes on. One request alone may be a look whether anybody is there."""
    numbers: Counter[ScopeKey] = Counter()
    for (method, sender, _, scope), use in facts.requests.items() if lacking else ():
        if sender == CLIENT and method not in HANDSHAKE_METHODS:
            numbers[scope] += use.count
    return {scope for scope, sent in lacking.items() if numbers[scope] > 1 and any(map(_is_result, sent))}


def _is_without(key: MessageKey, use: Occurrences) -> bool:
    """Return whether a request begins a session that needs no handshake: one that names its revision, or asks for those there are.

    A client whose `server/discover` is refused has to initialize.
    """
    method, sender, revision, _ = key
    if method != DISCOVER or sender != CLIENT:
        return revision is not None
    response = use.first.response if isinstance(use.first, Exchange) else None
    return response is None or response.kind is not Kind.ERROR


def _has_broken_initialize(facts: CaptureFacts) -> bool:
    """Return whether a client sent `initialize` in a form that is none: without an id, or not as JSON. Another rule says so."""
    if any(key[:2] == (INITIALIZE, CLIENT) for key in facts.notifications):
        return True
    return any(row.message.sender == CLIENT and INITIALIZE.encode() in row.message.raw for row in facts.malformed)


def _may_begin(facts: CaptureFacts, exchange: Exchange) -> bool:
    """Return whether a request may be the first of its session."""
    transaction = exchange.transaction
    if transaction is None:
        return bool(facts.starts_ns)
    return transaction.scope.kind is ScopeKind.STREAM or not scope_key(transaction)


def _has_beginning(facts: CaptureFacts, exchange: Exchange) -> bool:
    """Return whether the capture has all that the client of a request sent before it."""
    transaction, header = exchange.transaction, facts.capture.header
    if transaction is None or header is None:
        return transaction is None
    owners = facts.capture.client_processes
    if transaction.connection not in owners or any(start <= header.start for _, start in owners.values()):
        return False
    head = None if transaction.request is None else transaction.request.head
    return head is not None and not any(map(head.get, _OF_OTHERS))


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
    return any(_is_named(name.lower().encode("utf-8", "replace"), error) for name in names if name)


def _is_named(name: bytes, error: bytes) -> bool:
    return name in (error if len(name) >= _MIN_LETTERS else _word.findall(error))


def _is_result(exchange: Exchange) -> bool:
    return exchange.response is not None and exchange.response.kind is Kind.RESULT
