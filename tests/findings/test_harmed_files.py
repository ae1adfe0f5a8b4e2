"""Captures whose lines were repeated, lost or exchanged: nobody is accused of what the file did.

Each is made of a capture without a fault, the twin of some rule's example.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from mcpspy.capture.file.format import record_line
from mcpspy.capture.file.reader import Reader
from mcpspy.records import Damage, Frame, Gap, Record
from mcpspy.transcript.findings.rule import Finding
from mcpspy.transcript.findings.run import all_findings
from mcpspy.transcript.model import ChannelEvent, Exchange, Outcome, Row, Transcript
from mcpspy.transcript.transcribe import transcribe
from tests.findings.account import captures
from tests.transcript.dialogue import spelled

FOLDER = Path(__file__).parent
WELL = [path for path in sorted(FOLDER.glob("*.clean.mcpspy")) if path.stat().st_size < 20_000]
OF_MCP = [path for path in WELL if b'"leg":"model"' not in path.read_bytes()]
HANDSHAKE = "· handshake 2025-11-25, server: tools\n"
OF_NOBODY = {"file", "disk", "mcpspy", "unclear"}


def read(lines: Sequence[bytes]) -> Transcript:
    reader = Reader()
    records: list[Record] = [*reader.feed(b"".join(lines)), *reader.close()]
    return transcribe(records)


def accusations(transcript: Transcript) -> set[tuple[str, str]]:
    """Return the rules of what is held against somebody, with the culprit. A status of HTTP was read, whatever is missing."""
    findings = [finding for finding in all_findings(transcript) if finding.rule != "http-error"]
    return {(finding.rule, finding.culprit) for finding in findings if finding.culprit not in OF_NOBODY}


def rows(transcript: Transcript) -> list[Row]:
    return [spelled(row) for row in transcript.rows if not (isinstance(row, ChannelEvent) and isinstance(row.record, Damage))]


def lines_of(account: str) -> list[bytes]:
    return captures(account)[0].splitlines(keepends=True)


REPEATS: dict[str, Callable[[list[bytes], int], list[bytes]]] = {
    "once more": lambda lines, at: [*lines[: at + 1], *lines[at:]],
    "again after the end": lambda lines, at: [*lines, lines[at]],
    "with all after it": lambda lines, at: [*lines, *lines[at:]],
    "with all before it": lambda lines, at: [*lines[: at + 1], *lines[1 : at + 1], *lines[at + 1 :]],
}


@pytest.mark.grid(6)
@pytest.mark.parametrize("path", OF_MCP, ids=lambda path: path.name.partition(".")[0])
def test_lines_that_were_read_before_are_damage_and_no_traffic(path: Path) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    sound = read(lines)
    expected, known = rows(sound), accusations(sound)
    for at in range(1, len(lines)):
        for name, repeat in REPEATS.items():
            harmed = read(repeat(lines, at))
            assert (rows(harmed), accusations(harmed)) == (expected, known), f"line {at} {name}"
            assert harmed.captures[0].damages > 0, f"line {at} {name}"
            assert not harmed.captures[0].complete


def test_a_file_that_was_appended_to_itself_shows_its_session_once() -> None:
    lines = lines_of(f'{HANDSHAKE}→ tools/list 1\n← result 1 {{"tools":[]}}')
    harmed = read([*lines, *lines, *lines])
    assert rows(harmed) == rows(read(lines))
    assert accusations(harmed) == set()


@pytest.mark.grid(6)
@pytest.mark.parametrize("path", WELL, ids=lambda path: path.name.partition(".")[0])
def test_nobody_is_accused_of_what_a_lost_line_leaves(path: Path) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    known = accusations(read(lines))
    for at in range(1, len(lines)):
        assert accusations(read([*lines[:at], *lines[at + 1 :]])) <= known, f"without line {at}"


@pytest.mark.grid(6)
@pytest.mark.parametrize("path", OF_MCP, ids=lambda path: path.name.partition(".")[0])
def test_nobody_is_accused_of_what_exchanged_lines_tell(path: Path) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    known = accusations(read(lines))
    for at in range(1, len(lines) - 1):
        harmed = read([*lines[:at], lines[at + 1], lines[at], *lines[at + 2 :]])
        assert accusations(harmed) <= known, f"lines {at} and {at + 1}"
        assert len(harmed.exchanges) + harmed.captures[0].damages, "what is out of order is kept, and told as damage"


TWICE = "→ ping 1\n→ ping 1\n← result 1\n← result 1"
AGAIN = "→ ping 1\n← result 1\n← result 1"

FAULTS = {
    "an id that is used twice": (TWICE, ("id-in-use", "client")),
    "a second answer": (AGAIN, ("duplicate-response", "server")),
    "an answer to nothing": ("→ ping 1\n← result 1\n← result 7", ("unpaired-response", "server")),
    "a request without an answer": ("→ tools/list 1\n· 9.0 s later", ("unanswered-request", "server")),
}


@pytest.mark.parametrize(("account", "accusation"), FAULTS.values(), ids=list(FAULTS))
def test_a_fault_is_found_though_another_line_is_repeated(account: str, accusation: tuple[str, str]) -> None:
    lines = lines_of(HANDSHAKE + account)
    assert accusation in accusations(read(lines))
    assert accusation in accusations(read([*lines[:7], *lines[6:]]))


@pytest.mark.parametrize(("account", "accusation"), FAULTS.values(), ids=list(FAULTS))
def test_a_fault_before_a_lost_line_is_found(account: str, accusation: tuple[str, str]) -> None:
    late = "" if "later" in account else "\n→ ping 100\n← result 100"
    lines = lines_of(f"{HANDSHAKE}{account}{late}\n! note\n! end")
    assert (accusation in accusations(read(del_line(lines, b"note")))) == (accusation[0] != "unanswered-request")


def del_line(lines: list[bytes], word: bytes) -> list[bytes]:
    return [line for line in lines if word not in line]


# --- Payloads that were not kept, and gaps ---


def without_payload(record: Record) -> Record:
    """Return what a tap keeps of a frame past `--max-size`."""
    if not isinstance(record, Frame):
        return record
    rare = {"length": len(record.data), "sha256": "ab" * 32}
    return Frame(record.stream, record.at_ns, record.first_ns, b"", record.part, record.number, **rare)


def unkept(account: str, word: bytes) -> Transcript:
    """Transcribe an account of which the frames from the first on that has this word are kept without payload."""
    reader, began, records = Reader(), False, list[Record]()
    for record in reader.feed(captures(account)[0]):
        began = began or (isinstance(record, Frame) and word in record.data)
        records.append(without_payload(record) if began else record)
    return transcribe(records)


POST = "· HTTP\n· handshake 2025-11-25, server: tools\n→ POST /mcp\n  ping 5\n"

UNKEPT = {
    "an answer": (f"{HANDSHAKE}→ ping 5\n← result 5", b'5,"result"', Outcome.UNKNOWN),
    "two answers": (f"{HANDSHAKE}→ ping 5\n→ ping 6\n← result 6\n← result 5", b'6,"result"', Outcome.UNKNOWN),
    "an answer over HTTP": (f"{POST}← 200 OK\n  result 5", b'5,"result"', Outcome.UNKNOWN),
    "an answer in an event": (
        f"{POST}← 200 OK\n  data: result 5\n· the server closes the stream",
        b'5,"result"',
        Outcome.UNKNOWN,
    ),
    "the last event of a stream that breaks off": (
        f"{POST}← 200 OK\n  data: result 5\n· the server breaks off the stream, broken",
        b'5,"result"',
        Outcome.UNKNOWN,
    ),
    "an answer to the server": (f"{HANDSHAKE}← ping 5\n→ result 5", b'5,"result"', Outcome.UNKNOWN),
    "a later request": (f"{HANDSHAKE}→ tools/list 5\n→ ping 6\n· 9.0 s later", b'6,"method"', Outcome.UNANSWERED),
    "a request that is answered": (f"{HANDSHAKE}→ ping 5\n← result 5\n→ ping 6\n← result 6", b'6,"method"', Outcome.OK),
    "an earlier answer": (f"{HANDSHAKE}→ ping 4\n← result 4\n→ tools/list 5\n· 9.0 s later", b"nowhere", Outcome.UNANSWERED),
}


@pytest.mark.parametrize(("account", "word", "outcome"), UNKEPT.values(), ids=list(UNKEPT))
def test_nobody_knows_the_outcome_of_a_request_whose_answer_was_not_kept(account: str, word: bytes, outcome: Outcome) -> None:
    transcript = unkept(account, word)
    (ping,) = [row for row in transcript.exchanges if row.request.id == "5"]
    assert ping.outcome is outcome
    assert accusations(transcript) == ({("unanswered-request", "server")} if word == b"nowhere" else set())


@pytest.mark.parametrize("name", ["an answer", "the last event of a stream that breaks off"])
def test_a_frame_that_was_not_kept_is_not_called_cut_short(name: str) -> None:
    account, word, _ = UNKEPT[name]
    reasons = [
        row.message.reason for row in unkept(account, word).rows if not isinstance(row, Exchange) and hasattr(row, "message")
    ]
    assert [reason for reason in reasons if reason] == ["not recorded"]


def gap(why: str) -> Finding:
    reader = Reader()
    records = [*reader.feed(captures(f"{HANDSHAKE}→ ping 1\n← result 1\n! x")[0])]
    records.insert(-4, Gap(at_ns=records[-4].at_ns, since_ns=0, frames=3, bytes=90, why=why, number=records[-4].number))
    (finding,) = [finding for finding in all_findings(transcribe(records)) if finding.rule == "recording-gap"]
    return finding


@pytest.mark.parametrize(
    ("why", "culprit"),
    [
        ("another program cut the file while it was recorded", "file"),
        ("the file was removed while it was recorded", "file"),
        ("repaired: unusable lines were left out", "file"),
        ("a line that could not be read was left out", "file"),
        ("records were missing", "file"),
        ("No space left on device", "disk"),
        ("Input/output error", "disk"),
        ("Disk quota exceeded", "disk"),
        ("File too large", "disk"),
        ("writes to the store took 17 of the last 30 s", "disk"),
    ],
)
def test_a_gap_is_charged_to_what_lost_the_records(why: str, culprit: str) -> None:
    finding = gap(why)
    assert finding.culprit == culprit
    assert culprit in finding.blame.lower()
    assert ("unrecorded" in finding.what) == (culprit == "disk")


# --- Captures that begin in the middle ---

LATE = {
    "an answer": "← result 7\n→ ping 8\n← result 8",
    "an error": "← error 7 -32601 no\n→ ping 8\n← result 8",
    "an answer of the client": "→ result 7\n→ ping 8\n← result 8",
    "progress": '← notifications/progress {"progressToken":3,"progress":1}\n→ ping 8\n← result 8',
    "a cancellation": '→ notifications/cancelled {"requestId":3}\n→ ping 8\n← result 8',
    "several answers": "← result 5\n← result 6\n→ ping 8\n← result 8\n← result 7",
}


def beginning_at(account: str, *, spawned: bool, opened: bool = True) -> list[bytes]:
    """Return the lines of a session of stdio from the first message on, perhaps with its streams and the start of its server."""
    reader = Reader()
    _, *records = reader.feed(captures(account)[0])
    kept = [*records[: 3 * opened], *([records[3]] if spawned else []), *records[4:]]
    return [lines_of(account)[0], *(record_line(number, record) for number, record in enumerate(kept, 1))]


@pytest.mark.parametrize("opened", [True, False], ids=["with its streams", "without them"])
@pytest.mark.parametrize("account", LATE.values(), ids=list(LATE))
def test_nobody_is_accused_of_answers_to_what_was_before_the_beginning(account: str, opened: bool) -> None:  # noqa: FBT001  # a parameter
    assert accusations(read(beginning_at(account, spawned=False, opened=opened))) == set()
    assert accusations(read(beginning_at(account, spawned=True)))


@pytest.mark.parametrize("account", ["→ ping 1\n→ ping 1\n← result 1\n← result 1", "→ ping 1\n← result 1\n← result 1", "← {"])
def test_other_faults_are_found_in_a_capture_that_begins_in_the_middle(account: str) -> None:
    assert accusations(read(beginning_at(account, spawned=False)))
