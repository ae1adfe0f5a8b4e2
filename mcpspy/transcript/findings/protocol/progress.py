"""Findings about progress and cancellation: notifications about the wrong request, or at the wrong time.

Source: MCP specification, basic/utilities/progress and cancellation. Order counts only within one stream: over HTTP one stream may
overtake another.
"""

from collections.abc import Iterator
from typing import Final

import msgspec

from ....records import SERVER
from ....wire.json_spans import UNREADABLE, Slice, content_members
from ...http.transaction import ScopeKind
from ...mcp.codes import TASK
from ...mcp.methods import CANCELLED, INITIALIZE, PROGRESS
from ...mcp.revisions import Era
from ...model import Exchange, Message
from ..facts import CaptureFacts
from ..meanwhile import held_up, written_words
from ..rule import Hit, Severity, hit_in, protocol_rule
from ..timeout_signs import is_timeout
from ..transport.server_exits import PATIENCE_NS
from ..transport.stalls import unread_ns
from ..words import call_name, seconds

_CALL: Final = '· handshake 2025-11-25, server: tools\n→ tools/call 1 {"name":"count","_meta":{"progressToken":"t"}}\n'
_CLEAN: Final = (
    f'{_CALL}← notifications/progress {{"progressToken":"t","progress":1}}\n'
    '← notifications/progress {"progressToken":"t","progress":2}\n← result 1 {"content":[]}'
)

PROGRESS_AFTER_END: Final = protocol_rule(
    name="progress-after-end",
    title="Progress after the response",
    what="Progress was reported on a request that was already answered.",
    why="SDKs have forgotten the token by then, and log an error or drop the notification.",
    blame="The answering side: it sent the response before the progress, on the same stream.",
    example=f'{_CALL}← result 1 {{"content":[]}}\n← notifications/progress {{"progressToken":"t","progress":1}}',
    clean=_CLEAN,
    advice="Stop all progress reports before you send the response.",
)

PROGRESS_NOT_INCREASING: Final = protocol_rule(
    name="progress-not-increasing",
    title="Progress does not increase",
    what="The progress of a request did not increase from one notification to the next.",
    why="The specification requires it to increase; otherwise a progress bar stands still or jumps back.",
    blame="The reporting side: the notifications came in this order on one stream.",
    example=(
        f'{_CALL}← notifications/progress {{"progressToken":"t","progress":2}}\n'
        '← notifications/progress {"progressToken":"t","progress":1}\n← result 1 {"content":[]}'
    ),
    clean=_CLEAN,
    advice="Increase progress with each notification, even if the total is unknown.",
)

UNKNOWN_PROGRESS_TOKEN: Final = protocol_rule(
    name="unknown-progress-token",
    title="Unknown progress token",
    what="Progress was reported under a token that no request had.",
    why="The receiver cannot tell which request makes progress, and drops the notification.",
    blame="The reporting side: the capture holds every request of the other side, and none has this token.",
    example=(
        '· handshake 2025-11-25, server: tools\n→ tools/call 1 {"name":"count"}\n'
        '← notifications/progress {"progressToken":"t","progress":1}\n← result 1 {"content":[]}'
    ),
    clean=_CLEAN,
    advice="Report progress only for requests with a params._meta.progressToken, under exactly that token.",
)

CANCELLED_INITIALIZE: Final = protocol_rule(
    name="cancelled-initialize",
    title="initialize cancelled",
    severity=Severity.ERROR,
    what="The client cancelled initialize, often because the server had not answered it.",
    why="Without initialize there is no session; and the specification forbids to cancel it.",
    blame="The client: it sent the cancellation, and the server had little time to answer.",
    example=(
        '→ initialize 0 {"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"client","version":"1"}}\n'
        '· 3.0 s later\n→ notifications/cancelled {"requestId":0}'
    ),
    clean="· handshake 2025-11-25",
    advice="Close the connection to a server that does not answer initialize.",
)

CANCELLED_UNKNOWN_REQUEST: Final = protocol_rule(
    name="cancelled-unknown-request",
    title="Cancellation of an unknown request",
    what="A cancellation names a request that its sender never made.",
    why="The receiver drops it, and the request that was to be cancelled goes on.",
    blame="The cancelling side: the capture holds all of its requests, and none has this id.",
    example='· handshake 2025-11-25, server: tools\n→ notifications/cancelled {"requestId":99}',
    clean=(
        '· handshake 2025-11-25, server: tools\n→ tools/call 1 {"name":"count"}\n← result 1 {"content":[]}\n'
        '→ notifications/cancelled {"requestId":1}'
    ),
    advice="Cancel with the id of the request exactly as it was sent, type included.",
)

LATE_CANCELLATION: Final = protocol_rule(
    name="late-cancellation",
    title="Cancellation after the response",
    severity=Severity.NOTE,
    what="A request was cancelled more than a second after it was answered.",
    why="The receiver ignores it, but the client may not have recognised the response.",
    blame="The cancelling side: it had the response a second before or earlier.",
    example=(
        '· handshake 2025-11-25, server: tools\n→ tools/call 1 {"name":"count"}\n← result 1 {"content":[]}\n'
        '· 5.0 s later\n→ notifications/cancelled {"requestId":1}'
    ),
    clean=(
        '· handshake 2025-11-25, server: tools\n→ tools/call 1 {"name":"count"}\n← result 1 {"content":[]}\n'
        '→ notifications/cancelled {"requestId":1}'
    ),
    advice="Check that the client accepted the response, whose id has to equal that of the request, type included.",
)

_CRAWL: Final = (
    "· handshake 2025-11-25, server: tools\n"
    '→ tools/call 1 {"name":"crawl","_meta":{"progressToken":1}}\n← notifications/progress {"progressToken":1,"progress":1}\n'
    '→ notifications/cancelled {"requestId":1,"reason":"the user changed the question"}\n'
)

CANCELLATION_IGNORED: Final = protocol_rule(
    name="cancellation-ignored",
    title="Work went on after the cancellation",
    what=(
        "More than a second after a request was cancelled, the other side still reported progress on it, or kept a later request "
        "waiting until it had answered the cancelled one, or refused it because something still ran."
    ),
    why="Nobody needs the result any more, and the work delays what is asked next.",
    blame="The side that was asked: it should stop and not answer (basic/utilities/cancellation).",
    example=_CRAWL + '· 2.0 s later\n← notifications/progress {"progressToken":1,"progress":5}\n← result 1 {"content":[]}',
    clean=_CRAWL.partition("→ notifications/cancelled")[0]
    + '· 2.0 s later\n← notifications/progress {"progressToken":1,"progress":5}\n← result 1 {"content":[]}',
    advice="Check for cancellation between two steps of the work, and pass it on to what runs them.",
)

RULES: Final = (
    PROGRESS_AFTER_END, PROGRESS_NOT_INCREASING, UNKNOWN_PROGRESS_TOKEN, CANCELLED_INITIALIZE, CANCELLED_UNKNOWN_REQUEST,
    LATE_CANCELLATION, CANCELLATION_IGNORED,
)  # fmt: skip

_MAX_NUMBER_BYTES: Final = 30

_HELD_UP_BLAME: Final = "The {}: it should stop at a cancellation, and it could not serve another call until it was done."
_HELD_UP_ADVICE: Final = (
    "Run the work of a tool in a task, a thread or a process, so that cancellations are read meanwhile, and end it then."
)

_RACE_NS: Final = 1_000_000_000
"""Time in which a cancellation may cross the response without a fault (basic/utilities/cancellation, timing considerations)."""


def find(facts: CaptureFacts) -> Iterator[Hit]:
    """Find progress that is late, does not increase or has an unknown token, and cancellations that should not have been sent."""
    for exchange in facts.with_notifications:
        yield from _out_of_order(exchange)
    for exchange in facts.cancelled:
        for message in exchange.notifications:
            if message.method == CANCELLED:
                yield from _cancelled(facts, exchange, message)
    for unpaired in facts.unmatched_notifications:
        message = unpaired.message
        if facts.is_unseen(unpaired.at_ns) or message.correlation_key is None or facts.capture.header is None:
            continue
        if "late-progress" in message.flaws or "ambiguous-progress" in message.flaws or not _is_known(facts, message):
            continue
        if message.method == PROGRESS:
            what = f"Progress was reported under the token {message.correlation_key}, which no request had."
            yield hit_in(UNKNOWN_PROGRESS_TOKEN, message, unpaired.row, what, group=message.correlation_key)
        else:
            what = f"A cancellation names the request {message.correlation_key}, which the {message.sender} never sent."
            yield hit_in(CANCELLED_UNKNOWN_REQUEST, message, unpaired.row, what)


def _out_of_order(exchange: Exchange) -> Iterator[Hit]:
    """Find progress that is late or does not increase."""
    reports = [message for message in exchange.notifications if message.method == PROGRESS]
    response = exchange.response
    if response is not None and response.result_type != TASK:  # the token of a task is valid until the task is over
        stream, number = response.stream, response.number
        if late := [report for report in reports if report.number > number and report.stream == stream]:
            yield _late(exchange, late)
    if len(reports) > 1:
        yield from _not_increasing(exchange, reports)


def _is_known(facts: CaptureFacts, message: Message) -> bool:
    """Return whether every request that a notification can name is known; without sessions it may name one of another transaction.

    From 2026-07-28 on a server ends a subscription with a cancellation, which names a request of the client.
    """
    if message.method == CANCELLED and message.sender == SERVER and message.era is Era.MODERN:
        return False
    transaction = facts.capture.transaction_of(message.stream)
    return transaction is None or transaction.scope.kind is not ScopeKind.TRANSACTION


def _late(exchange: Exchange, reports: list[Message]) -> Hit:
    what = f"Progress on {call_name(exchange)} was reported after its response."
    return hit_in(PROGRESS_AFTER_END, reports[0], exchange.row, what, group=exchange.method, count=len(reports))


def _not_increasing(exchange: Exchange, reports: list[Message]) -> Iterator[Hit]:
    last: dict[int, float] = {}
    for message in reports:
        now = progress_value(message)
        before = last.get(message.stream)
        if now is None:
            continue
        if before is not None and now <= before:
            what = f"The progress of {call_name(exchange)} went from {before:g} to {now:g}."
            yield hit_in(PROGRESS_NOT_INCREASING, message, exchange.row, what, group=exchange.method)
            return
        last[message.stream] = now


class _ReportedNumber(msgspec.Struct, gc=False):
    progress: int | float


class _NumberNotification(msgspec.Struct, gc=False):
    params: _ReportedNumber


_decode_number: Final = msgspec.json.Decoder(_NumberNotification).decode
_LONG_INTEGER: Final = 10**18


class _Reported(msgspec.Struct, gc=False):
    progress: msgspec.Raw = msgspec.Raw(b"")


class _Notification(msgspec.Struct, gc=False):
    params: _Reported


_decode: Final = msgspec.json.Decoder(_Notification).decode


def progress_value(message: Message) -> float | None:
    """Return the progress that a notification reports; None if it is no number, or a very long one."""
    try:
        value = _decode_number(message.raw).params.progress
        if type(value) is int and 0 < value < _LONG_INTEGER:  # as most are; of others the spelling counts
            return float(value)
        number: Slice | None = _decode(message.raw).params.progress
    except UNREADABLE:
        number = None
    number = number or content_members(message.raw).get("progress")
    if number is None:
        return None
    digits = bytes(number)
    try:
        return float(digits) if len(digits) <= _MAX_NUMBER_BYTES else None
    except ValueError:
        return None


def _cancelled(facts: CaptureFacts, exchange: Exchange, message: Message) -> Iterator[Hit]:
    response = exchange.response
    if exchange.method == INITIALIZE:
        yield _cancelled_initialize(facts, exchange, message)
    if response is not None and message.at_ns - response.at_ns > _RACE_NS:
        yield _late_cancellation(facts, exchange, message, response)
    if message.sender == exchange.sender and message.correlation_key in (None, exchange.request.id):
        yield from _ignored(facts, exchange, message)


def _ignored(facts: CaptureFacts, exchange: Exchange, message: Message) -> Iterator[Hit]:
    """Find progress reported so long after the cancellation that it did not cross it, and requests that waited for the end."""
    waited = held_up(facts, exchange)
    if waited is not None and exchange.response is not None and message is exchange.cancelled:
        what = (
            f"{call_name(exchange)} was cancelled after {seconds(message.at_ns - exchange.at_ns)}, and the "
            f"{exchange.response.sender} went on with it until it answered {seconds(exchange.response.at_ns - message.at_ns)} later. "
            f"{call_name(waited)} (row {waited.row}) {_suffered(waited, exchange.response)}."
        )
        yield hit_in(
            CANCELLATION_IGNORED, exchange.response, exchange.row, what, blame=_HELD_UP_BLAME.format(exchange.response.sender),
            advice=_HELD_UP_ADVICE, group=exchange.method,
        )  # fmt: skip
        return
    since_ns = message.at_ns + _RACE_NS
    late = [report for report in exchange.notifications if report.method == PROGRESS and report.at_ns > since_ns]
    if late:
        reports = f"{len(late)} more report{'s' if len(late) > 1 else ''} of progress"
        last = seconds(late[-1].at_ns - message.at_ns)
        what = f"{call_name(exchange)} was cancelled, and {reports} followed, the last {last} later."
        yield hit_in(CANCELLATION_IGNORED, late[0], exchange.row, what, group=exchange.method)


def _suffered(later: Exchange, late: Message) -> str:
    """Say what became of a request because a cancelled one ran on until its late response."""
    refusal = later.response
    if refusal is None or refusal.at_ns >= late.at_ns:
        return f"waited {seconds(later.duration_ns or 0)} for that"
    return "failed meanwhile, because something still ran"


def _late_cancellation(facts: CaptureFacts, exchange: Exchange, message: Message, response: Message) -> Hit:
    """Blame the side that answered where a strict reader could not have recognised the answer."""
    from ..unreadable import why_unreadable  # few captures have a late cancellation

    after, group = seconds(message.at_ns - response.at_ns), call_name(exchange)
    what = f"{call_name(exchange)} was cancelled {after} after it was answered."
    reason = why_unreadable(facts, exchange)
    if reason:
        blame = f"The {response.sender}: its answer {reason}, so that the {message.sender} may still have waited for it."
        advice = "Correct the answer; the cancellation follows from it."
        return hit_in(
            LATE_CANCELLATION, message, exchange.row, what, culprit=response.sender, blame=blame, advice=advice, group=group
        )
    if unread := unread_ns(facts, exchange, message.at_ns):
        blame = f"The {message.sender}: it did not read for {seconds(unread)} meanwhile."
        return hit_in(LATE_CANCELLATION, message, exchange.row, what, blame=blame, group=group)
    return hit_in(LATE_CANCELLATION, message, exchange.row, what, group=group)


def _cancelled_initialize(facts: CaptureFacts, exchange: Exchange, message: Message) -> Hit:
    """Blame a server that the client waited for as long as clients do, else the client."""
    if exchange.given_up_ns is None:
        blame = "The client: it sent the cancellation, and had the response by then."
        return hit_in(CANCELLED_INITIALIZE, message, exchange.row, "The client cancelled initialize.", blame=blame)
    waited_ns = message.at_ns - exchange.at_ns
    waited = seconds(waited_ns)
    written = written_words(facts, message.at_ns) if exchange is facts.initializes[0] else ""
    late = "" if exchange.response is None else f"; it answered after {seconds(exchange.response.at_ns - exchange.at_ns)}"
    what = f"The server had not answered initialize for {waited} when the client cancelled it{late}.{written}"
    if waited_ns < PATIENCE_NS and not is_timeout(exchange, message.at_ns):
        return hit_in(CANCELLED_INITIALIZE, message, exchange.row, what)
    from ..transport.exit_causes import without_stdin  # its patterns take time

    if exchange.response is None and (cause := without_stdin(facts)) is not None:
        return hit_in(
            CANCELLED_INITIALIZE, message, exchange.row, what, culprit=cause.culprit, blame=cause.blame, advice=cause.advice
        )
    blame = f"The server: it left the first request of the session unanswered for {waited}."
    advice = "Run the server's command in a terminal, and see what it does before it answers."
    return hit_in(CANCELLED_INITIALIZE, message, exchange.row, what, culprit=SERVER, blame=blame, advice=advice)
