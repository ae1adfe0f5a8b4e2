"""Judgement of a trial: what a peer did after a fault, by what its captures show and how its process ended.

A client that starts its server again makes a capture for each; they are given together, as one transcript.
"""

from __future__ import annotations

from ...records import CLIENT, Exit, Intercept
from ...transcript.intercepts import ends_channel
from ...transcript.message import NOT_REORDERED, mark_words
from ...transcript.model import HTTP_REDIRECTS, ChannelEvent, Exchange, Message, Outcome, Transcript
from ..json.canonical import canonical
from ..mock.content import params_value
from .outcome import Judgement, PeerEnd, TrialOutcome


def judged_client(transcript: Transcript, end: PeerEnd, sound: PeerEnd) -> Judgement:
    """Judge a client by the captures of its trial, and by the end of its process, which is compared with that without a fault."""
    hit_ns = _hit_ns(transcript)
    if hit_ns is None:
        return Judgement(outcome=TrialOutcome.NOT_REACHED, more="" if end.status == sound.status else end.words)
    restarts = len(transcript.captures) - 1
    more = [f"started the server again{f' {restarts} times' if restarts > 1 else ''}"] if restarts else []
    more += ["began a new session"] if not restarts and _openings(transcript) > 1 else []
    more += [] if end.status == sound.status else [end.words]
    hit = _hit(transcript, hit_ns)
    after_ns = None if hit is None or _ends(transcript) else _waited_ns(transcript, hit)
    if end.status is None:
        outcome = TrialOutcome.HUNG
    elif hit is not None and _is_repeated(transcript, hit):
        outcome = TrialOutcome.ASKED_AGAIN
    elif after_ns is not None:
        outcome = TrialOutcome.GAVE_UP
    else:
        outcome = TrialOutcome.WENT_ON if end.status == sound.status else TrialOutcome.CRASHED
    return Judgement(outcome=outcome, after_ns=after_ns if outcome is TrialOutcome.GAVE_UP else None, more=", ".join(more))


def judged_server(transcript: Transcript, sound: Transcript) -> Judgement:
    """Judge a server by the capture of its trial, which is compared with that without a fault."""
    hit_ns = _hit_ns(transcript)
    if hit_ns is None:
        return Judgement(outcome=TrialOutcome.NOT_REACHED)
    exit, usual = _exit(transcript), _exit(sound)
    left_ns = transcript.captures[0].left_ns
    is_early = exit is not None and (left_ns is None or exit.at_ns < left_ns)
    if exit is not None and _end_words(exit) != (usual and _end_words(usual)):
        if transcript.captures[0].escalations:
            return Judgement(outcome=TrialOutcome.HUNG, more="it did not end with its input")
        return Judgement(outcome=TrialOutcome.CRASHED, more=_end_words(exit))
    if is_early:
        return Judgement(outcome=TrialOutcome.CRASHED, more="it ended before its input")
    later = [exchange for exchange in transcript.exchanges if exchange.sender == CLIENT and exchange.at_ns > hit_ns]
    silent = [exchange for exchange in later if exchange.response is None and not mark_words(exchange.messages)]
    hit = _hit(transcript, hit_ns)
    if silent:
        return Judgement(outcome=TrialOutcome.HUNG, more=f"{len(silent)} of {len(later)} later requests had no answer")
    if hit is None or hit.response is None:
        status = _refusal(transcript)
        return Judgement(
            outcome=TrialOutcome.REFUSED if status else TrialOutcome.NO_ANSWER, more=f"status {status}" if status else ""
        )
    if hit.outcome in (Outcome.ERROR, Outcome.TOOL_ERROR):
        return Judgement(outcome=TrialOutcome.REFUSED, more=hit.outcome.value)
    return Judgement(outcome=TrialOutcome.WENT_ON)


def _refusal(transcript: Transcript) -> int:
    """Return the status with which HTTP refused what the fault hit; 0 if it did not."""
    hits = (transaction for transaction in transcript.captures[0].transactions.values() if transaction.intercepted)
    return next((transaction.status for transaction in hits if transaction.status >= HTTP_REDIRECTS), 0)


def is_hit_by(transcript: Transcript) -> bool:
    """Return whether a fault hit anything in these captures."""
    return _hit_ns(transcript) is not None


def _hit_ns(transcript: Transcript) -> int | None:
    """Return when the fault hit, on the transcript's clock; None if it did not."""
    events = (row for row in transcript.rows if isinstance(row, ChannelEvent) and isinstance(row.record, Intercept))
    hits = (event.at_ns for event in events if event.record.action != NOT_REORDERED)  # type: ignore[union-attr]
    return min(hits, default=None)


def _ends(transcript: Transcript) -> bool:
    """Return whether the fault ended the connection, so that the client need not give up anything."""
    events = (row.record for row in transcript.rows if isinstance(row, ChannelEvent))
    return any(isinstance(record, Intercept) and ends_channel(record) and record.action != "stall" for record in events)


def _openings(transcript: Transcript) -> int:
    """Count the handshakes."""
    return sum(exchange.method == "initialize" for exchange in transcript.exchanges if exchange.sender == CLIENT)


def _hit(transcript: Transcript, hit_ns: int) -> Exchange | None:
    """Find the exchange that the fault hit; None if it hit something else."""
    marked = (exchange for exchange in transcript.exchanges if mark_words(exchange.messages))
    return next((exchange for exchange in marked if exchange.at_ns <= hit_ns), None)


def _waited_ns(transcript: Transcript, hit: Exchange) -> int | None:
    """Return how long a client waited for an answer that it then gave up; None if it got one."""
    if hit.given_up_ns is not None:
        return hit.given_up_ns - hit.at_ns
    if hit.response is not None or (hit.transaction is not None and hit.transaction.status):
        return None
    info = transcript.captures[hit.capture]
    end_ns = info.last_ns if info.left_ns is None else info.left_ns
    return max(end_ns + info.shift_ns - hit.at_ns, 0)


def _is_repeated(transcript: Transcript, hit: Exchange) -> bool:
    """Return whether the client sent the same request once more."""
    params = _params(hit.request)
    later = (exchange for exchange in transcript.exchanges if exchange.row > hit.row and exchange.sender == hit.sender)
    return any(exchange.method == hit.method and _params(exchange.request) == params for exchange in later)


def _params(request: Message) -> str:
    """Return the params without what is new each time."""
    value = params_value(request)
    if isinstance(value, dict):
        value.pop("_meta", None)
    return canonical(value)


def _exit(transcript: Transcript) -> Exit | None:
    return next((info.exit for info in transcript.captures if info.exit is not None), None)


def _end_words(exit: Exit) -> str:
    return f"killed by {exit.signal}" if exit.signal else f"exit status {exit.code}"
