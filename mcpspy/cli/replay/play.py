"""A plan played to a live server, in a capture of its own: what the verbs that play the client share."""

from __future__ import annotations

import os
from dataclasses import dataclass
from time import monotonic_ns, time_ns
from typing import TYPE_CHECKING

from ...capture.file.reader import read
from ...capture.redaction.redactor import NoRedaction, Redactor
from ...capture.redaction.sink import RedactingSink
from ...capture.store.folder import key
from ...errors import ReplayError, UpstreamError
from ...live.upstream.replay_client import run_replay_client
from ...live.upstream.stdio import StdioClient
from ...replay.client.answering import RecordedAnswers
from ...replay.client.correlate.run import CorrelationRun
from ...replay.client.player import PlanPlayer
from ...transcript.transcribe import transcribe
from ..new_capture import CaptureStart, open_writer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ...capture.file.writer import Writer
    from ...live.upstream.protocol import UpstreamClient
    from ...live.upstream.replay_client import ReplayClient
    from ...records import Sink
    from ...replay.client.correlate.model import Correlations
    from ...replay.client.plan import Plan
    from ...replay.client.player import Report
    from ...replay.mock.matching import RequestMatcher
    from ...transcript.model import Transcript
    from ...wire.edits import ValueEdit
    from .target import Target


@dataclass(frozen=True, slots=True, kw_only=True)
class Manner:
    """How plans are played: to which server, how fast, with which values. `answers` finds what was answered to a question."""

    target: Target
    answers: RequestMatcher
    correlations: Correlations
    edits: Mapping[int, Sequence[ValueEdit]]
    speed: float
    timeout_ns: int
    label: str
    redact: str
    capture: str | None = None
    ids: tuple[str, ...] = ()
    """The ids of the captures that are played."""
    stops_when_late: bool = False
    """Whether a request that is not answered in time ends it all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drive:
    """One plan that was played: what became of it, and its capture, read. `failure` says why there was no server."""

    plan: Plan
    report: Report
    run: CorrelationRun
    path: str
    transcript: Transcript
    failure: UpstreamError | None = None

    @property
    def not_correlated(self) -> list[str]:
        """The correlated values that were sent as recorded, and why; none of messages that were withheld."""
        held = {one.row for one in self.report.withheld}
        return list(dict.fromkeys(str(one) for one in self.run.missing if one.row not in held))


def play(plan: Plan, manner: Manner, number: int = 0) -> Drive:
    """Play one plan to a fresh server. It is the how many-th, counted from 0. Raises: ReplayError: where nothing can be recorded."""
    begin_ns = monotonic_ns()
    redactor = NoRedaction() if manner.redact == "none" else Redactor(key())
    writer, path = _opened(manner, redactor, begin_ns)
    run = CorrelationRun(manner.correlations)
    driving = PlanPlayer(
        plan,
        RecordedAnswers(manner.answers.cursor(number)),
        live_values=run,
        edits=manner.edits,
        speed=manner.speed,
        timeout_ns=manner.timeout_ns,
        stops_when_late=manner.stops_when_late,
    )

    def now_ns() -> int:
        return monotonic_ns() - begin_ns

    sink: Sink = writer if isinstance(redactor, NoRedaction) else RedactingSink(writer, redactor)
    failure: UpstreamError | None = None
    why = "done"
    try:
        run_replay_client(
            driving,
            lambda driver: _peer(plan, manner.target, driver, sink, now_ns),
            sink=sink,
            now_ns=now_ns,
            is_process=not manner.target.url,
        )
    except UpstreamError as error:
        failure, why = error, "not started"
        driving.lose(str(error))
    except KeyboardInterrupt:
        driving.stop()
    except BaseException:
        why = "stopped"
        raise
    finally:
        writer.close(now_ns(), "stopped" if driving.report.stopped is not None else driving.report.lost or why)
    return Drive(
        plan=plan,
        report=driving.report,
        run=run,
        path=path,
        transcript=transcribe(read(path)),  # with its calls joined, as the recording has them
        failure=failure,
    )


def _opened(manner: Manner, redactor: Redactor | NoRedaction, begin_ns: int) -> tuple[Writer, str]:
    """The writer of a new capture, and its path. Raises: ReplayError: if none can be made."""
    start = CaptureStart(
        wall_ns=time_ns(),
        begin_ns=begin_ns,
        label=manner.label,
        file=manner.capture,
        redact=manner.redact,
        max_bytes=0,
        quiet=True,
    )
    writer, path = open_writer(start, _tapped(manner, redactor))
    if writer is None:
        reason = "nothing was sent: a replay is compared from its own capture; name a file with --capture"
        raise ReplayError(manner.capture or manner.label, reason)
    return writer, os.path.abspath(path)


def _peer(plan: Plan, target: Target, driver: ReplayClient, sink: Sink, now_ns: Callable[[], int]) -> UpstreamClient:
    if target.transport == "stdio":
        if target.cwd:
            os.chdir(target.cwd)  # of the recorded command: its words may mean nothing elsewhere
        return StdioClient(
            target.argv, sink=sink, now_ns=now_ns, on_message=driver.on_message,
            on_lost=driver.on_lost, on_failed=driver.on_failed,
            framing=target.framing,
        )  # fmt: skip
    headers = [(name.encode(), value.encode("latin-1", "replace")) for name, value in target.fields]
    if target.transport == "sse":
        from ...live.upstream.sse import SseClient

        return SseClient(
            target.url, sink=sink, now_ns=now_ns, on_message=driver.on_message,
            on_lost=driver.on_lost, on_failed=driver.on_failed, headers=headers,
            tls=target.tls,
        )  # fmt: skip
    from ...live.upstream.streamable import StreamableClient

    return StreamableClient(
        target.url, sink=sink, now_ns=now_ns, on_message=driver.on_message,
            on_lost=driver.on_lost, on_failed=driver.on_failed, headers=headers,
        listen=plan.listens, tls=target.tls,
    )  # fmt: skip


def _tapped(manner: Manner, redactor: Redactor | NoRedaction) -> dict[str, object]:
    """What the header of the capture says of the server."""
    target = manner.target
    if target.url:
        return {"transport": "http", "url": redactor.url(target.url), "listen": "", "replay": manner.ids}
    argv = redactor.argv(list(target.argv))
    return {"transport": "stdio", "argv": argv, "env": sorted(os.environ), "replay": manner.ids}
