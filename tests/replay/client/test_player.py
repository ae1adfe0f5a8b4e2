"""Tests of what a player sends to a live server, and when."""

import json
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcpspy.capture.file.reader import read
from mcpspy.records import SERVER, Frame
from mcpspy.replay.client.player import MAX_PATIENCE_NS, PATIENCE_NS, TIMEOUT_NS, PlanPlayer, RecordedAnswers
from mcpspy.replay.client.read_plan import read_plans
from mcpspy.replay.mock.matching import RequestMatcher
from mcpspy.replay.mock.replies import read_replies
from mcpspy.replay.mock.script import Script
from mcpspy.transcript.decoder import Decoder
from mcpspy.transcript.envelope import message_of
from mcpspy.transcript.message import Message
from mcpspy.transcript.model import CaptureInfo
from mcpspy.transcript.transcribe import transcribe
from mcpspy.wire.edits import ValueEdit
from mcpspy.wire.jsonrpc import cut
from tests.conftest import ROOT
from tests.replay.client.plan_playing import Player
from tests.transcript.dialogue import MS, Dialogue, cancelled, error, notification, progress, request, result, tool_call
from tests.transcript.traffic import Traffic, initialize, modern, opened_session

ROOTS = request(0, "roots/list")
INITIALIZED = notification()
PATIENCE_MS = PATIENCE_NS / MS


def methods(sent: list[Any]) -> list[str]:
    return [message.get("method", "answer") for message in sent]


# Bytes, ids and tokens


def test_a_request_goes_out_as_it_was_recorded() -> None:
    odd = b'{ "params" : {"b":1.0, "a":[1e5,"\xc3\xbc\\u0041"],"a":2} ,"id":1, "method":"x","jsonrpc":"2.0","vendor":{"id":1}}'
    player = Player(Dialogue().client(odd + b"\r\n").server(result(1)))
    player.due()
    assert player.bytes == [odd]


def test_an_id_that_is_used_twice_is_exchanged() -> None:
    recorded = Dialogue().client(request(1, "a")).server(result(1)).client(request(1, "b")).server(result(1))
    player = Player(recorded)
    assert player.due() == [request(1, "a")]
    assert player.hears(result(1)) == [request(2, "b")]
    assert player.hears(result(2)) == []
    assert player.is_over


@pytest.mark.parametrize("id", ["probe-1", 0, 10**30, -4])
def test_an_id_stays_as_it_was_where_it_can(id: Any) -> None:
    assert Player(Dialogue().client(request(id)).server(result(id))).due() == [request(id)]


@pytest.mark.parametrize("id", [None, 1.5])
def test_an_id_that_is_none_is_exchanged(id: Any) -> None:
    assert Player(Dialogue().client(request(id)).server(result(id))).due() == [request(1)]


def test_ids_that_another_drive_took_are_not_used_again() -> None:
    assert Player(Dialogue().client(request(1)).server(result(1)), taken={"1", "2"}).due() == [request(3)]


def test_a_progress_token_that_is_used_twice_is_exchanged() -> None:
    recorded = Dialogue().client(tool_call(1, token="t")).client(tool_call(2, token="t")).server(result(1)).server(result(2))
    sent = Player(recorded).due()
    tokens = [message["params"]["_meta"]["progressToken"] for message in sent]
    assert tokens[0] == "t"
    assert len(set(map(str, tokens))) == 2


def test_a_value_is_exchanged_where_that_is_asked_for() -> None:
    edits = {1: [ValueEdit(("params", "arguments", "city"), b'"Bern"')]}
    player = Player(Dialogue().client(tool_call(1, city="Rome")).server(result(1)), edits=edits)
    assert player.due() == [tool_call(1, city="Bern")]


# Order


def test_a_call_waits_for_the_answer_that_had_come_before_it() -> None:
    player = Player(Dialogue().client(request(1)).server(result(1)).client(request(2)).server(result(2)))
    assert player.due() == [request(1)]
    assert player.due(10) == []
    assert player.hears(result(1)) == [request(2)]


def test_calls_that_overlapped_overlap() -> None:
    player = Player(Dialogue().client(request(1)).client(request(2)).server(result(2)).server(result(1)))
    assert player.due() == [request(1), request(2)]


def test_a_call_does_not_wait_for_one_that_was_still_under_way() -> None:
    recorded = Dialogue().client(request(1)).client(request(2)).server(result(2)).client(request(3)).server(result(3))
    player = Player(recorded.server(result(1)))
    player.due()
    assert player.hears(result(2)) == [request(3)]


def test_notifications_come_in_their_place() -> None:
    recorded = Dialogue().client(request(1, "initialize")).server(result(1)).client(INITIALIZED).client(request(2))
    player = Player(recorded.server(result(2)))
    player.due()
    assert player.hears(result(1)) == [INITIALIZED, request(2)]


def test_an_error_is_an_answer() -> None:
    player = Player(Dialogue().client(request(1)).server(result(1)).client(request(2)).server(result(2)))
    player.due()
    assert player.hears(error(1)) == [request(2)]


def test_what_is_no_json_rpc_is_sent_too() -> None:
    player = Player(Dialogue().client(b"hello\n").client(request(1)).server(result(1)))
    player.player.due(0)
    assert player.report.sends == 2


def test_a_request_that_nothing_answers_is_over() -> None:
    player = Player(Dialogue().client(request(1)).server(result(1)).client(request(2)).server(result(2)))
    player.due()
    assert player.ends("1") == [request(2)]
    assert player.report.ended == {1: "404 Not Found"}


# Time


def test_at_no_speed_nothing_waits_for_the_clock() -> None:
    recorded = Dialogue().client(request(1)).server(result(1)).wait(60_000).client(request(2)).server(result(2))
    player = Player(recorded)
    player.due()
    assert player.hears(result(1)) == [request(2)]


@pytest.mark.parametrize(("speed", "ms"), [(1.0, 501), (2.0, 250.5), (0.5, 1002)])
def test_pauses_of_the_client_are_kept_where_that_is_asked_for(speed: float, ms: float) -> None:
    recorded = Dialogue().client(request(1)).wait(90).server(result(1)).wait(500).client(request(2)).server(result(2))
    player = Player(recorded, speed=speed)
    player.due()
    player.now_ns = 10 * MS
    assert player.hears(result(1)) == []
    assert player.next_ms == 10 + ms
    assert player.due(10 + ms) == [request(2)]


def test_a_task_is_asked_how_it_stands_as_late_as_it_was_at_any_speed() -> None:
    recorded = Dialogue().client(request(1)).server(result(1)).wait(500).client(request(2, "tasks/get", {"taskId": "t"}))
    player = Player(recorded.server(result(2)))
    player.due()
    assert player.hears(result(1)) == []
    assert methods(player.due(501)) == ["tasks/get"]


def test_a_request_waits_for_its_answer_so_long_and_no_longer() -> None:
    player = Player(Dialogue().client(request(1)).server(result(1)).client(request(2)).server(result(2)))
    player.due()
    assert player.next_ms == TIMEOUT_NS / MS
    assert player.due(TIMEOUT_NS / MS) == [request(2)]
    assert player.report.late == [1]


def test_one_that_is_late_may_be_the_end_of_all() -> None:
    recorded = Dialogue().client(request(1)).server(result(1)).client(request(2)).server(result(2))
    player = Player(recorded, stops_when_late=True)
    player.due()
    assert player.due(TIMEOUT_NS / MS) == []
    assert (player.report.late, player.is_over, [unsent.row for unsent in player.report.unsent]) == ([1], True, [2])


def test_an_answer_that_never_came_is_awaited_as_long_as_it_was() -> None:
    player = Player(Dialogue().client(request(1)).wait(3000).closes())
    player.due()
    assert not player.is_over
    assert player.next_ms == 3001 + PATIENCE_MS
    player.due(3001 + PATIENCE_MS)
    assert player.is_over


def test_an_answer_that_never_came_is_awaited_no_longer_than_any() -> None:
    player = Player(Dialogue().client(request(1)).wait(90_000).closes(), timeout_ns=500 * MS)
    player.due()
    assert player.next_ms == 500


def test_without_a_handshake_nothing_more_is_sent() -> None:
    recorded = Dialogue().client(initialize(0)).server(result(0)).client(INITIALIZED).client(request(1)).server(result(1))
    player = Player(recorded)
    player.due()
    assert player.due(TIMEOUT_NS / MS) == []
    assert player.is_over
    assert [unsent.row for unsent in player.report.unsent] == [2, 3]


def test_where_the_handshake_is_refused_nothing_more_is_sent() -> None:
    recorded = Dialogue().client(initialize(0)).server(result(0)).client(INITIALIZED).client(request(1)).server(result(1))
    player = Player(recorded)
    player.due()
    assert player.ends("0", "401 Unauthorized") == []
    assert (player.is_over, player.report.lost) == (True, "initialize was not answered: 401 Unauthorized")


def test_a_message_that_was_not_taken_is_not_sent() -> None:
    player = Player(Dialogue().client(request(1)).server(result(1)))
    player.due()
    player.player.take_back("1", "its input is closed")
    assert player.report.sent == {}
    assert [unsent.why for unsent in player.report.unsent] == ["its input is closed"]


# What the server says on its own


def test_a_call_waits_for_what_the_server_had_said_before_it() -> None:
    changed = notification("notifications/tools/list_changed")
    player = Player(Dialogue().client(INITIALIZED).server(changed).client(request(1)).server(result(1)))
    assert player.due() == [INITIALIZED]
    assert player.hears(changed) == [request(1)]


def test_it_does_not_wait_for_ever() -> None:
    changed = notification("notifications/tools/list_changed")
    player = Player(Dialogue().client(INITIALIZED).wait(19).server(changed).client(request(1)).server(result(1)))
    player.due()
    assert player.next_ms == 20 + PATIENCE_MS
    assert player.due(20 + PATIENCE_MS) == [request(1)]


def test_what_came_after_a_long_silence_is_not_waited_for_as_long() -> None:
    changed = notification("notifications/tools/list_changed")
    recorded = Dialogue().client(INITIALIZED).wait(3_600_000).server(changed).client(request(1)).server(result(1))
    player = Player(recorded)
    player.due()
    assert player.next_ms == MAX_PATIENCE_NS / MS
    assert player.due(MAX_PATIENCE_NS / MS) == [request(1)]


def test_what_did_not_come_once_is_not_waited_for_again() -> None:
    log = notification("notifications/message", {"level": "info", "data": 1})
    recorded = Dialogue().client(request(1)).server(log).server(log).server(result(1)).server(log).client(request(2))
    player = Player(recorded.server(result(2)))
    player.due()
    player.hears(result(1))
    assert player.due(1 + PATIENCE_MS) == [request(2)]


def test_progress_that_the_answer_overtook_is_not_waited_for() -> None:
    recorded = Dialogue().client(tool_call(1, token=1)).server(progress(1)).server(progress(1, 2)).server(result(1))
    player = Player(recorded.client(request(2)).server(result(2)))
    player.due()
    assert player.hears(progress(1), result(1)) == [request(2)]


# What the server asks


def test_a_request_of_the_server_gets_its_recorded_answer_under_the_live_id() -> None:
    recorded = Dialogue().client(tool_call(1)).server(ROOTS).client(b'{"id":0 , "result":{"roots":[1.0]},"jsonrpc":"2.0"}\n')
    player = Player(recorded.server(result(1)))
    player.due()
    player.hears(request("live", "roots/list"))
    assert player.bytes[1:] == [b'{"id":"live" , "result":{"roots":[1.0]},"jsonrpc":"2.0"}']
    assert player.report.server_requests == {'"live"': 2}


def test_progress_on_a_request_of_the_server_has_the_live_token() -> None:
    question = request(0, "sampling/createMessage", {"_meta": {"progressToken": 0}})
    recorded = Dialogue().client(tool_call(1)).server(question).client(progress(0)).client(result(0)).server(result(1))
    player = Player(recorded)
    player.due()
    live = request(9, "sampling/createMessage", {"_meta": {"progressToken": "t"}})
    assert player.hears(live) == [progress("t"), result(9)]


def test_an_unrecorded_request_of_the_server_is_answered_with_an_error_that_says_so() -> None:
    player = Player(Dialogue().client(tool_call(1)).server(result(1)))
    player.due()
    (sent,) = player.hears(request(5, "sampling/createMessage", {"messages": []}))
    assert (sent["id"], sent["error"]["code"]) == (5, -32601)
    assert "sampling/createMessage" in sent["error"]["message"]
    assert [miss.request.id for miss in player.report.misses] == ["5"]


def test_a_ping_is_answered_though_none_was_recorded() -> None:
    player = Player(Dialogue().client(tool_call(1)).server(result(1)))
    player.due()
    assert player.hears(request("p", "ping")) == [result("p")]
    assert player.report.misses == []


def test_a_pong_without_an_id_answers_the_ping_that_waits() -> None:
    pong = {"jsonrpc": "2.0", "method": "pong"}
    player = Player(Dialogue().client(request(1, "ping")).server(pong).client(tool_call(2)).server(result(2)))
    player.due()
    assert [message["method"] for message in player.hears(pong)] == ["tools/call"]
    assert player.report.ended == {}


def test_a_request_of_the_server_that_nobody_answered_is_not_answered() -> None:
    player = Player(Dialogue().client(tool_call(1)).server(ROOTS).server(result(1)))
    player.due()
    assert player.hears(ROOTS) == []


def test_an_answer_takes_the_time_that_it_took_where_that_is_asked_for() -> None:
    recorded = Dialogue().client(tool_call(1)).server(ROOTS).wait(99).client(result(0)).server(result(1))
    player = Player(recorded, speed=1.0)
    player.due()
    assert player.hears(ROOTS) == []
    assert player.due(100) == [result(0)]


def test_a_request_that_the_server_cancels_is_not_answered() -> None:
    recorded = Dialogue().client(tool_call(1)).server(ROOTS).wait(99).client(result(0)).server(result(1))
    player = Player(recorded, speed=1.0)
    player.due()
    player.hears(ROOTS, cancelled(0))
    assert player.due(100) == []


def test_a_call_waits_for_the_request_of_the_server_that_had_been_answered_before_it() -> None:
    recorded = Dialogue().client(INITIALIZED).server(ROOTS).client(result(0)).client(tool_call(1)).server(result(1))
    player = Player(recorded)
    assert player.due() == [INITIALIZED]
    assert player.hears(ROOTS) == [result(0), tool_call(1)]


# Giving up


def test_a_request_is_given_up_as_long_after_it_was_sent_as_it_was_at_any_speed() -> None:
    recorded = Dialogue().client(tool_call(1)).wait(999).client(cancelled(1)).client(request(2)).server(result(2))
    player = Player(recorded)
    player.due()
    assert player.next_ms == 1000
    assert player.due(1000) == [cancelled(1), request(2)]


def test_a_cancellation_names_the_live_id() -> None:
    recorded = Dialogue().client(tool_call(1)).wait(9).client(cancelled(1)).closes()
    player = Player(recorded, taken={"1"})
    player.due()
    assert player.due(10) == [cancelled(2)]


def test_what_was_answered_meanwhile_is_not_given_up() -> None:
    player = Player(Dialogue().client(tool_call(1)).wait(999).client(cancelled(1)).client(request(2)).server(result(2)))
    player.due()
    assert player.hears(result(1)) == [request(2)]


def test_a_stream_that_the_client_closed_is_closed() -> None:
    traffic = Traffic()
    traffic.post(modern(1, "tools/call", name="slow")).stream().close("client", "reset")
    player = Player(traffic)
    assert methods(player.due()) == ["tools/call"]
    assert player.due(10_000) == ["left 1"]


# What is not sent


def test_a_message_that_holds_a_redacted_value_is_withheld() -> None:
    secret = tool_call(2, key="redacted-0123456789ab")
    recorded = Dialogue().client(request(1)).server(result(1)).client(secret).server(result(2)).client(request(3))
    player = Player(recorded.server(result(3)))
    player.due()
    assert player.hears(result(1)) == [request(3)]
    assert [unsent.row for unsent in player.report.withheld] == [2]


@pytest.mark.parametrize("before", range(4))
def test_a_message_with_a_redacted_value_within_base64_is_withheld_too(before: int) -> None:
    text = b64encode(b"-" * before + b"redacted-0123456789ab, and more").decode()
    player = Player(Dialogue().client(tool_call(1, key=text)).server(result(1)))
    assert player.due() == []
    assert [unsent.why for unsent in player.report.withheld] == ["it holds a value that was redacted: redacted-0123456789ab"]


def test_what_only_looks_redacted_within_base64_is_sent() -> None:
    call = tool_call(1, key=b64encode(b"redacted-documents of all kinds").decode())
    assert Player(Dialogue().client(call).server(result(1))).due() == [call]


def test_another_value_in_its_place_is_sent() -> None:
    secret = tool_call(1, key="redacted-0123456789ab")
    edits = {1: [ValueEdit(("params", "arguments", "key"), b'"mine"')]}
    player = Player(Dialogue().client(secret).server(result(1)), edits=edits)
    assert player.due() == [tool_call(1, key="mine")]
    assert player.report.withheld == []


def test_a_recorded_answer_that_holds_a_redacted_value_is_refused() -> None:
    answer = result(0, {"token": "redacted-0123456789ab"})
    player = Player(Dialogue().client(tool_call(1)).server(ROOTS).client(answer).server(result(1)))
    player.due()
    (sent,) = player.hears(ROOTS)
    assert "redacted" in sent["error"]["message"]


def test_when_the_server_is_gone_what_remains_is_told() -> None:
    recorded = Dialogue().client(request(1)).server(result(1)).client(request(2)).server(result(2)).client(request(3))
    player = Player(recorded.server(result(3)))
    player.due()
    player.player.lose("it exited with status 1")
    assert player.is_over
    assert player.report.lost == "it exited with status 1"
    assert [unsent.row for unsent in player.report.unsent] == [2, 3]


def test_a_request_that_wanted_a_login_is_left_out() -> None:
    traffic = Traffic()
    traffic.post(initialize(0)).answer(status=401)
    opened_session(traffic, "s")
    player = Player(traffic)
    assert [message["method"] for message in player.due()] == ["initialize"]
    assert [unsent.row for unsent in player.plan.left_out] == [1]


# Parts of a plan


def chosen(*rows: int) -> Player:
    """Play these rows of a handshake (1, 2), a call (3), a request of the server (4), and two calls (5, 6)."""
    recorded = Dialogue().client(request(0, "initialize")).server(result(0)).client(INITIALIZED).client(request(1, "a"))
    recorded.server(result(1)).server(ROOTS).client(result(0)).client(request(2, "b")).server(result(2)).client(request(3, "c"))
    return Player(recorded.server(result(3)), rows=rows)


def test_one_call_is_sent_with_its_handshake() -> None:
    player = chosen(6)
    assert methods(player.due()) == ["initialize"]
    assert methods(player.hears(result(0))) == ["notifications/initialized"]
    assert methods(player.hears(ROOTS)) == ["answer", "c"]


def test_a_call_is_sent_with_what_it_needs() -> None:
    recorded = Dialogue().client(request(1, "a")).server(result(1)).client(request(2, "b")).server(result(2))
    player = Player(recorded.client(request(3, "c")).server(result(3)))
    needs = {3: [2], 2: [1]}
    assert [send.row for send in player.plan.only([3], lambda row: needs.get(row, [])).sends] == [1, 2, 3]


def test_what_a_call_that_is_left_out_was_told_is_not_waited_for() -> None:
    recorded = Dialogue().client(tool_call(1)).server(ROOTS).client(result(0)).server(result(1)).client(request(2, "b"))
    player = Player(recorded.server(result(2)), rows=[3])
    assert methods(player.due()) == ["b"]


def test_without_sessions_who_says_no_name_is_the_one_client_that_said_one() -> None:
    traffic = Traffic()
    traffic.post(initialize(0)).answer(200, result(0))
    traffic.post(notification()).answer(202)
    traffic.post(request(1, "tools/list")).answer(200, result(1))
    (plan,) = read_plans(traffic.transcript)
    assert [send.message.method for send in plan.sends] == ["initialize", "notifications/initialized", "tools/list"]


def test_clients_of_http_are_told_apart_by_their_sessions() -> None:
    traffic = Traffic()
    opened_session(traffic, "one")
    opened_session(traffic, "two")
    traffic.post(request(1, "a"), session="two").answer(body=result(1))
    traffic.post(request(1, "b"), session="one").answer(body=result(1))
    assert [[send.message.method for send in plan.sends if send.exchange] for plan in read_plans(traffic.transcript)] == [
        ["initialize", "b"],
        ["initialize", "a"],
    ]


# Everything at once


def script_of(recorded: Dialogue) -> Script:
    replies = read_replies(recorded.transcript)
    return Script(replies, RequestMatcher(replies.exchanges).cursor())


@st.composite
def dialogues(draw: st.DrawFn) -> Dialogue:
    """Draw calls that overlap in any way, with progress, requests of the server, notifications and cancellations between them."""
    recorded = Dialogue()
    waiting: list[int] = []
    question: list[int] = []
    for at in range(draw(st.integers(1, 14))):
        recorded.wait(draw(st.integers(0, 40)))
        match draw(st.sampled_from(["ask", "answer", "tell", "told", "question", "reply", "progress", "cancel"])):
            case "answer" if waiting:
                recorded.server(result(waiting.pop(draw(st.integers(0, len(waiting) - 1)))))
            case "progress" if waiting:
                recorded.server(progress(waiting[-1]))
            case "cancel" if waiting:
                recorded.client(cancelled(waiting.pop()))
            case "question":
                recorded.server(request(at, "roots/list"))
                question.append(at)
            case "reply" if question:
                recorded.client(result(question.pop(0), {"at": at}))
            case "tell":
                recorded.client(notification(f"notifications/{draw(st.sampled_from('ab'))}"))
            case "told":
                recorded.server(notification("notifications/message", {"level": "info"}))
            case _:
                recorded.client(tool_call(at, token=at, n=draw(st.integers(0, 2))))
                waiting.append(at)
    return recorded.client(request("last")).server(result("last")).closes()


@settings(max_examples=60)
@given(dialogues(), st.sampled_from([0.0, 1.0, 10.0]))
def test_every_recorded_request_is_sent_once_and_in_order_to_its_own_server_and_to_none(
    recorded: Dialogue, speed: float
) -> None:
    for is_there in (True, False):
        player = Player(recorded, speed=speed)
        script, decoder = script_of(recorded), Decoder(CaptureInfo(0))
        sent = player.due()
        for _ in range(400):
            heard: list[Any] = []
            for line in sent if is_there else []:
                frame = Frame(0, 0, 0, json.dumps(line).encode() + b"\n")
                messages = [message for message in decoder.feed(frame) if isinstance(message, Message)]
                heard += [
                    send.data for message in messages for send in script.feed(message) if script.is_due(send) and send.data
                ]
            sent = [message for line in heard for message in player.hears(line)]
            if not sent:
                if player.is_over:
                    break
                assert player.player.next_ns is not None
                player.now_ns = max(player.player.next_ns, player.now_ns)
                sent = player.due()
        assert player.is_over
        wanted = [(send.row, send.message.correlation_key) for send in player.plan.sends if send.exchange is not None]
        assert list(player.report.sent) == [row for row, _ in wanted]
        output = [json.loads(body) for body in player.bytes]
        ids = [message["id"] for message in output if "method" in message and "id" in message]
        assert len(ids) == len(set(map(str, ids))) == len(wanted)


FOLDERS = ("captures", "tests/transcript/recorded", "tests/findings")
EVERYTHING = sorted(path for folder in FOLDERS for path in (ROOT / folder).glob("*.mcpspy"))


AT_ONCE = 25
"""Captures of a test, which takes a millisecond for each, and as much for itself."""


@pytest.mark.parametrize("first", range(0, len(EVERYTHING), AT_ONCE))
def test_every_capture_can_be_played_to_a_server_that_sends_nothing(first: int) -> None:
    for path in EVERYTHING[first : first + AT_ONCE]:
        assert_can_be_played_to_a_server_that_sends_nothing(path)


def assert_can_be_played_to_a_server_that_sends_nothing(path: Path) -> None:
    transcript = transcribe(read(str(path)), with_findings=False)
    for plan in read_plans(transcript):
        player = PlanPlayer(plan, RecordedAnswers(RequestMatcher(transcript.exchanges, side=SERVER).cursor()))
        now_ns = 0
        for _ in range(10 * len(plan.steps) + 10):
            player.due(now_ns)
            if player.is_over:
                break
            assert player.next_ns is not None, path
            assert player.next_ns > now_ns, path
            now_ns = player.next_ns
        assert player.is_over, path
        rows = [*player.report.sent, *(unsent.row for unsent in player.report.unsent)]
        assert {request.row for request in plan.requests} <= set(rows), path


LINES = st.one_of(
    st.binary(max_size=40),
    st.fixed_dictionaries(
        {"jsonrpc": st.just("2.0")},
        optional={
            "id": st.none() | st.integers(0, 4) | st.sampled_from(["1", "x", 1.0, True, [], {}]),
            "method": st.sampled_from(
                ["ping", "roots/list", "notifications/progress", "notifications/cancelled", "notifications/message", "x", 7]
            ),
            "params": st.none() | st.dictionaries(st.sampled_from(["progressToken", "requestId", "_meta"]), st.integers(0, 3)),
            "result": st.none() | st.just({}) | st.just({"isComplete": False}),
            "error": st.just({"code": 1}) | st.just(None),
        },
    ),
)


@given(dialogues(), st.lists(LINES, max_size=12))
def test_whatever_a_server_says_the_plan_comes_to_its_end(recorded: Dialogue, lines: list[Any]) -> None:
    player = Player(recorded)
    player.due()
    source = CaptureInfo(0)
    for line in lines:
        data = line if isinstance(line, bytes) else json.dumps(line).encode()
        for piece in cut(data):
            player.player.feed(message_of(source, SERVER, Frame(0, 0, 0, data), piece), player.now_ns)
    for _ in range(200):
        if player.is_over:
            break
        assert player.player.next_ns is not None
        player.now_ns = max(player.player.next_ns, player.now_ns)
        player.due()
    assert player.is_over
