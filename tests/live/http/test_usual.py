"""The short way of usual messages does what the general path does: the same bytes on both sides, and the same capture.

Connection pairs without sockets, on one tap whose clock stands still within a read, write into one file: once with the short way
and once without. Traffic is random, and so are its cuts, its order over connections, its ends, and the room on the disk.
"""

import errno
import os
import socket
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.capture.file import writer as writing
from mcpspy.capture.file.writer import Writer
from mcpspy.capture.redaction.redactor import Redactor
from mcpspy.capture.redaction.sink import RedactingSink
from mcpspy.live.http import connection_pair, tap, usual
from mcpspy.live.http.connection_pair import ConnectionPair
from mcpspy.live.http.listener import Authority, HostCheck, HttpOrigin
from mcpspy.live.http.tap import HttpTap
from mcpspy.records import Sink

PORT = 28_100
SECRET = "sk-ant-0123456789abcdef0123456789abcdef"
NEVER = sys.maxsize


class SentSide:
    """A stand-in for a channel: it keeps what is sent, and whether it would read on."""

    def __init__(self, *_: object, **callbacks: object) -> None:
        self.data = b""
        self.reads = True
        self.is_closing = False
        self.pending_bytes = 0
        self.events: list[str] = []

    def write(self, data: bytes) -> None:
        self.data += data

    def pause(self) -> None:
        self.reads = False

    def resume(self) -> None:
        self.reads = True

    def end(self) -> None:
        self.events.append("end")

    def abort(self) -> None:
        self.events.append("abort")
        self.is_closing = True

    def read_by(self, read: object) -> None:
        """Do nothing: the test reads."""

    def copy(self) -> socket.socket:
        raise OSError("there is no connection")

    def close(self, *, by_reset: bool = False) -> None:
        self.events.append("reset" if by_reset else "close")
        self.is_closing = True


class NoDial:
    """A connection to the upstream that the test makes when it is its turn."""

    def cancel(self) -> None:
        """Do nothing: nothing is under way."""


@dataclass
class Disk:
    """A disk with room for so many bytes. What does not fit is written in part, and after that nothing is."""

    room: int = NEVER

    def write(self, fd: int, data: bytes) -> int:
        if not self.room and data:
            raise OSError(errno.ENOSPC, "No space left on device")
        written = os.write(fd, data[: self.room])
        self.room -= written
        return written


@dataclass(frozen=True)
class Step:
    """One thing that happens: `on` a connection, data from its client or server, or something else that `does` names."""

    on: int
    does: str
    data: bytes = b""
    room: int = NEVER


@dataclass
class Outcome:
    """Capture of the steps, the changes on connections, and the steps that took the fast path."""

    capture: bytes = b""
    sides: list[Any] = field(default_factory=list)
    short: list[str] = field(default_factory=list, compare=False)
    known: int = field(default=0, compare=False)


@contextmanager
def played_tap(path: Path, disk: Disk, *, redacts: bool) -> Iterator[tuple[HttpTap, list[int], Writer]]:
    """Make a tap without sockets, its clock, and its writer."""
    clock = [0]
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    writer = Writer(fd, b'{"mcpspy":1}\n')
    sink: Sink = RedactingSink(writer, Redactor(b"k" * 32)) if redacts else writer
    proxy = HttpTap(HttpOrigin("http", Authority("127.0.0.1", 1)), 0)
    proxy.listen("127.0.0.1", 0).close()
    proxy.own, proxy.host_check = Authority("127.0.0.1", PORT), HostCheck(port=PORT)
    proxy.record_to(sink)
    with (
        patch.object(connection_pair, "monotonic_ns", lambda: clock[0]),
        patch.object(tap, "monotonic_ns", lambda: clock[0]),
        patch.object(connection_pair, "Channel", SentSide),
        patch.object(proxy, "dial", lambda **_: NoDial()),
        patch.object(writing, "_write", disk.write),
    ):
        yield proxy, clock, writer
        if writer._fd >= 0:
            writer.close(0)
    proxy.reactor.close()


class Played:
    """Connection pairs on one tap, to which steps happen."""

    def __init__(self, proxy: HttpTap) -> None:
        self._tap = proxy
        self.pairs: dict[int, ConnectionPair] = {}

    def do(self, step: Step) -> None:
        pair = self.pairs.get(step.on)
        if pair is None:
            pair = self.pairs[step.on] = ConnectionPair(self._tap, None)  # type: ignore[arg-type]  # no channel has a socket here
        server = pair._server
        match step.does:
            case "client" if not pair._client.is_closing:
                pair.on_client_data(step.data)
            case "server" if server is not None and not server.is_closing:
                pair.on_server_data(step.data)
            case "connect" if server is None and not pair._is_over:
                pair.on_connected(SentSide())  # type: ignore[arg-type]
            case "client ends" if not pair.on_client_end():
                pair._client.close()
            case "client is lost":
                pair.on_client_lost(None)
                del self.pairs[step.on]
            case "server is lost" if server is not None:
                pair.on_server_lost(ConnectionResetError())
            case "expires":
                pair._on_expired()
            case "server is full" if server is not None:
                pair.pause_client()
            case "server is empty" if server is not None:
                pair.resume_client()

    def sides(self) -> list[Any]:
        """Return the numbers of the latest streams; what each side got, whether it is read from, and how it was ended."""
        found: list[Any] = []
        for number, pair in sorted(self.pairs.items()):
            both: tuple[Any, Any] = (pair._client, pair._server)
            found.append(
                (
                    number,
                    pair._request,
                    pair._stream,
                    [(side.data, side.reads, side.events) for side in both if side is not None],
                )
            )
        return found


def played(steps: list[Step], min_sights: int, *, redacts: bool = True) -> Outcome:
    """Play steps, with heads that are known when they came so often."""
    outcome = Outcome()
    disk = Disk()
    with tempfile.TemporaryDirectory() as folder, patch.multiple(usual, IS_ON=min_sights != NEVER, MIN_SIGHTS=min_sights):
        path = Path(folder) / "x.mcpspy"
        with played_tap(path, disk, redacts=redacts) as (proxy, clock, writer):
            known = proxy.known_heads
            take = known.message

            def counted(*arguments: Any) -> bool:
                if not take(*arguments):
                    return False
                outcome.short.append(arguments[3])
                return True

            known.message = counted
            on = Played(proxy)
            for step in steps:
                clock[0] += 1_000
                if step.does == "disk":
                    disk.room = step.room
                    continue
                sides = on.sides()
                on.do(step)
                outcome.sides.append([now for now in on.sides() if now not in sides])
            outcome.known = max(len(known._sights), len(known.requests) + len(known.responses))
            disk.room = NEVER
            for pair in list(on.pairs.values()):
                pair.abort()
            writer.close(clock[0] + 1)
        outcome.capture = path.read_bytes()
    return outcome


# --- What clients and servers say ---


def request(body: bytes, *fields: bytes, line: bytes = b"POST /mcp", host: bytes = b"127.0.0.1:%d" % PORT) -> bytes:
    length = b"Content-Length: %d" % len(body)
    head = b"\r\n".join((line + b" HTTP/1.1", b"Host: " + host, *fields, length, b"", b""))
    return head + body


def response(body: bytes, *fields: bytes, status: bytes = b"200 OK", length: bytes = b"content-length") -> bytes:
    return b"\r\n".join((b"HTTP/1.1 " + status, *fields, length + b": %d" % len(body), b"", b"")) + body


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


EVENTS = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
JSON = b"Content-Type: application/json"


def call(size: int = 40) -> bytes:
    return b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"x":"%b"}}' % (b"x" * size)


def event(size: int = 20) -> bytes:
    return b'event: message\ndata: {"jsonrpc":"2.0","id":1,"result":{"x":"%b"}}\n\n' % (b"x" * size)


BODIES = st.one_of(
    st.builds(call, st.integers(0, 60)),
    st.builds(call, st.integers(900, 1100)),
    st.builds(call, st.just(70_000)),
    st.sampled_from(
        [
            b"",
            b"5",
            b"x" * 10,
            b"\xff\xfe",
            '{"a":"é€😀"}'.encode(),
            b'{"a":"\\"\\\\\t\r\n"}',
            b"grant_type=code&code=" + SECRET.encode(),
        ]
    ),
)
REQUEST_FIELDS = st.lists(
    st.sampled_from(
        [
            JSON,
            b"Authorization: Bearer " + SECRET.encode(),
            b"Mcp-Session-Id: 0123456789abcdef0123456789abcdef",
            b"Origin: http://127.0.0.1:%d" % PORT,
            b"Origin: http://evil.example",
            b"X-Content-Length: 12",
            b"X: \xc3\xa9",
            b"X: \xff",
            b"Expect: 100-continue",
            b"DPoP: x",
            b"Content-Type: application/x-www-form-urlencoded",
            b"Cookie: a=" + SECRET.encode(),
        ]
    ),
    max_size=3,
    unique=True,
)
LINES = st.sampled_from(
    [b"POST /mcp"] * 6 + [b"GET /mcp", b"POST /token", b"POST /mcp?api_key=" + SECRET.encode(), b"PUT /mcp", b"HEAD /"]
)
HOSTS = st.sampled_from([b"127.0.0.1:%d" % PORT] * 8 + [b"localhost:%d" % PORT, b"evil.example"])
REQUESTS = st.one_of(
    st.builds(
        lambda body, fields, line, host: request(body, *fields, line=line, host=host), BODIES, REQUEST_FIELDS, LINES, HOSTS
    ),
    st.builds(
        lambda body: (
            b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nTransfer-Encoding: chunked\r\n\r\n%b0\r\n\r\n" % (PORT, chunk(body))
        ),
        st.sampled_from([call(), b"x"]),
    ),
    st.sampled_from(
        [
            b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Length:%b\r\n\r\n%b" % (PORT, length, body)
            for length, body in (
                (b"5", b"hello"),
                (b" 05", b"hello"),
                (b" 5 ", b"hello"),
                (b" 5\r\nContent-Length: 5", b"hello"),
            )
        ]
    ),
    st.just(b"\r\n" + request(call())),
)
RESPONSE_FIELDS = st.lists(
    st.sampled_from(
        [
            JSON,
            b"mcp-session-id: 0123456789abcdef0123456789abcdef",
            b"Set-Cookie: a=" + SECRET.encode(),
            b"Location: http://127.0.0.1:1/elsewhere",
            b'WWW-Authenticate: Bearer resource_metadata="http://127.0.0.1:1/.well-known/x"',
            b"Connection: close",
            b"Content-Encoding: gzip",
            b"Upgrade: h2c",
        ]
    ),
    max_size=2,
    unique=True,
)
EVENT = st.one_of(
    st.builds(event, st.integers(0, 30)),
    st.builds(event, st.integers(990, 1030)),
    st.sampled_from(
        [
            b": ping\n\n",
            b"data: a\r\n\r\n",
            b"event: endpoint\ndata: /messages?session_id=" + SECRET.encode() + b"\n\n",
            b"data: half",
            b"\n",
            b"data: \xff\n\n",
            b"data: 1\n\ndata: 2\n\n",
            b"0\r\n\r\n",
        ]
    ),
)
STREAMS = st.lists(EVENT, max_size=4).map(lambda events: EVENTS + b"".join(map(chunk, events)) + b"0\r\n\r\n")
RESPONSES = st.one_of(
    st.builds(lambda body, fields: response(body, *fields), BODIES, RESPONSE_FIELDS),
    STREAMS,
    STREAMS,
    st.sampled_from(
        [
            response(b"", status=b"202 Accepted", length=b"Content-Length"),
            response(b"no", status=b"404 Not Found"),
            b"HTTP/1.1 204 No Content\r\n\r\n",
            b"HTTP/1.1 100 Continue\r\n\r\n" + response(call()),
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk(call()) + b"0\r\n\r\n",
            b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\nxyz",
            b"HTTP/1.1 200 OK\r\n\r\nup to the end",
            b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel",
            EVENTS + chunk(event()) + b"0\r\nX: y\r\n\r\n",
            response(b"a" * 12, b"X-Content-Length: 3"),
            b"nonsense\r\n\r\n",
        ]
    ),
)


KINDS = st.lists(st.tuples(REQUESTS, RESPONSES), max_size=2)
SIZES = st.integers(0, 40) | st.integers(900, 1_100)
USUAL_REQUESTS = SIZES.map(lambda size: request(call(size), JSON))
USUAL_RESPONSES = SIZES.map(lambda size: response(call(size)))
USUAL_STREAMS = SIZES.map(lambda size: EVENTS + chunk(event(size)) + b"0\r\n\r\n")


def natural_cuts(data: bytes) -> list[bytes]:
    """Cut a message as programs do: after its head, and after each chunk."""
    head, empty_line, body = data.partition(b"\r\n\r\n")
    if b"chunked" not in head:
        return [head + empty_line, body]
    pieces = [head + empty_line]
    while body:
        size, _, _ = body.partition(b"\r\n")
        length = len(size) + 2 + (int(size, 16) if size.isalnum() else 0) + 2
        pieces.append(body[:length])
        body = body[length:]
    return pieces


@st.composite
def cut(draw: st.DrawFn, data: bytes) -> list[bytes]:
    """Cut a message: not at all, as programs do, or anywhere."""
    how = draw(st.sampled_from(["whole", "whole", "natural", "pairs", "anywhere"]))
    if how == "whole":
        return [data]
    pieces = natural_cuts(data)
    if how == "pairs":
        pieces = [b"".join(pieces[at : at + 2]) for at in range(0, len(pieces), 2)]
    if how == "anywhere":
        at = draw(st.integers(0, len(data)))
        pieces = [data[:at], data[at:]]
    return [piece for piece in pieces if piece]


@st.composite
def exchanges(draw: st.DrawFn) -> list[tuple[str, bytes]]:
    """Draw what happens on one connection: requests and responses, few kinds of each, so that heads come again."""
    said: list[tuple[str, bytes]] = [("connect", b"")] if draw(st.booleans()) else []
    kinds = [(st.just(asked), st.just(answered)) for asked, answered in draw(KINDS)]
    kinds.append((USUAL_REQUESTS, draw(st.sampled_from([USUAL_RESPONSES, USUAL_STREAMS]))))
    for number, (asked, answered) in enumerate(draw(st.lists(st.sampled_from(kinds), min_size=2, max_size=8))):
        before = [("client", piece) for piece in draw(cut(draw(asked)))]
        after = [("server", piece) for piece in draw(cut(draw(answered)))]
        if number == 1:
            before.append(("connect", b""))
        if said and draw(st.integers(0, 9)) == 0:  # pipelined, or answered too early
            after, before = before, after
        said += before + after
        if draw(st.integers(0, 19)) == 0:
            said.append((draw(st.sampled_from(["client ends", "client is lost", "server is lost", "server is full"])), b""))
            said.append(("server is empty", b""))
        if said and draw(st.integers(0, 14)) == 0 and said[-1][0] == "client":  # two reads become one
            name, last = said.pop()
            if said and said[-1][0] == name:
                last = said.pop()[1] + last
            said.append((name, last))
    return said


@st.composite
def scenes(draw: st.DrawFn) -> list[Step]:
    """Draw what happens on up to three connections, in any order, and what happens to the disk."""
    connections = draw(st.lists(exchanges(), min_size=1, max_size=3))
    left = {number: list(said) for number, said in enumerate(connections)}
    steps: list[Step] = []
    while left:
        number = draw(st.sampled_from(sorted(left)))
        for _ in range(draw(st.integers(1, 6))):
            if left[number]:
                does, data = left[number].pop(0)
                steps.append(Step(number, does, data))
        if not left[number]:
            del left[number]
        if draw(st.integers(0, 29)) == 0:
            steps.append(Step(0, "disk", room=draw(st.sampled_from([0, 1, 100, 500, 1_000, NEVER]))))
    return steps


@given(steps=scenes(), redacts=st.booleans())
def test_the_short_way_changes_no_byte_and_no_record(steps: list[Step], *, redacts: bool) -> None:
    general = played(steps, NEVER, redacts=redacts)
    assert not general.short
    for sights in (1, usual.MIN_SIGHTS):
        assert played(steps, sights, redacts=redacts) == general


# --- The reads that are to take the short way ---

ASKED = request(call(), JSON)
SHORT = {
    "a POST and its JSON": ([[ASKED]], [[response(call())]]),
    "heads and bodies apart": ([natural_cuts(ASKED)], [natural_cuts(response(call()))]),
    "lengths that vary": (
        [[request(call(size), JSON)] for size in (30, 31, 5, 39)],
        [[response(call(size))] for size in (1_100, 1_200, 2_000, 2_345)],
    ),
    "an event, all at once": ([[ASKED]], [[EVENTS + chunk(event()) + b"0\r\n\r\n"]]),
    "an event, as written": ([[ASKED]], [natural_cuts(EVENTS + chunk(event()) + b"0\r\n\r\n")]),
    "an event with its head": ([[ASKED]], [[EVENTS + chunk(event()), b"0\r\n\r\n"]]),
    "an event with its end": ([[ASKED]], [[EVENTS, chunk(event()) + b"0\r\n\r\n"]]),
    "nothing to say": ([[ASKED]], [[response(b"", status=b"202 Accepted")]]),
}
TAKEN = {"heads and bodies apart": 4, "an event, as written": 3, "an event with its head": 3, "an event with its end": 3}


@pytest.mark.parametrize("name", SHORT)
def test_usual_messages_take_the_short_way_from_the_third_time_on(name: str) -> None:
    asked, answered = SHORT[name]
    steps = [Step(0, "connect")]
    for turn in range(12):
        steps += [Step(0, "client", data) for data in asked[turn % len(asked)]]
        steps += [Step(0, "server", data) for data in answered[turn % len(answered)]]
    short = played(steps, usual.MIN_SIGHTS)
    assert short == played(steps, NEVER)
    bodies_apart = 4 if name == "heads and bodies apart" else 0
    assert len(short.short) >= 10 * TAKEN.get(name, 2) - (4 if len(asked) > 1 else 0) + bodies_apart


def exchanged(asked: bytes, answered: bytes, times: int = 6, *, apart: bool = False, on: int = 0) -> list[Step]:
    """Make the steps of an exchange that comes again and again, each message in one read, or as programs write it."""
    requests, responses = ([natural_cuts(asked), natural_cuts(answered)]) if apart else ([asked], [answered])
    turn = [Step(on, "client", data) for data in requests if data] + [Step(on, "server", data) for data in responses if data]
    return [Step(on, "connect"), *turn * times]


STREAM = EVENTS + chunk(event()) + b"0\r\n\r\n"


@pytest.mark.parametrize(
    ("asked", "answered"),
    [
        (
            request(call(), b"Authorization: Bearer " + SECRET.encode(), line=b"POST /mcp?api_key=" + SECRET.encode()),
            response(call()),
        ),
        (ASKED, response(call(), b"Set-Cookie: a=" + SECRET.encode())),
    ],
    ids=["of the client", "of the server"],
)
def test_a_head_with_a_secret_takes_the_short_way_without_it(asked: bytes, answered: bytes) -> None:
    outcome = played(exchanged(asked, answered), 1)
    assert len(outcome.short) >= 8
    assert SECRET.encode() not in outcome.capture
    assert outcome.capture.count(b'"redacted":[[') >= 6


TOKEN = b'{"access_token":"%b","token_type":"bearer"}' % SECRET.encode()
FORM = request(b"grant_type=code&code=" + SECRET.encode(), b"Content-Type: application/x-www-form-urlencoded", line=b"POST /x")


@pytest.mark.parametrize(
    ("asked", "answered"),
    [
        (request(TOKEN, JSON, line=b"POST /token"), response(TOKEN)),
        (FORM, response(TOKEN)),
        (
            request(call(), JSON),
            EVENTS + chunk(b"event: endpoint\ndata: /m?session_id=%b\n\n" % SECRET.encode()) + b"0\r\n\r\n",
        ),
    ],
    ids=["OAuth's endpoint", "a form", "an event that announces an endpoint"],
)
@pytest.mark.parametrize("apart", [False, True], ids=["whole", "apart"])
def test_bodies_that_are_searched_for_secrets_take_the_general_path(asked: bytes, answered: bytes, *, apart: bool) -> None:
    known_before = exchanged(ASKED, response(TOKEN.replace(SECRET.encode(), b"x" * len(SECRET)))) + exchanged(ASKED, STREAM)
    steps = known_before + exchanged(asked, answered, apart=apart)
    outcome = played(steps, 1)
    assert outcome == played(steps, NEVER)
    assert len(outcome.short) > 8
    assert SECRET.encode() not in outcome.capture


UNUSUAL: dict[str, tuple[bytes, bytes]] = {
    "another method": (request(call(), JSON, line=b"PUT /mcp"), response(call())),
    "a form": (FORM, response(call())),
    "a proof of the address": (request(call(), b"DPoP: x"), response(call())),
    "an expectation": (request(call(), b"Expect: 100-continue"), response(call())),
    "an upgrade": (request(call(), b"Upgrade: h2c"), response(call())),
    "a foreign page": (request(call(), b"Origin: http://evil.example"), b""),
    "a foreign host": (request(call(), host=b"evil.example"), b""),
    "chunks": (
        b"POST / HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n" % PORT,
        response(b"{}"),
    ),
    "two lengths": (request(b"hello", b"Content-Length: 5"), b""),
    "a length spelt in another way": (request(b"hello").replace(b"Length: ", b"Length:"), b""),
    "lines": (request(b"1\n2\n", b"Content-Type: application/x-ndjson"), response(b"{}")),
    "a head that is no text": (request(call(), b"X: \xff"), response(call())),
    "a body that is no text": (request(b"\xff\xfe"), response(call())),
}


@pytest.mark.parametrize("name", UNUSUAL)
def test_requests_that_are_unusual_take_the_general_path(name: str) -> None:
    asked, answered = UNUSUAL[name]
    steps = [step for on in range(4) for step in exchanged(asked, answered, 3, on=on)]
    outcome = played(steps, 1)
    assert outcome == played(steps, NEVER)
    assert not [opening for opening in outcome.short if '"request"' in opening]


UNUSUAL_RESPONSES = {
    "an interim one": b"HTTP/1.1 100 Continue\r\n\r\n",
    "no body": b"HTTP/1.1 204 No Content\r\n\r\n",
    "chunks": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
    "another coding": b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "compressed events": response(b"x" * 20, b"Content-Type: text/event-stream", b"Content-Encoding: gzip"),
    "trailers": EVENTS.replace(b"\r\n\r\n", b"\r\nTrailer: X\r\n\r\n") + b"0\r\nX: y\r\n\r\n",
    "a form": response(b"a=b", b"Content-Type: application/x-www-form-urlencoded"),
    "no text": response(b"\xff\xfe"),
    "two events in a chunk": EVENTS + chunk(event() + event()) + b"0\r\n\r\n",
}


@pytest.mark.parametrize("name", UNUSUAL_RESPONSES)
def test_responses_that_are_unusual_take_the_general_path(name: str) -> None:
    steps = exchanged(ASKED, UNUSUAL_RESPONSES[name])
    outcome = played(steps, 1)
    assert outcome == played(steps, NEVER)
    assert len([opening for opening in outcome.short if '"request"' in opening]) >= 4
    assert not [opening for opening in outcome.short if '"response"' in opening]


def test_one_head_is_answered_by_the_name_that_its_client_has_for_the_tap() -> None:
    answered = response(b"", b"Location: http://127.0.0.1:1/elsewhere", status=b"201 Created")
    named = request(call(), JSON, host=b"localhost:%d" % PORT)
    steps = exchanged(ASKED, answered) + exchanged(named, answered, on=1) + exchanged(ASKED, answered)
    outcome = played(steps, 1)
    assert outcome == played(steps, NEVER)
    assert outcome.capture.count(b"Location: http://localhost:%d/elsewhere" % PORT) == 6


RESOURCE = b'{"resource":"http://127.0.0.1:1/mcp"}'


@pytest.mark.parametrize(
    ("asked", "answered", "passed"),
    [
        (
            b"GET /sse HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nAccept: text/event-stream\r\n\r\n" % PORT,
            EVENTS + chunk(b"event: endpoint\ndata: http://127.0.0.1:1/messages\n\n"),
            b"http://127.0.0.1:%d/messages" % PORT,
        ),
        (
            b"GET /.well-known/oauth-protected-resource HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n" % PORT,
            response(RESOURCE),
            b'"http://127.0.0.1:%d/mcp"' % PORT,
        ),
        (b"HEAD / HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n" % PORT, natural_cuts(response(RESOURCE))[0], b""),
    ],
    ids=["a server stream", "a resource's metadata", "HEAD"],
)
def test_a_head_that_is_known_from_posts_says_nothing_about_others(asked: bytes, answered: bytes, passed: bytes) -> None:
    before = exchanged(ASKED, response(RESOURCE)) + exchanged(ASKED, STREAM)
    steps = [*before, *exchanged(asked, answered, 1), *(exchanged(ASKED, response(RESOURCE)) if not passed else [])]
    outcome = played(steps, 1)
    assert outcome == played(steps, NEVER)
    assert passed in str(outcome.sides[len(before) + 2]).encode()


@pytest.mark.parametrize("answered", [response(call()), STREAM], ids=["JSON", "an event"])
def test_a_client_that_has_closed_its_half_gets_its_answer_and_then_the_end(answered: bytes) -> None:
    steps = [*exchanged(ASKED, answered), Step(0, "client", ASKED), Step(0, "client ends"), Step(0, "server", answered)]
    outcome = played(steps, 1)
    assert outcome == played(steps, NEVER)
    assert "'close'" in str(outcome.sides[-1])


def test_a_client_that_sends_request_after_request_is_read_no_further() -> None:
    steps = [*exchanged(ASKED, response(call())), *[Step(0, "client", ASKED)] * (connection_pair.MAX_PIPELINED + 1)]
    outcome = played(steps, 1)
    assert outcome == played(steps, NEVER)
    reads = [[is_read for _, is_read, _ in sides] for changed in outcome.sides for *_, sides in changed]
    assert reads[-1] == [False, True]


def test_what_looks_like_the_end_of_a_stream_within_an_event_is_not_taken_for_it() -> None:
    pieces = (EVENTS, b"b\r\ndata: ", b"0\r\n\r\n", b"\r\n", b"0\r\n\r\n")
    steps = [*exchanged(ASKED, STREAM), Step(0, "client", ASKED), *(Step(0, "server", piece) for piece in pieces)]
    outcome = played(steps, 1)
    assert outcome == played(steps, NEVER)
    assert b'"text":"data: 0\\r\\n\\r\\n"' in outcome.capture


def test_a_body_that_does_not_follow_its_known_head_is_waited_for_no_longer_than_any_other() -> None:
    head, body = natural_cuts(ASKED)
    steps = [
        *exchanged(ASKED, response(call()), apart=True),
        Step(0, "client", head),
        Step(0, "expires"),
        Step(0, "client", body),
    ]
    outcome = played(steps, 1)
    assert outcome == played(steps, NEVER)
    assert b"408 Request Timeout" in outcome.capture


def test_so_many_heads_are_known_and_no_more() -> None:
    steps = [
        step
        for turn in range(2 * usual.MAX_KNOWN)
        for step in exchanged(request(call(), b"X: %d" % (turn // 3)), response(call(), b"Y: %d" % (turn // 3)), 1)
    ]
    outcome = played(steps, 1)
    assert len(outcome.short) >= usual.MAX_KNOWN
    assert 0 < outcome.known <= usual.MAX_KNOWN


@pytest.mark.parametrize("room", [0, 10, 600, 1_200])
def test_a_full_disk_leaves_the_same_gap(room: int) -> None:
    turn = exchanged(ASKED, response(call()), 3)
    steps = [*turn, Step(0, "disk", room=room), *turn, Step(0, "disk"), *turn]
    outcome = played(steps, 1)
    assert outcome == played(steps, NEVER)
    assert b'"kind":"gap"' in outcome.capture
    assert len(outcome.short) >= 4
