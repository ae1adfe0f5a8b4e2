"""Streamed answers of models, whose events spell texts in pieces: no secret is left, however it is cut, and nothing else changes."""

import gzip
import json
from collections.abc import Callable
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.records import Frame, Header, Record
from mcpspy.sharing.share import Sharing
from mcpspy.transcript.llm.prompt import Api
from mcpspy.transcript.model import ModelCall
from mcpspy.transcript.transcribe import transcribe
from tests.peers.modelspelling import ModelAnswer
from tests.sharing.hiding import finder, lines, pseudonym, shared
from tests.transcript.llm.test_answers import EVENTS, model_answer
from tests.transcript.llm.traffic import CHAT, MESSAGES, RESPONSES, ModelTraffic

PATHS: Final[dict[Api, str]] = {"chat": CHAT, "responses": RESPONSES, "messages": MESSAGES}
TOKEN: Final = "ghp_Ab1Cd2Ef3Gh4Ij5Kl6Mn7Op8Qr9St0Uv1Wx2"
PASSWORD: Final = 'Tr0ub4dor "&" 3é'
ARGUMENTS: Final = json.dumps({"password": PASSWORD, "city": "杭州"}, ensure_ascii=False)
USES: Final = [{"id": "c1", "name": "log_in", "arguments": ARGUMENTS}, {"id": "c2", "name": "f", "arguments": '{"a": 1}'}]


def secret_answer(pieces: int) -> ModelAnswer:
    return model_answer(f"Your token is {TOKEN}, mind “{PASSWORD}”.", USES, pieces)


def streamed(api: Api, pieces: int, *, how: str = "eof", most: int = 10_000) -> list[Record]:
    traffic = ModelTraffic()
    traffic.ask("user: hi").answer(200, {})  # another stream, which ends before
    call = traffic.ask("user: log in", path=PATHS[api], stream=True).stream()
    other = traffic.ask("user: ho")
    for name, data in list(EVENTS[api](secret_answer(pieces)))[:most]:
        call.event(data, kind=name)
    other.answer(200, {})
    call.close("server", how)
    return traffic.ends().records


def answer_of(records: list[Record]) -> ModelCall:
    return transcribe(records).model_calls[1]


@pytest.mark.parametrize("api", PATHS)
@pytest.mark.parametrize("pieces", [1, 4, 11])
def test_a_secret_is_replaced_however_deltas_cut_it(api: Api, pieces: int) -> None:
    records = streamed(api, pieces)
    made = shared(records)
    text = lines(made)
    call = answer_of(made)
    assert call.answer is not None
    password = pseudonym(PASSWORD.encode()).decode()
    assert call.answer.turn.text == f"Your token is {pseudonym(TOKEN.encode()).decode()}, mind “{password}”."
    assert [json.loads(use.arguments) for use in call.answer.turn.uses] == [{"password": password, "city": "杭州"}, {"a": 1}]
    assert b"Ab1Cd2" not in text
    assert call.answer.flaws == ()
    assert [type(record) for record in made] == [type(record) for record in records]
    assert lines(shared(made)) == text


@given(most=st.integers(2, 16))
def test_a_stream_that_breaks_off_keeps_no_beginning_of_a_known_secret(most: int) -> None:
    made = shared(streamed("chat", 8, how="reset", most=most), TOKEN.encode())
    call = answer_of(made)
    assert call.answer is not None
    assert "ghp_Ab1C" not in call.answer.turn.text


def test_a_compressed_stream_is_searched_as_a_whole() -> None:
    traffic = ModelTraffic()
    call = traffic.ask("user: log in", path=MESSAGES)
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Encoding: gzip\r\n\r\n"
    call.response = traffic.open(call, "response", head)
    body = b"".join(
        f"event: {name}\ndata: {json.dumps(data)}\n\n".encode() for name, data in EVENTS["messages"](secret_answer(5))
    )
    packed = gzip.compress(body)
    traffic.frame(call.response, packed[:99], part=True)
    traffic.frame(call.response, packed[99:])
    call.close()
    made = transcribe(shared(traffic.records)).model_calls[0].answer
    assert made is not None
    assert TOKEN not in made.turn.text
    assert made.turn.text.startswith("Your token is redacted-")


def of_pieces(*events: Any, leg: str = "") -> list[Record]:
    """Make a capture with one stream of these events; `leg` is what it was recorded as."""
    traffic = ModelTraffic()
    header = traffic.records[0]
    assert isinstance(header, Header)
    header.tapped["leg"] = leg
    call = traffic.get().stream()
    for event in events:
        call.event(event)
    return call.close().traffic.records


SHAPES: Final[dict[str, Callable[[str, int], Any]]] = {
    "chat": lambda piece, at: {"id": "c", "choices": [{"index": 0, "delta": {"content": piece}}]},
    "completions": lambda piece, at: {"choices": [{"index": 0, "text": piece}]},
    "candidates": lambda piece, at: {"candidates": [{"content": {"parts": [{"text": piece}]}}]},
    "an id for each event": lambda piece, at: {"id": f"c{at}", "choices": [{"index": 0, "delta": {"content": piece}}]},
    "tokens": lambda piece, at: {"index": at, "token": {"id": at, "text": piece, "special": False}, "generated_text": None},
    "content": lambda piece, at: {"content": piece, "stop": False},
    "two texts": lambda piece, at: {"type": "text-delta", "id": "t", "delta": piece},
    "JSON-RPC": lambda piece, at: {"jsonrpc": "2.0", "method": "x/chunk", "params": {"progressToken": 1, "delta": piece}},
    "completion": lambda piece, _: {"type": "completion", "completion": piece, "stop_reason": None},
    "answer": lambda piece, _: {"event": "message", "answer": piece, "message_id": "m"},
    "message chunk": lambda piece, _: {"content": piece, "type": "AIMessageChunk", "id": "r"},
    "message chunk in a list": lambda piece, _: [{"content": piece, "type": "AIMessageChunk"}, {"langgraph_node": "a"}],
    "token as data": lambda piece, _: {"event": "token", "data": piece},
    "artifact": lambda piece, _: {"result": {"artifact": {"parts": [{"kind": "text", "text": piece}]}, "append": True}},
    "token with a type": lambda piece, _: {"type": "token", "content": piece},
    "chunk with a type": lambda piece, _: {"type": "chunk", "text": piece},
    "chunk in an event": lambda piece, _: {"event": "on_chat_model_stream", "data": {"chunk": {"content": piece}}},
    "patch": lambda piece, _: {"p": "/message/content/parts/0", "o": "append", "v": piece},
    "delta of a text": lambda piece, _: {"type": "text-delta", "textDelta": piece},
    "content delta": lambda piece, _: {"content_delta": piece},
    "message of a choice": lambda piece, _: {"output": {"choices": [{"message": {"content": piece}}]}},
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("leg", ["", "model", "mcp"])
def test_deltas_are_known_by_their_shape_whatever_the_capture_was_recorded_as(shape: str, leg: str) -> None:
    events: list[Any] = []
    for at in range(0, len(TOKEN), 7):
        events.append(SHAPES[shape](TOKEN[at : at + 7], at))
        if shape == "two texts":
            events.append({**events[-1], "id": "u", "delta": "word "})
    records = of_pieces({"hello": 1}, *events, leg=leg)
    made = [record for record in shared(records) if isinstance(record, Frame)]
    assert len(made) == len(events) + 1
    assert b"Ab1Cd2" not in lines(made)
    assert b"".join(frame.data for frame in made).count(pseudonym(TOKEN.encode())) == 1


LINES: Final[dict[str, Callable[[str], Any]]] = {
    "chat": lambda piece: {"model": "m", "message": {"role": "assistant", "content": piece}, "done": False},
    "thinking": lambda piece: {"model": "m", "message": {"role": "assistant", "content": "", "thinking": piece}, "done": False},
    "generate": lambda piece: {"model": "m", "response": piece, "done": False},
}


@pytest.mark.parametrize("shape", LINES)
@pytest.mark.parametrize("coding", ["", "gzip"])
def test_deltas_in_lines_of_json_are_joined_too(shape: str, coding: str) -> None:
    lines_sent = [json.dumps(LINES[shape](TOKEN[at : at + 7])).encode() + b"\n" for at in range(0, len(TOKEN), 7)]
    lines_sent.append(b'{"model":"m","done":true}\n')
    traffic = ModelTraffic()
    call = traffic.ask("user: hi", path="/api/chat")
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\n"
    if coding:
        call.response = traffic.open(call, "response", head + b"Content-Encoding: gzip\r\n\r\n")
        traffic.frame(call.response, gzip.compress(b"".join(lines_sent)))
    else:
        call.response = traffic.open(call, "response", head + b"\r\n", "lines")
        for line in lines_sent:
            traffic.frame(call.response, line)
    call.close()
    made = [record for record in shared(traffic.records) if isinstance(record, Frame) and record.stream == call.response]
    assert len(made) == (1 if coding else len(lines_sent))
    text = b"".join(gzip.decompress(frame.data) if coding else frame.data for frame in made)
    assert (text.count(b"\n"), text.count(pseudonym(TOKEN.encode())), b"ghp_Ab1" in text) == (len(lines_sent), 1, False)


@pytest.mark.parametrize("kind", [b"application/json", b"text/plain"])
@pytest.mark.parametrize("between", [b"\n", b"\r\n", b",\r\n"])
@pytest.mark.parametrize("coding", ["", "gzip"])
def test_deltas_in_a_body_that_is_no_stream_by_its_type_are_joined_too(kind: bytes, between: bytes, coding: str) -> None:
    events = [json.dumps(SHAPES["candidates"](TOKEN[at : at + 7], at)).encode() for at in range(0, len(TOKEN), 7)]
    body = b"[%b]" % between.join(events) if between[:1] == b"," else between.join(events)
    traffic = ModelTraffic()
    call = traffic.ask("user: hi", path="/v1/models/m:streamGenerateContent")
    field = b"Content-Encoding: gzip\r\n" if coding else b""
    call.response = traffic.open(call, "response", b"HTTP/1.1 200 OK\r\nContent-Type: %b\r\n%b\r\n" % (kind, field), "body")
    traffic.frame(call.response, gzip.compress(body) if coding else body)
    call.close()
    (made,) = (record for record in shared(traffic.records) if isinstance(record, Frame) and record.stream == call.response)
    text = gzip.decompress(made.data) if coding else made.data
    assert (text.count(pseudonym(TOKEN.encode())), b"ghp_Ab1" in text, text.count(b"candidates")) == (1, False, len(events))
    assert (text[:2], text[-1:]) == ((b"[{" if between[:1] == b"," else b'{"'), body[-1:])


def test_a_stream_without_deltas_does_not_wait_for_its_end() -> None:
    sharing = Sharing(finder(), pseudonym)
    passed = [sharing.feed(record) for record in of_pieces({"id": 1, "text": "ghp_"}, {"id": 1, "text": "x"})]
    assert all(len(records) == 1 for records in passed)


VALUES: Final = st.recursive(
    st.none() | st.integers(-1, 3) | st.sampled_from([TOKEN[:20], TOKEN[20:], "x", "delta"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "delta",
                    "index",
                    "arguments",
                    "type",
                    "content",
                    "choices",
                    "text",
                    "id",
                    "token",
                    "done",
                    "message",
                    "response",
                ]
            ),
            inner,
            max_size=3,
        )
    ),
    max_leaves=8,
)


@given(events=st.lists(VALUES | st.binary(max_size=20).map(lambda data: data.decode("latin-1")), max_size=5))
def test_any_events_can_be_shared_and_shared_again_without_a_change(events: list[Any]) -> None:
    traffic = ModelTraffic()
    call = traffic.ask("user: hi").stream()
    for event in events:
        call.event(event)
    made = shared(call.close().traffic.records)
    assert lines(shared(made)) == lines(made)
