"""Signs of a gateway in a capture of HTTP: hits in, and out again with a culprit that is no more certain than the evidence.

A tap in front of a gateway sees the gateway's responses as the server's. A fault of delivery, such as a refusal, a late head or a cut
stream, may then be the gateway's. A fault in a message of the server is not touched: gateways do not write those.

    Via, a Server field of nginx, Cloudflare or the like    a gateway is there: unclear
    cut after 60 s of silence, or another usual limit       a gateway may be there: unclear
    three streams cut after equal silences                  a time limit: the gateway's that shows itself, else unclear
    an HTML page, a Location on another host                what servers of MCP do not send: unclear
    a redirect with a gateway's own page                    the gateway
    a Location of a login page, or that led to a page       the gateway
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from functools import cached_property
from operator import attrgetter
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from ...lazy_pattern import lazy_pattern
from ...records import SERVER
from ..outcome import HTTP_ERRORS, HTTP_REDIRECTS
from .words import quoted, seconds

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ..http.transaction import Stream, Transaction
    from .facts import CaptureFacts
    from .rule import Finding, Hit

PRODUCTS: Final = (
    "nginx|openresty|tengine|cloudflare|cloudfront|awselb|envoy|traefik|caddy|varnish|haproxy|akamai|gfe|google frontend|"
    "vercel|netlify|fly/|heroku|kong|apisix|squid|azure-application-gateway"
)
"""Names of gateways in the field Server and on their pages."""

is_product = lazy_pattern(PRODUCTS, re.IGNORECASE)
is_gateway_page = lazy_pattern(rf"<center>\s*(?:{PRODUCTS})|cloudflare|cloudfront|varnish".encode(), re.IGNORECASE)
_is_application = lazy_pattern(
    r"uvicorn|hypercorn|gunicorn|daphne|granian|waitress|werkzeug|wsgiserver|(?:base|simple)http/|aiohttp|tornadoserver|kestrel|jetty|"
    r"tomcat|coyote|puma|webrick|phusion",
    re.IGNORECASE,
)
"""Names of what runs applications, in the field Server."""
is_block_page = lazy_pattern(
    rb"firewall|\bWAF\b|mod_?security|request (?:was |has been )?(?:blocked|rejected)|requested URL was rejected|"
    rb"(?:support|incident|event|ray|request) id\b|captcha|security (?:policy|rule|check)|you (?:have been|are) blocked",
    re.IGNORECASE,
)
"""Words on the pages of firewalls: a request met a rule of theirs."""
_is_login = lazy_pattern(r"log-?in|sign-?in|oauth|saml|sso|authorize|/auth\b|^auth\.|accounts?\.", re.IGNORECASE)

_is_login_path = lazy_pattern(
    r"(?:^|/)[\w.-]*(?:log-?in|sign-?in|oauth2?|saml2?|sso|authori[sz]e|authenticate|auth|adfs|idp)(?:[/?.;]|$)", re.IGNORECASE
)
_ADVICE: Final = (
    "Answer requests without a valid token with 401 and the field WWW-Authenticate, which clients follow to a login; a page for "
    "people belongs to other paths."
)

_FIELDS: Final = frozenset(
    {"via", "cf-ray", "x-amz-cf-id", "x-cache", "x-served-by", "x-varnish", "x-envoy-upstream-service-time", "x-vercel-id"}
    | {"fly-request-id", "x-azure-ref", "x-kong-proxy-latency", "x-kong-upstream-latency"}
)
"""Fields of responses that gateways add."""

_LIMITS_S: Final = (15, 30, 60, 90, 100, 120, 180, 240, 300, 350, 600, 900, 3600)
"""Usual time limits of gateways for a silent connection."""
_ROUND_NS: Final = 500_000_000

_SEVERAL: Final = 3
_SHORTEST_NS: Final = 1_000_000_000
_NEAR: Final = 0.1
"""Silences that differ by less than this share are equal."""
_SERVER_ERROR: Final = 500


class GatewaySigns:
    """The signs of a gateway in one capture. What takes a pass over its transactions is done once, and only if it is asked for."""

    def __init__(self, facts: CaptureFacts) -> None:
        self._facts = facts

    def doubted(self, hits: Iterable[Hit]) -> Iterator[Hit]:
        """Yield the hits; those that blame the server for a fault of delivery are doubted where a gateway may have made it."""
        for hit in hits:
            if hit.finding.culprit == SERVER and self._facts.capture.transactions:
                transaction = self._facts.capture.transactions.get(self._by_record.get(hit.finding.number, 0))
                yield hit if transaction is None else hit._replace(finding=self._doubted(hit.finding, transaction))
            else:
                yield hit

    @cached_property
    def _by_record(self) -> dict[int, int]:
        """The numbers of transactions by the records that a finding about delivery points at: heads, and requests of clients."""
        transactions = self._facts.capture.transactions
        by_record: dict[int, int] = {}
        for exchange in self._facts.http:
            if exchange.transaction is not None:
                stream = exchange.transaction.scope.stream
                by_record[exchange.request.number] = stream if stream in transactions else exchange.transaction.number
        for exchange in self._facts.cancelled:
            cancelled, carrier = exchange.cancelled, exchange.transaction
            if cancelled is not None and carrier is not None and _silent_ns(carrier) is not None:
                by_record[cancelled.number] = carrier.number
        for transaction in transactions.values():
            for opened in (transaction.request, transaction.response):
                if opened is not None:
                    by_record[opened.record] = transaction.number
        return by_record

    @cached_property
    def _anywhere(self) -> str:
        """The first field of any response that shows a gateway."""
        responses = (transaction.response for transaction in self._facts.capture.transactions.values())
        return next((sign for response in responses if (sign := gateway_field(response))), "")

    @cached_property
    def _answered_gets(self) -> dict[str, list[Transaction]]:
        """The requests with GET that were answered, by their targets."""
        gets: dict[str, list[Transaction]] = {}
        for transaction in self._facts.capture.transactions.values():
            if transaction.method == "GET" and transaction.response is not None:
                gets.setdefault(transaction.target, []).append(transaction)
        return gets

    @cached_property
    def _silences(self) -> list[tuple[int, int]]:
        """The silence before each cut of a stream by the server's side, in order, and the time of the cut."""
        cuts = ((transaction.ended_ns, _silent_ns(transaction)) for transaction in self._facts.capture.transactions.values())
        return sorted((silent_ns, at_ns) for at_ns, silent_ns in cuts if at_ns is not None and silent_ns is not None)

    @cached_property
    def _spans(self) -> dict[tuple[int, int], int]:
        """By the first and the last place in `_silences`, the time between the first and the last of the cuts there."""
        return {}

    def _time_limit(self, transaction: Transaction) -> tuple[int, str]:
        """Return the silence after which streams are cut, and words for it; 0 if too few show it, or all were cut at one instant."""
        silent_ns = _silent_ns(transaction)
        if silent_ns is None or silent_ns < _SHORTEST_NS:
            return 0, ""
        near_ns = int(_NEAR * silent_ns)
        first = bisect_left(self._silences, (silent_ns - near_ns, 0))
        last = bisect_left(self._silences, (silent_ns + near_ns + 1, 0))
        if last - first < _SEVERAL:
            return 0, ""
        if (first, last) not in self._spans:
            cuts_ns = [at_ns for _, at_ns in self._silences[first:last]]
            self._spans[first, last] = max(cuts_ns) - min(cuts_ns)
        if self._spans[first, last] < _SHORTEST_NS:
            return 0, ""
        return silent_ns, f"{last - first} streams were cut {seconds(silent_ns)} after they fell silent, which is a time limit"

    def _doubted(self, finding: Finding, transaction: Transaction) -> Finding:
        sign = self._login_page(transaction)
        if sign:
            return replace(finding, culprit="gateway", blame=f"A gateway in front of the server: {sign}.", advice=_ADVICE)
        if HTTP_REDIRECTS <= transaction.status < HTTP_ERRORS and is_gateway_page.search(transaction.refusal):
            blame = "The gateway in front of the server: the page of the redirect is its own."
            return replace(finding, culprit="gateway", blame=blame)
        silent_ns, limit = self._time_limit(transaction)
        if limit:
            return _with_limit(finding, seconds(silent_ns), limit, gateway_field(transaction.response) or self._anywhere)
        if transaction.status == _SERVER_ERROR and not _strange_answer(transaction):
            return finding  # gateways pass it on; their own are 502, 503 and 504
        presence = self._anywhere if transaction.response is None else gateway_field(transaction.response)
        sign = presence or _strange_answer(transaction) or _limit(transaction)
        blame = f"Unclear: the server, or a gateway in front of it: {sign}."
        return replace(finding, culprit="unclear", blame=blame) if sign else finding

    def _login_page(self, transaction: Transaction) -> str:
        """Say that a message was redirected to a login page, or to what turned out to be a page for people."""
        location = _location(transaction)
        place = quoted(_other_host(transaction) or location)
        if wants_login(transaction):
            return f"it wants a login at {place}, where a server of MCP answers 401 with WWW-Authenticate"
        if not HTTP_REDIRECTS <= transaction.status < HTTP_ERRORS or not transaction.request_messages:
            return ""
        gets = self._answered_gets.get(location, ())
        at = bisect_right(gets, transaction.at_ns, key=attrgetter("at_ns"))
        page = gets[at] if at < len(gets) else None
        if page is None or page.response is None or page.response.head.media_type != "text/html":
            return ""
        return f"it sent the message to {place}, which is a page for people, where a server of MCP answers 401 with WWW-Authenticate"


def _silent_ns(transaction: Transaction) -> int | None:
    """Return how long a stream of events had been silent when the server's side broke it off; None if it did not."""
    response, ended_ns = transaction.response, transaction.ended_ns
    if response is None or response.close is None or ended_ns is None or response.framing != "sse":
        return None
    return ended_ns - _last_ns(transaction, response) if response.close.by == SERVER and response.close.how != "eof" else None


def _with_limit(finding: Finding, silent: str, limit: str, presence: str) -> Finding:
    blame = f"The gateway in front of the server: {limit}; {presence}."
    if not presence:
        blame = f"Unclear: the server, or a gateway in front of it that does not show itself: {limit}."
    advice = (
        f"Raise the limit for silent streams above the time that the call takes (nginx: proxy_read_timeout), or let the server send "
        f"a comment or progress more often than every {silent}."
    )
    return replace(finding, culprit="gateway" if presence else "unclear", blame=blame, advice=advice)


def wants_login(transaction: Transaction) -> bool:
    """Tell whether a response redirects to a login page, by its host or its path."""
    if not HTTP_REDIRECTS <= transaction.status < HTTP_ERRORS:
        return False
    host, location = _other_host(transaction), _location(transaction)
    return bool(host and _is_login.search(f"{host}{location}")) or bool(_is_login_path.search(_path(location)))


def _path(location: str) -> str:
    from urllib.parse import urlsplit  # slow to import

    try:
        return urlsplit(location).path
    except ValueError:
        return ""


def _strange_answer(transaction: Transaction) -> str:
    host = _other_host(transaction)
    if host:
        return f"the request was sent on to another host, {quoted(host)}"
    response = transaction.response
    is_page = response is not None and transaction.request_messages and response.head.media_type == "text/html"
    return "an HTML page came instead of a message" if is_page and not is_application(response) else ""


def gateway_field(response: Stream | None) -> str:
    """Quote the field of a response that shows a gateway; empty if none does."""
    for name, value in () if response is None or response.injected else response.head.fields:
        lower = name.lower()
        if lower in _FIELDS or (lower == "server" and is_product.search(value)):
            return f"its field {quoted(f'{name}: {value}')} shows one"
    return ""


def is_application(response: Stream | None) -> bool:
    """Tell whether a response names the framework or the program that runs the application, which then wrote it."""
    head = None if response is None else response.head
    return head is not None and bool(head.get("x-powered-by") or _is_application.search(head.get("server")))


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
    from urllib.parse import urlsplit  # slow to import

    try:
        host = urlsplit(_location(transaction)).hostname or ""
        own = urlsplit(f"//{request.head.get('host')}").hostname
    except ValueError:
        return ""
    return "" if host in (own, "localhost", "127.0.0.1") else host


def _location(transaction: Transaction) -> str:
    return "" if transaction.response is None else transaction.response.head.get("location")
