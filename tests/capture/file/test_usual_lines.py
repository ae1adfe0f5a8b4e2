"""Usual lines, decoded straight into fields, are the records that reading them member by member gives."""

import io
import json
from binascii import crc32
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.capture.file import reader as reading
from mcpspy.capture.file.format import record_line
from mcpspy.capture.file.reader import CaptureRecords, Reader, read
from mcpspy.errors import CaptureError
from mcpspy.records import Close, Frame, Open, Record
from mcpspy.usual_lines import FrameLine
from tests.capture.making import closes, lines, opens, talk
from tests.capture.strategies import RECORDS, cut

WHOLE = lines([*opens(), *talk(), *closes()])
HEADER = WHOLE[: WHOLE.index(b"\n") + 1]

OPEN = {
    "kind": "open",
    "stream": 2,
    "sender": "client",
    "name": "request",
    "framing": "body",
    "head": "POST / HTTP/1.1\r\n\r\n",
}
CLOSE = {"kind": "close", "stream": 2, "by": "client", "how": "eof"}
VALUES: st.SearchStrategy[Any] = st.sampled_from(
    [
        0,
        1,
        7,
        -1,
        1.0,
        2**62,
        2**62 + 1,
        2**63,
        -(2**62) - 1,
        2**70,
        None,
        True,
        False,
        "",
        "é\n",
        "\ud800",
        [],
        {},
        [3],
        ["4"],
        [[0, 1, "x"]],
        "open",
    ]
)
MEMBERS = st.sampled_from(
    [
        "n", "at_ns", "kind", "stream", "text", "base64", "first_ns", "part", "chunks", "x", "crc", "length", "sender", "how",
        "head", "head_base64", "forwarded", "redacted", "injected", "connection", "transaction",
    ]
)  # fmt: skip


@st.composite
def usual_lines(draw: st.DrawFn) -> bytes:
    """Draw lines of which any member may be wrong, missing, new or double, and the CRC too."""
    frame = {"kind": "frame", "stream": 0, "text": draw(st.text(max_size=5))}
    fields: dict[str, Any] = {"n": draw(st.integers(0, 9)), "at_ns": 5, **draw(st.sampled_from([frame, OPEN, CLOSE]))}
    fields |= draw(st.dictionaries(MEMBERS, VALUES, max_size=2))
    for name in draw(st.lists(st.sampled_from(sorted(fields)), max_size=1)):
        del fields[name]
    body = json.dumps(fields, separators=(",", ":"), ensure_ascii=draw(st.booleans())).encode("utf-8", "backslashreplace")[:-1]
    body += b"".join(b',"%s":%d' % (name.encode(), 3) for name in draw(st.lists(MEMBERS, max_size=1)))
    if draw(st.integers(0, 9)) == 0:
        return body + b"}\n"
    return body + b',"crc":"%08x"}\n' % (crc32(body) ^ (draw(st.integers(0, 9)) == 0))


def records(data: bytes) -> list[Record]:
    reader = Reader("x")
    return [*reader.feed(data), *reader.close()]


def refuse(line: bytes) -> FrameLine:
    raise ValueError(line)


def member_by_member(data: bytes) -> list[Record]:
    """Read without the decoder of usual lines."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading, "decode_line", refuse)
        patch.setattr(reading, "decode_lines", refuse)
        return records(data)


@given(st.lists(usual_lines() | RECORDS.map(lambda record: record_line(3, record)), max_size=8))
def test_any_lines_give_the_same_records_either_way(drawn: list[bytes]) -> None:
    data = HEADER + b"".join(drawn)
    assert records(data) == member_by_member(data)


@given(st.lists(usual_lines(), max_size=6).map(b"".join).flatmap(cut))
def test_any_cut_gives_the_same_records(pieces: list[bytes]) -> None:
    reader = Reader("x")
    cut_up = [record for piece in (HEADER, *pieces) for record in reader.feed(piece)]
    assert [*cut_up, *reader.close()] == records(HEADER + b"".join(pieces))


HTTP = lines(
    [
        Open(
            at_ns=1,
            stream=0,
            sender="client",
            name="request",
            framing="body",
            connection=1,
            transaction=1,
            head=b"POST / HTTP/1.1",
        ),
        Frame(0, 2, 2, b"{}"),
        Close(at_ns=3, stream=0, by="client", how="eof"),
        Frame(1, 4, 4, b"data: {}\n\n", chunks=(10,)),
    ],
    end_ns=None,
)


def test_http_is_read_in_the_usual_way_too(monkeypatch: pytest.MonkeyPatch) -> None:
    reader, begin = Reader("x"), HTTP.index(b"\n") + 1
    reader.feed(HTTP[:begin])
    monkeypatch.setattr(Reader, "_read_lines", None)  # the way of blocks with a line that is not usual
    assert len(reader.feed(HTTP[begin:])) == 4


@given(st.integers(0, len(WHOLE) - 1), st.integers(0, 255))
def test_a_changed_byte_gives_the_same_damage_either_way(place: int, byte: int) -> None:
    data = bytearray(WHOLE)
    data[place] = byte
    try:
        expected = member_by_member(bytes(data))
    except CaptureError:
        with pytest.raises(CaptureError):
            records(bytes(data))
        return
    assert records(bytes(data)) == expected


def test_batches_hold_usual_frames_as_lines_and_all_else_as_records() -> None:
    (batch, rest) = CaptureRecords(lambda: nullcontext(io.BytesIO(WHOLE)), "x").batches()
    kinds = [type(record) for record in [*batch, *rest]]
    assert (kinds.count(FrameLine), kinds.count(Frame)) == (3, 0)


def test_records_are_taken_once_one_by_one_or_in_a_loop(tmp_path: Path) -> None:
    path = tmp_path / "x.mcpspy"
    path.write_bytes(WHOLE)
    taken = read(path)
    first = next(taken)
    assert [first, *taken] == records(WHOLE)
    assert list(taken) == []
