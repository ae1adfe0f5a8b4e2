"""Plays a plan to a live server, and records that in a capture of its own."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from time import monotonic_ns, time_ns
from typing import TYPE_CHECKING

from ...capture.file.reader import read
from ...capture.file.writer import Writer
from ...capture.redaction.redactor import NoRedaction, Redactor
from ...capture.redaction.sink import RedactingSink
from ...capture.store.folder import key
from ...errors import ReplayError, UpstreamError
from ...live.upstream.protocol import ServerListener, UpstreamClient
from ...live.upstream.replay_client import run_replay_client
from ...live.upstream.stdio import StdioClient
from ...platform.loops import Interrupts
from ...replay.client.correlate.model import Correlations
from ...replay.client.correlate.run import CorrelationRun
from ...replay.client.plan import Plan
from ...replay.client.player import PlanPlayer, RecordedAnswers, Report
from ...replay.mock.matching import RequestMatcher
from ...transcript.model import Transcript
from ...transcript.transcribe import transcribe
from ...wire.edits import ValueEdit
from ..credential_search import CredentialSearch
from ..new_capture import CaptureStart, open_writer
from .target import Target, http_client

if TYPE_CHECKING:
    from ...records import Sink


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaySettings:
    """The settings of a replay: the server, the speed, the values. `answers` finds recorded answers to the server's requests."""

    target: Target
    answers: RequestMatcher
    correlations: Correlations
    timeout_ns: int
    label: str
    speed: float = 0.0
    edits: Mapping[int, Sequence[ValueEdit]] = field(default_factory=dict)
    """Changes of requests, by row."""
    replayed_label: str
    """The label of the recorded server, with whose baseline the new capture is compared."""
    redact: str
    capture: str | None = None
    ids: tuple[str, ...] = ()
    """The ids of the captures that are played, for the header of the new one."""
    stops_when_late: bool = False
    """True if a request that is not answered in time ends the replay."""
    cancels: bool = False
    """True if requests that wait for their answers at the end are cancelled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayResult:
    """A plan that was played, its report, and the transcript of its capture. `failure` says why there was no server."""

    plan: Plan
    report: Report
    run: CorrelationRun
    path: str
    transcript: Transcript
    failure: UpstreamError | None = None

    @property
    def not_correlated(self) -> list[str]:
        """The correlated values that were sent as recorded, and why; without those of messages that were withheld."""
        withheld = {message.row for message in self.report.withheld}
        return list(dict.fromkeys(str(missing) for missing in self.run.missing if missing.row not in withheld))


def play(plan: Plan, settings: PlaySettings, number: int = 0, interrupts: Interrupts | None = None) -> PlayResult:
    """Play one plan to a new server; `number` counts the plans, from 0. Raises: ReplayError: if nothing can be recorded."""
    begin_ns = monotonic_ns()
    redactor = NoRedaction() if settings.redact == "none" else Redactor(key())
    writer, path = _open_capture(settings, redactor, begin_ns)
    run = CorrelationRun(settings.correlations)
    player = _player(plan, settings, run, number)

    def now_ns() -> int:
        return monotonic_ns() - begin_ns

    sink: Sink = writer if isinstance(redactor, NoRedaction) else RedactingSink(writer, redactor)
    failure: UpstreamError | None = None
    why = "done"
    try:
        run_replay_client(
            player,
            lambda listener: _upstream_client(plan, settings.target, listener, sink, now_ns),
            sink=sink,
            now_ns=now_ns,
            is_process=not settings.target.url,
            cancels=settings.cancels,
            interrupts=interrupts,
        )
    except UpstreamError as error:
        failure, why = error, "not started"
        player.lose(str(error))
    except KeyboardInterrupt:
        player.stop()
    except BaseException:
        why = "stopped"
        raise
    finally:
        writer.close(now_ns(), "stopped" if player.report.stopped is not None else player.report.lost or why)
    return PlayResult(
        plan=plan,
        report=player.report,
        run=run,
        path=path,
        transcript=transcribe(
            read(path), credentials=CredentialSearch()
        ),  # which joins calls, as in the transcript of the capture
        failure=failure,
    )


def _player(plan: Plan, settings: PlaySettings, run: CorrelationRun, number: int) -> PlanPlayer:
    """Make the player of a plan. `run` has the values that the live server makes up; `number` counts the plans, from 0."""
    return PlanPlayer(
        plan,
        RecordedAnswers(settings.answers.cursor(number)),
        live_values=run,
        edits=settings.edits,
        speed=settings.speed,
        timeout_ns=settings.timeout_ns,
        stops_when_late=settings.stops_when_late,
    )


def _open_capture(settings: PlaySettings, redactor: Redactor | NoRedaction, begin_ns: int) -> tuple[Writer, str]:
    """Create the capture of a replay. Returns its writer and path. Raises: ReplayError: if that fails."""
    start = CaptureStart(
        wall_ns=time_ns(),
        begin_ns=begin_ns,
        label=settings.label,
        file=settings.capture,
        redact=settings.redact,
        max_bytes=0,
        quiet=True,
    )
    writer, path = open_writer(start, _tapped(settings, redactor))
    if writer is None:
        reason = "nothing was sent: a replay must be recorded to be compared; name a file with --capture"
        raise ReplayError(settings.capture or settings.label, reason)
    return writer, os.path.abspath(path)


def _upstream_client(
    plan: Plan, target: Target, listener: ServerListener, sink: Sink, now_ns: Callable[[], int]
) -> UpstreamClient:
    """Make the client of the server, which reports to `listener`."""
    if target.transport == "stdio":
        if target.cwd:
            os.chdir(target.cwd)  # of the recorded command, whose words may be relative paths
        return StdioClient(
            target.argv,
            sink=sink,
            now_ns=now_ns,
            listener=listener,
        )
    return http_client(target, sink=sink, now_ns=now_ns, listener=listener, listen=plan.listens)


def _tapped(settings: PlaySettings, redactor: Redactor | NoRedaction) -> dict[str, object]:
    """Describe the server for the header of the capture."""
    target = settings.target
    replayed = {"replay": settings.ids, "replayed_label": settings.replayed_label}
    if target.url:
        return {"transport": "http", "url": redactor.url(target.url), "listen": "", **replayed}
    argv = redactor.argv(list(target.argv))
    return {"transport": "stdio", "argv": argv, "env": sorted(os.environ), **replayed}
