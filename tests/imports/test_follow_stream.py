"""Dumps of followed streams are imported: what tshark prints, what Wireshark's window saves, and what somebody wrote down."""

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy import Transcript, transcribe
from mcpspy.imports.follow_stream import FollowImporter
from mcpspy.imports.formats import recognized
from mcpspy.imports.source import Source
from mcpspy.live.http.recorder import StreamRecorder
from mcpspy.records import Frame, Gap, Header, Note, Record
from tests.cli.terminal import run
from tests.conftest import DebianProgram
from tests.deadlines import DEADLINE_S
from tests.imports.logging_clients import rows_in_any_order
from tests.imports.packet_files import Sent, duplicated, pcap, pcapng
from tests.imports.sniffing import sessions_of, sniff
from tests.imports.test_pcap import SEGMENTS, TALK, exchange

OPENS = b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2024-11-05","capabilities":{}}}'
ANSWERS = b'{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2024-11-05","capabilities":{}}}'
RAW = b"".join(data for _, data in TALK)
WINDOW = RAW.replace(b"\r\n", b"\n")
EVENT = b"event: message\r\ndata: %b\r\n\r\n" % ANSWERS
EXPLAINED = b"""\
GET /sse HTTP/1.1
Host: 127.0.0.1:8000
Accept: text/event-stream

The server answers, and does not end its answer:

HTTP/1.1 200 OK\\r\\n
content-type: text/event-stream; charset=utf-8\\r\\n
Transfer-Encoding: chunked\\r\\n
\\r\\n
2b\\r\\n
event: endpoint\\r\\n
data: /messages/?id=51\\r\\n
\\r\\n
\\r\\n

POST /messages/?id=51 HTTP/1.1
Host: 127.0.0.1:8000
Content-Type: application/json
Content-Length: %d

%b

HTTP/1.1 202 Accepted
content-length: 8

Accepted

%x\\r\\n
event: message\\r\\n
data: %b\\r\\n
\\r\\n
\\r\\n
""" % (len(OPENS), OPENS, len(EVENT), ANSWERS)


def imported(data: bytes, name: str = "dump.txt") -> list[list[Record]]:
    importer = FollowImporter(Source(name=name, format="follow", sha256="ab"), StreamRecorder)
    sessions: dict[int, list[Record]] = {}
    for number, record in [*importer.feed(data), *importer.close()]:
        record.number = len(sessions.setdefault(number, []))
        sessions[number].append(record)
    return list(sessions.values())


def frames(records: list[Record]) -> list[tuple[int, bytes]]:
    return [(record.stream, record.data) for record in records if isinstance(record, Frame)]


def facts(records: list[Record]) -> dict[str, str]:
    header = records[0]
    assert isinstance(header, Header)
    found: dict[str, str] = header.tapped["imported"]["facts"]
    return found


def methods(transcript: Transcript) -> list[tuple[str, str]]:
    return [(row.method, row.outcome.value) for row in transcript.exchanges]


PLAIN = frames(imported(RAW)[0])


@pytest.mark.parametrize("data", [RAW, WINDOW, RAW.replace(b"\r\n", b"\\r\\n\n"), b"\xef\xbb\xbf\n" + WINDOW])
def test_text_that_the_window_saves_has_the_messages(data: bytes) -> None:
    form = recognized(data)
    assert form is not None
    assert form.name == "follow"
    (records,) = imported(data)
    assert frames(records) == PLAIN
    assert methods(transcribe(records)) == [("tools/call", "ok")] * 4
    assert (facts(records)["times"], facts(records)["senders"], facts(records)["ends"]) == (
        "missing",
        "reconstructed",
        "missing",
    )


def test_a_hex_dump_that_the_window_saves_has_the_bytes() -> None:
    lines, at = [], {"client": 0, "server": 0}
    for side, data in TALK:
        for begin in range(0, len(data), 16):
            part = data[begin : begin + 16]
            words = f"{part[:8].hex(' ')}  {part[8:].hex(' ')}".ljust(49)
            text = re.sub(rb"[^ -~]", b".", part).decode()
            indent = "    " if side == "server" else ""
            lines.append(f"{indent}{at[side]:08X}  {words}  {text[:8]} {text[8:]}\n")
            at[side] += len(part)
    data = "".join(lines).encode()
    form = recognized(data)
    assert form is not None
    assert form.name == "follow"
    (records,) = imported(data)
    assert frames(records) == PLAIN
    assert facts(records)["bytes"] == "exact"


def test_text_in_the_order_of_time_is_a_session_of_several_connections() -> None:
    form = recognized(EXPLAINED)
    assert form is not None
    assert form.name == "follow"
    (records,) = imported(EXPLAINED)
    transcript = transcribe(records)
    assert methods(transcript) == [("initialize", "ok")]
    assert [finding.rule for finding in transcript.findings] == []
    assert [record.text for record in records if isinstance(record, Note)] == ["not read: 1 × a line that is no HTTP"]


def test_a_body_that_somebody_shortened_is_read_to_the_next_head() -> None:
    data = WINDOW.replace(b'"id":1,"method":"tools/call","params":{"name":"t"}', b'"id":1,"method":"ping"')
    (records,) = imported(data)
    assert methods(transcribe(records))[0] == ("ping", "ok")


def test_a_request_that_http_refused_has_its_answer() -> None:
    refusal = b"HTTP/1.1 401 Unauthorized\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\nno"
    (records,) = imported(exchange(1)[0][1] + refusal)
    assert [finding.rule for finding in transcribe(records).findings] == ["http-error"]


def test_one_half_of_http_sse_is_no_accusation() -> None:
    (records,) = imported(EXPLAINED.partition(b"\n\nHTTP/1.1 202")[0].partition(b"POST ")[2].join((b"POST ", b"\n")))
    transcript = transcribe(records)
    assert [finding.rule for finding in transcript.findings] == ["recording-gap"]


@pytest.mark.parametrize("form", ["ascii", "hex", "raw", "yaml"])
def test_what_tshark_prints_has_the_messages(form: str, tmp_path: Path, debian_program: DebianProgram) -> None:
    (tmp_path / "dump.pcap").write_bytes(pcap(SEGMENTS))
    dump = followed(tmp_path / "dump.pcap", form, ["0"], debian_program)
    known = recognized(dump)
    assert known is not None
    assert known.name == "follow"
    (records,) = imported(dump)
    assert frames(records) == PLAIN
    header = records[0]
    assert isinstance(header, Header)
    assert (header.tapped["url"], header.tapped["imported"]["address"]) == ("http://a/mcp", "10.0.0.2:8000")
    assert facts(records)["times"] == ("reconstructed" if form == "yaml" else "missing")
    assert transcribe(records).captures[0].connection_words(1) == "connection 1 from port 49652"


def test_followed_http_is_read_without_its_chunks(tmp_path: Path, debian_program: DebianProgram) -> None:
    (tmp_path / "dump.pcap").write_bytes(pcap(SEGMENTS))
    dump = followed(tmp_path / "dump.pcap", "ascii", ["0"], debian_program, layer="http")
    (records,) = imported(dump)
    assert frames(records) == PLAIN


def test_ascii_whose_line_ends_an_editor_changed_has_the_messages(tmp_path: Path, debian_program: DebianProgram) -> None:
    (tmp_path / "dump.pcap").write_bytes(pcap(SEGMENTS))
    dump = followed(tmp_path / "dump.pcap", "ascii", ["0"], debian_program)
    assert b"\r\n" in dump
    (records,) = imported(dump.replace(b"\r\n", b"\n"))
    assert frames(records) == PLAIN


@pytest.mark.parametrize("story", ["streamable", "sse"])
def test_yaml_of_all_streams_makes_the_rows_of_the_taps_capture(
    story: str, tmp_path: Path, debian_program: DebianProgram
) -> None:
    sniffed = sniff(story, tmp_path, debian_program)
    streams = streams_of(sniffed.packets, sniffed.port, debian_program)
    dump = followed(sniffed.packets, "yaml", streams, debian_program)
    (records,) = imported(dump)
    transcript = transcribe(records)
    assert rows_in_any_order(transcript) == rows_in_any_order(sniffed.tapped)
    assert {finding.rule for finding in transcript.findings} <= {finding.rule for finding in sniffed.tapped.findings}
    packets = {record.extra["packet"] for record in records if isinstance(record, Frame)}
    assert packets == {record.extra["packet"] for record in sniffed.session if isinstance(record, Frame)}


@pytest.mark.parametrize("form", ["ascii", "hex", "raw"])
@pytest.mark.parametrize("story", ["streamable", "sse", "stateless"])
def test_dumps_of_one_connection_each_accuse_nobody_whom_the_taps_capture_does_not(
    story: str, form: str, tmp_path: Path, debian_program: DebianProgram
) -> None:
    sniffed = sniff(story, tmp_path, debian_program)
    dump = followed(sniffed.packets, form, streams_of(sniffed.packets, sniffed.port, debian_program), debian_program)
    sessions = imported(dump)
    assert sum(len(transcribe(records).exchanges) for records in sessions) >= len(sniffed.tapped.exchanges)
    accused = {finding.rule for records in sessions for finding in transcribe(records).findings}
    assert accused <= {"recording-gap", *(finding.rule for finding in sniffed.tapped.findings)}
    assert {facts(records)["connections"] for records in sessions} == {"missing"}


def test_ascii_with_dots_for_characters_is_not_compared_with_its_head() -> None:
    meta = '"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}'
    body = f'{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"größe",{meta}}}}}'.encode()
    head = b"POST /mcp HTTP/1.1\r\nHost: h\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\n"
    head += b"Mcp-Name: =?base64?Z3LDtsOfZQ==?=\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
    dots = re.sub(rb"[^ -~\r\n]", b".", head + body)
    (records,) = imported(TSHARK % b"ascii" + b"%d\n%b\n" % (len(dots), dots))
    assert facts(records)["bytes"] == "missing"
    assert "header-contradicts" not in {finding.rule for finding in transcribe(records).findings}
    (whole,) = imported(TSHARK % b"raw" + (head + body.replace(b"gr", b"kr")).hex().encode() + b"\n")
    assert facts(whole)["bytes"] == "exact"
    assert "header-contradicts" in {finding.rule for finding in transcribe(whole).findings}


_BODY = [at for at, sent in enumerate(SEGMENTS) if sent.data]
_SECOND, _FIFTH = _BODY[1], _BODY[4]
_SWAPPED = [*SEGMENTS[:_SECOND], SEGMENTS[_SECOND + 1], SEGMENTS[_SECOND], *SEGMENTS[_SECOND + 2 :]]
_SENT_TWICE = [*SEGMENTS[: _FIFTH + 1], SEGMENTS[_FIFTH], *SEGMENTS[_FIFTH + 1 :]]
_OVERLAPPING = [*SEGMENTS[: _FIFTH + 1], duplicated(SEGMENTS[_FIFTH], 20), *SEGMENTS[_FIFTH + 1 :]]
FAULTS = {
    "out of order": pcap(_SWAPPED),
    "sent twice": pcap(_SENT_TWICE),
    "overlapping": pcap(_OVERLAPPING),
    "out of order, pcapng": pcapng(_SWAPPED),
    "sent twice, pcapng": pcapng(_SENT_TWICE),
    "overlapping, pcapng": pcapng(_OVERLAPPING),
    "IPv6": pcap(SEGMENTS, version=6),
    "tagged": pcap(SEGMENTS, "vlan"),
    "tagged, pcapng": pcapng(SEGMENTS, ["vlan"]),
    "numbers wrap": pcap(SEGMENTS, first={"client": (1 << 32) - 150, "server": (1 << 32) - 2}),
    "all of these": pcap(_SWAPPED, "vlan", 6, first={"client": (1 << 32) - 150, "server": (1 << 32) - 2}),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_tshark_puts_faulty_packets_together_as_we_do(fault: str, tmp_path: Path, debian_program: DebianProgram) -> None:
    packets = tmp_path / "dump.pcap"
    packets.write_bytes(FAULTS[fault])
    (records,) = imported(followed(packets, "raw", ["0"], debian_program))
    (own,) = sessions_of(FAULTS[fault])
    assert frames(own) == frames(records) == PLAIN


@pytest.mark.parametrize("make", [pcap, pcapng])
def test_bytes_that_tshark_says_are_missing_are_a_gap(
    make: Callable[[list[Sent]], bytes], tmp_path: Path, debian_program: DebianProgram
) -> None:
    packets = tmp_path / "dump.pcap"
    packets.write_bytes(make([*SEGMENTS[:_FIFTH], *SEGMENTS[_FIFTH + 1 :]]))
    dump = followed(packets, "ascii", ["0"], debian_program)
    (missing,) = re.findall(rb"\[(\d+) bytes missing in capture file\]", dump)
    (own,) = sessions_of(packets.read_bytes())
    assert [record.bytes for record in own if isinstance(record, Gap)] == [int(missing)]


def test_a_dump_is_shown_in_place_of_a_capture(tmp_path: Path) -> None:
    path = tmp_path / "window.txt"
    path.write_bytes(WINDOW)
    shown = run("show", str(path)).stdout
    assert "✓ 4 calls" in shown
    assert "imported from window.txt (follow), without times, ends" in shown


def followed(packets: Path, form: str, streams: list[str], debian_program: DebianProgram, layer: str = "tcp") -> bytes:
    """Return what tshark prints of these streams."""
    words = [word for stream in streams for word in ("-z", f"follow,{layer},{form},{stream}")]
    argv = [debian_program("tshark"), "-r", str(packets), "-q", *words]
    return subprocess.run(argv, capture_output=True, timeout=DEADLINE_S, check=True).stdout


def streams_of(packets: Path, port: str, debian_program: DebianProgram) -> list[str]:
    """Return the numbers of the streams of this port."""
    argv = [debian_program("tshark"), "-r", str(packets), "-Y", f"tcp.port == {port}", "-T", "fields", "-e", "tcp.stream"]
    lines = subprocess.run(argv, capture_output=True, timeout=DEADLINE_S, check=True, text=True).stdout.split()
    return sorted(set(lines), key=int)


TSHARK = b"\n" + b"=" * 67 + b"\nFollow: tcp,%b\nFilter: tcp.stream eq 0\nNode 0: 10.0.0.1:49652\nNode 1: 10.0.0.2:8000\n"
ASCII = TSHARK % b"ascii" + b"".join(
    (b"" if side == "client" else b"\t") + b"%d\n%b\n" % (len(data), data) for side, data in exchange(1)
)
YAML = b"""\
peers:
  - peer: 0
    host: 10.0.0.1
    port: 49652
packets:
  - packet: 4
    peer: 0
    timestamp: 1.5
    data: !!binary |
      UE9TVA==
"""
PIECES = [
    ASCII,
    YAML,
    TSHARK % b"hex",
    TSHARK % b"raw",
    b"00000000  50 4f 53 54 20 2f\n",
    b"\t4\nabcd\n",
    b"ff\n",
    b"0\n",
    b"\n",
]
PIECES += [WINDOW, EXPLAINED, b"HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n", b"peers:\n", b"9999\n", b"\t", b"504f\n"]


@given(st.lists(st.sampled_from(PIECES), max_size=12), st.binary(max_size=20), st.integers(0, 500))
def test_any_pieces_of_dumps_are_read(pieces: list[bytes], noise: bytes, at: int) -> None:
    data = b"".join(pieces)
    for records in imported(data[:at] + noise + data[at:]):
        transcribe(records)


@given(st.binary(max_size=300), st.sampled_from([ASCII, YAML, WINDOW, TSHARK % b"hex"]))
def test_any_bytes_are_read(data: bytes, head: bytes) -> None:
    imported(data)
    imported(head + data)


HOSTILE = [
    b"fffff\n", b"0\n", b"\n", b"= ", b"=", b"9999999\n", b"\t9\n", b"00000000  50\n", b"504f", b"peers:\n", b"  - packet: 1\n",
    b"GET / HTTP/1.1\n\nHTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n", b"\\r\\n", b"HTTP/1.1 200 OK\nContent-Length: 9999999\n\n",
    TSHARK % b"ascii" + b"999999999\n", TSHARK % b"hex",
]  # fmt: skip


@pytest.mark.grid
@pytest.mark.parametrize("piece", HOSTILE)
@pytest.mark.parametrize("head", [b"", ASCII, YAML, WINDOW, EXPLAINED])
def test_a_hostile_dump_takes_linear_time(head: bytes, piece: bytes) -> None:
    imported(head + piece * (300_000 // len(piece)) + b"\n")
