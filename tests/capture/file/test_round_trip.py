"""Records are read as they were written, whatever they hold and however the file is cut."""

import json
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.capture.file.format import header_line, record_line
from mcpspy.capture.file.reader import Reader
from mcpspy.plain_lines import LARGE_BYTES, message_lines, plain_frame_line
from mcpspy.records import Frame, Header, Record
from tests.capture.making import header
from tests.capture.strategies import HEADERS, RECORDS, cut


def numbered(records: list[Record]) -> list[Record]:
    for number, record in enumerate(records, 1):
        record.number = number
    return records


def written(first: Header, records: list[Record]) -> bytes:
    return header_line(first) + b"".join(record_line(number, record) for number, record in enumerate(records, 1))


def read(pieces: list[bytes]) -> list[Record]:
    reader = Reader()
    return [record for piece in pieces for record in reader.feed(piece)] + reader.close()


@given(first=HEADERS, records=st.lists(RECORDS, max_size=6), data=st.data())
def test_any_records_cut_anywhere_are_read_as_they_were_written(
    first: Header, records: list[Record], data: st.DataObject
) -> None:
    assert read(data.draw(cut(written(first, records)))) == [first, *numbered(records)]


@given(first=HEADERS, records=st.lists(RECORDS, max_size=3))
def test_every_line_is_json_whose_last_member_is_the_crc_of_what_is_before_it(first: Header, records: list[Record]) -> None:
    for line in written(first, records).split(b"\n")[:-1]:
        assert list(json.loads(line))[-1] == "crc"
        before, _, crc = line.rpartition(b',"crc":')
        assert crc == b'"%08x"}' % crc32(before)


@pytest.mark.parametrize("size", [LARGE_BYTES - 1, LARGE_BYTES, 70_000])
@pytest.mark.parametrize(
    "pattern",
    [
        b"x",
        b'{"a":"\\n"}',
        b"\\",
        b'"',
        b"\x00",
        b"\t",
        "é".encode(),
        "天気😀".encode(),
        b"\xff",
        b"a\nb",
        "\u2028".encode(),
        b"\x7f",
    ],
)
@pytest.mark.parametrize("tail", [b"", b"\n", b"\r\n"])
def test_large_frames_are_read_as_they_were_written(size: int, pattern: bytes, tail: bytes) -> None:
    frame = Frame(0, 5, 4, pattern * (size // len(pattern)) + tail)
    assert read([written(header(), [frame])]) == [header(), *numbered([frame])]


@given(st.binary(max_size=40).map(lambda data: data * 60))
def test_any_large_frame_is_read_as_it_was_written(data: bytes) -> None:
    frame = Frame(0, 5, 5, data)
    assert read([written(header(), [frame])]) == [header(), *numbered([frame])]


@given(st.integers(1, 2**40), st.integers(0, 2**40), st.lists(st.text(max_size=40), min_size=1, max_size=3))
def test_the_fast_functions_write_the_same_line_as_the_general_one(number: int, at_ns: int, texts: list[str]) -> None:
    frames = [text.encode() + b"\n" for text in texts]
    lines = [record_line(number + count, Frame(1, at_ns, at_ns, data)) for count, data in enumerate(frames)]
    assert plain_frame_line(number, 1, at_ns, frames[0]) == lines[0]
    assert message_lines(number, 1, at_ns, "", frames, "", False) == b"".join(lines)


def test_a_damage_record_is_never_written() -> None:
    from mcpspy.records import Damage

    with pytest.raises(TypeError, match="never written"):
        record_line(1, Damage(at_ns=0, line=1, offset=0, reason="crc", text=""))
