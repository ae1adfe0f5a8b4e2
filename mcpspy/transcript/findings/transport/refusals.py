"""Findings about HTTP requests that were answered with an error status: who refused them, and why.

`sessions` is about sessions that are unknown or not sent, `statuses` about errors that mcpspy answered itself.
Source: RFC 9110, section 15; MCP specification, basic/transports and basic/authorization of each revision.
"""

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from ....lazy_pattern import lazy_pattern
from ....records import CLIENT, SERVER
from ...http.head import wait_ns
from ...http.transaction import ScopeKind, Stream, Transaction
from ...mcp.methods import OPENINGS
from ...model import HTTP_ERRORS, HTTP_FAILURES, Exchange, Kind, Outcome
from ..facts import CaptureFacts
from ..hits import hit_on_transaction
from ..rule import CLEAN_POST, CONFIGURATION, Hit, HitDetails, Rule, Severity, transport_rule
from ..words import call_name, quoted, seconds
from .placeholders import credential, unfilled_field
from .redirects import lossy_redirects, redirect_to
from .refusal_culprits import (
    NO_SUCH_PLACE,
    circumstance,
    error_fault,
    forbidden_fault,
    is_page_of_gateway,
    name_fault,
    place_fault,
    refused_names,
    refuses_name,
    scope_fault,
    speaks_of_session,
    token_fault,
)
from .sessions import asks_for_stream, given_out_ns, lacks_session, refuses_session
from .unreachable import WANTS_TLS

_INITIALIZE: Final = '→ POST /mcp\n  initialize 0 {"protocolVersion":"2025-11-25","capabilities":{}}\n'
_LOGIN: Final = "→ POST /mcp\n  Authorization: Bearer redacted-%s\n  tools/list %d\n"
_LIST: Final = '← 200 OK\n  result %d {"tools":[]}'

HTTP_ERROR: Final = transport_rule(
    name="http-error",
    title="HTTP error instead of an answer",
    severity=Severity.ERROR,
    what="A request was answered with an HTTP status of 400 or more, and without a JSON-RPC message.",
    why="The client learns no reason that it could show or act on: it has a status and perhaps a page for people.",
    blame="The server, unless the page or its Server field shows a gateway in front of it.",
    example="→ POST /mcp\n  tools/list 1\n← 500 Internal Server Error\n  Content-Type: text/plain\n  KeyError",
    clean=CLEAN_POST,
    advice="Look into the log of the server at that time.",
)

HOST_REFUSED: Final = transport_rule(
    name="host-refused",
    title="Host or origin not allowed",
    severity=Severity.ERROR,
    what="The server refuses a request with 400, 403 or 421 because of the host or the origin that it names.",
    why="Servers compare both with a list of their own, against DNS rebinding; nothing works until the name is on it.",
    blame="The server: its list of allowed hosts and origins lacks a name under which it is used.",
    example=f"{_INITIALIZE}← 421 Misdirected Request\n  Content-Type: text/plain\n  Invalid Host header",
    clean=CLEAN_POST,
    advice="Add the name to the allowed hosts and origins of the server, or use a name that is on its list.",
)

WRONG_ENDPOINT: Final = transport_rule(
    name="wrong-endpoint",
    title="Wrong URL or transport",
    severity=Severity.ERROR,
    what="The first request to a URL, or a POST to an announced endpoint, is answered with 404, 405 or the like.",
    why="The path is wrong, or the client speaks another transport than the server offers there.",
    blame="The configuration of the client: its URL, or its transport, is not one that the server serves.",
    example=f'{_INITIALIZE}← 404 Not Found\n  {{"detail":"Not Found"}}',
    clean=CLEAN_POST,
    advice="Compare path and transport with the server's documentation.",
)

TOKEN_REFUSED: Final = transport_rule(
    name="token-refused",
    title="Refused token used again",
    severity=Severity.ERROR,
    what="The client sends a token again that the server refused with 401.",
    why="The token is expired, revoked or for another server: the answer stays the same.",
    blame="The configuration of the client, if it was given the token; the client, if it can get another.",
    example=(_LOGIN % ("aa", 1) + "← 401 Unauthorized\n") * 2,
    clean=_LOGIN % ("aa", 1) + "← 401 Unauthorized\n" + _LOGIN % ("bb", 2) + _LIST % 2,
    advice="Log in again in the client, or put a new token into its configuration.",
)

INSUFFICIENT_SCOPE: Final = transport_rule(
    name="insufficient-scope",
    title="Token lacks a scope",
    severity=Severity.ERROR,
    what="The server refuses a token with 403 because it lacks a scope, and the client comes with no other.",
    why="The token is valid, so that nothing asks for a new login; each call that needs the scope fails.",
    blame="The configuration of the client, if it was given the token; the client, if it can get another.",
    example=(
        _LOGIN % ("aa", 1)
        + '← 403 Forbidden\n  WWW-Authenticate: Bearer error="insufficient_scope", scope="files:read files:write"'
    ),
    clean=(
        _LOGIN % ("aa", 1)
        + '← 403 Forbidden\n  WWW-Authenticate: Bearer error="insufficient_scope", scope="files:read files:write"\n'
        + _LOGIN % ("bb", 2)
        + _LIST % 2
    ),
    advice="Log in again in the client and grant the scope, or put a token that has it into the configuration.",
)

EARLY_RETRY: Final = transport_rule(
    name="early-retry",
    title="Retry before Retry-After",
    what="The server answered 429 with Retry-After, and the client repeated the request sooner.",
    why="Early retries are refused as well, and some servers extend the wait for each.",
    blame="The client: it did not wait as long as the server asked it to.",
    example="→ POST /mcp\n  tools/list 1\n← 429 Too Many Requests\n  Retry-After: 5\n→ POST /mcp\n  tools/list 2\n" + _LIST % 2,
    clean=(
        "→ POST /mcp\n  tools/list 1\n← 429 Too Many Requests\n  Retry-After: 5\n· 5.0 s later\n"
        "→ POST /mcp\n  tools/list 2\n" + _LIST % 2
    ),
    advice="Wait before the next request as long as Retry-After says, which is a number of seconds or a date.",
)  # fmt: skip

RULES: Final = (HTTP_ERROR, HOST_REFUSED, WRONG_ENDPOINT, TOKEN_REFUSED, INSUFFICIENT_SCOPE, EARLY_RETRY)

_BAD_REQUEST: Final = 400
_UNAUTHORIZED: Final = 401
_FORBIDDEN: Final = 403
_NOT_FOUND: Final = 404
_NOT_ACCEPTABLE: Final = 406
_TOO_MANY: Final = 429

_lacks_scope = lazy_pattern(r"\berror\s*=\s*\"?insufficient_scope\b", re.IGNORECASE)
_scope_in = lazy_pattern(r"\bscope\s*=\s*(?:\"([^\"]*)\"|([^\s,\"]+))", re.IGNORECASE)
_description_in = lazy_pattern(r"\berror_description\s*=\s*\"([^\"]+)\"", re.IGNORECASE)
_wants_tls = lazy_pattern(rb"\bHTTP request (?:was sent )?to (?:an )?HTTPS|speaking plain HTTP to an SSL", re.IGNORECASE)


class _ServedPaths:
    """The paths of a capture that served a request, and the tokens that were refused there; one pass for all refusals.

    Numbers of transactions tell which came later: an imported capture may have no times.
    """

    def __init__(self, facts: CaptureFacts) -> None:
        self.served: dict[str, int] = {}
        """By path the number of the last request that was served there."""
        self.posted: set[str] = set()
        self.wrong: set[str] = set()
        """The paths at which nothing is served, which one finding says for all their requests."""
        self.with_token: dict[str, int] = {}
        """By path the number of the last request that had a token."""
        self.tokens_served: dict[str, dict[str, int]] = {}
        """By path and token the number of the last request that was served."""
        self.redirected = {target for _, target in lossy_redirects(facts)}
        """The paths that a redirect of a message names, where a client comes with GET and without the message."""
        self.first_session_ns = given_out_ns(facts)
        self.refused_tokens: set[tuple[str, str]] = set()
        self.well_known = [other for other in facts.capture.transactions.values() if "/.well-known/" in other.target]
        for transaction in facts.capture.transactions.values():
            if not _is_of_mcp(transaction):
                continue
            path = _path(transaction)
            if 0 < transaction.status < HTTP_ERRORS:
                self.served[path] = transaction.number
                self.tokens_served.setdefault(path, {})[credential(transaction)] = transaction.number
            if transaction.method == "POST":
                self.posted.add(path)
            if credential(transaction):
                self.with_token[path] = transaction.number


def find(facts: CaptureFacts) -> Iterator[Hit]:
    """Find refused requests."""
    refused = [
        transaction
        for transaction in facts.capture.transactions.values()
        if transaction.status >= HTTP_ERRORS and _is_of_mcp(transaction) and not _is_expected(facts, transaction)
    ]
    if not refused:
        return
    requests = _ServedPaths(facts)
    unreadable = {unpaired.message.stream for unpaired in facts.malformed}
    for transaction in refused:
        request, response = transaction.request, transaction.response
        if request is not None and response is not None and request.number not in unreadable:
            yield from _refusal(facts, requests, transaction, response)
    yield from _early_retries(facts, refused)


def _is_of_mcp(transaction: Transaction) -> bool:
    """Return whether a transaction is a POST of messages, or asks for a stream of events; OAuth's are neither."""
    return transaction.request_messages > 0 or asks_for_stream(transaction)


def _is_expected(facts: CaptureFacts, transaction: Transaction) -> bool:
    """Return whether a refusal is a probe's, or mcpspy's own."""
    exchange = facts.first_exchanges.get(transaction.number)
    is_probe = exchange is not None and exchange.outcome is Outcome.PROBE
    return is_probe or transaction.response is None or transaction.response.injected


def _refusal(facts: CaptureFacts, requests: _ServedPaths, transaction: Transaction, response: Stream) -> Iterator[Hit]:
    exchange, status = facts.first_exchanges.get(transaction.number), transaction.status
    is_page = is_page_of_gateway(transaction)
    if transaction.method == "GET" and _path(transaction) in requests.redirected:
        return
    if status in (_UNAUTHORIZED, _FORBIDDEN) and unfilled_field(transaction) is not None:
        return  # `placeholders` says why
    if status == _UNAUTHORIZED:
        yield from _unauthorized(facts, requests, transaction)
        return
    challenge = response.head.get("www-authenticate")
    if status == _FORBIDDEN and _lacks_scope.search(challenge):
        yield from _without_scope(facts, requests, transaction, challenge)
        return
    if not is_page and refuses_name(transaction):
        yield _host(facts, transaction)
        return
    if status == _FORBIDDEN and not is_page and (fault := forbidden_fault(facts, transaction)) is not None:
        yield _blamed(HTTP_ERROR, facts, transaction, f"{_answered(facts, transaction)}.", fault)
        return
    if status < HTTP_FAILURES and _ended_stream(facts, transaction) is not None:
        yield _announced(facts, transaction)
        return
    if lacks_session(transaction, exchange, requests.first_session_ns):
        return
    if (transaction.scope.kind is ScopeKind.SESSION and status == _NOT_FOUND) or refuses_session(transaction):
        return
    if status == _NOT_ACCEPTABLE and transaction.method == "GET":
        yield _not_acceptable(facts, transaction)
        return
    if transaction.method == "GET" and status < HTTP_FAILURES and _path(transaction) in requests.posted:
        return  # it offers no such stream, or wants something first that the POSTs show
    is_announced = transaction.scope.kind is ScopeKind.STREAM
    is_place = status in NO_SUCH_PLACE and (not is_page or not is_announced or bool(_prefix_of(facts, transaction)))
    is_place = is_place or _names_no_session(requests, transaction) or bool(_wants_tls.search(transaction.refusal))
    if is_place and not _is_known_method(exchange):
        place = _wrong_place(facts, requests, transaction, exchange)
        if place is not None:
            requests.wrong.add(_path(transaction))
            yield place
        if _path(transaction) in requests.wrong:
            return
    if transaction.response_messages or status == _TOO_MANY:
        return
    yield _http_error(facts, transaction)


def _not_acceptable(facts: CaptureFacts, transaction: Transaction) -> Hit:
    """Blame the server that refuses a stream of events to a client that accepts one; it was asked because its head says so."""
    what = f"{_answered(facts, transaction)}, though the request accepts text/event-stream."
    blame = "The server: the Accept field of the request names what a stream of events is."
    advice = "Answer GET with a stream of events, or with 405 if there is none; look at how the Accept field is compared."
    return hit_on_transaction(
        HTTP_ERROR, facts, transaction, what, SERVER, blame=blame, advice=advice, severity=Severity.WARNING
    )


def _is_known_method(exchange: Exchange | None) -> bool:
    """Return whether an answer in JSON-RPC shows that MCP is spoken here: 404 says in the modern era that a method is unknown."""
    response = None if exchange is None else exchange.response
    return response is not None and (response.kind is Kind.RESULT or b"-32601" in response.raw)


def _http_error(facts: CaptureFacts, transaction: Transaction) -> Hit:
    fault = error_fault(transaction)
    details = HitDetails(group=str(transaction.status), blame=fault.blame, advice=fault.advice)
    if not transaction.request_messages or transaction.number not in facts.first_exchanges:
        details["severity"] = Severity.WARNING
    what = f"{_answered(facts, transaction)}{circumstance(transaction)}."
    return hit_on_transaction(HTTP_ERROR, facts, transaction, what, fault.culprit, **details)


def _host(facts: CaptureFacts, transaction: Transaction) -> Hit:
    named = refused_names(transaction)
    what = f"{_answered(facts, transaction)}; the request named {named}."
    return _blamed(HOST_REFUSED, facts, transaction, what, name_fault(transaction, named), named)


def _wrong_place(
    facts: CaptureFacts, requests: _ServedPaths, transaction: Transaction, exchange: Exchange | None
) -> Hit | None:
    """Return a finding if nothing was ever served at a path; None if something was."""
    path, method, status = _path(transaction), transaction.method, transaction.status
    if transaction.scope.kind is ScopeKind.STREAM and method == "POST":
        return _announced(facts, transaction)
    if path in requests.served or (exchange is not None and exchange.method not in OPENINGS):
        return None
    blame = advice = ""
    culprit: str = CONFIGURATION
    if _wants_tls.search(transaction.refusal):
        _, blame, advice = WANTS_TLS
    elif (redirect := redirect_to(facts, transaction)) is not None:
        culprit, blame = SERVER, f"The server, or a gateway in front of it: its redirect from {redirect.target} names this URL."
        advice = "Correct the location of the redirect, or give the client the URL at which the server is."
    elif is_page_of_gateway(transaction):
        blame, advice = place_fault(transaction)
    elif method == "GET" and status != _NOT_FOUND:
        advice = "Set the transport of the client to Streamable HTTP (type http) with the same URL, which takes no GET before a POST."
    elif method == "GET":
        advice = f"Try Streamable HTTP (type http) with the path /mcp, or another path than {path} for HTTP+SSE."
    elif path.rstrip("/").endswith("/sse"):
        advice = (
            "This is a path of HTTP+SSE: set the transport of the client to sse, or try the path /mcp with Streamable HTTP."
        )
    elif status == _NOT_FOUND:
        tries = "/mcp" if path.rstrip("/") != "/mcp" else "/"
        advice = f"Try the path {tries}; or /sse with the transport sse, if the server is an older one."
    else:
        advice = "The path exists and takes no POST: try /mcp, or the transport sse (HTTP+SSE) with this path."
    what = f"{_answered(facts, transaction)}, and nothing was served at {path}."
    return hit_on_transaction(WRONG_ENDPOINT, facts, transaction, what, culprit, group=path, blame=blame, advice=advice)


def _names_no_session(requests: _ServedPaths, transaction: Transaction) -> bool:
    """Tell whether a session was missed where no client can name one: on a first GET, which opens HTTP+SSE, and at its endpoint."""
    is_alone = transaction.method == "GET" and _path(transaction) not in requests.posted
    is_announced = transaction.method == "POST" and transaction.scope.kind is ScopeKind.STREAM
    return (is_alone or is_announced) and transaction.status == _BAD_REQUEST and speaks_of_session(transaction)


def _ended_stream(facts: CaptureFacts, transaction: Transaction) -> Transaction | None:
    """Return the stream of HTTP+SSE that announced the endpoint of a POST, if it had ended before."""
    if transaction.scope.kind is not ScopeKind.STREAM or transaction.method != "POST":
        return None
    stream = facts.capture.transactions.get(transaction.scope.stream)
    return stream if stream is not None and stream.ended_ns is not None and stream.ended_ns <= transaction.at_ns else None


def _announced(facts: CaptureFacts, transaction: Transaction) -> Hit:
    """Return a finding about a POST to the endpoint of a stream of HTTP+SSE."""
    stream = facts.capture.transactions.get(transaction.scope.stream)
    what = f"{_answered(facts, transaction)}, at the endpoint that the stream announced"
    if (ended := _ended_stream(facts, transaction)) is not None and ended.ended_ns is not None:
        waited = seconds(transaction.at_ns - ended.ended_ns)
        blame = "The client: an endpoint ends with its stream, and it has to open another."
        advice = "Open the stream again after it ends, and POST to the endpoint that it announces then."
        return hit_on_transaction(
            WRONG_ENDPOINT, facts, transaction, f"{what}; the stream had ended {waited} before.", CLIENT, group="ended",
            blame=blame, advice=advice,
        )  # fmt: skip
    prefix = _prefix_of(facts, transaction)
    if stream is not None and prefix:
        what += f"; its path lacks {quoted(prefix)}, the beginning of {_path(stream)}."
        blame = (
            "The configuration of the server, or of a gateway in front of it that takes the beginning off the path: "
            "the server announces its endpoint without it."
        )
        advice = f"Set the server's root path (base URL) to {prefix}, or let the gateway pass the path on unchanged."
        return hit_on_transaction(
            WRONG_ENDPOINT, facts, transaction, what, CONFIGURATION, group="prefix", blame=blame, advice=advice
        )
    blame = "The server: it announced this endpoint itself, and the stream is open."
    advice = (
        "Check the path under which the server is mounted; with several processes, GET and POST have to reach the same one."
    )
    return hit_on_transaction(
        WRONG_ENDPOINT, facts, transaction, f"{what}.", SERVER, group="announced", blame=blame, advice=advice
    )


def _prefix_of(facts: CaptureFacts, transaction: Transaction) -> str:
    """Return the beginning of the path that an announced endpoint lacks, where nothing was found at it; else empty."""
    if transaction.scope.kind is not ScopeKind.STREAM or transaction.method != "POST" or transaction.status != _NOT_FOUND:
        return ""
    stream = facts.capture.transactions.get(transaction.scope.stream)
    return "" if stream is None else _lost_prefix(_path(stream), _path(transaction))


def _lost_prefix(stream: str, endpoint: str) -> str:
    """Return the folder of a stream's path if the endpoint is not below it; empty if it is, or if there is no folder."""
    folder = stream.rstrip("/").rpartition("/")[0]
    return "" if endpoint.startswith(f"{folder}/") else folder


def _unauthorized(facts: CaptureFacts, requests: _ServedPaths, transaction: Transaction) -> Iterator[Hit]:
    """Find tokens that are used again after a 401, and refusals after which the client did not log in."""
    path, token = _path(transaction), credential(transaction)
    if transaction.request is not None and transaction.request.head.get("dpop"):
        return  # `statuses` says why that cannot work
    is_again = (path, token) in requests.refused_tokens
    requests.refused_tokens.add((path, token))
    if token and is_again:
        challenge = "" if transaction.response is None else transaction.response.head.get("www-authenticate")
        what = f"{_answered(facts, transaction)}, with a token that was refused before{_described(challenge)}."
        yield _blamed(TOKEN_REFUSED, facts, transaction, what, token_fault(facts, transaction))
    elif not is_again and max(requests.served.get(path, 0), requests.with_token.get(path, 0)) <= transaction.number:
        yield _without_login(facts, requests, transaction, token)


def _without_login(facts: CaptureFacts, requests: _ServedPaths, transaction: Transaction, token: str) -> Hit:
    """Make a finding about a 401 after which the client came with no other token; one that no login can follow needs a setting."""
    looked = [other for other in requests.well_known if other.number > transaction.number]
    challenge = "" if transaction.response is None else transaction.response.head.get("www-authenticate")
    told = f"{_answered(facts, transaction)}{_described(challenge)}: the request had {'a token' if token else 'no token'}"
    what = f"{told}, and the client sent no other."
    can_log_in = "resource_metadata" in challenge.lower() or any(0 < other.status < HTTP_ERRORS for other in looked)
    culprit: str = CLIENT
    if token:
        culprit, blame, advice = token_fault(facts, transaction)
    elif requests.with_token:
        what = f"{told}, and others of the client have one."
        blame, advice = "The client: it left out the token that it has.", "Send the token with every request to the server."
    elif not can_log_in:
        lacks = "does not say where to log in (resource_metadata)" if challenge else "has no field WWW-Authenticate"
        culprit = CONFIGURATION
        blame = f"The configuration of the client: it has no token or key, and the answer {lacks}, so that no login can begin."
        advice = (
            "Put the token or key that the server wants into the client's entry; a server with a login answers with the field."
        )
    else:
        blame = "The client: it did not log in, or it was given no token."
        advice = "Log in with the client, or put a token into its configuration."
    return hit_on_transaction(
        HTTP_ERROR, facts, transaction, what, culprit, group=_path(transaction), blame=blame, advice=advice,
        severity=Severity.NOTE if looked else Severity.WARNING,
    )  # fmt: skip


def _described(challenge: str) -> str:
    """Quote the reason that a challenge gives (RFC 6750, section 3)."""
    match = _description_in.search(challenge)
    return "" if match is None else f"; its WWW-Authenticate says {quoted(match[1])}"


def _without_scope(facts: CaptureFacts, requests: _ServedPaths, transaction: Transaction, challenge: str) -> Iterator[Hit]:
    """Find a token that lacks a scope, unless another token is used after it."""
    path, token = _path(transaction), credential(transaction)
    others = (number for other, number in requests.tokens_served.get(path, {}).items() if other != token)
    if max(others, default=0) > transaction.number:
        return
    match = _scope_in.search(challenge)
    scope = "another scope" if match is None else f"the scope {quoted(match[1] or match[2])}"
    what = f"{_answered(facts, transaction)}: its token lacks a scope; the server wants {scope}."
    yield _blamed(INSUFFICIENT_SCOPE, facts, transaction, what, scope_fault(facts, scope), scope)


def _early_retries(facts: CaptureFacts, refused: list[Transaction]) -> Iterator[Hit]:
    """Find requests that were repeated sooner than the server allowed, and those that were refused and not repeated."""
    limited = [transaction for transaction in refused if transaction.status == _TOO_MANY]
    if not limited:
        return
    repeats: dict[tuple[str, ...], list[Transaction]] = {}
    for transaction in facts.capture.transactions.values():
        if transaction.number in facts.first_exchanges:
            repeats.setdefault(_repeat_key(facts, transaction), []).append(transaction)
    hasty: set[tuple[str, ...]] = set()
    """Requests that were repeated too early: that their last repetition was refused too is no separate fault."""
    following = {first.number: then for together in repeats.values() for first, then in pairwise(together)}
    for transaction in limited:
        then, response = following.get(transaction.number), transaction.response
        assert response is not None
        wait_ns = _retry_after_ns(facts, response)
        began_ns = response.at_ns
        if then is not None and then.at_ns - began_ns < wait_ns:
            waited = f"{seconds(then.at_ns - began_ns)} instead of {seconds(wait_ns)}"
            what = f"{_answered(facts, transaction)}, and repeated after {waited}."
            hasty.add(_repeat_key(facts, transaction))
            yield hit_on_transaction(EARLY_RETRY, facts, transaction, what, CLIENT, group=_path(transaction))
        elif then is None and not transaction.response_messages and _repeat_key(facts, transaction) not in hasty:
            yield _http_error(facts, transaction)


def _retry_after_ns(facts: CaptureFacts, response: Stream) -> int:
    """Return the time span that Retry-After asks for; 0 if there is none."""
    header = facts.capture.header
    return wait_ns(response.head, None if header is None else header.wall_ns + response.at_ns - facts.capture.shift_ns)


def _repeat_key(facts: CaptureFacts, transaction: Transaction) -> tuple[str, ...]:
    """Return what two requests have in common if one repeats the other: call, path, credentials, session."""
    exchange = facts.first_exchanges[transaction.number]
    scope = transaction.scope.session or transaction.scope.client
    return call_name(exchange), transaction.target, credential(transaction), scope


def _answered(facts: CaptureFacts, transaction: Transaction) -> str:
    """Say what was answered with which status and which text."""
    exchange = facts.first_exchanges.get(transaction.number)
    name = f"{transaction.method} {transaction.target}" if exchange is None else call_name(exchange)
    response = transaction.response
    reason = "" if response is None else response.head.reason
    text = f" and {quoted(transaction.refusal)}" if transaction.refusal.strip() else " and no text"
    return f"{name} was answered with {f'{transaction.status} {reason}'.rstrip()}{text}"


def _path(transaction: Transaction) -> str:
    return transaction.target.partition("?")[0]


def _blamed(
    rule: Rule, facts: CaptureFacts, transaction: Transaction, what: str, fault: tuple[str, str, str], group: str = ""
) -> Hit:
    culprit, blame, advice = fault
    return hit_on_transaction(
        rule, facts, transaction, what, culprit, blame=blame, advice=advice, group=group or _path(transaction)
    )
