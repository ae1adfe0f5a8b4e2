"""Judgement of a trial: what a peer did after a fault, by what its captures show and how its process ended.

A client that starts its server again makes a capture for each; they are given together, as one transcript.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Final

from ...records import CLIENT, Exit, Intercept, Note
from ...transcript.intercepts import ends_channel
from ...transcript.mcp.methods import OPENINGS, PING
from ...transcript.message import NOT_REORDERED, mark_words
from ...transcript.model import HTTP_REDIRECTS, ChannelEvent, Exchange, Message, Outcome, Transcript
from ..json.canonical import canonical
from ..mock.content import params_value
from .outcome import Judgement, PeerEnd, TrialOutcome

PAUSE_NS: Final = 100_000_000
"""A client that makes its next request sooner did not wait for an answer: it makes several at once."""

MOCK_ERROR: Final = b'"mcpspy mock: '
"""The beginning of an error of our own, about a request that was never recorded: the client need not have lost that."""


def judged_client(transcript: Transcript, end: PeerEnd, sound: Transcript, sound_end: PeerEnd) -> Judgement:
    """Judge a client by what its server saw, and by the end of its process. Both are compared with those without a fault."""
    hit_ns = _hit_ns(transcript)
    if hit_ns is None:
        return Judgement(outcome=TrialOutcome.NOT_REACHED, more="" if end.status == sound_end.status else end.words)
    restarts = len(transcript.captures) - len(sound.captures)
    more = [f"started the server again{f' {restarts} times' if restarts > 1 else ''}"] if restarts > 0 else []
    more += ["began a new session"] if restarts <= 0 and _openings(transcript) > _openings(sound) else []
    more += [] if end.status == sound_end.status else [end.words]
    hit = _hit(transcript, hit_ns)
    first_ns = hit_ns if hit is None else hit.at_ns
    later = [exchange for exchange in _requests(transcript) if exchange.at_ns >= first_ns and exchange is not hit]
    usual = _requests(sound)[len(_requests(transcript)) - len(later) :]
    after_ns = None if hit is None or _ends(transcript) else _waited_ns(transcript, hit, later, is_leaving=_is_leaving(sound))
    if end.status is None:
        outcome = TrialOutcome.HUNG
    elif later and all(map(_is_lost, later)) and not (usual and all(map(_is_lost, usual))):
        outcome = TrialOutcome.LOST_CALLS
    elif hit is not None and _count(transcript, hit) > _count(sound, hit):
        outcome = TrialOutcome.ASKED_AGAIN
    elif after_ns is not None:
        outcome = TrialOutcome.GAVE_UP
    elif end.status != sound_end.status:
        outcome = TrialOutcome.CRASHED
    else:
        outcome = TrialOutcome.NEVER_CAME_BACK if usual and not later else TrialOutcome.WENT_ON
    return Judgement(outcome=outcome, after_ns=after_ns if outcome is TrialOutcome.GAVE_UP else None, more=", ".join(more))


def judged_server(transcript: Transcript, sound: Transcript) -> Judgement:
    """Judge a server by the capture of its trial, which is compared with that without a fault."""
    hit_ns = _hit_ns(transcript)
    if hit_ns is None:
        return Judgement(outcome=TrialOutcome.NOT_REACHED)
    exit, usual, is_cut = _exit(transcript), _exit(sound), _ends(transcript)
    if exit is not None and _is_by_mcpspy(transcript, exit):
        is_hung = not is_cut or exit.signal == "SIGKILL" or _had_time(transcript, exit, sound)
        return Judgement(outcome=TrialOutcome.HUNG, more="it did not end with its input") if is_hung else _went_on()
    if exit is not None and is_cut:
        is_normal = exit.signal in (None, "SIGPIPE")  # it may have written to a client that is gone
        return _went_on() if is_normal else Judgement(outcome=TrialOutcome.CRASHED, more=_end_words(exit))
    if exit is not None and _end_words(exit) != (usual and _end_words(usual)):
        return Judgement(outcome=TrialOutcome.CRASHED, more=_end_words(exit))
    left_ns = transcript.captures[0].left_ns
    if exit is not None and (left_ns is None or exit.at_ns < left_ns):
        return Judgement(outcome=TrialOutcome.CRASHED, more="it ended before its input")
    later = [exchange for exchange in transcript.exchanges if exchange.sender == CLIENT and exchange.at_ns > hit_ns]
    silent = [exchange for exchange in later if exchange.response is None and not mark_words(exchange.messages)]
    if silent:
        return Judgement(outcome=TrialOutcome.HUNG, more=f"{len(silent)} of {len(later)} later requests had no answer")
    hit = _hit(transcript, hit_ns)
    if is_cut or (hit is not None and hit.outcome is _usual_outcome(transcript, hit, sound)):
        return _went_on()
    if hit is None or hit.response is None:
        status = _refusal(transcript)
        return Judgement(
            outcome=TrialOutcome.REFUSED if status else TrialOutcome.NO_ANSWER, more=f"status {status}" if status else ""
        )
    if hit.outcome in (Outcome.ERROR, Outcome.TOOL_ERROR):
        return Judgement(outcome=TrialOutcome.REFUSED, more=hit.outcome.value)
    return _went_on()


def _went_on() -> Judgement:
    return Judgement(outcome=TrialOutcome.WENT_ON)


def _is_by_mcpspy(transcript: Transcript, exit: Exit) -> bool:
    """Return whether a signal that mcpspy sent, or passed on from the replay, ended the server."""
    records = (row.record for row in transcript.rows if isinstance(row, ChannelEvent))
    notes = (record for record in records if isinstance(record, Note) and record.topic in ("signal", "escalation"))
    return exit.signal is not None and any(exit.signal in note.text for note in notes)


def _had_time(transcript: Transcript, exit: Exit, sound: Transcript) -> bool:
    """Return whether a server that had begun to answer got twice the time in which it ends without a fault."""
    usual, left_ns, hit_ns = _exit(sound), sound.captures[0].left_ns, _hit_ns(transcript)
    if usual is None or left_ns is None or hit_ns is None or not any(exchange.response for exchange in transcript.exchanges):
        return False
    return exit.at_ns - hit_ns > 2 * (usual.at_ns - left_ns)


def _usual_outcome(transcript: Transcript, hit: Exchange, sound: Transcript) -> Outcome | None:
    """Return the outcome without the fault of the request that it hit."""
    requests, usual = _requests(transcript), _requests(sound)
    position = requests.index(hit) if hit in requests else len(usual)
    return usual[position].outcome if position < len(usual) else None


def _requests(transcript: Transcript) -> list[Exchange]:
    """List the requests of the client but for those that open a session or keep it alive."""
    own = (exchange for exchange in transcript.exchanges if exchange.sender == CLIENT)
    return [exchange for exchange in own if exchange.method not in (*OPENINGS, PING)]


def _is_lost(request: Exchange) -> bool:
    """Return whether a request brought neither a result nor an error of a tool."""
    if request.response is None:
        return True
    return request.outcome is Outcome.ERROR and MOCK_ERROR not in request.response.raw


def _refusal(transcript: Transcript) -> int:
    """Return the status with which HTTP refused what the fault hit; 0 if it did not."""
    hits = (transaction for transaction in transcript.captures[0].transactions.values() if transaction.intercepted)
    return next((transaction.status for transaction in hits if transaction.status >= HTTP_REDIRECTS), 0)


def is_hit_by(transcript: Transcript) -> bool:
    """Return whether a fault hit anything in these captures."""
    return _hit_ns(transcript) is not None


def first_session(transcript: Transcript) -> int:
    """Return the first capture in which the client did more than open a session: some start a server first to ask for its era."""
    return min((request.capture for request in _requests(transcript)), default=0)


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


def _waited_ns(transcript: Transcript, hit: Exchange, later: list[Exchange], *, is_leaving: bool) -> int | None:
    """Return how long a client waited for an answer that it then gave up; None if it waited until it got one.

    It gave up when it said so, left, or made the next request, which without the fault comes after an answer. A client that
    `is_leaving` closes its end before the answers come, and still reads them.
    """
    if hit.response is None and hit.transaction is not None and hit.transaction.status >= HTTP_REDIRECTS:
        return None
    info = transcript.captures[hit.capture]
    left_ns = info.last_ns if info.left_ns is None else info.left_ns
    received_ns = _received_ns(transcript, hit)
    ends_ns = [left_ns + info.shift_ns] if received_ns is None or (hit.transaction is None and not is_leaving) else []
    ends_ns += [] if hit.given_up_ns is None else [hit.given_up_ns]
    ends_ns += [] if hit.transaction is None or hit.transaction.ended_by != CLIENT else [hit.transaction.ended_ns or 0]
    moved_on_ns = _moved_on_ns(hit, received_ns, later)
    ends_ns += [] if moved_on_ns is None else [moved_on_ns]
    end_ns = min(ends_ns, default=None)
    return None if end_ns is None or (received_ns is not None and received_ns <= end_ns) else max(end_ns - hit.at_ns, 0)


def _is_leaving(sound: Transcript) -> bool:
    """Return whether a client closes its server's input while it waits for an answer, also where nothing is wrong."""
    left_ns = {info.index: info.left_ns + info.shift_ns for info in sound.captures if info.left_ns is not None}
    requests = (request for request in _requests(sound) if request.response is not None and request.capture in left_ns)
    return any(request.response.at_ns > left_ns[request.capture] for request in requests if request.response is not None)


def _received_ns(transcript: Transcript, hit: Exchange) -> int | None:
    """Return when the client got the answer, or would have got one that was delayed; None if there was none."""
    if hit.response is None:
        return None
    delays = (row.record for row in transcript.rows if isinstance(row, ChannelEvent) and row.capture == hit.capture)
    shift_ns = transcript.captures[hit.capture].shift_ns
    until_ns = [record.until_ns + shift_ns for record in delays if isinstance(record, Intercept) and record.until_ns]
    return max(hit.response.at_ns, *until_ns) if until_ns else hit.response.at_ns


def _moved_on_ns(hit: Exchange, received_ns: int | None, later: list[Exchange]) -> int | None:
    """Return when a client made the next request after a pause, with no answer to any before it; None if it did not."""
    answered_ns = [received_ns] if received_ns is not None else []
    answered_ns += [request.response.at_ns for request in later if request.response is not None]
    until_ns = min(answered_ns, default=None)
    moments = [hit.at_ns, *(request.at_ns for request in later if until_ns is None or request.at_ns < until_ns)]
    return next((end for begin, end in pairwise(moments) if end - begin > PAUSE_NS), None)


def _count(transcript: Transcript, request: Exchange) -> int:
    """Count the requests of the client that are the same as this one."""
    params = _params(request.request)
    own = (exchange for exchange in transcript.exchanges if exchange.sender == CLIENT and exchange.method == request.method)
    return sum(_params(exchange.request) == params for exchange in own)


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
