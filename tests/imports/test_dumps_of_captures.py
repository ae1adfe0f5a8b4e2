"""Dumps that tshark prints of the packets of captures: rows, pairs and findings of the tap, in each form, with times and without."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy import read, transcribe
from mcpspy.imports.connection_order import in_order
from mcpspy.records import CLIENT, SERVER, Close, Frame, Open, Record, Side
from mcpspy.transcript.absent_facts import unproven_rules
from tests.conftest import DebianProgram
from tests.imports.http_packets import packets_of
from tests.imports.logging_clients import rows_in_any_order, rows_of
from tests.imports.test_follow_stream import facts, followed, imported
from tests.imports.test_packets_of_captures import PATHS, rules
from tests.tiers import current_tier

FILES = [path for path in PATHS if path.parent.name in ("captures", "recorded") or path.name == "unfinished-event.mcpspy"]
FILES = [path for path in FILES if path.name != "capture-1-http.mcpspy"]  # mcpspy itself answered
FORMS = current_tier()(sample=["yaml", "hex"], more=["yaml", "hex", "raw", "ascii"], full=["yaml", "hex", "raw", "ascii"])
RECORDED = Path(__file__).parent / "recorded"
UNSEEN = {"given-up"}
"""The rule that needs to know who ended a stream, which is in no dump: what a client cancelled so looks unanswered."""


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_dump_makes_the_rows_the_pairs_and_the_findings_of_the_taps_capture(
    path: Path, form: str, tmp_path: Path, debian_program: DebianProgram
) -> None:
    records = list(read(path))
    connections = {record.connection for record in records if isinstance(record, Open)}
    packets = tmp_path / "dump.pcapng"
    packets.write_bytes(packets_of(records))
    same_as_tapped(records, followed(packets, form, list(map(str, range(len(connections)))), debian_program))


@pytest.mark.parametrize("form", ["ascii", "hex", "raw", "yaml"])
def test_a_dump_that_tshark_printed_once_makes_the_rows_of_the_taps_capture(form: str) -> None:
    dump = RECORDED / f"chromium-sse.tshark-{form}.txt"  # tshark 4.0.17, of the packets of that capture
    same_as_tapped(list(read(RECORDED / "chromium-sse.mcpspy")), dump.read_bytes())


def same_as_tapped(records: list[Record], dump: bytes) -> None:
    """Compare a dump with the tap's capture of the same packets."""
    tapped = transcribe(records)
    (session,) = imported(dump)
    other = transcribe(session)
    is_cancelled = rules(tapped) >= UNSEEN
    if facts(session)["bytes"] == "exact":
        assert unended(rows_in_any_order(other)) == unended(rows_in_any_order(tapped))
    assert len(other.exchanges) == len(tapped.exchanges)
    assert rules(other) == rules(tapped) - set(unproven_rules(other.captures[0])) - (UNSEEN if is_cancelled else set())


def unended(rows: list[str]) -> list[str]:
    """Return rows in which what was cancelled and what was not answered look alike."""
    return sorted(re.sub("<Outcome.(CANCELLED|UNANSWERED): '[a-z]*'>", "-", row) for row in rows)


def test_the_order_in_which_streams_are_printed_does_not_matter(tmp_path: Path, debian_program: DebianProgram) -> None:
    path = next(path for path in FILES if path.name == "oauth.mcpspy")
    packets = tmp_path / "dump.pcapng"
    packets.write_bytes(packets_of(list(read(path))))
    streams = list("012345")
    (first,), (second,) = (imported(followed(packets, "hex", some, debian_program)) for some in (streams, streams[::-1]))
    assert rows_of(transcribe(first)) == rows_of(transcribe(second))


HEADS = [
    b"POST /m HTTP/1.1\r\nMcp-Session-Id: a\r\n\r\n", b"GET /sse HTTP/1.1\r\nAccept: text/event-stream\r\n\r\n",
    b"DELETE /m HTTP/1.1\r\nMcp-Session-Id: a\r\n\r\n", b"HTTP/1.1 200 OK\r\nMcp-Session-Id: a\r\n\r\n", b"",
]  # fmt: skip
DATA = [
    b'{"jsonrpc":"2.0","id":1,"method":"ping"}', b'{"jsonrpc":"2.0","id":1,"result":{}}', b"event: endpoint\ndata: /m\n\n",
    b'data: {"jsonrpc":"2.0","id":1,"result":{}}\n\n', b'id: 7\ndata: {"jsonrpc":"2.0","method":"notifications/progress"}\n\n',
    b'[{"jsonrpc":"2.0","id":{"a":[]},"method":"x","params":{"_meta":{"progressToken":"p"}}}]', b'{"jsonrpc":', b"\xff",
]  # fmt: skip
STREAMS = st.tuples(st.sampled_from([CLIENT, SERVER]), st.sampled_from(HEADS), st.lists(st.sampled_from(DATA), max_size=3))


@given(st.lists(st.lists(STREAMS, min_size=1, max_size=4), max_size=5))
def test_no_record_is_lost_and_each_connection_keeps_its_order(made: list[list[tuple[Side, bytes, list[bytes]]]]) -> None:
    number, connections = 0, []
    for connection, streams in enumerate(made):
        records: list[Record] = []
        for sender, head, frames in streams:
            framing = "sse" if sender == SERVER else "body"
            opened = Open(
                at_ns=0,
                stream=number,
                sender=sender,
                name="x",
                framing=framing,
                head=head,
                connection=connection,
                transaction=1,
            )
            closed = Close(at_ns=0, stream=number, by=sender, how="eof")
            records += [opened, *(Frame(number, 0, 0, data) for data in frames), closed]
            number += 1
        connections.append(records)
    before = [list(map(id, records)) for records in connections]
    ordered = list(map(id, in_order(connections)))
    assert sorted(ordered) == sorted(place for places in before for place in places)
    for places in before:
        assert [place for place in ordered if place in places] == places
