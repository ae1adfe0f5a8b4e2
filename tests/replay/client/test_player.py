"""What a driver's machine sends to a live server, and when."""

import json
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcpspy.capture.file.reader import read
from mcpspy.records import SERVER, Frame
from mcpspy.replay.client.answering import RecordedAnswers
from mcpspy.replay.client.player import MAX_PATIENCE_NS, PATIENCE_NS, TIMEOUT_NS, PlanPlayer
from mcpspy.replay.client.read_plan import read_plans
from mcpspy.replay.mock.matching import RequestMatcher
from mcpspy.replay.mock.replies import read_replies
from mcpspy.replay.mock.script import Script
from mcpspy.transcript.decode import Decoder, message_of
from mcpspy.transcript.message import Message
from mcpspy.transcript.model import CaptureInfo
from mcpspy.transcript.transcribe import transcribe
from mcpspy.wire.edits import ValueEdit
from mcpspy.wire.jsonrpc import cut
from tests.conftest import ROOT
from tests.replay.client.driven import Driven
from tests.transcript.dialogue import MS, Dialogue, cancelled, error, notification, progress, request, result, tool_call
from tests.transcript.traffic import Traffic, initialize, modern, opened_session

ROOTS = request(0, "roots/list")
INITIALIZED = notification()
PATIENCE_MS = PATIENCE_NS / MS


def methods(sent: list[Any]) -> list[str]:
    return [one.get("method", "answer") for one in sent]


# Bytes, ids and tokens


def test_a_request_goes_out_as_it_was_recorded() -> None:
    odd = b'{ "params" : {"b":1.0, "a":[1e5,"\xc3\xbc\\u0041"],"a":2} ,"id":1, "method":"x","jsonrpc":"2.0","vendor":{"id":1}}'
    driven = Driven(Dialogue().client(odd + b"\r\n").server(result(1)))
    driven.due()
    assert driven.bytes == [odd]


def test_an_id_that_is_used_twice_is_exchanged() -> None:
    recorded = Dialogue().client(request(1, "a")).server(result(1)).client(request(1, "b")).server(result(1))
    driven = Driven(recorded)
    assert driven.due() == [request(1, "a")]
    assert driven.hears(result(1)) == [request(2, "b")]
    assert driven.hears(result(2)) == []
    assert driven.is_over


@pytest.mark.parametrize("id", ["probe-1", 0, 10**30, -4])
def test_an_id_stays_as_it_was_where_it_can(id: Any) -> None:
    assert Driven(Dialogue().client(request(id)).server(result(id))).due() == [request(id)]


@pytest.mark.parametrize("id", [None, 1.5])
def test_an_id_that_is_none_is_exchanged(id: Any) -> None:
    assert Driven(Dialogue().client(request(id)).server(result(id))).due() == [request(1)]


def test_ids_that_another_drive_took_are_not_used_again() -> None:
    assert Driven(Dialogue().client(request(1)).server(result(1)), taken={"1", "2"}).due() == [request(3)]


def test_a_progress_token_that_is_used_twice_is_exchanged() -> None:
    recorded = Dialogue().client(tool_call(1, token="t")).client(tool_call(2, token="t")).server(result(1)).server(result(2))
    sent = Driven(recorded).due()
    tokens = [one["params"]["_meta"]["progressToken"] for one in sent]
    assert tokens[0] == "t"
    assert len(set(map(str, tokens))) == 2


def test_a_value_is_exchanged_where_that_is_asked_for() -> None:
    edits = {1: [ValueEdit(("params", "arguments", "city"), b'"Bern"')]}
    driven = Driven(Dialogue().client(tool_call(1, city="Rome")).server(result(1)), edits=edits)
    assert driven.due() == [tool_call(1, city="Bern")]


# Order


def test_a_call_waits_for_the_answer_that_had_come_before_it() -> None:
    driven = Driven(Dialogue().client(request(1)).server(result(1)).client(request(2)).server(result(2)))
    assert driven.due() == [request(1)]
    assert driven.due(10) == []
    assert driven.hears(result(1)) == [request(2)]


def test_calls_that_overlapped_overlap() -> None:
    driven = Driven(Dialogue().client(request(1)).client(request(2)).server(result(2)).server(result(1)))
    assert driven.due() == [request(1), request(2)]


def test_a_call_does_not_wait_for_one_that_was_still_under_way() -> None:
    recorded = Dialogue().client(request(1)).client(request(2)).server(result(2)).client(request(3)).server(result(3))
    driven = Driven(recorded.server(result(1)))
    driven.due()
    assert driven.hears(result(2)) == [request(3)]


def test_notifications_come_in_their_place() -> None:
    recorded = Dialogue().client(request(1, "initialize")).server(result(1)).client(INITIALIZED).client(request(2))
    driven = Driven(recorded.server(result(2)))
    driven.due()
    assert driven.hears(result(1)) == [INITIALIZED, request(2)]


def test_an_error_is_an_answer() -> None:
    driven = Driven(Dialogue().client(request(1)).server(result(1)).client(request(2)).server(result(2)))
    driven.due()
    assert driven.hears(error(1)) == [request(2)]


def test_what_is_no_json_rpc_is_sent_too() -> None:
    driven = Driven(Dialogue().client(b"hello\n").client(request(1)).server(result(1)))
    driven.driving.due(0)
    assert driven.report.sends == 2


def test_a_request_that_nothing_answers_is_over() -> None:
    driven = Driven(Dialogue().client(request(1)).server(result(1)).client(request(2)).server(result(2)))
    driven.due()
    assert driven.ends("1") == [request(2)]
    assert driven.report.ended == {1: "404 Not Found"}


# Time


def test_at_no_speed_nothing_waits_for_the_clock() -> None:
    recorded = Dialogue().client(request(1)).server(result(1)).wait(60_000).client(request(2)).server(result(2))
    driven = Driven(recorded)
    driven.due()
    assert driven.hears(result(1)) == [request(2)]


@pytest.mark.parametrize(("speed", "ms"), [(1.0, 501), (2.0, 250.5), (0.5, 1002)])
def test_pauses_of_the_client_are_kept_where_that_is_asked_for(speed: float, ms: float) -> None:
    recorded = Dialogue().client(request(1)).wait(90).server(result(1)).wait(500).client(request(2)).server(result(2))
    driven = Driven(recorded, speed=speed)
    driven.due()
    driven.now_ns = 10 * MS
    assert driven.hears(result(1)) == []
    assert driven.next_ms == 10 + ms
    assert driven.due(10 + ms) == [request(2)]


def test_a_task_is_asked_how_it_stands_as_late_as_it_was_at_any_speed() -> None:
    recorded = Dialogue().client(request(1)).server(result(1)).wait(500).client(request(2, "tasks/get", {"taskId": "t"}))
    driven = Driven(recorded.server(result(2)))
    driven.due()
    assert driven.hears(result(1)) == []
    assert methods(driven.due(501)) == ["tasks/get"]


def test_a_request_waits_for_its_answer_so_long_and_no_longer() -> None:
    driven = Driven(Dialogue().client(request(1)).server(result(1)).client(request(2)).server(result(2)))
    driven.due()
    assert driven.next_ms == TIMEOUT_NS / MS
    assert driven.due(TIMEOUT_NS / MS) == [request(2)]
    assert driven.report.late == [1]


def test_one_that_is_late_may_be_the_end_of_all() -> None:
    recorded = Dialogue().client(request(1)).server(result(1)).client(request(2)).server(result(2))
    driven = Driven(recorded, stops_when_late=True)
    driven.due()
    assert driven.due(TIMEOUT_NS / MS) == []
    assert (driven.report.late, driven.is_over, [one.row for one in driven.report.unsent]) == ([1], True, [2])


def test_an_answer_that_never_came_is_awaited_as_long_as_it_was() -> None:
    driven = Driven(Dialogue().client(request(1)).wait(3000).closes())
    driven.due()
    assert not driven.is_over
    assert driven.next_ms == 3001 + PATIENCE_MS
    driven.due(3001 + PATIENCE_MS)
    assert driven.is_over


def test_an_answer_that_never_came_is_awaited_no_longer_than_any() -> None:
    driven = Driven(Dialogue().client(request(1)).wait(90_000).closes(), timeout_ns=500 * MS)
    driven.due()
    assert driven.next_ms == 500


def test_without_a_handshake_nothing_more_is_sent() -> None:
    recorded = Dialogue().client(initialize(0)).server(result(0)).client(INITIALIZED).client(request(1)).server(result(1))
    driven = Driven(recorded)
    driven.due()
    assert driven.due(TIMEOUT_NS / MS) == []
    assert driven.is_over
    assert [one.row for one in driven.report.unsent] == [2, 3]


def test_where_the_handshake_is_refused_nothing_more_is_sent() -> None:
    recorded = Dialogue().client(initialize(0)).server(result(0)).client(INITIALIZED).client(request(1)).server(result(1))
    driven = Driven(recorded)
    driven.due()
    assert driven.ends("0", "401 Unauthorized") == []
    assert (driven.is_over, driven.report.lost) == (True, "initialize was not answered: 401 Unauthorized")


def test_a_message_that_was_not_taken_is_not_sent() -> None:
    driven = Driven(Dialogue().client(request(1)).server(result(1)))
    driven.due()
    driven.driving.take_back("1", "its input is closed")
    assert driven.report.sent == {}
    assert [one.why for one in driven.report.unsent] == ["its input is closed"]


# What the server says on its own


def test_a_call_waits_for_what_the_server_had_said_before_it() -> None:
    changed = notification("notifications/tools/list_changed")
    driven = Driven(Dialogue().client(INITIALIZED).server(changed).client(request(1)).server(result(1)))
    assert driven.due() == [INITIALIZED]
    assert driven.hears(changed) == [request(1)]


def test_it_does_not_wait_for_ever() -> None:
    changed = notification("notifications/tools/list_changed")
    driven = Driven(Dialogue().client(INITIALIZED).wait(19).server(changed).client(request(1)).server(result(1)))
    driven.due()
    assert driven.next_ms == 20 + PATIENCE_MS
    assert driven.due(20 + PATIENCE_MS) == [request(1)]


def test_what_came_after_a_long_silence_is_not_waited_for_as_long() -> None:
    changed = notification("notifications/tools/list_changed")
    recorded = Dialogue().client(INITIALIZED).wait(3_600_000).server(changed).client(request(1)).server(result(1))
    driven = Driven(recorded)
    driven.due()
    assert driven.next_ms == MAX_PATIENCE_NS / MS
    assert driven.due(MAX_PATIENCE_NS / MS) == [request(1)]


def test_what_did_not_come_once_is_not_waited_for_again() -> None:
    log = notification("notifications/message", {"level": "info", "data": 1})
    recorded = Dialogue().client(request(1)).server(log).server(log).server(result(1)).server(log).client(request(2))
    driven = Driven(recorded.server(result(2)))
    driven.due()
    driven.hears(result(1))
    assert driven.due(1 + PATIENCE_MS) == [request(2)]


def test_progress_that_the_answer_overtook_is_not_waited_for() -> None:
    recorded = Dialogue().client(tool_call(1, token=1)).server(progress(1)).server(progress(1, 2)).server(result(1))
    driven = Driven(recorded.client(request(2)).server(result(2)))
    driven.due()
    assert driven.hears(progress(1), result(1)) == [request(2)]


# What the server asks


def test_a_question_gets_its_recorded_answer_under_the_live_id() -> None:
    recorded = Dialogue().client(tool_call(1)).server(ROOTS).client(b'{"id":0 , "result":{"roots":[1.0]},"jsonrpc":"2.0"}\n')
    driven = Driven(recorded.server(result(1)))
    driven.due()
    driven.hears(request("live", "roots/list"))
    assert driven.bytes[1:] == [b'{"id":"live" , "result":{"roots":[1.0]},"jsonrpc":"2.0"}']
    assert driven.report.questions == {'"live"': 2}


def test_progress_on_a_question_has_the_live_token() -> None:
    asked = request(0, "sampling/createMessage", {"_meta": {"progressToken": 0}})
    recorded = Dialogue().client(tool_call(1)).server(asked).client(progress(0)).client(result(0)).server(result(1))
    driven = Driven(recorded)
    driven.due()
    live = request(9, "sampling/createMessage", {"_meta": {"progressToken": "t"}})
    assert driven.hears(live) == [progress("t"), result(9)]


def test_a_question_that_was_never_recorded_is_answered_with_an_error_that_says_so() -> None:
    driven = Driven(Dialogue().client(tool_call(1)).server(result(1)))
    driven.due()
    (told,) = driven.hears(request(5, "sampling/createMessage", {"messages": []}))
    assert (told["id"], told["error"]["code"]) == (5, -32601)
    assert "sampling/createMessage" in told["error"]["message"]
    assert [miss.request.id for miss in driven.report.misses] == ["5"]


def test_a_ping_is_answered_though_none_was_recorded() -> None:
    driven = Driven(Dialogue().client(tool_call(1)).server(result(1)))
    driven.due()
    assert driven.hears(request("p", "ping")) == [result("p")]
    assert driven.report.misses == []


def test_a_question_that_nobody_answered_is_not_answered() -> None:
    driven = Driven(Dialogue().client(tool_call(1)).server(ROOTS).server(result(1)))
    driven.due()
    assert driven.hears(ROOTS) == []


def test_an_answer_takes_the_time_that_it_took_where_that_is_asked_for() -> None:
    recorded = Dialogue().client(tool_call(1)).server(ROOTS).wait(99).client(result(0)).server(result(1))
    driven = Driven(recorded, speed=1.0)
    driven.due()
    assert driven.hears(ROOTS) == []
    assert driven.due(100) == [result(0)]


def test_a_question_that_is_taken_back_is_not_answered() -> None:
    recorded = Dialogue().client(tool_call(1)).server(ROOTS).wait(99).client(result(0)).server(result(1))
    driven = Driven(recorded, speed=1.0)
    driven.due()
    driven.hears(ROOTS, cancelled(0))
    assert driven.due(100) == []


def test_a_call_waits_for_the_question_that_had_been_answered_before_it() -> None:
    recorded = Dialogue().client(INITIALIZED).server(ROOTS).client(result(0)).client(tool_call(1)).server(result(1))
    driven = Driven(recorded)
    assert driven.due() == [INITIALIZED]
    assert driven.hears(ROOTS) == [result(0), tool_call(1)]


# Giving up


def test_a_request_is_given_up_as_long_after_it_was_sent_as_it_was_at_any_speed() -> None:
    recorded = Dialogue().client(tool_call(1)).wait(999).client(cancelled(1)).client(request(2)).server(result(2))
    driven = Driven(recorded)
    driven.due()
    assert driven.next_ms == 1000
    assert driven.due(1000) == [cancelled(1), request(2)]


def test_a_cancellation_names_the_live_id() -> None:
    recorded = Dialogue().client(tool_call(1)).wait(9).client(cancelled(1)).closes()
    driven = Driven(recorded, taken={"1"})
    driven.due()
    assert driven.due(10) == [cancelled(2)]


def test_what_was_answered_meanwhile_is_not_given_up() -> None:
    driven = Driven(Dialogue().client(tool_call(1)).wait(999).client(cancelled(1)).client(request(2)).server(result(2)))
    driven.due()
    assert driven.hears(result(1)) == [request(2)]


def test_a_stream_that_the_client_closed_is_closed() -> None:
    traffic = Traffic()
    traffic.post(modern(1, "tools/call", name="slow")).stream().close("client", "reset")
    driven = Driven(traffic)
    assert methods(driven.due()) == ["tools/call"]
    assert driven.due(10_000) == ["left 1"]


# What is not sent


def test_a_message_that_holds_a_redacted_value_is_held_back() -> None:
    secret = tool_call(2, key="redacted-0123456789ab")
    recorded = Dialogue().client(request(1)).server(result(1)).client(secret).server(result(2)).client(request(3))
    driven = Driven(recorded.server(result(3)))
    driven.due()
    assert driven.hears(result(1)) == [request(3)]
    assert [one.row for one in driven.report.withheld] == [2]


@pytest.mark.parametrize("before", range(4))
def test_a_redacted_value_within_base64_is_held_back_too(before: int) -> None:
    text = b64encode(b"-" * before + b"redacted-0123456789ab, and more").decode()
    driven = Driven(Dialogue().client(tool_call(1, key=text)).server(result(1)))
    assert driven.due() == []
    assert [one.why for one in driven.report.withheld] == ["it holds a value that was redacted: redacted-0123456789ab"]


def test_what_only_looks_redacted_within_base64_is_sent() -> None:
    call = tool_call(1, key=b64encode(b"redacted-documents of all kinds").decode())
    assert Driven(Dialogue().client(call).server(result(1))).due() == [call]


def test_another_value_in_its_place_is_sent() -> None:
    secret = tool_call(1, key="redacted-0123456789ab")
    edits = {1: [ValueEdit(("params", "arguments", "key"), b'"mine"')]}
    driven = Driven(Dialogue().client(secret).server(result(1)), edits=edits)
    assert driven.due() == [tool_call(1, key="mine")]
    assert driven.report.withheld == []


def test_a_recorded_answer_that_holds_a_redacted_value_is_refused() -> None:
    answer = result(0, {"token": "redacted-0123456789ab"})
    driven = Driven(Dialogue().client(tool_call(1)).server(ROOTS).client(answer).server(result(1)))
    driven.due()
    (told,) = driven.hears(ROOTS)
    assert "redacted" in told["error"]["message"]


def test_when_the_server_is_gone_what_remains_is_told() -> None:
    recorded = Dialogue().client(request(1)).server(result(1)).client(request(2)).server(result(2)).client(request(3))
    driven = Driven(recorded.server(result(3)))
    driven.due()
    driven.driving.lose("it exited with status 1")
    assert driven.is_over
    assert driven.report.lost == "it exited with status 1"
    assert [one.row for one in driven.report.unsent] == [2, 3]


def test_a_request_that_wanted_a_login_is_left_out() -> None:
    traffic = Traffic()
    traffic.post(initialize(0)).answer(status=401)
    opened_session(traffic, "s")
    driven = Driven(traffic)
    assert [one["method"] for one in driven.due()] == ["initialize"]
    assert [one.row for one in driven.plan.left_out] == [1]


# Parts of a plan


def chosen(*rows: int) -> Driven:
    """Of a handshake (1, 2), a call (3), a question on its own (4), and two calls (5, 6), these rows."""
    recorded = Dialogue().client(request(0, "initialize")).server(result(0)).client(INITIALIZED).client(request(1, "a"))
    recorded.server(result(1)).server(ROOTS).client(result(0)).client(request(2, "b")).server(result(2)).client(request(3, "c"))
    return Driven(recorded.server(result(3)), rows=rows)


def test_one_call_is_sent_with_its_handshake() -> None:
    driven = chosen(6)
    assert methods(driven.due()) == ["initialize"]
    assert methods(driven.hears(result(0))) == ["notifications/initialized"]
    assert methods(driven.hears(ROOTS)) == ["answer", "c"]


def test_a_call_is_sent_with_what_it_needs() -> None:
    recorded = Dialogue().client(request(1, "a")).server(result(1)).client(request(2, "b")).server(result(2))
    driven = Driven(recorded.client(request(3, "c")).server(result(3)))
    needs = {3: [2], 2: [1]}
    assert [one.row for one in driven.plan.only([3], lambda row: needs.get(row, [])).sends] == [1, 2, 3]


def test_what_a_call_that_is_left_out_was_told_is_not_waited_for() -> None:
    recorded = Dialogue().client(tool_call(1)).server(ROOTS).client(result(0)).server(result(1)).client(request(2, "b"))
    driven = Driven(recorded.server(result(2)), rows=[3])
    assert methods(driven.due()) == ["b"]


def test_without_sessions_who_says_no_name_is_the_one_client_that_said_one() -> None:
    told = Traffic()
    told.post(initialize(0)).answer(200, result(0))
    told.post(notification()).answer(202)
    told.post(request(1, "tools/list")).answer(200, result(1))
    (plan,) = read_plans(told.transcript)
    assert [one.message.method for one in plan.sends] == ["initialize", "notifications/initialized", "tools/list"]


def test_clients_of_http_are_told_apart_by_their_sessions() -> None:
    traffic = Traffic()
    opened_session(traffic, "one")
    opened_session(traffic, "two")
    traffic.post(request(1, "a"), session="two").answer(body=result(1))
    traffic.post(request(1, "b"), session="one").answer(body=result(1))
    assert [[one.message.method for one in plan.sends if one.exchange] for plan in read_plans(traffic.transcript)] == [
        ["initialize", "b"],
        ["initialize", "a"],
    ]


# Everything at once


def script_of(recorded: Dialogue) -> Script:
    found = read_replies(recorded.transcript)
    return Script(found, RequestMatcher(found.exchanges).cursor())


@st.composite
def dialogues(draw: st.DrawFn) -> Dialogue:
    """Calls that overlap as they like, with progress, questions, notifications and cancellations between them."""
    recorded = Dialogue()
    waiting: list[int] = []
    asked: list[int] = []
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
                asked.append(at)
            case "reply" if asked:
                recorded.client(result(asked.pop(0), {"at": at}))
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
        driven = Driven(recorded, speed=speed)
        script, decoder = script_of(recorded), Decoder(CaptureInfo(0))
        sent = driven.due()
        for _ in range(400):
            heard: list[Any] = []
            for line in sent if is_there else []:
                frame = Frame(0, 0, 0, json.dumps(line).encode() + b"\n")
                messages = [one for one in decoder.feed(frame) if isinstance(one, Message)]
                heard += [cue.data for one in messages for cue in script.feed(one) if script.is_due(cue) and cue.data]
            sent = [one for line in heard for one in driven.hears(line)]
            if not sent:
                if driven.is_over:
                    break
                assert driven.driving.next_ns is not None
                driven.now_ns = max(driven.driving.next_ns, driven.now_ns)
                sent = driven.due()
        assert driven.is_over
        wanted = [(one.row, one.message.correlation_key) for one in driven.plan.sends if one.exchange is not None]
        assert list(driven.report.sent) == [row for row, _ in wanted]
        told = [json.loads(one) for one in driven.bytes]
        ids = [one["id"] for one in told if "method" in one and "id" in one]
        assert len(ids) == len(set(map(str, ids))) == len(wanted)


FOLDERS = ("captures", "tests/transcript/recorded", "tests/findings")
EVERYTHING = sorted(path for folder in FOLDERS for path in (ROOT / folder).glob("*.mcpspy"))


@pytest.mark.parametrize("path", EVERYTHING, ids=lambda path: path.stem)
def test_no_recording_is_too_odd_to_be_driven_to_a_server_that_says_nothing(path: Path) -> None:
    transcript = transcribe(read(str(path)), with_findings=False)
    for plan in read_plans(transcript):
        driving = PlanPlayer(plan, RecordedAnswers(RequestMatcher(transcript.exchanges, side=SERVER).cursor()))
        now_ns = 0
        for _ in range(10 * len(plan.steps) + 10):
            driving.due(now_ns)
            if driving.is_over:
                break
            assert driving.next_ns is not None
            assert driving.next_ns > now_ns
            now_ns = driving.next_ns
        assert driving.is_over
        told = [*driving.report.sent, *(one.row for one in driving.report.unsent)]
        assert {one.row for one in plan.requests} <= set(told)


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
    driven = Driven(recorded)
    driven.due()
    source = CaptureInfo(0)
    for line in lines:
        data = line if isinstance(line, bytes) else json.dumps(line).encode()
        for piece in cut(data):
            driven.driving.feed(message_of(source, SERVER, Frame(0, 0, 0, data), piece), driven.now_ns)
    for _ in range(200):
        if driven.is_over:
            break
        assert driven.driving.next_ns is not None
        driven.now_ns = max(driven.driving.next_ns, driven.now_ns)
        driven.due()
    assert driven.is_over
