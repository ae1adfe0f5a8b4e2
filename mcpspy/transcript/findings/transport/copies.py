"""Findings about requests that came twice through a gateway in front of the server, where only the server's side was tapped.

`gateway_calls` finds the same where the client's side was tapped too. One request has one id, so an equal
body with the same id in the same session, on another connection and with the fields of a gateway, is a copy. A client whose
connection broke may have made it as well; but not while the first one runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from ...model import HTTP_ERRORS, Exchange
from ..facts import CaptureFacts, ScopeKey, scope_key
from ..rule import HANDSHAKE, Hit, hit_in, transport_rule
from ..words import call_name, quoted, seconds

_CALL: Final = '→ tools/call %d {"name":"pay","arguments":{"to":"%s"}}\n'
GATEWAY_RESULT: Final = '← result %d {"content":[{"type":"text","text":"%s"}]}\n'
BEHIND: Final = f"· behind the gateway\n{HANDSHAKE}· 0.2 s later\n"
FIRST: Final = f"{_CALL % (1, 'x')}· 0.6 s later\n{GATEWAY_RESULT % (1, 'paid x')}"
INNER: Final = f"{_CALL % (1, 'x')}{GATEWAY_RESULT % (1, 'paid x')}"
SECOND: Final = f"{_CALL % (2, 'y')}· 0.6 s later\n"
BOTH: Final = (
    f"{HANDSHAKE}{FIRST}{SECOND}{GATEWAY_RESULT % (2, 'paid y')}"
    f"{BEHIND}{INNER}· 0.5 s later\n{_CALL % (2, 'y')}{GATEWAY_RESULT % (2, 'paid y')}"
)

REPEATED_BY_GATEWAY: Final = transport_rule(
    name="repeated-by-gateway",
    title="Request sent twice by a gateway",
    what="A gateway made several requests to the server of one request of the client, with the same content.",
    why="The server carries the call out each time: a ticket is made twice, a payment is paid twice.",
    blame="The gateway: the client sent the request once, and the other side of the gateway shows it several times.",
    example=f"{HANDSHAKE}{FIRST}{BEHIND}{INNER}{_CALL % (2, 'x')}{GATEWAY_RESULT % (2, 'paid x')}",
    clean=BOTH,
    advice="Look for mirroring and for automatic retries in the gateway's settings, and switch them off for POST.",
)

RULES: Final = (REPEATED_BY_GATEWAY,)

_FIELDS: Final = frozenset({"via", "forwarded", "x-forwarded-for", "x-forwarded-proto", "x-forwarded-host", "x-real-ip"})
"""Fields of requests that gateways add."""
_NAMES: Final = tuple(b"\n" + name.encode() for name in _FIELDS)
_MOST_HEADS: Final = 4096
_AT_ONCE_NS: Final = 1_000_000_000


def find(facts: CaptureFacts) -> Iterator[Hit]:
    """Find copies of requests."""
    by_row = {exchange.row: exchange for exchange in facts.http if exchange.row in copies(facts)} if copies(facts) else {}
    for row, first in copies(facts).items():
        copy = by_row[row]
        gap_ns = copy.at_ns - first.at_ns
        is_beside = gap_ns < _AT_ONCE_NS and (first.response is None or first.response.at_ns > copy.at_ns)
        what = (
            f"{call_name(copy)} came twice with the same id and the same bytes on two connections, {seconds(gap_ns)} apart "
            f"(rows {first.row} and {row}); its field {_field(copy)} shows a gateway."
        )
        blame = (
            "The gateway: the second came while the first was running, and a client does not send one request twice at once."
        )
        if not is_beside:
            blame = "Unclear: the gateway sent the request again, or the client did because its connection broke."
        culprit = "gateway" if is_beside else "unclear"
        yield hit_in(REPEATED_BY_GATEWAY, copy.request, row, what, culprit=culprit, blame=blame, group=call_name(copy))


def copies(facts: CaptureFacts) -> Mapping[int, Exchange]:
    """Return by the rows of copies the requests that they are copies of."""
    if facts.copied is None:
        facts.copied = dict(_copies(facts))
    return facts.copied


def _copies(facts: CaptureFacts) -> Iterator[tuple[int, Exchange]]:
    """Yield copies with their firsts. Only requests whose ids come again are held, and none where no request shows a gateway."""
    once: set[int] = set()
    again: set[int] = set()
    for exchange in facts.http if _shows_gateway(facts) else ():
        key = _id_hash(exchange)
        (again if key in once else once).add(key)
    firsts: dict[tuple[ScopeKey, str | None, str], Exchange] = {}
    for exchange in facts.http if again else ():
        if _id_hash(exchange) not in again:
            continue
        scope = scope_key(exchange.transaction)
        if not scope:
            continue  # the ids of two clients may be equal
        first = firsts.setdefault((scope, exchange.request.id, exchange.sender), exchange)
        if first is exchange or first.request.raw != exchange.request.raw or not _field(exchange):
            continue
        here, before = exchange.transaction, first.transaction
        if here is not None and before is not None and here.connection != before.connection and before.status < HTTP_ERRORS:
            yield exchange.row, first


def _id_hash(exchange: Exchange) -> int:
    return hash((scope_key(exchange.transaction), exchange.request.id, exchange.sender))


def _shows_gateway(facts: CaptureFacts) -> bool:
    """Return whether a request may have a field of a gateway."""
    without: set[bytes] = set()
    for transaction in facts.capture.transactions.values():
        head = b"" if transaction.request is None else transaction.request.raw_head
        if head in without:
            continue
        if _has_field(head):
            return True
        if len(without) < _MOST_HEADS:
            without.add(head)
    return False


def _has_field(head: bytes) -> bool:
    lower = head.lower()
    return any(name in lower for name in _NAMES)


def _field(exchange: Exchange) -> str:
    """Quote the field of a request that shows a gateway; empty if none does."""
    request = None if exchange.transaction is None else exchange.transaction.request
    for name, value in () if request is None else request.head.fields:
        if name.lower() in _FIELDS:
            return quoted(f"{name}: {value}")
    return ""
