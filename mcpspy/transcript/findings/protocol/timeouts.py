"""Findings about requests that were given up: by a timeout, or for a reason that nobody states."""

from collections.abc import Iterator
from typing import Final

from ....records import CLIENT, OTHER_SIDE, SERVER
from ...http.transaction import ANSWER_REFUSED
from ...mcp.blocks import member
from ...mcp.methods import INITIALIZE, PING, PROGRESS
from ...model import Exchange, Kind
from ..facts import CaptureFacts
from ..meanwhile import FOR_PEOPLE, awaited, held_up, log_advice, log_words, logged_while, meanwhile_words, next_answered
from ..rule import Hit, Severity, hit_in, transport_rule
from ..timeout_signs import is_timeout
from ..transport.deliveries import explained_rows
from ..transport.stalls import unread_ns
from ..words import call_name, quoted, seconds
from .repeats import repetitions

_CALL: Final = '· handshake 2025-11-25, server: tools\n→ tools/call 1 {"name":"report"}\n'

TIMED_OUT: Final = transport_rule(
    name="timed-out",
    title="Request timed out",
    what=(
        "A request was given up with a reason that names a timeout (“Request timed out”, -32001), "
        "or after the time of a common one (5, 10, 30, 60, 120, 300 s, …)."
    ),
    why="The call fails with “Request timed out” (-32001 in the TypeScript SDK), which does not say which side was slow.",
    blame="The answering side: it did not answer in time, unless it waited for the other side itself.",
    example=(
        f"{_CALL}· 60.0 s later\n"
        '→ notifications/cancelled {"requestId":1,"reason":"Request timed out"}\n· 48.0 s later\n← result 1 {"content":[]}'
    ),
    clean=f'{_CALL}· 33.3 s later\n← result 1 {{"content":[]}}',
    advice="Raise the client's timeout, report progress if that extends it, or make the call faster or a task.",
)

GIVEN_UP: Final = transport_rule(
    name="given-up",
    title="Request given up",
    severity=Severity.NOTE,
    what="A request was given up before it was answered, and nothing shows that a timeout was the reason.",
    why="The caller has no result: a user changed their mind, or a client ran out of patience.",
    blame="Unclear: to cancel is allowed, and a cancelled request needs no answer.",
    example=f'{_CALL}· 3.0 s later\n→ notifications/cancelled {{"requestId":1}}',
    clean=f'{_CALL}· 3.0 s later\n← result 1 {{"content":[]}}',
    advice="If nobody cancelled it on purpose, look for a timeout in the client, and for what the server did meanwhile.",
)

RULES: Final = (TIMED_OUT, GIVEN_UP)

_LONG_UNREAD_NS: Final = 1_000_000_000

_SILENT_ADVICE: Final = (
    "Look in the log of the side that was asked for this call: it may have failed without an answer. "
    "If it works that long, let it report progress, or raise the timeout."
)
_ENDED_ADVICE: Final = "Send the answer before the stream ends, or on the stream with which the client resumes it."

_SOON_NS: Final = 1_000_000_000

_PATIENT_NS: Final = 60_000_000_000
"""A client that waits so long may end even a call that reports progress (basic/lifecycle, timeouts)."""

_SHORT_NS: Final = 1_000_000_000
"""A timeout below this is too short for a call that does some work: the side that set it is to blame."""


def find(facts: CaptureFacts) -> Iterator[Hit]:
    """Find requests that were given up."""
    misdelivered, explained = facts.misdelivered.rows, explained_rows(facts)
    twice = {repetition.first.row for repetition in repetitions(facts)}
    for exchange in facts.cancelled:
        until_ns = exchange.given_up_ns
        if (
            until_ns is None
            or exchange.is_probe
            or exchange.method == PING
            or (exchange.method == INITIALIZE and exchange.cancelled is not None)
        ):
            continue  # `pings` has the rule about a ping, and `progress` that about a cancelled initialize
        if facts.last_hole_ns is not None and facts.last_hole_ns >= exchange.at_ns:
            continue  # the answer may be missing
        if exchange.row in misdelivered or exchange.row in explained:
            continue  # it was answered, to somebody else, or another finding says why not
        if exchange.row in twice and not is_timeout(exchange, until_ns):
            continue  # `repeats` says that it was given up
        if held_up(facts, exchange) is not None:
            continue  # `progress` says that the cancellation was ignored
        yield _given_up(facts, exchange, until_ns)


def _given_up(facts: CaptureFacts, exchange: Exchange, until_ns: int) -> Hit:
    requester, responder = exchange.sender, OTHER_SIDE[exchange.sender]
    waited, question = seconds(until_ns - exchange.at_ns), awaited(facts, exchange, until_ns)
    line = b"" if question is not None else logged_while(facts, exchange, until_ns)
    if question is None:
        rest = meanwhile_words(facts, exchange, until_ns) + log_words(line)
    else:
        rest = f" Meanwhile the {responder} waited for the {requester} to answer {call_name(question)} (row {question.row})."
    message, group = exchange.cancelled or exchange.request, call_name(exchange)
    what = (
        f"The {requester} gave up on {call_name(exchange)} after {waited}; the {responder} {_reply(exchange, until_ns)}.{rest}"
    )
    if not is_timeout(exchange, until_ns):
        if question is None and exchange.cancelled is not None and exchange.response is None:
            what = (
                f"The {requester} cancelled {call_name(exchange)} after {waited}"
                f"{_as_it_should(facts, exchange, until_ns)}.{log_words(line)}"
            )
        return hit_in(GIVEN_UP, message, exchange.row, what, culprit="unclear", group=group)
    culprit, blame, advice = _reason(facts, exchange, question, until_ns)
    if culprit == SERVER and exchange.response is None:
        advice = log_advice(line) or advice
    is_impatient = question is None and culprit == requester and _last_progress_ns(exchange, until_ns) is not None
    is_ignored = question is not None and question.response is None
    severity = None if culprit == responder or is_impatient or is_ignored else Severity.NOTE
    return hit_in(
        TIMED_OUT, message, exchange.row, what, culprit=culprit, severity=severity, blame=blame, advice=advice, group=group
    )


def _reply(exchange: Exchange, until_ns: int) -> str:
    """Say how a request was answered that was given up; an error soon after may only say that it was cancelled."""
    late = exchange.response
    if late is None:
        return "never answered"
    if late.kind is Kind.ERROR and exchange.cancelled is not None and late.at_ns - until_ns < _SOON_NS:
        words = quoted(str(member(late.error, "message")).encode("utf-8", "backslashreplace"))
        return f"had not answered by then, and answered the cancellation with the error {words}"
    return f"answered after {seconds(late.at_ns - exchange.at_ns)}{_taken_words(exchange)}"


def _taken_words(exchange: Exchange) -> str:
    """Say whether a client that had closed its connection took the answer; empty for one that cancelled."""
    if exchange.cancelled is not None or exchange.transaction is None:
        return ""
    if any(note.topic == ANSWER_REFUSED for note in exchange.transaction.notes):
        return ", which the client did not take any more"
    return ", and the recording does not show whether the client still took that"


def _as_it_should(facts: CaptureFacts, exchange: Exchange, until_ns: int) -> str:
    """Say that no answer followed a cancellation, and what the other side answered after it."""
    later = next_answered(facts, exchange, until_ns)
    if later is None:
        return ", and no answer followed, as is right after a cancellation"
    after = seconds(max(later.duration_ns or 0, 1_000_000))
    return f", and no answer followed, as is right; the later {call_name(later)} (row {later.row}) was answered after {after}"


def _reason(facts: CaptureFacts, exchange: Exchange, question: Exchange | None, until_ns: int) -> tuple[str, str, str]:
    """Say whose fault a timeout is, why, and what to do; an empty advice is the rule's."""
    requester, responder = exchange.sender, OTHER_SIDE[exchange.sender]
    waited = seconds(until_ns - exchange.at_ns)
    if question is not None:
        advice = f"Let the {requester} answer {question.method}, with an error if it cannot serve it."
        return requester, f"The {requester}: it did not answer what the {responder} asked it meanwhile.", advice
    if (unread := unread_ns(facts, exchange, until_ns)) > _LONG_UNREAD_NS:
        return (
            requester,
            f"The {requester}: it did not read for {seconds(unread)} meanwhile, so that no answer could reach it.",
            "",
        )
    if until_ns - exchange.at_ns < _SHORT_NS:
        return requester, f"The {requester}: it waits only {waited}, and many calls take longer.", ""
    if exchange.method in FOR_PEOPLE:
        return "unclear", f"Unclear: the {responder} asked a person, who may take their time.", ""
    if (progress := _last_progress_ns(exchange, until_ns)) is not None:
        blame = f"The {requester}: it waits for {waited} only, and the {responder} reported progress {{}} before."
        advice = "Let progress extend the timeout, or raise it; the other side works on the call."
        return requester, blame.format(seconds(until_ns - progress)), advice
    if exchange.response is not None:
        return responder, f"The {responder}: it was slower than the {waited} that the {requester} waits.", ""
    if (ended := _ended(exchange, until_ns)) is not None:
        return responder, f"The {responder}: it ended the stream {ended} after the request, without the answer.", _ENDED_ADVICE
    return responder, f"The {responder}: it received the request and never answered it, within {waited}.", _SILENT_ADVICE


def _last_progress_ns(exchange: Exchange, until_ns: int) -> int | None:
    """Return when the last progress came, if that was in the later half of a wait of less than a minute; else None."""
    times = [message.at_ns for message in exchange.notifications if message.method == PROGRESS and message.at_ns < until_ns]
    waited_ns = until_ns - exchange.at_ns
    return times[-1] if times and waited_ns < _PATIENT_NS and until_ns - times[-1] <= waited_ns // 2 else None


def _ended(exchange: Exchange, until_ns: int) -> str | None:
    """Say after what time the server ended the stream that the answer was due on; None if it had not by then."""
    transaction = exchange.transaction
    if transaction is None or exchange.sender != CLIENT or transaction.ended_by != SERVER or not transaction.is_stream:
        return None
    ended_ns = transaction.ended_ns
    return seconds(ended_ns - exchange.at_ns) if ended_ns is not None and ended_ns < until_ns else None
