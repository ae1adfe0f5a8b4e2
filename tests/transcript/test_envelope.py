"""A transcript of lines is that of their records, and the typed decoder of messages reads what the strict reader reads."""

import io
import json
from contextlib import nullcontext
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.capture.file.format import header_line, record_line
from mcpspy.capture.file.reader import CaptureRecords, Reader
from mcpspy.records import SERVER, Damage, Frame, Header, Record
from mcpspy.transcript.envelope import message_of, typed_message
from mcpspy.transcript.message import Message
from mcpspy.transcript.model import CaptureInfo, Kind
from mcpspy.transcript.transcribe import Transcriber, transcribe
from mcpspy.wire.jsonrpc import cut
from tests.transcript.dialogue import MS, Dialogue, make_header, spelled
from tests.transcript.test_properties import CAPTURES, LINES, numbered

IDS = st.sampled_from(['"a"', "1", "2", '"1"', "1.0", "-1", "null", r'"\u0061"', '"é"', "[]", "true", "1e0", str(10**30)])
NAMES = st.sampled_from(['"tool"', "null", "5", r'"\ud800"', '"é\\n"', "{}"])
TOKENS = IDS
METHODS = st.sampled_from(
    [
        '"tools/call"', '"resources/read"', '"logging/setLevel"', '"ping"', '"initialize"', '"server/discover"', '"tasks/get"',
        '"completion/complete"', '"notifications/progress"', '"notifications/cancelled"', '"notifications/message"',
        '"subscriptions/listen"', "null", "7", r'"p\u0069ng"',
    ]
)  # fmt: skip
METAS = st.sampled_from(
    [
        "{}", "null", "5", '{"progressToken":1}', '{"progressToken":"1","io.modelcontextprotocol/protocolVersion":"2026-07-28"}',
        '{"io.modelcontextprotocol/protocolVersion":4}', '{"progressToken":1,"progressToken":2}', '{"progressToken":null}',
        '{"io.modelcontextprotocol/clientInfo":{"name":"me"}}',
    ]
)  # fmt: skip


def objects(members: dict[str, st.SearchStrategy[str]]) -> st.SearchStrategy[str]:
    """Draw objects with some of these members, some of them twice."""
    names = st.lists(st.sampled_from(sorted(members)), max_size=4)
    pairs = names.flatmap(lambda chosen: st.tuples(*(members[name].map(f"{json.dumps(name)}: {{}}".format) for name in chosen)))
    return pairs.map(lambda written: "{" + ",".join(written) + "}")


PARAMS = objects(
    {"name": NAMES, "uri": NAMES, "level": NAMES, "progressToken": TOKENS, "requestId": TOKENS, "_meta": METAS, "taskId": NAMES}
) | st.sampled_from(["null", "[]", "5"])
RESULTS = objects(
    {
        "isError": st.sampled_from(["true", "false", "null", '"true"', "1"]),
        "resultType": st.sampled_from(['"complete"', '"task"', "5"]),
        "task": st.sampled_from(['{"taskId":"t"}', "{}"]),
        "isComplete": st.sampled_from(["true", "false"]),
        "protocolVersion": st.just('"2025-06-18"'),
        "content": st.sampled_from(["[]", r'["\ud800"]', "NaN"]),
    }
) | st.sampled_from(["null", "[]", "5"])
MESSAGES = st.tuples(
    st.sampled_from(['"jsonrpc": "2.0"'] * 8 + ['"jsonrpc": "1.0"', '"x": 1']),
    st.lists(
        st.one_of(
            IDS.map('"id": {}'.format),
            METHODS.map('"method": {}'.format),
            PARAMS.map('"params": {}'.format),
            RESULTS.map('"result": {}'.format),
            st.just('"error": {"code": -32601, "message": "no"}'),
        ),
        min_size=1,
        max_size=4,
    ),
    st.sampled_from(["\n"] * 8 + ["\r\n", "", " \n", "}\n", "\ufeff\n"]),
).map(lambda drawn: ("{" + ", ".join([drawn[0], *drawn[1]]) + "}" + drawn[2]).encode())
DIALOGUES = st.lists(st.tuples(st.integers(0, 2), MESSAGES | LINES, st.sampled_from([False] * 9 + [True])), max_size=25)


def capture(records: list[Record]) -> bytes:
    """Write records that a tap could write, without the header that is their first."""
    written = [record for record in records if not isinstance(record, Damage | Header)]
    return b"".join([header_line(make_header()), *(record_line(number, record) for number, record in enumerate(written, 1))])


def assert_both_ways_agree(data: bytes) -> None:
    by_lines = transcribe(CaptureRecords(lambda: nullcontext(io.BytesIO(data)), "x"))
    reader = Reader()
    by_records = transcribe([*reader.feed(data), *reader.close()])
    assert spelled(by_lines) == spelled(by_records)


@given(DIALOGUES)
def test_usual_and_unusual_messages_become_the_same_either_way(lines: list[tuple[int, bytes, bool]]) -> None:
    frames: list[Record] = [Frame(stream, 0, 0, data, part) for stream, data, part in lines]
    assert_both_ways_agree(capture(numbered([*Dialogue().records, *frames])))


def spelled_out(**members: object) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **members}).encode() + b"\n"


FEW_IDS = st.sampled_from([1, 2, 3, "1", "é", -1, 0])
REVISIONS = st.sampled_from([{}, {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}])
SOUND: st.SearchStrategy[bytes] = st.one_of(
    st.builds(
        lambda id, method, token, meta: spelled_out(
            id=id, method=method, params={"name": "x", "uri": "y", "_meta": {**meta, "progressToken": token}}
        ),
        FEW_IDS,
        st.sampled_from(["tools/call", "resources/read", "resources/subscribe", "ping", "initialize", "own", "tasks/get"]),
        FEW_IDS,
        REVISIONS,
    ),
    st.builds(lambda id, method: spelled_out(id=id, method=method), FEW_IDS, st.sampled_from(["ping", "tools/list"])),
    st.builds(lambda id, result: spelled_out(id=id, result=result), FEW_IDS, st.sampled_from([{}, {"isError": True}])),
    st.builds(
        lambda id, name: spelled_out(id=id, result={"resultType": name}),
        FEW_IDS,
        st.sampled_from(["complete", "input_required"]),
    ),
    st.builds(lambda id: spelled_out(id=id, result={"protocolVersion": "2025-06-18", "isComplete": False}), FEW_IDS),
    st.builds(lambda id: spelled_out(id=id, error={"code": -32002, "message": "no"}), FEW_IDS),
    st.builds(
        lambda token, meta: spelled_out(method="notifications/progress", params={"progressToken": token, "_meta": meta}),
        FEW_IDS,
        REVISIONS,
    ),
    st.builds(lambda id: spelled_out(method="notifications/cancelled", params={"requestId": id}), FEW_IDS),
    st.sampled_from(
        [
            spelled_out(result={}),
            spelled_out(method="ping"),
            spelled_out(method="pong"),
            spelled_out(method="notifications/message", params={"level": "info"}),
            spelled_out(id=1, method="tools/call", params={"name": "x", "clientInfo": {"name": "me"}}),
            b"log\n",
        ]
    ),
)
CONVERSATIONS = st.lists(st.tuples(st.integers(0, 2), SOUND, st.sampled_from([False] * 9 + [True])), max_size=40)


@given(CONVERSATIONS, st.lists(st.integers(0), max_size=6))
def test_conversations_become_the_same_either_way_however_they_are_cut(
    lines: list[tuple[int, bytes, bool]], cuts: list[int]
) -> None:
    frames: list[Record] = [Frame(stream, 0, 0, data, part) for stream, data, part in lines]
    data = capture(numbered([*Dialogue().records, *frames]))
    places = [0, *sorted(cut % len(data) for cut in cuts), len(data)]
    reader, transcriber = Reader(), Transcriber()
    for begin, end in pairwise(places):
        transcriber.feed_lines(reader.feed_lines(data[begin:end]))
    transcriber.feed_lines([*reader.close()])
    transcriber.close()
    assert_both_ways_agree(data)
    assert spelled(transcriber.transcript) == spelled(transcribe(CaptureRecords(lambda: nullcontext(io.BytesIO(data)), "x")))


@given(CAPTURES)
def test_all_kinds_of_records_become_the_same_either_way(records: list[Record]) -> None:
    assert_both_ways_agree(capture(records))


@given(CAPTURES, st.lists(st.tuples(st.integers(0), st.integers(0, 255)), max_size=4))
def test_damaged_captures_become_the_same_either_way(records: list[Record], flips: list[tuple[int, int]]) -> None:
    data = bytearray(capture(records))
    after_header = data.index(b"\n") + 1
    for place, byte in flips:
        if after_header < len(data):
            data[after_header + place % (len(data) - after_header)] = byte
    assert_both_ways_agree(bytes(data))


def capture_of(texts: list[str]) -> bytes:
    """Write lines of the client and the server in turns."""
    dialogue = Dialogue()
    for at, text in enumerate(texts):
        dialogue.line(at % 2, text.encode())
    return capture(dialogue.records)


def both_ways(text: str) -> tuple[Message | None, list[Message]]:
    """Return what the typed decoder makes of a payload, and what the strict reader does."""
    info, data = CaptureInfo(0), text.encode()
    frame = Frame(1, 7, 5, data, number=3)
    return typed_message(info, SERVER, frame, data), [message_of(info, SERVER, frame, piece) for piece in cut(data)]


CALL = '{"jsonrpc":"2.0","id":4711,"method":"tools/call","params":{"name":"now","_meta":{"progressToken":7}}}\n'
RESULT = '{"jsonrpc":"2.0","id":4711,"result":{"content":[],"isError":true,"resultType":"complete"}}\n'
PROGRESS = '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":7,"progress":1}}\n'
LOG = '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info"}}\n'
ERROR = '{"jsonrpc":"2.0","id":4711,"error":{"code":1,"message":""}}\n'
NAMED = (
    '{"jsonrpc":"2.0","id":"a","method":"ping","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}\n'
)


@pytest.mark.parametrize("text", [CALL, PROGRESS, LOG, RESULT, ERROR, NAMED, '{"jsonrpc":"2.0","id":"é","result":{}}'])
def test_a_message_without_anything_odd_is_read_once(text: str) -> None:
    typed, strict = both_ways(text)
    assert [spelled(typed)] == spelled(strict)


@given(MESSAGES | SOUND)
def test_what_the_typed_decoder_reads_the_strict_reader_reads_too(data: bytes) -> None:
    typed, strict = both_ways(data.decode("utf-8", "surrogateescape"))
    assert typed is None or [spelled(typed)] == spelled(strict)


@pytest.mark.parametrize(
    "text",
    [
        "[]\n",
        CALL.replace('"id":4711', '"id":0'),
        CALL.replace('"id":4711', '"id":null'),
        CALL.replace('"id":4711', '"id":4711.0'),
        CALL.replace('"id":4711', '"id":"\\u0007"'),
        CALL.replace("tools/call", "initialize"),
        CALL.replace('"method"', '"error":null,"method"'),
        CALL.replace('"method"', '"result":{},"method"'),
        RESULT.replace("complete", "input_required"),
        RESULT.replace('"isError"', '"task":{"taskId":"t"},"isError"'),
        RESULT.replace('"isError"', '"isComplete":false,"isError"'),
        RESULT.replace('"id":4711,', ""),
        ERROR.replace('"id":4711,', ""),
        ERROR.replace('"error"', '"result":{},"error"'),
        PROGRESS.replace("7", '"\\u0007"'),
        PROGRESS.replace('"params"', '"result":{},"params"'),
        LOG.replace('"2.0"', '"1.0"'),
        "\ufeff" + LOG,
    ],
)
def test_what_needs_a_second_look_is_left_to_the_strict_reader(text: str) -> None:
    typed, strict = both_ways(text)
    assert (typed, bool(strict)) == (None, True)


def test_a_message_has_its_facts_without_a_second_look() -> None:
    transcript = transcribe(CaptureRecords(lambda: nullcontext(io.BytesIO(capture_of([CALL, RESULT]))), "x"))
    (exchange,) = transcript.exchanges
    request, response = exchange.request, exchange.response
    assert response is not None
    assert (request.kind, request.id, request.target, request.correlation_key) == (Kind.REQUEST, "4711", "now", "7")
    assert (request.raw, request.at_ns, request.first_ns) == (CALL.encode(), MS, MS)
    assert (response.id is request.id, response.is_error, exchange.over) == (True, True, True)
