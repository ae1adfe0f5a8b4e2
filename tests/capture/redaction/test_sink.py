"""Records of an HTTP tap on their way to the disk: pseudonyms for secrets, and everything else as it came."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.capture.redaction.redactor import Redactor
from mcpspy.capture.redaction.sink import RedactingSink
from mcpspy.records import CLIENT, SERVER, Close, Frame, Open, Record
from mcpspy.records import PSEUDONYM_PREFIX as PREFIX

if TYPE_CHECKING:
    from mcpspy.records import Side

SECRET = b"s3cr3t-0123456789abcdef0123456789"
REDACTOR = Redactor(b"key")
NAME = REDACTOR.pseudonym(SECRET)


class Disk:
    """A sink that keeps the records that reach it."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self._sink = RedactingSink(self.records.extend, REDACTOR)
        self._stream = -1

    def opened(self, side: Side, head: bytes, *, transaction: int = 1, framing: str = "body") -> Open:
        """Redact the first record of a new stream."""
        self._stream += 1
        name = "request" if side == CLIENT else "response"
        record = Open(
            at_ns=0,
            stream=self._stream,
            sender=side,
            name=name,
            framing=framing,
            connection=1,
            transaction=transaction,
            head=head,
            forwarded=head or None,
        )
        self._sink((record,))
        return record

    def framed(self, data: bytes, *, forwarded: bytes | None = None, part: bool = False) -> Frame:
        """Redact the next frame of the newest stream, or a part of one."""
        record = Frame(self._stream, 0, 0, data, part)
        if forwarded is not None:
            record.rare["forwarded"] = forwarded
        self._sink((record,))
        return record

    def closed(self, by: str) -> None:
        """End the newest stream in the middle of its body."""
        self._sink((Close(at_ns=0, stream=self._stream, by=by, how="abort"),))

    def holds(self, secret: bytes) -> bool:
        return secret in b"".join(
            (record.head + (record.forwarded or b"")) if isinstance(record, Open) else (record.data + (record.forwarded or b""))
            for record in self.records
            if isinstance(record, Open | Frame)
        )


HEADS = [
    (CLIENT, b"POST /mcp HTTP/1.1\r\nAuthorization: Bearer %b\r\n\r\n"),
    (CLIENT, b"POST /mcp HTTP/1.1\r\nMcp-Session-Id: %b\r\n\r\n"),
    (CLIENT, b"POST /mcp HTTP/1.1\r\nmcp-session-id:%b\r\n\r\n"),
    (CLIENT, b"POST /mcp HTTP/1.1\r\nCookie: a=%b\r\n\r\n"),
    (CLIENT, b"POST /mcp HTTP/1.1\r\nX-Api-Key: %b\r\n\r\n"),
    (CLIENT, b"POST /mcp HTTP/1.1\r\nDPoP: %b\r\n\r\n"),
    (CLIENT, b"POST /messages/?session_id=%b HTTP/1.1\r\nHost: x\r\n\r\n"),
    (CLIENT, b"POST /message?a=1&sessionId=%b HTTP/1.1\r\nHost: x\r\n\r\n"),
    (SERVER, b"HTTP/1.1 200 OK\r\nMCP-Session-Id: %b\r\n\r\n"),
    (SERVER, b"HTTP/1.1 200 OK\r\nSet-Cookie: a=%b; Path=/\r\n\r\n"),
    (SERVER, b"HTTP/1.1 302 Found\r\nLocation: http://localhost/callback?code=%b\r\n\r\n"),
]


@pytest.mark.parametrize(("side", "head"), HEADS)
def test_a_secret_in_a_head_is_a_pseudonym_in_both_of_its_forms(side: Side, head: bytes) -> None:
    opened = Disk().opened(side, head % SECRET)
    assert opened.head == opened.forwarded == head % NAME
    ((offset, length, _),) = opened.redacted
    assert opened.head[offset : offset + length] == NAME


@given(
    st.lists(
        st.tuples(st.sampled_from([b"Content-Length: %d", b"content-length: %d", b"CONTENT-LENGTH:%d"]), st.integers(0, 10**6)),
        max_size=20,
    ),
    st.sampled_from([b"", b"X-Api-Key: %b\r\n" % SECRET, b"X-Odd: \0\r\n", b"X-Number: 17\r\n"]),
    st.sampled_from([head for _, head in HEADS]),
)
def test_heads_that_differ_in_their_length_alone_are_redacted_as_each_is(
    lengths: list[tuple[bytes, int]], field: bytes, head: bytes
) -> None:
    disk = Disk()
    for form, length in lengths:
        whole = (head % SECRET).replace(b"\r\n\r\n", b"\r\n" + form % length + b"\r\n" + field + b"\r\n")
        opened = disk.opened(CLIENT, whole)
        assert (opened.head, opened.redacted) == REDACTOR.head(whole)


ENDPOINTS = [
    b"event: endpoint\ndata: /messages/?session_id=%b\n\n",
    b"data: /messages/with/a/long/way/to/what/comes/then/and/then?sessionId=%b\nevent: endpoint\n\n",
    b": a comment that takes more than the sixty-four bytes at which somebody might stop\nevent:endpoint\ndata:/m?session_id=%b\n\n",
    b'event: endpoint\r\ndata: {"uri":"http://127.0.0.1:1/m?session_id=%b"}\r\n\r\n',
]


@pytest.mark.parametrize("event", ENDPOINTS)
@pytest.mark.parametrize("before", [b"", b": ping\n\n", b"retry: 1\n\n", b"id: 1\ndata:\n\n", b'data: {"x":1}\n\n'])
def test_the_session_in_an_endpoint_event_is_a_pseudonym_wherever_it_is(event: bytes, before: bytes) -> None:
    disk = Disk()
    disk.opened(SERVER, b"HTTP/1.1 200 OK\r\n\r\n", framing="sse")
    if before:
        assert disk.framed(before).data == before
    framed = disk.framed(event % SECRET, forwarded=event % SECRET)
    assert framed.data == framed.forwarded == event % NAME
    assert len(framed.redacted) == 1


def test_a_session_is_one_pseudonym_in_the_event_the_target_and_the_field() -> None:
    disk = Disk()
    disk.opened(SERVER, b"HTTP/1.1 200 OK\r\nMcp-Session-Id: %b\r\n\r\n" % SECRET, framing="sse")
    disk.framed(ENDPOINTS[0] % SECRET)
    disk.opened(CLIENT, b"POST /messages/?session_id=%b HTTP/1.1\r\nMcp-Session-Id: %b\r\n\r\n" % (SECRET, SECRET))
    heads = [record.head for record in disk.records if isinstance(record, Open)]
    assert [head.count(NAME) for head in heads] == [1, 2]
    assert not disk.holds(SECRET)


def test_json_rpc_is_not_searched() -> None:
    disk = Disk()
    disk.opened(CLIENT, b"POST /mcp HTTP/1.1\r\nContent-Type: application/json\r\n\r\n")
    body = b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"access_token":"%b"}}' % SECRET
    assert disk.framed(body).data == body
    disk.opened(SERVER, b"HTTP/1.1 200 OK\r\n\r\n", framing="sse")
    event = b'data: {"jsonrpc":"2.0","method":"endpoint","params":"?session_id=%b"}\n\n' % SECRET
    assert disk.framed(event).data == event


@pytest.mark.parametrize("path", [b"/token", b"/token/", b"/oauth/token?x=1", b"/register"])
def test_tokens_that_an_authorization_server_grants_are_pseudonyms(path: bytes) -> None:
    disk = Disk()
    form = b"Content-Type: application/x-www-form-urlencoded\r\n\r\n"
    disk.opened(CLIENT, b"POST %b HTTP/1.1\r\n" % path + form)
    disk.framed(b"grant_type=authorization_code&code=%b&code_verifier=%b" % (SECRET, SECRET))
    disk.opened(SERVER, b"HTTP/1.1 100 Continue\r\n\r\n")
    disk.opened(SERVER, b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n")
    granted = disk.framed(b'{"access_token":"%b","client_secret":"%b","token_type":"Bearer"}' % (SECRET, SECRET))
    assert granted.data == b'{"access_token":"%b","client_secret":"%b","token_type":"Bearer"}' % (NAME, NAME)
    assert not disk.holds(SECRET)


def test_a_compressed_token_answer_is_one_pseudonym() -> None:
    disk = Disk()
    disk.opened(CLIENT, b"POST /token HTTP/1.1\r\n\r\n")
    disk.opened(SERVER, b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Encoding: gzip\r\n\r\n")
    framed = disk.framed(gzip.compress(b'{"access_token":"%b"}' % SECRET))
    assert framed.data.startswith(PREFIX.encode())
    assert framed.redacted == ((0, len(framed.data), "token"),)


GRANTED = b'{"x":"%b","access_token":"%b"}' % (b"x" * (1 << 20), SECRET)


@pytest.mark.parametrize("left", [1, 5, len(SECRET), len(SECRET) + 10, len(SECRET) + 40])
def test_a_secret_over_two_parts_of_a_body_is_a_pseudonym(left: int) -> None:
    disk = Disk()
    disk.opened(CLIENT, b"POST /token HTTP/1.1\r\n\r\n")
    disk.opened(SERVER, b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n")
    parts = [disk.framed(GRANTED[:-left], part=True), disk.framed(GRANTED[-left:])]
    assert b"".join(part.data for part in parts) == GRANTED.replace(SECRET, NAME)
    ((offset, length, _),) = [span for part in parts for span in part.redacted]
    assert any(part.data[offset : offset + length] == NAME for part in parts if part.redacted)


def test_a_secret_in_a_body_that_breaks_off_becomes_a_pseudonym_before_the_close() -> None:
    disk = Disk()
    disk.opened(CLIENT, b"POST /token HTTP/1.1\r\n\r\n")
    disk.opened(SERVER, b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n")
    disk.framed(GRANTED[:-2], part=True)
    disk.closed("server")
    assert not disk.holds(SECRET)
    *_, rest, close = disk.records
    assert isinstance(close, Close)
    assert isinstance(rest, Frame)
    assert (rest.data, rest.redacted) == (NAME, ((0, len(NAME), "token"),))


def test_the_next_transaction_at_another_path_is_not_an_authorization_servers() -> None:
    disk = Disk()
    disk.opened(CLIENT, b"POST /token HTTP/1.1\r\n\r\n")
    disk.opened(SERVER, b"HTTP/1.1 200 OK\r\n\r\n")
    disk.opened(CLIENT, b"POST /mcp HTTP/1.1\r\nContent-Type: application/json\r\n\r\n", transaction=2)
    assert disk.framed(b'{"session_key":"%b"}' % SECRET).data == b'{"session_key":"%b"}' % SECRET


@pytest.mark.parametrize("line_end", [b"\n", b"\r\n"])
@pytest.mark.parametrize("cuts", [2, 3, 7])
def test_a_head_that_was_refused_and_came_in_pieces_keeps_no_secret(cuts: int, line_end: bytes) -> None:
    lines = (
        b"HTTP/1.1 200 OK",
        b"X: 1",
        b"Mcp-Session-Id: %b" % SECRET,
        b"Set-Cookie: a=%b; Path=/" % SECRET,
        b"Y: 2",
        b"",
        b"body",
    )
    refused = line_end.join(lines)
    for shift in range(len(refused)):
        disk = Disk()
        disk.opened(SERVER, b"", transaction=0)
        at = sorted({0, shift, *(shift + len(refused) * cut // cuts for cut in range(1, cuts))} - {len(refused)})
        pieces = [refused[begin:end] for begin, end in zip(at, [*at[1:], None], strict=True) if refused[begin:end]]
        frames = [disk.framed(piece, part=True) for piece in pieces]
        kept = b"".join(frame.data for frame in frames)
        assert SECRET[12:] not in kept
        assert SECRET[:-12] not in kept
        assert kept.startswith(b"HTTP/1.1 200 OK" + line_end + b"X: 1" + line_end + b"Mcp-Session-Id: " + PREFIX.encode())
        assert kept.endswith(line_end + b"Y: 2" + line_end + line_end + b"body")
        for frame in frames:
            for begin, length, _ in frame.redacted or ():
                assert frame.data[begin : begin + length].startswith(PREFIX.encode())


def test_a_head_that_was_refused_keeps_no_secret() -> None:
    disk = Disk()
    disk.opened(CLIENT, b"", transaction=0)
    refused = b"GET /?token=%b HTTP/1.1\nHost: x\nAuthorization: Bearer %b\nX: 1\n\n"
    assert disk.framed(refused % (SECRET, SECRET)).data == refused % (NAME, NAME)


def test_streams_that_have_ended_are_forgotten() -> None:
    disk = Disk()
    for number in range(3):
        disk.opened(SERVER, b"HTTP/1.1 200 OK\r\n\r\n", framing="sse")
        disk._sink((Close(at_ns=0, stream=number, by="server", how="eof"),))
    disk.opened(CLIENT, b"POST /token HTTP/1.1\r\n\r\n")
    disk._sink((Close(at_ns=0, stream=3, by="client", how="eof"),))
    disk.opened(SERVER, b"HTTP/1.1 200 OK\r\n\r\n")
    disk._sink((Close(at_ns=0, stream=4, by="server", how="eof"),))
    sink = disk._sink
    assert [*sink._sse, *sink._bodies, *sink._oauth, *sink._opaque] == []


def test_records_without_secrets_are_passed_on_as_they_are() -> None:
    disk = Disk()
    head = b"POST /mcp?x=1 HTTP/1.1\r\nHost: 127.0.0.1:1\r\nContent-Type: application/json\r\n\r\n"
    assert disk.opened(CLIENT, head).head == head
    framed = disk.framed(b"{}")
    assert framed == Frame(0, 0, 0, b"{}")
