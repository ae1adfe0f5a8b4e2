"""Signs of a gateway in a capture of HTTP: hits in, and out again with a culprit that is no more certain than the evidence.

A tap in front of a gateway sees the gateway's responses as the server's. A fault of delivery, such as a refusal, a late head or a cut
stream, may then be the gateway's. A fault in a message of the server is not touched: gateways do not write those.

    Via, a Server field of nginx, Cloudflare or the like    a gateway is there: unclear
    cut after 60 s of silence, or another usual limit       a gateway may be there: unclear
    an HTML page, a Location on another host                what servers of MCP do not send: unclear
    a Location of a login page on another host              the gateway
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from ...records import SERVER
from ..outcome import HTTP_ERRORS, HTTP_REDIRECTS
from .words import quoted, seconds

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ..http.head import Head
    from ..http.transaction import Stream, Transaction
    from .facts import CaptureFacts
    from .rule import Finding, Hit

PRODUCTS: Final = (
    "nginx|openresty|tengine|cloudflare|cloudfront|awselb|envoy|traefik|caddy|varnish|haproxy|akamai|gfe|google frontend|"
    "vercel|netlify|fly/|heroku|kong|apisix|squid|azure-application-gateway"
)
"""Names of gateways in the field Server and on their pages."""

is_product = re.compile(PRODUCTS, re.IGNORECASE).search
_is_login = re.compile(r"log-?in|sign-?in|oauth|saml|sso|authorize|/auth\b|^auth\.|accounts?\.", re.IGNORECASE).search

_FIELDS: Final = frozenset(
    {"via", "cf-ray", "x-amz-cf-id", "x-cache", "x-served-by", "x-varnish", "x-envoy-upstream-service-time", "x-vercel-id"}
    | {"fly-request-id", "x-azure-ref", "x-kong-proxy-latency", "x-kong-upstream-latency"}
)
"""Fields of responses that gateways add."""

_LIMITS_S: Final = (15, 30, 60, 90, 100, 120, 180, 240, 300, 350, 600, 900, 3600)
"""Usual time limits of gateways for a silent connection."""
_ROUND_NS: Final = 500_000_000


def doubted(facts: CaptureFacts, hits: Iterable[Hit]) -> Iterator[Hit]:
    """Yield the hits; those that blame the server for a fault of delivery are doubted where a gateway may have made it."""
    transactions: dict[int, Transaction] | None = None
    for hit in hits:
        if hit.finding.culprit != SERVER or not facts.capture.transactions:
            yield hit
            continue
        transactions = _by_record(facts) if transactions is None else transactions
        transaction = transactions.get(hit.finding.number)
        yield hit if transaction is None else hit._replace(finding=_doubted(facts, hit.finding, transaction))


def _by_record(facts: CaptureFacts) -> dict[int, Transaction]:
    """Return transactions by the records that a finding about delivery points at: heads, and requests of clients."""
    by_record = {
        exchange.request.number: facts.capture.transactions.get(exchange.transaction.scope.stream) or exchange.transaction
        for exchange in facts.http
        if exchange.transaction is not None
    }
    for transaction in facts.capture.transactions.values():
        streams = (transaction.request, transaction.response)
        by_record |= {stream.opened.number: transaction for stream in streams if stream is not None}
    return by_record


def _doubted(facts: CaptureFacts, finding: Finding, transaction: Transaction) -> Finding:
    sign = _own_page(transaction)
    if sign:
        return replace(finding, culprit="gateway", blame=f"A gateway in front of the server: {sign}.")
    sign = _presence(facts, transaction) or _strange_answer(transaction) or _limit(transaction)
    return (
        replace(finding, culprit="unclear", blame=f"Unclear: the server, or a gateway in front of it: {sign}.")
        if sign
        else finding
    )


def _own_page(transaction: Transaction) -> str:
    """Say that a request was redirected to a login page on another host."""
    host = _other_host(transaction)
    if not host or not _is_login(f"{host}{_location(transaction)}"):
        return ""
    return f"it wants a login at {quoted(host.encode())}, where a server of MCP answers 401"


def _strange_answer(transaction: Transaction) -> str:
    host = _other_host(transaction)
    if host:
        return f"the request was sent on to another host, {quoted(host.encode())}"
    response = transaction.response
    is_page = response is not None and transaction.request_messages and response.head.media_type == "text/html"
    return "an HTML page came instead of a message" if is_page else ""


def _presence(facts: CaptureFacts, transaction: Transaction) -> str:
    """Say which field shows a gateway: in this response, or where there is none, in another."""
    own = transaction.response
    others = (
        [other.response for other in facts.capture.transactions.values() if other.response is not None]
        if own is None
        else [own]
    )
    return next((sign for response in others if not response.injected and (sign := gateway_field(response.head))), "")


def gateway_field(head: Head) -> str:
    """Quote the field of a response that shows a gateway; empty if none does."""
    for name, value in head.fields:
        lower = name.lower()
        if lower in _FIELDS or (lower == "server" and is_product(value)):
            return f"its field {quoted(f'{name}: {value}'.encode('utf-8', 'replace'))} shows one"
    return ""


def _limit(transaction: Transaction) -> str:
    """Say that the server's side ended a response after a silence that is a usual time limit."""
    ended_ns = transaction.ended_ns
    if ended_ns is None or (transaction.ended_by or transaction.left_by) != SERVER:
        return ""
    silent_ns = ended_ns - _last_ns(transaction, transaction.response)
    limit_s = next((limit for limit in _LIMITS_S if abs(silent_ns - limit * 1_000_000_000) <= _ROUND_NS), None)
    return (
        "" if limit_s is None else f"{limit_s} s is a usual time limit of gateways, and it was cut after {seconds(silent_ns)}"
    )


def _last_ns(transaction: Transaction, response: Stream | None) -> int:
    if response is None:
        return transaction.at_ns
    return response.at_ns if response.last_ns is None else response.last_ns


def _other_host(transaction: Transaction) -> str:
    """Return the host that a redirect names, if it is another than the request's."""
    response, request = transaction.response, transaction.request
    if response is None or request is None or not HTTP_REDIRECTS <= transaction.status < HTTP_ERRORS:
        return ""
    try:
        host = urlsplit(_location(transaction)).hostname or ""
        own = urlsplit(f"//{request.head.get('host')}").hostname
    except ValueError:
        return ""
    return "" if host in (own, "localhost", "127.0.0.1") else host


def _location(transaction: Transaction) -> str:
    return "" if transaction.response is None else transaction.response.head.get("location")
