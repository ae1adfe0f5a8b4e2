"""Findings about calls of several requests: retries with the input that a result asked for, and results that are tasks.

Source: MCP specification, basic/patterns/mrtr of 2026-07-28; basic/utilities/tasks of 2025-11-25, SEP-2663 for those after.
"""

from bisect import bisect_left
from collections.abc import Iterator
from typing import Any, Final

from ....records import CLIENT
from ....wire.json_spans import Slice, members, string
from ...calls.call import Call, CallPart
from ...mcp.blocks import member
from ...mcp.codes import CLIENT_CAPABILITIES, INPUT_REQUIRED, TASK
from ...mcp.methods import INPUT_REQUESTS, MAY_NEED_INPUT, TASKS, method_row
from ...mcp.revisions import FIRST_MODERN
from ...model import Exchange, Message
from ..facts import CaptureFacts
from ..meanwhile import FOR_PEOPLE
from ..rule import Hit, Severity, hit_in, protocol_rule
from ..transport.server_exits import PATIENCE_NS
from ..words import call_name, listed, quoted, seconds, told_apart
from .schemas import MAX_NAMES

_MODERN: Final = '· revision 2026-07-28, client: roots\n→ tools/call 1 {"name":"files"}\n'
_ASKED: Final = '{"resultType":"input_required","inputRequests":{"roots":{"method":"roots/list"}},"requestState":"s1"}'
_ANSWERED: Final = '→ tools/call 2 {"name":"files","inputResponses":{"roots":{"roots":[]}},"requestState":"s1"}\n'
_TOO_MUCH: Final = _ANSWERED.replace('{"roots":{"roots"', '{"name":{"action":"decline"},"roots":{"roots"')
_DONE: Final = '← result 2 {"resultType":"complete","content":[]}'
_WELL: Final = f"{_MODERN}← result 1 {_ASKED}\n{_ANSWERED}{_DONE}"

MISPLACED_INPUT_REQUEST: Final = protocol_rule(
    name="misplaced-input-request",
    title="Input request out of place",
    severity=Severity.ERROR,
    what="A result asks for input, but its method may not, or its inputRequests are missing or invalid.",
    why="The client cannot answer, and the call fails or hangs.",
    blame="The server: it made the result.",
    example=(
        '· revision 2026-07-28\n→ tools/list 1\n← result 1 {"resultType":"input_required",'
        '"inputRequests":{"q":{"method":"elicitation/create","params":{}}}}'
    ),
    clean=_WELL,
    advice="Ask for input only in results of tools/call, prompts/get and resources/read, with inputRequests or a requestState.",
)

UNDECLARED_INPUT: Final = protocol_rule(
    name="undeclared-input",
    title="Undeclared kind of input requested",
    severity=Severity.ERROR,
    what="A result asks for a kind of input that the client did not declare.",
    why="The client cannot answer, and the call fails.",
    blame="The server: the client declared its capabilities in the _meta of its request.",
    example=f"{_MODERN.replace(', client: roots', '')}← result 1 {_ASKED}",
    clean=_WELL,
    advice="Check the clientCapabilities of the request, and answer -32021 if one is missing.",
)

CHANGED_REQUEST_STATE: Final = protocol_rule(
    name="changed-request-state",
    title="requestState changed",
    severity=Severity.ERROR,
    what="A retry with input did not return the requestState of the result unchanged.",
    why="The server cannot continue where it stopped, and rejects the retry if it signs its state.",
    blame="The client: it has to return the state without reading or changing it.",
    example=(
        f'{_MODERN}← result 1 {_ASKED}\n→ tools/call 2 {{"name":"files","inputResponses":{{"roots":{{"roots":[]}}}}}}\n'
        "← error 2 -32602 No state"
    ),
    clean=_WELL,
    advice="Copy requestState from the result into the params of the retry.",
)

UNASKED_INPUT: Final = protocol_rule(
    name="unasked-input",
    title="Input that nobody requested",
    what="A retry has input that no earlier result asked for.",
    why="The server does not know what it is for, and may reject the retry.",
    blame="The client: the keys of inputResponses have to be those of the inputRequests.",
    example=f"{_MODERN}← result 1 {_ASKED}\n{_TOO_MUCH}{_DONE}",
    clean=_WELL,
    advice="Answer each member of inputRequests under its own key, and add nothing else.",
)

INPUT_NOT_GIVEN: Final = protocol_rule(
    name="input-not-given",
    title="Requested input never sent",
    what="A result asked for input, and the client did not come back to the call, though it went on with others or waited on.",
    why="The call is not done: the server waits for a retry, and the agent has no result.",
    blame="The client: it declared that it can give this input, so it has to send the call again, also if a person refuses.",
    example=f'{_MODERN}← result 1 {_ASKED}\n· 8.0 s later\n→ tools/call 2 {{"name":"clock"}}\n← result 2 {{"content":[]}}',
    clean=f"{_MODERN}← result 1 {_ASKED}\n· 8.0 s later\n{_ANSWERED}{_DONE}",
    advice=(
        "Send the request again under a new id, with inputResponses and the requestState; for a form that nobody fills in, with the "
        "action decline or cancel."
    ),
)

UNASKED_TASK: Final = protocol_rule(
    name="unasked-task",
    title="Task that nobody requested",
    severity=Severity.ERROR,
    what="A request that did not ask for a task was answered with one.",
    why="The client takes the task for a result without content, or fails to read it.",
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
    advice="Make a task only if the request asks for one.",
)

RULES: Final = (MISPLACED_INPUT_REQUEST, UNDECLARED_INPUT, CHANGED_REQUEST_STATE, UNASKED_INPUT, INPUT_NOT_GIVEN, UNASKED_TASK)


_STATE: Final = b'"requestState"'


def find(facts: CaptureFacts) -> Iterator[Hit]:
    """Find faults in results that ask for input or are tasks, and in the retries that follow."""
    open_requests: list[tuple[Exchange, Message]] = []
    for exchange in facts.unfinished:
        response = exchange.response
        if response is None:
            continue
        if response.result_type == INPUT_REQUIRED:
            flaws = list(_input_request(exchange))
            yield from flaws
            if not flaws:
                open_requests.append((exchange, response))
        elif response.result_type == TASK:
            yield from _task(exchange)
    yield from _not_given(facts, open_requests)
    for call in facts.joined_calls:
        if len(call.exchanges) > 1:
            yield from _retries(call)
    yield from _unknown_states(facts)


def _unknown_states(facts: CaptureFacts) -> Iterator[Hit]:
    """Find retries that belong to no call, because no result gave their requestState. Equal states have equal pseudonyms."""
    given = {
        state
        for exchange in facts.unfinished
        if exchange.response is not None and (state := _state_in(exchange.response, "result"))
    }
    if not given:
        return
    first_ns = min(exchange.at_ns for exchange in facts.unfinished)
    for exchange in facts.exchanges:
        if exchange.at_ns < first_ns or exchange.method not in MAY_NEED_INPUT or _STATE not in exchange.request.raw:
            continue
        state = _state_in(exchange.request, "params")
        if state and state not in given and exchange.row not in facts.capture.calls and not facts.is_unseen(exchange.at_ns):
            sent, known = _text(state), sorted(map(_text, given))
            what = f"{call_name(exchange)} has a requestState that no result gave: {quoted(sent)}{told_apart(sent, known)}."
            yield hit_in(CHANGED_REQUEST_STATE, exchange.request, exchange.row, what, group=exchange.method)


def _state_in(message: Message, content: str) -> bytes:
    return bytes(members(members(message.raw).get(content, b"")).get("requestState", b""))


def _text(state: bytes) -> str:
    """Return a requestState without its quotation marks, as valid Unicode."""
    text = string(state)
    return (state.decode("utf-8", "replace") if text is None else text).encode("utf-8", "replace").decode()


def _input_request(exchange: Exchange) -> Iterator[Hit]:
    response = exchange.response
    assert response is not None
    result = response.result
    inputs = member(result, "inputRequests")
    has_state = isinstance(result, dict) and "requestState" in result
    wrong = ""
    if exchange.method not in MAY_NEED_INPUT:
        wrong = f"{exchange.method} cannot ask for input"
    elif not inputs and not has_state:
        wrong = "it has neither inputRequests nor a requestState"
    elif inputs is not None and not (
        isinstance(inputs, dict) and all(_method(value) in INPUT_REQUESTS for value in inputs.values())
    ):
        wrong = "its inputRequests are not requests that a server may send"
    if wrong:
        what = f"The result of {call_name(exchange)} says input_required, but {wrong}."
        yield hit_in(MISPLACED_INPUT_REQUEST, response, exchange.row, what, group=exchange.method)
        return
    declared = _declared(exchange)
    for request in (inputs or {}).values():
        known = method_row(_method(request), "server", exchange.revision or FIRST_MODERN)
        if known is not None and declared is not None and known.needs and known.needs[1] not in declared:
            what = (
                f"The result of {call_name(exchange)} asks for {known.name}, but the client did not declare {known.needs[1]}."
            )
            yield hit_in(UNDECLARED_INPUT, response, exchange.row, what, group=known.name)
        elif known is not None and declared is not None and _sends_to_url(request) and not _has_url(declared):
            what = (
                f"The result of {call_name(exchange)} sends the user to a URL, but the client did not declare elicitation.url."
            )
            yield hit_in(UNDECLARED_INPUT, response, exchange.row, what, group=known.name)


def _not_given(facts: CaptureFacts, asked: list[tuple[Exchange, Message]]) -> Iterator[Hit]:
    """Find calls that the client never came back to. A person may take their time, unless the client went on meanwhile."""
    if facts.capture.now_ns is not None or facts.last_hole_ns is not None:
        return
    end_ns = facts.capture.last_ns + facts.capture.shift_ns if facts.left_ns is None else facts.left_ns
    left = []
    for exchange, response in asked:
        call = facts.capture.calls.get(exchange.row)
        if end_ns - response.at_ns >= PATIENCE_NS and (call is None or call.last_round is exchange):
            left.append((exchange, response))
    if not left:
        return
    retried_ns: dict[tuple[str, str | None], int] = {}
    by_client: dict[str, list[Exchange]] = {}
    for row in facts.exchanges:
        if row.sender != CLIENT:
            continue
        if _may_be_retry(row):
            retried_ns[row.method, row.request.target] = row.at_ns
        by_client.setdefault(facts.capture.client_of(row), []).append(row)
    for exchange, response in left:
        if retried_ns.get((exchange.method, exchange.request.target), 0) > response.at_ns:
            continue  # a retry that fits several calls belongs to none
        sent = by_client.get(facts.capture.client_of(exchange), [])
        first = bisect_left(sent, response.at_ns + PATIENCE_NS, key=lambda row: row.at_ns)
        went_on = sent[first] if first < len(sent) else None
        yield _left_open(exchange, response, went_on, end_ns - response.at_ns)


def _left_open(exchange: Exchange, response: Message, went_on: Exchange | None, waited_ns: int) -> Hit:
    inputs = member(response.result, "inputRequests")
    methods = {_method(request) for request in inputs.values()} if isinstance(inputs, dict) else set()
    asked = f" ({listed(sorted(methods), MAX_NAMES)})" if methods else ""
    what = f"The result of {call_name(exchange)} asked for input{asked}, and the client did not come back to the call"
    if went_on is not None:
        what += f", but sent {call_name(went_on)} (row {went_on.row}) {seconds(went_on.at_ns - response.at_ns)} later"
        return hit_in(INPUT_NOT_GIVEN, response, exchange.row, f"{what}.", culprit=CLIENT, group=exchange.method)
    what = f"{what} within {seconds(waited_ns)}."
    if methods & FOR_PEOPLE:
        blame = "Unclear: the client asked a person, who may take their time, or it never showed the form."
        return hit_in(
            INPUT_NOT_GIVEN, response, exchange.row, what, culprit="unclear", blame=blame, severity=Severity.NOTE,
            group=exchange.method,
        )  # fmt: skip
    return hit_in(INPUT_NOT_GIVEN, response, exchange.row, what, culprit=CLIENT, group=exchange.method)


def _may_be_retry(row: Exchange) -> bool:
    """Return whether a request brings input or the state of an earlier result."""
    return b'"inputResponses"' in row.request.raw or _STATE in row.request.raw


def _method(request: Any) -> str:
    method = member(request, "method")
    return method if isinstance(method, str) else ""


def _sends_to_url(request: Any) -> bool:
    return _method(request) == "elicitation/create" and member(request, "params", "mode") == "url"


def _has_url(declared: dict[str, Any]) -> bool:
    """Return whether the client can send its user to a URL; a client that names no modes has forms only (client/elicitation)."""
    return isinstance(member(declared, "elicitation", "url"), dict)


def _declared(exchange: Exchange) -> dict[str, Any] | None:
    """Return the client's capabilities in a request of the modern era; None if it has none."""
    declared = member(exchange.request.params, "_meta", CLIENT_CAPABILITIES)
    return declared if isinstance(declared, dict) else None


def _task(exchange: Exchange) -> Iterator[Hit]:
    response = exchange.response
    assert response is not None
    if b'"task"' in exchange.request.raw or exchange.revision is None or TASKS.encode() in exchange.request.raw:
        return
    what = f"{call_name(exchange)} was answered with a task that it did not ask for."
    yield hit_in(UNASKED_TASK, response, exchange.row, what, group=exchange.method)


def _retries(call: Call) -> Iterator[Hit]:
    """Check that each retry returns the state of the result before it, and only input that a result asked for."""
    before: Exchange | None = None
    requested: set[str] = set()
    for exchange in call.exchanges:
        if call.part(exchange) is not CallPart.ROUND:
            continue
        response = None if before is None else before.response
        if response is not None and response.result_type == INPUT_REQUIRED:
            result = members(members(response.raw).get("result", b""))
            params = members(members(exchange.request.raw).get("params", b""))
            requested |= members(result.get("inputRequests", b"")).keys()
            unasked = members(params.get("inputResponses", b"")).keys() - requested
            if unasked:
                named = quoted(min(unasked).encode("utf-8", "backslashreplace"))
                what = f"The retry of {call_name(exchange)} has the input {named}, which no result asked for."
                yield hit_in(UNASKED_INPUT, exchange.request, exchange.row, what, group=exchange.method)
            yield from _state(exchange, result.get("requestState"), params.get("requestState"))
        before = exchange


def _state(exchange: Exchange, wanted: Slice | None, returned: Slice | None) -> Iterator[Hit]:
    if (None if wanted is None else bytes(wanted)) != (None if returned is None else bytes(returned)):
        state = "another requestState" if returned is not None and wanted is not None else "no requestState"
        state = "a requestState that no result gave it" if wanted is None else state
        what = f"The retry of {call_name(exchange)} has {state}."
        yield hit_in(CHANGED_REQUEST_STATE, exchange.request, exchange.row, what, group=exchange.method)
