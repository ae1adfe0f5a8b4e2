"""Scripts with clients that send anything, in any pieces: they go on, and send JSON-RPC."""

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.records import Frame
from mcpspy.transcript.decoder import Decoder
from mcpspy.transcript.message import Message
from mcpspy.transcript.model import CaptureInfo
from mcpspy.wire.lines import Lines, one_line
from tests.replay.mock.script_playing import Play
from tests.replay.mock.test_generated_ids import a_task, greeting, needing
from tests.transcript.dialogue import Dialogue, cancelled, error, notification, progress, request, result, tool_call

LISTEN = request("s", "subscriptions/listen", {"notifications": {"taskIds": ["t"]}})
PLAY = Play(
    a_task()
    .client(request(10, "initialize"))
    .server(result(10))
    .client(tool_call(11, "asks", token=11))
    .server(progress(11))
    .server(request(0, "roots/list"))
    .client(result(0))
    .server(result(11))
    .client(greeting(12))
    .server(result(12, needing("redacted-0123456789ab")))
    .client(LISTEN)
    .server(notification("notifications/message"))
    .client(tool_call(13, "slow"))
    .client(cancelled(13))
    .server(error(13))
)
"""A capture with some of everything."""

IDS: st.SearchStrategy[Any] = st.sampled_from([0, 1, 2, "1", "x", None, 1.0, 1.5, -0.0, 10**40, [], {}, True, ""])
NAMES: st.SearchStrategy[Any] = st.sampled_from(["t", "t-2", "mock-1", "", "\ud800", 7, None, ["t"]])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
PARAMS = JSON | st.fixed_dictionaries(
    {},
    optional={
        "name": st.sampled_from(["research", "asks", "greet", "slow", "none"]) | JSON,
        "taskId": NAMES,
        "requestState": NAMES,
        "requestId": IDS,
        "cursor": NAMES,
        "arguments": JSON,
        "inputResponses": st.dictionaries(st.sampled_from(["who", "how"]), JSON, max_size=2) | JSON,
        "_meta": st.fixed_dictionaries({}, optional={"progressToken": IDS, "io.modelcontextprotocol/related-task": JSON})
        | JSON,
    },
)
METHODS = st.sampled_from([
    "initialize", "tools/call", "tasks/get", "tasks/result", "tasks/cancel", "subscriptions/listen", "ping", "none",
    "notifications/cancelled", "notifications/initialized", "notifications/progress",
])  # fmt: skip
MESSAGES = st.one_of(
    st.fixed_dictionaries({"method": METHODS}, optional={"id": IDS, "params": PARAMS, "jsonrpc": st.just("2.0")}),
    st.fixed_dictionaries({"id": IDS}, optional={"result": JSON, "error": JSON}),
    JSON,
)
PAYLOADS = MESSAGES | st.lists(MESSAGES, max_size=3)
LINES = st.one_of(st.binary(max_size=60), PAYLOADS.map(json.dumps).map(str.encode)).map(
    lambda line: line.replace(b"\n", b" ") + b"\n"
)


def said(chunks: list[bytes], play: Play = PLAY) -> list[bytes]:
    """Return what a new script of the capture sends to a client that sends these chunks."""
    script, lines, decoder = play.another().script, Lines(), Decoder(CaptureInfo(0))
    pieces = [piece for chunk in chunks for piece in lines.feed(chunk)]
    rest = lines.close()
    frames = [Frame(0, 0, 0, piece, part=piece[-1:] != b"\n") for piece in pieces] + [Frame(0, 0, 0, piece) for piece in rest]
    messages = [message for frame in frames for message in decoder.feed(frame)]
    sends = (
        script.open()
        + [send for message in messages if isinstance(message, Message) for send in script.feed(message)]
        + script.close()
    )
    return [send.data for send in sends if script.is_due(send) and send.data]


@given(st.lists(LINES, max_size=12))
def test_nothing_that_a_client_sends_stops_a_script_and_what_it_says_is_json_on_lines(lines: list[bytes]) -> None:
    for line in said([*lines, b'{"id":"last","method":"initialize"}\n']):
        assert line.count(b"\n") == 1
        assert line.endswith(b"\n")
        message = json.loads(line)
    assert message == {"jsonrpc": "2.0", "id": "last", "result": {}}


@given(st.lists(LINES, max_size=8), st.lists(st.integers(0, 2000), max_size=8))
def test_any_cutting_of_what_a_client_sends_gets_the_same_answers(lines: list[bytes], cuts: list[int]) -> None:
    sent = b"".join(lines)
    places = sorted({cut for cut in cuts if cut < len(sent)} | {0, len(sent)})
    chunks = [sent[start:end] for start, end in pairwise(places)]
    assert said(chunks) == said([sent])


@given(st.lists(st.tuples(st.booleans(), LINES), max_size=12), st.lists(LINES, max_size=6))
def test_whatever_was_recorded_can_be_played(recorded: list[tuple[bool, bytes]], lines: list[bytes]) -> None:
    dialogue = Dialogue()
    for is_server, line in recorded:
        dialogue.line(int(is_server), line)
    own = [line for is_server, line in recorded if not is_server]
    for line in map(one_line, said([*own, *lines, *own], Play(dialogue))):
        assert line.endswith(b"\n")
        assert line.count(b"\n") == 1


@given(st.lists(LINES, max_size=8))
def test_no_pseudonym_is_ever_given_out(lines: list[bytes]) -> None:
    assert not any(
        b"redacted-" in line for line in said([*lines, json.dumps(greeting(1)).encode() + b"\n"]) if b"error" not in line
    )


@pytest.mark.parametrize(
    "id", [b"9" * 100_000, b'"' + b"x" * 1_000_000 + b'"', b"1.5", b"-0.0", b"1e400", b"null", b'"\\ud800"']
)
def test_an_answer_has_the_very_id_of_the_request(id: bytes) -> None:
    (line,) = said([b'{"jsonrpc":"2.0","method":"initialize","id":' + id + b"}\n"])
    assert b'"id": ' + id + b"," in line


def test_requests_with_one_id_in_flight_are_each_answered() -> None:
    message: list[Any] = [json.loads(line) for line in said([json.dumps(request(1, "initialize")).encode() + b"\n"] * 3)]
    assert message == [result(1)] * 3


@pytest.mark.parametrize("deep", [b"[" * 50_000 + b"]" * 50_000, b'{"a":' * 50_000 + b"1" + b"}" * 50_000])
@pytest.mark.parametrize(
    "line",
    [
        b'{"id":DEEP,"method":"tools/call"}\n',
        b'{"id":1,"method":"tools/call","params":{"_meta":{"progressToken":DEEP}}}\n',
        b'{"id":1,"method":"tools/call","params":DEEP}\n',
        b'{"id":1,"method":"tasks/get","params":{"taskId":DEEP}}\n',
        b'{"id":1,"result":{"task":{"taskId":DEEP}}}\n',
        b'{"method":"notifications/cancelled","params":{"requestId":DEEP}}\n',
        b"[DEEP]\n",
    ],
)
def test_what_is_nested_too_deep_stops_nothing(line: bytes, deep: bytes) -> None:
    last = json.dumps(request("last", "initialize")).encode() + b"\n"
    started = json.dumps(tool_call(5, "research")).encode() + b"\n"
    assert json.loads(said([started, line.replace(b"DEEP", deep), last])[-1]) == result("last")
