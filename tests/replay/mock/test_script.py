"""Tests of what a script sends to a live client, and after which delay."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.records import Frame
from mcpspy.replay.mock.miss import Miss
from mcpspy.replay.mock.script import NearestPolicy
from mcpspy.transcript.mcp.codes import SUBSCRIPTION_ID
from tests.replay.mock.script_playing import Play
from tests.transcript.dialogue import MS, Dialogue, cancelled, error, notification, progress, request, result, tool_call
from tests.transcript.traffic import Traffic, modern, opened_session

ROOTS = request(0, "roots/list")
LOG = notification("notifications/message", {"level": "info", "data": "x"})
CHANGED = notification("notifications/tools/list_changed")


def methods(messages: list[Any]) -> list[str]:
    """Return the methods of messages; `answer` for results and errors."""
    return [message.get("method", "answer") for message in messages]


# Ids and tokens


@pytest.mark.parametrize("id", [b"7", b'"seven"', b"0", b"123456789012345678901234567890", b'"\\u00fc"'])
def test_an_answer_has_the_live_id_and_every_other_byte_as_recorded(id: bytes) -> None:
    odd = b'{ "result" : {"b":1.0, "a":[1e5,"\xc3\xbc\\u0041"],"a":2} ,"id":1, "jsonrpc":"2.0","vendor":{"id":1}}\r\n'
    play = Play(Dialogue().client(request(1)).server(odd))
    live = b'{"jsonrpc":"2.0","id":' + id + b',"method":"tools/list"}\n'
    assert play.lines(live) == [odd.replace(b'"id":1, ', b'"id":' + id.replace(b"\\u00fc", "ü".encode()) + b", ")]


def test_an_error_is_answered_as_it_was_recorded() -> None:
    assert Play(Dialogue().client(request(1)).server(error(1, -32000))).messages(request("x")) == [error("x", -32000)]


def test_progress_has_the_live_token() -> None:
    play = Play(Dialogue().client(tool_call(1, token=1)).server(progress(1)).server(result(1)))
    assert play.messages(tool_call(5, token="live")) == [progress("live"), result(5)]


def test_a_call_that_asks_for_no_progress_gets_none() -> None:
    play = Play(Dialogue().client(tool_call(1, token=1)).server(progress(1)).server(result(1)))
    assert play.messages(tool_call(5)) == [result(5)]


def test_news_of_a_subscription_has_the_id_of_the_live_one() -> None:
    def news(id: Any) -> Any:
        return notification("notifications/resources/updated", {"uri": "a", "_meta": {SUBSCRIPTION_ID: id}})

    listen = "subscriptions/listen"
    recorded = (
        Dialogue().client(request("s1", listen)).server(news("s1")).client(tool_call(2)).server(news("s1")).server(result(2))
    )
    play = Play(recorded)
    assert play.messages(request(40, listen)) == [news(40)]
    assert play.messages(tool_call(41)) == [news(40), result(41)]


def test_each_of_two_clients_hears_the_news_of_its_own_subscription() -> None:
    traffic = Traffic()
    news = notification("notifications/resources/updated", {"uri": "a", "_meta": {SUBSCRIPTION_ID: 1}})
    for name in ("a", "b"):
        traffic.post(modern(1, "subscriptions/listen", name, name=name)).stream().event(news)
    play = Play(traffic)
    for number, (name, id) in enumerate((("a", 7), ("b", 8))):
        (message,) = play.another(number).messages(request(id, "subscriptions/listen", {"name": name}))
        assert message["params"]["_meta"][SUBSCRIPTION_ID] == id


def test_progress_of_which_nobody_knows_whose_it_is_is_not_told() -> None:
    play = Play(Dialogue().client(tool_call(1, token=1)).server(progress(99)).server(result(1)))
    assert play.messages(tool_call(5, token=99)) == [result(5)]


def test_news_of_a_subscription_that_nobody_asked_for_is_not_told() -> None:
    news = notification("notifications/resources/updated", {"uri": "a", "_meta": {SUBSCRIPTION_ID: 1}})
    play = Play(Dialogue().client(request(1, "subscriptions/listen")).client(tool_call(2)).server(news).server(result(2)))
    assert play.messages(tool_call(2)) == [result(2)]


# What the server asks


def asking() -> Dialogue:
    """Return a call in which the server asks for the roots, and is answered."""
    return Dialogue().client(tool_call(1)).server(ROOTS).client(result(0, {"roots": []})).server(LOG).server(result(1))


def test_what_followed_the_answer_of_a_client_waits_for_the_live_answer() -> None:
    play = Play(asking())
    (question,) = play.messages(tool_call(9))
    assert question["method"] == "roots/list"
    assert methods(play.messages(result(question["id"], {"roots": []}))) == ["notifications/message", "answer"]


def test_an_error_is_an_answer_too() -> None:
    play = Play(asking())
    (question,) = play.messages(tool_call(9))
    assert methods(play.messages(error(question["id"]))) == ["notifications/message", "answer"]


def test_the_requests_of_the_server_in_two_calls_have_two_ids() -> None:
    play = Play(asking())
    (first,), (second,) = play.messages(tool_call(1)), play.messages(tool_call(2))
    assert first["id"] != second["id"]
    assert play.messages(result(second["id"]))[-1] == result(2)
    assert play.messages(result(first["id"]))[-1] == result(1)


def test_an_id_that_comes_back_as_a_string_is_the_same() -> None:
    play = Play(asking())
    (question,) = play.messages(tool_call(9))
    assert methods(play.messages(result(str(question["id"])))) == ["notifications/message", "answer"]


@pytest.mark.parametrize("id", [99, "x", None, 1.5])
def test_answers_to_what_was_not_asked_change_nothing(id: Any) -> None:
    play = Play(asking())
    (question,) = play.messages(tool_call(9))
    assert play.messages(result(id)) == []
    assert play.messages(result(question["id"]))[-1] == result(9)


def test_the_answer_to_a_request_that_was_never_answered_is_not_awaited() -> None:
    play = Play(Dialogue().client(tool_call(1)).server(ROOTS).server(result(1)))
    assert methods(play.messages(tool_call(9))) == ["roots/list", "answer"]


def test_a_cancellation_by_the_server_names_the_live_id() -> None:
    play = Play(
        Dialogue().client(tool_call(1)).server(request("q", "sampling/createMessage")).server(cancelled("q")).server(result(1))
    )
    question, taken, _ = play.messages(tool_call(9))
    assert taken["params"]["requestId"] == question["id"] != "q"


def test_a_call_that_went_on_beside_a_request_of_the_server_does_not_wait_for_its_answer() -> None:
    recorded = Dialogue().client(tool_call(1, "slow")).client(tool_call(2, "asks")).server(ROOTS).server(result(1))
    play = Play(recorded.client(result(0)).server(result(2)))
    assert methods(play.messages(tool_call(7, "asks"))) == ["roots/list"]
    assert play.messages(tool_call(8, "slow")) == [result(8)]


# On its own


def test_what_a_server_says_on_its_own_comes_after_the_message_before_it() -> None:
    play = Play(Dialogue().client(notification()).server(LOG).client(request(1)).server(result(1)).server(LOG))
    assert methods(play.messages(notification())) == ["notifications/message"]
    assert methods(play.messages(request(1))) == ["answer", "notifications/message"]


UNREAD = b'{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}\n'


def test_what_a_server_says_to_a_line_that_is_no_message_comes_after_that_line_and_no_other() -> None:
    recorded = (
        Dialogue().client(request(1)).server(result(1)).client(b"{oops\n").server(UNREAD).client(request(2, "prompts/list"))
    )
    play = Play(recorded.server(result(2)))
    assert play.messages(request(1)) == [result(1)]
    assert play.lines(b"something else\n") == []
    assert play.lines(b"{oops\n") == [UNREAD]
    assert play.lines(b"{oops\n") == []
    assert play.messages(request(2, "prompts/list")) == [result(2)]


def test_each_client_gets_the_notifications_of_the_client_whose_sequence_it_follows() -> None:
    traffic = Traffic()
    for name in ("a", "b"):
        opened_session(traffic, name)
        traffic.get(session=name).stream().event(notification("notifications/message", {"level": "info", "data": name}))
    play = Play(traffic)
    for number, name in enumerate("ab"):
        client = play.another(number)
        client.messages(request(1, "initialize"))
        assert [message["params"]["data"] for message in client.messages(notification())] == [name]


def test_what_a_server_says_before_it_is_asked_comes_first() -> None:
    play = Play(Dialogue().server(LOG).client(request(1)).server(result(1)))
    assert [json.loads(send.data) for send in play.script.open()] == [LOG]


def test_noise_on_stdout_is_said_too() -> None:
    play = Play(Dialogue().client(request(1)).server(b"listening\n").server(result(1)))
    assert play.lines(request(1))[0] == b"listening\n"


def test_a_list_that_is_asked_for_again_does_not_change_again() -> None:
    play = Play(Dialogue().client(request(1)).server(CHANGED).server(LOG).server(result(1)).server(LOG))
    assert methods(play.messages(request(1))) == [
        "notifications/tools/list_changed",
        "notifications/message",
        "answer",
        "notifications/message",
    ]
    assert methods(play.messages(request(2))) == ["notifications/message", "answer"]


def test_what_was_said_after_the_end_of_input_is_said_at_the_end() -> None:
    play = Play(Dialogue().client(request(1)).server(result(1)).client_leaves().server(LOG))
    assert methods(play.messages(request(1))) == ["answer"]
    assert [json.loads(send.data) for send in play.script.close()] == [LOG]


# Answers in order


def test_equal_requests_get_their_answers_in_order_and_then_the_last_again() -> None:
    play = Play(Dialogue().client(request(1)).server(result(1, {"n": 1})).client(request(2)).server(result(2, {"n": 2})))
    assert [play.messages(request(id))[0]["result"]["n"] for id in range(4)] == [1, 2, 2, 2]


def test_answers_come_in_any_order_in_which_they_are_asked_for() -> None:
    recorded = (
        Dialogue().client(tool_call(1, "a")).client(tool_call(2, "b")).server(result(2, {"b": 1})).server(result(1, {"a": 1}))
    )
    play = Play(recorded)
    assert play.messages(tool_call(1, "a")) == [result(1, {"a": 1})]
    assert play.messages(tool_call(2, "b")) == [result(2, {"b": 1})]


def test_scripts_that_share_their_replies_do_not_take_anything_from_each_other() -> None:
    recorded = Dialogue().client(notification()).server(LOG).client(request(1)).server(CHANGED).server(result(1))
    play = Play(recorded)
    other = play.another()
    for item in (play, other):
        assert methods(item.messages(notification())) == ["notifications/message"]
        assert methods(item.messages(request(1))) == ["notifications/tools/list_changed", "answer"]


def test_an_answer_that_was_not_kept_is_a_miss() -> None:
    dialogue = Dialogue().client(request(1))
    frame = dialogue.server(result(1)).records[-1]
    frame.data, frame.rare = b"", {"length": 40, "sha256": "x"}  # type: ignore[union-attr]  # a frame
    (message,) = Play(dialogue).messages(request(2))
    assert message["error"]["message"].startswith("mcpspy mock: tools/list was recorded past --max-size")


def test_an_answer_that_an_incomplete_capture_may_have_lost_is_a_miss() -> None:
    (message,) = Play(
        Dialogue().client(request(1)).server(notification("notifications/message")).client(request(2, "x"))
    ).messages(request(7))
    assert (
        message["error"]["message"]
        == "mcpspy mock: tools/list was recorded without its answer: the capture is incomplete; the nearest is row 1"
    )
    assert message["error"]["data"]["refused_by"] == "capture"


def test_where_the_server_died_of_a_call_nothing_is_missing() -> None:
    (send,) = Play(Dialogue().client(tool_call(1)).gap().exits(3)).sends(tool_call(1))
    assert send.exit is not None


def test_a_request_that_was_never_answered_stays_unanswered() -> None:
    assert Play(Dialogue().client(request(1)).closes()).messages(request(1)) == []


def test_each_member_of_a_batch_is_answered() -> None:
    play = Play(Dialogue().client(tool_call(1, "a")).server(result(1)).client(tool_call(2, "b")).server(result(2)))
    assert play.messages([tool_call(5, "b"), tool_call(6, "a")]) == [result(5), result(6)]


@pytest.mark.parametrize("method", ["ping", "logging/setLevel"])
def test_what_every_server_answers_with_nothing_is_answered_so(method: str) -> None:
    assert Play(Dialogue().client(request(1)).server(result(1))).messages(request(7, method)) == [result(7)]


# What was never recorded


def test_the_nearest_is_played_with_all_that_belongs_to_it() -> None:
    recorded = Dialogue().client(tool_call(1, "a", token=1, city="Oslo")).server(progress(1)).server(result(1))
    play = Play(recorded, on_miss=NearestPolicy())
    assert play.messages(tool_call(7, "a", token=8, city="Rome")) == [progress(8), result(7)]


def test_of_several_answers_of_the_nearest_the_next_is_played() -> None:
    recorded = Dialogue()
    for n in (1, 2):
        recorded.client(tool_call(n, "a", city="Oslo")).server(result(n, {"n": n}))
    play = Play(recorded, on_miss=NearestPolicy())
    assert [play.messages(tool_call(7, "a", city="Rome"))[0]["result"]["n"] for _ in range(3)] == [1, 2, 2]


def test_where_nothing_is_near_the_nearest_is_an_error() -> None:
    play = Play(Dialogue().client(tool_call(1)).server(result(1)), on_miss=NearestPolicy())
    assert play.messages(request(1, "prompts/list"))[0]["error"]["code"] == -32601


def test_what_somebody_else_answers_is_told_and_not_said() -> None:
    class Elsewhere:
        def missed(self, miss: Miss) -> None:
            assert miss.request.method == "tools/list"

    (send,) = Play(Dialogue().client(tool_call(1)).server(result(1)), on_miss=Elsewhere()).sends(request(8))
    assert (send.data, send.answers, send.state.id, send.miss is not None) == (b"", False, "8", True)


# Cancelling


def test_what_followed_a_cancellation_follows_the_live_one() -> None:
    recorded = (
        Dialogue()
        .client(tool_call(1, token=1))
        .server(progress(1))
        .client(cancelled(1))
        .server(progress(1, 2))
        .server(error(1, -32800))
    )
    play = Play(recorded)
    assert play.messages(tool_call(5, token=5)) == [progress(5)]
    assert play.messages(cancelled(5)) == [progress(5, 2), error(5, -32800)]


def test_what_was_due_before_a_call_is_given_up_is_not_said_after() -> None:
    recorded = (
        Dialogue().client(tool_call(1, token=1)).wait(99).server(progress(1)).client(cancelled(1)).server(error(1, -32800))
    )
    play = Play(recorded)
    late = play.sends(tool_call(5, token=5))
    assert play.messages(cancelled(5)) == [error(5, -32800)]
    assert not any(play.script.is_due(send) for send in late)


@pytest.mark.parametrize("id", [5, "5"])
def test_a_subscription_that_is_given_up_has_no_more_news(id: Any) -> None:
    news = notification("notifications/resources/updated", {"uri": "a", "_meta": {SUBSCRIPTION_ID: 1}})
    recorded = Dialogue().client(request(1, "subscriptions/listen")).client(tool_call(2)).server(news).server(result(2))
    play = Play(recorded)
    play.messages(request(5, "subscriptions/listen"))
    assert methods(play.messages(tool_call(6))) == ["notifications/resources/updated", "answer"]
    play.messages(cancelled(id))
    assert methods(play.messages(tool_call(7))) == ["answer"]


def test_a_call_that_is_given_up_is_not_answered_any_more() -> None:
    play = Play(Dialogue().client(request(1)).server(result(1)))
    sends = play.sends(request(5))
    assert play.sends(cancelled(5)) == []
    assert not any(play.script.is_due(send) for send in sends)


def test_a_call_that_is_given_up_while_the_server_asks_is_over() -> None:
    play = Play(asking())
    (question,) = play.messages(tool_call(9))
    assert play.messages(cancelled(9)) == []
    assert play.messages(result(question["id"])) == []


def test_giving_up_what_is_answered_changes_nothing() -> None:
    play = Play(Dialogue().client(request(1)).server(result(1)))
    assert play.messages(request(5)) == [result(5)]
    assert play.messages(cancelled(5)) == []
    assert play.messages(request(6)) == [result(6)]


# Time


def test_a_message_is_sent_as_long_after_its_request_as_recorded() -> None:
    play = Play(Dialogue().client(tool_call(1, token=1)).wait(99).server(progress(1)).wait(49).server(result(1)))
    assert [send.delay_ns for send in play.sends(tool_call(1, token=1))] == [100 * MS, 150 * MS]


def test_a_message_is_sent_as_long_after_the_clients_answer_as_recorded() -> None:
    recorded = Dialogue().client(tool_call(1)).wait(9).server(ROOTS).wait(5000).client(result(0)).wait(19).server(result(1))
    play = Play(recorded)
    (question,) = play.sends(tool_call(1))
    assert question.delay_ns == 10 * MS
    assert [send.delay_ns for send in play.sends(result(json.loads(question.data)["id"]))] == [20 * MS]


# The end


def test_a_server_that_died_of_a_line_that_is_no_message_dies_again() -> None:
    (send,) = Play(Dialogue().client(tool_call(1)).client(b"{oops\n").exits(3)).sends(tool_call(1))
    assert send.exit is not None
    assert send.exit.code == 3


def test_a_server_that_died_while_it_was_asked_dies_again() -> None:
    play = Play(Dialogue().client(tool_call(1)).wait(6).exits(3))
    (send,) = play.sends(tool_call(1))
    assert send.exit is not None
    assert (send.exit.code, send.delay_ns) == (3, 7 * MS)


def test_a_server_that_was_sent_away_does_not_die_of_a_call() -> None:
    play = Play(Dialogue().client(tool_call(1)).note("signal").exits(None, "SIGTERM"))
    assert play.sends(tool_call(1)) == []


# Over HTTP


def test_what_http_refused_was_never_asked() -> None:
    traffic = Traffic()
    traffic.post(request(1, "initialize")).answer(401)
    traffic.post(request(1, "initialize")).answer(200, result(1, {"serverInfo": {}}))
    play = Play(traffic)
    assert play.messages(request(8, "initialize")) == [result(8, {"serverInfo": {}})]


def test_a_request_of_the_server_on_the_stream_of_a_call_is_sent_with_that_call() -> None:
    traffic = Traffic()
    opened_session(traffic, "s")
    slow = traffic.post(tool_call(1, "asks"), session="s").stream()
    traffic.post(tool_call(2, "quick"), session="s").answer(200, result(2))
    slow.event(ROOTS)
    traffic.post(result(0), session="s").answer(202)
    slow.event(result(1)).close()
    play = Play(traffic)
    assert play.messages(tool_call(2, "quick")) == [result(2)]
    assert methods(play.messages(tool_call(1, "asks"))) == ["roots/list"]


def test_a_body_of_several_lines_is_said_as_recorded() -> None:
    body = b'{\n "jsonrpc": "2.0",\r\n "id": %d,\n "result": {"a": "\\n"}\n}\n'
    traffic = Traffic()
    traffic.post(request(1)).answer(200, body % 1)
    assert Play(traffic).lines(request(4)) == [body % 4]


# Whatever a client says

LINES = st.one_of(
    st.binary(max_size=80),
    st.sampled_from(
        ["tools/list", "tools/call", "ping", "initialize", "notifications/cancelled", "notifications/initialized"]
    ).flatmap(
        lambda method: st.fixed_dictionaries(
            {"method": st.just(method)},
            optional={
                "id": st.one_of(st.integers(), st.text(), st.none(), st.floats(allow_nan=False), st.just([])),
                "params": st.one_of(
                    st.none(),
                    st.text(),
                    st.lists(st.integers()),
                    st.fixed_dictionaries(
                        {},
                        optional={
                            "name": st.one_of(st.just("forecast"), st.integers()),
                            "requestId": st.integers(0, 3),
                            "_meta": st.one_of(
                                st.none(), st.fixed_dictionaries({"progressToken": st.one_of(st.text(), st.lists(st.none()))})
                            ),
                            "inputResponses": st.one_of(st.none(), st.dictionaries(st.text(), st.none())),
                        },
                    ),
                ),
            },
        ).map(lambda value: json.dumps(value).encode())
    ),
    st.integers(0, 3).map(lambda id: json.dumps(result(id)).encode()),
)


@given(st.lists(LINES, max_size=12))
def test_nothing_that_a_client_says_stops_the_play(lines: list[bytes]) -> None:
    play = Play(asking().client(request(2, "initialize")).server(result(2)))
    for line in lines:
        for answer in play.lines(line.replace(b"\n", b" ") + b"\n"):
            assert answer.endswith(b"\n")
            assert answer.count(b"\n") == 1
            json.loads(answer)
    assert play.messages(request("last", "initialize")) == [result("last")]


@pytest.mark.parametrize("deep", [b'{"a":' * 30_000 + b"1" + b"}" * 30_000, b"[" * 30_000 + b"]" * 30_000, b"9" * 10_000])
def test_params_that_nobody_can_read_are_a_miss(deep: bytes) -> None:
    play = Play(asking())
    sends = play.sends(
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"forecast","arguments":' + deep + b"}}\n"
    )
    assert all(send.miss for send in sends)


def test_a_frame_in_parts_is_one_request() -> None:
    play = Play(Dialogue().client(request(1)).server(result(1)))
    line = json.dumps(request(3)).encode() + b"\n"
    assert not play._decoder.feed(Frame(0, 0, 0, line[:20], part=True))
    assert play.messages(line[20:]) == [result(3)]
