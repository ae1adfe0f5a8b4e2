"""Findings about placeholders in the place of credentials: a variable that was not filled in, or a scheme that is there twice.

Only the first requests of each session and those that were refused are looked at: a placeholder of the configuration is in all.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from ....lazy_pattern import lazy_pattern
from ....records import PLACEHOLDER_PATTERN
from ...http.transaction import Stream, Transaction
from ...model import HTTP_ERRORS
from ..facts import CaptureFacts, ScopeKey, scope_key
from ..hits import hit_on_record, hit_on_stream
from ..rule import CONFIGURATION, Hit, Severity, transport_rule

_ASK: Final = (
    "· HTTP\n→ POST /mcp\n  Authorization: Bearer %s\n"
    '  initialize 0 {"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"client","version":"1"}}\n'
)

PLACEHOLDER_SENT: Final = transport_rule(
    name="placeholder-sent",
    title="Placeholder in place of a credential",
    severity=Severity.ERROR,
    what=(
        "A header field for a credential, or the server's command, holds a placeholder, as ${API_KEY} or undefined; "
        "or the field is empty, or names its scheme twice."
    ),
    why="The server gets the placeholder as it is, and refuses it like a wrong credential.",
    blame="The configuration: a variable was not set or not filled in, so that its placeholder was sent.",
    example=_ASK % "${API_KEY}" + "← 401 Unauthorized",
    clean=_ASK
    % "redacted-0123456789ab"
    + '← 200 OK\n  result 0 {"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":'
    '{"name":"server","version":"1"}}\n→ POST /mcp\n  Authorization: Bearer redacted-0123456789ab\n  notifications/initialized\n'
    "← 202 Accepted",
    advice="Set the variable where the client starts, spell the reference as this client expects it, or put the credential there.",
)

RULES: Final = (PLACEHOLDER_SENT,)

AUTHORIZATION: Final = "authorization"

_FIRST: Final = 20
"""So many requests outside of sessions are looked at."""

_fields = lazy_pattern(
    rb"(?im)^(?P<name>authorization|proxy-authorization|(?!mcp-|x-csrf|x-xsrf)[\w-]*(?:api-?key|token|secret|password))[ \t]*:[ \t]*"
    rb"(?P<value>[^\r\n]*?)[ \t]*\r?$"
)
_is_key_field = lazy_pattern(r"(?i)(?!mcp-|x-csrf|x-xsrf)[\w-]*(?:api-?key|token|secret)")
_scheme = lazy_pattern(r"(?i)(bearer|basic|token|apikey)(?:[ \t]+|$)")
_placeholder = lazy_pattern(PLACEHOLDER_PATTERN)
_reference = lazy_pattern(r"\$\{(?:env:)?[A-Za-z_]\w*\}|\{\{[ ]?[A-Za-z_]\w*[ ]?\}\}")
_MAX_BYTES: Final = 300


class Unfilled(NamedTuple):
    """A header field without its credential: its name, and words for what it holds."""

    name: str
    words: str


def find(facts: CaptureFacts) -> Iterator[Hit]:
    """Find placeholders in the first requests of each session, in refused requests, and in the command."""
    yield from _in_command(facts)
    requests = (transaction.request for transaction in facts.capture.transactions.values())
    if not any(map(_unfilled_in, {request.raw_head for request in requests if request is not None})):
        return
    seen: dict[ScopeKey, int] = {}
    for transaction in facts.capture.transactions.values():
        scope = scope_key(transaction)
        count = seen[scope] = seen.get(scope, 0) + 1
        if (count > _FIRST if scope == 0 else count > 1) and transaction.status < HTTP_ERRORS:
            continue
        request, unfilled = transaction.request, unfilled_field(transaction)
        if request is not None and unfilled is not None:
            yield _sent(facts, transaction, request, unfilled)


def _sent(facts: CaptureFacts, transaction: Transaction, request: Stream, unfilled: Unfilled) -> Hit:
    answered = f", and the server answered with {transaction.status}" if transaction.status >= HTTP_ERRORS else ""
    what = f"The field {unfilled.name} of {transaction.method} {transaction.target} {unfilled.words}{answered}."
    return hit_on_stream(PLACEHOLDER_SENT, facts, transaction, request, what, CONFIGURATION, group=f"{unfilled}")


def unfilled_field(transaction: Transaction) -> Unfilled | None:
    """Return a header field of a request that should hold a credential and does not; None if there is none."""
    return None if transaction.request is None else _unfilled_in(transaction.request.raw_head)


def _unfilled_in(head: bytes) -> Unfilled | None:
    for match in _fields.finditer(head):
        words = _unfilled(match["value"][:_MAX_BYTES].decode("latin-1"))
        if words:
            return Unfilled(match["name"].decode("latin-1"), words)
    return None


def credential(transaction: Transaction) -> str:
    """Return the token or key of a request; those that were redacted are pseudonyms, which are equal where the secrets are."""
    if transaction.request is None:
        return ""
    head = transaction.request.head
    return head.get(AUTHORIZATION) or next((value for name, value in head.fields if _is_key_field.fullmatch(name)), "")


def _unfilled(value: str) -> str:
    """Say what a field holds in place of its credential; empty if it holds one."""
    scheme = _scheme.match(value)
    credential = value[scheme.end() :] if scheme else value
    again = _scheme.match(credential)
    if scheme and again and again[1].lower() == scheme[1].lower():
        return f"names its scheme twice, “{scheme[1]} {again[1]} …”"
    bare = credential.strip("'\"")
    if not bare:
        return f"has a scheme and no credential, “{value}”" if value else "is empty"
    return f"holds the placeholder “{bare}” itself" if _placeholder.fullmatch(bare) else ""


def _in_command(facts: CaptureFacts) -> Iterator[Hit]:
    """Find references to variables in the command that no shell filled in."""
    header = facts.capture.header
    argv = header.tapped.get("argv") if header is not None else None
    if not isinstance(argv, list) or not argv or _has_shell(argv):
        return
    for argument in argv[1:]:
        reference = _reference.search(str(argument)[:_MAX_BYTES])
        if reference is not None:
            what = f"An argument of the server's command holds the placeholder “{reference[0]}” itself."
            yield hit_on_record(PLACEHOLDER_SENT, facts, facts.capture.shift_ns, -1, what, CONFIGURATION)


def _has_shell(argv: list[str]) -> bool:
    """Tell whether a shell runs the command, which fills in variables itself."""
    return any(
        str(argument).rpartition("/")[2] in ("sh", "bash", "zsh", "dash", "fish", "cmd", "cmd.exe") for argument in argv[:2]
    )
