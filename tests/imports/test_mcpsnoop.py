"""Logs of mcpsnoop are imported."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy import Transcript, transcribe
from mcpspy import read as read_capture
from mcpspy.imports.formats import recognized
from mcpspy.imports.mcpsnoop import SnoopImporter
from mcpspy.imports.source import Source
from mcpspy.records import Frame, Gap, Header, Open, Record
from tests.conftest import ROOT
from tests.imports.logging_clients import rows_of

RECORDED = Path(__file__).parent / "recorded"
META = '{"session_id":"s","server_label":"time","seq":0,"ts":"2026-01-02T03:04:05Z","direction":"meta","transport":"stdio"}\n'


def log_of(name: str) -> bytes:
    """Return what mcpsnoop would have written of a capture of stdio."""
    lines, ways, begin_ns = [META], {}, 0
    for record in read_capture(ROOT / "captures" / f"{name}.mcpspy"):
        if isinstance(record, Header):
            begin_ns = record.wall_ns
        if isinstance(record, Open):
            ways[record.stream] = {"stdin": "c2s", "stdout": "s2c"}.get(record.name, "stderr")
        if isinstance(record, Frame):
            way = ways[record.stream]
            at_ns = begin_ns + record.at_ns
            at = datetime.fromtimestamp(at_ns // 1_000_000_000, UTC).strftime("%Y-%m-%dT%H:%M:%S")
            head = {"session_id": "s", "server_label": name, "seq": len(lines), "ts": f"{at}.{at_ns % 1_000_000_000:09d}Z"}
            content = (
                f'"text":{json.dumps(record.data.decode().strip())}'
                if way == "stderr"
                else f'"raw":{record.data.decode().strip()}'
            )
            lines.append(f'{json.dumps(head)[:-1]},"direction":"{way}","transport":"stdio",{content}}}\n')
    return "".join(lines).encode()


def imported(data: bytes) -> list[Record]:
    importer = SnoopImporter(Source(name="x.jsonl", format="mcpsnoop", sha256="ab"))
    records = [record for _, record in [*importer.feed(data), *importer.close()]]
    for number, record in enumerate(records):
        record.number = number
    return records


def whole(data: bytes) -> Transcript:
    return transcribe(imported(data))


@pytest.mark.parametrize("name", ["time", "git", "question", "logs"])
def test_a_log_makes_the_rows_and_times_of_the_taps_capture(name: str) -> None:
    data = log_of(name)
    form = recognized(data)
    assert form is not None
    assert form.name == "mcpsnoop"
    tapped, snooped = transcribe(read_capture(ROOT / "captures" / f"{name}.mcpspy")), whole(data)
    assert rows_of(snooped) == rows_of(tapped)
    assert [row.duration_ns for row in snooped.exchanges] == [row.duration_ns for row in tapped.exchanges]
    assert {finding.rule for finding in snooped.findings} <= {finding.rule for finding in tapped.findings}


@pytest.mark.parametrize("name", ["mcpsnoop-stdio", "mcpsnoop-http"])
def test_a_log_that_mcpsnoop_wrote_makes_the_rows_of_the_taps_capture(name: str) -> None:
    """The logs were written by its proxy between a tap and tests/peers/pyserver.py."""
    tapped, snooped = transcribe(read_capture(RECORDED / f"{name}.mcpspy")), whole((RECORDED / f"{name}.jsonl").read_bytes())
    assert [row[1:] for row in rows_of(snooped)] == [row[1:] for row in rows_of(tapped) if isinstance(row[2], str)]
    assert {finding.rule for finding in snooped.findings} == {finding.rule for finding in tapped.findings}


def said(seq: int, direction: str, connection: str = "", **message: object) -> bytes:
    """Return a line with a message, or with a status alone."""
    head = {"session_id": "s", "seq": seq, "ts": "2026-01-02T03:04:05Z", "direction": direction, "conn_id": connection}
    return json.dumps(head | ({"raw": message} if "status" not in message else message)).encode() + b"\n"


def test_an_answer_before_its_request_answers_it() -> None:
    lines = [
        said(1, "c2s", id=1, result={}),
        said(2, "s2c", method="notifications/message"),
        said(3, "s2c", id=1, method="ping"),
    ]
    (exchange,) = whole(b"".join(lines)).exchanges
    assert (exchange.method, exchange.outcome.value) == ("ping", "ok")


def test_an_answer_without_a_request_comes_too() -> None:
    lines = [said(1, "c2s", id=7, result={}), *(said(number, "c2s", id=number + 90, method="ping") for number in range(2, 40))]
    for last in (2, 40):
        frames = [record.data for record in imported(b"".join(lines[:last])) if isinstance(record, Frame)]
        assert sum(b'"id": 7' in frame for frame in frames) == 1
        assert len(frames) == min(last, len(lines))


def test_two_clients_of_an_http_server_are_two_sessions() -> None:
    lines = [said(1, "c2s", "a", id=1, method="initialize"), said(2, "c2s", "b", id=1, method="initialize")]
    lines += [said(3, "s2c", "b", id=1, result={}), said(4, "s2c", "a", id=1, result={})]
    lines += [
        said(5, "c2s", "c", id=2, method="ping"),
        said(6, "c2s", "d", id=2, method="ping"),
        said(7, "s2c", "c", id=2, result={}),
    ]
    importer = SnoopImporter(Source(name="x.jsonl", format="mcpsnoop", sha256="ab"))
    records = [*importer.feed(b"".join(lines)), *importer.close()]
    messages = [(number, record.data.count(b"method")) for number, record in records if isinstance(record, Frame)]
    assert messages == [(0, 1), (1, 1), (1, 0), (0, 0), (1, 1), (2, 1), (1, 0)]


def test_what_mcpsnoop_dropped_and_statuses_of_errors_are_gaps() -> None:
    lines = [said(1, "c2s", "a", id=1, method="ping"), said(2, "s2c", "a", status=401), said(3, "s2c", "a", status=202)]
    gaps = [
        record for record in imported(b"".join([*lines, said(6, "c2s", "a", id=2, method="ping")])) if isinstance(record, Gap)
    ]
    assert [(gap.frames, gap.why) for gap in gaps] == [
        (1, "the server answered with HTTP status 401"),
        (2, "mcpsnoop dropped 2 messages"),
    ]


def test_a_message_that_was_cut_is_a_gap() -> None:
    line = '{"session_id":"s","direction":"c2s","ts":"2026-01-02T03:04:05Z","text":"{\\"json","truncated":true}\n'
    assert [record for record in imported(line.encode()) if isinstance(record, Gap)]


@given(st.binary(max_size=500), st.integers(1, 40))
def test_any_bytes_are_read_cut_anywhere(data: bytes, step: int) -> None:
    data = META.encode() + data + log_of("time")[:3000]
    importer = SnoopImporter(Source(name="x.jsonl", format="mcpsnoop", sha256="ab"))
    cut = [record for at in range(0, len(data), step) for _, record in importer.feed(data[at : at + step])]
    cut += [record for _, record in importer.close()]
    other = imported(data)
    for number, record in enumerate(cut):
        record.number = number
    assert cut == other
