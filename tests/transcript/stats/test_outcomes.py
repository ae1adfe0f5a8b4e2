"""One count of calls for the summary, the statistics and a check."""

import json
from pathlib import Path

import pytest

from mcpspy.capture.file.reader import read
from mcpspy.transcript.model import Outcome, Transcript
from mcpspy.transcript.stats.outcomes import outcomes
from mcpspy.transcript.stats.statistics import numbers
from mcpspy.transcript.transcribe import transcribe
from mcpspy.views.json.rows import summary_object
from tests.transcript.dialogue import Dialogue, request

ROOT = Path(__file__).parents[3]
RECORDED = sorted([*ROOT.glob("captures/*.mcpspy"), *ROOT.glob("tests/transcript/recorded/*.mcpspy")])


def recorded(name: str) -> Transcript:
    return transcribe(read(str(ROOT / name)))


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_the_summary_and_the_numbers_count_alike(path: Path) -> None:
    transcript = transcribe(read(str(path)))
    counted = [calls for server in numbers(transcript) for calls in (*server.calls, *server.requests)]
    summary = json.loads(json.dumps(summary_object(transcript, live=False)))
    assert summary["calls"] == sum(calls.count for calls in counted)
    assert summary["pending"] == sum(calls.pending for calls in counted)


def test_the_rounds_of_a_call_count_once() -> None:
    transcript = recorded("captures/question.mcpspy")
    assert outcomes(transcript).total() == len(transcript.exchanges) - 1


def test_a_call_is_what_came_of_its_last_round() -> None:
    transcript = recorded("tests/transcript/recorded/greet-stdio-auto.mcpspy")
    assert set(outcomes(transcript)) == {Outcome.OK}


def test_a_subscription_ends_well_when_its_client_leaves() -> None:
    scene = Dialogue().client(request(1, "subscriptions/listen")).client(request(2)).closes()
    assert outcomes(scene.transcript) == {Outcome.OK: 1, Outcome.UNANSWERED: 1}


def test_a_subscription_is_unanswered_when_its_server_ends_first() -> None:
    scene = Dialogue().client(request(1, "subscriptions/listen")).server_closes_stdout().exits(1).client_leaves().ends()
    assert outcomes(scene.transcript) == {Outcome.UNANSWERED: 1}
