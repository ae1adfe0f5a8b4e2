"""The bench of a trial: it runs one peer once for each fault, and compares what it does with what it does without one."""

from __future__ import annotations

import json
import os
from shlex import join
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from ...capture.file.reader import read
from ...errors import TrialError
from ...intercept.syntax import parse_intercept
from ...records import CLIENT
from ...replay.trial.faults import HUGE_LETTERS, NO_FAULT, FaultSettings, TrialFault
from ...replay.trial.judgement import is_hit_by, judged_client, judged_server
from ...replay.trial.outcome import Judgement, PeerEnd, TrialOutcome
from ...replay.trial.result import TrialResult
from ...transcript.model import Exchange
from ...transcript.transcribe import transcribe
from ..filter_option import combined_filter, filter_rows
from ..transcripts import transcript_of_file
from .running import MCPSPY, SERVER, run_peer, with_server

if TYPE_CHECKING:
    from ...transcript.model import Transcript


class TrialOptions(NamedTuple):
    """The command line without the peer's command."""

    what: str
    plays_client: bool
    only: tuple[str, ...]
    calls: str
    slow: str
    late: str
    patience: float
    seed: int
    expect: str | None
    accept: bool
    junit: str | None
    captures: str | None
    lists: bool
    as_json: bool


def _recorded_result(path: str, options: TrialOptions) -> dict[str, Any]:
    """Return the first recorded result of the calls that are hit. Raises: click.UsageError: if there is none."""
    transcript = transcript_of_file(path)
    calls = combined_filter((options.calls,))
    assert calls is not None
    for row in filter_rows(calls, transcript, transcript.rows).rows:
        if isinstance(row, Exchange) and row.sender == CLIENT and row.response is not None:
            result = json.loads(row.response.raw).get("result")
            if isinstance(result, dict):
                return result
    raise click.UsageError(f"{path} has no result of {options.calls}. Name other requests with --calls, or another capture.")


def _text(text: str) -> list[dict[str, str]]:
    return [{"type": "text", "text": text}]


class TrialBench:
    """One peer, one capture that is played to it, and the trial without a fault, with which the others are compared."""

    def __init__(self, options: TrialOptions, peer: list[str], path: str, folder: str, temporary: str) -> None:
        self._options = options
        self._peer = peer
        self._path = path
        self._folder = folder
        self._temporary = temporary
        self._sound: tuple[PeerEnd, Transcript] | None = None
        result = _recorded_result(path, options)
        text = "x" * HUGE_LETTERS
        self._settings = FaultSettings(
            calls=options.calls,
            slow=options.slow,
            late=options.late,
            tool_error=self._answer("tool-error.json", {**result, "content": _text("The tool failed."), "isError": True}),
            huge=text if options.plays_client else self._answer("huge.json", {**result, "content": _text(text)}),
        )

    def _answer(self, name: str, result: dict[str, Any]) -> str:
        """Write an answer that an intercept gives; return its path."""
        path = os.path.join(self._temporary, name)
        with open(path, "w", encoding="ascii") as file:
            json.dump(result, file)
        return path

    def run(self, fault: TrialFault) -> TrialResult:
        """Run the trial of a fault. Raises: TrialError: if the peer cannot be started, or fails without a fault."""
        capture, log = (os.path.join(self._folder, f"{fault.name}{end}") for end in (".mcpspy", ".log"))
        for old in (capture, log):
            if os.path.exists(old):
                os.unlink(old)
        intercepts = os.path.join(self._temporary, f"{fault.name}.intercepts")
        words = self._words(fault, capture, intercepts)
        try:
            end, paths = run_peer(words, log, self._options.patience, capture, intercepts)
        except OSError as error:
            raise TrialError(words[0], f"it cannot be started: {error.strerror}; name the command as a shell would") from None
        transcript = transcribe(*map(read, paths), with_findings=False)
        if fault.name == NO_FAULT:
            self._check_sound(end, transcript, log)
            self._sound = end, transcript
        assert self._sound is not None
        sound_end, sound_transcript = self._sound
        if fault.name == NO_FAULT:
            judgement = Judgement(outcome=TrialOutcome.WENT_ON)
        elif self._options.plays_client:
            judgement = judged_server(transcript, sound_transcript)
        else:
            judgement = judged_client(transcript, end, sound_end)
        return TrialResult(fault=fault.name, words=fault.words, judgement=judgement, end=end, captures=tuple(paths), log=log)

    def _words(self, fault: TrialFault, capture: str, intercepts: str) -> list[str]:
        """Return the command of a trial, and write its intercepts."""
        texts = fault.intercepts(self._settings)
        for text in texts:
            parse_intercept(text, lambda _: b"{}")
        with open(intercepts, "w", encoding="utf-8") as file:
            file.writelines(f"{text}\n" for text in texts)
        run = [*MCPSPY, "run", "--quiet", "--no-control", "--label", f"trial-{fault.name}", "--capture", capture]
        run += ["--intercepts", intercepts, "--seed", str(self._options.seed), "--"]
        own = os.path.join(self._temporary, f"{fault.name}-own.mcpspy")
        if not self._options.plays_client:
            mock = [*MCPSPY, "mock", "--quiet", "--capture", own, self._path]
            return with_server(self._peer, [*run, *mock])
        timeout = ["--timeout", f"{self._options.patience / 2:g}"]
        return [*MCPSPY, "replay", self._path, "--yes", *timeout, "--capture", own, "--", *run, *self._peer]

    def _check_sound(self, end: PeerEnd, transcript: Transcript, log: str) -> None:
        """Check that the peer works where nothing is wrong. Raises: TrialError."""
        name = join(self._peer)
        if not transcript.captures:
            raise TrialError(name, f"it did not start the server that {SERVER} stands for; what it printed is in {log}")
        is_done = end.status in (0, 1) if self._options.plays_client else end.status == 0
        if not is_done:
            raise TrialError(name, f"it fails without a fault too: {end.words}; what it printed is in {log}")
        if is_hit_by(transcript):
            raise TrialError(name, "a fault hit where there is none")
