"""What counts as the same request, and what a miss says."""

import json
from typing import Any

import pytest

from tests.replay.playing import Play
from tests.transcript.dialogue import Dialogue, request, result


def call(id: Any, name: str = "echo", /, **arguments: Any) -> dict[str, Any]:
    return request(id, "tools/call", {"name": name, "arguments": arguments})


def recorded(*requests: dict[str, Any]) -> Dialogue:
    dialogue = Dialogue()
    for one in requests:
        dialogue.client(one).server(result(one["id"], {"n": one["id"]}))
    return dialogue


def missed(play: Play, line: Any) -> dict[str, Any]:
    """The error that answers a miss."""
    (told,) = play.told(line)
    error: dict[str, Any] = told["error"]
    return error


def test_the_order_of_members_does_not_matter() -> None:
    play = Play(recorded(call(1, a=1, b={"c": 2, "d": 3})))
    line = b'{"id":4,"params":{"arguments":{"b":{"d":3,"c":2},"a":1},"name":"echo"},"method":"tools/call","jsonrpc":"2.0"}\n'
    assert play.told(line) == [result(4, {"n": 1})]


def test_meta_does_not_matter() -> None:
    told = call(1, a=1)
    told["params"]["_meta"] = {"progressToken": 9, "traceparent": "00-x"}
    assert Play(recorded(call(1, a=1))).told(told) == [result(1, {"n": 1})]


@pytest.mark.parametrize("asked", [call(1, a=2), call(1, a="1"), call(1), call(1, a=1, b=None)])
def test_other_arguments_are_another_request(asked: dict[str, Any]) -> None:
    assert missed(Play(recorded(call(1, a=1))), asked)["code"] == -32602


def test_whoever_opens_a_session_opens_the_recorded_one() -> None:
    play = Play(recorded(request(1, "initialize", {"protocolVersion": "2025-11-25", "clientInfo": {"name": "a"}})))
    assert play.told(request(2, "initialize", {"protocolVersion": "2024-11-05"})) == [result(2, {"n": 1})]


def retry(id: int, answer: Any, state: str = "s") -> dict[str, Any]:
    return request(id, "tools/call", {"name": "greet", "inputResponses": {"who": answer}, "requestState": state})


def test_what_a_user_answers_does_not_change_the_story() -> None:
    play = Play(
        recorded(request(1, "tools/call", {"name": "greet"}), retry(2, {"action": "accept", "content": {"name": "Ada"}}))
    )
    assert play.told(retry(7, {"action": "accept", "content": {"name": "Grace"}})) == [result(7, {"n": 2})]


def test_another_request_state_is_another_request() -> None:
    play = Play(recorded(retry(2, None)))
    assert missed(play, retry(7, None, "t"))["data"]["nearest"]["row"] == 1


# Misses


def test_a_miss_names_what_was_asked_and_what_comes_nearest() -> None:
    play = Play(recorded(request(1), call(2, message="hi")))
    assert missed(play, call(5, message="ho")) == {
        "code": -32602,
        "message": 'mcpspy mock: tools/call echo with {"message": "ho"} was never recorded;'
        ' the nearest is row 2 with {"message": "hi"}',
        "data": {
            "method": "tools/call",
            "target": "echo",
            "nearest": {"row": 2, "method": "tools/call", "target": "echo"},
        },
    }


def test_of_a_target_that_was_never_recorded_the_nearest_name_is_told() -> None:
    play = Play(recorded(call(1, "echo"), call(2, "forecast")))
    assert missed(play, call(5, "forcast"))["data"]["nearest"]["target"] == "forecast"


def test_a_method_that_was_never_recorded_is_not_found() -> None:
    error = missed(Play(recorded(request(1), call(2))), request(5, "prompts/list"))
    assert error["code"] == -32601
    assert error["message"] == "mcpspy mock: prompts/list was never recorded; what was is tools/list, tools/call"
    assert error["data"]["nearest"] is None


def test_a_client_of_the_other_era_is_told_how_the_recording_opens() -> None:
    error = missed(Play(recorded(request(1, "server/discover"))), request(1, "initialize"))
    assert error["message"].endswith("initialize was never recorded: this recording opens with server/discover")


def test_with_reuse_error_an_answer_is_given_as_often_as_it_was_recorded() -> None:
    play = Play(recorded(call(1), call(2)), reuse="error")
    assert [play.told(call(id))[0]["result"]["n"] for id in (5, 6)] == [1, 2]
    assert "was recorded 2 times and asked for once more; the nearest is row 2" in missed(play, call(7))["message"]


def test_long_arguments_are_cut_in_a_miss() -> None:
    error = missed(Play(recorded(call(1, text="y" * 5000))), call(2, text="x" * 5000))
    assert len(json.dumps(error)) < 1000


def test_an_answer_that_was_not_kept_is_a_miss() -> None:
    dialogue = Dialogue().client(request(1))
    frame = dialogue.server(result(1)).records[-1]
    frame.data, frame.rare = b"", {"length": 40, "sha256": "x"}  # type: ignore[union-attr]  # a frame
    assert missed(Play(dialogue), request(2))["message"].startswith("mcpspy mock: tools/list was recorded past --max-size")
