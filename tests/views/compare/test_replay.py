"""The lines of a replay beside the comparison: complete at every width, and harmless whatever was captured."""

import json
from typing import Any

import pytest

from mcpspy.replay.client.correlate.reader import read_correlations
from mcpspy.replay.client.outgoing import Effects, planned_messages
from mcpspy.replay.client.plan import UnsentMessage
from mcpspy.replay.client.player import Report
from mcpspy.replay.client.read_plan import read_plans
from mcpspy.replay.mock.miss import Miss
from mcpspy.transcript.model import Transcript
from mcpspy.views.compare.replays import changing_calls, end_lines, intent, plan_lines, report_lines
from mcpspy.views.json.comparisons import plans_json
from mcpspy.views.text.line import line_cells, plain
from tests.transcript.dialogue import Dialogue, request, result, tool_call
from tests.views.golden import same_as_golden
from tests.views.test_hostile import HOSTILE, dangerous

HINTS = {"look": "readOnlyHint", "drop": "destructiveHint"}
ANNOTATED = {"tools": [{"name": name, "annotations": {hint: True}} for name, hint in HINTS.items()]}


def scene(word: str) -> Transcript:
    """Make calls that read, that destroy and that are redacted, with a text in every field of a peer."""
    dialogue = Dialogue().client(request(1)).server(result(1, ANNOTATED))
    dialogue.client(tool_call(2, "look", at=word)).server(result(2)).client(tool_call(3, "drop", at=word)).server(result(3))
    dialogue.client(tool_call(4, word, key="redacted-0123456789ab")).server(result(4)).client(tool_call(5, word)).server(
        result(5)
    )
    return dialogue.closes().transcript


def all_report_lines(word: str, width: int | None) -> list[str]:
    """Return all lines about a replay of that scene in which everything went wrong."""
    transcript = scene(word)
    (plan,) = read_plans(transcript)
    effects = Effects(transcript)
    left_out = [
        UnsentMessage(row=exchange.row, message=exchange.request, why=f"the server said {word}")
        for exchange in transcript.exchanges[3:]
    ]
    report = Report(
        sends=3, unsent=left_out, late=[2], ended={3: f"404 {word}"}, lost=f"it exited with status 3; its last words: {word}",
        misses=[Miss(request=transcript.exchanges[3].request, reason="was never recorded", refused_by="target")],
    )  # fmt: skip
    planned = planned_messages([plan], effects, read_correlations(transcript), {})
    lines = [
        *plan_lines(planned, left_out, width),
        *end_lines(report, 5, width),
        *report_lines(report, {exchange.row: exchange for exchange in transcript.exchanges}, width),
    ]
    assert width is None or all(line_cells(line) <= width for line in lines)
    return [intent([plan], effects, f"server {word}"), *changing_calls([plan], effects), *map(plain, lines)]


@pytest.mark.parametrize("width", [80, 200])
def test_the_lines_of_a_replay_look_as_they_did(width: int) -> None:
    assert same_as_golden(f"replaying-{width}", [[(line, "")] for line in all_report_lines("Lissabon", width)])


@pytest.mark.parametrize("width", [20, 40, None])
@pytest.mark.parametrize("word", HOSTILE.values(), ids=HOSTILE)
def test_the_lines_of_a_replay_are_harmless(word: str, width: int | None) -> None:
    assert not [line for line in all_report_lines(word, width) if dangerous(line)]


@pytest.mark.parametrize("word", HOSTILE.values(), ids=HOSTILE)
def test_the_json_of_a_dry_run_can_be_read_and_is_harmless(word: str) -> None:
    transcript = scene(word)
    planned = planned_messages(read_plans(transcript), Effects(transcript), read_correlations(transcript), {})
    text = plans_json({"transport": "stdio", "argv": [word]}, planned, [])
    assert not dangerous(text.replace("\n", ""))
    sends: list[Any] = json.loads(text)["sends"]
    assert [send["effect"] for send in sends] == ["none", "reads", "destroys", "changes", "changes"]
    assert [bool(send["refused"]) for send in sends] == [False, False, False, True, False]
