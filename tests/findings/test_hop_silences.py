"""Calls without an answer at a client whose gateway was tapped on both sides: what is said of the answer is what both hops show."""

from mcpspy.records import Frame
from mcpspy.transcript.findings.rule import Finding
from tests.transcript.dialogue import Dialogue
from tests.transcript.test_hops import CLIENT, GATEWAY, Step, capture, joined


def without_answer(dialogue: Dialogue, text: str) -> Dialogue:
    """Leave the answer with this text out."""
    dialogue.records[:] = [
        record for record in dialogue.records if not isinstance(record, Frame) or text.encode() not in record.data
    ]
    return dialogue


def unanswered(outer: Dialogue, inner: Dialogue) -> list[Finding]:
    return [finding for finding in joined(outer, inner).findings if finding.rule == "unanswered-request"]


OUTER = (
    Step(10, 30, 1, text="ask first", answer="first."),
    Step(40, 9000, 2, text="ask second", answer="second."),
    Step(9100, 9200, 3, text="ask third", answer="third."),
)
INNER = (
    Step(12, 28, 1, text="ask first", answer="first."),
    Step(42, 55, 2, text="ask second", answer="second."),
    Step(9110, 9190, 3, text="ask third", answer="third."),
)


def test_an_answer_that_the_gateway_kept_is_one_that_the_client_never_got() -> None:
    outer = without_answer(capture("gateway", CLIENT, *OUTER), "second.")
    (finding,) = unanswered(outer, capture("server", GATEWAY, *INNER))
    assert finding.culprit == "gateway"
    assert finding.what.startswith("The client never got the answer to tools/call echo")


def test_an_answer_that_was_never_given_is_one_that_the_server_never_gave() -> None:
    outer, inner = (
        without_answer(capture(label, parent, *steps), "second.")
        for label, parent, steps in (("gateway", CLIENT, OUTER), ("server", GATEWAY, INNER))
    )
    (finding,) = unanswered(outer, inner)
    assert finding.culprit == "server"
    assert finding.what.startswith("The server never answered tools/call echo")
