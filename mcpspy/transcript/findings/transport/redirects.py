"""Findings about redirects after which a client goes on with another method."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import Final

from ....records import SERVER
from ...http.transaction import Stream, Transaction
from ...model import HTTP_ERRORS, HTTP_REDIRECTS
from ..facts import CaptureFacts
from ..gateway_signs import wants_login
from ..hits import hit_on_stream
from ..rule import CONFIGURATION, Hit, Severity, transport_rule
from ..words import quoted

_POSTED: Final = '→ POST /mcp\n  {"jsonrpc":"2.0","id":1,"method":"tools/list"}\n'

REDIRECT_LOSES_BODY: Final = transport_rule(
    name="redirect-loses-body",
    title="Redirect that loses the message",
    severity=Severity.ERROR,
    what="A POST with a message was answered with 301, 302 or 303, or redirected to a login page.",
    why="Clients follow with GET and without the body, so the message never arrives (RFC 9110, section 15.4).",
    blame="The server, or a proxy before it: only 307 and 308 keep the method and the body.",
    example=f"{_POSTED}← 301 Moved Permanently\n  Location: /mcp/\n→ GET /mcp/\n← 405 Method Not Allowed",
    clean=(
        f"{_POSTED}← 307 Temporary Redirect\n  Location: /mcp/\n{_POSTED.replace('/mcp', '/mcp/')}"
        '← 200 OK\n  {"jsonrpc":"2.0","id":1,"result":{"tools":[]}}'
    ),
    advice="Give the client the URL in Location itself, or answer with 307 or 308.",
)

RULES: Final = (REDIRECT_LOSES_BODY,)

_PLAIN_BLAME: Final = "The configuration: its URL says http, and the server is only there with https."

_TO_GET: Final = (301, 302, 303)
_KEEPING: Final = (307, 308)
"""They keep the method and the body, but a login page can do nothing with them."""


def find(facts: CaptureFacts) -> Iterator[Hit]:
    """Find redirects of messages that change the method, and say whether the client followed with GET."""
    redirects = lossy_redirects(facts)
    if not redirects:
        return
    gets: dict[str, list[Transaction]] = {}
    for transaction in facts.capture.transactions.values():
        if transaction.method == "GET":
            gets.setdefault(_path(transaction.target), []).append(transaction)
    for transaction, target in redirects:
        response = transaction.response
        assert response is not None
        followed = _first_since(gets.get(target, ()), transaction.at_ns)
        ending = "." if followed is None else f", and the client followed with GET{_row(facts, followed)}."
        location = quoted(response.head.get("location"))
        what = f"POST {transaction.target} was answered with {transaction.status} and the location {location}{ending}"
        advice = f"Give the client the URL {location} itself, or answer with 307 or 308."
        culprit, blame = (CONFIGURATION, _PLAIN_BLAME) if _wants_https(facts, response) else (SERVER, "")
        yield hit_on_stream(
            REDIRECT_LOSES_BODY,
            facts,
            transaction,
            response,
            what,
            culprit,
            group=transaction.target,
            advice=advice,
            blame=blame,
        )


def _wants_https(facts: CaptureFacts, response: Stream) -> bool:
    """Tell whether a redirect only goes from http to https on the same host."""
    header = facts.capture.header
    from urllib.parse import urlsplit

    url = header.tapped.get("url") if header is not None else None
    try:
        here, there = urlsplit(str(url)), urlsplit(response.head.get("location"))
        return (here.scheme, there.scheme) == ("http", "https") and here.hostname == there.hostname
    except ValueError:
        return False


def lossy_redirects(facts: CaptureFacts) -> list[tuple[Transaction, str]]:
    """Return the POSTs that a redirect changes the method of, or sends to a login page, and the path that Location names."""
    found = []
    for transaction in facts.capture.transactions.values():
        response = transaction.response
        if (
            not (transaction.status in _TO_GET or (transaction.status in _KEEPING and wants_login(transaction)))
            or transaction.method != "POST"
            or not transaction.request_messages
        ):
            continue
        if response is not None and not response.injected:
            found.append((transaction, _path(_joined(transaction.target, response.head.get("location")))))
    return found


class _Redirects:
    """The first redirect to each path of a capture, and not to its own."""

    def __init__(self, facts: CaptureFacts) -> None:
        self.to: dict[str, Transaction] = {}
        for transaction in facts.capture.transactions.values():
            if not HTTP_REDIRECTS <= transaction.status < HTTP_ERRORS or transaction.response is None:
                continue
            location = transaction.response.head.get("location")
            if location and (path := _path(_joined(transaction.target, location))) != _path(transaction.target):
                self.to.setdefault(path, transaction)


def redirect_to(facts: CaptureFacts, transaction: Transaction) -> Transaction | None:
    """Return the transaction whose redirect sent the client to the path of a later one; None if it went there by itself."""
    known: _Redirects | None = facts.shared.get(_Redirects)
    if known is None:
        known = facts.shared[_Redirects] = _Redirects(facts)
    other = known.to.get(_path(transaction.target))
    return other if other is not None and other.at_ns <= transaction.at_ns else None


def _first_since(transactions: Sequence[Transaction], at_ns: int) -> Transaction | None:
    at = bisect_left(transactions, at_ns, key=attrgetter("at_ns"))
    return transactions[at] if at < len(transactions) else None


def _joined(target: str, location: str) -> str:
    """Return the URL that a location names, seen from a target."""
    from urllib.parse import urljoin  # slow to import

    return urljoin(target, location)


def _path(target: str) -> str:
    """Return the path of a URL or of a target; what cannot be read, as it is."""
    from urllib.parse import urlsplit

    try:
        return urlsplit(target).path
    except ValueError:
        return target


def _row(facts: CaptureFacts, transaction: Transaction) -> str:
    row = facts.row_of(transaction)
    return "" if row is None else f" (row {row})"
