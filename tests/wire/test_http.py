"""The HTTP framing: nothing is lost, reads make no difference, and messages that can be read in two ways are refused."""

from collections.abc import Callable

import h11
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from mcpspy.wire.http import HttpMessages, Piece
from mcpspy.wire.http_body import (
    END,
    MAX_CHUNK_LINE_BYTES,
    BlankLines,
    Body,
    BodyEnd,
    IncompleteMessage,
    OpaqueBytes,
    RefusedBytes,
)
from mcpspy.wire.http_head import MAX_HEAD_BYTES, RequestHead, ResponseHead
from mcpspy.wire.sse import SseEvents, event_of_chunk
from tests.wire.cutting import CUTS, reads
from tests.wire.messages import merged, of_requests, of_responses, raw

GET = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
POST = b"POST /mcp HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello"
CHUNKED_POST = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
CHUNKED_OK = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
SWITCHING = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n"
UNTIL_CLOSE = b"HTTP/1.1 200 OK\r\n\r\n"

PARTICLES = [
    *(GET, POST, CHUNKED_POST, OK, CHUNKED_OK, UNTIL_CLOSE, b"HTTP/1.1 100 Continue\r\n\r\n"),
    *(b"HTTP/1.1 204 No Content\r\n\r\n", SWITCHING, b"CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n"),
    *(
        b"5\r\nhello\r\n",
        b"5;ext=1\r\nhello\r\n",
        b"0\r\n\r\n",
        b"0\r\nX-Took: 3\r\n\r\n",
        b"\r\n",
        b"\n",
        b"\r",
        b"x",
        b"G",
        b"5",
    ),
]
STREAMS = st.lists(st.sampled_from(PARTICLES), max_size=8).map(b"".join)
METHODS = [b"GET", b"HEAD", b"POST", b"CONNECT", b"GET", b"GET"]

Direction = Callable[[list[bytes]], list[Piece]]


def responses(data: list[bytes]) -> list[Piece]:
    return of_responses(data, *METHODS)


DIRECTIONS = pytest.mark.parametrize("direction", [of_requests, responses], ids=["requests", "responses"])


# --- However the bytes come ---


@DIRECTIONS
@given(data=STREAMS, sizes=CUTS)
@example(data=b"5\r\n", sizes=[1])
@example(data=CHUNKED_POST + b"0\r\nno colon\r\n\r\nPOST / HTTP/1.1\n", sizes=[1])
def test_any_cutting_of_the_input_gives_the_same_pieces(direction: Direction, data: bytes, sizes: list[int]) -> None:
    assert merged(direction(reads(data, sizes))) == merged(direction([data]))


@DIRECTIONS
@pytest.mark.parametrize("data", [b"HH", b"HTTP/1.H", b"HTTP/2.0 200", b"HTTP/1.1200", b"\r\nHello", b"(x"])
def test_what_cannot_become_a_head_is_refused_at_once_however_it_is_cut(direction: Direction, data: bytes) -> None:
    pieces = merged(direction([data]))
    for at in range(1, len(data)):
        assert merged(direction([data[:at], data[at:]])) == pieces
    messages = HttpMessages.of_responses()
    messages.expect(b"GET")
    fed = [piece for byte in data for piece in messages.feed(bytes((byte,)))]
    assert any(isinstance(piece, RefusedBytes) for piece in fed)


EVENTS = [
    b"data: hello\n\n",
    b"event: a\r\ndata: b\r\n\r\n",
    b": ping\n\n",
    b"data: a\r\n\n",
    b"\n\n",
    b"data: a\n\ndata: b\n\n",
]
CHUNKS = [b"%x\r\n%b\r\n" % (len(event), event) for event in EVENTS]


@given(before=STREAMS, data=st.sampled_from(CHUNKS + PARTICLES) | STREAMS | st.binary())
@example(before=CHUNKED_OK, data=b"0x7\r\ndata:\n\n\r\n")
@example(before=CHUNKED_OK, data=b"1_0\r\ndata: 89abcdef\n\n\r\n")
@example(before=CHUNKED_OK, data=CHUNKS[0])
@example(before=CHUNKED_OK + b"5\r\nhel", data=CHUNKS[0])
@example(before=CHUNKED_OK + b"5\r\nhello", data=CHUNKS[0])
def test_a_chunk_that_is_recognized_as_one_event_is_one_when_it_is_fed(before: bytes, data: bytes) -> None:
    cut = HttpMessages.of_responses()
    cut.expect(b"GET")
    cut.feed(before)
    event = event_of_chunk(data)
    if event is not None:
        assert SseEvents().feed(event) == [event]
    if event is not None and cut.is_between_chunks:
        assert cut.feed(data) == [Body(data, event, (len(event),))]
        assert cut.is_between_chunks


@pytest.mark.parametrize("event", EVENTS[:3])
def test_events_as_servers_send_them_are_recognized(event: bytes) -> None:
    cut = HttpMessages.of_responses()
    cut.expect(b"GET")
    cut.feed(CHUNKED_OK)
    assert cut.is_between_chunks
    assert event_of_chunk(b"%x\r\n%b\r\n" % (len(event), event)) == event


@DIRECTIONS
@given(data=STREAMS | st.binary(), sizes=CUTS)
def test_the_raw_bytes_of_the_pieces_are_the_input(direction: Direction, data: bytes, sizes: list[int]) -> None:
    assert raw(direction(reads(data, sizes))) == data


MUTANTS = st.tuples(
    st.sampled_from(
        [
            GET + POST,
            CHUNKED_POST + b"5\r\nhello\r\n0\r\nA: b\r\n\r\n" + GET,
            OK + OK,
            CHUNKED_OK + b"a;b\r\n0123456789\r\n0\r\n\r\n",
        ]
    ),
    st.integers(0, 200),
    st.sampled_from([b"", b"\r", b"\n", b"\0", b" ", b":", b"\x80", b"0", b"\r\n", b"\r\n\r\n"]),
    st.integers(0, 3),
)


@DIRECTIONS
@given(mutant=MUTANTS, sizes=CUTS)
def test_a_byte_more_less_or_other_makes_no_difference_to_that(
    direction: Direction, mutant: tuple[bytes, int, bytes, int], sizes: list[int]
) -> None:
    sound, at, put_in, left_out = mutant
    data = sound[:at] + put_in + sound[at + left_out :]
    cut = direction(reads(data, sizes))
    assert merged(cut) == merged(direction([data]))
    assert raw(cut) == data


@pytest.mark.parametrize("terminated", [True, False])
@pytest.mark.parametrize("over", [-1, 0, 1])
def test_the_limit_of_a_head_does_not_depend_on_the_reads(over: int, *, terminated: bool) -> None:
    begin = b"GET / HTTP/1.1\r\nHost: a\r\nX: "
    data = begin + b"x" * (MAX_HEAD_BYTES + over - len(begin) - 4) + (b"\r\n\r\n" if terminated else b"xxxx")
    whole = merged(of_requests([data]))
    assert merged(of_requests(reads(data, [1]))) == whole
    assert isinstance(whole[0], RefusedBytes) == (over > 0)


def test_bytes_past_the_limit_of_a_head_are_not_looked_at() -> None:
    data = b"GET / HTTP/1.1\r\nHost: a\r\nX: " + b"x" * MAX_HEAD_BYTES + b"\n\r\n\r\n"
    assert (
        merged(of_requests(reads(data, [1])))
        == merged(of_requests([data]))
        == [RefusedBytes(data, "the head is larger than 64 KiB")]
    )


@pytest.mark.parametrize("terminated", [True, False])
@pytest.mark.parametrize("over", [-1, 0, 1])
def test_the_limit_of_a_chunk_size_does_not_depend_on_the_reads(over: int, *, terminated: bool) -> None:
    line = b"5;" + b"x" * (MAX_CHUNK_LINE_BYTES + over - 4) + (b"\r\n" if terminated else b"xx")
    data = CHUNKED_POST + line + b"hello\r\n0\r\n\r\n"
    whole = merged(of_requests([data]))
    assert merged(of_requests(reads(data, [1]))) == whole
    assert isinstance(whole[-1], RefusedBytes) == (over > 0 or not terminated)


@pytest.mark.parametrize("terminated", [True, False])
@pytest.mark.parametrize("over", [-1, 0, 1])
def test_the_limit_of_trailers_does_not_depend_on_the_reads(over: int, *, terminated: bool) -> None:
    trailers = b"0\r\nX: " + b"x" * (MAX_HEAD_BYTES + over - 10) + (b"\r\n\r\n" if terminated else b"xxxx")
    whole = merged(of_requests([CHUNKED_POST + trailers]))
    assert merged(of_requests(reads(CHUNKED_POST + trailers, [1]))) == whole
    assert isinstance(whole[-1], RefusedBytes) == (over > 0 or (over == 0 and not terminated))


# --- Bodies ---


def ends(pieces: list[Piece]) -> list[str]:
    """`ends_by` of every head."""
    return [piece.ends_by for piece in pieces if isinstance(piece, RequestHead | ResponseHead)]


def kinds(pieces: list[Piece]) -> list[str]:
    return [type(piece).__name__ for piece in merged(pieces)]


def payload(pieces: list[Piece]) -> bytes:
    return b"".join(piece.payload for piece in pieces if isinstance(piece, Body))


def test_a_request_and_its_body_in_one_read_are_a_head_a_body_and_an_end() -> None:
    head, body, end = HttpMessages.of_requests().feed(POST)
    assert (head.raw, body, end) == (POST[:-5], Body(b"hello", b"hello"), END)


def test_a_request_without_framing_has_no_body() -> None:
    assert kinds(of_requests([GET + GET])) == ["RequestHead", "BodyEnd", "RequestHead", "BodyEnd"]


def test_a_content_length_of_zero_is_an_end_at_once() -> None:
    assert kinds(HttpMessages.of_requests().feed(POST.replace(b"5", b"0", 1)[:-5])) == ["RequestHead", "BodyEnd"]


def test_a_chunk_is_reported_where_it_begins_and_its_payload_as_it_comes() -> None:
    machine = HttpMessages.of_requests()
    machine.feed(CHUNKED_POST)
    assert machine.feed(b"a\r\n01") == [Body(b"a\r\n01", b"01", (10,))]
    assert machine.feed(b"23456789\r\n2\r\nab\r\n3") == [Body(b"23456789\r\n2\r\nab\r\n", b"23456789ab", (2,))]
    assert machine.feed(b"\r\n") == [Body(b"3\r\n", b"", (3,))]


def test_all_but_half_a_chunk_size_is_returned_at_once() -> None:
    machine = HttpMessages.of_requests()
    machine.feed(CHUNKED_POST)
    assert raw(machine.feed(b"5\r\nhello\r\n5\r")) == b"5\r\nhello\r\n"


def test_trailers_belong_to_the_end() -> None:
    assert of_requests([CHUNKED_POST + b"0\r\nX-Took: 3\r\nY: \r\n\r\n"])[-1] == BodyEnd(
        b"0\r\nX-Took: 3\r\nY: \r\n\r\n", b"X-Took: 3\r\nY: \r\n"
    )


@pytest.mark.parametrize("line", [b"5", b"005", b"5;a", b"5 ;a=b", b'5;a="b;c"', b"0000000000000005"])
def test_a_chunk_size_may_have_zeros_and_extensions(line: bytes) -> None:
    pieces = of_requests([CHUNKED_POST + line + b"\r\nhello\r\n0\r\n\r\n"])
    assert (payload(pieces), kinds(pieces)[-1]) == (b"hello", "BodyEnd")


MALFORMED_CHUNKS = {
    "nothing": b"\r\nhello",
    "no hex": b"g\r\nhello",
    "a sign": b"+5\r\nhello",
    "a minus": b"-5\r\nhello",
    "0x": b"0x5\r\nhello",
    "an underscore": b"0_5\r\nhello",
    "space before it": b" 5\r\nhello",
    "space behind it": b"5 \r\nhello",
    "17 digits": b"00000000000000005\r\nhello",
    "a bare LF": b"5\nhello",
    "a bare LF in the extension": b"5;a\nb\r\nhello",
    "a bare CR in the extension": b"5;a\rb\r\nhello",
    "a NUL in the extension": b"5;a\0b\r\nhello",
    "an LF before the last": b"5\r\nhello\r\n0\n\r\n",
}


@pytest.mark.parametrize("chunks", MALFORMED_CHUNKS.values(), ids=MALFORMED_CHUNKS)
def test_a_malformed_chunk_size_is_refused_from_there_on(chunks: bytes) -> None:
    refused = merged(of_requests([CHUNKED_POST + chunks + b"\r\n0\r\n\r\n"]))[-1]
    assert isinstance(refused, RefusedBytes)
    assert refused.reason == "malformed chunk size"


def test_a_chunk_longer_than_its_size_is_refused() -> None:
    assert merged(of_requests([CHUNKED_POST + b"5\r\nhello!\r\n"]))[1:] == [
        Body(b"5\r\nhello", b"hello", (5,)),
        RefusedBytes(b"!\r\n", "a chunk is longer than its size"),
    ]


@pytest.mark.parametrize(
    "trailers", [b"no colon\r\n\r\n", b"A : b\r\n\r\n", b"A: b\r\n c\r\n\r\n", b"A: b\0\r\n\r\n", b"A: \r.\r\n\r\n"]
)
def test_malformed_trailers_are_refused(trailers: bytes) -> None:
    assert of_requests([CHUNKED_POST + b"0\r\n" + trailers])[-1] == RefusedBytes(b"0\r\n" + trailers, "malformed trailers")


def test_trailers_that_end_in_lf_are_refused_before_more_comes() -> None:
    machine = HttpMessages.of_requests()
    assert kinds(machine.feed(CHUNKED_POST + b"0\r\nA: b\n\n")) == ["RequestHead", "RefusedBytes"]


def test_after_a_message_comes_the_next() -> None:
    data = POST + CHUNKED_POST + b"5\r\nhello\r\n0\r\n\r\n" + GET
    assert ends(of_requests([data])) == ["length", "chunks", "head"]


def test_empty_lines_before_a_request_belong_to_no_message() -> None:
    assert of_requests([b"\r\n\r\n" + GET])[0] == BlankLines(b"\r\n\r\n")


@pytest.mark.parametrize("junk", [b"\rX", b"\n", b"\x16\x03\x01"])
def test_bytes_that_begin_no_request_are_refused_before_more_comes(junk: bytes) -> None:
    assert kinds(HttpMessages.of_requests().feed(junk)) == ["RefusedBytes"]


def test_a_head_that_ends_in_lf_is_refused_before_more_comes() -> None:
    machine = HttpMessages.of_requests()
    assert machine.feed(b"GET / HTTP/1.1\r\nHost: a") == []
    assert kinds(machine.feed(b"\n\n")) == ["RefusedBytes"]


# --- What a response ends by (RFC 9112, section 6.3) ---

FRAMINGS = [
    (b"GET", b"200 OK\r\nContent-Length: 5\r\n", "length"),
    (b"GET", b"200 OK\r\nTransfer-Encoding: chunked\r\n", "chunks"),
    (b"GET", b"200 OK\r\nTransfer-Encoding: gzip, Chunked \r\n", "chunks"),
    (b"GET", b"200 OK\r\nTransfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n", "chunks"),
    (b"GET", b"200 OK\r\nTransfer-Encoding: gzip\r\n", "close"),
    (b"GET", b"200 OK\r\n", "close"),
    (b"HEAD", b"200 OK\r\nContent-Length: 5\r\n", "head"),
    (b"HEAD", b"200 OK\r\nTransfer-Encoding: chunked\r\n", "head"),
    (b"GET", b"204 No Content\r\n", "head"),
    (b"GET", b"304 Not Modified\r\nContent-Length: 5\r\n", "head"),
    (b"GET", b"103 Early Hints\r\n", "head"),
    (b"GET", b"101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n", "upgrade"),
    (b"CONNECT", b"200 OK\r\nContent-Length: 5\r\n", "upgrade"),
    (b"CONNECT", b"407 No\r\nContent-Length: 5\r\n", "length"),
]


@pytest.mark.parametrize(("method", "head", "expected"), FRAMINGS)
def test_the_end_of_a_response_follows_from_its_request_and_its_head(method: bytes, head: bytes, expected: str) -> None:
    assert ends(of_responses([b"HTTP/1.1 " + head + b"\r\n"], method)) == [expected]


def test_pipelined_responses_answer_the_requests_in_order() -> None:
    data = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n" + OK
    assert ends(of_responses([data], b"HEAD", b"GET")) == ["head", "length"]


def test_the_final_response_follows_the_interim_ones() -> None:
    data = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + OK
    pieces = of_responses([data], b"POST")
    heads = [piece for piece in pieces if isinstance(piece, ResponseHead)]
    assert [(head.status, head.is_interim) for head in heads] == [(100, True), (103, True), (200, False)]
    assert payload(pieces) == b"hello"


def test_a_response_without_a_request_is_refused() -> None:
    assert of_responses([OK]) == [RefusedBytes(OK, "a response without a request")]


def test_bytes_after_the_content_length_are_refused_and_not_taken_for_a_response() -> None:
    assert of_responses([OK + b" and more"], b"GET")[-1] == RefusedBytes(b" and more", "a response without a request")


def test_after_an_upgrade_everything_is_opaque() -> None:
    pieces = of_responses([SWITCHING + b"\x81\x05hello", OK], b"GET", b"GET")
    assert pieces[1:] == [OpaqueBytes(b"\x81\x05hello"), OpaqueBytes(OK)]


def test_the_client_goes_on_in_the_other_protocol_after_switch() -> None:
    machine = HttpMessages.of_requests()
    head, end = machine.feed(b"GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n")
    assert isinstance(head, RequestHead)
    assert end == END
    assert machine.feed(b"PO") == []
    assert machine.switch() == [OpaqueBytes(b"PO")]
    assert machine.feed(POST) == [OpaqueBytes(POST)]


def test_an_upgrade_that_is_not_granted_leaves_http_as_it_is() -> None:
    asking = b"POST / HTTP/1.1\r\nHost: a\r\nUpgrade: h2c\r\nConnection: upgrade\r\nContent-Length: 5\r\n\r\nhello"
    assert ends(of_requests([asking + GET])) == ["length", "head"]


def test_after_a_refused_response_everything_is_opaque() -> None:
    assert kinds(of_responses([b"ICY 200 OK\r\n\r\n", OK], b"GET", b"GET")) == ["RefusedBytes"]


# --- The close ---

UNFINISHED = [
    (OK[:-2], b"", 2),
    (OK[:-5], b"", 5),
    (OK[:20], OK[:20], None),
    (CHUNKED_OK + b"5\r\nhel", b"", 2),
    (CHUNKED_OK + b"5\r\nhello", b"", None),
    (CHUNKED_OK + b"5\r\nhello\r", b"\r", None),
    (CHUNKED_OK + b"5\r\nhello\r\n", b"", None),
    (CHUNKED_OK + b"5;a", b"5;a", None),
    (CHUNKED_OK + b"0\r\nA: b\r\n", b"0\r\nA: b\r\n", None),
]


@pytest.mark.parametrize(("data", "held", "missing_bytes"), UNFINISHED)
def test_a_close_within_a_message_says_how_many_bytes_are_missing(data: bytes, held: bytes, missing_bytes: int | None) -> None:
    assert of_responses([data], b"GET")[-1] == IncompleteMessage(held, missing_bytes)


def test_the_close_ends_a_body_that_lasts_until_then() -> None:
    assert of_responses([UNTIL_CLOSE, b"hel", b"lo"], b"GET")[1:] == [Body(b"hel", b"hel"), Body(b"lo", b"lo"), END]


@pytest.mark.parametrize("data", [b"", OK, SWITCHING + b"\x81", b"junk"])
def test_a_close_between_messages_adds_nothing(data: bytes) -> None:
    machine = HttpMessages.of_responses()
    machine.expect(b"GET")
    machine.feed(data)
    assert machine.close() == []


# --- Work ---


def test_a_head_that_comes_byte_by_byte_is_looked_at_while_it_is_short(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at: list[int] = []

    def objection(begun: bytes) -> str:
        looked_at.append(len(begun))
        return ""

    machine = HttpMessages.of_requests()
    monkeypatch.setattr(machine, "_objection", objection)
    for read in reads(GET, [1]):
        machine.feed(read)
    assert looked_at == [*range(1, 17)]


def test_a_read_within_a_body_is_returned_as_the_same_object() -> None:
    machine = HttpMessages.of_requests()
    machine.feed(POST.replace(b"5", b"500")[:-5])
    read = b"x" * 100
    (body,) = machine.feed(read)
    assert isinstance(body, Body)
    assert body.raw is body.payload is read


# --- h11 reads the same ---

TOKENS = st.from_regex(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,8}", fullmatch=True)
VALUES = st.from_regex(rb"([!-~\x80-\xff]([ \t!-~\x80-\xff]{0,8}[!-~\x80-\xff])?)?", fullmatch=True)
FRAMING = {b"content-length", b"transfer-encoding", b"host", b"upgrade", b"connection", b"expect"}
FIELDS = st.lists(st.tuples(TOKENS, VALUES), max_size=4).map(
    lambda fields: [(name, value) for name, value in fields if name.lower() not in FRAMING]
)
PAYLOADS = st.lists(st.binary(max_size=12), max_size=4)


@st.composite
def sent_messages(draw: st.DrawFn) -> tuple[list[tuple[bytes, list[tuple[bytes, bytes]], bytes]], bytes]:
    """Draw requests that h11's client sends on one connection, as target, fields and payload of each; and their bytes."""
    connection = h11.Connection(h11.CLIENT)
    requests, data = [], b""
    for _ in range(draw(st.integers(1, 3))):
        fields, payloads = draw(FIELDS), draw(PAYLOADS)
        target = b"/" + draw(st.from_regex(rb"[!$-~]{0,8}", fullmatch=True)).replace(b"#", b"")
        framing = (b"Content-Length", b"%d" % sum(map(len, payloads)))
        if draw(st.booleans()):
            framing = (b"Transfer-Encoding", b"chunked")
        data += connection.send(h11.Request(method=b"POST", target=target, headers=[(b"Host", b"a"), framing, *fields])) or b""
        for body in payloads:
            data += connection.send(h11.Data(data=body)) or b""
        data += connection.send(h11.EndOfMessage()) or b""
        requests.append((target, [(b"Host", b"a"), framing, *fields], b"".join(payloads)))
        # the other end agrees, so that the next request may be sent
        connection.receive_data(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        while connection.next_event() not in (h11.NEED_DATA, h11.PAUSED):
            pass
        connection.start_next_cycle()
    return requests, data


@given(sent_messages(), CUTS)
def test_the_requests_that_h11_sends_are_read_as_sent(
    sent: tuple[list[tuple[bytes, list[tuple[bytes, bytes]], bytes]], bytes], sizes: list[int]
) -> None:
    requests, data = sent
    read: list[tuple[bytes, list[tuple[bytes, bytes]], bytes]] = []
    for piece in of_requests(reads(data, sizes)):
        if isinstance(piece, RequestHead):
            read.append((piece.target, piece.fields, b""))
        elif isinstance(piece, Body):
            read[-1] = (*read[-1][:2], read[-1][2] + piece.payload)
    assert read == requests


def h11_reads(data: bytes, role: type[h11.CLIENT] | type[h11.SERVER]) -> list[bytes] | None:
    """Return the payloads of the messages that h11 reads in `data`; None if it refuses."""
    connection = h11.Connection(role, max_incomplete_event_size=MAX_HEAD_BYTES)
    if role is h11.CLIENT:
        connection.send(h11.Request(method=b"GET", target=b"/", headers=[(b"Host", b"a")]))
        connection.send(h11.EndOfMessage())
    connection.receive_data(data)
    read: list[bytes] = []
    try:
        while True:
            event = connection.next_event()
            if isinstance(event, h11.Request | h11.Response):
                read.append(b"")
            elif isinstance(event, h11.Data):
                read[-1] += bytes(event.data)
            elif not isinstance(event, h11.InformationalResponse):
                return read
    except h11.RemoteProtocolError:
        return None


ODD_FRAMINGS = st.lists(
    st.sampled_from(
        [
            *(
                b"Content-Length: 3",
                b"Content-Length: 5",
                b"content-length: 3, 3",
                b"Content-Length: +3",
                b"Content-Length:\t3 ",
            ),
            *(
                b"Transfer-Encoding: chunked",
                b"Transfer-Encoding: gzip",
                b"transfer-encoding:chunked",
                b"Transfer-Encoding : chunked",
            ),
            *(
                b"Transfer-Encoding: chunked, gzip",
                b"Transfer-Encoding: xchunked",
                b"Transfer-Encoding: \x0bchunked",
                b"X: y",
                b" folded",
            ),
        ]
    ),
    max_size=3,
)
ODD_BODIES = st.sampled_from([b"", b"abcde", b"3\r\nabc\r\n0\r\n\r\n", b"3;x\r\nabc\r\n0\r\nA: b\r\n\r\n"])


@given(ODD_FRAMINGS, ODD_BODIES)
@example([b"Content-Length: 5", b"Transfer-Encoding: chunked"], b"0\r\n\r\n")
def test_a_request_that_is_read_is_read_as_h11_reads_it(lines: list[bytes], body: bytes) -> None:
    data = b"".join(line + b"\r\n" for line in [b"POST / HTTP/1.1", b"Host: a", *lines]) + b"\r\n" + body
    ours = of_requests([data])
    theirs = h11_reads(data, h11.SERVER)
    if theirs is not None and isinstance(ours[0], RequestHead):
        first = ours[: ours.index(END)] if END in ours else ours
        assert payload([piece for piece in first if isinstance(piece, Body)]) == theirs[0]


@given(ODD_FRAMINGS, ODD_BODIES)
def test_a_request_that_h11_refuses_is_refused(lines: list[bytes], body: bytes) -> None:
    assume(b"Transfer-Encoding: gzip" not in lines)  # h11 refuses every coding but chunked: it would have to decode it
    data = b"".join(line + b"\r\n" for line in [b"POST / HTTP/1.1", b"Host: a", *lines]) + b"\r\n" + body
    if h11_reads(data, h11.SERVER) is None:
        assert any(isinstance(piece, RefusedBytes) for piece in of_requests([data]))


@given(ODD_FRAMINGS, ODD_BODIES)
def test_a_response_that_is_read_is_read_as_h11_reads_it(lines: list[bytes], body: bytes) -> None:
    data = b"".join(line + b"\r\n" for line in [b"HTTP/1.1 200 OK", *lines]) + b"\r\n" + body
    ours = of_responses([data], b"GET")
    theirs = h11_reads(data, h11.CLIENT)
    if theirs and isinstance(ours[0], ResponseHead):
        assert payload(ours) == theirs[0]
