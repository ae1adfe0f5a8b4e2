"""Findings about progress and cancellation: notifications that name a request, and should not, or no more.

Source: MCP specification, basic/utilities/progress and cancellation. Order is only judged within one stream: two streams of HTTP may
overtake each other.
"""

from collections.abc import Iterator
from typing import Final

from ....records import SERVER
from ....wire.json_spans import members
from ...http.transaction import ScopeKind
from ...mcp.fields import TASK
from ...mcp.methods import CANCELLED, INITIALIZE, PROGRESS
from ...mcp.revisions import Era
from ...model import Exchange, Message
from ..facts import CaptureFacts
from ..rule import Family, Hit, Rule, Severity, hit_in
from ..words import call_name, seconds

_CALL: Final = '· handshake 2025-11-25, server: tools\n→ tools/call 1 {"name":"count","_meta":{"progressToken":"t"}}\n'
_CLEAN: Final = (
    f'{_CALL}← notifications/progress {{"progressToken":"t","progress":1}}\n'
    '← notifications/progress {"progressToken":"t","progress":2}\n← result 1 {"content":[]}'
)

PROGRESS_AFTER_END: Final = Rule(
    name="progress-after-end",
    title="Progress after the answer",
    family=Family.PROTOCOL,
    severity=Severity.WARNING,
    what="Progress is reported on a request that was answered before.",
    why="SDKs have forgotten the token by then: they log an error, or drop the notification.",
    blame="Whoever answered: the answer and the progress came on one stream, in this order.",
    example=f'{_CALL}← result 1 {{"content":[]}}\n← notifications/progress {{"progressToken":"t","progress":1}}',
    clean=_CLEAN,
    fix="Stop reporting before you answer; wait for what still sends.",
)

PROGRESS_NOT_INCREASING: Final = Rule(
    name="progress-not-increasing",
    title="Progress does not increase",
    family=Family.PROTOCOL,
    severity=Severity.WARNING,
    what="The progress of a request does not grow with each notification.",
    why="The specification has it increase; what is drawn from it jumps back, or stands still.",
    blame="Whoever reports: the notifications came on one stream, in this order.",
    example=(
        f'{_CALL}← notifications/progress {{"progressToken":"t","progress":2}}\n'
        '← notifications/progress {"progressToken":"t","progress":1}\n← result 1 {"content":[]}'
    ),
    clean=_CLEAN,
    fix="Count up, also where the total is unknown.",
)

UNKNOWN_PROGRESS_TOKEN: Final = Rule(
    name="unknown-progress-token",
    title="Unknown progress token",
    family=Family.PROTOCOL,
    severity=Severity.WARNING,
    what="Progress is reported under a token that no request gave out.",
    why="The receiver cannot tell what makes progress, and drops it.",
    blame="Whoever reports: every request of the other side is in the capture, and none has this token.",
    example=(
        '· handshake 2025-11-25, server: tools\n→ tools/call 1 {"name":"count"}\n'
        '← notifications/progress {"progressToken":"t","progress":1}\n← result 1 {"content":[]}'
    ),
    clean=_CLEAN,
    fix="Report progress only where params._meta.progressToken asks for it, under exactly that token.",
)

CANCELLED_INITIALIZE: Final = Rule(
    name="cancelled-initialize",
    title="initialize cancelled",
    family=Family.PROTOCOL,
    severity=Severity.ERROR,
    what="The client cancels initialize.",
    why="The specification forbids it: nobody knows what is agreed on then, and the server may wait for the rest of the handshake.",
    blame="The client: it sent the cancellation.",
    example=(
        '→ initialize 0 {"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"client","version":"1"}}\n'
        '· 3.0 s later\n→ notifications/cancelled {"requestId":0}'
    ),
    clean="· handshake 2025-11-25",
    fix="To give up on a server that does not answer initialize, close the connection.",
)

CANCELLED_UNKNOWN_REQUEST: Final = Rule(
    name="cancelled-unknown-request",
    title="Cancellation of an unknown request",
    family=Family.PROTOCOL,
    severity=Severity.WARNING,
    what="A cancellation names a request that its sender never made.",
    why="It is dropped, and what was to be cancelled goes on.",
    blame="Whoever cancels: every request of that side is in the capture, and none has this id.",
    example='· handshake 2025-11-25, server: tools\n→ notifications/cancelled {"requestId":99}',
    clean=('· handshake 2025-11-25, server: tools\n→ tools/call 1 {"name":"count"}\n→ notifications/cancelled {"requestId":1}'),
    fix="Cancel by the id of the request as it was sent, type included.",
)

LATE_CANCELLATION: Final = Rule(
    name="late-cancellation",
    title="Cancellation after the answer",
    family=Family.PROTOCOL,
    severity=Severity.INFO,
    what="A request is cancelled long after it was answered.",
    why="It does no harm: the receiver has to ignore it. It may mean that the answer was not recognised.",
    blame="Whoever cancels: the answer had passed a second before.",
    example=(
        '· handshake 2025-11-25, server: tools\n→ tools/call 1 {"name":"count"}\n← result 1 {"content":[]}\n'
        '· 5.0 s later\n→ notifications/cancelled {"requestId":1}'
    ),
    clean=(
        '· handshake 2025-11-25, server: tools\n→ tools/call 1 {"name":"count"}\n← result 1 {"content":[]}\n'
        '→ notifications/cancelled {"requestId":1}'
    ),
    fix="See whether the client took the answer: its id has to be that of the request, type included.",
)

RULES: Final = (
    PROGRESS_AFTER_END, PROGRESS_NOT_INCREASING, UNKNOWN_PROGRESS_TOKEN, CANCELLED_INITIALIZE, CANCELLED_UNKNOWN_REQUEST,
    LATE_CANCELLATION,
)  # fmt: skip

_RACE_NS: Final = 1_000_000_000
"""A cancellation that crosses the answer is nobody's fault (basic/utilities/cancellation, timing considerations)."""


def find(facts: CaptureFacts) -> Iterator[Hit]:
    """Progress too late, not growing or about nothing; cancellations of what must not be, never was or is long over."""
    for exchange in facts.with_notifications:
        reports = [one for one in exchange.notifications if one.method == PROGRESS]
        yield from _late(exchange, reports)
        yield from _shrinking(exchange, reports)
        for message in exchange.notifications:
            if message.method == CANCELLED:
                yield from _cancelled(exchange, message)
    for unpaired in facts.unmatched_notifications:
        message = unpaired.message
        if facts.is_unseen(unpaired.at_ns) or message.correlation_key is None or facts.capture.header is None:
            continue
        if "late-progress" in message.flaws or "ambiguous-progress" in message.flaws or not _is_known(facts, message):
            continue
        if message.method == PROGRESS:
            what = f"Progress was reported under the token {message.correlation_key}, which no request gave out."
            yield hit_in(UNKNOWN_PROGRESS_TOKEN, message, unpaired.row, what, group=message.correlation_key)
        else:
            what = f"A cancellation names the request {message.correlation_key}, which the {message.sender} never made."
            yield hit_in(CANCELLED_UNKNOWN_REQUEST, message, unpaired.row, what)


def _is_known(facts: CaptureFacts, message: Message) -> bool:
    """Whether all that a notification could name is known. Where each transaction stands alone, it names what went in another.

    From 2026-07-28 on a server ends a subscription with a cancellation, which names a request of the client.
    """
    if message.method == CANCELLED and message.sender == SERVER and message.era is Era.MODERN:
        return False
    transaction = facts.capture.transaction_of(message.stream)
    return transaction is None or transaction.scope.kind is not ScopeKind.TRANSACTION


def _late(exchange: Exchange, reports: list[Message]) -> Iterator[Hit]:
    response = exchange.response
    if response is None or response.result_type == TASK:  # a task's token is good until the task is over
        return
    late = [one for one in reports if one.stream == response.stream and one.number > response.number]
    if late:
        what = f"Progress on {call_name(exchange)} was reported after it was answered."
        yield hit_in(PROGRESS_AFTER_END, late[0], exchange.row, what, group=exchange.method, count=len(late))


def _shrinking(exchange: Exchange, reports: list[Message]) -> Iterator[Hit]:
    last: dict[int, float] = {}
    for message in reports:
        now = _progress(message)
        before = last.get(message.stream)
        if now is None:
            continue
        if before is not None and now <= before:
            what = f"The progress of {call_name(exchange)} went from {before:g} to {now:g}."
            yield hit_in(PROGRESS_NOT_INCREASING, message, exchange.row, what, group=exchange.method)
            return
        last[message.stream] = now


def _progress(message: Message) -> float | None:
    said = members(members(message.raw).get("params", b"")).get("progress")
    if said is None or len(bytes(said)) > 30:
        return None
    try:
        return float(bytes(said))
    except ValueError:
        return None


def _cancelled(exchange: Exchange, message: Message) -> Iterator[Hit]:
    if exchange.method == INITIALIZE:
        yield hit_in(CANCELLED_INITIALIZE, message, exchange.row, "The client cancelled initialize.")
    response = exchange.response
    if response is not None and message.at_ns - response.at_ns > _RACE_NS:
        after = seconds(message.at_ns - response.at_ns)
        what = f"{call_name(exchange)} was cancelled {after} after it was answered."
        yield hit_in(LATE_CANCELLATION, message, exchange.row, what, group=exchange.method)
