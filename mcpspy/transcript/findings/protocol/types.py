"""Findings about messages that the official types of MCP do not take. `mcpspy check` asks for them.

Needs the package `mcp-types` (`pip install 'mcpspy[check]'`); without it nothing is found here. It has the wire types of 2025-11-25,
for all revisions until then, and of 2026-07-28. Of each kind of message the first are held against them: MAX_EACH.
"""

from collections.abc import Callable, Iterator
from typing import Any, Final, TypeAlias

from ....records import CLIENT
from ...mcp.revisions import OLDEST, nearest
from ...model import Exchange, Kind, Message, UnpairedMessage
from ..facts import TranscriptFacts
from ..rule import Family, Hit, Rule, Severity, hit_in

_LIST: Final = "· handshake 2025-11-25, server: tools\n→ tools/list 1\n"

NOT_AS_SPECIFIED: Final = Rule(
    name="not-as-specified",
    title="Message does not fit the specification",
    family=Family.PROTOCOL,
    severity=Severity.ERROR,
    what="The params or the result of a message are not of the type that its method has: a member is missing, or is something else.",
    why="SDKs check messages against these types: a result that fails becomes an error for who asked, a request is refused.",
    blame="Whoever sent it: the types are those of the specification, published as mcp-types.",
    example=f'{_LIST}← result 1 {{"tools":{{"now":{{"inputSchema":{{"type":"object"}}}}}}}}',
    clean=f'{_LIST}← result 1 {{"tools":[{{"name":"now","inputSchema":{{"type":"object"}}}}]}}',
    fix="See the schema of the revision for the method; the finding names the member.",
)

RULES: Final = (NOT_AS_SPECIFIED,)

optional: Final = True

Checks: TypeAlias = dict[str, Callable[..., Any]]
"""Functions that raise for what is not of its type, by sender and kind."""

MAX_EACH: Final = 50
"""So many messages of one method, sender and kind: who gets a type wrong does so from the beginning."""

MAX_BYTES: Final = 1 << 20
_FIRST_KNOWN: Final = "2024-11-05"
_MEMBER: Final = {Kind.REQUEST: "params", Kind.NOTIFICATION: "params", Kind.RESULT: "result"}


def find(facts: TranscriptFacts) -> Iterator[Hit]:
    """What the official types do not take, of the first messages of each kind."""
    checks: Checks | None = None
    seen: dict[tuple[int, str, str, Kind], int] = {}
    for row in facts.transcript.rows:
        if not isinstance(row, Exchange | UnpairedMessage):
            continue
        method = row.method if isinstance(row, Exchange) else row.message.method or ""
        messages = [row.request, row.response] if isinstance(row, Exchange) else [row.message]
        for message in messages:
            if message is None or message.revision is None:
                continue
            key = (row.capture, method, message.sender, message.kind)
            count = seen[key] = seen.get(key, 0) + 1
            if count <= MAX_EACH and message.kind in _MEMBER and len(message.raw) <= MAX_BYTES:
                checks = _checks() if checks is None else checks  # importing them takes 0.4 s
                yield from _held(checks, method, row.row, message)


def _held(checks: Checks, method: str, row: int, message: Message) -> Iterator[Hit]:
    revision = nearest(message.revision or OLDEST)
    body = message.body
    if not isinstance(body, dict) or (message.kind is Kind.RESULT and message.result_type is not None):
        return
    content = body.get(_MEMBER[message.kind])
    check = checks.get(f"{message.sender} {message.kind}")
    wrong = "" if check is None else _mistake(check, method, max(revision, _FIRST_KNOWN), content)
    if wrong:
        name = f"The {_MEMBER[message.kind]} of {method}" if message.kind is not Kind.RESULT else f"The result of {method}"
        severity = None if message.kind is Kind.RESULT else Severity.WARNING
        yield hit_in(NOT_AS_SPECIFIED, message, row, f"{name} is not of its type: {wrong}.", group=method, severity=severity)


def _mistake(check: Callable[..., Any], method: str, revision: str, content: Any) -> str:
    """What is wrong with `content`, in a few words; empty if nothing is, or the types do not know."""
    try:
        check(method, revision, content)
    except KeyError:  # the revision has no such method, which another rule tells
        return ""
    except Exception as error:  # noqa: BLE001 - pydantic's, told by its shape; of all others nobody can say what they mean
        errors = getattr(error, "errors", None)
        if errors is None:
            return ""
        first = errors(include_url=False, include_context=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"])[:80]
        return f"{where}: {first['msg'][:80]}"
    return ""


def _checks() -> Checks:
    """The functions that check, by sender and kind; none without the package."""
    try:
        from mcp_types import methods
    except ImportError:
        return {}

    def of_server(method: str, revision: str, params: Any) -> None:
        methods.parse_server_request(method, revision, params)

    def news_of_server(method: str, revision: str, params: Any) -> None:
        methods.parse_server_notification(method, revision, params)

    return {
        f"{CLIENT} request": methods.validate_client_request,
        f"{CLIENT} notification": methods.validate_client_notification,
        f"{CLIENT} result": methods.validate_client_result,
        "server request": of_server,
        "server notification": news_of_server,
        "server result": methods.validate_server_result,
    }
