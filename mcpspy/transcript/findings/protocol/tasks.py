"""Findings about tasks: asked for where they are not offered, answered about another one, begun again after their end.

Source: MCP specification 2025-11-25, basic/utilities/tasks; SEP-2663 for tasks from 2026-07-28 on. Nothing is found about tasks that
nobody knows: they may have been begun before the capture, or in another session.
"""

from collections.abc import Iterator
from typing import Any, Final

from ....records import CLIENT, SERVER
from ....wire.json_spans import members
from ...calls.call import Call, CallPart
from ...calls.references import task_facts
from ...mcp.codes import RELATED_TASK
from ...mcp.methods import MAY_BE_TASKS
from ...model import Exchange, Kind, Message
from ..facts import CaptureFacts, ScopeKey, scope_key
from ..rule import Family, Hit, Rule, Severity, hit_in
from ..words import call_name, quoted

_OFFERED: Final = "· handshake 2025-11-25, server: tools tasks.requests.tools.call\n"
_ASKED: Final = '→ tools/call 1 {"name":"report","task":{"ttl":60000}}\n'
_MADE: Final = '← result 1 {"task":{"taskId":"t1","status":"working","ttl":60000}}\n'
_BEGUN: Final = f"{_OFFERED}{_ASKED}{_MADE}"
_MARKED: Final = '"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t1"}}'
_DONE: Final = '→ tasks/get 2 {"taskId":"t1"}\n← result 2 {"taskId":"t1","status":"completed","ttl":60000}\n'
_AGAIN: Final = '→ tasks/get 3 {"taskId":"t1"}\n← result 3 {"taskId":"t1","status":"%s","ttl":60000}'

TASK_NOT_OFFERED: Final = Rule(
    name="task-not-offered",
    title="Task requested where none is offered",
    family=Family.PROTOCOL,
    severity=Severity.WARNING,
    what="A request asks to be run as a task, which the other side did not declare that it does for such requests.",
    why="It is run as any other: who asked waits for a task, and gets a result, or an error.",
    blame="Whoever asked: what the other side runs as tasks stood in its half of the handshake, under tasks.requests.",
    example=f'· handshake 2025-11-25, server: tools\n{_ASKED}← result 1 {{"content":[]}}',
    clean=_BEGUN.rstrip(),
    fix="Look for tasks.requests.tools.call in the capabilities, and leave params.task out where it is missing.",
)

TASK_GOES_ON: Final = Rule(
    name="task-goes-on",
    title="Finished task changes its status",
    family=Family.PROTOCOL,
    severity=Severity.ERROR,
    what="A task that was completed, failed or cancelled has another status later.",
    why="Clients stop asking when a task is over: what comes after that nobody gets.",
    blame="The side that runs the task: it said both, the second to who asked after the first.",
    example=f"{_BEGUN}{_DONE}{_AGAIN % 'working'}",
    clean=f"{_BEGUN}{_DONE}{_AGAIN % 'completed'}",
    fix="Change nothing about a task that is completed, failed or cancelled; make another one.",
)

OTHER_TASK: Final = Rule(
    name="other-task",
    title="Answer about another task",
    family=Family.PROTOCOL,
    severity=Severity.ERROR,
    what="Who asks about one task is told of another.",
    why="The client takes the status of one for that of the other, and may wait for ever or fetch what is not there.",
    blame="Whoever answered: the request names the task.",
    example=f'{_BEGUN}→ tasks/get 2 {{"taskId":"t1"}}\n← result 2 {{"taskId":"t2","status":"working","ttl":60000}}',
    clean=f"{_BEGUN}{_DONE}".rstrip(),
    fix="Answer about the taskId of the request; -32602 where there is no such task.",
)

UNMARKED_TASK_RESULT: Final = Rule(
    name="unmarked-task-result",
    title="Task result without its task id",
    family=Family.PROTOCOL,
    severity=Severity.WARNING,
    what="The result of a task does not say in its _meta that it belongs to it.",
    why="It is shaped like any other result: only io.modelcontextprotocol/related-task tells of which task it is.",
    blame="Whoever answered tasks/result: that result has to name its task (2025-11-25).",
    example=f'{_BEGUN}{_DONE}→ tasks/result 3 {{"taskId":"t1"}}\n← result 3 {{"content":[]}}',
    clean=f'{_BEGUN}{_DONE}→ tasks/result 3 {{"taskId":"t1"}}\n← result 3 {{"content":[],{_MARKED}}}',
    fix='Put "io.modelcontextprotocol/related-task": {"taskId": …} into the _meta of the result.',
)

RULES: Final = (TASK_NOT_OFFERED, TASK_GOES_ON, OTHER_TASK, UNMARKED_TASK_RESULT)

_ENDINGS: Final = frozenset({"completed", "failed", "cancelled"})
_REVISION: Final = "2025-11-25"
_NAMING: Final = (CallPart.POLL, CallPart.CANCEL)


def find(facts: CaptureFacts) -> Iterator[Hit]:
    """What is wrong with tasks."""
    yield from _not_offered(facts)
    for one in {id(one): one for one in facts.capture.calls.values()}.values():
        if one.task is not None:
            yield from _statuses(one, one.task.id)
            yield from _unmarked(one)


def _not_offered(facts: CaptureFacts) -> Iterator[Hit]:
    """Only in scopes of which the handshake is in the capture."""
    declared: dict[ScopeKey, tuple[int, Exchange]] = {}
    for exchange in facts.initializes:
        response = exchange.response
        if response is not None and response.kind is Kind.RESULT and response.revision == _REVISION:
            declared[scope_key(exchange.transaction)] = response.at_ns, exchange
    if not declared:
        return
    asked = [one for one in facts.calls if b'"task"' in one.request.raw]
    asked += [
        one.first
        for (method, *_), one in facts.requests.items()
        if method in MAY_BE_TASKS and method != "tools/call" and isinstance(one.first, Exchange)
    ]
    for exchange in asked:
        since_ns, handshake = declared.get(scope_key(exchange.transaction), (0, None))
        if handshake is None or exchange.at_ns < since_ns or exchange.revision != _REVISION:
            continue
        if "task" not in members(members(exchange.request.raw).get("params", b"")):
            continue
        side = SERVER if exchange.sender == CLIENT else CLIENT
        said = handshake.response.result if side == SERVER and handshake.response is not None else handshake.request.params
        capabilities = said.get("capabilities") if isinstance(said, dict) else None
        if isinstance(capabilities, dict) and not _runs(capabilities, exchange.method):
            what = f"{call_name(exchange)} asks for a task, and the {side} did not declare tasks.requests.{_dotted(exchange.method)}."
            yield hit_in(TASK_NOT_OFFERED, exchange.request, exchange.row, what, group=exchange.method)


def _dotted(method: str) -> str:
    return method.replace("/", ".")


def _runs(capabilities: Any, method: str) -> bool:
    for name in ("tasks", "requests", *method.split("/")):
        capabilities = capabilities.get(name) if isinstance(capabilities, dict) else None
    return capabilities is not None and capabilities is not False


def _statuses(one: Call, task: str) -> Iterator[Hit]:
    """What each answer says of the task, in the order in which they were asked for."""
    ended: Message | None = None
    ending = ""
    for exchange in one.exchanges:
        response = exchange.response
        if response is None or response.kind is not Kind.RESULT or one.part(exchange) not in _NAMING:
            continue
        reported = task_facts(response)
        if reported is None:
            continue
        if reported.id != task:
            what = f"{exchange.method} asked about the task {_spelled(task)} and was told of {_spelled(reported.id)}."
            yield hit_in(OTHER_TASK, response, exchange.row, what, group=exchange.method)
        elif ended is not None and exchange.at_ns > ended.at_ns and reported.status and reported.status != ending:
            what = f"The task of {call_name(one.first)} was {ending}, and is {_spelled(reported.status)} later."
            yield hit_in(TASK_GOES_ON, response, exchange.row, what)
            return
        elif ended is None and reported.status in _ENDINGS:
            ended, ending = response, reported.status


def _spelled(text: str) -> str:
    """What a peer calls something, in quotation marks; half of a surrogate pair is spelled out."""
    return quoted(text.encode("utf-8", "backslashreplace"))


def _unmarked(one: Call) -> Iterator[Hit]:
    """Results of tasks are those of the requests that became tasks, and bear the task's name."""
    for exchange in one.exchanges:
        response = exchange.response
        if response is None or response.kind is not Kind.RESULT or one.part(exchange) is not CallPart.RESULT:
            continue
        if exchange.revision == _REVISION and RELATED_TASK.encode() not in response.raw:
            what = f"The result of the task of {call_name(one.first)} does not name its task."
            yield hit_in(UNMARKED_TASK_RESULT, response, exchange.row, what, group=exchange.method)
