"""Replies to prompts: the events and their times, the status, and the end."""

import gzip
import json
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.records import Frame, Note
from mcpspy.replay.mock.recorded_prompts import (
    RecordedPrompt,
    base_url_variables,
    recorded_prompts,
    scaled_delay_ns,
    with_scaled_retry,
)
from mcpspy.transcript.transcribe import transcribe
from tests.transcript.dialogue import MS
from tests.transcript.llm.traffic import MESSAGES, ModelTraffic, completion, delta, sse


def kept(traffic: ModelTraffic) -> list[RecordedPrompt]:
    return recorded_prompts(transcribe(traffic.records, keep_frames=True, with_findings=False))


def only(traffic: ModelTraffic) -> RecordedPrompt:
    (prompt,) = kept(traffic)
    return prompt


def test_events_are_those_that_came_and_when() -> None:
    traffic = ModelTraffic()
    call = traffic.ask("user: hi").stream()
    traffic.wait(50)
    call.event(delta("hel"))
    traffic.wait(10)
    call.event(delta("lo", "stop")).close()
    reply = only(traffic).reply
    assert (reply.status, reply.is_stream, reply.ends) == (200, True, "whole")
    assert [json.loads(part.data.removeprefix(b"event: message\ndata: ").removeprefix(b"data: ")) for part in reply.parts] == [
        delta("hel"),
        delta("lo", "stop"),
    ]
    first, second = (part.delay_ns for part in reply.parts)
    assert first > reply.head_ns + 49 * MS
    assert second - first == 11 * MS


def test_an_event_that_came_in_parts_is_one() -> None:
    traffic = ModelTraffic()
    call = traffic.ask("user: hi").stream()
    assert call.response is not None
    traffic.frame(call.response, b"data: a", part=True)
    traffic.frame(call.response, b"b\n\n")
    call.close()
    assert [part.data for part in only(traffic).reply.parts] == [b"data: ab\n\n"]


def test_compressed_answers_are_played_plain() -> None:
    traffic = ModelTraffic()
    body = gzip.compress(json.dumps(completion("hello")).encode())
    traffic.ask("user: hi").answer(200, body, Content_Type="application/json", Content_Encoding="gzip")
    stream = gzip.compress(sse(delta("hel"), delta("lo", "stop"), b"[DONE]"))
    traffic.ask("user: ho").answer(200, stream, Content_Type="text/event-stream", Content_Encoding="gzip")
    plain, streamed = (prompt.reply for prompt in kept(traffic))
    assert json.loads(plain.parts[0].data) == completion("hello")
    assert [part.data for part in streamed.parts][-1] == b"data: [DONE]\n\n"
    assert not any(name.lower() == "content-encoding" for name, _ in (*plain.fields, *streamed.fields))


def test_the_events_of_a_compressed_stream_keep_their_times() -> None:
    traffic = ModelTraffic()
    call = traffic.ask("user: hi")
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Encoding: gzip\r\n\r\n"
    call.response = traffic.open(call, "response", head)
    packer = zlib.compressobj(wbits=31)
    for event in (delta("hel"), delta("lo", "stop")):
        traffic.wait(50)
        traffic.frame(call.response, packer.compress(sse(event)) + packer.flush(zlib.Z_SYNC_FLUSH), part=True)
    traffic.frame(call.response, packer.flush())
    call.close()
    first, second = only(traffic).reply.parts
    assert (first.data, second.data) == (sse(delta("hel")), sse(delta("lo", "stop")))
    assert second.delay_ns - first.delay_ns == 51 * MS


@given(st.lists(st.binary(max_size=20), max_size=5), st.sampled_from(["", "gzip", "br", "none"]), st.booleans())
def test_whatever_an_answer_holds_is_played_or_unknown(frames: list[bytes], coding: str, is_stream: bool) -> None:  # noqa: FBT001
    traffic = ModelTraffic()
    call = traffic.ask("user: hi")
    kind = b"text/event-stream" if is_stream else b"application/json"
    coded = f"\r\nContent-Encoding: {coding}".encode() if coding else b""
    head = b"HTTP/1.1 200 OK\r\nContent-Type: %b%b\r\n\r\n" % (kind, coded)
    call.response = traffic.open(call, "response", head, "sse" if is_stream and not coding else "body")
    for frame in frames:
        traffic.frame(call.response, frame)
    call.close()
    prompt = only(traffic)
    if not prompt.unplayable and not coding:
        assert b"".join(part.data for part in prompt.reply.parts) == b"".join(frames)


@pytest.mark.parametrize(("by", "how"), [("server", "reset"), ("server", "abort"), ("client", "broken")])
def test_a_stream_that_was_cut_off_is_cut_off_where_it_was(by: str, how: str) -> None:
    traffic = ModelTraffic()
    traffic.ask("user: hi").stream().event(delta("hel")).close(by, how)
    reply = only(traffic).reply
    assert (len(reply.parts), reply.ends) == (1, "broken")


def test_a_server_that_closed_the_connection_instead_does_so_again_and_a_client_that_did_leaves_nothing_to_play() -> None:
    traffic = ModelTraffic()
    gone = {"by": "server", "connection": 1, "transaction": traffic.ask("user: hi").number}
    traffic.add(Note(at_ns=traffic.tick(), topic="left", text="", extra=gone))
    traffic.ask("user: ho").leave()
    closed, left = kept(traffic)
    assert (closed.unplayable, closed.reply.status, closed.reply.ends) == ("", 0, "broken")
    assert left.unplayable == "no answer to it was recorded"


def test_what_was_not_kept_is_not_played() -> None:
    traffic = ModelTraffic()
    call = traffic.ask("user: hi").stream()
    assert call.response is not None
    traffic.add(Frame(call.response, traffic.tick(), traffic.at_ns, b"", length=5_000, sha256="00"))
    call.close()
    assert only(traffic).unplayable == "its answer was not kept"


def test_what_mcpspy_said_itself_is_no_answer_of_the_api() -> None:
    traffic = ModelTraffic()
    traffic.ask("user: hi").answer(502, b"mcpspy: refused\n", by="mcpspy", injected=True, Content_Type="text/plain")
    traffic.ask("user: hi").answer(200, completion("hello"))
    assert [prompt.reply.status for prompt in kept(traffic)] == [200]


def test_the_fields_of_errors_are_told_again_but_for_what_belongs_to_one_run() -> None:
    traffic = ModelTraffic()
    body = {"error": {"message": "Slow down"}}
    traffic.ask("user: hi").answer(429, body, Retry_After="20", X_Request_Id="req_1", Date="Sat, 21 Nov 2026 08:00:00 GMT")
    reply = only(traffic).reply
    assert reply.status == 429
    assert {"Retry-After", "X-Request-Id"} <= {name for name, _ in reply.fields}
    assert "Date" not in {name for name, _ in reply.fields}


@pytest.mark.parametrize(
    ("speed", "headers"),
    [
        (1.0, (("Retry-After", "20"), ("x", "y"))),
        (0.0, (("Retry-After", "0"), ("x", "y"), ("retry-after-ms", "1"))),
        (10.0, (("Retry-After", "2"), ("x", "y"), ("retry-after-ms", "2000"))),
    ],
)
def test_the_time_to_wait_before_trying_again_is_at_the_pace_of_the_rest(
    speed: float, headers: tuple[tuple[str, str], ...]
) -> None:
    assert tuple(with_scaled_retry((("Retry-After", "20"), ("x", "y")), speed)) == headers


def test_a_date_to_try_again_at_is_left_as_it_is() -> None:
    fields = (("Retry-After", "Sat, 21 Nov 2026 08:00:00 GMT"),)
    assert tuple(with_scaled_retry(fields, 0.0)) == fields


def test_at_no_speed_everything_is_due_at_once() -> None:
    assert [scaled_delay_ns(100, speed) for speed in (0.0, 1.0, 4.0)] == [0, 100, 25]


def test_bases_are_those_that_clients_were_configured_with() -> None:
    traffic = ModelTraffic()
    traffic.ask("user: hi", path="/openai/v1/chat/completions").answer(200, completion("hello"))
    traffic.post({"model": "m", "input": "hi"}, "/openai/v1/responses").answer(200, {})
    traffic.ask("user: hi", path=MESSAGES).answer(200, {})
    assert base_url_variables(kept(traffic), "http://127.0.0.1:8000") == [
        ("OPENAI_BASE_URL", "http://127.0.0.1:8000/openai/v1"),
        ("ANTHROPIC_BASE_URL", "http://127.0.0.1:8000"),
    ]
