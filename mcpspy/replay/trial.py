"""Trials: the standard list of faults, and the judgement of what a peer does after one.

Each fault hits one message, so that a peer that tries again finds a sound one. A peer is judged by what its captures show and
how its process ended. A client that starts its server again makes a capture for each; they are given together, as one
transcript.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Container, Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from typing import Final, NamedTuple

from ..records import CLIENT, Exit, Intercept, Note
from ..transcript.intercepts import ends_channel
from ..transcript.mcp.methods import OPENINGS, PING
from ..transcript.message import NOT_REORDERED, mark_words
from ..transcript.model import HTTP_REDIRECTS, ChannelEvent, Exchange, Message, Outcome, Transcript
from .json_values import canonical
from .mock.content import params_value

HUGE_LETTERS: Final = 8_000_000
"""A text of this length is huge: eight MB."""

NO_FAULT: Final = "none"
"""The name of the trial without a fault, with which the others are compared."""

Expectations = Mapping[str, tuple[str, ...]]
"""The outcomes that are fine, by the name of the fault."""

PAUSE_NS: Final = 100_000_000
"""A client that makes its next request sooner did not wait for an answer: it makes several at once."""

MOCK_ERROR: Final = b'"mcpspy mock: '
"""The beginning of an error of our own, about a request that was never recorded: the client need not have lost that."""


class FaultSettings(NamedTuple):
    """The `calls` that are hit, a filter; a time that is `slow`, and one that is too `late`, as in `3s`; files with answers."""

    calls: str
    slow: str
    late: str
    tool_error: str
    huge: str


STDIO: Final = "stdio"
HTTP: Final = "http"


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialFault:
    """A fault: its name, what happens in a few words, and the intercepts that make it happen.

    One that `needs_events` is played, over HTTP, to a client that gets its answers as events: a body has room for one message.
    """

    name: str
    words: str
    intercepts: Callable[[FaultSettings], tuple[str, ...]]
    transports: tuple[str, ...] = (STDIO, HTTP)
    needs_events: bool = False


def _request(action: str) -> Callable[[FaultSettings], tuple[str, ...]]:
    return lambda settings: (f"({settings.calls}) kind:request => {_filled(action, settings)} max=1",)


def _answer(action: str) -> Callable[[FaultSettings], tuple[str, ...]]:
    return lambda settings: (f"({settings.calls}) kind:result => {_filled(action, settings)} max=1",)


def _opening(kind: str, action: str) -> Callable[[FaultSettings], tuple[str, ...]]:
    return lambda settings: (f"({_OPENINGS}) kind:{kind} => {_filled(action, settings)} max=1",)


_OPENINGS: Final = "method:initialize or method:server/discover"
"""The first requests of the two eras."""


def _filled(action: str, settings: FaultSettings) -> str:
    for name, value in settings._asdict().items():
        action = action.replace(f"<{name}>", json.dumps(value) if name in ("tool_error", "huge") else value)
    return action


def _line(message: dict[str, object]) -> str:
    """Write the action that sends a message of mcpspy's own first."""
    return f"garbage {json.dumps(json.dumps({'jsonrpc': '2.0', **message}))}"


def _named(
    *faults: tuple[str, str, Callable[[FaultSettings], tuple[str, ...]]],
    alone: Mapping[str, str] = {},
    with_events: Collection[str] = (),
) -> dict[str, TrialFault]:
    """Return the faults by name; `alone` are those that only one transport has."""
    return {
        name: TrialFault(
            name=name,
            words=words,
            intercepts=intercepts,
            transports=(alone[name],) if name in alone else (STDIO, HTTP),
            needs_events=name in with_events,
        )
        for name, words, intercepts in faults
    }


SERVER_FAULTS: Final = _named(
    (NO_FAULT, "no fault", lambda _: ()),
    ("slow", "the answer is slow", _answer("delay <slow>")),
    ("late", "the answer is later than most timeouts", _answer("delay <late>")),
    ("silent", "the request is never answered", _request("drop")),
    ("error", "the answer is an error", _request('error -32603 "Internal error"')),
    ("unknown-method", "the method is unknown", _request('error -32601 "Method not found"')),
    ("tool-error", "the tool fails", _request("respond <tool_error>")),
    ("empty-result", "the result is empty", _answer("set result={}")),
    ("wrong-type", "the result has a member of the wrong type", _answer("set result.content=42")),
    ("half-line", "the answer is cut off after 20 bytes", _answer("truncate 20")),
    ("noise", "a line that is no message comes before the answer", _answer('garbage "Loading the model..."')),
    ("early-noise", "a banner comes before the first answer", _opening("result", 'garbage "Starting the server..."')),
    ("duplicate", "the answer comes twice", _answer("duplicate")),
    ("reordered", "an answer comes after the answer to a later request", _answer("reorder 500ms")),
    ("wrong-id", "the answer has the id of no request", _answer('set id="mcpspy-wrong"')),
    ("stray-answer", "an answer to no request comes first", _answer(_line({"id": "mcpspy-stray", "result": {}}))),
    ("unknown-notification", "an unknown notification comes first", _answer(_line({"method": "notifications/mcpspy"}))),
    ("unknown-request", "an unknown request comes first", _answer(_line({"id": "mcpspy-1", "method": "mcpspy/unknown"}))),
    ("huge", "the answer has 8 MB", _request("respond <huge>")),
    ("disconnect", "the connection is closed during the call", _request("disconnect")),
    ("broken-answer", "the connection is closed within the answer", _answer("disconnect 20")),
    ("crash", "the server dies during the call", _request("kill")),
    ("status-500", "the status is 500", _request("status 500")),
    ("status-429", "the status is 429, with Retry-After: 1", _request('status 429 "Retry-After: 1"')),
    ("expired-session", "the session is over: the status is 404", _request("expire")),
    ("stall", "the server says nothing from the answer on", _answer("stall")),
    (
        "no-tools",
        "the server lists no tools",
        lambda _: ("method:tools/list kind:result => set result.tools=[] max=1",),
    ),
    ("slow-start", "the first answer is slow", _opening("result", "delay <slow>")),
    ("refused-start", "the first answer is an error", _opening("request", 'error -32603 "Internal error"')),
    (
        "unknown-revision",
        "the server speaks an unknown revision",
        lambda _: ('method:initialize kind:result => set result.protocolVersion="1999-01-01" max=1',),
    ),
    alone={"crash": STDIO, "status-500": HTTP, "status-429": HTTP, "expired-session": HTTP},
    with_events=("duplicate", "stray-answer", "unknown-notification", "unknown-request", "broken-answer"),
)
"""The faults of a server, by name."""

CLIENT_FAULTS: Final = _named(
    (NO_FAULT, "no fault", lambda _: ()),
    ("slow", "the request comes slowly", _request("delay <slow>")),
    ("half-line", "the request is cut off after 20 bytes", _request("truncate 20")),
    ("noise", "a line that is no message comes before the request", _request('garbage "GET / HTTP/1.1"')),
    ("duplicate", "the request comes twice, with one id", _request("duplicate")),
    ("unknown-method", "the method is unknown", _request('set method="mcpspy/unknown"')),
    ("unknown-tool", "the tool is unknown", _request('set params.name="mcpspy_unknown"')),
    ("no-params", "the request has no params", _request("remove params")),
    ("wrong-type", "the arguments are no object", _request("set params.arguments=42")),
    ("no-arguments", "the arguments are empty", _request("set params.arguments={}")),
    ("more-arguments", "there is an argument that nobody knows", _request("set params.arguments.mcpspy_unknown=1")),
    ("null-id", "the id is null", _request("set id=null")),
    ("float-id", "the id is a fraction", _request("set id=0.5")),
    (
        "unknown-cancel",
        "a cancellation of no request comes first",
        _request(_line({"method": "notifications/cancelled", "params": {"requestId": "mcpspy-none"}})),
    ),
    ("stray-answer", "an answer to no request comes first", _request(_line({"id": "mcpspy-stray", "result": {}}))),
    ("unknown-notification", "an unknown notification comes first", _request(_line({"method": "notifications/mcpspy"}))),
    ("huge", "an argument has 8 MB", _request("set params.arguments.mcpspy_huge=<huge>")),
    (
        "no-initialized",
        "notifications/initialized does not come",
        lambda _: ("method:notifications/initialized => drop max=1",),
    ),
    (
        "unknown-revision",
        "the client speaks an unknown revision",
        lambda _: ('method:initialize kind:request => set params.protocolVersion="1999-01-01" max=1',),
    ),
    ("disconnect", "the connection is closed during the call", _request("disconnect")),
)
"""The faults of a client, by name."""


class TrialOutcome(StrEnum):
    """The outcome of a trial."""

    WENT_ON = "went on"
    """It ended as without the fault."""
    ASKED_AGAIN = "asked again"
    """A client sent the same request once more."""
    GAVE_UP = "gave up"
    """A client did not wait for the answer any longer."""
    REFUSED = "refused"
    """A server answered with an error, and went on."""
    NO_ANSWER = "no answer"
    """A server did not answer the request, and went on."""
    LOST_CALLS = "lost every call"
    """A client went on, and every later call failed."""
    NEVER_CAME_BACK = "never came back"
    """A client made none of the later calls that it makes without the fault."""
    HUNG = "hung"
    """It had to be ended."""
    CRASHED = "crashed"
    """Its process ended by itself, in another way than without the fault."""
    NOT_REACHED = "not reached"
    """Nothing came that the fault could hit."""


BAD: Final = (TrialOutcome.LOST_CALLS, TrialOutcome.NEVER_CAME_BACK, TrialOutcome.HUNG, TrialOutcome.CRASHED)
"""The outcomes that fail a trial, unless others are expected."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerEnd:
    """The end of a peer's process: its exit `status`, negative for a signal; None if it had to be ended, after `took_ns`."""

    status: int | None
    took_ns: int

    @property
    def words(self) -> str:
        """The end in words."""
        if self.status is None:
            return f"ended by mcpspy after {self.took_ns / 1e9:.1f} s"
        return f"exit status {self.status}" if self.status >= 0 else f"killed by signal {-self.status}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """The outcome of one trial: `after_ns` is how long a client waited that gave up; `more` has details in words."""

    outcome: TrialOutcome
    after_ns: int | None = None
    more: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialResult:
    """A trial: the `fault` and what it is in `words`, the judgement, the end of the peer, its captures and what it printed."""

    fault: str
    words: str
    judgement: Judgement
    end: PeerEnd
    captures: tuple[str, ...]
    log: str

    def is_fine(self, expected: Expectations | None, bad: Container[TrialOutcome]) -> bool:
        """Return whether the outcome is one of those expected; without expectations, whether it is not `bad`."""
        outcome = self.judgement.outcome
        return outcome not in bad if expected is None else outcome.value in expected.get(self.fault, (outcome.value,))


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
