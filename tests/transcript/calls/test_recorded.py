"""Calls of several exchanges between real clients and servers. `record_calls` records the captures again."""

from pathlib import Path

import pytest

from mcpspy.capture.file.reader import read
from mcpspy.transcript.calls.call import Call, CallPart
from mcpspy.transcript.model import Outcome, Transcript, UnpairedMessage
from mcpspy.transcript.transcribe import Transcriber, transcribe

RECORDED = Path(__file__).parents[1] / "recorded"
NAMES = sorted(path.stem for path in RECORDED.glob("*.mcpspy"))


def transcript(name: str) -> Transcript:
    """Return the transcript of a capture."""
    return transcribe(read(RECORDED / f"{name}.mcpspy"))


def parts(call: Call) -> list[CallPart]:
    """Return the parts of its exchanges."""
    return [call.part(exchange) for exchange in call.exchanges]


def notified_methods(call: Call) -> set[str | None]:
    """Return the methods of its notifications."""
    return {notification.message.method for notification in call.notifications}


@pytest.mark.parametrize("name", ["greet-stdio-auto", "greet-sse-auto", "greet-http-auto"])
def test_a_question_of_the_modern_era_makes_two_rounds_on_every_transport(name: str) -> None:
    (call,) = transcript(name).calls
    assert (call.first.target, parts(call), call.outcome) == ("greet", [CallPart.ROUND, CallPart.ROUND], Outcome.OK)
    assert call.duration_ns is not None
    assert 0 < call.wire_ns < call.duration_ns


def test_a_question_of_the_legacy_era_is_a_request_of_the_server() -> None:
    recorded = transcript("greet-http-legacy")
    assert (recorded.calls, [exchange.sender for exchange in recorded.exchanges]) == ([], ["client", "client", "server"])
    assert all(exchange.outcome is Outcome.OK for exchange in recorded.exchanges)


def test_a_tool_that_runs_as_a_task_is_one_call() -> None:
    (call,) = transcript("research").calls
    assert (len(call.rounds), len(call.polls), call.outcome) == (1, 3, Outcome.OK)
    assert (parts(call)[-2:], notified_methods(call)) == ([CallPart.RESULT, CallPart.QUESTION], {"notifications/tasks/status"})
    assert call.task is not None
    assert (call.task.status, call.task.poll_interval_ms, call.needs_input) == ("completed", 1000, False)


def test_every_notification_about_a_task_belongs_to_it_also_the_one_before_the_answer() -> None:
    recorded = transcript("research")
    (call,) = recorded.calls
    assert call.task is not None
    about = [row for row in recorded.rows if isinstance(row, UnpairedMessage) and row.message.target == call.task.id]
    assert sorted(row.row for row in call.notifications) == [row.row for row in about]
    assert call.first.response is not None
    assert call.notifications[0].at_ns < call.first.response.at_ns


def test_a_task_that_the_client_runs_is_a_call_of_the_server() -> None:
    (call,) = transcript("sampling").calls
    assert (call.sender, call.first.method, call.outcome) == ("server", "sampling/createMessage", Outcome.OK)
    assert parts(call) == [CallPart.ROUND, *[CallPart.POLL] * len(call.polls), CallPart.RESULT]


def test_a_call_that_was_sent_to_a_url_is_tried_again() -> None:
    calls = {call.first.method: call for call in transcript("urls").calls}
    again = calls["tools/call"]
    assert (len(again.rounds), again.elicitations, again.outcome) == (2, 1, Outcome.OK)
    assert calls["elicitation/create"].elicitations == 1


def test_a_subscription_lasts_until_it_is_given_up() -> None:
    (call,) = transcript("updates").calls
    assert (parts(call), notified_methods(call)) == ([CallPart.ROUND, CallPart.END], {"notifications/resources/updated"})
    assert call.outcome is Outcome.OK


@pytest.mark.parametrize("name", NAMES)
def test_programs_that_do_it_right_give_nothing_to_find(name: str) -> None:
    findings = {finding.rule for finding in transcript(name).findings}
    assert findings <= {"end-of-input-ignored"}  # server-everything needs a signal, which is a note


@pytest.mark.parametrize("name", NAMES)
def test_calls_are_the_same_live_offline_and_among_others(name: str) -> None:
    live = Transcriber()
    for record in read(RECORDED / f"{name}.mcpspy"):
        live.feed(record)
    live.close()
    others = transcribe(*(read(RECORDED / f"{name}.mcpspy") for name in NAMES))
    alone = [(len(call.exchanges), len(call.notifications), call.wire_ns) for call in transcript(name).calls]
    assert [(len(call.exchanges), len(call.notifications), call.wire_ns) for call in live.transcript.calls] == alone
    among = [(len(call.exchanges), len(call.notifications), call.wire_ns) for call in others.calls]
    assert all(call in among for call in alone)
