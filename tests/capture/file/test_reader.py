"""Tests of damaged files: sound lines are read, the others become damage in their place, and nothing else is ever raised."""

import gc
import io
import json
import os
from collections.abc import Iterator
from pathlib import Path
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.capture.file.format import header_line, record_line
from mcpspy.capture.file.reader import MAX_LINE_BYTES, Reader, read
from mcpspy.capture.file.verify import Status, verify_file
from mcpspy.errors import CaptureError
from mcpspy.records import Close, Damage, Frame, Header, Note, Record, Unknown
from tests.capture.making import closes, header, lines, opens, talk
from tests.capture.strategies import cut
from tests.conftest import ROOT
from tests.tiers import Tier

WHOLE = lines([*opens(), *talk(), Frame(0, 3_500, 3_500, b"\xff\x00\n"), *closes()])
LINES = WHOLE.splitlines(keepends=True)


def records(data: bytes) -> list[Record]:
    reader = Reader("x.mcpspy")
    return [*reader.feed(data), *reader.close()]


def sound(data: bytes) -> list[Record]:
    return [record for record in records(data) if not isinstance(record, Damage)]


def reasons(data: bytes) -> list[str]:
    return [record.reason for record in records(data) if isinstance(record, Damage)]


ALL = records(WHOLE)


def test_a_whole_capture_reads_without_damage() -> None:
    assert (len(ALL), reasons(WHOLE)) == (12, [])


def test_a_capture_truncated_at_any_byte_reads_up_to_there() -> None:
    ends = [0]
    for line in LINES:
        ends.append(ends[-1] + len(line))
    for length in range(len(WHOLE)):
        whole = sum(1 for end in ends[1:] if end <= length + 1)  # a line that lacks but its newline is whole
        assert sound(WHOLE[:length]) == ALL[:whole], length
        assert reasons(WHOLE[:length]) == ([] if length in ends[1:] else ["torn"]), length


def test_a_capture_truncated_at_any_byte_verifies_as_incomplete() -> None:
    for length in range(len(WHOLE)):
        assert verify_file(io.BytesIO(WHOLE[:length]), "x").status is Status.INCOMPLETE, length


def flips(tier: Tier) -> Iterator[tuple[int, bytes]]:
    """Yield for every so many bits the byte's offset, and the file with that bit flipped."""
    step = tier(sample=7, more=2, full=1)
    for bit in range(0, len(WHOLE) * 8, step):
        flipped = bytearray(WHOLE)
        flipped[bit // 8] ^= 1 << bit % 8
        yield bit // 8, bytes(flipped)


def test_any_flipped_bit_is_noticed_and_costs_no_other_line(tier: Tier) -> None:
    for place, data in flips(tier):
        line = WHOLE[:place].count(b"\n")
        lost = {line, line + 1} if WHOLE[place] == 0x0A else {line}  # a flipped newline makes one line of two
        try:
            read_records = records(data)
        except CaptureError:
            assert line == 0, place
            continue
        assert any(isinstance(record, Damage) for record in read_records), place
        by_number = {record.number: record for record in read_records if not isinstance(record, Damage)}
        assert [by_number.get(number) for number in range(12) if number not in lost] == [
            record for number, record in enumerate(ALL) if number not in lost
        ], place


def test_a_flipped_line_is_read_as_it_was_or_not_at_all(tier: Tier) -> None:
    for place, data in flips(tier):
        line = WHOLE[:place].count(b"\n")
        if line == 0:
            continue
        for record in sound(data):
            if record.number == line:  # the flip was in the name of the crc member
                left = record_line(line, record).rpartition(b',"crc"')[0]
                assert left.startswith(LINES[line].rpartition(b',"crc"')[0]), place


def test_any_flipped_bit_verifies_as_damaged_or_edited(tier: Tier) -> None:
    for place, data in flips(tier):
        try:
            summary = verify_file(io.BytesIO(data), "x")
        except CaptureError:
            continue
        edited = [problem.reason for problem in summary.problems] == ["edited"]
        torn = place == len(WHOLE) - 1
        assert summary.status is Status.DAMAGED or edited or torn, place


def never_raises(data: bytes) -> None:
    """Read these bytes; hypothesis fails on any exception that gets out."""
    try:
        records(data)
    except CaptureError:
        pass


@given(st.binary())
def test_arbitrary_bytes_raise_nothing_but_a_capture_error(data: bytes) -> None:
    never_raises(data)


@given(st.binary())
def test_arbitrary_bytes_after_a_header_raise_nothing(data: bytes) -> None:
    assert records(LINES[0] + data)[0] == ALL[0]


MEMBERS = """
n at_ns kind stream text base64 crc first_ns part chunks redacted descendants length sender framing name head forwarded mcpspy
min_reader parent tapped frames bytes missing
"""
NAMES = st.sampled_from(MEMBERS.split())
VALUES = st.recursive(
    st.sampled_from([None, True, "frame", "open", "gap", "client", "end"]) | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=6,
)


@given(st.lists(st.dictionaries(NAMES, VALUES, max_size=9), max_size=4), st.sampled_from([b"", LINES[0]]))
def test_lines_with_any_values_in_the_right_places_raise_nothing(objects: list[dict[str, object]], before: bytes) -> None:
    never_raises(before + b"".join(json.dumps(line).encode() + b"\n" for line in objects))


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"hello", "json"),
        (b"[1,2]", "json"),
        (b"[" * 100_000, "json"),
        (b'{"n":' + b"9" * 5_000 + b"}", "json"),
        (b'{"n":1,"at_ns":NaN,"kind":"note"}', "json"),
        (b"\xff\xfe", "json"),
        (b'{"n":1,"at_ns":1,"kind":"frame","stream":0,"text":"x","\xe3rc":"1"}', "json"),
        (b"\x00" * 50, "json"),
        (b"{}", "shape"),
        (b'{"n":1,"at_ns":1}', "shape"),
        (b'{"n":true,"at_ns":1,"kind":"note","topic":"x","text":"y"}', "shape"),
        (b'{"n":1,"at_ns":1,"kind":"frame","stream":0}', "shape"),
        (b'{"n":1,"at_ns":1,"kind":"frame","stream":0,"base64":"?"}', "shape"),
        (b'{"n":1,"at_ns":1,"kind":"frame","stream":0,"text":"x","redacted":[1]}', "shape"),
        (b'{"n":1,"at_ns":1,"kind":"frame","stream":0,"text":"x","chunks":[1e999]}', "shape"),
        (b'{"n":1,"at_ns":1,"kind":"open","stream":0,"sender":"nobody","name":"x","framing":"lines"}', "shape"),
        (b'{"n":1,"at_ns":1.5,"kind":"note","topic":"x","text":"y"}', "shape"),
        (b'{"n":1,"at_ns":4611686018427387905,"kind":"note","topic":"x","text":"y"}', "shape"),
        (b'{"n":1,"at_ns":-4611686018427387905,"kind":"frame","stream":0,"text":"x"}', "shape"),
        (b'{"n":1,"at_ns":1,"kind":"frame","stream":1e30,"text":"x"}', "shape"),
        (b'{"n":1,"at_ns":1,"kind":"frame","stream":0,"text":"x","chunks":[100000000000000000000]}', "shape"),
        (record_line(1, Note(at_ns=1, topic="x", text="y"))[:-1].replace(b"y", b"z"), "crc"),
    ],
)
def test_a_line_that_cannot_be_used_is_damage_in_its_place(line: bytes, reason: str) -> None:
    result = records(LINES[0] + line + b"\n" + record_line(2, Note(at_ns=1, topic="x", text="y")))
    assert [getattr(record, "reason", record.number) for record in result] == [0, reason, 2]
    damage = result[1]
    assert isinstance(damage, Damage)
    assert (damage.line, damage.offset, damage.data) == (2, len(LINES[0]), line)


def test_missing_records_are_reported() -> None:
    result = records(LINES[0] + b"".join(LINES[3:]))
    assert isinstance(result[1], Damage)
    assert (result[1].reason, result[1].text) == ("number", "records 1 to 2 are missing")


def test_a_record_without_its_crc_is_accepted_with_a_note() -> None:
    edited = LINES[5].rpartition(b',"crc"')[0].replace(b"ping", b"pong") + b"}\n"
    result = records(b"".join([*LINES[:5], edited, *LINES[6:]]))
    assert reasons(b"".join([*LINES[:5], edited, *LINES[6:]])) == ["edited"]
    assert isinstance(result[6], Frame)
    assert b"pong" in result[6].data


def test_members_may_come_in_any_order_and_with_blanks_on_an_edited_line() -> None:
    line = b'  { "text": "x\\n", "kind": "frame", "stream": 3, "at_ns": 5, "n": 1 }\n'
    assert sound(LINES[0] + line)[1:] == [Frame(3, 5, 5, b"x\n", number=1)]


def test_a_record_of_an_unknown_kind_is_kept_whole() -> None:
    result = sound(LINES[0] + b'{"n":1,"at_ns":5,"kind":"dance","steps":[1,{"a":null}]}\n')
    assert result[1:] == [Unknown(at_ns=5, kind="dance", number=1, extra={"steps": [1, {"a": None}]})]


def test_an_unknown_member_is_kept() -> None:
    result = sound(LINES[0] + b'{"n":1,"at_ns":5,"kind":"close","stream":0,"by":"client","how":"eof","why":{"x":1}}\n')
    assert result[1:] == [Close(at_ns=5, stream=0, by="client", how="eof", number=1, extra={"why": {"x": 1}})]


def test_a_header_of_a_newer_format_that_we_may_read_is_read() -> None:
    result = sound(header_line(header(format=9, min_reader=1, extra={"moon": "full"})))
    assert isinstance(result[0], Header)
    assert (result[0].format, result[0].extra) == (9, {"moon": "full"})


def test_a_header_that_is_flipped_to_a_newer_version_is_damage_and_no_newer_capture() -> None:
    result = records(WHOLE.replace(b'"min_reader":1', b'"min_reader":3', 1))
    assert reasons(WHOLE.replace(b'"min_reader":1', b'"min_reader":3', 1)) == ["crc"]
    assert result[2:] == ALL[1:]


@pytest.mark.parametrize("start", [b"\xef\xbb\xbf", b"  "])
def test_bytes_of_an_editor_before_the_header_do_no_harm(start: bytes) -> None:
    assert sound(start + WHOLE) == ALL


def test_windows_line_ends_are_read_with_a_note_on_every_line() -> None:
    data = WHOLE.replace(b"\n", b"\r\n")
    assert sound(data) == ALL
    assert set(reasons(data)) == {"edited"}


def test_a_capture_error_names_file_line_and_reason() -> None:
    with pytest.raises(CaptureError) as caught:
        records(b"hello\n")
    assert str(caught.value) == "x.mcpspy:1: this is not an mcpspy capture; captures are made by mcpspy run"


@pytest.mark.parametrize("data", [b"\x7fELF" + b"x" * 100, b"hello", b"[" * 10])
def test_a_file_that_is_no_capture_is_refused_before_its_first_line_ends(data: bytes) -> None:
    with pytest.raises(CaptureError):
        Reader().feed(data)


def test_an_endless_line_is_one_damage_and_is_not_kept() -> None:
    reader, piece = Reader(), b"x" * (1 << 22)
    reader.feed(LINES[0])
    result = [record for _ in range(2 * MAX_LINE_BYTES // len(piece)) for record in reader.feed(piece)]
    result += reader.feed(b"\n" + LINES[1])
    assert [type(record).__name__ for record in result] == ["Damage", "Open" if b"open" in LINES[1] else "Spawn"]
    assert isinstance(result[0], Damage)
    assert len(result[0].data) < 10_000


@given(data=st.data())
def test_a_damaged_capture_reads_the_same_however_it_is_cut(data: st.DataObject) -> None:
    spoilt = WHOLE.replace(b'"kind":"close"', b'"kind":"cloze"') + b"torn"
    reader = Reader("x.mcpspy")
    pieces = data.draw(cut(spoilt))
    assert [record for piece in pieces for record in reader.feed(piece)] + reader.close() == records(spoilt)


def test_a_file_that_is_being_written_is_read_as_it_grows(tmp_path: Path) -> None:
    path, reader, result = tmp_path / "x.mcpspy", Reader(), []
    with path.open("wb", buffering=0) as writing, path.open("rb", buffering=0) as reading:
        for start in range(0, len(WHOLE), 7):
            writing.write(WHOLE[start : start + 7])
            result += reader.feed(reading.read())
    assert result == ALL


def test_read_yields_the_records_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "x.mcpspy"
    path.write_bytes(WHOLE)
    assert [*read(path)] == ALL


def test_read_names_the_file_it_cannot_use(tmp_path: Path) -> None:
    path = tmp_path / "x.mcpspy"
    path.write_bytes(b"hello\n")
    with pytest.raises(CaptureError, match=r"x\.mcpspy:1"):
        list(read(path))


def test_the_crc_is_that_of_zlib() -> None:
    body, _, crc = LINES[1].rpartition(b',"crc":"')
    assert int(crc[:8], 16) == crc32(body)


def test_a_file_of_which_only_the_header_is_taken_is_closed_without_the_garbage_collector() -> None:
    gc.disable()
    try:
        before = os.listdir("/dev/fd")
        assert isinstance(next(iter(read(ROOT / "captures" / "everything.mcpspy"))), Header)
        assert os.listdir("/dev/fd") == before
    finally:
        gc.enable()
