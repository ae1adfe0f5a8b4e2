"""Pass-through: what goes to a live server after the first miss, and what comes back."""

import json
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.records import Frame
from mcpspy.replay.mock.matching import RequestMatcher
from mcpspy.replay.mock.pass_through import CancelRequest, PassThrough
from mcpspy.replay.mock.replies import read_replies
from mcpspy.replay.mock.scheduled_send import LiveServerBytes, ScheduledSend
from mcpspy.replay.mock.script import Script
from mcpspy.transcript.decoder import Decoder
from mcpspy.transcript.message import Message
from mcpspy.transcript.model import CaptureInfo
from mcpspy.transcript.transcribe import transcribe
from tests.transcript.dialogue import Dialogue, cancelled, error, notification, request, result, tool_call

REVISION = "2025-11-25"
OPENING = request(
    1, "initialize", {"protocolVersion": REVISION, "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
)
OPENED = {"protocolVersion": REVISION, "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}
INITIALIZED = notification("notifications/initialized")


def dialogue() -> Dialogue:
    """Return a handshake, a list, and a call in which the server asks."""
    recorded = Dialogue().client(OPENING).server(result(1, OPENED)).client(INITIALIZED)
    recorded.client(request(2)).server(result(2, {"tools": []}))
    return recorded.client(tool_call(3, "asks")).server(request(0, "roots/list")).client(result(0)).server(result(3))


class Handed:
    """A capture, its client, and the live server behind it; each method returns the messages for the client, parsed."""

    def __init__(self, recorded: Dialogue | None = None, **options: Any) -> None:
        played = read_replies(transcribe((recorded or dialogue()).records))
        opening = next((exchange.request for exchange in played.exchanges if exchange.method == "initialize"), None)
        self.machine = PassThrough(
            partial(Script, played, RequestMatcher(played.exchanges).cursor()), **{"recorded_opening": opening, **options}
        )
        self._decoder = Decoder(CaptureInfo(0))
        self.sends: list[ScheduledSend] = []

    def says(self, *messages: Any) -> list[Any]:
        answers: list[Any] = []
        for message in messages:
            data = message if isinstance(message, bytes) else json.dumps(message).encode() + b"\n"
            for item in self._decoder.feed(Frame(0, 0, 0, data)):
                assert isinstance(item, Message)
                answers += self._told(self.machine.feed(item))
        return answers

    def opens(self) -> None:
        self.says(OPENING, INITIALIZED)

    def hears(self, *messages: Any, about: str | None = None) -> list[Any]:
        """Feed messages of the live server."""
        answers: list[Any] = []
        for message in messages:
            data = message if isinstance(message, bytes) else json.dumps(message).encode()
            answers += self._told(self.machine.heard(data, about))
        return answers

    def reaches(self) -> list[Any]:
        """Let the live server be reached, and answer the handshake."""
        return self._told(self.machine.reached()) + self.hears(result(1, OPENED))

    def loses(self, why: str) -> list[Any]:
        return self._told(self.machine.lost(why))

    @property
    def out(self) -> list[Any]:
        """Return what goes to the live server, once."""
        ids = [message.id if isinstance(message, CancelRequest) else json.loads(message) for message in self.machine.out]
        self.machine.out.clear()
        return ids

    def _told(self, sends: list[ScheduledSend]) -> list[Any]:
        self.sends = [send for send in sends if self.machine.is_due(send)]
        return [json.loads(send.data) for send in self.sends if send.data]


MISSED = tool_call(7, "new")


# The way there


def test_without_a_miss_no_live_server_is_started() -> None:
    handed = Handed()
    handed.opens()
    assert handed.says(request(4)) == [result(4, {"tools": []})]
    assert (handed.machine.wants_server, handed.out) == (False, [])


def test_the_first_miss_wants_a_server_and_says_nothing_to_the_client() -> None:
    handed = Handed()
    handed.opens()
    assert handed.says(MISSED) == []
    assert (handed.machine.wants_server, handed.out, handed.sends[-1].miss is not None) == (True, [], True)


def test_the_live_server_hears_the_clients_own_handshake_before_the_request() -> None:
    handed = Handed()
    own = request(
        "one", "initialize", {"protocolVersion": REVISION, "capabilities": {"roots": {}}, "clientInfo": {"name": "live"}}
    )
    handed.says(own, INITIALIZED, MISSED)
    handed.machine.reached()
    assert handed.out == [own]
    assert handed.hears(result("one", OPENED)) == []
    assert handed.out == [INITIALIZED, MISSED]


def test_what_the_client_says_meanwhile_comes_behind_in_order() -> None:
    handed = Handed()
    handed.says(OPENING, MISSED, INITIALIZED, request(8))
    handed.reaches()
    assert handed.out == [OPENING, MISSED, INITIALIZED, request(8)]


def test_the_bytes_of_a_request_go_out_as_they_came() -> None:
    handed = Handed()
    line = b'{ "id":7 ,"method":"tools/call","params":{"name":"new","x":1.50},"jsonrpc":"2.0"}\n'
    handed.opens()
    handed.says(line)
    handed.reaches()
    assert handed.machine.out[-1] == line


def test_a_modern_request_needs_no_handshake() -> None:
    handed = Handed(recorded_opening=None)
    live_request = request(7, "tools/call", {"name": "new", "_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}})
    handed.says(live_request)
    handed.machine.reached()
    assert handed.out == [live_request]


def test_a_client_that_never_opened_gets_the_recorded_clients_handshake() -> None:
    handed = Handed()
    handed.says(MISSED)
    handed.reaches()
    assert handed.out == [OPENING, INITIALIZED, MISSED]


def test_a_client_whose_opening_is_the_miss_shakes_hands_itself() -> None:
    handed = Handed(Dialogue().client(request(1)).server(result(1)))
    handed.says(OPENING)
    handed.machine.reached()
    assert handed.out == [OPENING]
    assert handed.hears(result(1, OPENED)) == [result(1, OPENED)]


def test_a_probe_for_the_other_era_is_refused_and_starts_no_server() -> None:
    handed = Handed()
    assert handed.says(request("p", "server/discover"))[0]["error"]["code"] == -32601
    assert not handed.machine.wants_server


def test_another_revision_than_the_recorded_one_is_told() -> None:
    handed = Handed()
    handed.opens()
    handed.says(MISSED)
    handed.machine.reached()
    handed.hears(result(1, {**OPENED, "protocolVersion": "2025-06-18"}))
    assert handed.machine.notes == ["the live server speaks 2025-06-18, and the recorded one spoke 2025-11-25"]


# Behind the miss


@pytest.fixture
def live() -> Handed:
    """Return a pass-through that is live after a miss, which is not answered yet."""
    handed = Handed()
    handed.opens()
    handed.says(MISSED)
    handed.reaches()
    handed.machine.out.clear()
    return handed


def test_the_answer_goes_to_the_client_as_it_came_and_unforged(live: Handed) -> None:
    assert live.hears(b'{"id":7 , "result":{"x":1.50},"jsonrpc":"2.0"}') == [result(7, {"x": 1.5})]
    (send,) = live.sends
    assert (send.data, type(send.data), send.answers) == (
        b'{"id":7 , "result":{"x":1.50},"jsonrpc":"2.0"}',
        LiveServerBytes,
        True,
    )
    assert not live.machine.owes


def test_an_answer_whose_id_is_spelled_another_way_is_the_answer(live: Handed) -> None:
    live.hears(result("7"))
    assert live.sends[0].state.id == "7"


def test_after_a_miss_even_recorded_requests_go_to_the_live_server(live: Handed) -> None:
    assert live.says(request(8), notification("notifications/roots/list_changed")) == []
    assert live.out == [request(8), notification("notifications/roots/list_changed")]


def test_progress_belongs_to_the_request_that_gave_the_token(live: Handed) -> None:
    live.says(tool_call(8, "slow", token="t"), request(9))
    progress = notification("notifications/progress", {"progressToken": "t", "progress": 1})
    assert live.hears(progress) == [progress]
    assert live.sends[0].state.id == "8"


def test_what_comes_on_a_requests_stream_belongs_to_it(live: Handed) -> None:
    live.says(request(8))
    live.hears(notification("notifications/message"), about="7")
    assert live.sends[0].state.id == "7"


def test_news_of_the_server_belong_to_no_request(live: Handed) -> None:
    live.hears(notification("notifications/tools/list_changed"))
    assert live.sends[0].state.request is None


def test_a_request_of_the_live_server_keeps_its_id_if_that_is_free(live: Handed) -> None:
    assert live.hears(request("q", "roots/list")) == [request("q", "roots/list")]
    live.says(result("q"))
    assert live.out == [result("q")]


def test_a_request_whose_id_the_mock_has_used_gets_another_and_its_answer_the_first() -> None:
    handed = Handed()
    handed.opens()
    (question,) = handed.says(tool_call(3, "asks"))
    assert question["id"] == 1
    handed.says(MISSED)
    handed.reaches()
    handed.machine.out.clear()
    (other,) = handed.hears(request(1, "sampling/createMessage"))
    assert other == request(2, "sampling/createMessage")
    assert handed.says(result(2, {"role": "live"})) == []
    assert handed.out == [result(1, {"role": "live"})]
    assert handed.says(result(1)) == [result(3)], "the recorded call goes on with the answer to its own question"


def test_a_cancellation_by_the_live_server_names_the_id_that_the_client_knows() -> None:
    handed = Handed()
    handed.opens()
    handed.says(tool_call(3, "asks"), MISSED)
    handed.reaches()
    handed.hears(request(1, "sampling/createMessage"))
    assert handed.hears(cancelled(1)) == [cancelled(2)]


def test_a_recorded_call_that_is_given_up_now_is_no_affair_of_the_live_server() -> None:
    handed = Handed()
    handed.opens()
    handed.says(tool_call(3, "asks"), MISSED)
    handed.reaches()
    handed.machine.out.clear()
    handed.says(cancelled(3))
    assert handed.out == []


def test_a_live_call_that_is_given_up_is_given_up_there(live: Handed) -> None:
    live.says(cancelled(7))
    assert (live.out, live.machine.owes) == ([cancelled(7)], False)


def test_closing_the_stream_of_a_live_call_gives_it_up_there(live: Handed) -> None:
    live.machine.cancel("7")
    assert (live.out, live.machine.owes) == (["7"], False)


# When it goes wrong


def test_a_server_that_refuses_the_handshake_answers_nothing() -> None:
    handed = Handed()
    handed.opens()
    handed.says(MISSED)
    handed.machine.reached()
    (answers,) = handed.hears(error(1, -32022))
    assert (answers["id"], answers["error"]["code"]) == (7, -32603)
    assert "it refused initialize" in answers["error"]["message"]


def test_a_handshake_that_fails_answers_nothing() -> None:
    handed = Handed()
    handed.opens()
    handed.says(MISSED)
    handed.machine.reached()
    (send,) = handed.machine.failed("1", "HTTP 401 Unauthorized")
    assert b"it did not answer initialize: HTTP 401 Unauthorized" in send.data


def test_a_server_that_does_not_shake_hands_in_time_answers_nothing() -> None:
    handed = Handed()
    handed.opens()
    handed.says(MISSED)
    handed.machine.reached()
    (send,) = handed.machine.late(60.0)
    assert b"it did not answer initialize within 60 s" in send.data


def test_a_server_that_has_shaken_hands_may_take_its_time_over_a_call(live: Handed) -> None:
    assert live.machine.late(60.0) == []
    assert live.hears(result(7)) == [result(7)]


def test_a_request_that_fails_is_answered_with_an_error_that_says_why(live: Handed) -> None:
    (send,) = live.machine.failed("7", "HTTP 500")
    assert json.loads(send.data)["error"] == {
        "code": -32603,
        "message": "mcpspy mock: tools/call new goes to the live server, as everything after the first miss does, and the live server"
        " gave no answer: HTTP 500",
        "data": {"method": "tools/call", "target": "new"},
    }
    assert (type(send.data), send.answers) == (bytes, True)


def test_a_server_that_goes_fails_all_that_waits_and_all_that_comes(live: Handed) -> None:
    live.says(request(8))
    answers = live.loses("the server exited with status 3") + live.says(request(9))
    assert [message["id"] for message in answers] == [7, 8, 9]
    assert all("the live server is gone: the server exited with status 3" in message["error"]["message"] for message in answers)
    assert live.hears(result(7)) == []


def test_what_was_given_up_gets_no_error(live: Handed) -> None:
    live.says(cancelled(7))
    assert live.loses("gone") == []


@given(st.binary(max_size=40) | st.sampled_from([b"[]", b"{}", b"[1]", b'{"id":{}}', b'{"method":"x","id":"\\ud800"}']))
def test_whatever_a_live_server_says_is_taken(data: bytes) -> None:
    handed = Handed()
    handed.opens()
    handed.says(MISSED)
    for step in (handed.machine.reached, partial(handed.machine.heard, json.dumps(result(1, OPENED)).encode(), None)):
        handed.machine.heard(data, None)
        step()
    handed.machine.heard(data, "7")
    assert handed.hears(result(7)) in ([result(7)], [])


# Catching up


def caught(recorded: Dialogue | None = None) -> Handed:
    return Handed(recorded, catches_up=True)


def test_a_server_that_remembers_is_told_first_what_was_played() -> None:
    handed = caught()
    handed.opens()
    handed.says(
        request(2), notification("notifications/roots/list_changed"), tool_call(3, "asks"), result(1, {"roots": [7]}), MISSED
    )
    handed.reaches()
    assert handed.out == [OPENING, INITIALIZED, request(2)]
    assert handed.hears(result(2, {"tools": ["other"]})) == []
    assert handed.out == [notification("notifications/roots/list_changed"), tool_call(3, "asks")]
    assert handed.hears(request("live", "roots/list")) == []
    assert handed.out == [result("live", {"roots": [7]})]
    assert handed.hears(notification("notifications/message"), result(3)) == []
    assert handed.out == [MISSED]
    assert handed.hears(result(7)) == [result(7)]


def test_an_unrecorded_request_of_the_live_server_is_refused_while_it_catches_up() -> None:
    handed = caught()
    handed.opens()
    handed.says(request(2), MISSED)
    handed.reaches()
    handed.machine.out.clear()
    handed.hears(request("live", "sampling/createMessage"))
    assert handed.out[0]["error"]["code"] == -32603


def test_a_modern_server_that_remembers_is_told_too() -> None:
    meta = {"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}}
    known, requests = request(2, "tools/list", meta), request(7, "tools/call", {"name": "new", **meta})
    handed = Handed(Dialogue().client(known).server(result(2)), catches_up=True)
    handed.says(known, requests)
    handed.machine.reached()
    assert handed.out == [known]
    handed.hears(result(2))
    assert handed.out == [requests]


def test_a_ping_is_answered_while_it_catches_up() -> None:
    handed = caught()
    handed.opens()
    handed.says(request(2), MISSED)
    handed.reaches()
    handed.machine.out.clear()
    handed.hears(request("live", "ping"))
    assert handed.out == [result("live")]


def test_what_was_never_answered_is_not_repeated() -> None:
    handed = caught(dialogue().client(request(9, "prompts/list")).closes())
    handed.opens()
    handed.says(request("silent", "prompts/list"), MISSED)
    handed.reaches()
    assert handed.out == [OPENING, INITIALIZED, MISSED]


def test_a_repeated_request_that_fails_is_passed_over() -> None:
    handed = caught()
    handed.opens()
    handed.says(request(2), MISSED)
    handed.reaches()
    handed.machine.out.clear()
    assert handed.machine.failed("2", "HTTP 500") == []
    assert handed.out == [MISSED]


def test_a_session_without_requests_is_caught_up_at_once() -> None:
    handed = caught()
    handed.opens()
    handed.says(notification("notifications/roots/list_changed"), MISSED)
    handed.reaches()
    assert handed.out == [OPENING, INITIALIZED, notification("notifications/roots/list_changed"), MISSED]
