"""Requests and their answers. Each test plays a dialogue and checks one fact about the exchanges."""

import json

import pytest

from mcpspy.transcript.correlator import spellings
from mcpspy.transcript.model import Kind, Outcome
from mcpspy.transcript.transcribe import transcribe
from tests.transcript.dialogue import Dialogue, cancelled, error, notification, progress, request, result, tool_call

# --- Exact pairing ---


def test_a_result_belongs_to_the_request_with_its_id() -> None:
    exchange = Dialogue().client(request(1)).server(result(1)).exchange
    assert (exchange.outcome, exchange.duration_ns) == (Outcome.OK, 1_000_000)


def test_answers_out_of_order_find_their_requests() -> None:
    dialogue = Dialogue().client(request(1, "a")).client(request(2, "b")).server(result(2, "B")).server(result(1, "A"))
    assert [exchange.response and exchange.response.result for exchange in dialogue.exchanges] == ["A", "B"]


def test_an_error_is_an_answer() -> None:
    assert Dialogue().client(request(1)).server(error(1)).exchange.outcome is Outcome.ERROR


def test_a_failed_tool_is_no_protocol_error() -> None:
    assert Dialogue().client(tool_call(1)).server(result(1, {"isError": True})).exchange.outcome is Outcome.TOOL_ERROR


@pytest.mark.parametrize("value", [False, "true", 1, None])
def test_only_true_makes_a_tool_error(value: object) -> None:
    assert Dialogue().client(tool_call(1)).server(result(1, {"isError": value})).exchange.outcome is Outcome.OK


def test_both_sides_may_use_the_same_id_at_once() -> None:
    dialogue = Dialogue().client(request(1, "tools/call")).server(request(1, "elicitation/create"))
    dialogue.client(result(1, "from the client")).server(result(1, "from the server"))
    results = {exchange.method: exchange.response and exchange.response.result for exchange in dialogue.exchanges}
    assert results == {"tools/call": "from the server", "elicitation/create": "from the client"}


def test_zero_is_an_id() -> None:
    assert Dialogue().client(request(0)).server(result(0)).exchange.outcome is Outcome.OK


def test_7_and_quoted_7_are_two_ids() -> None:
    dialogue = Dialogue().client(request(7, "a")).client(request("7", "b")).server(result("7", "B")).server(result(7, "A"))
    assert [exchange.response and exchange.response.result for exchange in dialogue.exchanges] == ["A", "B"]


def test_7_and_7_point_0_are_two_ids() -> None:
    dialogue = Dialogue().client(request(7, "a")).client(request(7.0, "b")).server(result(7.0, "B")).server(result(7, "A"))
    assert [exchange.response and exchange.response.result for exchange in dialogue.exchanges] == ["A", "B"]


def test_thirty_digits_are_not_rounded() -> None:
    id, other = 123456789012345678901234567890, 123456789012345678901234567891
    dialogue = Dialogue().client(request(id)).client(request(other)).server(result(other))
    assert [exchange.outcome for exchange in dialogue.exchanges] == [Outcome.UNANSWERED, Outcome.OK]


def test_an_id_spelled_with_escapes_is_the_same_string() -> None:
    dialogue = Dialogue().client(b'{"jsonrpc":"2.0","id":"\\u0061","method":"x"}\n').server(result("a"))
    assert dialogue.exchange.outcome is Outcome.OK


def test_an_id_can_be_used_again_after_its_answer() -> None:
    dialogue = Dialogue().client(request(1, "a")).server(result(1, "A")).client(request(1, "b")).server(result(1, "B"))
    assert [exchange.response and exchange.response.result for exchange in dialogue.exchanges] == ["A", "B"]


def test_requests_that_share_an_id_are_answered_in_their_order() -> None:
    dialogue = Dialogue().client(request(1, "a")).client(request(1, "b")).server(result(1, "A")).server(result(1, "B"))
    assert [exchange.response and exchange.response.result for exchange in dialogue.exchanges] == ["A", "B"]


def test_a_batch_is_answered_by_a_batch() -> None:
    dialogue = Dialogue().client([request(1, "a"), notification(), request(2, "b")]).server([result(2, "B"), result(1, "A")])
    assert [exchange.response and exchange.response.result for exchange in dialogue.exchanges] == ["A", "B"]


def test_each_capture_is_a_scope_of_its_own() -> None:
    first, other = Dialogue("one").client(request(1)), Dialogue("other").server(result(1))
    assert [exchange.outcome for exchange in transcribe(first.records, other.records).exchanges] == [Outcome.UNANSWERED]


# --- What is left over ---


def test_a_response_to_no_request_is_unpaired() -> None:
    assert Dialogue().client(request(1)).server(result(2)).unpaired.id == "2"


def test_a_response_does_not_answer_a_request_of_its_own_side() -> None:
    dialogue = Dialogue().client(request(1)).client(result(1))
    assert (dialogue.exchange.outcome, dialogue.unpaired.kind) == (Outcome.UNANSWERED, Kind.RESULT)


def test_an_error_with_a_null_id_answers_nothing() -> None:
    dialogue = Dialogue().client(request(None)).server(error(None))
    assert (dialogue.exchange.response, dialogue.unpaired.kind) == (None, Kind.ERROR)


def test_a_result_without_id_answers_nothing_where_no_request_waits() -> None:
    dialogue = Dialogue().server(b'{"result":{"progress":30}}\n')
    assert (dialogue.unpaired.id, dialogue.unpaired.flaws) == (None, ("no-jsonrpc", "no-id"))


def test_a_second_answer_is_kept_beside_the_first() -> None:
    exchange = Dialogue().client(request(1)).server(result(1, "first")).server(result(1, "second")).exchange
    assert (exchange.response and exchange.response.result, [message.result for message in exchange.more_responses]) == (
        "first",
        ["second"],
    )


# --- Lenient pairing ---


@pytest.mark.parametrize(
    ("request_id", "answered"), [("7", '"7"'), ('"7"', "7"), ("7", "7.0"), ("7.0", "7"), ('"7"', "7.0"), ("7", "7e0")]
)
def test_another_spelling_of_a_number_pairs_where_no_exact_id_waits(request_id: str, answered: str) -> None:
    dialogue = (
        Dialogue()
        .client(b'{"id":%s,"method":"x"}\n' % request_id.encode())
        .server(b'{"id":%s,"result":1}\n' % answered.encode())
    )
    assert dialogue.exchange.outcome is Outcome.OK


def test_the_exact_id_is_preferred_to_another_spelling() -> None:
    dialogue = Dialogue().client(request("7", "a")).client(request(7, "b")).server(result(7, "B"))
    assert [exchange.outcome for exchange in dialogue.exchanges] == [Outcome.UNANSWERED, Outcome.OK]


def test_both_ids_of_a_lenient_pair_keep_their_spelling() -> None:
    exchange = Dialogue().client(request(7)).server(result("7")).exchange
    assert (exchange.request.id, exchange.response and exchange.response.id) == ("7", '"7"')


def test_a_second_answer_in_another_spelling_is_no_answer_to_somebody_else() -> None:
    exchange = Dialogue().client(request(7)).server(result("7")).server(result("7")).exchange
    assert len(exchange.more_responses) == 1


@pytest.mark.parametrize("token", ['"abc"', "null", '""', '"7 "', "1e99999", "9" * 5000, '"1_0"', '"\u0667"'])
def test_what_is_no_plain_number_has_one_spelling(token: str) -> None:
    assert spellings(token) == []


def test_a_number_has_four_usual_spellings() -> None:
    assert {"7", *spellings("7")} == {"7", '"7"', "7.0", '"7.0"'}


# --- Progress ---


def test_progress_belongs_to_the_request_that_gave_its_token() -> None:
    exchange = (
        Dialogue().client(tool_call(1, token="t")).server(progress("t")).server(progress("t", 2)).server(result(1)).exchange
    )
    assert exchange.progress == 2


def test_a_progress_token_is_no_request_id() -> None:
    dialogue = Dialogue().client(tool_call(1, token=5)).client(request(5)).server(progress(5))
    assert [exchange.progress for exchange in dialogue.exchanges] == [1, 0]


def test_progress_on_a_request_of_the_server_comes_from_the_client() -> None:
    dialogue = Dialogue().server(request(1, "sampling/createMessage", {"_meta": {"progressToken": 1}})).client(progress(1))
    assert dialogue.exchange.progress == 1


def test_progress_in_the_wrong_direction_is_unpaired() -> None:
    assert Dialogue().client(tool_call(1, token=1)).client(progress(1)).unpaired.method == "notifications/progress"


def test_progress_after_the_answer_still_belongs_to_it() -> None:
    assert Dialogue().client(tool_call(1, token=1)).server(result(1)).server(progress(1)).exchange.progress == 1


def test_a_token_used_again_belongs_to_the_newest_request() -> None:
    dialogue = Dialogue().client(tool_call(1, token=9)).server(result(1)).client(tool_call(2, token=9)).server(progress(9))
    assert [exchange.progress for exchange in dialogue.exchanges] == [0, 1]


def test_a_progress_token_in_another_spelling_is_found() -> None:
    assert Dialogue().client(tool_call(1, token=1)).server(progress("1")).exchange.progress == 1


@pytest.mark.parametrize("params", [None, {}, [], "x", {"progressToken": None}, {"progressToken": {"a": 1}}])
def test_progress_that_names_no_request_is_unpaired(params: object) -> None:
    dialogue = Dialogue().client(tool_call(1, token=1)).server(notification("notifications/progress", params))
    assert dialogue.unpaired.method == "notifications/progress"


# --- Cancellation ---


def test_a_cancellation_ends_the_request_it_names() -> None:
    exchange = Dialogue().client(tool_call(1)).client(cancelled(1)).exchange
    assert (exchange.outcome, exchange.duration_ns) == (Outcome.CANCELLED, 1_000_000)


def test_the_cancellation_is_among_what_belongs_to_the_exchange() -> None:
    exchange = Dialogue().client(tool_call(1)).client(cancelled(1)).exchange
    assert list(exchange.notifications) == [exchange.cancelled]


def test_an_answer_after_the_cancellation_is_kept_and_changes_nothing() -> None:
    exchange = Dialogue().client(tool_call(1)).client(cancelled(1)).server(result(1)).exchange
    assert (exchange.outcome, exchange.response is not None) == (Outcome.CANCELLED, True)


def test_a_cancellation_after_the_answer_comes_too_late() -> None:
    assert Dialogue().client(tool_call(1)).server(result(1)).client(cancelled(1)).exchange.outcome is Outcome.OK


def test_a_side_cancels_its_own_requests_only() -> None:
    dialogue = Dialogue().client(tool_call(1)).server(cancelled(1))
    assert (dialogue.exchange.cancelled, dialogue.unpaired.method) == (None, "notifications/cancelled")


def test_the_server_can_cancel_its_own_request() -> None:
    dialogue = Dialogue().client(request(1)).server(request(1, "roots/list")).server(cancelled(1))
    assert [exchange.outcome for exchange in dialogue.exchanges] == [Outcome.UNANSWERED, Outcome.CANCELLED]


def test_an_id_can_be_used_again_after_its_cancellation() -> None:
    dialogue = Dialogue().client(tool_call(1)).client(cancelled(1)).client(tool_call(1)).server(result(1))
    assert [exchange.outcome for exchange in dialogue.exchanges] == [Outcome.CANCELLED, Outcome.OK]


def test_the_second_cancellation_does_not_replace_the_first() -> None:
    exchange = Dialogue().client(tool_call(1)).client(cancelled(1)).client(cancelled(1)).exchange
    assert (exchange.duration_ns, len(exchange.notifications)) == (1_000_000, 2)


# --- Much of it ---


def test_a_long_run_of_progress_takes_time_in_proportion() -> None:
    dialogue = Dialogue().client(tool_call(1, token=1))
    line = json.dumps(progress(1)).encode() + b"\n"
    for _ in range(20_000):
        dialogue.server(line)
    assert dialogue.exchange.progress == 20_000


# --- What cannot be told, and is not guessed ---


def flaws(dialogue: Dialogue) -> list[str]:
    """Return the flaws of all messages."""
    return [flaw for message in dialogue.transcript.messages for flaw in message.flaws]


def test_a_response_that_two_spellings_of_its_id_wait_for_answers_neither() -> None:
    dialogue = Dialogue().client(request("7", "a")).client(request(7.0, "b")).server(result(7))
    assert ([exchange.response for exchange in dialogue.exchanges], dialogue.unpaired.flaws) == (
        [None, None],
        ("ambiguous-id",),
    )


def test_progress_with_a_token_that_two_requests_gave_out_belongs_to_neither() -> None:
    dialogue = Dialogue().client(tool_call(1, token="t")).client(tool_call(2, token="t")).server(progress("t"))
    assert ([exchange.progress for exchange in dialogue.exchanges], flaws(dialogue)) == (
        [0, 0],
        ["token-in-use", "ambiguous-progress"],
    )


def test_progress_is_no_longer_ambiguous_once_all_but_one_are_answered() -> None:
    dialogue = Dialogue().client(tool_call(1, token="t")).client(tool_call(2, token="t")).client(tool_call(3, token="t"))
    dialogue.server(result(1)).server(result(3)).server(progress("t")).server(result(2)).server(progress("t"))
    assert [exchange.progress for exchange in dialogue.exchanges] == [0, 2, 0]
    assert flaws(dialogue) == ["token-in-use", "token-in-use", "late-progress"]


def test_the_tokens_1_and_quoted_1_are_two() -> None:
    dialogue = Dialogue().client(tool_call(1, token=1)).client(tool_call(2, token="1")).server(progress("1"))
    assert ([exchange.progress for exchange in dialogue.exchanges], flaws(dialogue)) == ([0, 1], [])


def test_progress_with_a_token_that_two_requests_spelled_otherwise_belongs_to_neither() -> None:
    dialogue = Dialogue().client(tool_call(1, token="7")).client(tool_call(2, token=7.0)).server(progress(7))
    assert ([exchange.progress for exchange in dialogue.exchanges], flaws(dialogue)) == ([0, 0], ["ambiguous-progress"])


def test_a_token_may_be_used_again_after_the_answer() -> None:
    dialogue = (
        Dialogue().client(tool_call(1, token="t")).server(result(1)).client(tool_call(2, token="t")).server(progress("t"))
    )
    assert ([exchange.progress for exchange in dialogue.exchanges], flaws(dialogue)) == ([0, 1], [])


def test_progress_after_the_answer_is_late() -> None:
    dialogue = Dialogue().client(tool_call(1, token="t")).server(result(1)).server(progress("t"))
    assert (dialogue.exchange.progress, flaws(dialogue)) == (1, ["late-progress"])


def test_a_crowd_with_one_token_takes_time_in_proportion() -> None:
    dialogue = Dialogue()
    for id in range(3_000):
        dialogue.client(tool_call(id, token="t"))
    for id in range(3_000):
        dialogue.server(progress("t")).server(result(id))
    assert [exchange.progress for exchange in dialogue.exchanges] == [0] * 2_999 + [1]  # by then it is the only one


# --- Answers in parts ---


def part(id: int, text: str, *, complete: bool) -> dict[str, object]:
    """Return a part of a result, as some servers cut it."""
    return result(id, {"content": [{"type": "text", "text": text}], "isComplete": complete})


def test_results_that_say_that_more_follows_come_before_the_answer() -> None:
    dialogue = Dialogue().client(request(1)).server(part(1, "a", complete=False)).server(part(1, "b", complete=False))
    exchange = dialogue.server(part(1, "c", complete=True)).exchange
    assert ([message.number for message in exchange.partials], exchange.more_responses, exchange.duration_ns) == (
        [6, 7],
        (),
        3_000_000,
    )


def test_an_exchange_is_pending_until_its_answer_is_complete() -> None:
    dialogue = Dialogue().client(request(1)).server(part(1, "a", complete=False))
    assert dialogue.exchange.outcome is Outcome.UNANSWERED  # the capture ends here
    assert dialogue.server(part(1, "b", complete=True)).exchange.outcome is Outcome.OK


def test_partial_results_are_among_the_messages() -> None:
    dialogue = Dialogue().client(request(1)).server(part(1, "a", complete=False)).server(part(1, "b", complete=True))
    assert len(dialogue.transcript.messages) == 3
