"""The culprit of a request that was refused with an HTTP status: one response in, a culprit with its reason and advice out.

    403 or 421 that speaks of hosts or origins, 400 that calls the host invalid     the server's list of allowed names
    a gateway's page or name, 502, 504                                              the gateway
    500 and more, also as a page of an application's framework                      the server
    406 to a request without both types in Accept, 415 to one of another type,
    400 that names the Content-Type of such a request                               the client
    other statuses below 500                                                        unclear

Of a refused token or key:

    it worked before, and the client can get another                                the client, which did not
    it worked before, and nothing shows a login                                     the configuration: it expired, or was revoked
    it never worked, and came out of a login                                        unclear: the client, or the token's issuer
    it never worked                                                                 the configuration

A client can get another if a login was seen, if it changed the token within a session, or if the server says where to log in.
"""

import re
from bisect import bisect_left
from typing import Final

from ....lazy_pattern import lazy_pattern
from ....records import CLIENT, SERVER
from ...http.transaction import Transaction
from ...model import HTTP_ERRORS, HTTP_FAILURES
from ..facts import CaptureFacts
from ..gateway_signs import gateway_field, is_application, is_block_page, is_gateway_page, is_product
from ..rule import CONFIGURATION
from ..words import quoted, seconds
from .placeholders import AUTHORIZATION, credential
from .sessions import GATEWAY
from .unreachable import Fault

NO_SUCH_PLACE: Final = (404, 405, 410, 501)
"""Nothing is here, or nothing that takes this method; 501 is what plain file servers say of POST."""

_BAD_REQUEST: Final = 400
_FORBIDDEN: Final = 403
_NOT_ACCEPTABLE: Final = 406
_TOO_LARGE: Final = 413
_UNSUPPORTED_TYPE: Final = 415
_MISDIRECTED: Final = 421
_TOO_MANY: Final = 429
_UNAVAILABLE: Final = 503
_GATEWAY_TIMEOUT: Final = 504
_ORIGIN_TIMEOUT: Final = 524
"""Cloudflare's name for 504."""
_BY_GATEWAYS: Final = (502, _GATEWAY_TIMEOUT)
"""Statuses that only a gateway sends, by their meaning."""

_TYPES: Final = ("application/json", "text/event-stream")
_OTHER_NAME: Final = ", or use a name that it allows, such as 127.0.0.1 or localhost with its port"
_LOG_ADVICE: Final = "Look into the log of the server at that time."
_PLACE_ADVICE: Final = (
    "Check the path of the client's URL, and that the gateway passes it on to the server (nginx: location and proxy_pass)."
)
_TIME_ADVICE: Final = (
    "Raise the time that the gateway waits for the server (nginx: proxy_read_timeout) above what the call takes, "
    "or make the call faster, a stream of events, or a task."
)
_GATEWAY_ADVICE: Final = {
    404: _PLACE_ADVICE,
    405: _PLACE_ADVICE,
    410: _PLACE_ADVICE,
    502: "Check that the server behind the gateway runs, and that the gateway has its right address.",
    _UNAVAILABLE: "Check that the server behind the gateway runs and takes more connections; the gateway has none to pass it on to.",
    _GATEWAY_TIMEOUT: _TIME_ADVICE,
    _ORIGIN_TIMEOUT: _TIME_ADVICE,
    _TOO_MANY: "Ask less often, and wait longer after each 429; or raise the server's limit, and let it name a time (Retry-After).",
    _TOO_LARGE: "Raise the limit for the bodies of requests (nginx: client_max_body_size), or send less in one call.",
}
"""Advice about an error of a gateway, by its status."""
_OTHER_ADVICE: Final = "Read the gateway's log and limits, and check that the server behind it runs."
_BLOCKED_ADVICE: Final = (
    "Find the rule that this request met in the log of the gateway or firewall, and exempt the path of the server from it."
)

_names_host = lazy_pattern(rb"\b(?:hosts?|origins?|dns[ -]rebinding)\b", re.IGNORECASE)
_calls_host_invalid = lazy_pattern(
    rb"\b(?:invalid|disallowed|unknown|unrecogni[sz]ed|untrusted|blocked|bad)[ _-]?(?:http[ _-])?host\b|"
    rb"\bhost\b(?:[ _-]?(?:header|name))?[^\n.]{0,80}\bnot (?:allowed|permitted|trusted)\b",
    re.IGNORECASE,
)
_names_type = lazy_pattern(rb"content[- ]type", re.IGNORECASE)
_names_session = lazy_pattern(rb"session|\btransports?\b", re.IGNORECASE)
_LOGIN_PATHS: Final = ("/token", "/register", "/authorize")
_names_credential = lazy_pattern(
    rb"\b(?:tokens?|api[ _-]?keys?|credentials?|bearer|unauthori[sz]ed|(?:not |un)authenticated|authentication|"
    rb"invalid[ _-](?:key|auth\w*)|log-?in)\b",
    re.IGNORECASE,
)
_says_nothing = lazy_pattern(
    rb"\s*(?:\{\s*\"(?:error|message|detail)\"\s*:\s*)?\"?(?:forbidden|access denied)?[.\"}\s]*", re.IGNORECASE
)
_html = lazy_pattern(rb"\s*<(?:!doctype html|html)", re.IGNORECASE)


def refuses_name(transaction: Transaction) -> bool:
    """Tell whether a request was refused because of the host or the origin that it names."""
    status, body = transaction.status, transaction.refusal
    if status == _BAD_REQUEST:
        return bool(_calls_host_invalid.search(body))
    return status == _MISDIRECTED or (status == _FORBIDDEN and bool(_names_host.search(body)))


def refused_names(transaction: Transaction) -> str:
    """Name the host and the origin of a refused request: those that its refusal speaks of."""
    assert transaction.request is not None
    request, refusal = transaction.request, transaction.refusal.lower()
    seen = (request.forwarded or request.raw_head).lower()
    names = [
        f"the {name} {quoted(match[1])}"
        for name in ("host", "origin")
        if (match := re.search(rb"\n%b:[ \t]*([^\r\n]+)" % name.encode(), seen)) is not None
    ]
    if transaction.status == _FORBIDDEN and len(names) > 1 and b"host" not in refusal and b"rebinding" not in refusal:
        names = names[1:]
    elif b"origin" not in refusal and b"rebinding" not in refusal:
        names = names[:1]
    return " and ".join(names)


def name_fault(transaction: Transaction, named: str) -> Fault:
    """Blame the server's list of allowed names, or what a gateway made of the name."""
    sign = gateway_field(transaction.response)
    if sign and named.startswith("the host"):
        blame = (
            "The configuration: the server does not allow the host that reaches it. The gateway in front of it may have changed the "
            f"client's: {sign}."
        )
        advice = (
            "Add the host that the gateway sends (nginx: proxy_set_header Host) to what the server allows, or let the gateway send "
            f"one that it allows; the client sent {named}."
        )
        return Fault(CONFIGURATION, blame, advice)
    is_loopback = any(name in named for name in ("localhost", "127.0.0.1", "[::1]"))
    return Fault(SERVER, "", f"Add {named} to what the server allows{'' if is_loopback else _OTHER_NAME}.")


def is_page_of_gateway(transaction: Transaction) -> bool:
    """Return whether a gateway answered: by its page, by its name, or by a status that a server itself does not send."""
    status, body, response = transaction.status, transaction.refusal, transaction.response
    assert response is not None
    is_html = bool(_html.match(body)) or response.head.media_type == "text/html"
    if is_html and (is_gateway_page.search(body) or (status not in NO_SUCH_PLACE and is_block_page.search(body))):
        return True
    if status <= HTTP_FAILURES or status in NO_SUCH_PLACE:  # 500 is the server's own
        return False
    is_strange = is_html and not is_application(response)
    return is_strange or status in _BY_GATEWAYS or bool(is_product.search(response.head.get("server")))


def place_fault(transaction: Transaction) -> tuple[str, str]:
    """Return the reason and the advice where a gateway has nothing at a URL."""
    blame = f"The configuration: the gateway in front of the server has nothing at this path: {_sign_of_gateway(transaction)}."
    return blame, _PLACE_ADVICE


def speaks_of_session(transaction: Transaction) -> bool:
    """Tell whether a refusal says that no session was found; some servers call it a transport."""
    return bool(_names_session.search(transaction.refusal))


def error_fault(transaction: Transaction) -> Fault:
    """Say whose fault an error status is that came without a message."""
    response, status = transaction.response, transaction.status
    assert response is not None
    if is_page_of_gateway(transaction):
        blame = f"A gateway in front of the server, such as a reverse proxy: {_sign_of_gateway(transaction)}."
        return Fault(GATEWAY, blame, _GATEWAY_ADVICE.get(status, _BLOCKED_ADVICE if status < HTTP_FAILURES else _OTHER_ADVICE))
    if status >= HTTP_FAILURES:
        return Fault(SERVER, f"The server: {status} says that it failed, and its text is no page of a gateway.", _LOG_ADVICE)
    if (fault := _type_fault(transaction)) is not None:
        return fault
    if status == _TOO_MANY:
        wait = response.head.get("retry-after")
        named = f"asks to wait ({quoted(f'Retry-After: {wait}')})" if wait else "names no time to wait (Retry-After)"
        blame = f"Unclear: the client asks too often, or the server's limit is too low; the answer {named}."
        return Fault("unclear", blame, _GATEWAY_ADVICE[status])
    blame = f"Unclear: the client, whose request may be wrong, or the server, which does not take it: {status} says no more."
    advice = "Read the text of the response, and compare the request's header fields and body with what it asks for."
    return Fault("unclear", blame, _GATEWAY_ADVICE[status] if status == _TOO_LARGE else advice)


def _sign_of_gateway(transaction: Transaction) -> str:
    server = "" if transaction.response is None else transaction.response.head.get("server")
    if is_product.search(server):
        return f"its Server field is {quoted(server)}"
    if transaction.status in _BY_GATEWAYS and not _html.match(transaction.refusal):
        return f"only gateways answer {transaction.status}"
    return "its page shows it"


def _type_fault(transaction: Transaction) -> Fault | None:
    """Blame the client for a type that it does not accept, or that it sends, where the status says that it is this type."""
    request = transaction.request
    if request is None or transaction.method != "POST":
        return None
    if transaction.status == _NOT_ACCEPTABLE:
        accept = request.head.get("accept").lower()
        lacking = [name for name in _TYPES if name not in accept and "*/*" not in accept]
        if lacking:
            blame = f"The client: its Accept field lacks {' and '.join(lacking)}, and every POST has to list both."
            return Fault(CLIENT, blame, f"Send Accept: {', '.join(_TYPES)} with every POST.")
    is_of_type = transaction.status == _UNSUPPORTED_TYPE or (
        transaction.status == _BAD_REQUEST and bool(_names_type.search(transaction.refusal))
    )
    if is_of_type and request.head.media_type != _TYPES[0]:
        sent = quoted(request.head.get("content-type"))
        blame = f"The client: it sent a message as {sent}, and not as {_TYPES[0]}."
        return Fault(CLIENT, blame, f"Send Content-Type: {_TYPES[0]} with every POST.")
    return None


def circumstance(transaction: Transaction) -> str:
    """Say what a limit of time or of size met: how long the request waited, or how large it was."""
    if transaction.status in (_GATEWAY_TIMEOUT, _ORIGIN_TIMEOUT) and transaction.response is not None:
        return f", after {seconds(transaction.response.at_ns - transaction.at_ns)}"
    if transaction.status == _TOO_LARGE and transaction.request is not None and transaction.request.body_bytes:
        return f"; the body of the request has {transaction.request.body_bytes:,} bytes"
    return ""


class _Evidence:
    """The tokens of a capture: when each was used first and when it was served, the first login, and whether a session has two."""

    def __init__(self, facts: CaptureFacts) -> None:
        self.first_ns: dict[str, int] = {}
        self.login_ns: int | None = None
        self.changes = False
        self._served: dict[str, list[int]] = {}
        of_session: dict[str, str] = {}
        for transaction in facts.capture.transactions.values():
            is_served = 0 < transaction.status < HTTP_ERRORS
            if is_served and self.login_ns is None and _is_of_login(transaction):
                self.login_ns = transaction.at_ns
            if not (token := credential(transaction)):
                continue
            self.first_ns.setdefault(token, transaction.at_ns)
            session = transaction.scope.session
            self.changes = self.changes or bool(session and of_session.setdefault(session, token) != token)
            if is_served and (transaction.request_messages or transaction.is_stream):
                self._served.setdefault(token, []).append(transaction.at_ns)

    def served_ns(self, token: str, until_ns: int) -> int | None:
        """Return when a message with this token was last served before; None if none was."""
        times = self._served.get(token, [])
        at = bisect_left(times, until_ns)
        return times[at - 1] if at else None


def _evidence(facts: CaptureFacts) -> _Evidence:
    """Return the evidence of a capture, which is gathered once."""
    known: _Evidence | None = facts.shared.get(_Evidence)
    if known is None:
        known = facts.shared[_Evidence] = _Evidence(facts)
    return known


def token_fault(facts: CaptureFacts, refused: Transaction) -> Fault:
    """Say whose fault it is that a token was refused."""
    token, challenge, evidence = credential(refused), _challenge(refused), _evidence(facts)
    name = "token" if refused.request is not None and refused.request.head.get(AUTHORIZATION) else "key"
    served_ns, login_ns = evidence.served_ns(token, refused.at_ns), evidence.login_ns
    can_renew = login_ns is not None or evidence.changes or "resource_metadata" in challenge.lower()
    if served_ns is not None:
        worked = f"the {name} worked until {seconds(refused.at_ns - served_ns)} before, so that it expired or was revoked"
        if can_renew:
            advice = "Renew the token after 401: with the refresh token, or by a new login; or put a new one into the entry."
            return Fault(CLIENT, f"The client: {worked}, and the client came with no other.", advice)
        blame = f"The configuration of the client: {worked}, and nothing shows a login by which the client could get another."
        return Fault(CONFIGURATION, blame, f"Put a new {name} into the client's entry for the server.")
    if login_ns is not None and login_ns < evidence.first_ns[token]:
        blame = (
            "Unclear: the client got this token by a login, and the server does not take it. The client may have asked for another "
            "resource, or the server and the issuer of the token do not agree."
        )
        advice = "Compare the resource and the audience of the token with what the server expects, and read the server's log."
        return Fault("unclear", blame, advice)
    blame = f"The configuration of the client: the {name} that it was given never worked here: it is wrong, expired or foreign."
    advice = f"Put a valid {name} into the client's entry for the server"
    if "resource_metadata" in challenge.lower():
        advice += ", or take it out there, so that the client logs in"
    return Fault(CONFIGURATION, blame, f"{advice}.")


def scope_fault(facts: CaptureFacts, scope: str) -> Fault:
    """Say whose fault it is that a token lacks a scope: a client that logs in has to ask for it."""
    evidence = _evidence(facts)
    if evidence.login_ns is not None or evidence.changes:
        blame = "The client: it can log in, and after this answer it has to ask for a token with the scope."
        return Fault(CLIENT, blame, f"Log in again in the client and grant {scope}.")
    blame = "The configuration of the client: the token that it was given lacks the scope. A client that logs in asks for it."
    advice = f"Put a token that has {scope} into the client's entry, or log in again in the client and grant it."
    return Fault(CONFIGURATION, blame, advice)


def forbidden_fault(facts: CaptureFacts, refused: Transaction) -> Fault | None:
    """Say whose fault a 403 is that no scope explains; None if it says nothing of tokens, or if the token is known."""
    text = refused.refusal + _challenge(refused).encode("utf-8", "replace")
    names, token, evidence = bool(_names_credential.search(text)), credential(refused), _evidence(facts)
    if not token:
        if not names or evidence.first_ns:
            return None
        blame = "The configuration of the client: it has no token or key, and the server wants one."
        return Fault(CONFIGURATION, blame, "Put the token or key that the server wants into the client's entry.")
    if evidence.served_ns(token, refused.at_ns) is not None or not (names or _says_nothing.fullmatch(text)):
        return None
    return token_fault(facts, refused)


def _challenge(transaction: Transaction) -> str:
    return "" if transaction.response is None else transaction.response.head.get("www-authenticate")


def _is_of_login(transaction: Transaction) -> bool:
    path = transaction.target.partition("?")[0].rstrip("/")
    is_metadata = "/.well-known/oauth" in path or "/.well-known/openid" in path
    return is_metadata or (not transaction.request_messages and path.endswith(_LOGIN_PATHS))
