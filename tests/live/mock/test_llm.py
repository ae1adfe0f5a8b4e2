"""A mock of a model API: replies as they were recorded, misses in the form of the API, and what is passed on to a live API."""

import gzip
import time
from http.client import RemoteDisconnected
from pathlib import Path

import pytest

from mcpspy.live.mock.llm import LlmPassThrough
from mcpspy.records import Frame, Note
from mcpspy.replay.mock.match_key import Strictness
from mcpspy.replay.mock.matching import Reuse
from mcpspy.transcript.model import Outcome
from tests.live.mock.mocking_llm import ModelMocking
from tests.models import model
from tests.transcript.llm.traffic import MESSAGES, ModelTraffic, completion, delta, sse

HI = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
HO = {"model": "m", "messages": [{"role": "user", "content": "ho"}]}


def greeting() -> ModelTraffic:
    """Record one prompt and one answer."""
    traffic = ModelTraffic()
    traffic.ask("user: hi").answer(200, completion("hello"))
    return traffic


def streaming(*, how: str = "eof", pause_ms: int = 0) -> ModelTraffic:
    """Record one prompt, and an answer in two deltas."""
    traffic = ModelTraffic()
    call = traffic.ask("user: hi", stream=True).stream()
    call.event(delta("hel"))
    traffic.wait(pause_ms)
    call.event(delta("lo", "stop"))
    if how == "eof":
        call.raw(b"data: [DONE]\n\n")
    call.close("server", how)
    return traffic


def test_a_recorded_prompt_gets_its_answer() -> None:
    with ModelMocking(greeting()) as mock:
        answer = mock.ask(HI)
    assert (answer.status, answer.json, answer.fields["content-type"]) == (200, completion("hello"), "application/json")


def test_a_prompt_may_be_compressed_and_spelled_otherwise() -> None:
    with ModelMocking(greeting()) as mock:
        body = gzip.compress(b'{"messages":[{"content":"\\u0068i","role":"user"}], "user":"ada", "model":"m"}')
        assert mock.ask(body, Content_Encoding="gzip").json == completion("hello")


def test_a_stream_has_the_events_that_were_recorded() -> None:
    with ModelMocking(streaming()) as mock:
        answer = mock.ask({**HI, "stream": True})
    assert answer.fields["content-type"].startswith("text/event-stream")
    assert answer.body == b"".join(
        frame.data for frame in streaming().records if isinstance(frame, Frame) and frame.stream == 1
    )
    assert answer.is_whole


def test_a_stream_that_broke_off_breaks_off() -> None:
    with ModelMocking(streaming(how="reset")) as mock:
        answer = mock.ask({**HI, "stream": True})
    assert (answer.body.count(b"data: "), answer.is_whole) == (2, False)


def test_a_body_that_broke_off_breaks_off() -> None:
    traffic = ModelTraffic()
    traffic.ask("user: hi").answer(200, b'{"id":"c1","cho', how="abort", Content_Type="application/json")
    with ModelMocking(traffic) as mock:
        answer = mock.ask(HI)
    assert (answer.body, answer.is_whole) == (b'{"id":"c1","cho', False)


def test_a_server_that_closed_the_connection_does_so_again() -> None:
    traffic = ModelTraffic()
    gone = {"by": "server", "connection": 1, "transaction": traffic.ask("user: hi").number}
    traffic.add(Note(at_ns=traffic.tick(), topic="left", text="", extra=gone))
    with ModelMocking(traffic) as mock, pytest.raises(RemoteDisconnected):
        mock.ask(HI)


def test_errors_and_the_answer_after_them_come_in_their_order() -> None:
    traffic = ModelTraffic()
    traffic.ask("user: hi").answer(429, {"error": {"message": "Slow down"}}, Retry_After="20")
    traffic.ask("user: hi").answer(200, completion("hello"))
    with ModelMocking(traffic) as mock:
        first, second, third = (mock.ask(HI) for _ in range(3))
    assert [first.status, second.status, third.status] == [429, 200, 200]
    assert (first.fields["retry-after"], first.fields["retry-after-ms"]) == ("0", "1")


def test_at_the_recorded_speed_it_takes_the_recorded_time() -> None:
    with ModelMocking(streaming(pause_ms=80), speed=1.0) as mock:
        begin_s = time.monotonic()
        assert mock.ask({**HI, "stream": True}).is_whole
        assert time.monotonic() - begin_s >= 0.08


def test_a_list_of_models_is_served_if_it_was_recorded() -> None:
    traffic = greeting()
    traffic.get("/v1/models").answer(200, {"data": [{"id": "m"}]})
    with ModelMocking(traffic) as mock:
        assert mock.ask(None, "/v1/models", "GET").json == {"data": [{"id": "m"}]}
        assert mock.ask(None, "/v1/models/m", "GET").status == 404


def test_a_stream_of_ten_thousand_deltas_comes_whole() -> None:
    traffic = ModelTraffic()
    body = sse(*(delta(f"{number} ") for number in range(10_000)), b"[DONE]")
    traffic.ask("user: hi", stream=True).answer(200, body, Content_Type="text/event-stream")
    with ModelMocking(traffic) as mock:
        assert mock.ask({**HI, "stream": True}).body == body


# Misses


def test_a_miss_is_an_error_of_openai() -> None:
    with ModelMocking(greeting()) as mock:
        answer = mock.ask(HO)
    error = answer.json["error"]
    assert (answer.status, error["type"], error["code"]) == (400, "invalid_request_error", "never_recorded")
    assert error["param"] == "$.messages[0].content"
    assert error["message"].startswith(
        "mcpspy mock: chat.completions m was never recorded with this prompt; the nearest is row 1"
    )
    assert error["mcpspy"]["ignore"] == ["$.messages[0].content"]
    assert mock.missed[0].sentence in error["message"]


def test_a_miss_is_an_error_of_anthropic_where_that_is_asked() -> None:
    traffic = ModelTraffic()
    traffic.ask("user: hi", path=MESSAGES).answer(200, {})
    with ModelMocking(traffic) as mock:
        answer = mock.ask(HO, MESSAGES, anthropic_version="2023-06-01")
    assert (answer.status, answer.json["type"], answer.json["error"]["type"]) == (400, "error", "invalid_request_error")
    assert answer.json["mcpspy"]["nearest"]["row"] == 1


def test_an_api_that_was_never_asked_is_not_found() -> None:
    with ModelMocking(greeting()) as mock:
        assert mock.ask({"model": "m", "input": "hi"}, "/v1/responses").status == 404


def test_an_answer_that_is_not_in_the_recording_is_a_miss_and_says_so() -> None:
    traffic = ModelTraffic()
    traffic.ask("user: hi").leave()
    traffic.ask("user: ho").answer(200, completion("hello"))
    with ModelMocking(traffic) as mock:
        answer = mock.ask(HI)
    assert answer.json["error"]["mcpspy"]["refused_by"] == "capture"


def test_a_miss_stands_in_the_mocks_own_capture() -> None:
    with ModelMocking(greeting()) as mock:
        mock.ask(HO)
        mock.ask(HI)
    assert [record.text for record in mock.records if isinstance(record, Note) and record.topic == "miss"] == [
        mock.missed[0].sentence
    ]
    assert [call.outcome for call in mock.transcript.model_calls] == [Outcome.HTTP_ERROR, Outcome.OK]


def test_the_nearest_is_played_where_that_is_wanted() -> None:
    with ModelMocking(greeting(), plays_nearest=True) as mock:
        assert mock.ask(HO).json == completion("hello")
    assert mock.missed[0].played is not None


def test_loosely_any_prompt_to_the_model_will_do() -> None:
    with ModelMocking(greeting(), strictness=Strictness.LOOSE) as mock:
        assert mock.ask(HO).json == completion("hello")
    assert mock.missed == []


def test_more_often_than_recorded_is_an_error_where_that_is_wanted() -> None:
    with ModelMocking(greeting(), reuse=Reuse.ERROR) as mock:
        assert [mock.ask(HI).status for _ in range(2)] == [200, 400]


@pytest.mark.parametrize(
    "body", [b"", b"{", b"\xff\xfe", b"[]", b'{"messages":7,"model":[]}', b'{"messages":[{"content":[7]}]}', b"[" * 9_000]
)
def test_whatever_is_asked_gets_an_answer(body: bytes) -> None:
    with ModelMocking(greeting()) as mock:
        assert mock.ask(body).status == 400


# Live


def test_what_was_never_recorded_goes_live_and_is_recorded_as_the_live_apis_own(tmp_path: Path) -> None:
    story = {"answers": [{"to": "ho", "text": "hey ho"}], "key": "sk-live"}
    sentences: list[str] = []
    with model(story, tmp_path) as url, ModelMocking(greeting(), forward=LlmPassThrough(url, tell=sentences.append)) as mock:
        assert mock.ask(HI).json == completion("hello")
        answer = mock.ask(HO, Authorization="Bearer sk-live")
        streamed = mock.ask({**HO, "stream": True}, Authorization="Bearer sk-live")
        refused = mock.ask(HO)
    assert answer.json["choices"][0]["message"]["content"] == "hey ho"
    assert (streamed.is_whole, streamed.body.endswith(b"data: [DONE]\n\n")) == (True, True)
    assert refused.status == 401
    assert [call.answer and call.answer.turn.text for call in mock.transcript.model_calls[:3]] == ["hello", "hey ho", "hey ho"]
    injected = [frame.injected for frame in mock.records if isinstance(frame, Frame) and b"hey ho" in frame.data]
    assert injected == [False, False]
    assert sentences == [f"what was never recorded is answered by the live API: {url}"]


def test_a_live_stream_that_breaks_off_breaks_off_for_the_client(tmp_path: Path) -> None:
    story = {"answers": [{"to": "ho", "text": "a text of some length", "cut": 3}]}
    with model(story, tmp_path) as url, ModelMocking(greeting(), forward=LlmPassThrough(url, tell=lambda text: None)) as mock:
        answer = mock.ask({**HO, "stream": True})
    assert (answer.status, answer.is_whole, answer.body.count(b"data: ")) == (200, False, 3)


def test_a_live_api_that_cannot_be_reached_is_told() -> None:
    sentences: list[str] = []
    with ModelMocking(greeting(), forward=LlmPassThrough("http://127.0.0.1:9", tell=sentences.append)) as mock:
        answer = mock.ask(HO)
    assert (answer.status, answer.body.startswith(b"mcpspy: http://127.0.0.1:9 cannot be reached")) == (502, True)
    assert sentences[-1].startswith("http://127.0.0.1:9 cannot be reached")
