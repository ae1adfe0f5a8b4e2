"""Packets made of every capture of HTTP that the tests have: the imported session is that of the tap, in rows, pairs and findings."""

from pathlib import Path

import pytest

from mcpspy import Transcript, read, transcribe
from mcpspy.records import Close, Header, Open, Record
from mcpspy.transcript.absent_facts import unproven_rules
from mcpspy.transcript.http.transaction import Transaction
from mcpspy.transcript.model import Exchange, UnpairedMessage
from tests.conftest import ROOT
from tests.imports.http_packets import packets_of
from tests.imports.sniffing import sessions_of

FOLDERS = ("captures", "tests/findings", "tests/golden", "tests/imports/recorded", "tests/transcript/recorded")


def over_http(path: Path) -> bool:
    """Return whether a capture is of MCP over HTTP."""
    header = next(iter(read(path)))
    return isinstance(header, Header) and header.tapped.get("transport") == "http" and header.tapped.get("leg") != "model"


PATHS = [path for folder in FOLDERS for path in sorted((ROOT / folder).glob("*.mcpspy")) if over_http(path)]


OWN = {"upstream-failed": "http-error", "unrewritten-address": "foreign-resource"}
"""Rules about what mcpspy itself did, and what that looks like in packets, where it is a server like any other."""

WITHOUT_MCP = {
    "request-refused.mcpspy", "foreign-resource.mcpspy", "foreign-resource.clean.mcpspy", "unrewritten-address.mcpspy",
    "unrewritten-address.clean.mcpspy",
}  # fmt: skip
"""Captures in which nothing shows that it is MCP, but that a tap for MCP recorded it."""


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.name)
def test_packets_make_the_rows_the_pairs_and_the_findings_of_the_taps_capture(path: Path) -> None:
    records = list(read(path))
    tapped = transcribe(records)
    sessions = sessions_of(packets_of(records))
    if path.name in WITHOUT_MCP:
        assert not sessions
        return
    (session,) = sessions
    imported = transcribe(session)
    assert rows(imported) == rows(tapped)
    unproven = set(unproven_rules(imported.captures[0]))
    if own := rules(tapped) & set(OWN):
        assert rules(imported) <= rules(tapped) - unproven | {OWN[rule] for rule in own}
    else:
        assert ends(session) == ends(records)
        assert findings(imported) == [finding for finding in findings(tapped) if finding[0] not in unproven]


@pytest.mark.parametrize("path", [path for path in PATHS if path.parent.name == "captures"], ids=lambda path: path.name)
def test_the_server_is_named_as_the_tap_names_it(path: Path) -> None:
    header, *_ = records = list(read(path))
    ((named, *_),) = sessions_of(packets_of(records))
    assert isinstance(header, Header)
    assert isinstance(named, Header)
    origin = header.tapped["url"].rpartition("/")[0]
    assert named.tapped["url"].startswith(f"{origin}/")
    assert named.label == origin.rpartition("/")[2]


def rows(transcript: Transcript) -> list[tuple[object, ...]]:
    """Return the facts of all rows: what was asked, what was answered, and how long that took."""
    facts: list[tuple[object, ...]] = []
    for row in transcript.rows:
        if isinstance(row, Exchange):
            answer = None if row.response is None else row.response.raw
            facts.append((row.row, row.sender, row.method, row.outcome, row.request.raw, answer, row.progress, row.duration_ns))
        elif isinstance(row, UnpairedMessage):
            facts.append((row.row, row.message.sender, row.message.method, row.message.raw))
        elif isinstance(row, Transaction):
            facts.append((row.row, row.method, row.target, row.status))
    return facts


def findings(transcript: Transcript) -> list[tuple[object, ...]]:
    """Return what was found, where, and who is blamed."""
    return sorted(
        (finding.rule, finding.severity, finding.culprit, finding.row or 0, finding.rows, finding.count)
        for finding in transcript.findings
    )


def rules(transcript: Transcript) -> set[str]:
    return {finding.rule for finding in transcript.findings}


def ends(records: list[Record]) -> set[tuple[int, str, str]]:
    """Return who ended each stream; and how, if that was its sender."""
    senders = {record.stream: record.sender for record in records if isinstance(record, Open)}
    return {
        (record.stream, record.by, record.how if record.by == senders[record.stream] else "")
        for record in records
        if isinstance(record, Close)
    }
