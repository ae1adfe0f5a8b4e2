"""Findings about calls that take several requests: rounds with the input that a result requires, and tasks.

Source: MCP specification, basic/patterns/mrtr of 2026-07-28; basic/utilities/tasks of 2025-11-25, SEP-2663 for those after.
"""

from collections.abc import Iterator
from typing import Any, Final

from ....wire.json_spans import Slice, members
from ...calls.call import Call, CallPart
from ...mcp.codes import CLIENT_CAPABILITIES
from ...mcp.fields import INPUT_REQUIRED, TASK
from ...mcp.methods import INPUT_REQUESTS, MAY_NEED_INPUT, TASKS, row
from ...mcp.revisions import FIRST_MODERN
from ...model import Exchange
from ..facts import CaptureFacts
from ..rule import Family, Hit, Rule, Severity, hit_in
from ..words import call_name, quoted

_MODERN: Final = '· revision 2026-07-28, client: roots\n→ tools/call 1 {"name":"files"}\n'
_ASKED: Final = '{"resultType":"input_required","inputRequests":{"roots":{"method":"roots/list"}},"requestState":"s1"}'
_ANSWERED: Final = '→ tools/call 2 {"name":"files","inputResponses":{"roots":{"roots":[]}},"requestState":"s1"}\n'
_TOO_MUCH: Final = _ANSWERED.replace('{"roots":{"roots"', '{"name":{"action":"decline"},"roots":{"roots"')
_DONE: Final = '← result 2 {"resultType":"complete","content":[]}'
_WELL: Final = f"{_MODERN}← result 1 {_ASKED}\n{_ANSWERED}{_DONE}"

MISPLACED_INPUT_REQUEST: Final = Rule(
    name="misplaced-input-request",
    title="Input request out of place",
    family=Family.PROTOCOL,
    severity=Severity.ERROR,
    what="A result asks for input where it may not: of a method that cannot, with nothing asked, or with what is no input request.",
    why="The client has no way to answer: the call fails, or hangs.",
    blame="The server: it made the result.",
    example=(
        '· revision 2026-07-28\n→ tools/list 1\n← result 1 {"resultType":"input_required",'
        '"inputRequests":{"q":{"method":"elicitation/create","params":{}}}}'
    ),
    clean=_WELL,
    fix="Ask for input in results of tools/call, prompts/get and resources/read only, with inputRequests or requestState.",
)

UNDECLARED_INPUT: Final = Rule(
    name="undeclared-input",
    title="Undeclared kind of input requested",
    family=Family.PROTOCOL,
    severity=Severity.ERROR,
    what="A result asks for input that the client did not declare that it can give.",
    why="The client cannot answer, and the call fails.",
    blame="The server: what the client can do stood in the _meta of its request.",
    example=f"{_MODERN.replace(', client: roots', '')}← result 1 {_ASKED}",
    clean=_WELL,
    fix="Look at clientCapabilities of the request; answer -32021 where something is missing that you need.",
)

CHANGED_REQUEST_STATE: Final = Rule(
    name="changed-request-state",
    title="requestState changed",
    family=Family.PROTOCOL,
    severity=Severity.ERROR,
    what="A retry with input does not send back the requestState of the result that asked for it, as it was.",
    why="The server cannot go on where it stopped; one that signs its state refuses the retry.",
    blame="The client: the state is not for it to read or to change.",
    example=(
        f'{_MODERN}← result 1 {_ASKED}\n→ tools/call 2 {{"name":"files","inputResponses":{{"roots":{{"roots":[]}}}}}}\n'
        "← error 2 -32602 No state"
    ),
    clean=_WELL,
    fix="Copy requestState from the result into the params of the retry.",
)

UNASKED_INPUT: Final = Rule(
    name="unasked-input",
    title="Input that nobody requested",
    family=Family.PROTOCOL,
    severity=Severity.WARNING,
    what="A retry brings input that no result before it asked for.",
    why="The server does not know what it is for, and may refuse the retry.",
    blame="The client: the keys of inputResponses are those of the inputRequests that it got.",
    example=f"{_MODERN}← result 1 {_ASKED}\n{_TOO_MUCH}{_DONE}",
    clean=_WELL,
    fix="Answer each of inputRequests under its own key, and nothing else.",
)

UNASKED_TASK: Final = Rule(
    name="unasked-task",
    title="Task that nobody requested",
    family=Family.PROTOCOL,
    severity=Severity.ERROR,
    what="A request that did not ask for a task is answered with one.",
    why="The client expects a result: it takes the task for a result without content, or fails to read it.",
    blame="The server: the request has no params.task (2025-11-25), or its client does not declare the extension (2026-07-28).",
    example=(
        '· handshake 2025-11-25, server: tools tasks\n→ tools/call 1 {"name":"report"}\n'
        '← result 1 {"task":{"taskId":"t1","status":"working","ttl":60000}}'
    ),
    clean=(
        '· handshake 2025-11-25, server: tools tasks.requests.tools.call\n→ tools/call 1 {"name":"report","task":{"ttl":60000}}\n'
        '← result 1 {"task":{"taskId":"t1","status":"working","ttl":60000}}\n'
        '→ tasks/result 2 {"taskId":"t1"}\n'
        '← result 2 {"content":[],"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t1"}}}'
    ),
    fix="Make a task only of a request that asks for one.",
)

RULES: Final = (MISPLACED_INPUT_REQUEST, UNDECLARED_INPUT, CHANGED_REQUEST_STATE, UNASKED_INPUT, UNASKED_TASK)


def find(facts: CaptureFacts) -> Iterator[Hit]:
    """What is wrong with results that are no end, and with what follows them."""
    for exchange in facts.unfinished:
        response = exchange.response
        if response is None:
            continue
        if response.result_type == INPUT_REQUIRED:
            yield from _required(exchange)
        elif response.result_type == TASK:
            yield from _task(exchange)
    for one in {id(one): one for one in facts.capture.calls.values()}.values():
        if len(one.exchanges) > 1:
            yield from _states(one)


def _required(exchange: Exchange) -> Iterator[Hit]:
    response = exchange.response
    assert response is not None
    result = response.result
    asked = result.get("inputRequests") if isinstance(result, dict) else None
    has_state = isinstance(result, dict) and "requestState" in result
    wrong = ""
    if exchange.method not in MAY_NEED_INPUT:
        wrong = f"{exchange.method} cannot ask for input"
    elif not asked and not has_state:
        wrong = "it has neither inputRequests nor a requestState"
    elif asked is not None and not (isinstance(asked, dict) and all(_method(one) in INPUT_REQUESTS for one in asked.values())):
        wrong = "its inputRequests are no requests that a server may make"
    if wrong:
        what = f"The result of {call_name(exchange)} says input_required, and {wrong}."
        yield hit_in(MISPLACED_INPUT_REQUEST, response, exchange.row, what, group=exchange.method)
        return
    declared = _declared(exchange)
    for one in (asked or {}).values():
        known = row(_method(one), "server", exchange.revision or FIRST_MODERN)
        if known is not None and declared is not None and known.needs and known.needs[1] not in declared:
            what = f"The result of {call_name(exchange)} asks for {known.name}; the client did not declare {known.needs[1]}."
            yield hit_in(UNDECLARED_INPUT, response, exchange.row, what, group=known.name)
        elif known is not None and declared is not None and _sends_to_url(one) and not _has_url(declared):
            what = f"The result of {call_name(exchange)} sends the user to a URL; the client did not declare elicitation.url."
            yield hit_in(UNDECLARED_INPUT, response, exchange.row, what, group=known.name)


def _method(request: Any) -> str:
    method = request.get("method") if isinstance(request, dict) else None
    return method if isinstance(method, str) else ""


def _sends_to_url(request: Any) -> bool:
    params = request.get("params") if isinstance(request, dict) else None
    return _method(request) == "elicitation/create" and isinstance(params, dict) and params.get("mode") == "url"


def _has_url(declared: dict[str, Any]) -> bool:
    """Whether the client can send its user to a URL; without a word on modes it knows forms alone (client/elicitation)."""
    said = declared.get("elicitation")
    return isinstance(said, dict) and isinstance(said.get("url"), dict)


def _declared(exchange: Exchange) -> dict[str, Any] | None:
    """The capabilities that a request of the modern era declares."""
    params = exchange.request.params
    meta = params.get("_meta") if isinstance(params, dict) else None
    declared = meta.get(CLIENT_CAPABILITIES) if isinstance(meta, dict) else None
    return declared if isinstance(declared, dict) else None


def _task(exchange: Exchange) -> Iterator[Hit]:
    response = exchange.response
    assert response is not None
    if b'"task"' in exchange.request.raw or exchange.revision is None or TASKS.encode() in exchange.request.raw:
        return
    what = f"{call_name(exchange)} was answered with a task, which it did not ask for."
    yield hit_in(UNASKED_TASK, response, exchange.row, what, group=exchange.method)


def _states(one: Call) -> Iterator[Hit]:
    """Each round has to bring the state of the one before, and no input that no round before it asked for."""
    before: Exchange | None = None
    asked: set[str] = set()
    for exchange in one.exchanges:
        if one.part(exchange) is not CallPart.ROUND:
            continue
        response = None if before is None else before.response
        if response is not None and response.result_type == INPUT_REQUIRED:
            result = members(members(response.raw).get("result", b""))
            params = members(members(exchange.request.raw).get("params", b""))
            asked |= members(result.get("inputRequests", b"")).keys()
            unasked = members(params.get("inputResponses", b"")).keys() - asked
            if unasked:
                named = quoted(min(unasked).encode("utf-8", "backslashreplace"))
                what = f"The retry of {call_name(exchange)} brings the input {named}, for which nobody asked."
                yield hit_in(UNASKED_INPUT, exchange.request, exchange.row, what, group=exchange.method)
            yield from _state(exchange, result.get("requestState"), params.get("requestState"))
        before = exchange


def _state(exchange: Exchange, wanted: Slice | None, brought: Slice | None) -> Iterator[Hit]:
    if (None if wanted is None else bytes(wanted)) != (None if brought is None else bytes(brought)):
        said = "another requestState" if brought is not None and wanted is not None else "no requestState"
        said = "a requestState that nobody gave it" if wanted is None else said
        what = f"The retry of {call_name(exchange)} brings {said}."
        yield hit_in(CHANGED_REQUEST_STATE, exchange.request, exchange.row, what, group=exchange.method)
