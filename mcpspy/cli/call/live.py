"""A call into a session that runs under `mcpspy run` or `mcpspy proxy`, and the outcome of a call, wherever it was sent.

The call goes through the control socket of the session's tap, with an id of its own.
"""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ...capture.store.folder import live_folder
from ...control.client import EXTENSION, Controller, RunningTap, running_taps
from ...errors import ControlError
from ...records import CLIENT, SERVER, Frame, Open
from ...replay.client.counterpart import PlayedPlan, compared_sides
from ...replay.client.outgoing import ID, outgoing, pseudonym, value_edit
from ...replay.client.plan import Plan
from ...replay.client.player import Report
from ...replay.compare.compare import compare
from ...transcript.http.head import SESSION
from ...transcript.mcp.methods import INITIALIZE
from ...transcript.model import Outcome
from ...transcript.transcribe import transcribe
from ...wire.edits import with_values

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...replay.compare.compare import Comparison
    from ...transcript.model import Exchange, Transcript
    from ...wire.edits import ValueEdit
    from .subject import CallSubject

_STDIN, _STDOUT = 0, 1

STREAMS: Final = ((_STDIN, CLIENT, "stdin"), (_STDOUT, SERVER, "stdout"))

SAME, DIFFERENT, NOT_SENT, NO_ANSWER, STOPPED = 0, 1, 2, 4, 130


class _Answer(NamedTuple):
    """The outcome of a call with this id: the `payload` of the answer, `took_ns` later; without one, `why`, and the exit status."""

    id: str
    payload: bytes = b""
    took_ns: int = 0
    why: str = ""
    status: int = NO_ANSWER


def running_tap(subject: CallSubject) -> RunningTap | None:
    """Find the tap that records the capture of a request; None if it does not run."""
    path = os.path.realpath(subject.path)
    taps = running_taps(live_folder())
    return next((tap for tap in taps if os.path.realpath(tap.status["capture"]) == path), None)


def call_live(
    subject: CallSubject, tap: RunningTap, edits: Sequence[ValueEdit], rules: tuple[str, ...], timeout_ns: int
) -> CallResult:
    """Send the request into the session of a tap. Raises: ControlError: if the tap refuses it."""
    target = {"transport": tap.status["transport"], "id": tap.id, "label": tap.status["label"], "pid": tap.status["pid"]}
    data = outgoing(subject.exchange.request, edits)
    if redacted := pseudonym(data):
        return CallResult(
            target=target, why=f"it was not sent: it holds a value that was redacted: {redacted}", failure=NOT_SENT
        )
    answer = _asked(tap, data, _session_facts(subject, data) if tap.status["transport"] == "http" else {}, timeout_ns)
    path = str(tap.status["capture"])
    if not answer.payload:
        return CallResult(target=target, why=answer.why, failure=answer.status, path=path)
    after = _transcript(subject, with_values(data, [value_edit(ID, answer.id)]), answer)
    live = next(iter(after.exchanges))
    if not subject.is_recorded:
        return CallResult(target=target, live=live, path=path)
    row = subject.exchange.row
    played = PlayedPlan(plan=Plan(steps=()), report=Report(sent={row: answer.id}), selected=frozenset({row}))
    comparison = compare(*compared_sides(subject.transcript, after, played), rules)
    return CallResult(target=target, live=live, comparison=comparison, path=path)


def _session_facts(subject: CallSubject, data: bytes) -> dict[str, Any]:
    """Name the session of a request over HTTP as the capture has it, and the header fields that repeat parts of the message.

    For a request that was not recorded, it is the session in which the client sent something last. Raises: ControlError.
    """
    from ...live.upstream.headers import TOOLS_LIST, MirroredArguments, UpstreamMessage

    exchanges = [
        exchange for exchange in subject.transcript.exchanges if exchange.sender == CLIENT and exchange.method != INITIALIZE
    ]
    of_session = subject.exchange if subject.is_recorded else next(filter(_is_over_http, reversed(exchanges)), None)
    transaction = None if of_session is None else of_session.transaction
    if transaction is None or transaction.request is None:
        raise ControlError("the client has sent no request in this session yet; name a server: --url URL")
    mirrored = MirroredArguments()
    for exchange in exchanges:
        if exchange.method == TOOLS_LIST and exchange.response is not None:
            mirrored.learn(exchange.response.raw)
    message = UpstreamMessage(data)
    fields = message.fields(mirrored) if message.is_modern else []
    return {
        "session": transaction.request.head.get(SESSION),
        "target": transaction.target,
        "fields": [(name.decode(), value.decode("latin-1")) for name, value in fields],
    }


def _is_over_http(exchange: Exchange) -> bool:
    return exchange.transaction is not None


def _asked(tap: RunningTap, data: bytes, facts: dict[str, Any], timeout_ns: int) -> _Answer:
    """Send a request through a tap once, and wait for its answer; what is waited for in vain is cancelled."""
    try:
        controller = Controller(live_folder(), tap.id + EXTENSION)
    except OSError as error:
        raise ControlError(f"{tap.status['label']} cannot be reached: {error.strerror}") from None
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    id = ""
    try:
        id = controller.ask("send", payload=data.decode("utf-8", "surrogatepass"), **facts)["id"]
        event = _answer_event(controller, id, time.monotonic() + timeout_ns / 1e9)
        if event is None:
            controller.ask("cancel", id=id)
            return _Answer(id, why="there was no answer in time, and it was cancelled")
        if event["event"] == "failed":
            return _Answer(id, why=str(event["text"]))
        payload = str(event["payload"]).encode("utf-8", "surrogateescape")
        return _Answer(id, payload, int(event["took_ns"]))
    except KeyboardInterrupt:
        return _Answer(id, why="it was interrupted, and cancelled", status=STOPPED)
    except ControlError as error:
        if not id:
            raise
        return _Answer(id, why=str(error))
    finally:
        controller.close()  # which cancels what still waits


def _answer_event(controller: Controller, id: str, until_s: float) -> dict[str, Any] | None:
    """Wait for the answer to a call, or for the news that there will be none; None if neither comes in time."""
    while (left_s := until_s - time.monotonic()) > 0:
        event = controller.event(left_s)
        if event is not None and event["event"] in ("answer", "failed") and event["id"] == id:
            return event
    return None


def _transcript(subject: CallSubject, request: bytes, answer: _Answer) -> Transcript:
    """Make a transcript of the call alone, as the tap saw it."""
    header = subject.capture.header
    records: list[Any] = [] if header is None else [header]
    records += [Open(at_ns=0, stream=stream, sender=sender, name=name, framing="lines") for stream, sender, name in STREAMS]
    records.append(Frame(_STDIN, 0, 0, request + b"\n"))
    records.append(Frame(_STDOUT, answer.took_ns, answer.took_ns, answer.payload.rstrip(b"\r\n") + b"\n"))
    return transcribe(records)


@dataclass(frozen=True, slots=True, kw_only=True)
class CallResult:
    """A call that was sent, or tried: `live` has the answer; without one `why` says why there is none.

    `comparison` is that with the recorded answer; `path` is the capture that has the call now, where its row is `row`.
    """

    target: dict[str, Any]
    live: Exchange | None = None
    why: str = ""
    comparison: Comparison | None = None
    path: str = ""
    row: int | None = None
    failure: int = NO_ANSWER
    """The exit status if there is no answer."""

    @property
    def status(self) -> int:
        """The exit status."""
        if self.live is None or self.live.response is None:
            return self.failure
        if self.comparison is not None:
            return DIFFERENT if self.comparison.different else SAME
        return SAME if self.live.outcome is Outcome.OK else DIFFERENT
