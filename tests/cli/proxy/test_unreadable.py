"""Answers that a strict reader cannot read: their bytes arrive, the fault in them is the finding, and nobody is called silent."""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.terminal import run
from tests.live.http.ends import Proxy, Upstream, asked, between, chunk

ASKED = b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}'
BODY = b'{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}'
JSON = b"Content-Type: application/json\r\n"
OK = b"HTTP/1.1 200 OK\r\n" + JSON
LENGTH = b"Content-Length: %d\r\n" % len(BODY)
END = b"\r\n"
CHUNKED = b"Transfer-Encoding: chunked\r\n"
CHUNKS = chunk(BODY) + b"0\r\n\r\n"
EVENT = b"event: message\ndata: " + BODY + b"\n\n"
EVENTS = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
SWITCH = b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: "
FRAMES = b"\0\0\0\4\0\0\0\0\0" + len(BODY).to_bytes(3, "big") + b"\0\1\0\0\0\1" + BODY

UNREADABLE = {
    "a length and chunks": (OK + b"Content-Length: 5\r\n" + CHUNKED + END + CHUNKS, "both Content-Length and Transfer-Encoding"),
    "two lengths": (OK + LENGTH + LENGTH + END + BODY, "more than one Content-Length"),
    "two other lengths": (OK + LENGTH + b"content-length: 5\r\n" + END + BODY, "more than one Content-Length"),
    "a list of lengths": (OK + b"Content-Length: 46, 46\r\n" + END + BODY, "malformed"),
    "a length with a sign": (OK + b"Content-Length: +46\r\n" + END + BODY, "malformed"),
    "a length in hex": (OK + b"Content-Length: 0x2e\r\n" + END + BODY, "malformed"),
    "bare line feeds": ((OK + LENGTH + END).replace(b"\r", b"") + BODY, "a line ends in LF without CR"),
    "one bare line feed": (b"HTTP/1.1 200 OK\n" + JSON + LENGTH + END + BODY, "a line ends in LF without CR"),
    "a folded field": (OK + b"X: a\r\n b\r\n" + LENGTH + END + BODY, "a field is folded over two lines"),
    "a blank before a colon": (OK + b"X : a\r\n" + LENGTH + END + BODY, "white space before a colon"),
    "a field without a colon": (OK + b"oops\r\n" + LENGTH + END + BODY, "malformed"),
    "a field without a name": (OK + b": a\r\n" + LENGTH + END + BODY, "malformed"),
    "NUL": (OK + b"X: \0\r\n" + LENGTH + END + BODY, "CR or NUL within a line"),
    "CR": (OK + b"X: a\rb\r\n" + LENGTH + END + BODY, "CR or NUL within a line"),
    "chunks in HTTP/1.0": (OK.replace(b"1.1", b"1.0") + CHUNKED + END + CHUNKS, "a Transfer-Encoding in HTTP/1.0"),
    "HTTP/2 in text": (OK.replace(b"1.1", b"2") + LENGTH + END + BODY, "no HTTP/1.x status line"),
    "HTTP/1.2": (OK.replace(b"1.1", b"1.2") + LENGTH + END + BODY, "no HTTP/1.x status line"),
    "another protocol": (OK.replace(b"HTTP/1.1", b"ICY") + LENGTH + END + BODY, "no HTTP/1.x status line"),
    "no head": (BODY, "no HTTP/1.x status line"),
    "a line before the head": (b"ready\r\n" + OK + LENGTH + END + BODY, "no HTTP/1.x status line"),
    "a status of four digits": (OK.replace(b"200", b"2000") + LENGTH + END + BODY, "malformed"),
    "a status of 0": (OK.replace(b"200", b"099") + LENGTH + END + BODY, "no HTTP/1.x status line"),
    "no chunk size": (OK + CHUNKED + END + b"zz\r\n" + BODY + b"\r\n0\r\n\r\n", "malformed chunk size"),
    "a longer chunk than its size": (OK + CHUNKED + END + b"5\r\n" + BODY + b"\r\n0\r\n\r\n", "a chunk is longer than its size"),
    "bare line feeds in chunks": (OK + CHUNKED + END + CHUNKS.replace(b"\r", b""), "malformed chunk size"),
    "chunked twice": (OK + b"Transfer-Encoding: chunked, chunked\r\n" + END + CHUNKS, "an ambiguous Transfer-Encoding"),
    "chunked and then another": (OK + b"Transfer-Encoding: chunked, identity\r\n" + END + CHUNKS, "an ambiguous Transfer-Encoding"),
    "an unknown transfer coding": (OK + b"Transfer-Encoding: foo, chunked\r\n" + END + CHUNKS, "an ambiguous Transfer-Encoding"),
    "identity and a length": (OK + b"Transfer-Encoding: identity\r\n" + LENGTH + END + BODY, "both Content-Length and Transfer"),
    "a body after 100": (b"HTTP/1.1 100 Continue\r\n\r\n{}" + OK + LENGTH + END + BODY, "no HTTP/1.x status line"),
    "a large head": (OK + b"X: " + b"x" * 70_000 + END + LENGTH + END + BODY, "the head is larger than 64 KiB"),
    "events in broken chunks": (EVENTS + CHUNKED + END + chunk(b": \n\n") + b"zz\r\n" + EVENT, "malformed chunk size"),
    "a switch to HTTP/2": (SWITCH + b"h2c\r\n\r\n" + FRAMES, "it switched to h2c"),
    "a switch to something else": (SWITCH + b"foo/2\r\n\r\nabc", "it switched to foo/2"),
    "a switch to nothing": (b"HTTP/1.1 101 Switching Protocols\r\n\r\nabc", "a 101 that does not say what it switches to"),
    "compressed transfer": (
        OK + b"Transfer-Encoding: gzip, chunked\r\n" + END + chunk(gzip.compress(BODY)) + b"0\r\n\r\n", "the transfer coding gzip",
    ),
    "compressed transfer to the close": (OK + b"Transfer-Encoding: gzip\r\n" + END + gzip.compress(BODY), "the transfer coding gzip"),
    "an unknown content coding": (OK + b"Content-Encoding: foo\r\nContent-Length: 5\r\n\r\nabcde", "the content coding foo"),
    "events in an unknown coding": (EVENTS + b"Content-Encoding: foo\r\nContent-Length: 5\r\n\r\nabcde", "the content coding foo"),
}  # fmt: skip
"""Answers of the server, each with the words in which `check` says why it could not be read."""

READABLE = {
    "JSON": OK + LENGTH + END + BODY,
    "no reason": b"HTTP/1.1 200 \r\n" + JSON + LENGTH + END + BODY,
    "no reason and no blank": b"HTTP/1.1 200\r\n" + JSON + LENGTH + END + BODY,
    "HTTP/1.0": OK.replace(b"1.1", b"1.0") + END + BODY,
    "HTTP/1.0 with a length": OK.replace(b"1.1", b"1.0") + LENGTH + END + BODY,
    "chunks": OK + CHUNKED + END + CHUNKS,
    "an extension of a chunk": OK + CHUNKED + END + CHUNKS.replace(b"\r\n", b";a=b\r\n", 1),
    "100": b"HTTP/1.1 100 Continue\r\n\r\n" + OK + LENGTH + END + BODY,
    "103 twice": b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" * 2 + OK + LENGTH + END + BODY,
    "103 with a length": b"HTTP/1.1 103 Early Hints\r\nContent-Length: 0\r\n\r\n" + OK + LENGTH + END + BODY,
    "empty lines before the head": b"\r\n\r\n" + OK + LENGTH + END + BODY,
    "an unknown transfer coding to the close": OK + b"Transfer-Encoding: foo\r\n" + END + BODY,
    "a content coding that is not used": OK + b"Content-Encoding: foo\r\n" + LENGTH + END + BODY,
    "gzip": OK + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(gzip.compress(BODY)) + gzip.compress(BODY),
    "events": EVENTS + CHUNKED + END + chunk(EVENT) + b"0\r\n\r\n",
}
"""Answers with nothing wrong, though some are odd."""


def answered(upstream: Upstream, proxy: Proxy, answer: bytes, body: bytes = ASKED) -> None:
    """Send a request that the server answers so, and then closes; the client gets every byte."""
    client, server = asked(
        upstream, proxy, proxy.request(b"POST /mcp", JSON[:-2], b"Accept: */*, text/event-stream", body=body)
    )
    server.head()
    server.take(len(body))
    server.send(answer)
    server.close()
    assert client.rest() == answer
    client.close()


def findings(capture: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(run("check", "--json", str(capture)).stdout)["findings"]
    return found


def outcomes(capture: Path) -> Iterator[str]:
    for row in json.loads(run("show", "--json", str(capture)).stdout)["rows"]:
        if row.get("outcome"):
            yield row["outcome"]


@pytest.mark.grid(8)
@pytest.mark.parametrize("name", UNREADABLE)
def test_what_could_not_be_read_of_an_answer_is_the_finding(name: str, tmp_path: Path) -> None:
    answer, reason = UNREADABLE[name]
    with between(tmp_path / "x.mcpspy") as (upstream, proxy):
        answered(upstream, proxy, answer)
    (finding,) = findings(tmp_path / "x.mcpspy")
    assert finding["rule"] == "unreadable-response"
    assert reason in finding["what"]
    assert list(outcomes(tmp_path / "x.mcpspy")) == ["unknown"]


@pytest.mark.grid(5)
@pytest.mark.parametrize("name", READABLE)
def test_an_odd_answer_that_can_be_read_has_no_finding(name: str, tmp_path: Path) -> None:
    with between(tmp_path / "x.mcpspy") as (upstream, proxy):
        answered(upstream, proxy, READABLE[name])
    assert findings(tmp_path / "x.mcpspy") == []
    assert list(outcomes(tmp_path / "x.mcpspy")) == ["ok"]


CULPRITS = {"a large head": "mcpspy", "a switch to HTTP/2": "mcpspy", "two lengths": "server", "no chunk size": "server"}


@pytest.mark.parametrize("name", CULPRITS)
def test_a_limit_of_mcpspys_own_is_not_the_servers_fault(name: str, tmp_path: Path) -> None:
    with between(tmp_path / "x.mcpspy") as (upstream, proxy):
        answered(upstream, proxy, UNREADABLE[name][0])
    assert [finding["culprit"] for finding in findings(tmp_path / "x.mcpspy")] == [CULPRITS[name]]


HANDSHAKE = [
    b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{}}}',
    b'{"jsonrpc":"2.0","method":"notifications/initialized"}',
    ASKED,
    b'{"jsonrpc":"2.0","id":2,"method":"ping"}',
]


def test_a_session_of_which_no_answer_could_be_read_blames_nobody_for_silence(tmp_path: Path) -> None:
    with between(tmp_path / "x.mcpspy") as (upstream, proxy):
        for body in HANDSHAKE:
            answered(upstream, proxy, UNREADABLE["two lengths"][0], body)
    assert {finding["rule"] for finding in findings(tmp_path / "x.mcpspy")} == {"unreadable-response"}
    assert set(outcomes(tmp_path / "x.mcpspy")) == {"unknown"}


def test_what_follows_on_the_same_connection_is_not_read_either_and_reported_once(tmp_path: Path) -> None:
    with between(tmp_path / "x.mcpspy") as (upstream, proxy):
        request = proxy.request(b"POST /mcp", JSON[:-2], body=ASKED)
        client, server = asked(upstream, proxy, request)
        for _ in range(3):
            server.head()
            server.take(len(ASKED))
            answer = OK + LENGTH + LENGTH + END + BODY
            server.send(answer)
            assert client.take(len(answer)) == answer
            client.send(request)
        client.close()
        server.rest()
    assert len(findings(tmp_path / "x.mcpspy")) == 1
    assert set(outcomes(tmp_path / "x.mcpspy")) == {"unknown"}


def test_calls_whose_answers_were_due_on_a_stream_that_could_not_be_read_are_not_called_unanswered(tmp_path: Path) -> None:
    with between(tmp_path / "x.mcpspy") as (upstream, proxy):
        stream, events = asked(upstream, proxy, proxy.request(b"GET /sse", b"Accept: text/event-stream"))
        events.head()
        events.send(EVENTS + CHUNKED + END + chunk(b"event: endpoint\ndata: /messages?session_id=1\n\n"))
        stream.until(b"session_id=1\n\n\r\n")
        for number in (1, 2):
            body = ASKED.replace(b"1,", b"%d," % number)
            client, server = asked(upstream, proxy, proxy.request(b"POST /messages?session_id=1", JSON[:-2], body=body))
            server.head()
            server.send(b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n")
            client.head()
            events.send(b"zz\r\n" + EVENT)
            stream.until(BODY)
        events.close()
        stream.rest()
    assert [finding["rule"] for finding in findings(tmp_path / "x.mcpspy")] == ["unreadable-response"]
    assert list(outcomes(tmp_path / "x.mcpspy")) == ["unknown", "unknown"]


def test_a_server_that_says_nothing_is_still_the_one_that_did_not_answer(tmp_path: Path) -> None:
    with between(tmp_path / "x.mcpspy") as (upstream, proxy):
        answered(upstream, proxy, b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
    assert [finding["rule"] for finding in findings(tmp_path / "x.mcpspy")] == ["unanswered-request"]
    assert list(outcomes(tmp_path / "x.mcpspy")) == ["unanswered"]
