"""Captures played to the recorded client: it sends what it sent, and gets, byte for byte, what it got."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from mcpspy.capture.file.reader import read
from mcpspy.records import CLIENT, Frame
from mcpspy.replay.mock.matching import RequestMatcher
from mcpspy.replay.mock.replies import is_served, read_replies
from mcpspy.replay.mock.scheduled_send import ScheduledSend
from mcpspy.replay.mock.script import Script
from mcpspy.transcript.decoder import Decoder
from mcpspy.transcript.message import Message
from mcpspy.transcript.model import CaptureInfo, Exchange, Kind, Transcript, UnpairedMessage
from mcpspy.transcript.transcribe import transcribe
from mcpspy.wire.json_spans import span_at
from mcpspy.wire.lines import one_line
from tests.conftest import ROOT

REAL = sorted([*(ROOT / "captures").glob("*.mcpspy"), *(ROOT / "tests" / "transcript" / "recorded").glob("*.mcpspy")])
ODD = sorted((ROOT / "tests" / "findings").glob("*.mcpspy"))
AT_ONCE = 25
"""Captures of a test, which takes a millisecond for each, and as much for itself."""


class Player:
    """The recorded client. `heard` are the lines that the script sent, without the ids of the server's own requests."""

    def __init__(self, transcript: Transcript) -> None:
        self.heard: list[bytes] = []
        replies = read_replies(transcript)
        self._script = Script(replies, RequestMatcher(replies.exchanges).cursor())
        self._decoder = Decoder(CaptureInfo(0))
        self._asked: list[bytes] = []
        """The live ids of the server's requests that wait for their answers."""
        self._live: dict[int, bytes] = {}
        """The same ids by the rows of the recorded requests."""

    def play(self, transcript: Transcript) -> list[bytes]:
        self._hear(self._script.open())
        for message, row in in_order(transcript):
            if message.sender == CLIENT and message.raw and is_heard(row):
                self._say(message, row)
        self._hear(self._script.close())
        return sorted(self.heard)

    def _say(self, message: Message, row: Exchange | UnpairedMessage) -> None:
        line = one_line(message.raw)
        is_answer = isinstance(row, Exchange) and row.sender != CLIENT and message.kind in (Kind.RESULT, Kind.ERROR)
        if is_answer and row.row in self._live:
            line = with_id(line, self._live[row.row])
        for item in self._decoder.feed(Frame(0, 0, 0, line)):
            if isinstance(item, Message):
                self._hear(self._script.feed(item))

    def _hear(self, sends: list[ScheduledSend]) -> None:
        for send in sends:
            if not self._script.is_due(send) or not send.data:
                continue
            data = send.data
            waiting = {id: exchange.row for id, (_, exchange) in self._script._server_requests.items()}
            at = span_at(data, ("id",))
            id = "" if at is None or b'"method"' not in data else data[at[0] : at[1]].decode()
            if id in waiting:
                self._live[waiting[id]] = id.encode()
                data = with_id(data, b"ours")
            self.heard.append(one_line(data))


def with_id(line: bytes, id: bytes) -> bytes:
    at = span_at(line, ("id",))
    assert at is not None
    return line[: at[0]] + id + line[at[1] :]


def is_heard(row: Exchange | UnpairedMessage) -> bool:
    """Return whether it reached the server: HTTP refuses some requests by itself."""
    return isinstance(row, UnpairedMessage) or row.sender != CLIENT or is_served(row)


def in_order(transcript: Transcript) -> Iterator[tuple[Message, Exchange | UnpairedMessage]]:
    rows = [row for row in transcript.rows if isinstance(row, Exchange | UnpairedMessage)]
    messages = [(message, row) for row in rows for message in (row.messages if isinstance(row, Exchange) else [row.message])]
    yield from sorted(messages, key=lambda pair: (pair[0].at_ns, pair[0].number))


def recorded(transcript: Transcript) -> list[bytes]:
    """List what the server sent, without HTTP refusals."""
    lines = []
    for message, row in in_order(transcript):
        if message.sender == CLIENT or not is_heard(row):
            continue
        transaction = transcript.captures[message.capture].transaction_of(message.stream)
        if isinstance(row, UnpairedMessage) and transaction is not None and not transaction.is_stream:
            continue
        line = one_line(message.raw)
        lines.append(with_id(line, b"ours") if message.kind is Kind.REQUEST else line)
    return sorted(lines)


@pytest.mark.parametrize("path", REAL, ids=lambda path: path.stem)
def test_the_recorded_client_hears_what_it_heard(path: Path) -> None:
    transcript = transcribe(read(str(path)), with_findings=False)
    assert Player(transcript).play(transcript) == recorded(transcript)


@pytest.mark.parametrize("first", range(0, len(ODD), AT_ONCE))
def test_every_capture_can_be_played(first: int) -> None:
    for path in ODD[first : first + AT_ONCE]:
        transcript = transcribe(read(str(path)), with_findings=False)
        for line in Player(transcript).play(transcript):
            assert line.endswith(b"\n"), path
            assert line.count(b"\n") == 1, path
