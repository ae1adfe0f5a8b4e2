"""Events that come one by one are passed on in one call, which changes no byte and no record: with it, and without.

A connection pair has real sockets on both sides, on a tap whose clock stands still within a step and whose loop goes on by hand.
"""

import os
import socket
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast
from unittest.mock import patch

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mcpspy.capture.file.writer import Writer
from mcpspy.capture.redaction.redactor import Redactor
from mcpspy.capture.redaction.sink import RedactingSink
from mcpspy.compiled import compiled
from mcpspy.live.http import connection_pair, tap
from mcpspy.live.http.connection_pair import ConnectionPair
from mcpspy.live.http.listener import Authority, HostCheck, HttpOrigin
from mcpspy.live.http.steady import SHORT_READ, relay_event
from mcpspy.live.http.tap import HttpTap
from mcpspy.platform.sockets import SOCKETS_ARE_FILES
from tests.deadlines import readable

from .test_usual import EVENTS, PORT, SECRET, NoDial, call, chunk, event, request

pytestmark = pytest.mark.skipif(not SOCKETS_ARE_FILES, reason="there os.read takes no socket")

Relay = Callable[..., Any]
RELAYS: list[Relay] = [relay_event, compiled(relay_event)]
SMALL_BUFFER = 4096
EVENT = chunk(event())
ESCAPED = b"data: %b\n\n" % (b"\x01" * 3_900)
"""An event whose line is six times as long as itself."""


@dataclass
class Step:
    """Bytes that the server sends in one write; whether the client then reads all that it can."""

    data: bytes
    is_read: bool = True


@dataclass
class Outcome:
    """The bytes that the client got, the capture, and how many events were passed on in one call."""

    got: bytes
    capture: bytes
    relayed: int


class Wires:
    """A connection pair, and the client and the server on it. `relay` passes events on; without one, nothing does in one call."""

    def __init__(self, path: Path, relay: Relay | None, stack: ExitStack) -> None:
        self.got = b""
        self.relayed = 0
        self.now_ns = 0
        self._relay = relay
        self.writer = Writer(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND), b'{"mcpspy":1}\n')
        self.tap = HttpTap(HttpOrigin("http", Authority("127.0.0.1", 1)), 0)
        self.tap.own, self.tap.host_check = Authority("127.0.0.1", PORT), HostCheck(port=PORT)
        self.tap.record_to(RedactingSink(self.writer, Redactor(b"k" * 32)))
        if relay is None:
            self.tap.pass_event = None
        self.client, own_client = socket.socketpair()
        self.server, own_server = socket.socketpair()
        own_client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SMALL_BUFFER)
        for end in (own_client, own_server, self.server):
            end.setblocking(False)
        for module in (connection_pair, tap):
            stack.enter_context(patch.object(module, "monotonic_ns", lambda: self.now_ns))
        stack.enter_context(patch.object(connection_pair, "_relay_event", self._counted))
        stack.enter_context(patch.object(self.tap, "dial", lambda **_: NoDial()))
        self.pair = ConnectionPair(self.tap, own_client)
        self.client.sendall(request(call()))
        self.turn()
        self.pair.on_connected(own_server)
        self.send(Step(EVENTS))

    def _counted(self, *arguments: int) -> object:
        left = cast("Relay", self._relay)(*arguments)
        self.relayed += left is None
        return left

    def turn(self) -> None:
        """Have the tap take what is there."""
        reactor = self.tap.reactor
        while True:
            while reactor._soon:
                reactor._soon.popleft()()
            ready = reactor._poll.poll(0)
            if not ready:
                return
            for fd, events in ready:
                if (callback := reactor._callbacks.get(fd)) is not None:
                    callback(events)

    def send(self, step: Step) -> None:
        self.now_ns += 1_000
        rest = step.data
        while rest:  # a tap whose client does not read takes no more
            try:
                rest = rest[self.server.send(rest) :]
            except BlockingIOError:
                self.read()
            self.turn()
        if step.is_read:
            self.read()

    def read(self) -> None:
        """Read what there is for the client."""
        while readable(self.client.fileno(), 0) and (data := self.client.recv(1 << 20)):
            self.got += data
            self.turn()

    def end(self) -> None:
        """End the tap and its capture."""
        self.read()
        self.pair.abort()
        self.tap.end()
        self.writer.close(self.now_ns + 1)
        self.client.close()
        self.server.close()


def played(steps: list[Step], relay: Relay | None) -> Outcome:
    """Play a stream whose parts are sent one by one."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        path = Path(folder, "x.mcpspy")
        wires = Wires(path, relay, stack)
        for step in steps:
            wires.send(step)
        wires.end()
        return Outcome(wires.got, path.read_bytes(), wires.relayed)


EVENT_SIZES = st.integers(0, 40) | st.integers(900, 1_100) | st.integers(SHORT_READ - 100, SHORT_READ) | st.just(70_000)
PARTS = st.one_of(
    st.builds(lambda size: chunk(event(size)), EVENT_SIZES),
    st.builds(lambda size: chunk(event(size)), st.integers(0, 9)),
    st.builds(lambda size: chunk(event(size)).upper(), st.integers(0, 300)),
    st.builds(lambda size: chunk(event(size).replace(b"\n", b"\r\n")), EVENT_SIZES),
    st.builds(lambda size, at: chunk(event(size))[:at], EVENT_SIZES, st.integers(1, 80)),
    st.lists(st.builds(event, EVENT_SIZES), max_size=3).map(lambda events: b"".join(map(chunk, events))),
    st.binary(min_size=1, max_size=40),
    st.binary(min_size=4, max_size=40).map(chunk),
    st.sampled_from(
        [
            chunk(b": ping\n\n"),
            chunk(b"data: \xc3\xa9 \xf0\x9f\x98\x80\n\n"),
            chunk(b"data: \xff\n\n"),
            chunk(b'data: {"a":"\\"\\\\\\t"}\x1f\x7f\t\n\n'),
            chunk(b"event: endpoint\ndata: /messages?session_id=" + SECRET.encode() + b"\n\n"),
            chunk(b"data: 1\n\ndata: 2\n\n"),
            chunk(b"\ndata: 1\n\n"),
            chunk(b"data: half"),
            b"000a\r\ndata: ab\n\n\r\n",
            b"a;x=y\r\ndata: ab\n\n\r\n",
            b"0\r\n\r\n",
        ]
    ),
)
STEPS = st.lists(st.builds(Step, PARTS, st.booleans()), max_size=12)


@pytest.mark.parametrize("relay", RELAYS, ids=["reference", "in use"])
@given(steps=STEPS)
@example(steps=[Step(EVENT)] * 3)
@example(steps=[Step(EVENT), Step(chunk(b"event: endpoint\ndata: /messages?session_id=" + SECRET.encode() + b"\n\n"))])
@example(steps=[Step(chunk(event(900)), is_read=False)] * 12 + [Step(EVENT)] * 2)
def test_passing_events_on_in_one_call_changes_no_byte_and_no_record(relay: Relay, steps: list[Step]) -> None:
    with_it, without = played(steps, relay), played(steps, None)
    assert with_it.got == without.got
    assert with_it.capture == without.capture


@pytest.mark.parametrize("relay", RELAYS, ids=["reference", "in use"])
def test_each_event_of_a_steady_stream_is_passed_on_in_one_call(relay: Relay) -> None:
    of_python_sdk = chunk(event().replace(b"\n", b"\r\n"))
    assert played([Step(EVENT)] * 5 + [Step(of_python_sdk)] * 4 + [Step(b"0\r\n\r\n")], relay).relayed == 9


@pytest.mark.parametrize("relay", RELAYS, ids=["reference", "in use"])
def test_a_client_that_does_not_read_gets_all_events_later(relay: Relay) -> None:
    steps = [Step(chunk(event(size)), is_read=False) for size in range(900, 960)]
    outcome = played(steps, relay)
    assert outcome.got.endswith(b"".join(step.data for step in steps))
    assert 0 < outcome.relayed < len(steps)


def test_events_are_passed_on_the_general_way_while_intercepts_are_in_force() -> None:
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        wires = Wires(Path(folder, "x.mcpspy"), relay_event, stack)
        wires.send(Step(EVENT))
        wires.pair._server.call(  # type: ignore[union-attr]  # as intercepts do it
            on_data=wires.pair.on_server_data, on_end=wires.pair.on_client_end, on_lost=wires.pair.on_server_lost
        )
        wires.send(Step(EVENT))
        assert wires.relayed == 1
        wires.end()


# --- The function in C, and its reference ---


@dataclass
class Passed:
    """The outcome of a call, and what was written to the capture and to the target."""

    left: object
    line: bytes
    sent: bytes


def stream_pair(room: int) -> tuple[socket.socket, socket.socket]:
    """Make a pair of sockets; the second takes no more than some bytes at once, as a full disk or a client that does not read."""
    reading, writing = socket.socketpair()
    for end in (reading, writing):
        end.setblocking(False)
    if room < 1 << 16:
        writing.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SMALL_BUFFER)
    if not room:
        _fill(writing)
    return reading, writing


def passed(relay: Relay, data: bytes, *, capture_room: int, target_room: int) -> Passed:
    """Call with sockets that take so many bytes; -1 for one that is closed."""
    source, server = socket.socketpair()
    source.setblocking(False)
    capture, own_capture = stream_pair(capture_room)
    client, target = stream_pair(target_room)
    with source, server, capture, own_capture, client, target:
        server.sendall(data) if data else server.close()
        left = relay(
            7,
            3,
            10**9,
            source.fileno(),
            own_capture.fileno() if capture_room >= 0 else -1,
            target.fileno() if target_room >= 0 else -1,
        )
        return Passed(left, _rest(capture).lstrip(b"\0"), _rest(client).lstrip(b"\0"))


def _fill(full: socket.socket) -> None:
    while True:
        try:
            full.send(bytes(100))
        except BlockingIOError:
            return


def _rest(reading: socket.socket) -> bytes:
    data = b""
    try:
        while more := reading.recv(1 << 20):
            data += more
    except BlockingIOError:
        pass
    return data


ROOMS = st.sampled_from([1 << 16, 1 << 16, SMALL_BUFFER, 0, -1])


@given(PARTS | st.just(b""), ROOMS, ROOMS)
@example(EVENT, 1 << 16, 1 << 16)
@example(chunk(ESCAPED), SMALL_BUFFER, 1 << 16)
@example(chunk(ESCAPED), 1 << 16, SMALL_BUFFER)
@example(EVENT, 0, 1 << 16)
@example(EVENT, 1 << 16, 0)
@example(EVENT, -1, -1)
def test_an_event_is_passed_on_in_c_as_in_python(data: bytes, capture_room: int, target_room: int) -> None:
    in_c, reference = (
        passed(relay, data, capture_room=capture_room, target_room=target_room)
        for relay in (compiled(relay_event), relay_event)
    )
    assert in_c == reference


@pytest.mark.parametrize("relay", RELAYS, ids=["reference", "in use"])
def test_nothing_is_sent_of_an_event_whose_line_is_not_written_whole(relay: Relay) -> None:
    for room in (SMALL_BUFFER, 0, -1):
        data = chunk(ESCAPED)
        outcome = passed(relay, data, capture_room=room, target_room=1 << 16)
        left = cast("tuple[bytes, bytes, int, int]", outcome.left)
        assert left[:2] == (data, ESCAPED)
        assert left[2] == (len(outcome.line) or -1)
        assert (left[3], outcome.sent) == (0, b"")


@pytest.mark.parametrize("relay", RELAYS, ids=["reference", "in use"])
def test_a_source_without_data_is_an_error(relay: Relay) -> None:
    source, other = socket.socketpair()
    with source, other:
        source.setblocking(False)
        with pytest.raises(BlockingIOError):
            relay(1, 2, 3, source.fileno(), -1, -1)
    with pytest.raises(OSError, match="Bad file descriptor"):
        relay(1, 2, 3, -1, -1, -1)
