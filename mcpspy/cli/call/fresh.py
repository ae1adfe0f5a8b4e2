"""A call to a separate server, which is started or reached, and gets the handshake and the requests that the call depends on."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

from ...records import SERVER
from ...replay.client.correlate.reader import read_correlations
from ...replay.client.counterpart import PlayedPlan, compared_sides
from ...replay.client.plan import ExpectedAnswer, Plan, Send
from ...replay.client.read_plan import read_plans
from ...replay.compare.compare import compare
from ...replay.mock.content import VOLATILE
from ...replay.mock.matching import RequestMatcher
from ...views.text.escape import safe_text, without_logins
from ..replay.play import PlayResult, PlaySettings, play
from ..screen import say
from .live import NO_ANSWER, NOT_SENT, STOPPED, CallResult

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...replay.client.correlate.model import Correlations
    from ...transcript.model import Exchange
    from ...wire.edits import ValueEdit
    from ..replay.target import Target
    from .subject import CallSubject

SUFFIX = "-call"


def call_plan(subject: CallSubject, correlations: Correlations) -> Plan:
    """Make the plan of a client that sends the request: after the handshake, and the requests whose answers it needs."""
    plans = read_plans(subject.transcript)
    row = subject.exchange.row
    for plan in plans:
        if any(send.row == row for send in plan.sends):
            return plan.only({row}, correlations.needs)
    handshake = plans[-1].only(()) if plans else Plan(steps=())
    send = Send(message=subject.exchange.request, row=row, exchange=subject.exchange)
    return replace(handshake, steps=(*handshake.steps, send, ExpectedAnswer(row=row)), left_out=())


def call_fresh(
    subject: CallSubject,
    target: Target,
    edits: Sequence[ValueEdit],
    rules: tuple[str, ...],
    *,
    carried: tuple[str, ...],
    timeout_ns: int,
    label: str | None,
    capture: str | None,
) -> CallResult:
    """Send the request to a server of its own."""
    correlations = read_correlations(subject.transcript, carried)
    plan = call_plan(subject, correlations)
    header = subject.capture.header
    replayed_label = header.label if header else ""
    settings = PlaySettings(
        target=target,
        answers=RequestMatcher(subject.transcript.exchanges, side=SERVER, ignore=VOLATILE),
        correlations=correlations,
        edits={subject.exchange.row: list(edits)},
        timeout_ns=timeout_ns,
        label=label or f"{replayed_label or 'server'}{SUFFIX}",
        replayed_label=replayed_label,
        redact="none" if header is not None and header.redaction == "none" else "credentials",
        capture=os.path.abspath(capture) if capture else None,
        ids=(header.capture_id,) if header else (),
        stops_when_late=True,
        cancels=True,
    )
    result = play(plan, settings)
    for missing in result.not_correlated:
        say(f"mcpspy: {safe_text(missing)}; sent as it was recorded")
    live = _live(result, subject.exchange.row)
    why, failure = _why_not(result, subject.exchange.row)
    if live is None or live.response is None:
        return CallResult(target=target.facts, live=live, why=why, failure=failure, path=result.path)
    comparison = None
    if subject.is_recorded:
        played = PlayedPlan(
            plan=plan, report=result.report, selected=frozenset({subject.exchange.row}), restore=result.run.as_recorded
        )
        comparison = compare(*compared_sides(subject.transcript, result.transcript, played), rules)
    return CallResult(target=target.facts, live=live, comparison=comparison, path=result.path, row=live.row)


def _live(result: PlayResult, row: int) -> Exchange | None:
    """Find the exchange of the call in the capture of the play."""
    id = result.report.sent.get(row)
    exchanges = [exchange for exchange in result.transcript.exchanges if exchange.sender != SERVER]
    return next((exchange for exchange in reversed(exchanges) if id is not None and exchange.request.id == id), None)


def _why_not(result: PlayResult, row: int) -> tuple[str, int]:
    """Say why there is no answer, and give the exit status for that."""
    report = result.report
    if report.stopped is not None:
        return "it was interrupted, and cancelled", STOPPED
    if report.withheld:
        withheld = report.withheld[0]
        return f"row {withheld.row} was not sent: {withheld.why}", NOT_SENT
    if result.failure is not None:
        return without_logins(str(result.failure)), NO_ANSWER
    if row in report.late:
        return "there was no answer in time, and it was cancelled", NO_ANSWER
    return report.ended.get(row) or report.lost or "the server did not answer", NO_ANSWER
