"""Findings about tasks: requested where none are offered, confused with another task, changed after their end, unmarked results.

Source: MCP specification 2025-11-25, basic/utilities/tasks; SEP-2663 for tasks from 2026-07-28 on. Finds nothing about tasks whose
beginning is not in the capture: they may have begun before it, or in another session.
"""

from collections.abc import Iterator
from typing import Final

from ....records import OTHER_SIDE, SERVER
from ....wire.json_spans import members
from ...calls.call import Call, CallPart
from ...calls.references import task_facts
from ...mcp.blocks import member
from ...mcp.codes import RELATED_TASK
from ...mcp.methods import MAY_BE_TASKS
from ...model import Exchange, Kind, Message
from ..facts import CaptureFacts, ScopeKey, scope_key
from ..rule import Hit, Severity, hit_in, protocol_rule
from ..words import call_name, quoted, seconds
from .handshake import declared_capabilities, has_capability

_OFFERED: Final = "· handshake 2025-11-25, server: tools tasks.requests.tools.call\n"
_ASKED: Final = '→ tools/call 1 {"name":"report","task":{"ttl":60000}}\n'
_MADE: Final = '← result 1 {"task":{"taskId":"t1","status":"working","ttl":60000}}\n'
_BEGUN: Final = f"{_OFFERED}{_ASKED}{_MADE}"
_MARKED: Final = '"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t1"}}'
_ASKED_3_S: Final = '→ tools/call 1 {"name":"report","task":{"ttl":3000}}\n'
_MADE_3_S: Final = '← result 1 {"task":{"taskId":"t1","status":"working","ttl":3000,"pollInterval":500}}\n'
_FETCH: Final = '→ tasks/get 2 {"taskId":"t1"}\n← '
_DONE: Final = '→ tasks/get 2 {"taskId":"t1"}\n← result 2 {"taskId":"t1","status":"completed","ttl":60000}\n'
_AGAIN: Final = '→ tasks/get 3 {"taskId":"t1"}\n← result 3 {"taskId":"t1","status":"%s","ttl":60000}'

TASK_NOT_OFFERED: Final = protocol_rule(
    name="task-not-offered",
    title="Task requested where none is offered",
    what="A request asked for a task, but the other side did not declare tasks for its method.",
    why="The request runs without a task, and the requesting side gets a result or an error instead.",
    blame="The requesting side: the other side declared its tasks under tasks.requests in the handshake.",
    example=f'· handshake 2025-11-25, server: tools\n{_ASKED}← result 1 {{"content":[]}}',
    clean=_BEGUN.rstrip(),
    advice="Leave out params.task unless the capabilities have tasks.requests.tools.call.",
)

TASK_GOES_ON: Final = protocol_rule(
    name="task-goes-on",
    title="Finished task changes its status",
    severity=Severity.ERROR,
    what="A task that was completed, failed or cancelled has another status later.",
    why="Clients stop polling a finished task, and nobody gets what comes after.",
    blame="The side that runs the task: it reported both statuses, in this order.",
    example=f"{_BEGUN}{_DONE}{_AGAIN % 'working'}",
    clean=f"{_BEGUN}{_DONE}{_AGAIN % 'completed'}",
    advice="Never change a task that is completed, failed or cancelled; make a new one.",
)

OTHER_TASK: Final = protocol_rule(
    name="other-task",
    title="Answer about another task",
    severity=Severity.ERROR,
    what="A request about one task was answered about another.",
    why="The client confuses the two, and may wait forever or fetch a result that is not there.",
    blame="The answering side: the request names the task.",
    example=f'{_BEGUN}→ tasks/get 2 {{"taskId":"t1"}}\n← result 2 {{"taskId":"t2","status":"working","ttl":60000}}',
    clean=f"{_BEGUN}{_DONE}".rstrip(),
    advice="Answer about the taskId of the request, or with -32602 if that task does not exist.",
)

UNMARKED_TASK_RESULT: Final = protocol_rule(
    name="unmarked-task-result",
    title="Task result without its task id",
    what="The result of a task does not name the task in its _meta.",
    why="Only io.modelcontextprotocol/related-task tells which task a result belongs to.",
    blame="The answering side: 2025-11-25 requires the result of tasks/result to name its task.",
    example=f'{_BEGUN}{_DONE}→ tasks/result 3 {{"taskId":"t1"}}\n← result 3 {{"content":[]}}',
    clean=f'{_BEGUN}{_DONE}→ tasks/result 3 {{"taskId":"t1"}}\n← result 3 {{"content":[],{_MARKED}}}',
    advice='Put "io.modelcontextprotocol/related-task": {"taskId": …} into the _meta of the result.',
)

TASK_LOST: Final = protocol_rule(
    name="task-lost",
    title="Task lost before its time to live was over",
    what="A request about a task, or for its result, was answered with an error, although its ttl was not over.",
    why="The result of the call is lost, and the client cannot know whether the work was done.",
    blame="The answering side: it granted the ttl, and has to know the task for that long.",
    example=f'{_BEGUN}· 2.0 s later\n→ tasks/get 2 {{"taskId":"t1"}}\n← error 2 -32602 Task not found',
    clean=f'{_BEGUN}· 61.0 s later\n→ tasks/get 2 {{"taskId":"t1"}}\n← error 2 -32602 Task not found',
    advice="Keep tasks until their ttl is over, also across processes and restarts, or grant a shorter ttl.",
)

TASK_EXPIRED: Final = protocol_rule(
    name="task-expired",
    title="Task asked for after its time to live",
    what="The client waited longer than the task's pollInterval, and meanwhile the ttl of the task went by; then it was refused.",
    why="The server may forget a task after its ttl: the result of the call is lost, though the work was done.",
    blame="The client: it knew ttl and pollInterval, and did not ask in time.",
    example=f"{_OFFERED}{_ASKED_3_S}{_MADE_3_S}· 5.0 s later\n{_FETCH}error 2 -32602 Task not found",
    clean=f'{_OFFERED}{_ASKED_3_S}{_MADE_3_S}· 1.0 s later\n{_FETCH}result 2 {{"taskId":"t1","status":"working","ttl":3000}}',
    advice="Poll every pollInterval milliseconds, fetch the result before the ttl is over, or ask for a longer ttl.",
)

RULES: Final = (TASK_NOT_OFFERED, TASK_GOES_ON, OTHER_TASK, UNMARKED_TASK_RESULT, TASK_LOST, TASK_EXPIRED)

_UNKNOWN_TASK: Final = -32602
_COMPLETED: Final = "completed"
_ENDINGS: Final = frozenset({_COMPLETED, "failed", "cancelled"})
_REVISION: Final = "2025-11-25"
_INTERVALS: Final = 2
_NAMING: Final = (CallPart.POLL, CallPart.CANCEL)


def find(facts: CaptureFacts) -> Iterator[Hit]:
    """Find tasks that break the rules."""
    yield from _not_offered(facts)
    for call in facts.joined_calls:
        if call.task is not None:
            yield from _statuses(call, call.task.id)
            yield from _unmarked(call)
            yield from _lost(call)
            yield from _expired(call)


def _not_offered(facts: CaptureFacts) -> Iterator[Hit]:
    """Find tasks that the other side did not offer, in scopes whose handshake is in the capture."""
    handshakes: dict[ScopeKey, tuple[Message, Message]] = {}
    for exchange in facts.initializes:
        response = exchange.response
        if response is not None and response.kind is Kind.RESULT and response.revision == _REVISION:
            handshakes[scope_key(exchange.transaction)] = exchange.request, response
    if not handshakes:
        return
    exchanges = [call for call in facts.calls if b'"task"' in call.request.raw]
    exchanges += [
        requests.first
        for (method, *_), requests in facts.requests.items()
        if method in MAY_BE_TASKS and method != "tools/call" and isinstance(requests.first, Exchange)
    ]
    for exchange in exchanges:
        request, response = handshakes.get(scope_key(exchange.transaction), (None, None))
        if request is None or response is None or exchange.at_ns < response.at_ns or exchange.revision != _REVISION:
            continue
        if "task" not in members(members(exchange.request.raw).get("params", b"")):
            continue
        side = OTHER_SIDE[exchange.sender]
        declared = declared_capabilities(response.result if side == SERVER else request.params)
        path = ("tasks", "requests", *exchange.method.split("/"))
        if declared is not None and not has_capability(declared, path):
            what = f"{call_name(exchange)} asks for a task, but the {side} did not declare {'.'.join(path)}."
            yield hit_in(TASK_NOT_OFFERED, exchange.request, exchange.row, what, group=exchange.method)


def _statuses(call: Call, task: str) -> Iterator[Hit]:
    """Compare the statuses of a task, in the order in which they were requested."""
    ended: Message | None = None
    ending = ""
    for exchange in call.exchanges:
        response = exchange.response
        if response is None or response.kind is not Kind.RESULT or call.part(exchange) not in _NAMING:
            continue
        reported = task_facts(response)
        if reported is None:
            continue
        if reported.id != task:
            what = f"{exchange.method} asked about the task {_quoted_text(task)} and was answered about {_quoted_text(reported.id)}."
            yield hit_in(OTHER_TASK, response, exchange.row, what, group=exchange.method)
        elif ended is not None and exchange.at_ns > ended.at_ns and reported.status and reported.status != ending:
            what = f"The task of {call_name(call.first)} was {ending}, and later {_quoted_text(reported.status)}."
            yield hit_in(TASK_GOES_ON, response, exchange.row, what)
            return
        elif ended is None and reported.status in _ENDINGS:
            ended, ending = response, reported.status


def _lost(call: Call) -> Iterator[Hit]:
    """Find the first request about a task that is unknown, though its time to live was not over and its result not fetched yet."""
    made = call.first.response
    ttl_ms = getattr(task_facts(made) if made is not None else None, "ttl_ms", None)
    if made is None or ttl_ms is None:
        return
    for exchange in call.exchanges:
        response = exchange.response
        part = call.part(exchange)
        if response is None or part not in (CallPart.POLL, CallPart.RESULT):
            continue
        reported = task_facts(response) if response.kind is Kind.RESULT and part is CallPart.POLL else None
        has_result = part is CallPart.RESULT and response.kind is Kind.RESULT
        if has_result or (reported is not None and reported.status in _ENDINGS and reported.status != _COMPLETED):
            return
        age_ns = exchange.at_ns - made.at_ns
        if response.kind is Kind.ERROR and member(response.error, "code") == _UNKNOWN_TASK and age_ns < ttl_ms * 1_000_000:
            what = f"The task of {call_name(call.first)} was unknown {seconds(age_ns)} after it was made; its ttl is {ttl_ms:,} ms."
            yield hit_in(TASK_LOST, response, exchange.row, what)
            return


def _expired(call: Call) -> Iterator[Hit]:
    """Find the first request for a task that came after its end, because the client had waited for more than two intervals."""
    made = call.first.response
    task = task_facts(made) if made is not None else None
    if made is None or task is None or task.ttl_ms is None or not task.poll_interval_ms:
        return
    until_ns, last_ns = made.at_ns + task.ttl_ms * 1_000_000, made.at_ns
    for exchange in call.exchanges:
        response = exchange.response
        if response is None or call.part(exchange) not in (CallPart.POLL, CallPart.RESULT):
            continue
        if response.kind is not Kind.ERROR:
            last_ns = response.at_ns
            continue
        waited_ns = exchange.at_ns - last_ns
        if member(response.error, "code") != _UNKNOWN_TASK or not last_ns < until_ns < exchange.at_ns:
            return
        if waited_ns > _INTERVALS * task.poll_interval_ms * 1_000_000:
            what = (
                f"{exchange.method} for the task of {call_name(call.first)} came {seconds(exchange.at_ns - made.at_ns)} after it was "
                f"made and was refused; its ttl is {task.ttl_ms:,} ms. The client had not asked for {seconds(waited_ns)}; the "
                f"pollInterval is {task.poll_interval_ms:,} ms."
            )
            yield hit_in(TASK_EXPIRED, exchange.request, exchange.row, what)
        return


def _quoted_text(text: str) -> str:
    """Put captured text in quotation marks; half of a surrogate pair becomes an escape."""
    return quoted(text)


def _unmarked(call: Call) -> Iterator[Hit]:
    """Find results of tasks without the id of their task."""
    for exchange in call.exchanges:
        response = exchange.response
        if response is None or response.kind is not Kind.RESULT or call.part(exchange) is not CallPart.RESULT:
            continue
        if exchange.revision == _REVISION and RELATED_TASK.encode() not in response.raw:
            what = f"The result of the task of {call_name(call.first)} does not name its task."
            yield hit_in(UNMARKED_TASK_RESULT, response, exchange.row, what, group=exchange.method)
