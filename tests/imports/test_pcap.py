"""Packet captures are imported: connections put together whatever happened to their packets, and read as the taps read them."""

import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcpspy import transcribe
from mcpspy.imports.formats import recognized
from mcpspy.imports.packets import PacketReader
from mcpspy.imports.pcap import PacketImporter, TcpDirection
from mcpspy.imports.source import Source
from mcpspy.live.http.recorder import StreamRecorder
from mcpspy.records import Close, Frame, Gap, Header, Note, Open, Partial, Record
from tests.conftest import DebianProgram
from tests.deadlines import DEADLINE_S
from tests.imports.logging_clients import rows_in_any_order
from tests.imports.packet_files import FIN, LINKS, RST, SERVER_PORT, SYN, Say, Sent, dialogue, duplicated, pcap, pcapng
from tests.imports.sniffing import sessions_of, sniff


def post(body: bytes, path: bytes = b"/mcp") -> bytes:
    return b"POST %b HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (
        path,
        len(body),
        body,
    )


def chunked(*parts: bytes) -> bytes:
    return b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts)


def exchange(number: int, text: bytes = b"x") -> list[Say]:
    answer = b'{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"%b"}]}}' % (number, text * 300)
    events = chunked(b"event: message\r\n", b"data: %b\r\n\r\n" % answer, b"")
    return [
        ("client", post(b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"t"}}' % number)),
        ("server", b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n" + events),
    ]


TALK = [say for number in range(1, 5) for say in exchange(number, b"abcd"[number - 1 : number])]
SEGMENTS = dialogue(TALK)


def contents(data: bytes) -> list[object]:
    """Return what was sent, without the times and the numbers of packets."""
    (records,) = sessions_of(data)
    frames = [(item.stream, item.data, item.chunks) for item in records if isinstance(item, Frame)]
    return [frames, [(item.stream, item.by, item.how) for item in records if isinstance(item, Close)]]


PLAIN = contents(pcap(SEGMENTS))


def test_the_calls_of_a_connection_are_rows() -> None:
    (records,) = sessions_of(pcap(SEGMENTS))
    transcript = transcribe(records)
    assert [(row.method, row.outcome.value) for row in transcript.exchanges] == [("tools/call", "ok")] * 4
    header = records[0]
    assert isinstance(header, Header)
    assert (header.tapped["url"], header.label) == ("http://a/mcp", "a")
    assert header.tapped["imported"]["address"] == f"10.0.0.2:{SERVER_PORT}"
    assert transcript.captures[0].connection_words(1) == "connection 1 from port 49652"


@pytest.mark.parametrize(
    ("request_line", "host", "url"),
    [
        (b"POST /mcp?k=1 HTTP/1.1", b"Host: mcp.example.org\r\n", "http://mcp.example.org/mcp"),
        (b"POST /mcp HTTP/1.1", b"hOST:[fd00::2]:8000\r\n", "http://[fd00::2]:8000/mcp"),
        (b"POST http://b:81/mcp HTTP/1.1", b"Host: a\r\n", "http://b:81/mcp"),
        (b"POST /mcp HTTP/1.1", b"Host: a@b/c\r\n", "http://10.0.0.2:8000/mcp"),
        (b"POST /mcp HTTP/1.1", b"Host:\r\n", "http://10.0.0.2:8000/mcp"),
        (b"POST /mcp HTTP/1.0", b"", "http://10.0.0.2:8000/mcp"),
    ],
)
def test_a_server_goes_by_the_name_that_its_client_gives_it_else_by_its_address(
    request_line: bytes, host: bytes, url: str
) -> None:
    body = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
    asks = b"%b\r\n%bContent-Length: %d\r\n\r\n%b" % (request_line, host, len(body), body)
    (records,) = sessions_of(pcap(dialogue([("client", asks)])))
    header = records[0]
    assert isinstance(header, Header)
    assert (header.tapped["url"], header.label) == (url, url.split("/")[2])


def test_a_message_that_waits_for_its_end_is_recorded_after_five_seconds() -> None:
    talk = exchange(1)
    asks, answers = talk[0][1], talk[1][1]
    segments = [
        Sent("client", -1, b"", SYN, at_ns=0),
        Sent("client", 0, asks, at_ns=0),
        Sent("server", 0, answers[:400], at_ns=10**9),
        Sent("client", len(asks), b"", at_ns=7 * 10**9),
        Sent("server", 400, answers[400:], at_ns=9 * 10**9),
    ]
    (records,) = sessions_of(pcapng(segments))
    (partial,) = [record for record in records if isinstance(record, Partial)]
    assert (partial.first_ns, partial.at_ns) == (10**9, 7 * 10**9)
    assert [row.outcome.value for row in transcribe(records).exchanges] == ["ok"]


@pytest.mark.parametrize(("answer", "topic"), [(b"", "answer-taken"), (b"x", "answer-refused")])
def test_a_client_that_closed_its_half_takes_its_answer_or_has_left(answer: bytes, topic: str) -> None:
    talk = exchange(1)
    asks, answers = talk[0][1], talk[1][1]
    end = Sent("client", len(asks) + 1, b"", RST) if answer else Sent("client", len(asks) + 1, b"", 16, len(answers))
    segments = [
        Sent("client", -1, b"", SYN),
        Sent("server", -1, b"", SYN | 16),
        Sent("client", 0, asks),
        Sent("client", len(asks), b"", FIN | 16),
        Sent("server", 0, answers),
        end,
        Sent("server", len(answers), b"", FIN | 16),
    ]
    (records,) = sessions_of(pcap(segments))
    assert [record.topic for record in records if isinstance(record, Note)][1:] == ["half-closed", topic]


def test_frames_name_the_packets_that_completed_them() -> None:
    (records,) = sessions_of(pcap(SEGMENTS))
    frames = [item for item in records if isinstance(item, Frame)]
    requests = [at for at, sent in enumerate(SEGMENTS, 1) if sent.sender == "client" and sent.data]
    assert frames[0].extra["packet"] == max(at for at in requests if at < 10)


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("version", [4, 6])
@pytest.mark.parametrize("link", LINKS)
def test_every_link_carries_the_same(link: str, version: int, order: str) -> None:
    data = pcap(SEGMENTS, link, version, order)
    assert recognized(data) is not None
    assert contents(data) == PLAIN


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("links", [("ethernet",), ("raw", "ethernet", "null")], ids=str)
def test_a_pcapng_with_any_interfaces_carries_the_same(links: tuple[str, ...], order: str) -> None:
    data = pcapng(SEGMENTS, links, order)
    assert contents(data) == PLAIN
    (records,) = sessions_of(data)
    (other,) = sessions_of(pcap(SEGMENTS))
    assert [item.at_ns for item in records] == [item.at_ns for item in other]


def test_numbers_of_segments_that_wrap_are_followed() -> None:
    assert contents(pcap(SEGMENTS, first={"client": (1 << 32) - 150, "server": (1 << 32) - 2})) == PLAIN


@st.composite
def disturbed(draw: st.DrawFn) -> list[Sent]:
    """Segments of one direction out of order, twice, and overlapping."""
    segments = list(SEGMENTS)
    body = [at for at, sent in enumerate(segments) if sent.data and not sent.flags & FIN]
    for _ in range(draw(st.integers(0, 12))):
        at = draw(st.sampled_from(body))
        if draw(st.booleans()):
            back = draw(st.integers(0, max(0, len(segments[at].data) - 1)))
            segments.insert(min(at + draw(st.integers(1, 6)), len(segments) - 2), duplicated(segments[at], back))
        else:
            later = at + 1
            is_one_way = later < len(segments) and segments[later].sender == segments[at].sender and segments[later].data
            if is_one_way and segments[at].data:
                segments[at], segments[later] = segments[later], segments[at]
        body = [place for place, sent in enumerate(segments) if sent.data]
    return segments


@given(disturbed())
def test_order_copies_and_overlaps_do_not_matter(segments: list[Sent]) -> None:
    assert contents(pcap(segments)) == PLAIN


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(disturbed())
def test_connections_are_put_together_as_tshark_does(
    debian_program: DebianProgram, tmp_path_factory: pytest.TempPathFactory, segments: list[Sent]
) -> None:
    tshark = debian_program("tshark")
    path = tmp_path_factory.mktemp("pcap") / "x.pcap"
    path.write_bytes(pcap(segments))
    words = [tshark, "-r", str(path), "-q", "-z", "follow,tcp,raw,0"]
    shown = subprocess.run(words, capture_output=True, text=True, timeout=DEADLINE_S, check=True).stdout
    lines = [line for line in shown.splitlines() if line.strip("\t0123456789abcdef") == "" and line.strip()]
    follows = {
        side: bytes.fromhex("".join(line.strip() for line in lines if line.startswith("\t") is (side == "server")))
        for side in ("client", "server")
    }
    own = {"client": b"", "server": b""}
    directions = {"client": TcpDirection(), "server": TcpDirection()}
    for segment in PacketReader().feed(path.read_bytes()):
        side = "server" if segment.source[1] == SERVER_PORT else "client"
        if segment.flags & SYN:
            directions[side].begin(segment.sequence + 1)
        if segment.payload:
            stretches = directions[side].feed(segment.at_ns, segment.frame, segment.sequence, segment.payload)
            own[side] += b"".join(stretch.data for stretch in stretches)
    assert own == follows


def test_bytes_that_the_file_lacks_are_a_gap_and_what_comes_later_is_read() -> None:
    lost = next(at for at, sent in enumerate(SEGMENTS) if sent.sender == "server" and sent.at > 200)
    (records,) = sessions_of(pcap([*SEGMENTS[:lost], *SEGMENTS[lost + 1 :]]))
    (gap,) = [item for item in records if isinstance(item, Gap)]
    assert (gap.bytes, gap.why) == (100, "100 bytes of the server on connection 1 are not in the file")
    methods = [row.outcome.value for row in transcribe(records).exchanges]
    assert methods[1:] == ["ok"] * 3


def test_packets_that_were_cut_short_are_counted() -> None:
    importer = PacketImporter(Source(name="x", format="pcap"), StreamRecorder)
    importer.feed(pcap(SEGMENTS, snap=120))
    text = importer.passed_over()[0]
    assert text.endswith("cut short when it was captured; a longer snapshot length, -s 0, keeps it whole")


def test_a_connection_that_began_before_the_file_is_read_from_its_next_request() -> None:
    begin = next(at for at, sent in enumerate(SEGMENTS) if sent.sender == "client" and sent.at > 200)
    (records,) = sessions_of(pcap(SEGMENTS[begin:]))
    assert [row.outcome.value for row in transcribe(records).exchanges] == ["ok"] * 2


ONE_SIDE = {
    "the server's": [sent for sent in SEGMENTS if sent.sender == "server"],
    "the server's without its handshake": [sent for sent in SEGMENTS if sent.sender == "server" and sent.at >= 0],
    "the server's from its middle": [sent for sent in SEGMENTS if sent.sender == "server" and sent.at > 200],
    "no HTTP of the client's": dialogue([("client", b"EHLO a\r\n")]),
    "no HTTP of the server's": dialogue([("server", b"220 ready\r\n")]),
}


@pytest.mark.parametrize("case", ONE_SIDE)
def test_a_connection_with_the_packets_of_one_side_is_named(case: str) -> None:
    importer = PacketImporter(Source(name="x", format="pcap"), StreamRecorder)
    importer.feed(pcap(ONE_SIDE[case]))
    importer.close()
    assert importer.passed_over() == ["not read: 1 connection with the packets of one side alone: capture both directions"]


NOT_ONE_SIDE = {
    "both of another protocol": (dialogue([("server", b"220 ready\r\n"), ("client", b"EHLO a\r\n")]), "of other protocols"),
    "TLS": (dialogue([("client", b"\x16\x03\x01\x02\x00" + b"x" * 100)]), "of TLS"),
    "HTTP without an answer": (dialogue([("client", b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")]), ""),
    "HTTP that is no MCP": (
        dialogue(
            [("client", b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"), ("server", b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")]
        ),
        "",
    ),
    "no bytes": ([sent for sent in SEGMENTS if not sent.data], ""),
    "MCP": (SEGMENTS, ""),
}


@pytest.mark.parametrize("case", NOT_ONE_SIDE)
def test_a_connection_with_both_sides_is_not_said_to_lack_one(case: str) -> None:
    segments, words = NOT_ONE_SIDE[case]
    importer = PacketImporter(Source(name="x", format="pcap"), StreamRecorder)
    importer.feed(pcap(segments))
    importer.close()
    said = "".join(importer.passed_over())
    assert "one side" not in said
    assert words in said
    assert bool(said) == bool(words)


def test_a_client_without_its_servers_packets_has_given_up_nothing() -> None:
    (records,) = sessions_of(pcap([sent for sent in SEGMENTS if sent.sender == "client"]))
    made = transcribe(records)
    assert {row.outcome.value for row in made.exchanges} == {"unknown"}
    assert [finding.rule for finding in made.findings] == ["recording-gap"]


def test_a_server_that_resets_within_an_answer_is_told() -> None:
    middle = next(at for at, sent in enumerate(SEGMENTS) if sent.sender == "server" and sent.at > 200)
    sent = SEGMENTS[middle]
    (records,) = sessions_of(pcap([*SEGMENTS[:middle], Sent("server", sent.at, b"", RST)]))
    assert [(item.by, item.how) for item in records if isinstance(item, Close)][-1] == ("server", "reset")


def test_tls_is_not_read_and_said_so() -> None:
    importer = PacketImporter(Source(name="x", format="pcap"), StreamRecorder)
    importer.feed(pcap(dialogue([("client", b"\x16\x03\x01\x02\x00" + b"x" * 100)])))
    assert not importer.close()
    (text,) = importer.passed_over()
    assert text.startswith("not read: 1 connection of TLS")


def test_a_stream_that_announces_an_endpoint_is_mcp_though_its_client_named_no_events() -> None:
    announced = b"event: endpoint\r\ndata: /messages\r\n\r\n"
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    stream = [
        ("client", b"GET /sse HTTP/1.1\r\nHost: a\r\nAccept: */*\r\n\r\n"),
        ("server", head + chunked(announced)),
    ]
    (records,) = sessions_of(pcap(dialogue(stream)))
    assert [record.data for record in records if isinstance(record, Frame)] == [announced]


def test_http_of_other_kinds_makes_no_capture() -> None:
    page = [("client", b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"), ("server", b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")]
    assert not sessions_of(pcap(dialogue(page)))


def test_a_response_that_the_file_has_before_its_request_belongs_to_it() -> None:
    asks, answers = dialogue(exchange(1)[:1])[3:-2], [sent for sent in dialogue(exchange(1))[3:-2] if sent.sender == "server"]
    start = SEGMENTS[:3]
    (records,) = sessions_of(pcap([*start, *answers[:1], *asks, *answers[1:]]))
    assert [row.outcome.value for row in transcribe(records).exchanges] == ["ok"]


@pytest.mark.parametrize("story", ["streamable", "sse", "stateless"])
def test_packets_make_the_rows_and_findings_of_the_taps_capture(
    story: str, tmp_path: Path, debian_program: DebianProgram
) -> None:
    sniffed = sniff(story, tmp_path, debian_program)
    transcript = transcribe(sniffed.session)
    assert rows_in_any_order(transcript) == rows_in_any_order(sniffed.tapped)
    assert {finding.rule for finding in transcript.findings} == {finding.rule for finding in sniffed.tapped.findings}


@given(st.integers(1, 300))
def test_a_file_is_read_cut_anywhere(step: int) -> None:
    data = pcapng(SEGMENTS)
    assert sessions_of(data, step) == sessions_of(data)


@given(st.lists(st.tuples(st.integers(0, len(pcap(SEGMENTS)) - 1), st.integers(0, 255)), max_size=30), st.booleans())
def test_spoilt_files_are_read(spoils: list[tuple[int, int]], is_ng: bool) -> None:  # noqa: FBT001
    data = bytearray(pcapng(SEGMENTS) if is_ng else pcap(SEGMENTS))
    for at, value in spoils:
        data[at % len(data)] = value
    for records in sessions_of(bytes(data)):
        transcribe(records)


@given(st.binary(max_size=500), st.sampled_from([b"\xd4\xc3\xb2\xa1", b"\x0a\x0d\x0d\x0a"]))
def test_any_bytes_are_read(data: bytes, magic: bytes) -> None:
    sessions_of(magic + data)


def test_what_waits_for_a_lost_segment_is_bounded() -> None:
    direction = TcpDirection()
    direction.begin(0)
    stretches = [stretch for at in range(1, 50_000) for stretch in direction.feed(0, 0, at * 1000, b"x" * 1000)]
    assert sum(len(stretch.data) for stretch in stretches) > 40_000_000
    assert sum(stretch.lost for stretch in stretches) == 1000


def test_segments_that_each_come_after_a_hole_take_linear_time() -> None:
    direction = TcpDirection()
    direction.begin(0)
    stretches = [stretch for at in range(1, 60_000) for stretch in direction.feed(0, 0, at * 20, b"x" * 10)]
    assert sum(stretch.lost for stretch in stretches) > 500_000


def test_requests_without_responses_take_linear_time_and_bounded_memory() -> None:
    asks = post(b'{"jsonrpc":"2.0","id":1,"method":"ping"}')
    segments = [Sent("client", at * len(asks), asks, at_ns=at * 10**9) for at in range(25_000)]
    (records,) = sessions_of(pcap(segments))
    notes = [record.text for record in records if isinstance(record, Note)]
    assert notes[1:] == ["more than 10000 requests wait for their responses; what follows on it is left out"] * 2


def in_json(number: int, text: bytes) -> list[Say]:
    asks = b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"t","text":"%b"}}' % (number, text)
    answer = b'{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"%b"}]}}' % (number, text)
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(answer)
    return [("client", post(asks)), ("server", head + answer)]


@given(st.lists(st.integers(0, 900), min_size=1, max_size=4), st.integers(1, 1400), st.booleans())
@settings(suppress_health_check=[HealthCheck.too_slow])
def test_messages_that_come_in_one_packet_are_those_that_come_in_many(sizes: list[int], size: int, is_first: bool) -> None:  # noqa: FBT001
    talk = [say for number, length in enumerate(sizes) for say in in_json(number, b"x" * length)]
    accepted: list[Say] = [
        ("client", post(b'{"jsonrpc":"2.0","method":"notifications/initialized"}')),
        ("server", b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n"),
    ]
    talk = [*accepted, *talk] if is_first else [*talk, *accepted]
    whole, cut = (sessions_of(pcap(dialogue(talk, step)))[0] for step in (100_000, size))
    assert _without_times(whole) == _without_times(cut)


def _without_times(records: list[Record]) -> list[object]:
    opened = [(item.stream, item.transaction, item.connection, item.head) for item in records if isinstance(item, Open)]
    frames = [(item.stream, item.data, item.part) for item in records if isinstance(item, Frame)]
    closed = [(item.stream, item.by, item.how) for item in records if isinstance(item, Close)]
    return [opened, frames, closed]


def test_notes_of_what_is_not_read_are_in_the_capture() -> None:
    (records,) = sessions_of(pcap(SEGMENTS, snap=150))
    assert any(isinstance(item, Note) and item.text.startswith("not read: ") for item in records)
