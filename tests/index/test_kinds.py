"""Captures of every kind, cut and damaged anywhere, are shown the same from an index as without it."""

import gzip
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcpspy.records import Record
from tests.index.showing import assert_shows_the_same, index, make_blocks_small, written
from tests.tiers import current_tier, slow_examples
from tests.transcript.dialogue import cancelled, error, notification, progress, request, result, tool_call
from tests.transcript.llm.test_hostile import ANSWERS, PATHS, PROMPTS
from tests.transcript.llm.traffic import ModelTraffic, sse
from tests.transcript.test_properties import CAPTURES, NUMBERS
from tests.transcript.traffic import Traffic, initialize, modern, opened_session
from tests.views.http_scenes import http_scene

Step: TypeAlias = Callable[[Traffic], object]

IDS = st.integers(0, 3)
SESSIONS = st.sampled_from(["", "s1", "s2"])
REQUESTS = st.one_of(
    st.builds(request, IDS),
    st.builds(tool_call, IDS, st.sampled_from(["search", "\x1b[2J\u202e</script>"]), token=IDS),
    st.builds(modern, IDS, st.sampled_from(["tools/list", "ping"]), st.sampled_from(["claude-code", "\u202ecursor"])),
    st.builds(initialize, IDS),
    st.lists(st.builds(tool_call, IDS), min_size=1, max_size=3),
)
NOTES = st.one_of(st.builds(progress, IDS), st.builds(cancelled, IDS), st.just(notification()))
REPLIES = st.one_of(
    st.builds(result, IDS, st.sampled_from([{}, {"isError": True}, {"text": "x" * 300}])),
    st.builds(error, IDS),
    st.lists(st.builds(result, IDS), min_size=1, max_size=3),
)
STATUSES = st.sampled_from([200, 202, 307, 400, 401, 404, 405, 502])
HOW = st.sampled_from(["eof", "reset"])


def plain(message: Any, reply: Any, status: int, session: str, how: str) -> Step:
    return lambda traffic: traffic.post(message, session=session).answer(status, reply, how=how)


def compressed(message: Any, reply: Any, session: str) -> Step:
    body = gzip.compress(json.dumps(reply).encode(), mtime=0)
    return lambda traffic: traffic.post(message, session=session).answer(
        200, body, Content_Type="application/json", Content_Encoding="gzip"
    )


def streamed(message: Any, events: list[Any], session: str, left: bool) -> Step:  # noqa: FBT001 - drawn by hypothesis
    def step(traffic: Traffic) -> None:
        call = traffic.post(message, session=session).stream()
        for at, event in enumerate(events):
            call.event(event, id=str(at % 2))
        if not left:
            call.close()

    return step


def in_parts(message: Any, reply: Any) -> Step:
    def step(traffic: Traffic) -> None:
        call = traffic.post(message)
        data = json.dumps(reply).encode()
        call.response = traffic.open(call, "response", b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n")
        traffic.frame(call.response, data[:9], part=True)
        traffic.frame(call.response, data[9:])
        call.close()

    return step


STEPS: st.SearchStrategy[Step] = st.one_of(
    st.builds(plain, REQUESTS | NOTES | REPLIES, REPLIES, STATUSES, SESSIONS, HOW),
    st.builds(compressed, REQUESTS, REPLIES, SESSIONS),
    st.builds(streamed, REQUESTS, st.lists(REPLIES | NOTES | REQUESTS, max_size=4), SESSIONS, st.booleans()),
    st.builds(in_parts, REQUESTS, REPLIES),
    st.builds(
        lambda session, last: lambda traffic: traffic.get(session=session, Last_Event_ID=last).stream(), SESSIONS, SESSIONS
    ),
    st.builds(lambda status: lambda traffic: traffic.get().answer(status), STATUSES),
    st.builds(lambda session: lambda traffic: opened_session(traffic, session), st.sampled_from(["s1", "s2"])),
    st.builds(lambda message: lambda traffic: traffic.post(message).leave(), REQUESTS),
    st.builds(lambda message: lambda traffic: traffic.post(message).note("upstream", "x"), REQUESTS),
    st.just(lambda traffic: traffic.call("DELETE", fields={"Mcp_Session_Id": "s1"}).answer(200)),
    st.just(lambda traffic: traffic.post(request(1), "/messages?s=1").answer(202)),
    st.just(
        lambda traffic: traffic.get("/sse").stream().event("/messages?s=1", kind="endpoint").event(result(1)).raw(b": ping\n\n")
    ),
    st.just(lambda traffic: traffic.gap()),
)
ENDS = st.sampled_from([lambda traffic: None, lambda traffic: traffic.ends()])


def model_step(prompt: Any, answer: Any, path: str, streams: bool) -> Step:  # noqa: FBT001 - drawn by hypothesis
    def step(traffic: Traffic) -> None:
        call = traffic.post(json.dumps(prompt).encode(), path)
        if streams:
            call.stream().raw(sse(answer)).raw(sse(b"[DONE]")).close()
        else:
            call.answer(200, json.dumps(answer).encode(), Content_Type="application/json")

    return step


MODEL_STEPS: st.SearchStrategy[Step] = st.one_of(
    st.builds(model_step, PROMPTS, ANSWERS, PATHS, st.booleans()),
    st.builds(lambda status: lambda traffic: traffic.get("/v1/models").answer(status, {}), STATUSES),
)


def made(traffic: Traffic, steps: list[Step], end: Step) -> list[Record]:
    for step in (*steps, end):
        step(traffic)
    return traffic.records


HTTP = st.builds(lambda steps, end: made(Traffic(), steps, end), st.lists(STEPS, max_size=12), ENDS)
MODELS = st.builds(lambda steps, end: made(ModelTraffic(), steps, end), st.lists(MODEL_STEPS, max_size=5), ENDS)


@pytest.fixture(scope="module", autouse=True)
def small_blocks() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        make_blocks_small(patch)
        yield


def test_a_scene_of_http_is_shown_the_same(tmp_path: Path) -> None:
    path = tmp_path / "scene.mcpspy"
    path.write_bytes(written(http_scene().records))
    assert index(path)
    assert_shows_the_same(path)


@pytest.mark.parametrize("captures", [HTTP, MODELS], ids=["http", "model"])
def test_captures_of_http_are_indexed(captures: st.SearchStrategy[list[Record]]) -> None:
    @settings(max_examples=slow_examples(current_tier()))
    @given(captures)
    def check(records: list[Record]) -> None:
        with TemporaryDirectory() as folder:
            path = Path(folder) / "x.mcpspy"
            path.write_bytes(data := written(records))
            if b"\\ud" not in data:  # half a character, which no MessagePack has
                assert index(path)
                assert_shows_the_same(path)

    check()


@settings(max_examples=2 * slow_examples(current_tier()))
@given(HTTP | MODELS | CAPTURES, st.none() | st.integers(0), st.lists(st.tuples(st.integers(0), NUMBERS), max_size=2))
def test_captures_cut_and_damaged_anywhere_are_shown_the_same(
    records: list[Record], cut: int | None, flips: list[tuple[int, int]]
) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "x.mcpspy"
        data = bytearray(written(records))
        first = data.index(b"\n") + 1
        for place, byte in flips:
            data[first + place % (len(data) - first or 1) - (len(data) == first)] ^= 1 << byte
        path.write_bytes(data if cut is None else data[: first + cut % (len(data) - first + 1)])
        if index(path):
            assert_shows_the_same(path)
