"""Bodies with a name that must be rewritten, however they are cut: only the name differs, and no chunk breaks."""

from hypothesis import given
from hypothesis import strategies as st

from mcpspy.live.http.body_rewriting import MAX_HELD_BYTES, EndpointWatch
from mcpspy.live.http.listener import Authority, HttpOrigin
from mcpspy.live.http.rewriting import Rewriting
from mcpspy.wire.http import HttpMessages
from mcpspy.wire.http_body import Body, BodyEnd
from mcpspy.wire.http_head import ResponseHead

MAPPING = Rewriting(upstream=HttpOrigin("http", Authority("127.0.0.1", 9)), own="localhost:8765")
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"

PIECES = [
    b": ping\n\n",
    b"\n",
    b"retry: 1\r\n\r\n",
    b"event: endpoint\ndata: http://127.0.0.1:9/m?x=1\n\n",
    b"event: endpoint\r\ndata: /m\r\n\r\n",
    b"data: {}\n\n",
    b"data:\r\r",
    b"id: 1",
    b"event: end",
]
bodies = st.lists(st.sampled_from(PIECES), max_size=6).map(b"".join)
cuts = st.lists(st.integers(1, 40), min_size=1, max_size=8)


def cut(data: bytes, sizes: list[int]) -> list[bytes]:
    """Cut `data` into pieces of these sizes, over and over."""
    pieces: list[bytes] = []
    while data:
        size = sizes[len(pieces) % len(sizes)]
        pieces.append(data[:size])
        data = data[size:]
    return pieces


def chunked(body: bytes, sizes: list[int]) -> bytes:
    return b"".join(b"%x;a=b\r\n%b\r\n" % (len(piece), piece) for piece in cut(body, sizes)) + b"0\r\n\r\n"


def watched(raw: bytes, reads: list[int]) -> tuple[bytes, EndpointWatch]:
    """Return what is sent on for a chunked body that comes in these reads."""
    responses = HttpMessages.of_responses()
    responses.expect(b"GET")
    (head,) = responses.feed(HEAD)
    assert isinstance(head, ResponseHead)
    watch = EndpointWatch(head, MAPPING)
    out = []
    for read in cut(raw, reads):
        for piece in responses.feed(read):
            match piece:
                case Body():
                    out.append(watch.feed(piece))
                case BodyEnd():
                    out += (watch.release(), piece.raw)
    return b"".join(out), watch


def payload(raw: bytes) -> bytes:
    """Read the payload of a whole chunked body with the parser of the wire."""
    responses = HttpMessages.of_responses()
    responses.expect(b"GET")
    _, *pieces = responses.feed(HEAD + raw)
    assert isinstance(pieces[-1], BodyEnd)
    return b"".join(piece.payload for piece in pieces if isinstance(piece, Body))


@given(bodies, cuts, cuts)
def test_what_is_sent_on_is_whole_and_differs_by_the_mapped_event_at_most(
    body: bytes, chunks: list[int], reads: list[int]
) -> None:
    raw = chunked(body, chunks)
    sent, watch = watched(raw, reads)
    if not watch.rewritten:
        assert sent == raw
    else:
        assert payload(sent) == body.replace(watch.event, watch.rewritten, 1)


@given(bodies, cuts, cuts)
def test_where_it_is_cut_makes_no_difference(body: bytes, chunks: list[int], reads: list[int]) -> None:
    sent, watch = watched(chunked(body, chunks), reads)
    whole, other = watched(chunked(body, [1000]), [1000])
    assert payload(sent) == payload(whole)
    assert (watch.event, watch.rewritten) == (other.event, other.rewritten)


def test_behind_the_chunk_with_the_event_chunks_pass_as_they_came() -> None:
    first = b"event: endpoint\ndata: http://127.0.0.1:9/m\n\n"
    rest = chunked(b"data: 1\n\n" * 3, [4])
    sent, _ = watched(b"%x\r\n%b\r\n" % (len(first), first) + rest, [11])
    assert sent.endswith(rest)


def test_no_more_is_held_back_than_is_stated() -> None:
    raw = chunked(b": " + b"x" * (2 * MAX_HELD_BYTES), [70_000])
    responses = HttpMessages.of_responses()
    responses.expect(b"GET")
    (head,) = responses.feed(HEAD)
    assert isinstance(head, ResponseHead)
    watch = EndpointWatch(head, MAPPING)
    came = sent = 0
    for read in cut(raw, [64_000]):
        for piece in responses.feed(read):
            if isinstance(piece, Body):
                came += len(piece.raw)
                sent += len(watch.feed(piece))
        assert came - sent <= MAX_HELD_BYTES + 64_000
