"""Findings about responses that a browser does not let a page of another origin read.

Source: Fetch standard, section 3.2 (CORS protocol). A browser is known by the fields that only it sends, or by its preflight.
A client that names an origin and is no browser reads on; where it does not, it may be one.
"""

from collections.abc import Iterator
from typing import Final

from ....records import SERVER
from ...http.head import SESSION, Head
from ...http.transaction import Stream, Transaction
from ..facts import CaptureFacts
from ..hits import hit_on_stream
from ..rule import Hit, Severity, transport_rule
from ..words import quoted

_OPENING: Final = (
    "→ POST /mcp\n  Origin: http://localhost:5173\n  Sec-Fetch-Mode: cors\n"
    '  initialize 0 {"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"page","version":"1"}}\n'
    "← 200 OK\n  Mcp-Session-Id: 5f2c\n"
)
_RESULT: Final = '  result 0 {"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"server","version":"1"}}'

BROWSER_CANNOT_READ: Final = transport_rule(
    name="browser-cannot-read",
    title="Response that a browser withholds",
    severity=Severity.ERROR,
    what="A page of another origin sent a request, and the response lacks the CORS fields that let the page read it.",
    why="The browser hides the response, or its session, from the page, which sees only a network error.",
    blame="The server, or a proxy before it: the response has to name the page's origin, and the fields that the page may read.",
    example=f"{_OPENING}{_RESULT}",
    clean=(
        f"{_OPENING}  Access-Control-Allow-Origin: http://localhost:5173\n"
        f"  Access-Control-Expose-Headers: Mcp-Session-Id\n{_RESULT}"
    ),
    advice=(
        "Send Access-Control-Allow-Origin with the page's origin, Access-Control-Expose-Headers: Mcp-Session-Id, "
        "and answer OPTIONS with the methods and fields that clients use."
    ),
)

RULES: Final = (BROWSER_CANNOT_READ,)

_ORIGIN: Final = b"\norigin:"
_SAME_ORIGIN: Final = "same-origin"
_HTTP_ERRORS: Final = 400
_SIMPLE: Final = frozenset({"accept", "accept-language", "content-language", "range"})
"""Request fields that need no permission; Content-Type does, because JSON is none of the three types that do not."""


def find(facts: CaptureFacts) -> Iterator[Hit]:
    """Find responses to pages of other origins that a browser withholds from them."""
    by_origin: dict[str, list[tuple[Transaction, Head]]] = {}
    for transaction in facts.capture.transactions.values():
        request = transaction.request
        if request is not None and _has_origin(request.raw_head):
            head = request.head
            if _is_elsewhere(head):
                by_origin.setdefault(head.get("origin"), []).append((transaction, head))
    for origin, requests in by_origin.items():
        is_browser = any(_is_browsers(head) for _, head in requests)
        for transaction, head in requests if is_browser else requests[:1]:
            response = transaction.response
            wrong = "" if response is None or response.injected else _wrong(transaction, response, head)
            if not wrong or response is None or not (is_browser or _stopped(requests)):
                continue
            yield _hit(facts, transaction, response, origin, wrong, severity=None if is_browser else Severity.WARNING)


def hides_session(transaction: Transaction | None) -> bool:
    """Tell whether a browser does not show a page the session that a response has."""
    if transaction is None or transaction.request is None or transaction.response is None:
        return False
    head = transaction.request.head
    return bool(head.get("origin")) and _is_elsewhere(head) and bool(_hidden_session(transaction.response))


def _wrong(transaction: Transaction, response: Stream, head: Head) -> str:
    """Say in a few words why the page of another origin cannot read a response; empty if it can."""
    wrong = _missing_permission(response, head.get("origin"))
    if wrong:
        return wrong
    if transaction.method == "OPTIONS" and head.get("access-control-request-method"):
        return _refused_preflight(head, response)
    return _hidden_session(response) if transaction.status < _HTTP_ERRORS else ""


def _has_origin(head: bytes) -> bool:
    return _ORIGIN in head.lower()


def _is_elsewhere(head: Head) -> bool:
    """Tell whether a request names the origin of a page, and the page is of another origin than the server."""
    origin = head.get("origin")
    is_page = origin.startswith(("http://", "https://")) and head.get("sec-fetch-site") != _SAME_ORIGIN
    return is_page and origin.partition("://")[2] != head.get("host")


def _is_browsers(head: Head) -> bool:
    """Tell whether only a browser sends such a head."""
    is_preflight = head.method == "OPTIONS" and bool(head.get("access-control-request-method"))
    return is_preflight or bool(head.get("sec-fetch-mode")) or head.get("user-agent").startswith("Mozilla/")


def _stopped(requests: list[tuple[Transaction, Head]]) -> bool:
    """Tell whether a client did not go on after a result, or went on without the session that came with it."""
    first = requests[0][0]
    if first.status >= _HTTP_ERRORS:
        return False
    return all(
        first.response is not None and not head.get(SESSION) and first.response.head.get(SESSION) for _, head in requests[1:]
    )


def _missing_permission(response: Stream, origin: str) -> str:
    allowed = [value for name, value in response.head.fields if name.lower() == "access-control-allow-origin"]
    if not allowed:
        return "has no Access-Control-Allow-Origin"
    if len(allowed) > 1:
        return f"has Access-Control-Allow-Origin {len(allowed)} times"
    return "" if allowed[0] in ("*", origin) else f"allows the origin {quoted(allowed[0])} only"


def _refused_preflight(head: Head, response: Stream) -> str:
    """Say what a preflight asked for that its answer does not allow; empty if it allows all."""
    answer = response.head
    if not 200 <= answer.status < 300:
        return f"has the status {answer.status}"
    method, methods = head.get("access-control-request-method"), _names(answer.get("access-control-allow-methods"))
    if method not in ("GET", "HEAD", "POST") and not {method.lower(), "*"} & methods:
        return f"does not allow the method {method[:20]}"
    fields, allowed = _names(head.get("access-control-request-headers")), _names(answer.get("access-control-allow-headers"))
    refused = fields - allowed - _SIMPLE
    if "*" in allowed:
        refused &= {"authorization"}
    return f"does not allow the field {min(refused)[:40]}" if refused else ""


def _hidden_session(response: Stream) -> str:
    head = response.head
    exposed = _names(head.get("access-control-expose-headers"))
    if not head.get(SESSION) or exposed & {SESSION, "*"}:
        return ""
    return "has a session, but does not name Mcp-Session-Id in Access-Control-Expose-Headers"


def _names(value: str) -> set[str]:
    return {name.strip().lower() for name in value.split(",") if name.strip()}


def _hit(
    facts: CaptureFacts, transaction: Transaction, response: Stream, origin: str, wrong: str, *, severity: Severity | None
) -> Hit:
    page = quoted(origin)
    what = f"The response to {transaction.method} {transaction.target} of a page at {page} {wrong}."
    return hit_on_stream(BROWSER_CANNOT_READ, facts, transaction, response, what, SERVER, group=wrong, severity=severity)
