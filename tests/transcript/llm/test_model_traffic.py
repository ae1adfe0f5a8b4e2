"""A capture of a model API: a row for each prompt, which changes as its answer arrives and has flaws if it breaks."""

import gzip
import json
import zlib
from itertools import pairwise
from time import process_time_ns
from typing import Any

import brotli  # type: ignore[import-untyped]  # it comes without types
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.records import Close, End, Frame, Open
from mcpspy.transcript.http.transaction import Transaction
from mcpspy.transcript.model import ModelCall, Outcome
from mcpspy.transcript.transcribe import Transcriber, transcribe
from mcpspy.views.json.rows import message_lines
from mcpspy.wire.sse import SseEvents
from tests.transcript.dialogue import MS
from tests.transcript.llm.traffic import CHAT, MESSAGES, RESPONSES, ModelTraffic, completion, delta, sse

MAX_SECONDS = 10
"""Ten times what it takes, and a hundredth of what it would take if it were quadratic."""


def test_a_prompt_and_its_answer_are_one_row() -> None:
    traffic = ModelTraffic()
    traffic.ask("user: hi").answer(200, completion("hello"))
    call = traffic.made
    assert (call.row, call.api, call.method, call.target, call.outcome) == (1, "chat", "chat.completions", "m", Outcome.OK)
    assert call.answer is not None
    assert (call.answer.turn.text, call.answer.model, call.answer.deltas) == ("hello", "m-1", 0)
    assert (call.duration_ns, call.first_ns) == (3 * MS, None)
    assert traffic.transcript.row(1) is not None
    assert traffic.findings == []


def test_a_streamed_answer_says_when_its_first_token_came() -> None:
    traffic = ModelTraffic()
    call = traffic.ask("user: hi", stream=True).stream()
    call.event(delta("")).event(delta("hel")).event(delta("lo", "stop")).event("[DONE]").close()
    model_call = traffic.made
    assert model_call.answer is not None
    assert (model_call.answer.turn.text, model_call.answer.deltas, model_call.outcome) == ("hello", 4, Outcome.OK)
    assert (model_call.until_first_ns, model_call.duration_ns) == (4 * MS, 6 * MS)
    assert traffic.findings == []


@pytest.mark.parametrize(
    ("path", "api"), [(CHAT, "chat"), ("/openai/deployments/x/chat/completions?api-version=1", "chat"), ("/ask", "chat"),
                      (MESSAGES + "?beta=true", "messages"), (RESPONSES, "responses")],
)  # fmt: skip
def test_the_path_says_which_api_it_is_and_the_body_where_it_does_not(path: str, api: str) -> None:
    traffic = ModelTraffic()
    traffic.ask("user: hi", path=path).answer(200, {})
    assert traffic.made.api == api


@pytest.mark.parametrize("path", ["/v1/messages/count_tokens", "/v1/embeddings", "/v1/responses/r1/cancel"])
def test_what_is_no_prompt_is_a_row_of_http(path: str) -> None:
    traffic = ModelTraffic()
    traffic.get("/v1/models").answer(200, {"data": []})
    traffic.post({"model": "m", "input": "hi"}, path).answer(200, {})
    assert [type(row) for row in traffic.transcript.rows] == [Transaction, Transaction]
    assert [row.row for row in traffic.transactions] == [1, 2]
    assert traffic.findings == []


@pytest.mark.parametrize("path", ["/api/chat", "/v1/threads/t1/messages"])
def test_what_only_looks_like_a_prompt_of_an_api_that_is_read_is_a_row_of_http(path: str) -> None:
    traffic = ModelTraffic()
    traffic.ask("user: hi", path=path).answer(200, {"message": {"role": "assistant", "content": "hello"}})
    assert [type(row) for row in traffic.transcript.rows] == [Transaction]


def test_an_error_of_http_is_told_in_the_apis_words() -> None:
    traffic = ModelTraffic()
    traffic.ask("user: hi").answer(429, {"error": {"type": "rate_limit_error", "message": "Slow down"}})
    traffic.ask("user: hi").answer(404, {"detail": "Not Found"})
    traffic.ask("user: hi").answer(500, b"<html>Oh</html>", Content_Type="text/html")
    outcomes = [(call.outcome, call.answer.error) for call in traffic.calls_made if call.answer]
    assert outcomes == [
        (Outcome.HTTP_ERROR, "rate_limit_error: Slow down"),
        (Outcome.HTTP_ERROR, "Not Found"),
        (Outcome.HTTP_ERROR, "<html>Oh</html>"),
    ]


def test_a_stream_that_dies_in_the_middle_is_told_as_far_as_it_came() -> None:
    traffic = ModelTraffic()
    traffic.ask("user: hi").stream().event(delta("hel")).close("server", "reset")
    model_call = traffic.made
    assert model_call.answer is not None
    assert (model_call.outcome, model_call.answer.turn.text, model_call.answer.flaws) == (
        Outcome.UNANSWERED,
        "hel",
        ("the answer is cut short",),
    )


def test_a_client_that_leaves_cancels_the_call() -> None:
    traffic = ModelTraffic()
    traffic.ask("user: hi").stream().event(delta("hel")).close("client", "broken")
    traffic.ask("user: ho").leave()
    assert [call.outcome for call in traffic.calls_made] == [Outcome.CANCELLED, Outcome.CANCELLED]


def test_an_answer_that_is_not_over_is_pending() -> None:
    traffic = ModelTraffic()
    traffic.ask("user: hi").stream().event(delta("hel"))
    transcriber = Transcriber()
    for record in traffic.records:
        transcriber.feed(record)
    (call,) = transcriber.transcript.model_calls
    assert call.answer is not None
    assert (call.outcome, call.answer.turn.text, call.duration_ns) == (Outcome.PENDING, "hel", None)


def test_what_mcpspy_answers_itself_is_a_finding() -> None:
    traffic = ModelTraffic()
    traffic.ask("user: hi").answer(502, b"mcpspy: Connection refused\n", by="mcpspy", injected=True, Content_Type="text/plain")
    assert traffic.made.outcome is Outcome.HTTP_ERROR
    assert traffic.rules == ["upstream-failed"]


def test_a_stream_that_does_not_say_so_is_read_as_one() -> None:
    traffic = ModelTraffic()
    traffic.ask("user: hi").answer(200, sse(delta("hello", "stop"), b"[DONE]"), Content_Type="text/plain")
    answer = traffic.made.answer
    assert answer is not None
    assert (answer.turn.text, answer.is_whole) == ("hello", True)
    assert answer.flaws == ("the response is an event stream, but its content type says otherwise",)


def test_a_last_event_without_its_empty_line_counts_where_the_stream_is_whole() -> None:
    traffic = ModelTraffic()
    traffic.ask("user: hi").stream().event(delta("hello", "stop")).raw(b"data: [DONE]\n").close()
    answer = traffic.made.answer
    assert answer is not None
    assert (answer.is_whole, answer.flaws) == (True, ("the last event lacks the empty line that ends it",))


@pytest.mark.parametrize("coding", ["gzip", "br"])
def test_a_compressed_answer_is_read(coding: str) -> None:
    pack = {"gzip": gzip.compress, "br": brotli.compress}[coding]
    traffic = ModelTraffic()
    body = pack(json.dumps(completion("hello")).encode())
    traffic.ask("user: hi").answer(200, body, Content_Type="application/json", Content_Encoding=coding)
    assert traffic.made.answer is not None
    assert traffic.made.answer.turn.text == "hello"


def test_the_deltas_of_a_compressed_stream_keep_their_times() -> None:
    traffic = ModelTraffic()
    call = traffic.ask("user: hi")
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Encoding: gzip\r\n\r\n"
    call.response = traffic.open(call, "response", head)
    packer = zlib.compressobj(wbits=31)
    for event in (delta(""), delta("hel"), delta("lo", "stop"), b"[DONE]"):
        traffic.frame(call.response, packer.compress(sse(event)) + packer.flush(zlib.Z_SYNC_FLUSH), part=True)
    traffic.frame(call.response, packer.flush())
    call.close()
    model_call = traffic.made
    assert model_call.answer is not None
    assert (model_call.answer.turn.text, model_call.outcome, model_call.until_first_ns) == ("hello", Outcome.OK, 4 * MS)


def test_a_prompt_past_the_size_that_is_kept_is_still_a_call() -> None:
    traffic = ModelTraffic()
    call = traffic.call("POST", CHAT, None, whole=False)
    traffic.add(Frame(call.request, traffic.tick(), traffic.at_ns, b"", length=5_000_000, sha256="00"))
    traffic.close(call.request, "client")
    call.answer(200, completion("hello"))
    assert traffic.made.prompt.flaw
    assert traffic.made.outcome is Outcome.OK


# Conversations


def test_a_call_says_which_of_its_turns_are_new() -> None:
    traffic = ModelTraffic()
    traffic.ask("system: s", "user: a").answer(200, completion("b"))
    traffic.ask("system: s", "user: a", "assistant: b", "user: c").answer(200, completion("d"))
    traffic.ask("system: s", "user: a", "assistant: b", "user: c", "assistant: d", "user: e").answer(200, completion("f"))
    assert [(call.before, call.added) for call in traffic.calls_made] == [(0, 0), (1, 2), (2, 4)]


def test_conversations_that_only_begin_alike_are_two() -> None:
    traffic = ModelTraffic()
    traffic.ask("system: s", "user: a").answer(200, completion("b"))
    traffic.ask("system: s", "user: other").answer(200, completion("d"))
    traffic.ask("system: t", "user: a").answer(200, completion("b"))
    assert [(call.before, call.added) for call in traffic.calls_made] == [(0, 0)] * 3


def test_a_conversation_whose_later_turns_were_rewritten_goes_on() -> None:
    traffic = ModelTraffic()
    traffic.ask("user: a", "assistant: b", "user: long").answer(200, completion("c"))
    traffic.ask("user: a", "assistant: b", "user: short", "assistant: c", "user: d").answer(200, completion("e"))
    assert [(call.before, call.added) for call in traffic.calls_made] == [(0, 0), (1, 2)]


def test_instructions_that_are_written_anew_each_time_do_not_part_a_conversation() -> None:
    traffic = ModelTraffic()
    traffic.ask("system: at 1", "user: a").answer(200, completion("b"))
    traffic.ask("system: at 2", "user: a", "assistant: b", "user: c").answer(200, completion("d"))
    traffic.ask("system: Give it a title", "user: a").answer(200, completion("A"))
    traffic.ask("system: at 3", "user: a", "assistant: b", "user: c", "assistant: d", "user: e").answer(200, completion("f"))
    assert [(call.before, call.added) for call in traffic.calls_made] == [(0, 0), (1, 2), (0, 0), (2, 4)]


def test_a_prompt_that_is_sent_again_adds_nothing() -> None:
    traffic = ModelTraffic()
    traffic.ask("user: a").answer(429, {})
    traffic.ask("user: a").answer(200, completion("b"))
    assert [(call.before, call.added) for call in traffic.calls_made] == [(0, 0), (1, 1)]


def test_a_prompt_goes_on_with_the_response_that_it_names() -> None:
    traffic = ModelTraffic()
    traffic.post({"model": "m", "input": "a"}, RESPONSES).answer(200, {"id": "r1", "status": "completed", "output": []})
    traffic.post({"model": "m", "input": "b"}, RESPONSES).answer(200, {"id": "r2", "status": "completed", "output": []})
    traffic.post({"model": "m", "input": "c", "previous_response_id": "r1"}, RESPONSES).answer(200, {"id": "r3", "output": []})
    assert [(call.before, call.added) for call in traffic.calls_made] == [(0, 0), (0, 0), (1, 0)]


# What others see


def test_the_lanes_of_a_model_and_of_the_servers_beside_it() -> None:
    other = [(lane.name, lane.role) for lane in transcribe(ModelTraffic("gpt").records).lanes]
    assert other == [("client", "client"), ("gpt", "model")]


# Whatever comes


@given(data=st.data(), seed=st.lists(st.integers(0, 6), max_size=14))
def test_records_in_any_order_never_raise(data: st.DataObject, seed: list[int]) -> None:
    traffic = ModelTraffic()
    traffic.ask("user: hi").stream().event(delta("hel")).raw(b"data: {", part=True).raw(b"}\n\n").event("[DONE]").close()
    traffic.ask("user: hi").answer(200, completion("b"))
    first, *records = traffic.records
    chosen = data.draw(st.lists(st.sampled_from(records), max_size=20))
    transcriber = Transcriber()
    for record in [first, *chosen, *(records[at] for at in seed)]:
        transcriber.feed(record)
    transcriber.close()
    for call in transcriber.transcript.model_calls:
        assert call.prompt is not None
        assert call.outcome in Outcome


BODIES = st.binary(max_size=60) | st.sampled_from([b"data: {}\n\n", sse(delta("x")), b'{"choices":[{}]}', b"\x1f\x8b\x08"])


@given(bodies=st.lists(BODIES, max_size=4), coding=st.sampled_from(["", "gzip", "br", "x"]), is_stream=st.integers(0, 1))
def test_arbitrary_bytes_of_a_response_never_raise(bodies: list[bytes], coding: str, is_stream: int) -> None:
    traffic = ModelTraffic()
    call = traffic.ask("user: hi")
    kind = b"text/event-stream" if is_stream else b"application/json"
    head = b"HTTP/1.1 200 OK\r\nContent-Type: %b\r\nContent-Encoding: %b\r\n\r\n" % (kind, coding.encode())
    call.response = traffic.open(call, "response", head, "sse" if is_stream and not coding else "body")
    for body in bodies:
        traffic.frame(call.response, body, part=bool(coding))
    call.close()
    assert traffic.made.answer is not None


STREAM = sse(delta("杭"), delta("州 <tool_call>{"), b"{oh", delta('"name":"f"}</tool_call>', "stop"), b"[DONE]")


@given(cuts=st.lists(st.integers(0, len(STREAM)), max_size=8), is_packed=st.integers(0, 1))
def test_wherever_the_wire_is_cut_the_answer_is_the_same(cuts: list[int], is_packed: int) -> None:
    traffic = ModelTraffic()
    call = traffic.ask("user: hi")
    sent = gzip.compress(STREAM, mtime=0) if is_packed else STREAM
    edges = [0, *sorted(min(cut, len(sent)) for cut in cuts), len(sent)]
    chunks = [sent[begin:end] for begin, end in pairwise(edges)]
    coding = b"Content-Encoding: gzip\r\n" if is_packed else b""
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n%b\r\n" % coding
    call.response = traffic.open(call, "response", head, "body" if is_packed else "sse")
    events = SseEvents()
    for chunk in chunks:
        for piece in [chunk] if is_packed else events.feed(chunk):
            traffic.frame(call.response, piece, part=bool(is_packed))
    call.close()
    answer = traffic.made.answer
    assert answer is not None
    assert answer.turn.text == '杭州 <tool_call>{"name":"f"}</tool_call>'
    assert [use.name for use in answer.turn.uses] == ["f"]
    assert (answer.deltas, answer.finish, answer.flaws) == (5, "stop", ("the data of an event is not a JSON object",))


def test_ten_thousand_deltas_are_put_together_in_linear_time_while_somebody_looks() -> None:
    traffic = ModelTraffic()
    call = traffic.ask("user: hi").stream()
    for _ in range(10_000):
        call.event(delta("word <tool_call> "))
    transcriber = Transcriber()
    began_ns = process_time_ns()
    length = 0
    for record in traffic.records:
        for row in transcriber.feed(record):
            assert isinstance(row, ModelCall)
            length = len(row.answer.turn.text) if row.answer else 0
    assert (process_time_ns() - began_ns) / 1e9 < MAX_SECONDS
    assert length == 10_000 * len("word <tool_call> ")


def test_a_prompt_of_a_megabyte_and_a_conversation_of_a_hundred_turns_take_linear_time() -> None:
    traffic = ModelTraffic()
    turns: list[Any] = []
    for number in range(100):
        turns += [f"user: {'long ' * 2_000}{number}", "assistant: yes"]
        traffic.ask(*turns[:-1]).answer(200, completion("yes"))
    began_ns = process_time_ns()
    calls = traffic.calls_made
    assert (process_time_ns() - began_ns) / 1e9 < MAX_SECONDS
    assert len(calls[-1].payload) > 1_000_000
    assert [call.added for call in calls] == [0, *range(1, 199, 2)]


def test_records_of_the_leg_are_those_of_http() -> None:
    traffic = ModelTraffic()
    traffic.ask("user: hi").answer(200, completion("b"))
    assert {type(record) for record in traffic.ends().records[1:]} == {Open, Frame, Close, End}


def test_a_model_call_is_a_line_of_jsonl() -> None:
    traffic = ModelTraffic()
    traffic.ask("user: hi").answer(200, completion("hello"))
    transcript = traffic.transcript
    (line,) = map(json.loads, message_lines(transcript, transcript.rows))
    assert (line["kind"], line["server"], line["prompt"]["turns"], line["answer"]["turn"]) == (
        "model_call", "gpt", [{"role": "user", "text": "hi"}], {"role": "assistant", "text": "hello"}
    )  # fmt: skip
