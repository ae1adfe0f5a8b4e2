"""Results without an id, paired with the one request that waits; and pings without an id, with their pongs."""

from typing import Any

from mcpspy.transcript.model import Exchange, Outcome, Transcript, UnpairedMessage
from mcpspy.transcript.transcribe import transcribe
from tests.transcript.dialogue import Dialogue, request, result, tool_call


def bare(**members: Any) -> dict[str, Any]:
    """Make a result and nothing else."""
    return {"result": members}


def exchanges(dialogue: Dialogue) -> list[Exchange]:
    return transcribe(dialogue.records).exchanges


def unpaired(transcript: Transcript) -> list[UnpairedMessage]:
    return [row for row in transcript.rows if isinstance(row, UnpairedMessage)]


def test_a_result_without_an_id_answers_the_only_request_that_waits() -> None:
    recorded = Dialogue().client(request(1)).server(result(1)).client(tool_call(2)).server(bare(content=[]))
    _, exchange = exchanges(recorded)
    assert exchange.outcome is Outcome.OK
    assert exchange.response is not None
    assert "by-order" in exchange.response.flaws


def test_a_result_with_its_id_is_not_paired_by_order() -> None:
    (exchange,) = exchanges(Dialogue().client(tool_call(2)).server(result(2)))
    assert exchange.response is not None
    assert exchange.response.flaws == ()


def test_where_several_requests_wait_they_are_its_candidates() -> None:
    transcript = transcribe(Dialogue().client(tool_call(1)).client(tool_call(2)).server(bare(content=[])).records)
    assert [exchange.response for exchange in transcript.exchanges] == [None, None]
    assert [row.candidates for row in unpaired(transcript)] == [(1, 2)]


def test_a_request_that_was_given_up_is_no_candidate_beside_one_that_waits() -> None:
    recorded = Dialogue().client(tool_call(1))
    recorded.client({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}})
    given_up, waiting = exchanges(recorded.client(tool_call(2)).server(bare(content=[])))
    assert (given_up.response, waiting.outcome) == (None, Outcome.OK)


def test_where_no_request_waits_it_stays_unpaired() -> None:
    transcript = transcribe(Dialogue().client(tool_call(1)).server(result(1)).server(bare(progress=100)).records)
    assert [row.candidates for row in unpaired(transcript)] == [()]


def test_parts_are_told_by_is_complete_and_by_progress() -> None:
    recorded = (
        Dialogue().client(tool_call(1)).server(bare(content=[], isComplete=False)).server(bare(content=[], isComplete=True))
    )
    recorded.client(tool_call(2)).server(bare(progress=0.3)).server(bare(progress=60, status="processing"))
    recorded.server(bare(progress=100, status="completed"))
    assert [(len(exchange.partials), exchange.outcome) for exchange in exchanges(recorded)] == [
        (1, Outcome.OK),
        (2, Outcome.OK),
    ]


def test_an_answer_with_the_id_makes_the_result_before_it_a_part() -> None:
    (exchange,) = exchanges(Dialogue().client(tool_call(1)).server(bare(content=[])).server(result(1)))
    assert exchange.response is not None
    assert (exchange.response.id, len(exchange.partials), len(exchange.more_responses)) == ("1", 1, 0)


def test_a_ping_without_an_id_and_its_pong_name_each_other() -> None:
    beat = ({"jsonrpc": "2.0", "method": "ping"}, {"jsonrpc": "2.0", "method": "pong"})
    transcript = transcribe(Dialogue().client(beat[0]).server(beat[1]).client(beat[0]).records)
    assert [row.candidates for row in unpaired(transcript)] == [(2,), (1,), ()]


PONG = {"jsonrpc": "2.0", "method": "pong"}


PING = {"jsonrpc": "2.0", "method": "ping"}


def test_one_lost_pong_does_not_shift_those_that_follow() -> None:
    recorded = Dialogue().client(PING).client(tool_call(1)).server(result(1))  # rows 1 and 2
    recorded.client(PING).server(PONG).client(PING).client(tool_call(2)).server(result(2)).client(request(3, "ping")).server(
        PONG
    )
    transcript = transcribe(recorded.records)
    assert [row.candidates for row in unpaired(transcript)] == [(), (4,), (3,), ()]
    assert transcript.exchanges[-1].outcome is Outcome.OK


def test_pings_without_ids_that_are_sent_together_get_their_pongs_in_order() -> None:
    recorded = (
        Dialogue().client(PING).client(PING).client(tool_call(1)).server(result(1)).server(PONG).client(PING).server(PONG)
    )
    assert [row.candidates for row in unpaired(transcribe(recorded.records))] == [(4,), (6,), (1,), (), (2,)]


def test_a_pong_answers_the_oldest_ping_that_waits() -> None:
    recorded = Dialogue().client(tool_call(1)).client(request(2, "ping")).client(request(3, "ping")).server(PONG).server(PONG)
    call, *pings = exchanges(recorded)
    assert call.response is None
    assert [(ping.outcome, ping.response is not None and ping.response.flaws) for ping in pings] == [
        (Outcome.OK, ("by-order",)),
        (Outcome.OK, ("by-order",)),
    ]
    assert {finding.rule for finding in transcribe(recorded.records).findings if finding.row in (2, 3)} == {"unpaired-response"}


def test_a_pong_answers_the_ping_of_the_other_side_only() -> None:
    transcript = transcribe(Dialogue().client(request(1, "ping")).client(PONG).records)
    assert [exchange.response for exchange in transcript.exchanges] == [None]
    assert [row.message.method for row in unpaired(transcript)] == ["pong"]


def test_an_answer_with_the_id_makes_the_pong_before_it_a_part() -> None:
    (ping,) = exchanges(Dialogue().client(request(1, "ping")).server(PONG).server(result(1)))
    assert ping.response is not None
    assert (ping.response.id, len(ping.partials), len(ping.more_responses)) == ("1", 1, 0)


def test_all_results_without_an_id_are_one_finding() -> None:
    recorded = Dialogue().client(tool_call(1))
    for _ in range(6):
        recorded.server(bare(content=[], isComplete=False))
    recorded.server(bare(content=[]))
    (finding,) = [finding for finding in transcribe(recorded.records).findings if finding.rule == "unpaired-response"]
    assert (finding.row, finding.count) == (1, 7)
