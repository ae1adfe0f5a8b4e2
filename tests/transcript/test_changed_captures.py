"""Recorded sessions whose messages are changed at random have the same rows and findings packed and as they are."""

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from mcpspy.capture.file.format import frame_line, header_line, record_line
from mcpspy.capture.file.reader import read
from mcpspy.records import Damage, Frame, Header, Record
from mcpspy.transcript import transcribe
from mcpspy.transcript.findings.run import all_findings
from mcpspy.transcript.message import Message
from mcpspy.transcript.model import Exchange, UnpairedMessage
from tests.columns.test_early import all_large

CAPTURES = sorted((Path(__file__).parents[2] / "captures").glob("*.mcpspy"))
IDS = [b"1", b"2", b"-1", b"0", b"-0", b"7.0", b"1e0", b"null", b'"1"', b'"a"', b'"\\u0041"', b"true", b"9" * 30, b"[]"]
METHODS = [b"ping", b"pong", b"notifications/cancelled", b"notifications/progress", b"tools/list", b"tasks/get", b"x"]
TYPES = [b"complete", b"input_required", b"task", b"x"]
KEY = rb'("[^"]*"|[-\d.]+)'

Change = Callable[[bytes, Random], bytes]
CHANGES: list[Change] = [
    lambda data, chance: re.sub(rb'"id":' + KEY, lambda _: b'"id":' + chance.choice(IDS), data, count=1),
    lambda data, chance: re.sub(rb'"progressToken":' + KEY, lambda _: b'"progressToken":' + chance.choice(IDS), data, count=1),
    lambda data, chance: re.sub(rb'"method":"[^"]*"', lambda _: b'"method":"%b"' % chance.choice(METHODS), data, count=1),
    lambda data, chance: data.replace(b'"result":{', b'"result":{"resultType":"%b",' % chance.choice(TYPES), 1),
    lambda data, _: data.replace(b'"result":', b'"error":', 1),
    lambda data, _: data.replace(b'"isError":false', b'"isError":true'),
    lambda data, _: data.replace(b'"jsonrpc":"2.0",', b""),
    lambda data, _: data.replace(b"\n", b"\r\n"),
]


def changed(records: Sequence[Record], chance: Random) -> list[Record]:
    """Return records of which some are dropped, some come again, some have changed places, and some have changed messages."""
    made: list[Record] = []
    for record in records:
        if not isinstance(record, Frame) or chance.random() < 0.5:
            made.append(record)
            continue
        data = chance.choice(CHANGES)(record.data, chance)
        frame = Frame(record.stream, record.at_ns, record.first_ns, data, record.part, chunks=record.chunks)
        made += [frame] * chance.choice([0, 1, 1, 1, 1, 2])
        if len(made) > 1 and chance.random() < 0.1:
            made[-2:] = made[:-3:-1]
    return made


def members(message: Message) -> list[Any]:
    return [getattr(message, name) for name in Message.__struct_fields__]


def said(path: Path) -> tuple[list[Any], list[Any]]:
    """Return the rows of a capture, and its findings."""
    transcript = transcribe.transcribe(read(path), pack_rows=True)
    found = all_findings(transcript)
    rows: list[Any] = []
    for row in transcript.rows:
        if isinstance(row, Exchange):
            rows.append((row.row, row.outcome, row.over, row.left_ns, [*map(members, row.messages)]))
        elif isinstance(row, UnpairedMessage):
            rows.append((row.row, row.candidates, members(row.message)))
        else:
            rows.append(row.at_ns)
    return rows, found


@given(st.sampled_from(CAPTURES), st.randoms(use_true_random=False))
def test_a_changed_session_says_the_same_packed_and_as_it_is(path: Path, chance: Random) -> None:
    header, *records = [record for record in read(path) if not isinstance(record, Damage)]
    assert isinstance(header, Header)
    again = [*records[:-1] * chance.randint(1, 4), records[-1]] if header.tapped.get("transport") == "stdio" else records
    lines = [
        frame_line(number, record) if isinstance(record, Frame) else record_line(number, record)
        for number, record in enumerate(changed(again, chance), 1)
    ]
    with TemporaryDirectory() as folder:
        copy = Path(folder) / path.name
        copy.write_bytes(header_line(header) + b"".join(lines))
        plain = said(copy)
        with all_large():
            assert said(copy) == plain
