"""A client that closes its half of a connection: it may wait for its answer, or have left. The server decides, as without a tap."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mcpspy.capture.file.reader import read
from mcpspy.records import Close, Note
from mcpspy.transcript.model import Exchange, Outcome
from mcpspy.transcript.transcribe import transcribe
from tests.deadlines import DEADLINE_S, eventually
from tests.live.http.ends import EVENTS, EVENTS_TO_CLOSE, OK, Proxy, Upstream, Wire, asked, between, chunk

EVENT = b'data: {"jsonrpc":"2.0","id":1,"result":{}}\n\n'
CALL = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"slow","arguments":{}}}'
RESULT = b'{"jsonrpc":"2.0","id":1,"result":{"content":[]}}'
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (len(RESULT), RESULT)
knows_what_is_taken = pytest.mark.skipif(
    not hasattr(socket, "TCP_INFO"), reason="only Linux tells what a peer has acknowledged"
)
TO_CLOSE = b"HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n{}"


def say_no_more(wire: Wire) -> None:
    wire.socket.shutdown(socket.SHUT_WR)


def half_closed(upstream: Upstream, proxy: Proxy) -> tuple[Wire, Wire]:
    """Have a client ask and close its half; the upstream has read all of it."""
    client, server = asked(upstream, proxy, proxy.request())
    say_no_more(client)
    assert server.rest().endswith(b"{}")
    return client, server


@knows_what_is_taken
@pytest.mark.parametrize(
    "answer",
    [OK, EVENTS + chunk(EVENT) + chunk(b""), TO_CLOSE, EVENTS_TO_CLOSE + EVENT],
    ids=["length", "chunks", "close", "sse"],
)
def test_a_client_that_closes_its_half_gets_its_answer(answer: bytes, tmp_path: Path) -> None:
    with between(tmp_path / "x.mcpspy") as (upstream, proxy):
        client, server = half_closed(upstream, proxy)
        server.send(answer)
        server.close()
        assert client.rest() == answer
        eventually(lambda: proxy.topics() == ["half-closed", "answer-taken"], "the note that it took the answer")
        eventually(lambda: proxy.open_sockets() == 1, "both connections to be closed")


def test_a_client_that_left_before_its_answer_takes_none(tmp_path: Path) -> None:
    path = tmp_path / "x.mcpspy"
    with between(path) as (upstream, proxy):
        client, server = asked(upstream, proxy, proxy.request(body=CALL))
        server.head()
        client.close()
        eventually(lambda: "half-closed" in proxy.topics(), "the note that the client has closed its half")
        server.send(ANSWER)
        eventually(lambda: proxy.topics() == ["half-closed", "answer-refused"], "the note that it did not take the answer")
        eventually(lambda: proxy.open_sockets() == 1, "both connections to be closed")
    (row,) = (row for row in transcribe(read(path)).rows if isinstance(row, Exchange))
    assert (row.outcome, row.given_up_ns) == (Outcome.CANCELLED, row.left_ns)


@knows_what_is_taken
def test_a_client_that_takes_its_answer_has_not_given_up(tmp_path: Path) -> None:
    path = tmp_path / "x.mcpspy"
    with between(path) as (upstream, proxy):
        client, server = asked(upstream, proxy, proxy.request(body=CALL))
        server.head()
        say_no_more(client)
        server.rest()
        server.send(ANSWER)
        assert client.rest() == ANSWER
        eventually(lambda: "answer-taken" in proxy.topics(), "the note that it took the answer")
    (row,) = (row for row in transcribe(read(path)).rows if isinstance(row, Exchange))
    assert (row.outcome, row.given_up_ns) == (Outcome.OK, None)


def test_all_requests_before_the_end_get_their_answers(tmp_path: Path) -> None:
    with between(tmp_path / "x.mcpspy") as (upstream, proxy):
        client, server = asked(upstream, proxy, 3 * proxy.request())
        say_no_more(client)
        server.rest()
        server.send(3 * OK)
        assert client.rest() == 3 * OK


def test_the_end_of_half_a_request_reaches_the_server_whose_answer_arrives(tmp_path: Path) -> None:
    with between(tmp_path / "x.mcpspy") as (upstream, proxy):
        client, server = asked(upstream, proxy, proxy.request(body=b"x" * 100)[:-50])
        say_no_more(client)
        server.rest()
        server.send(OK)
        assert client.rest() == OK
        assert proxy.ending("request") == ("client", "abort")


def test_a_server_that_ends_with_its_client_answers_nothing_and_the_client_left(tmp_path: Path) -> None:
    with between(tmp_path / "x.mcpspy") as (upstream, proxy):
        client, server = half_closed(upstream, proxy)
        server.close()
        assert client.rest() == b""
        eventually(lambda: "left" in proxy.topics(), "the note that the client left")
        assert [note.extra["by"] for note in proxy.found(Note)] == ["client", "client"]


@pytest.mark.parametrize("head", [EVENTS, EVENTS_TO_CLOSE])
def test_a_stream_that_ends_with_its_client_was_ended_by_the_client(head: bytes, tmp_path: Path) -> None:
    with between(tmp_path / "x.mcpspy") as (upstream, proxy):
        client, server = asked(upstream, proxy, proxy.request(b"GET /sse", b"Accept: text/event-stream"))
        server.head()
        server.send(head)
        assert client.head() == head
        client.close()
        assert server.rest() == b""
        server.close()
        assert proxy.ending("response") == ("client", "broken")


def test_a_server_that_does_not_see_the_end_of_its_client_sees_it_when_it_writes(tmp_path: Path) -> None:
    with between(tmp_path / "x.mcpspy") as (upstream, proxy):
        client, server = asked(upstream, proxy, proxy.request(b"GET /sse", b"Accept: text/event-stream"))
        server.head()
        server.send(EVENTS)
        assert client.head() == EVENTS
        client.close()
        eventually(lambda: "half-closed" in proxy.topics(), "the note that the client has closed its half")
        server.send(chunk(EVENT))
        assert proxy.ending("response") == ("client", "broken")
        eventually(lambda: proxy.open_sockets() == 1, "both connections to be closed")


@pytest.mark.parametrize("begun", [b"", EVENTS], ids=["before the response", "within a stream"])
def test_a_client_left_when_it_closed_and_not_when_the_server_wrote_next(begun: bytes, tmp_path: Path) -> None:
    path = tmp_path / "x.mcpspy"
    with between(path) as (upstream, proxy):
        client, server = asked(upstream, proxy, proxy.request())
        server.head()
        server.send(begun)
        if begun:
            assert client.head() == begun
        client.close()
        eventually(lambda: "half-closed" in proxy.topics(), "the note that the client has closed its half")
        server.send(chunk(EVENT) if begun else EVENTS + chunk(EVENT))
        eventually(lambda: "broken" in [close.how for close in proxy.found(Close)], "the end of the stream")
    (transaction,) = transcribe(read(path)).captures[0].transactions.values()
    (noted,) = [note for note in transaction.notes if note.topic == "half-closed"]
    assert (transaction.ended_by, transaction.ended_ns) == ("client", noted.at_ns)


def test_a_client_left_when_it_closed_and_not_when_mcpspy_was_ended(tmp_path: Path) -> None:
    path = tmp_path / "x.mcpspy"
    with between(path) as (upstream, proxy):
        client, server = asked(upstream, proxy, proxy.request(b"GET /mcp", b"Accept: text/event-stream"))
        server.head()
        server.send(EVENTS)
        assert client.head() == EVENTS
        client.close()
        eventually(lambda: "half-closed" in proxy.topics(), "the note that the client has closed its half")
        proxy.stop()
    (transaction,) = transcribe(read(path)).captures[0].transactions.values()
    assert (transaction.ended_by, transaction.ended_ns) == ("client", transaction.half_closed_ns)


def test_a_client_that_ends_an_idle_connection_ends_both(tmp_path: Path) -> None:
    with between(tmp_path / "x.mcpspy") as (upstream, proxy):
        client, server = asked(upstream, proxy, proxy.request())
        server.head()
        server.send(OK)
        client.take(len(OK))
        say_no_more(client)
        assert client.rest() == b""
        assert server.rest() == b"{}"
        assert "half-closed" not in proxy.topics()


@contextmanager
def relay(port: int) -> Iterator[int]:
    """Run a relay for one client, which passes on the end of each half, as `ssh -L` and `socat` do; yield its port."""
    listener = socket.create_server(("127.0.0.1", 0))

    def forward(source: socket.socket, sink: socket.socket) -> None:
        try:
            while data := source.recv(1 << 16):
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def run() -> None:
        client, _ = listener.accept()
        with client, socket.create_connection(("127.0.0.1", port)) as server:
            back = threading.Thread(target=forward, args=(server, client), daemon=True)
            back.start()
            forward(client, server)
            back.join(DEADLINE_S)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    with listener:
        yield listener.getsockname()[1]
        thread.join(DEADLINE_S)


def test_a_client_behind_a_relay_that_leaves_leaves_the_server_too(tmp_path: Path) -> None:
    with between(tmp_path / "x.mcpspy") as (upstream, proxy), relay(proxy.port) as port:
        with socket.create_connection(("127.0.0.1", port)) as client:
            client.sendall(proxy.request(b"GET /sse", b"Accept: text/event-stream"))
            server = upstream.accept()
            server.head()
            server.send(EVENTS)
            assert client.recv(len(EVENTS), socket.MSG_WAITALL) == EVENTS
        assert server.rest() == b""
        server.close()
        assert proxy.ending("response") == ("client", "broken")
        eventually(lambda: proxy.open_sockets() == 1, "both connections to be closed")
