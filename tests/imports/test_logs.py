"""Logs are imported: the same rows as in a tap's capture of the same traffic, and nothing that the log does not have."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy import Transcript, transcribe
from mcpspy import read as read_capture
from mcpspy.imports.formats import FORMATS, recognized
from mcpspy.imports.log_messages import messages_in
from mcpspy.imports.logs import LogImporter
from mcpspy.imports.source import Source
from mcpspy.records import CLIENT, SERVER, Close, End, Frame, Gap, Header, Open, Record
from tests.conftest import ROOT
from tests.imports.logging_clients import LOGS, log_of, rows_of

ASKS = '{"jsonrpc":"2.0","id":1,"method":"tools/list"}'
OPENS = '{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}'
ANSWERS = '{"jsonrpc":"2.0","id":0,"result":{}}'
STDIO = ("time", "git", "question", "filesystem", "memory", "everything")


def source(name: str = "weather.log") -> Source:
    return Source(name=name, format="log", wall_ns=1_700_000_000_000_000_000, sha256="ab")


def imported(text: str | bytes) -> list[list[Record]]:
    """Return the records of each session of a log."""
    importer = LogImporter(source())
    data = text if isinstance(text, bytes) else text.encode()
    sessions: dict[int, list[Record]] = {}
    for number, record in [*importer.feed(data), *importer.close()]:
        sessions.setdefault(number, []).append(record)
    return list(sessions.values())


def messages(records: list[Record]) -> list[tuple[str, str]]:
    """Return sender and text of each message, and of each line of stderr."""
    senders = {record.stream: record for record in records if isinstance(record, Open)}
    frames = (record for record in records if isinstance(record, Frame))
    return [
        ("stderr" if senders[frame.stream].name == "stderr" else senders[frame.stream].sender, frame.data.decode().strip())
        for frame in frames
    ]


def whole(records: list[Record]) -> Transcript:
    for number, record in enumerate(records):
        record.number = number
    return transcribe(records)


@pytest.mark.parametrize("kind", LOGS)
@pytest.mark.parametrize("name", STDIO)
def test_a_log_makes_the_rows_of_the_taps_capture(name: str, kind: str) -> None:
    capture = ROOT / "captures" / f"{name}.mcpspy"
    text = log_of(capture, LOGS[kind])
    form = recognized(text.encode())
    assert form is not None
    assert form.name == "log"
    (records,) = imported(text)
    tapped = transcribe(read_capture(capture))
    assert rows_of(whole(records)) == rows_of(tapped)


@pytest.mark.parametrize("name", STDIO)
def test_a_log_makes_the_findings_of_the_taps_capture(name: str) -> None:
    capture = ROOT / "captures" / f"{name}.mcpspy"
    (records,) = imported(log_of(capture, LOGS["desktop"]))
    tapped = {finding.rule for finding in transcribe(read_capture(capture)).findings}
    assert {finding.rule for finding in whole(records).findings} <= tapped


def test_words_of_the_servers_own_log_tell_the_sender() -> None:
    log = f"[main] INFO - started\n[main] DEBUG - 收到请求: {OPENS}\n[main] DEBUG - 发送响应: {ANSWERS}\n"
    (records,) = imported(log)
    assert messages(records) == [("stderr", "[main] INFO - started"), (CLIENT, OPENS), (SERVER, ANSWERS)]


def test_a_log_without_times_makes_a_capture_without_times() -> None:
    (records,) = imported(f"{OPENS}\n{ANSWERS}\n")
    header = records[0]
    assert isinstance(header, Header)
    assert header.tapped["imported"]["facts"]["times"] == "missing"
    assert {record.at_ns for record in records} == {0}
    (exchange,) = whole(records).exchanges
    assert exchange.duration_ns is None


def test_the_header_names_the_file_its_digest_and_its_facts() -> None:
    (records,) = imported(f"2025-05-07T10:00:00.000Z [a] [info] Message from client: {OPENS}\n")
    header = records[0]
    assert isinstance(header, Header)
    assert header.tapped["imported"] == {
        "format": "log",
        "file": "weather.log",
        "bytes": 0,
        "sha256": "ab",
        "facts": {
            "bytes": "reconstructed",
            "senders": "exact",
            "times": "reconstructed",
            "ends": "reconstructed",
            "noise": "missing",
            "process": "missing",
            "heads": "missing",
            "beginning": "exact",
        },
    }


def test_a_server_of_claude_desktop_that_is_started_again_makes_another_session() -> None:
    begin = "2025-05-07T10:00:00.000Z [weather] [info]"
    log = (
        f"{begin} Initializing server...\n{begin} Message from client: {OPENS}\n{begin} Server transport closed\n"
        f"{begin} Initializing server...\r\n{begin} Message from client: {OPENS}\r\nTraceback: it broke\r\n"
    )
    first, second = imported(log)
    assert [record.by for record in first if isinstance(record, Close)] == [SERVER]
    assert messages(second) == [(CLIENT, OPENS), ("stderr", "Traceback: it broke")]
    assert isinstance(first[-1], End)


def test_a_log_of_several_servers_makes_a_session_of_each() -> None:
    log = "".join(f"2025-05-07T10:00:00.000Z [info] [{name}] Message from client: {OPENS}\n" for name in ("weather", "git"))
    labels = [records[0].label for records in imported(log) if isinstance(records[0], Header)]
    assert labels == ["weather", "git"]


def test_a_message_that_the_log_cut_is_a_gap() -> None:
    log = (
        f"2025-05-07T10:00:00.000Z [a] [info] Message from client: {OPENS}\n"
        '2025-05-07T10:00:01.000Z [a] [info] Message from server: {"jsonrpc":"2.0","id":0,"result":{"too[2051 chars truncated]\n'
    )
    (records,) = imported(log)
    (gap,) = [record for record in records if isinstance(record, Gap)]
    assert gap.why == "line 2 of the log has only the beginning of a message"
    assert not [finding for finding in whole(records).findings if finding.rule == "unanswered-request"]


def test_a_message_that_two_loggers_wrote_comes_once() -> None:
    (records,) = imported(f">>> {OPENS}\nDEBUG sending {OPENS}\n")
    assert messages(records) == [(CLIENT, OPENS)]


def test_a_message_whose_sender_nothing_tells_is_left_out_and_said_so() -> None:
    ping = '{"jsonrpc":"2.0","id":7,"method":"ping"}'
    (records,) = imported(f"{OPENS}\n{ping}\n")
    (gap,) = [record for record in records if isinstance(record, Gap)]
    assert gap.why == "left out: 1 × a message whose sender is unknown, line 2"


def test_a_request_at_the_end_of_a_log_is_not_said_to_be_unanswered() -> None:
    (records,) = imported(f"{OPENS}\n{ANSWERS}\n{ASKS}\n")
    assert not [finding for finding in whole(records).findings if finding.rule == "unanswered-request"]


def test_a_request_without_an_answer_in_the_middle_of_a_log_is() -> None:
    later = '{"jsonrpc":"2.0","id":2,"method":"prompts/list"}'
    (records,) = imported(f"{OPENS}\n{ANSWERS}\n{ASKS}\n{later}\n" + '{"jsonrpc":"2.0","id":2,"result":{"prompts":[]}}\n')
    assert [finding.rule for finding in whole(records).findings if finding.rule == "unanswered-request"]


def test_objects_that_pythons_sdk_prints_are_messages() -> None:
    line = (
        "DEBUG:mcp.client.sse:Sending client message: SessionMessage(message=JSONRPCMessage(root=JSONRPCRequest(method='tools/call', "
        "params={'name': 'a', 'arguments': {'x': None, 'y': [1, \"o'k\"]}}, jsonrpc='2.0', id=3)), metadata=None)"
    )
    (message,) = messages_in(line)
    assert json.loads(message.text) == {
        "method": "tools/call",
        "params": {"name": "a", "arguments": {"x": None, "y": [1, "o'k"]}},
        "jsonrpc": "2.0",
        "id": 3,
    }


def test_a_capture_is_no_log() -> None:
    assert recognized((ROOT / "captures" / "time.mcpspy").read_bytes()) is None


@given(st.binary(max_size=2000), st.integers(1, 50))
def test_any_bytes_are_read_cut_anywhere(data: bytes, step: int) -> None:
    log = data.replace(b"~", ANSWERS.encode())
    for form in FORMATS:
        form.matches(log)
    importer = LogImporter(source())
    cut = [item for at in range(0, len(log), step) for item in importer.feed(log[at : at + step])]
    again = LogImporter(source())
    assert [*cut, *importer.close()] == [*again.feed(log), *again.close()]


@given(
    st.lists(
        st.sampled_from(
            ['{"', '{"jsonrpc":"2.0",', "[{", "JSONRPCRequest(", "'", '\\"', "id=1,", '":', "\n", "}", OPENS, ANSWERS]
        )
    )
)
def test_pieces_of_messages_are_read(pieces: list[str]) -> None:
    imported("".join(pieces))


@pytest.mark.parametrize("piece", ['{"a":', '[{"a":', "JSONRPCRequest(", '{"jsonrpc":"2.0","method":"', "<- ", "((("])
def test_a_hostile_line_takes_linear_time(piece: str) -> None:
    imported(piece * (1_000_000 // len(piece)) + "\n")


def test_the_name_of_a_file_names_its_server() -> None:
    assert Source(name="/x/mcp-server-weather.log", format="log").label == "weather"


def test_many_servers_in_one_log_take_linear_time() -> None:
    lines = (f"2025-05-07T10:00:00.000Z [a{number}] [info] Message from client: {PING}" for number in range(8000))
    assert len(imported("\n".join(lines))) == 8000


PING = '{"jsonrpc":"2.0","id":1,"method":"ping"}'
