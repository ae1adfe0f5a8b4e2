"""Findings of packed rows are those of rows that are kept as they are. Small blocks show this on captures of a few rows."""

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.capture.file import reader
from mcpspy.capture.file.format import header_line
from mcpspy.capture.file.reader import read
from mcpspy.capture.file.writer import Writer
from mcpspy.cli.credential_search import CredentialSearch
from mcpspy.records import CLIENT, SERVER, End, Header, Open
from mcpspy.transcript import known_exchanges, transcribe
from mcpspy.transcript.findings.rule import Unchecked
from mcpspy.transcript.findings.run import all_findings
from mcpspy.transcript.http import packed_transactions
from mcpspy.transcript.http.transaction import Stream, Transaction
from mcpspy.transcript.message import Kind, Message
from mcpspy.transcript.model import Exchange, Row, Transcript, UnpairedMessage
from mcpspy.transcript.packing import block_compression
from mcpspy.transcript.packing import exchanges as packed_exchanges
from mcpspy.transcript.packing import rows as packed_rows
from mcpspy.transcript.packing.exchanges import FlawedMessages
from tests.transcript.dialogue import spelled

ROOT = Path(__file__).parents[2]
CAPTURES = [*(ROOT / "captures").glob("*.mcpspy"), *(ROOT / "tests" / "findings").glob("*.mcpspy")]


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed_rows, "BLOCK_ROWS", 3)
    monkeypatch.setattr(packed_rows, "NEWEST_ROWS", 0)
    monkeypatch.setattr(packed_rows, "READ_ROWS", 0)
    monkeypatch.setattr(packed_rows, "MOST_NEWEST_ROWS", 0)
    monkeypatch.setattr(packed_rows, "PLAIN_BYTES", 1_000)
    monkeypatch.setattr(packed_transactions, "BLOCK_TRANSACTIONS", 2)
    monkeypatch.setattr(packed_transactions, "NEWEST_TRANSACTIONS", 0)
    monkeypatch.setattr(packed_transactions, "MOST_NEWEST_TRANSACTIONS", 0)
    monkeypatch.setattr(packed_transactions, "MAX_OPENINGS", 3)
    monkeypatch.setattr(packed_transactions, "_RECENT", 1)
    monkeypatch.setattr(packed_exchanges, "_BLOCK", 2)
    monkeypatch.setattr(packed_exchanges, "_HELD", 1)
    monkeypatch.setattr(block_compression, "PLAIN_BLOCKS", 2)
    monkeypatch.setattr(known_exchanges, "_BLOCK_KEYS", 2)
    monkeypatch.setattr(transcribe, "LARGE_ROWS", 0)
    monkeypatch.setattr(transcribe, "LARGE_BYTES", 0)
    monkeypatch.setattr(reader, "_BATCH_BYTES", 700)


def checked(transcript: Transcript) -> tuple[Any, ...]:
    limits: dict[Unchecked, None] = {}
    return all_findings(transcript, limits=limits), limits


@pytest.mark.parametrize("most_openings", [3, 4096])
@pytest.mark.usefixtures("small_blocks")
def test_packed_rows_have_the_findings_of_other_rows(monkeypatch: pytest.MonkeyPatch, most_openings: int) -> None:
    monkeypatch.setattr(packed_transactions, "MAX_OPENINGS", most_openings)
    packed = of_http = 0
    for path in CAPTURES:
        plain = transcribe.transcribe(read(path), credentials=CredentialSearch())
        transcript = transcribe.transcribe(read(path), pack_rows=True, credentials=CredentialSearch())
        packed += isinstance(transcript.rows, packed_rows.PackedRows)
        of_http += isinstance(transcript.captures[0].transactions, packed_transactions.PackedTransactions)
        assert checked(transcript) == checked(plain), path.name
    assert packed > 100
    assert of_http > 100


@pytest.mark.usefixtures("small_blocks")
def test_the_search_for_credentials_makes_no_packed_rows_again(monkeypatch: pytest.MonkeyPatch) -> None:
    path = ROOT / "captures" / "everything.mcpspy"
    made: list[int] = []
    block = packed_rows.PackedRows._block

    def counted(rows: packed_rows.PackedRows, number: int) -> list[Row]:
        made.append(number)
        return block(rows, number)

    monkeypatch.setattr(packed_rows.PackedRows, "_block", counted)
    counts = []
    for credentials in (None, CredentialSearch()):
        made.clear()
        checked(transcribe.transcribe(read(path), pack_rows=True, credentials=credentials))
        counts.append(len(made))
    assert counts[0] == counts[1]


@pytest.mark.usefixtures("small_blocks")
def test_packed_rows_say_what_other_rows_say() -> None:
    path = ROOT / "captures" / "everything.mcpspy"
    plain = transcribe.transcribe(read(path)).rows
    packed = transcribe.transcribe(read(path), pack_rows=True).rows
    assert len(packed) == len(plain)
    for row, other in zip(packed, plain, strict=True):
        assert row.at_ns == other.at_ns
        if isinstance(row, Exchange):
            assert isinstance(other, Exchange)
            for message, own in zip(row.messages, other.messages, strict=True):
                assert spelled(message)[1 : len(spelled(own))] == spelled(own)[1:]
    assert [packed[-1].at_ns, packed[0].at_ns] == [plain[-1].at_ns, plain[0].at_ns]


class NoSource:
    """Payloads that cannot be read again."""

    is_regular = False

    def payload(self, number: int) -> bytes:
        raise AssertionError(number)

    def position(self, number: int, part: bytes) -> int:
        return -1

    def record(self, number: int) -> None:
        raise AssertionError(number)


@given(st.lists(st.tuples(st.integers(0, 9), st.sampled_from(["crlf", "bom", "\ud800"]))))
def test_messages_with_flaws_are_packed_and_come_in_the_order_of_time(made: list[tuple[int, str]]) -> None:
    plain = [
        (row, Message(0, row, 1, SERVER, at_ns, at_ns, Kind.RESULT, b"%d" % row, flaws=(flaw,)))
        for row, (at_ns, flaw) in enumerate(made)
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(packed_exchanges, "_BLOCK", 2)
        patch.setattr(packed_exchanges, "_HELD", 1)
        flawed = FlawedMessages(packed_rows.PackedRows([], NoSource(), ()))
        for item in plain:
            flawed.append(item)
    assert len(flawed) == len(plain)
    assert flawed.names == {flaw for _, flaw in made}
    assert [*map(facts_of, flawed)] == [*map(facts_of, plain)]
    in_order = sorted(plain, key=lambda item: item[1].at_ns)
    assert [*map(facts_of, flawed.by_time())] == [*map(facts_of, in_order)]


def facts_of(flawed: tuple[int, Message]) -> tuple[int, list[object]]:
    """Return the number of a row, and all that a message says."""
    return flawed[0], [getattr(flawed[1], name) for name in Message.__struct_fields__]


def test_rows_of_a_small_file_are_not_packed(monkeypatch: pytest.MonkeyPatch) -> None:
    path = ROOT / "captures" / "everything.mcpspy"
    monkeypatch.setattr(packed_rows, "NEWEST_ROWS", 0)
    monkeypatch.setattr(packed_rows, "READ_ROWS", 0)
    monkeypatch.setattr(packed_rows, "MOST_NEWEST_ROWS", 0)
    monkeypatch.setattr(transcribe, "LARGE_ROWS", 0)
    monkeypatch.setattr(reader, "_BATCH_BYTES", 700)
    size = path.stat().st_size
    for least_bytes, is_packed in ((size, True), (size + 1, False)):
        monkeypatch.setattr(transcribe, "LARGE_BYTES", least_bytes)
        rows = transcribe.transcribe(read(path), pack_rows=True).rows
        assert isinstance(rows, packed_rows.PackedRows) is is_packed


@pytest.mark.usefixtures("small_blocks")
def test_packed_transactions_say_what_other_transactions_say() -> None:
    packed = 0
    for path in (ROOT / "captures").glob("*.mcpspy"):
        plain = transcribe.transcribe(read(path), with_findings=False).captures[0]
        info = transcribe.transcribe(read(path), pack_rows=True, with_findings=False).captures[0]
        if not isinstance(info.transactions, packed_transactions.PackedTransactions):
            continue
        packed += 1
        assert list(info.transactions) == list(plain.transactions)
        for taken in (info.transactions.values(), map(info.transactions.__getitem__, plain.transactions)):
            for transaction, other in zip(taken, plain.transactions.values(), strict=True):
                assert said(transaction) == said(other)
        assert [*reversed(info.transactions.values())][-1].number == next(iter(plain.transactions))
        assert {*info.streams} == {*plain.streams}
        assert all(info.streams[stream] == opened for stream, opened in plain.streams.items())
        assert all(info.transaction_of(stream) is not None for stream in plain.streams)
    assert packed > 5


def written_again(path: Path, capture: Path, times: int) -> None:
    """Write the records of a capture several times after each other, with the same numbers of streams and transactions."""
    header, *records = [record for record in read(capture) if not isinstance(record, End)]
    assert isinstance(header, Header)
    writer = Writer(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o600), header_line(header))
    last_ns = max(record.at_ns for record in records) + 1
    for time in range(times):
        for record in records:
            record.at_ns += last_ns if time else 0
            writer((record,))
    writer.close(last_ns * times)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("name", ["streamable", "stateless", "sse", "oauth", "resumed"])
@pytest.mark.parametrize("unpacked_rows", [0, 15])
def test_numbers_of_transactions_that_come_again_give_the_same_rows_and_findings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, unpacked_rows: int
) -> None:
    monkeypatch.setattr(transcribe, "LARGE_ROWS", unpacked_rows)
    path = tmp_path / "again.mcpspy"
    written_again(path, ROOT / "captures" / f"{name}.mcpspy", 3)
    plain = transcribe.transcribe(read(path))
    packed = transcribe.transcribe(read(path), pack_rows=True)
    assert isinstance(packed.captures[0].transactions, packed_transactions.PackedTransactions)
    assert list(packed.captures[0].transactions) == list(plain.captures[0].transactions)
    assert [row_said(row) for row in packed.rows] == [row_said(row) for row in plain.rows]
    assert checked(packed) == checked(plain)


def row_said(row: Row) -> tuple[object, ...]:
    """Return what a row says."""
    if isinstance(row, Transaction):
        return said(row)
    if not isinstance(row, Exchange):
        return row.at_ns, row.message.raw if isinstance(row, UnpairedMessage) else repr(row)
    carrier = None if row.transaction is None else said(row.transaction)
    return row.row, row.outcome, [(message.number, message.stream, message.raw) for message in row.messages], carrier


def said(transaction: Transaction) -> tuple[object, ...]:
    """Return what a transaction says, with its streams and its scope in place of their objects."""
    streams = (transaction.request, transaction.response, *transaction.interim)
    names = [name for name in Transaction.__struct_fields__ if name not in ("scope", "request", "response", "interim")]
    scope = transaction.scope
    return (
        [member(transaction, name) for name in names],
        (scope.kind, scope.session, scope.stream, scope.client),
        [
            stream and [member(stream, name) for name in (*Stream.__struct_fields__, "head", "raw_head", "number", "injected")]
            for stream in streams
        ],
    )


def member(of: Transaction | Stream, name: str) -> str:
    """Spell a member, which may be a list or a tuple."""
    value = getattr(of, name)
    return repr([*value] if isinstance(value, list | tuple) else value)


ASKED = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"\\ud800"}}\n'
ANSWER = b'{"jsonrpc":"2.0","id":1,"result":{"content":[]}}\n'


def write_capture(path: Path, frames: list[tuple[int, bytes]]) -> None:
    header = Header(capture_id="t", wall_ns=0, monotonic_ns=0, pid=1, tapped={"transport": "stdio", "argv": ["server"]})
    writer = Writer(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o600), header_line(header))
    names = ((0, CLIENT, "stdin"), (1, SERVER, "stdout"), (2, SERVER, "stderr"))
    writer(tuple(Open(at_ns=0, stream=stream, sender=sender, name=name) for stream, sender, name in names))
    for at_ns, (stream, data) in enumerate(frames):
        writer.frame(stream, at_ns, data)
    writer.close(len(frames))


@pytest.mark.usefixtures("small_blocks")
def test_an_exchange_is_found_again_after_a_block_of_log_lines(tmp_path: Path) -> None:
    path = tmp_path / "late.mcpspy"
    write_capture(path, [(0, ASKED), (1, ANSWER), *[(2, b"working\n")] * 20, (1, ANSWER)])
    transcript = transcribe.transcribe(read(path), pack_rows=True)
    assert isinstance(transcript.rows, packed_rows.PackedRows)
    assert [len(row.more_responses) for row in transcript.exchanges] == [1]


@pytest.mark.usefixtures("small_blocks")
def test_rows_with_half_a_character_stay_as_they_are(tmp_path: Path) -> None:
    path = tmp_path / "half.mcpspy"
    write_capture(path, [(0, ASKED), (1, ANSWER), *[(2, b"working\n")] * 20])
    transcript = transcribe.transcribe(read(path), pack_rows=True)
    assert [row.target for row in transcript.exchanges] == ["\ud800"]
