"""Logs of mcpsnoop are imported."""

import json
from datetime import UTC, datetime

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
            head = {"session_id": "s", "server_label": name, "seq": record.number, "ts": f"{at}.{at_ns % 1_000_000_000:09d}Z"}
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
