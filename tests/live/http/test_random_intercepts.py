"""Random intercepts over random traffic over HTTP, cut at random: no byte changes but those that an intercept names, nothing is lost.

Connection pairs without sockets are played, on one tap. Nothing that is delayed is sent before the end.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.live import waiting_messages
from mcpspy.live.http import connection_pair, intercepting, intercepting_responses, usual
from mcpspy.live.http.connection_pair import ConnectionPair
from mcpspy.live.http.intercepting import InterceptingPair, give_back, take_over
from mcpspy.live.http.tap import HttpTap
from mcpspy.records import Frame, Intercept, Note, Open, Record
from mcpspy.wire.http import HttpMessages
from mcpspy.wire.http_body import Body, BodyEnd, RefusedBytes
from mcpspy.wire.http_head import RequestHead, ResponseHead
from tests.intercept.making import call, intercepts, line, result
from tests.live.http.ends import chunk
from tests.live.http.test_usual import Disk, SentSide, played_tap, request

JSON = b"Content-Type: application/json"
FAR_NS = 10**12
MAX_CALLS = 6
EVENTS = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"


class Side(SentSide):
    """A channel whose calls can be exchanged."""

    def call(self, **callbacks: object) -> None:
        """Do nothing: the test calls the pair."""


class Messages:
    """The messages that came on one side: heads, each with its body."""

    def __init__(self, cutter: HttpMessages) -> None:
        self.cutter = cutter
        self.taken = 0
        self.found: list[tuple[bytes, bytes]] = []
        self.whole = 0

    def read(self, side: Any) -> list[tuple[bytes, bytes]]:
        """Read on; nothing may be refused."""
        data, self.taken = side.data[self.taken :], len(side.data)
        for piece in self.cutter.feed(data):
            assert not isinstance(piece, RefusedBytes), side.data
            if isinstance(piece, RequestHead | ResponseHead):
                self.found.append((piece.raw, b""))
            elif isinstance(piece, Body):
                head, body = self.found[-1]
                self.found[-1] = head, body + piece.payload
            elif isinstance(piece, BodyEnd):
                self.whole += 1
        return self.found


class Connection:
    """A connection pair with both ends."""

    def __init__(self, tap: HttpTap) -> None:
        self.pair = ConnectionPair(tap, None)  # type: ignore[arg-type]  # no channel has a socket here
        tap._pairs[self.pair.number] = self.pair
        if tap.adopt is not None:
            tap.adopt(self.pair)
        self.requests = Messages(HttpMessages.of_requests())
        self.responses = Messages(HttpMessages.of_responses())
        for _ in range(2 * MAX_CALLS):
            self.responses.cutter.expect(b"POST")
        self.answered = 0
        self.client: Any = self.pair._client
        self.tap = tap

    def settle(self) -> None:
        """Make the calls that are due, and connect."""
        while self.tap.reactor._soon:
            self.tap.reactor._soon.popleft()()
        if self.pair._server is None and self.pair._unsent:
            self.pair.on_connected(Side())  # type: ignore[arg-type]

    def ask(self, data: bytes, size: int) -> None:
        for at in range(0, len(data), size):
            self.pair.on_client_data(data[at : at + size])
            self.settle()

    def answer(self, response: bytes, size: int) -> None:
        """Answer each request that came whole."""
        self.settle()
        server: Any = self.pair._server
        if server is None:
            return
        self.requests.read(server)
        while self.answered < self.requests.whole and not self.client.is_closing:
            self.answered += 1
            for at in range(0, len(response), size):
                self.pair.on_server_data(response[at : at + size])
                self.settle()
            self.requests.read(server)


@contextmanager
def tapped(*texts: str) -> Iterator[tuple[HttpTap, list[int], list[Record]]]:
    records: list[Record] = []
    with TemporaryDirectory() as folder, played_tap(Path(folder) / "x", Disk(), redacts=False) as (tap, clock, _):
        tap.record_to(records.extend)
        with patch.object(connection_pair, "Channel", Side):
            if texts:
                take_over(tap, intercepts(*texts, transport="http"))
            yield tap, clock, records


def pass_time(tap: HttpTap, clock: list[int], connections: list[Connection]) -> None:
    """Let all time pass."""
    for _ in range(3):
        clock[0] += FAR_NS
        for connection in connections:
            if isinstance(connection.pair, InterceptingPair):
                connection.pair._on_due()
            connection.settle()


def sent_on(records: list[Record], name: str, connection: int) -> list[bytes]:
    """Return what the receiver got of each message of a connection, as the capture says; nothing of those of which it got nothing."""
    streams = [
        record for record in records if isinstance(record, Open) and record.name == name and record.connection == connection
    ]
    bodies = []
    for opening in streams:
        frames = [record for record in records if isinstance(record, Frame) and record.stream == opening.stream]
        got = [frame.data if frame.forwarded is None else frame.forwarded for frame in frames]
        if any(got) or not frames or opening.framing == "sse":
            bodies.append(b"".join(got))
    return bodies


def events_in(body: bytes) -> list[bytes]:
    """Return events, sorted, and the number of newlines: an empty line alone may come before or after an event that waits."""
    events = (event.strip(b"\n") for event in re.split(rb"(?<=\n\n)", body))
    return [*sorted(filter(None, events)), b"%d" % body.count(b"\n")]


CALLS = st.one_of(
    st.builds(lambda id, tool: call(id, tool).strip(), st.integers(1, 3), st.sampled_from(["search", "other"])),
    st.sampled_from([line({"method": "notifications/initialized"}).strip(), b"no json", b"[]"]),
)
EVENT = st.one_of(
    st.builds(lambda id: b"event: message\ndata: " + result(id).strip() + b"\n\n", st.integers(1, 3)),
    st.builds(lambda id, at: b"id: %d\ndata: %b\n\n" % (at, result(id).strip()), st.integers(1, 3), st.integers(0, 9)),
    st.sampled_from(
        [b": beat\n\n", b"id: 9\ndata:\n\n", b"retry: 5\n\n", b"data: {\ndata: }\n\n", b"\n", b"event: ping\ndata: x\n\n"]
    ),
)
RESPONSES = st.one_of(
    st.builds(
        lambda id: b"HTTP/1.1 200 OK\r\n%b\r\nContent-Length: %d\r\n\r\n%b" % (JSON, len(result(id)), result(id)),
        st.integers(1, 3),
    ),
    st.builds(
        lambda id, at: (
            b"HTTP/1.1 200 OK\r\n%b\r\nTransfer-Encoding: chunked\r\n\r\n%b%b0\r\n\r\n"
            % (JSON, chunk(result(id)[:at]), chunk(result(id)[at:]))
        ),
        st.integers(1, 3),
        st.integers(1, 20),
    ),
    st.builds(
        lambda events, size: (
            EVENTS
            + b"Transfer-Encoding: chunked\r\n\r\n"
            + b"".join(chunk(b"".join(events)[at : at + size]) for at in range(0, len(b"".join(events)), size))
            + b"0\r\n\r\n"
        ),
        st.lists(EVENT, max_size=5),
        st.integers(1, 200),
    ),
    st.builds(
        lambda events: EVENTS + b"Content-Length: %d\r\n\r\n%b" % (len(b"".join(events)), b"".join(events)),
        st.lists(EVENT, max_size=3),
    ),
    st.sampled_from([b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n", b"HTTP/1.1 404 No\r\nContent-Length: 2\r\n\r\nno"]),
)
SCENARIO = st.lists(st.tuples(st.integers(0, 1), CALLS, RESPONSES), max_size=MAX_CALLS)
TEXTS = st.lists(
    st.builds(
        "{}tool:search => {}{}".format,
        st.sampled_from(["", "kind:result ", "kind:request "]),
        st.sampled_from([
            "delay 1s", "delay 1s..3s", "hold", "drop", "error -32000", "respond x", "set params.arguments.q=1", "set result.a=1",
            "remove result.content", "truncate 9", 'garbage "hm"', "stall", "status 503", "disconnect",
            "reorder 1s", 'status 429 "Retry-After: 2"', "expire",
        ]),
        st.sampled_from(["", " p=0.5", " nth=2", " max=1"]),
    ),
    min_size=1,
    max_size=3,
)  # fmt: skip


@given(SCENARIO, TEXTS, st.integers(1, 300))
def test_the_receivers_get_what_the_capture_says(scenario: list[tuple[int, bytes, bytes]], texts: list[str], size: int) -> None:
    with tapped(*texts) as (tap, clock, records):
        connections = [Connection(tap), Connection(tap)]
        sent: list[list[bytes]] = [[], []]
        for on, body, response in scenario:
            connection = connections[on]
            if connection.client.is_closing:
                continue
            connection.ask(request(body, JSON), size)
            connection.answer(response, size)
            pass_time(tap, clock, connections)
            connection.answer(response, size)
            pass_time(tap, clock, connections)
            sent[on].append(body)
        for connection in connections:
            pair = connection.pair
            assert isinstance(pair, InterceptingPair)
            assert pair._is_over or not (pair._responses.waiting_messages or pair.hands.to_server)
            number = pair.number
            server: Any = pair._server
            if server is not None:
                requests = connection.requests.read(server)
                assert [body for _, body in requests] == sent_on(records, "request", number)
            responses = connection.responses.read(connection.client)
            assert [events_in(body) for _, body in responses] == [
                events_in(body) for body in sent_on(records, "response", number)
            ][: len(responses)]
        assert all("search" in text for text in texts)
        untouched = [body for _, body, _ in scenario if b"search" not in body]
        for record in records:
            if isinstance(record, Frame) and record.data in untouched:
                assert record.forwarded is None


def relayed(scenario: list[tuple[int, bytes, bytes]], size: int, begin: int, end: int) -> list[Any]:
    """Play traffic, with an intercept that matches nothing from one step to another; return all messages, and what is recorded."""
    with tapped() as (tap, clock, records):
        connections = [Connection(tap), Connection(tap)]
        turn = 0
        for on, body, response in scenario:
            connection = connections[on]
            whole = request(body, JSON)
            cuts = ((whole[: size % len(whole)], b""), (whole[size % len(whole) :], b""))
            for asked, answered in (*cuts, *((b"", part) for part in (response[:90], response[90:]))):
                if turn == begin:
                    take_over(tap, intercepts("tool:nothing => drop", transport="http"))
                elif turn == end:
                    give_back(tap)
                turn += 1
                if asked:
                    connection.ask(asked, size)
                for at in range(0, len(answered), size):
                    connection.pair.on_server_data(answered[at : at + size])
                    connection.settle()
        pass_time(tap, clock, connections)
        bodies = [
            [body for _, body in side.read(end)]
            for connection in connections
            for side, end in ((connection.requests, connection.pair._server), (connection.responses, connection.client))
            if end is not None
        ]
        recorded = [
            b"".join(record.data for record in records if isinstance(record, Frame) and record.stream == stream)
            for stream in range(2 * len(scenario))
        ]
        assert not any(isinstance(record, Intercept) for record in records)
        return [bodies, recorded]


def captured(
    scenario: list[tuple[int, bytes, bytes]], texts: list[str], size: int, *, is_on: bool
) -> tuple[bytes, list[bytes]]:
    """Play traffic with or without the short way; return the capture, and what each side got."""
    with (
        TemporaryDirectory() as folder,
        patch.multiple(usual, IS_ON=is_on, MIN_SIGHTS=1),
        patch.object(waiting_messages, "_numbers", count(1)),
    ):
        path = Path(folder) / "x"
        with played_tap(path, Disk(), redacts=True) as (tap, clock, writer), patch.object(connection_pair, "Channel", Side):
            take_over(tap, intercepts(*texts, transport="http"))
            connections = [Connection(tap), Connection(tap)]
            for on, body, response in scenario * 2:
                clock[0] += 1000
                if not connections[on].client.is_closing:
                    connections[on].ask(request(body, JSON), size)
                    connections[on].answer(response, size)
                    pass_time(tap, clock, connections)
            ends: list[Any] = [end for connection in connections for end in (connection.client, connection.pair._server)]
            sides = [end.data for end in ends if end is not None]
            writer.close(clock[0])
        return path.read_bytes(), sides


@given(SCENARIO, st.one_of(TEXTS, st.just(["tool:nothing => drop"])), st.sampled_from([50, 10_000]))
def test_the_short_way_does_what_the_general_way_does(
    scenario: list[tuple[int, bytes, bytes]], texts: list[str], size: int
) -> None:
    assert captured(scenario, texts, size, is_on=True) == captured(scenario, texts, size, is_on=False)


@given(SCENARIO, st.integers(1, 300), st.integers(0, 12), st.integers(1, 12))
def test_intercepts_that_match_nothing_change_no_body_however_late_they_come_and_go(
    scenario: list[tuple[int, bytes, bytes]], size: int, begin: int, lasts: int
) -> None:
    assert relayed(scenario, size, begin, begin + lasts) == relayed(scenario, size, -1, -1)


@pytest.mark.parametrize("side", ["request", "json", "events"])
def test_a_message_that_is_too_long_passes_and_a_note_says_so(side: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (waiting_messages, intercepting, intercepting_responses):
        monkeypatch.setattr(module, "MAX_MESSAGE_BYTES", 1 << 20)
    long = call(1, q="x" * (3 << 20)) if side == "request" else result(1, "x" * (3 << 20))
    with tapped("method:* => drop" if side == "request" else "kind:result => drop") as (tap, _, records):
        connection = Connection(tap)
        connection.ask(request(long if side == "request" else call(1), JSON), 1 << 16)
        if side == "json":
            connection.answer(b"HTTP/1.1 200 OK\r\n%b\r\nContent-Length: %d\r\n\r\n%b" % (JSON, len(long), long), 1 << 16)
        elif side == "events":
            long = b"data: " + long + b"\n"
            connection.answer(EVENTS + b"Transfer-Encoding: chunked\r\n\r\n" + chunk(long) + b"0\r\n\r\n", 1 << 16)
        if side == "request":
            connection.settle()
            assert connection.requests.read(connection.pair._server)[0][1] == long
        else:
            assert connection.responses.read(connection.client)[0][1] == long
        assert [record.topic for record in records if isinstance(record, Note)] == ["not-intercepted"]
