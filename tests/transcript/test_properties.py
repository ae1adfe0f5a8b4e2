"""Properties of all transcripts, however their records are cut, tested with generated dialogues."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from mcpspy.capture.file.format import header_line, record_line
from mcpspy.capture.file.reader import Reader
from mcpspy.records import Close, Damage, End, Exit, Frame, Gap, Header, Note, Open, Partial, Record, Spawn, Stall, Unknown
from mcpspy.transcript.findings.run import findings
from mcpspy.transcript.model import Exchange, Kind, Log, Message, Transcript, UnpairedMessage
from mcpspy.transcript.transcribe import Transcriber, transcribe
from tests.transcript.dialogue import (
    Dialogue,
    cancelled,
    error,
    make_header,
    notification,
    progress,
    request,
    result,
    spelled,
    tool_call,
)
from tests.transcript.traffic import Traffic

IDS = st.sampled_from([0, 1, 2, "1", "2", 1.0, None, 10**30, "a"])
MESSAGES = st.one_of(
    st.builds(request, IDS),
    st.builds(tool_call, IDS, token=IDS),
    st.builds(result, IDS, st.sampled_from([{}, {"isError": True}, 5])),
    st.builds(error, IDS),
    st.builds(progress, IDS),
    st.builds(cancelled, IDS),
    st.just(notification()),
)
JSON = MESSAGES | st.lists(MESSAGES, max_size=3) | st.recursive(st.none() | IDS, st.lists, max_leaves=4)
LINES = st.builds(lambda value: json.dumps(value).encode() + b"\n", JSON) | st.sampled_from(
    [
        b"junk\n",
        b"\n",
        b"{\n",
        b'{"jsonrpc":"2.0","method":"x"}\r\n',
        b"\xff\xfe\n",
        b'{"id":1,"result":NaN}\n',
        b'{"id":1} {}\n',
    ]
)
STREAMS = st.integers(-1, 4)
DAMAGE_REASONS = st.sampled_from(["torn", "crc", "json", "shape", "number", "edited"])


def frame(stream: int, data: bytes, part: bool) -> Frame:  # noqa: FBT001 - drawn by hypothesis
    return Frame(stream, 0, 0, data, part)


NUMBERS = st.integers(0, 3)
HEADS = st.sampled_from(
    [
        b"POST /mcp HTTP/1.1\r\nContent-Type: application/json\r\n\r\n",
        b"POST /mcp HTTP/1.1\r\nMcp-Session-Id: s\r\n\r\n",
        b"POST /messages?s=1 HTTP/1.1\r\n\r\n",
        b"GET /sse HTTP/1.1\r\n\r\n",
        b"GET /mcp HTTP/1.1\r\nMcp-Session-Id: s\r\nLast-Event-ID: 1\r\n\r\n",
        b"DELETE /mcp HTTP/1.1\r\nMcp-Session-Id: s\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nMcp-Session-Id: s\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Encoding: gzip\r\n\r\n",
        b"HTTP/1.1 202 Accepted\r\n\r\n",
        b"HTTP/1.1 103 Early Hints\r\n\r\n",
        b"HTTP/1.1 404\n\n",
        b"\xff",
        b"",
    ]
)
EVENTS = st.one_of(
    JSON.map(lambda value: b"id: 1\ndata: " + json.dumps(value).encode() + b"\n\n"),
    st.sampled_from(
        [
            b"event: endpoint\ndata: /messages?s=1\n\n",
            b'event: endpoint\ndata: {"uri": "http://[/"}\n\n',
            b": ping\n\n",
            b"data: [DONE]\n\n",
            b"id: 1\ndata:\n\n",
        ]
    ),
)
HTTP_RECORDS: st.SearchStrategy[Record] = st.one_of(
    st.builds(
        lambda stream, sender, number, framing, head: Open(
            at_ns=0, stream=stream, sender=sender, name="request" if sender == "client" else "response", framing=framing,
            transaction=number, connection=1, head=head,
        ),
        NUMBERS, st.sampled_from(["client", "server"]), NUMBERS, st.sampled_from(["body", "sse", "lines"]), HEADS,
    ),
    st.builds(frame, NUMBERS, LINES | EVENTS, st.booleans()),
    st.builds(
        lambda stream, by, how: Close(at_ns=0, stream=stream, by=by, how=how),
        NUMBERS, st.sampled_from(["client", "server", "mcpspy"]), st.sampled_from(["eof", "reset"]),
    ),
    st.builds(lambda number: Note(at_ns=0, topic="upstream", text="x", extra={"transaction": number}), NUMBERS | st.just([])),
)  # fmt: skip
RECORDS: st.SearchStrategy[Record] = st.one_of(
    HTTP_RECORDS,
    st.builds(frame, STREAMS, LINES, st.just(False)),
    st.builds(frame, STREAMS, LINES, st.just(False)),
    st.builds(frame, STREAMS, st.binary(max_size=20), st.booleans()),
    st.builds(lambda stream: Frame(stream, 0, 0, b"", length=9, sha256="00"), STREAMS),
    st.builds(lambda stream: Open(at_ns=0, stream=stream, sender="client", name="x", framing="sse"), STREAMS),
    st.builds(
        lambda stream, how: Close(at_ns=0, stream=stream, by="client", how=how), STREAMS, st.sampled_from(["eof", "broken"])
    ),
    st.builds(lambda stream, data: Partial(at_ns=0, stream=stream, first_ns=0, data=data), STREAMS, st.binary(max_size=9)),
    st.builds(
        lambda stream, lasted: Stall(at_ns=0, stream=stream, waiting_bytes=5, lasted_ns=lasted), STREAMS, st.none() | st.just(9)
    ),
    st.builds(lambda reason: Damage(at_ns=0, line=2, offset=9, reason=reason, text="x"), DAMAGE_REASONS),
    st.builds(lambda code: Exit(at_ns=0, pid=1, code=code), st.integers(0, 2)),
    st.builds(lambda: End(at_ns=0, frames=0, bytes=0)),
    st.builds(lambda: Gap(at_ns=0, since_ns=0, frames=1, bytes=1, why="x")),
    st.builds(lambda: Note(at_ns=0, topic="signal", text="x")),
    st.builds(lambda: Spawn(at_ns=0, pid=1)),
    st.builds(lambda: Unknown(at_ns=0, kind="x")),
    st.builds(lambda: make_header(monotonic_ns=5)),
)


def numbered(records: list[Record]) -> list[Record]:
    """Number `records`, and put them in order of time."""
    for number, record in enumerate(records):
        record.number = number
        if not isinstance(record, Header):
            record.at_ns = number * 1000
        if isinstance(record, Frame):
            record.first_ns = record.at_ns
    return records


CAPTURES = st.one_of(
    st.lists(RECORDS, max_size=25).map(lambda records: numbered([*Dialogue().records, *records])),
    st.lists(HTTP_RECORDS, max_size=25).map(lambda records: numbered([*Traffic().records, *records])),
)
ANY_RECORDS = st.lists(RECORDS, max_size=15).map(numbered)
DIALOGUES = st.lists(st.tuples(st.integers(0, 2), LINES), max_size=20)


def dialogue_of(lines: list[tuple[int, bytes]]) -> Dialogue:
    dialogue = Dialogue()
    for stream, data in lines:
        dialogue.line(stream, data)
    return dialogue


def everything_said(transcript: Transcript) -> list[tuple[int, bytes]]:
    """Return stream and bytes of all messages and log lines, as they came."""
    logs = [(row.number, 2, row.raw) for row in transcript.rows if isinstance(row, Log)]
    messages = [(message.number, message.stream, message.raw) for message in transcript.messages]
    return [(stream, raw) for _, stream, raw in sorted(logs + messages)]


@given(ANY_RECORDS)
def test_no_records_in_any_order_raise(records: list[Record]) -> None:
    transcribe(records)


@given(st.lists(st.tuples(STREAMS, st.binary()), max_size=8))
def test_no_bytes_on_any_stream_raise(frames: list[tuple[int, bytes]]) -> None:
    transcribe(numbered([*Dialogue().records, *(Frame(stream, 0, 0, data) for stream, data in frames)]))


@given(CAPTURES, CAPTURES)
def test_merging_captures_loses_nothing(first: list[Record], other: list[Record]) -> None:
    alone = [transcribe(first), transcribe(other)]
    together = transcribe(first, other)
    assert len(together.rows) == sum(len(transcript.rows) for transcript in alone)
    assert len(together.messages) == sum(len(transcript.messages) for transcript in alone)


@given(CAPTURES)
def test_record_by_record_gives_what_all_at_once_gives(records: list[Record]) -> None:
    transcriber = Transcriber()
    for record in records:
        transcriber.feed(record)
    transcriber.close()
    assert spelled(transcriber.transcript) == spelled(transcribe(records))


def without_scope(value: Any) -> Any:
    """Leave scopes out of what `spelled` returned: many rows share one, and what is learned of it later changes no row."""
    if isinstance(value, tuple | list):
        return [] if value[:1] == ("Scope",) else [without_scope(item) for item in value]
    return value


@given(CAPTURES)
def test_the_changed_rows_are_the_whole_transcript(records: list[Record]) -> None:
    transcriber = Transcriber()
    known: dict[int, Any] = {}
    for record in records:
        known.update((id(row), without_scope(spelled(row))) for row in transcriber.feed(record))
    known.update((id(row), without_scope(spelled(row))) for row in transcriber.close())
    assert known == {id(row): without_scope(spelled(row)) for row in transcriber.transcript.rows}


@given(CAPTURES)
def test_looking_for_findings_changes_nothing(records: list[Record]) -> None:
    transcript = transcribe(records)
    before = spelled(transcript)
    assert (findings(transcript), spelled(transcript)) == (transcript.findings, before)


@given(DIALOGUES)
def test_every_line_is_in_the_transcript_once(lines: list[tuple[int, bytes]]) -> None:
    single = [(stream, data) for stream, data in lines if not data.startswith(b"[")]
    assert everything_said(dialogue_of(single).transcript) == single


@given(DIALOGUES)
def test_rows_are_numbered_without_gaps(lines: list[tuple[int, bytes]]) -> None:
    rows = [row.row for row in dialogue_of(lines).transcript.rows if isinstance(row, Exchange | UnpairedMessage)]
    assert rows == list(range(1, len(rows) + 1))


@given(DIALOGUES)
def test_an_exchange_is_answered_by_the_other_side_and_later(lines: list[tuple[int, bytes]]) -> None:
    for exchange in dialogue_of(lines).exchanges:
        for response in [*exchange.more_responses, *([exchange.response] if exchange.response else [])]:
            assert response.sender != exchange.sender
            assert response.number >= exchange.request.number
            assert response.kind in (Kind.RESULT, Kind.ERROR)


@given(DIALOGUES, st.lists(st.integers(1, 9), min_size=1))
def test_recording_in_parts_makes_no_difference(lines: list[tuple[int, bytes]], sizes: list[int]) -> None:
    whole, parted = Dialogue(), Dialogue()
    for index, (stream, data) in enumerate(lines):
        cut = min(sizes[index % len(sizes)], len(data) - 1)
        whole.line(stream, data)
        parted.parts(stream, *(part for part in (data[:cut], data[cut:]) if part))
    assert [plain(message) for message in parted.transcript.messages] == [
        plain(message) for message in whole.transcript.messages
    ]


def plain(message: Message) -> tuple[Any, ...]:
    return message.raw, message.kind, message.id, message.method, message.correlation_key, message.flaws, message.reason


@given(CAPTURES, st.lists(st.integers(1, 40), min_size=1))
def test_reading_a_capture_in_pieces_makes_no_difference(records: list[Record], sizes: list[int]) -> None:
    written = [record for record in records[1:] if not isinstance(record, Damage | Header)]
    lines = [record_line(number, record) for number, record in enumerate(written, 1)]
    data = b"".join([header_line(make_header()), *lines])
    reader, transcriber, at = Reader(), Transcriber(), 0
    while at < len(data):
        size = sizes[at % len(sizes)]
        for record in reader.feed(data[at : at + size]):
            transcriber.feed(record)
        at += size
    transcriber.close()
    assert spelled(transcriber.transcript) == spelled(transcribe(Reader().feed(data)))
