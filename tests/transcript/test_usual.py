"""A transcript of lines is that of their records: the shorter way for usual messages against the one that knows them all."""

import io
import json
from contextlib import nullcontext
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from mcpspy.capture.file.format import header_line, record_line
from mcpspy.capture.file.reader import CaptureRecords, Reader
from mcpspy.records import CLIENT, Damage, Frame, Header, Record
from mcpspy.transcript.mcp.usual import usual_message
from mcpspy.transcript.model import Kind
from mcpspy.transcript.transcribe import transcribe
from mcpspy.usual_lines import FrameLine
from tests.transcript.dialogue import Dialogue, make_header, spelled
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


def line(text: str, **facts: Any) -> FrameLine:
    return FrameLine(**{"number": 7, "at_ns": 2_000, "stream": 0, "crc": "", "text": text, **facts})


def test_a_usual_message_has_its_facts_without_a_second_look() -> None:
    text = '{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"now","_meta":{"progressToken":"p"}}}\n'
    message = usual_message(line(text, first_ns=1_500), 0, CLIENT, 100)
    assert message is not None
    assert (message.kind, message.id, message.target, message.correlation_key) == (Kind.REQUEST, "4", "now", '"p"')
    assert (message.raw, message.at_ns, message.first_ns, message.number) == (text.encode(), 2_100, 1_600, 7)


def test_an_error_and_a_batch_are_not_usual() -> None:
    for text in ('{"jsonrpc":"2.0","id":4,"error":{"code":1,"message":""}}\n', "[]\n"):
        assert usual_message(line(text), 0, CLIENT, 0) is None
