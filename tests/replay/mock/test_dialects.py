"""Sessions in any mixture of dialects: a mock plays every byte of the server, and a comparison names the frame that one run lacks.

Each session is written as a tap would record it, and played by the script. tests/live/mock has the same with real programs.
"""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from mcpspy.records import Frame, Record
from mcpspy.replay.compare.compare import ComparedSide, compare
from mcpspy.replay.mock.batches import Batches
from mcpspy.replay.mock.matching import RequestMatcher
from mcpspy.replay.mock.replies import read_replies
from mcpspy.replay.mock.script import Script
from mcpspy.transcript.decoder import Decoder
from mcpspy.transcript.message import Message
from mcpspy.transcript.model import CaptureInfo
from mcpspy.transcript.transcribe import transcribe
from tests.transcript.dialogue import Dialogue, result, tool_call
from tests.transcript.traffic import Traffic, initialize

ANSWERS = st.sampled_from(
    [
        '{"jsonrpc":"2.0","id":%d,"result":{}}',
        '{ "id" : "%d" ,"result":{"content":[]}, "jsonrpc":"2.0"}',
        '{"jsonrpc":"2.0","id":%d.0,"error":{"code":1,"message":"天"}}',
        '\ufeff{"jsonrpc":"2.0","id":%d,"result":{}}',
        '[ {"jsonrpc":"2.0","id":%d,"result":{}} ,\t7 ]',
        '{"jsonrpc":"2.0","id":%d,"result":{"isComplete":false}}\n{"jsonrpc":"2.0","id":%d,"result":{"isComplete":true}}',
        '{"result":{"content":[]}}',
    ]
)
NOISE = st.sampled_from(
    [
        "", " ", "[DONE]", "INFO ready", "[]", "[7, 8]", "{", "null", '"text"', '{"jsonrpc":"2.0"}',
        '{"jsonrpc":"2.0","method":"pong"}', '{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"?"}}',
        '{"jsonrpc":"2.0","id":"none","result":{}}', '[{"jsonrpc":"2.0","method":"notifications/message","params":{}},\n7]',
        '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}',
    ]
)  # fmt: skip
ENDS = st.sampled_from(["\n", "\r\n", " \n"])
TURNS = st.lists(st.tuples(st.lists(NOISE, max_size=3), ANSWERS, st.lists(NOISE, max_size=3), ENDS), min_size=1, max_size=6)

Turn = tuple[list[str], str, list[str], str]


def asked(id: int) -> bytes:
    """Make the line of a request, which is unlike all others."""
    return json.dumps({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": f"t{id}"}}).encode() + b"\n"


def lines_of(turn: Turn, id: int) -> list[bytes]:
    """Make the lines that the server writes after a request."""
    before, answer, after, end = turn
    texts = (*before, *answer.replace("%d", str(id)).split("\n"), *after)
    return [text.replace("\n", "").encode() + end.encode() for text in texts]


def session(turns: list[Turn], banner: list[str], *, without: int = -1) -> tuple[list[Record], list[bytes]]:
    """Return the records of a session, and what the server wrote; `without` is the number of a line that it does not write."""
    made, written = Dialogue(), []

    def write(lines: list[bytes]) -> None:
        for line in lines:
            written.append(line)
            if len(written) - 1 != without:
                made.server(line)

    write([text.replace("\n", "").encode() + b"\n" for text in banner])
    for id, turn in enumerate(turns, 1):
        made.client(asked(id))
        write(lines_of(turn, id))
    return made.closes().records, written


def played(records: list[Record], requests: int) -> bytes:
    """Play the session to a client that asks the same; return what it gets."""
    replies = read_replies(transcribe(records, with_findings=False))
    script, batches, decoder = Script(replies, RequestMatcher(replies.exchanges).cursor()), Batches(), Decoder(CaptureInfo(0))
    sends = script.open()
    heard = [batches.line(send) for send in sends if script.is_due(send)]
    for id in range(1, requests + 1):
        for message in decoder.feed(Frame(0, id, id, asked(id))):
            assert isinstance(message, Message)
            heard += [batches.line(send) for send in script.feed(message) if script.is_due(send)]
    heard += [batches.line(send) for send in script.close() if script.is_due(send)]
    return b"".join(heard)


@given(TURNS, st.lists(NOISE, max_size=2))
def test_every_byte_is_played(turns: list[Turn], banner: list[str]) -> None:
    records, written = session(turns, banner)
    assert played(records, len(turns)) == b"".join(written)


MARKED = st.sampled_from(
    [
        "INFO %s", '"%s"', '["%s"]', '{"jsonrpc":"2.0","method":"%s"}', '{"jsonrpc":"2.0","id":"none","result":{"%s":1}}',
        '{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"%s"}}', '[{"jsonrpc":"2.0","method":"%s"}]', "{ %s",
    ]
)  # fmt: skip
"""Lines that are unlike all others, by a word."""


@given(st.data(), st.lists(MARKED, min_size=1, max_size=8))
def test_a_comparison_names_the_line_that_one_run_lacks(data: Any, marked: list[str]) -> None:
    lines = [text % "".join(chr(ord("a") + int(digit)) for digit in f"{at:03}") for at, text in enumerate(marked)]
    answer = '{"jsonrpc":"2.0","id":%d,"result":{}}'
    turns: list[Turn] = [(lines[at::2], answer, [], "\n") for at in range(2)]
    records, written = session(turns, [])
    lacks = data.draw(st.integers(0, len(written) - 1))
    whole, other, part = (transcribe(some) for some in (records, session(turns, [])[0], session(turns, [], without=lacks)[0]))
    assert not compare(ComparedSide(transcript=whole), ComparedSide(transcript=other)).different
    (server,) = compare(ComparedSide(transcript=whole), ComparedSide(transcript=part)).servers
    removed = [change.row.message.batch or change.row.message.raw for change in server.messages]
    calls = [change.before.response.raw for change in server.calls if change.before is not None and change.before.response]
    assert [*removed, *calls] == [written[lacks]]
    assert {change.how for change in server.messages} <= {"removed"}


MARKED_EVENTS = st.sampled_from(
    [
        "data: %s", "event: %s\ndata: 1", 'data: {"jsonrpc":"2.0","method":"%s"}', 'data: {"jsonrpc":"2.0",\ndata: "method":"%s"}',
        'data: {"jsonrpc":"2.0","id":"none","result":{"%s":1}}', "data: { %s",
    ]
)  # fmt: skip
"""Events that are unlike all others, by a word."""


@given(st.data(), st.lists(MARKED_EVENTS, min_size=1, max_size=8), st.booleans())
def test_a_comparison_names_the_event_that_one_run_lacks(data: Any, marked: list[str], with_session: bool) -> None:  # noqa: FBT001
    words = ["".join(chr(ord("a") + int(digit)) for digit in f"{at:03}") for at, _ in enumerate(marked)]
    lacks = data.draw(st.integers(0, len(marked) - 1))

    def recorded(without: int = -1) -> ComparedSide:
        traffic = Traffic()
        session = "s1" if with_session else ""
        fields: dict[str, Any] = {"Mcp_Session_Id": session} if session else {}
        traffic.post(initialize(0)).answer(200, result(0), **fields)
        stream = traffic.post(tool_call(1), session=session).stream()
        for at, (text, word) in enumerate(zip(marked, words, strict=True)):
            if at == len(marked) // 2:
                stream.event(result(1))
            if at != without:
                stream.raw((text % word).encode() + b"\n\n")
        stream.close()
        return ComparedSide(transcript=traffic.ends().transcript)

    assert not compare(recorded(), recorded()).different
    (server,) = compare(recorded(), recorded(lacks)).servers
    (change,) = server.messages
    assert (change.how, words[lacks].encode() in change.row.message.raw) == ("removed", True)
