"""Findings about messages that came late and at one instant: progress, and all answers of a server on stdio.

    tools/call 1 ─ ─ ─ ─ 5 s of silence ─ ─ ─ ─ ► progress 1, progress 2, progress 3, result 1    within 20 ms

`streams` is about whole streams of HTTP that come at once, keep-alives included.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from ....records import OTHER_SIDE, SERVER
from ...mcp.methods import PROGRESS
from ...model import Exchange, Message
from ..facts import CaptureFacts
from ..protocol.progress import progress_value
from ..rule import Hit, hit_in, transport_rule
from ..words import call_name, seconds
from .streams import came_at_once, held_back

_COUNT: Final = '· handshake 2025-11-25, server: tools\n→ tools/call 1 {"name":"count","_meta":{"progressToken":"t"}}\n'
_STEPS: Final = [f'← notifications/progress {{"progressToken":"t","progress":{at}}}\n' for at in (1, 2, 3)]

PROGRESS_IN_BURST: Final = transport_rule(
    name="progress-in-burst",
    title="Progress delivered all at once",
    what="Three or more progress notifications came within 20 ms of each other, after two seconds or more without any.",
    why="Progress that comes with the result is of no use: nobody sees it, and it keeps no request from timing out.",
    blame="The sender: mcpspy reads what is written at once, and nothing is between them.",
    example=f'{_COUNT}· 5.0 s later\n{"".join(_STEPS)}← result 1 {{"content":[]}}',
    clean=f'{_COUNT}{"".join(f"· 2.0 s later{chr(10)}{step}" for step in _STEPS)}← result 1 {{"content":[]}}',
    advice="Flush after each message, and do not block the event loop in a tool: use await, or run its work in a thread.",
)  # fmt: skip

LATE_ANSWERS: Final = transport_rule(
    name="late-answers",
    title="Answers only after stdin closed",
    what="The server wrote nothing to stdout until the client closed stdin, and then answered what had waited.",
    why="Its answers stay in a buffer until it is full or the server ends; the client waits for them and times out.",
    blame="The server: it had the requests for seconds, and wrote its answers only at the end.",
    example=(
        '→ {"jsonrpc":"2.0","id":1,"method":"tools/list"}\n· 3.0 s later\n· the client closes stdin\n'
        '← {"jsonrpc":"2.0","id":1,"result":{"tools":[]}}\n· the server exits 0'
    ),
    clean=(
        '→ {"jsonrpc":"2.0","id":1,"method":"tools/list"}\n← {"jsonrpc":"2.0","id":1,"result":{"tools":[]}}\n· 3.0 s later\n'
        "· the client closes stdin\n· the server exits 0"
    ),
    advice="Flush stdout after each message (Python: print(…, flush=True) or python -u).",
)

RULES: Final = (PROGRESS_IN_BURST, LATE_ANSWERS)

_FEW: Final = 3
_INSTANT_NS: Final = 20_000_000
_SILENCE_NS: Final = 2_000_000_000
_AT_END_NS: Final = 1_000_000_000


def find(facts: CaptureFacts) -> Iterator[Hit]:
    """Find progress and answers that came late and together."""
    for exchange in facts.with_notifications:
        if len(exchange.notifications) >= _FEW:
            yield from _progress(facts, exchange)
    yield from _answers(facts)


def _reports(exchange: Exchange) -> list[Message]:
    return [message for message in exchange.notifications if message.method == PROGRESS]


def _progress(facts: CaptureFacts, exchange: Exchange) -> Iterator[Hit]:
    reports = _reports(exchange)
    if not reports or reports[0].at_ns - exchange.request.at_ns < _SILENCE_NS:
        return  # as is usual: the first of them came by itself, or without a silence
    silent_ns = _silence_before(exchange, reports)
    if silent_ns is None or not _grows(reports) or _is_stalled(facts, exchange, reports[-1]):
        return
    transaction = exchange.transaction
    if transaction is not None and transaction.response is not None and came_at_once(transaction, transaction.response):
        return
    came = f"{len(reports)} progress notifications on {call_name(exchange)} came all at once, after {seconds(silent_ns)}"
    culprit: str = OTHER_SIDE[exchange.sender]
    blame = ""
    if transaction is not None:
        response = transaction.response
        culprit, blame = held_back(
            response, "the server wrote them late, or a proxy between mcpspy and the server collected them"
        )
        if response is not None and response.comments:
            came += f", though the stream brought {response.comments} keep-alives"
    yield hit_in(
        PROGRESS_IN_BURST, reports[0], exchange.row, f"{came}.", culprit=culprit, blame=blame, group=call_name(exchange)
    )


def _silence_before(exchange: Exchange, reports: list[Message]) -> int | None:
    """Return the silence before the first burst; None if any progress came by itself.

    After a burst, one or two more may come with the answer.
    """
    silent_ns: int | None = None
    before_ns = exchange.at_ns
    for burst in _bursts(reports):
        first_ns, last_ns = burst[0].at_ns, burst[-1].at_ns
        if len(burst) >= _FEW and first_ns - before_ns >= _SILENCE_NS:
            silent_ns = first_ns - before_ns if silent_ns is None else silent_ns
        elif silent_ns is None or not _comes_with_answer(exchange, last_ns):
            return None
        before_ns = last_ns
    return silent_ns if exchange.response is None or _comes_with_answer(exchange, before_ns) else None


def _bursts(reports: list[Message]) -> Iterator[list[Message]]:
    burst: list[Message] = []
    for report in reports:
        if burst and report.at_ns - burst[-1].at_ns > _INSTANT_NS:
            yield burst
            burst = []
        burst.append(report)
    if burst:
        yield burst


def _comes_with_answer(exchange: Exchange, at_ns: int) -> bool:
    return exchange.response is not None and abs(exchange.response.at_ns - at_ns) <= _INSTANT_NS


def _grows(reports: list[Message]) -> bool:
    values = [progress_value(report) for report in reports]
    return all(before is not None and after is not None and before < after for before, after in pairwise(values))


def _is_stalled(facts: CaptureFacts, exchange: Exchange, last: Message) -> bool:
    """Return whether a reader had stopped meanwhile: then mcpspy itself had to wait."""
    return any(exchange.at_ns <= at_ns <= last.at_ns for at_ns, _ in facts.stalls)


def _answers(facts: CaptureFacts) -> Iterator[Hit]:
    """Find a server on stdio that wrote nothing before the client closed stdin, and then its answers."""
    left_ns = facts.left_ns
    if left_ns is None or facts.capture.transactions or facts.first_hole_ns is not None:
        return
    late: list[Exchange] = []
    for exchange in facts.exchanges:
        response = exchange.response
        if exchange.sender == SERVER or (response is not None and response.at_ns <= left_ns):
            return
        if response is not None and response.at_ns - left_ns <= _AT_END_NS and left_ns - exchange.at_ns >= _SILENCE_NS:
            late.append(exchange)
    if not late or any(unpaired.message.sender == SERVER and unpaired.at_ns <= left_ns for unpaired in facts.malformed):
        return
    first = late[0]
    count = f"{len(late)} requests" if len(late) > 1 else "one request"
    what = (
        f"The server wrote nothing for {seconds(left_ns - first.at_ns)}, until the client closed stdin, and then answered "
        f"{count}, the first of them {call_name(first)}."
    )
    assert first.response is not None
    yield hit_in(LATE_ANSWERS, first.response, first.row, what, culprit=SERVER)
