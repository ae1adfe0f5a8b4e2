"""Captures of every released format, which must stay readable. The files are never made again; a new format adds new ones."""

import gzip
import hashlib
from pathlib import Path

import pytest

from mcpspy.capture.file.reader import read
from mcpspy.capture.file.verify import Status, verify
from mcpspy.records import Close, Damage, End, Exit, Frame, Gap, Header, Note, Open, Partial, Record, Spawn, Stall

GOLDEN = Path(__file__).parents[2] / "golden"
STDIO = GOLDEN / "capture-1-stdio.mcpspy"
HTTP = GOLDEN / "capture-1-http.mcpspy"

DIGESTS = {
    STDIO: "7310a6a1a72ee4d5e1a29b81af70f3053accc5e80830600141c544beee7d9238",
    HTTP: "8d95e26699c30fb67bb3cb81b86e168bf674d5403d24c692328227b87e004da6",
}
"""Digests of the files when their format was released. If a test fails here, the file has to be restored."""

MS = 1_000_000


@pytest.mark.parametrize("path", DIGESTS, ids=lambda path: path.name)
def test_a_golden_capture_is_as_it_was(path: Path) -> None:
    assert hashlib.sha256(path.read_bytes()).hexdigest() == DIGESTS[path]


@pytest.mark.parametrize("path", DIGESTS, ids=lambda path: path.name)
def test_a_golden_capture_reads_without_damage_and_numbered_throughout(path: Path) -> None:
    records = list(read(path))
    assert not [record for record in records if isinstance(record, Damage)]
    assert [record.number for record in records] == list(range(len(records)))


def numbered(records: list[Record]) -> list[Record]:
    for number, record in enumerate(records):
        record.number = number
    return records


def test_the_stdio_capture_of_format_1_is_read_as_it_was_written() -> None:
    assert list(read(STDIO)) == numbered(
        [
            Header(
                capture_id="a1b2c3d4e5f60718",
                wall_ns=1_795_214_221_000_000_000,
                monotonic_ns=3_054_237_920_369,
                boot_id="d1b0a3c5-37c0-4634-8401-ec0d85eaf92b",
                pid=4711,
                start=305_418,
                parent={"pid": 4700, "name": "editor", "start": 299_000},
                cwd="/home/ada/project",
                label="weather",
                tapped={
                    "transport": "stdio",
                    "argv": ["npx", "-y", "@example/weather", "--api-key=redacted-395bf0c5b5da", "--units", "metric"],
                    "env": ["HOME", "LOGNAME", "PATH", "WEATHER_TOKEN"],
                },
                mcpspy_version="0.1.0",
            ),
            Open(at_ns=900_000, stream=0, sender="client", name="stdin"),
            Open(at_ns=900_000, stream=1, sender="server", name="stdout"),
            Open(at_ns=900_000, stream=2, sender="server", name="stderr"),
            Spawn(at_ns=1 * MS, pid=4712, start=305_423),
            Frame(
                0,
                2 * MS,
                2 * MS,
                b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},'
                b'"clientInfo":{"name":"ada","version":"1"}}}\n',
            ),
            Frame(2, 40 * MS, 40 * MS, "weather 1.4 listens – 天気\n".encode()),
            Frame(1, 41_500_000, 41_500_000, b"Loading stations...\n"),
            Frame(
                1,
                43 * MS,
                42_250_000,
                b'{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},'
                b'"serverInfo":{"name":"weather","version":"1.4"}}}\n',
            ),
            Frame(0, 44 * MS, 44 * MS, b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n'),
            Frame(
                0,
                50 * MS,
                50 * MS,
                b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"forecast",'
                b'"arguments":{"city":"Z\xc3\xbcrich"},"_meta":{"progressToken":1}}}\r\n',
            ),
            Frame(
                1,
                60 * MS,
                60 * MS,
                b'{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1,"total":2}}\n',
            ),
            Frame(2, 61 * MS, 61 * MS, b"\xff\xfe not UTF-8\n"),
            Frame(1, 70 * MS, 65 * MS, b'{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"', part=True),
            Frame(1, 75 * MS, 70_500_000, b'sunny \\ud83c\\udf1e, 21 \xc2\xb0C"}],"isError":false}}\n'),
            Frame(
                0,
                80 * MS,
                80 * MS,
                b'{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"radar","arguments":{}}}\n',
            ),
            Stall(at_ns=1_080 * MS, stream=0, waiting_bytes=65_536),
            Stall(at_ns=1_400 * MS, stream=0, waiting_bytes=0, lasted_ns=1_320 * MS),
            Gap(at_ns=1_500 * MS, since_ns=1_410 * MS, frames=17, bytes=4_321, why="No space left on device"),
            Partial(at_ns=6_600 * MS, stream=1, first_ns=1_600 * MS, data=b'{"jsonrpc":"2.0","id":2,'),
            Note(at_ns=6_700 * MS, topic="signal", text="SIGTERM received and forwarded"),
            Close(at_ns=6_701 * MS, stream=0, by="client", how="eof"),
            Close(at_ns=6_702 * MS, stream=1, by="client", how="broken", extra={"undelivered_bytes": 24}),
            Close(at_ns=6_703 * MS, stream=2, by="server", how="eof"),
            Exit(at_ns=6_704 * MS, pid=4712, signal="SIGTERM", descendants=({"pid": 4719, "name": "node"},)),
            End(at_ns=6_705 * MS, frames=11, bytes=3_942, messages=8, gaps=1, why="client closed stdin"),
        ]
    )


def test_the_stdio_capture_of_format_1_verifies_as_incomplete_for_its_gap() -> None:
    summary = verify(str(STDIO))
    assert (summary.status, [problem.reason for problem in summary.problems]) == (Status.INCOMPLETE, ["gap"])


# --- The HTTP capture ---


@pytest.fixture(scope="module")
def http() -> list[Record]:
    return list(read(HTTP))


def opens(records: list[Record]) -> dict[int, Open]:
    return {record.stream: record for record in records if isinstance(record, Open)}


def frames(records: list[Record], stream: int) -> list[Frame]:
    return [record for record in records if isinstance(record, Frame) and record.stream == stream]


def test_the_http_capture_of_format_1_is_intact() -> None:
    assert verify(str(HTTP)).status is Status.INTACT


def test_its_header_names_the_urls_without_their_secrets(http: list[Record]) -> None:
    assert isinstance(http[0], Header)
    assert http[0].tapped == {
        "transport": "http",
        "url": "http://ada:redacted-82e051df4ae6@127.0.0.1:3001/mcp?key=redacted-9f1be5b1205f",
        "listen": "http://127.0.0.1:7777",
    }


def test_its_transactions_pair_requests_with_responses(http: list[Record]) -> None:
    pairs: dict[int, list[tuple[str, str, str]]] = {}
    for stream in opens(http).values():
        pairs.setdefault(stream.transaction, []).append((stream.name, stream.sender, stream.framing))
    request = ("request", "client", "body")
    assert pairs == {
        transaction: [request, ("response", "server", "sse" if transaction in (2, 3) else "body")]
        for transaction in range(1, 9)
    }


def test_its_heads_are_whole_and_say_what_was_sent_on(http: list[Record]) -> None:
    first = opens(http)[0]
    assert first.head.startswith(b"POST /mcp?key=redacted-9f1be5b1205f HTTP/1.1\r\nHost: 127.0.0.1:7777\r\n")
    assert first.head.endswith(b"\r\n\r\n")
    assert first.forwarded == first.head.replace(b"127.0.0.1:7777", b"127.0.0.1:3001")


def test_its_redacted_ranges_are_those_of_the_pseudonyms(http: list[Record]) -> None:
    ranges = [(record.head if isinstance(record, Open) else record.data, span) for record in http if isinstance(record, Open | Frame)
             for span in record.redacted]  # fmt: skip
    assert {kind for _, (_, _, kind) in ranges} == {"authorization", "cookie", "key", "session", "token"}
    assert all(data[offset : offset + length].startswith(b"redacted-") for data, (offset, length, _) in ranges)


def test_its_session_has_one_pseudonym_in_headers_events_and_queries(http: list[Record]) -> None:
    session = b"redacted-8eecc9a3d0d7"
    places = [opens(http)[1].head, opens(http)[2].head, frames(http, 5)[0].data, opens(http)[6].head]
    assert [session in place for place in places] == [True] * 4


def test_its_token_has_one_pseudonym_where_it_is_granted_and_where_it_is_used(http: list[Record]) -> None:
    token = b"redacted-00dbbd8be47d"
    assert [token in frames(http, 9)[0].data, b"Bearer " + token in opens(http)[2].head] == [True, True]


def test_its_events_know_the_chunks_they_arrived_in(http: list[Record]) -> None:
    assert [(sum(frame.chunks), len(frame.data)) for frame in frames(http, 3)] == [(19, 19), (10, 10), (110, 110)]


def test_its_endpoint_event_says_what_was_sent_on(http: list[Record]) -> None:
    endpoint = frames(http, 5)[0]
    assert endpoint.forwarded == endpoint.data.replace(b"127.0.0.1:3001", b"127.0.0.1:7777")


def test_its_compressed_body_is_kept_as_it_was_sent(http: list[Record]) -> None:
    assert gzip.decompress(frames(http, 13)[0].data) == b'{"resource":"http://127.0.0.1:3001/mcp"}'


def test_bytes_that_mcpspy_wrote_itself_are_marked(http: list[Record]) -> None:
    assert (opens(http)[11].injected, frames(http, 11)[0].injected, opens(http)[9].injected) == (True, True, False)


def test_past_its_size_bound_length_and_digest_are_left(http: list[Record]) -> None:
    body = frames(http, 15)[0]
    assert (body.data, body.length, sum(body.chunks)) == (b"", 5_045, 5_045)
    assert len(bytes.fromhex(body.sha256)) == 32


def test_the_ends_of_its_streams_say_by_whom_and_how(http: list[Record]) -> None:
    ends = {record.stream: (record.by, record.how) for record in http if isinstance(record, Close)}
    assert (ends[0], ends[3], ends[5], ends[11]) == (
        ("client", "eof"),
        ("server", "eof"),
        ("client", "reset"),
        ("mcpspy", "eof"),
    )
