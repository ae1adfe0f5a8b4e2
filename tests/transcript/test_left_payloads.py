"""Payloads that are left in the file of their capture, and read when somebody looks at them."""

import re
from binascii import crc32
from pathlib import Path

import pytest

import mcpspy
from mcpspy.capture.file import frames, reader
from mcpspy.capture.file.format import header_line, record_line
from mcpspy.capture.file.reader import read
from mcpspy.errors import CaptureError
from mcpspy.records import Header
from mcpspy.transcript.model import Exchange, Message, Transcript, UnpairedMessage
from mcpspy.transcript.transcribe import transcribe
from tests.conftest import ROOT
from tests.transcript.dialogue import Dialogue, request, result, spelled
from tests.transcript.traffic import Traffic

LONG = "a long text, with “quotes” and \\ " * 1000


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every capture be large."""
    monkeypatch.setattr(frames, "LARGE_BYTES", 0)


def capture_of(dialogue: Dialogue | Traffic) -> bytes:
    lines = [
        header_line(record) if isinstance(record, Header) else record_line(record.number, record) for record in dialogue.records
    ]
    return b"".join(lines)


CALLS = 4
SHORT = request(CALLS + 1)


def dialogue() -> Dialogue:
    talk = Dialogue()
    for id in range(1, CALLS + 1):
        talk.client(request(id, "tools/call", {"name": "say", "arguments": {"text": LONG}}))
        talk.server(result(id, {"content": [{"type": "text", "text": LONG}]}))
    return talk.client(SHORT)


def messages(transcript: Transcript) -> list[Message]:
    rows = [row for row in transcript.rows if isinstance(row, Exchange | UnpairedMessage)]
    return [message for row in rows for message in (row.messages if isinstance(row, Exchange) else [row.message])]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "talk.mcpspy"
    path.write_bytes(capture_of(dialogue()))
    return path


@pytest.mark.usefixtures("large")
def test_long_payloads_of_a_large_capture_are_not_kept_in_memory(path: Path) -> None:
    transcript = mcpspy.open(path)
    held = [message.payload for message in messages(transcript)]
    assert held.count(b"") == 2 * CALLS
    assert b"".join(held) == messages(transcript)[-1].raw  # the short one alone
    assert spelled(transcript) == spelled(transcribe(read(path)))
    assert spelled(transcript) == spelled(transcribe([*read(path)]))  # records, of which nobody knows the file


def test_payloads_of_a_small_capture_are_kept(path: Path) -> None:
    assert [message.payload for message in messages(mcpspy.open(path))] == [m.raw for m in messages(mcpspy.open(path))]


@pytest.mark.usefixtures("large")
@pytest.mark.parametrize("change", ["cut", "flipped", "replaced", "removed"])
def test_a_capture_that_was_changed_since_is_no_other_story(path: Path, change: str) -> None:
    transcript = mcpspy.open(path)
    data = bytearray(path.read_bytes())
    if change == "cut":
        del data[300:]
    elif change == "flipped":
        for match in re.finditer(b"a long text, with", bytes(data)):
            data[match.start()] ^= 1
    elif change == "replaced":
        data = bytearray(capture_of(dialogue().client(SHORT)).replace(b"a long text", b"another one"))
    path.write_bytes(data)
    if change == "removed":
        path.unlink()
    with pytest.raises(CaptureError, match=r"talk\.mcpspy.*changed or removed since it was read; run the command again"):
        [message.raw for message in messages(transcript)]


@pytest.mark.usefixtures("large")
def test_events_and_bodies_of_http_are_left_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "LONG_BYTES", 0)
    for name in ("streamable", "sse"):
        path = ROOT / "captures" / f"{name}.mcpspy"
        left = messages(mcpspy.open(path))
        assert sum(message.place is not None for message in left) > len(left) / 2
        assert [message.raw for message in left] == [message.raw for message in messages(transcribe([*read(path)]))]


@pytest.mark.usefixtures("large")
@pytest.mark.parametrize("place", ["[0,10]", "[-1,5]", "[0,4611686018427387904]", "[99999999999999999999,5]"])
def test_no_line_says_where_it_is_itself(path: Path, place: str) -> None:
    header, *lines = path.read_bytes().splitlines(keepends=True)
    last = lines[-1][: -len(',"crc":"01234567"}\n')] + b',"":%b' % place.encode()
    path.write_bytes(b"".join([header, *lines[:-1], b'%b,"crc":"%08x"}\n' % (last, crc32(last))]))
    assert [message.raw for message in messages(mcpspy.open(path))] == [
        message.raw for message in messages(transcribe(dialogue().records))
    ]


@pytest.mark.usefixtures("large")
def test_a_batch_of_one_in_an_event_is_what_it_was(tmp_path: Path) -> None:
    http, path = Traffic(), tmp_path / "batch.mcpspy"
    answer = result(1, {"content": [{"type": "text", "text": LONG}]})
    http.post(request(1, "tools/call", {"name": "say"})).stream().event([answer]).close()
    path.write_bytes(capture_of(http))
    message = messages(mcpspy.open(path))[-1]
    assert (message.kind, message.size, message.body) == ("result", len(message.raw), answer)
