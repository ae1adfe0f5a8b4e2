"""Tests of every way to cut the upstream's bytes: client and capture get the same bytes and frames (no sockets)."""

import socket
from collections.abc import Sequence

from hypothesis import example, given
from hypothesis import strategies as st

from mcpspy.live.http.connection_pair import ConnectionPair
from mcpspy.live.http.listener import Authority, HttpOrigin
from mcpspy.live.http.tap import HttpTap
from mcpspy.records import Frame, Record
from tests.live.http.ends import EVENTS
from tests.wire.cutting import CUTS, reads

PIECES = [
    b"data: 1\n\n",
    b"data: 2\r\n\r\n",
    b": ping\n\n",
    b"data: half",
    b" an event\n\n",
    b"\n",
    b"id: 7\ndata: a\ndata: b\n\n",
    b"data: \r\r",
]
BODIES = st.lists(st.lists(st.sampled_from(PIECES), min_size=1, max_size=2).map(b"".join), max_size=12)


class Sent:
    """A stand-in for a channel: it keeps what is sent."""

    def __init__(self) -> None:
        self.data = b""
        self.is_closing = False
        self.pending_bytes = 0

    def write(self, data: bytes) -> None:
        self.data += data

    def pause(self) -> None:
        """Do nothing: nothing is read here."""

    resume = pause


class Relayed:
    """Return what the client got and what was recorded of a response that came in these reads."""

    def __init__(self, came: Sequence[bytes]) -> None:
        self.frames: list[Frame] = []
        tap = HttpTap(HttpOrigin("http", Authority("127.0.0.1", 1)), 0)
        tap.record_to(self._record)
        tap.listen("127.0.0.1", 0).close()
        ours, theirs = socket.socketpair()
        pair = ConnectionPair(tap, ours)
        self._client, self._server = Sent(), Sent()
        pair._client, pair._server = self._client, self._server  # type: ignore[assignment]  # in the place of sockets
        pair.on_client_data(b"GET /sse HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n" % tap.own.port)
        for data in came:
            pair.on_server_data(data)
        self.data = self._client.data
        tap.reactor.close()
        ours.close()
        theirs.close()

    def _record(self, records: Sequence[Record]) -> None:
        self.frames += [record for record in records if isinstance(record, Frame)]

    @property
    def events(self) -> list[tuple[bytes, tuple[int, ...]]]:
        return [(frame.data, frame.chunks) for frame in self.frames]


@given(chunks=BODIES, sizes=CUTS)
@example(chunks=[PIECES[0]] * 9, sizes=[1])
@example(chunks=[PIECES[0], PIECES[3], PIECES[4], PIECES[0]], sizes=[7])
@example(chunks=[PIECES[0]] * 9, sizes=[len(b"9\r\n" + PIECES[0] + b"\r\n")])
def test_any_cutting_of_a_stream_gives_the_same_bytes_and_the_same_events(chunks: list[bytes], sizes: list[int]) -> None:
    body = b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks) + b"0\r\n\r\n"
    cut = Relayed([EVENTS, *reads(body, sizes)])
    assert cut.data == EVENTS + body
    assert b"".join(data for data, _ in cut.events) == b"".join(chunks)
    assert cut.events == Relayed([EVENTS, body]).events
