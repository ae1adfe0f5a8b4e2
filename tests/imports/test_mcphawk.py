"""Databases of MCPHawk are imported: those that it makes, and no file makes trouble."""

import json
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy import Transcript, transcribe
from mcpspy import open as open_captures
from mcpspy import read as read_capture
from mcpspy.imports.formats import recognized
from mcpspy.imports.mcphawk import HawkImporter
from mcpspy.imports.source import Source
from mcpspy.records import Frame, Header, Open, Record
from mcpspy.transcript.absent_facts import unproven_rules
from tests.cli.terminal import run
from tests.conftest import ROOT, BuiltProgram
from tests.deadlines import DEADLINE_S
from tests.imports.logging_clients import rows_in_any_order

SCHEMA = """
CREATE TABLE sessions (id TEXT PRIMARY KEY, name TEXT, started_at REAL);
CREATE TABLE messages (id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT, ts REAL,
    direction TEXT CHECK(direction IN ('c2s', 's2c')), kind TEXT, body TEXT);
"""
PUT = "INSERT INTO messages (session_id, ts, direction, body) VALUES (?, ?, ?, ?)"
ASKS = '{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}'


def database(rows: list[tuple[object, ...]], schema: str = SCHEMA, wal: bool = False) -> bytes:  # noqa: FBT001, FBT002 - as SQLite
    """Return a database with these messages, of the session `s`, which is that of a server named weather."""
    connection = sqlite3.connect(":memory:")
    connection.executescript(schema)
    connection.executemany(PUT, rows)
    if "CREATE TABLE sessions" in schema:
        connection.execute("INSERT INTO sessions VALUES ('s', 'weather', 1.0)")
    connection.commit()
    data = bytearray(connection.serialize())
    if wal:
        data[18:20] = b"\2\2"
    return bytes(data)


def database_of(name: str) -> bytes:
    """Return what MCPHawk would have stored of a capture of stdio."""
    rows: list[tuple[object, ...]] = []
    ways, begin_ns = {}, 0
    for record in read_capture(ROOT / "captures" / f"{name}.mcpspy"):
        if isinstance(record, Header):
            begin_ns = record.wall_ns
        if isinstance(record, Open):
            ways[record.stream] = {"stdin": "c2s", "stdout": "s2c"}.get(record.name)
        if isinstance(record, Frame) and ways[record.stream] is not None:
            rows.append(("s", (begin_ns + record.at_ns) / 1e9, ways[record.stream], record.data.decode().strip()))
    return database(rows)


def imported(data: bytes) -> tuple[list[Record], list[str]]:
    importer = HawkImporter(Source(name="hawk.db", format="mcphawk", sha256="ab"))
    records = [record for _, record in [*importer.feed(data), *importer.close()]]
    for number, record in enumerate(records):
        record.number = number
    return records, importer.passed_over()


def whole(data: bytes) -> Transcript:
    return transcribe(imported(data)[0])


@pytest.mark.parametrize("name", ["time", "git", "question", "logs"])
def test_a_database_makes_the_rows_of_the_taps_capture(name: str) -> None:
    data = database_of(name)
    form = recognized(data)
    assert form is not None
    assert form.name == "mcphawk"
    tapped, stored = transcribe(read_capture(ROOT / "captures" / f"{name}.mcpspy")), whole(data)
    assert rows_in_any_order(stored) == rows_in_any_order(tapped)
    assert {finding.rule for finding in stored.findings} <= {finding.rule for finding in tapped.findings}


def test_a_database_that_mcphawk_made_is_that_of_the_taps_capture(tmp_path: Path, built: BuiltProgram) -> None:
    capture, stored = tmp_path / "tap.mcpspy", tmp_path / "hawk.db"
    server = [sys.executable, "-P", "-m", "mcpspy.demo.server"]
    tap = [sys.executable, "-m", "mcpspy", "run", "--capture", str(capture), "--", *server]
    wrapped = [built("mcphawk/bin/mcphawk"), "wrap", "--name", "weather", "--", *tap]
    client = [sys.executable, "-m", "mcpspy.demo.client", *wrapped]
    environment = {**os.environ, "MCPHAWK_DB": str(stored), "MCPHAWK_HOME": str(tmp_path / "home")}
    subprocess.run(client, env=environment, capture_output=True, timeout=DEADLINE_S, check=True)
    made = run("import", str(stored), "-o", str(tmp_path / "made.mcpspy")).stdout.strip()
    hawk, tapped = open_captures(made), open_captures(capture)
    assert sorted(methods(hawk)) == sorted(methods(tapped))  # it forwards before it stores: what comes then may be stored first
    proven = {finding.rule for finding in tapped.findings} - set(unproven_rules(hawk.captures[0]))
    assert {finding.rule for finding in hawk.findings} - {"early-request"} == proven  # which that order may show


def methods(transcript: Transcript) -> list[tuple[str, str, str]]:
    return [(row.sender, row.method, row.outcome.value) for row in transcript.exchanges]


def test_a_database_that_was_in_use_is_read() -> None:
    (exchange,) = whole(database([("s", 1e9, "c2s", ASKS)], wal=True)).exchanges
    assert exchange.method == "tools/list"


def test_an_answer_that_was_stored_before_its_request_belongs_to_it() -> None:
    answers = '{"jsonrpc": "2.0", "id": 1, "result": {"tools": []}}'
    transcript = whole(database([("s", 1e9, "s2c", answers), ("s", 1e9 + 0.001, "c2s", ASKS)]))
    assert [row.outcome.value for row in transcript.exchanges] == ["ok"]


def test_each_session_is_a_capture_with_its_name() -> None:
    records, _ = imported(database([("s", 1e9, "c2s", ASKS), ("t", 1e9, "c2s", ASKS)]))
    assert [record.label for record in records if isinstance(record, Header)] == ["weather", "hawk"]


def test_a_database_is_shown_in_place_of_a_capture(tmp_path: Path) -> None:
    path = tmp_path / "hawk.db"
    path.write_bytes(database([("s", 1e9, "c2s", ASKS)]))
    assert "imported from hawk.db (mcphawk), without ends, process, heads" in run("show", str(path)).stdout


def test_rows_of_another_kind_are_counted() -> None:
    records, passed_over = imported(database([("s", 1e9, "c2s", ASKS), ("s", "x", "c2s", ASKS), ("s", 1e9, "s2c", b"\xff")]))
    assert len([record for record in records if isinstance(record, Frame)]) == 1
    assert passed_over == ["not read: 2 × a row that is not as MCPHawk writes it"]


ENDLESS = """
CREATE TABLE messages (id, session_id, ts, direction, body);
CREATE VIEW sessions AS WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x AS id, 'c2s' AS name FROM n;
"""
LARGE = """
CREATE TABLE sessions (id, name, started_at);
CREATE TABLE m (session_id, ts, direction, body, big AS (hex(zeroblob(4000000))));
CREATE VIEW messages AS SELECT 1 AS id, session_id, ts, direction, big AS body FROM m;
CREATE TRIGGER t INSTEAD OF INSERT ON messages BEGIN INSERT INTO m VALUES ('s', 1.0, 'c2s', ''); END;
"""
COSTLY = """
CREATE TABLE sessions (id, name, started_at);
CREATE TABLE messages (id INTEGER PRIMARY KEY, session_id, ts, direction, b, body AS (hex(zeroblob(4000000))));
"""


@pytest.mark.parametrize("schema", [ENDLESS, LARGE, "CREATE TABLE messages (session_id, ts, direction, body);"])
def test_a_hostile_schema_is_not_run(schema: str) -> None:
    records, passed_over = imported(database([("s", 1.0, "c2s", ASKS)], schema))
    assert (records, len(passed_over)) == ([], 1)


def test_a_column_that_is_computed_is_not() -> None:
    connection = sqlite3.connect(":memory:")
    connection.executescript(COSTLY)
    connection.execute("INSERT INTO messages (session_id, ts, direction) VALUES ('s', 1.0, 'c2s')")
    connection.commit()
    records, passed_over = imported(connection.serialize())
    assert (records, len(passed_over)) == ([], 1)


@given(st.lists(st.tuples(st.integers(0, 20_000), st.integers(0, 255)), max_size=20), st.integers(0, 20_000))
def test_spoilt_databases_are_read(spoils: list[tuple[int, int]], size: int) -> None:
    data = bytearray(database([("s", 1e9 + number, "c2s", ASKS) for number in range(50)]))
    for at, value in spoils:
        data[at % len(data)] = value
    transcribe(imported(bytes(data))[0])
    imported(bytes(data[: size % len(data)]))


@given(st.binary(max_size=300))
def test_any_bytes_are_read(data: bytes) -> None:
    imported(data)
    imported(b"SQLite format 3\0" + data)


def test_messages_are_as_they_were_stored() -> None:
    records, _ = imported(database([("s", 1e9, "c2s", ASKS)]))
    (frame,) = [record for record in records if isinstance(record, Frame)]
    assert json.loads(frame.data) == json.loads(ASKS)
