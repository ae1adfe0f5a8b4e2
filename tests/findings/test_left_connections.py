"""Clients that close their half of an HTTP connection before the answer: they have given up, unless they took it later."""

import pytest

from mcpspy.transcript.model import Exchange, Outcome
from tests.transcript.dialogue import result, tool_call
from tests.transcript.traffic import Call, Traffic, opened_session

SESSION = "redacted-8eecc9a3d0d7"
TEXT = "…"


def asked(waited_ms: int) -> tuple[Traffic, Call]:
    """Return traffic in which the client closed its half of the connection so long after its call."""
    traffic = Traffic()
    opened_session(traffic, SESSION)
    call = traffic.post(tool_call(7, "slow"), session=SESSION)
    traffic.wait(waited_ms)
    return traffic, call.note("half-closed", TEXT)


def row_of(traffic: Traffic) -> Exchange:
    return next(row for row in traffic.exchanges if row.method == "tools/call")


@pytest.mark.parametrize(("waited_ms", "rule", "culprit"), [(3_000, "given-up", "unclear"), (5_000, "timed-out", "server")])
@pytest.mark.parametrize(
    ("topic", "words"),
    [
        ("answer-refused", "which the client did not take any more"),
        ("", "the recording does not show whether"),
    ],
)
def test_a_client_that_closed_its_connection_gave_up_unless_it_took_the_answer(
    topic: str, words: str, waited_ms: int, rule: str, culprit: str
) -> None:
    traffic, call = asked(waited_ms)
    traffic.wait(4_000)
    call.answer(200, result(7))
    if topic:
        call.note(topic, TEXT)
    (finding,) = traffic.findings
    assert (finding.rule, finding.culprit) == (rule, culprit)
    assert words in finding.what
    assert row_of(traffic).outcome is Outcome.CANCELLED


def test_a_client_that_closed_its_connection_and_was_never_answered_gave_up() -> None:
    traffic, _ = asked(3_000)
    traffic.ends()
    (finding,) = traffic.findings
    assert finding.rule == "given-up"
    assert "after 3.0 s; the server never answered" in finding.what


@pytest.mark.parametrize("waited_ms", [3_000, 5_000])
def test_a_client_that_closed_its_half_and_took_the_answer_is_served(waited_ms: int) -> None:
    traffic, call = asked(waited_ms)
    traffic.wait(1_000)
    call.answer(200, result(7)).note("answer-taken", TEXT)
    assert traffic.findings == []
    assert row_of(traffic).outcome is Outcome.OK


def test_a_client_that_closed_its_half_after_the_answer_had_begun_is_served() -> None:
    traffic = Traffic()
    opened_session(traffic, SESSION)
    call = traffic.post(tool_call(7, "slow"), session=SESSION).stream()
    traffic.wait(3_000)
    call.note("half-closed", TEXT).event(result(7)).close()
    assert row_of(traffic).outcome is Outcome.OK
