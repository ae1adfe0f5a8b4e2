"""`mcpspy demo` is the first thing a new user runs: it plays its scene through a real tap and draws it."""

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from mcpspy import Exchange, Outcome, Transcript, read, transcribe
from mcpspy.transcript.model import UnpairedMessage
from tests.deadlines import DEADLINE_S

DEMO = [sys.executable, "-m", "mcpspy", "demo"]


@dataclass(frozen=True, kw_only=True)
class Shown:
    """Output of the demo, the path of its capture, and the capture's transcript."""

    stdout: str
    stderr: str
    capture: Path
    transcript: Transcript


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Shown:
    home = tmp_path_factory.mktemp("home")
    run = subprocess.run(DEMO, env={"HOME": str(home)}, capture_output=True, text=True, timeout=DEADLINE_S, check=True)
    (capture,) = home.glob(".mcpspy/captures/*.mcpspy")
    return Shown(stdout=run.stdout, stderr=run.stderr, capture=capture, transcript=transcribe(read(capture)))


def outcomes(transcript: Transcript) -> dict[str, list[Outcome]]:
    outcomes: dict[str, list[Outcome]] = {}
    for exchange in transcript.exchanges:
        outcomes.setdefault(f"{exchange.method} {exchange.target or ''}".strip(), []).append(exchange.outcome)
    return outcomes


def test_the_demo_shows_every_outcome(shown: Shown) -> None:
    assert {exchange.outcome for exchange in shown.transcript.exchanges} == {
        Outcome.OK,
        Outcome.ERROR,
        Outcome.TOOL_ERROR,
        Outcome.CANCELLED,
    }


def test_the_slow_call_reports_progress_and_the_next_one_is_cancelled(shown: Shown) -> None:
    slow, cancelled = [exchange for exchange in shown.transcript.exchanges if exchange.target == "climate_report"]
    assert (slow.outcome, slow.progress) == (Outcome.OK, 6)
    assert cancelled.outcome is Outcome.CANCELLED


def test_the_servers_request_has_an_id_that_the_clients_requests_have_too(shown: Shown) -> None:
    question = next(exchange for exchange in shown.transcript.exchanges if exchange.sender == "server")
    assert question.outcome is Outcome.OK
    assert question.request.id in [
        exchange.request.id for exchange in shown.transcript.exchanges if exchange.sender == "client"
    ]


def test_the_noise_on_stdout_is_a_finding_and_a_row(shown: Shown) -> None:
    noise = [row for row in shown.transcript.rows if isinstance(row, UnpairedMessage) and row.message.reason]
    assert noise
    assert "stdout-noise" in shown.stdout


def test_the_capture_is_complete(shown: Shown) -> None:
    (source,) = shown.transcript.captures
    assert source.complete


def test_the_picture_comes_before_the_summary_and_the_findings(shown: Shown) -> None:
    at = [shown.stdout.index(words) for words in ("8 ok · ", "✗ 8 calls in ", "⚑ Request given up  given-up  row 10")]
    assert at == sorted(at)


def test_what_to_do_next_goes_to_stderr(shown: Shown) -> None:
    assert str(shown.capture) in shown.stderr
    assert " web --open " in shown.stderr


def test_json_is_one_document(tmp_path: Path) -> None:
    run = subprocess.run([*DEMO, "--json"], env={"HOME": str(tmp_path)}, capture_output=True, timeout=DEADLINE_S, check=True)
    assert json.loads(run.stdout)["schema"] == 1
    assert run.stderr == b""


def test_a_store_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    (tmp_path / ".mcpspy").write_text("a file is in the way")
    run = subprocess.run(DEMO, env={"HOME": str(tmp_path)}, capture_output=True, text=True, timeout=DEADLINE_S, check=False)
    assert run.returncode == 2
    assert ".mcpspy" in run.stderr
    assert "Traceback" not in run.stderr


def test_the_scene_is_the_one_that_help_announces(shown: Shown) -> None:
    assert outcomes(shown.transcript)["tools/call forecast"] == [Outcome.OK, Outcome.TOOL_ERROR]
    assert outcomes(shown.transcript)["tools/call predict"] == [Outcome.ERROR]
    assert all(isinstance(exchange, Exchange) for exchange in shown.transcript.exchanges)
