"""TLS where the URL says http, and the other way round: the URL is what is wrong, and `check` says which letter it lacks."""

import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mcpspy.records import Frame
from tests.cli.terminal import run
from tests.conftest import ROOT
from tests.live.http.ends import Proxy, Upstream, asked, between
from tests.live.http.secure_ends import SecureUpstream

BODY = b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}'
ALERTS = {
    "unexpected message": b"\x15\x03\x01\x00\x02\x02\x0a",
    "handshake failure": b"\x15\x03\x03\x00\x02\x02\x28",
    "protocol version": b"\x15\x03\x01\x00\x02\x02\x46",
    "decode error": b"\x15\x03\x00\x00\x02\x02\x32",
    "record overflow, and a warning": b"\x15\x03\x02\x00\x02\x02\x16\x15\x03\x02\x00\x02\x01\x00",
    "an empty line within it": b"\x15\x03\r\n\r\n\x02",
    "half of it": b"\x15\x03\x01",
}
GARBAGE = {
    "a control character": b"\x15 nonsense\r\n\r\n",
    "the type of another record": b"\x17\x03\x03\x00\x02ab",
    "a server's hello": b"\x16\x03\x03\x00\x02ab",
    "zeros": b"\x00\x01\x02nonsense\r\n\r\n",
    "SSH": b"SSH-2.0-OpenSSH_9\r\n",
    "SMTP": b"220 mail.example ESMTP\r\n",
    "a bare document": b'{"jsonrpc":"2.0","id":1,"result":{}}\n',
    "HTTP/2": b"\x00\x00\x06\x04\x00\x00\x00\x00\x00\x00\x05\x00\x00\x40\x00",
    "an alert later": b"x\x15\x03\x01\x00\x02\x02\x46",
}


def checked(capture: Path) -> list[tuple[str, str, str]]:
    """Return rule, culprit and advice of each finding."""
    findings = json.loads(run("check", "--json", str(capture)).stdout)["findings"]
    return [(finding["rule"], finding["culprit"], finding["advice"]) for finding in findings]


def answered(capture: Path, data: bytes, *, is_cut: bool = False) -> list[bytes]:
    """Answer a request with these bytes; return what the client gets, and what was recorded."""
    with between(capture) as (upstream, proxy):
        client, server = asked(upstream, proxy, proxy.request(b"POST /mcp", b"Content-Type: application/json", body=BODY))
        server.head()
        server.take(len(BODY))
        got = b""
        for byte in data if is_cut else ():
            server.send(bytes((byte,)))
            got += client.take(1) if got or byte != data[0] else b""
        server.send(b"" if is_cut else data)
        server.close()
        return [got + client.rest(), b"".join(frame.data for frame in proxy.found(Frame))]


@pytest.mark.parametrize("comes", ["whole", "cut"])
@pytest.mark.parametrize("data", [pytest.param(data, id=name) for name, data in ALERTS.items()])
def test_a_server_with_tls_behind_an_http_url_is_called_so(data: bytes, comes: str, tmp_path: Path) -> None:
    got, recorded = answered(tmp_path / "x.mcpspy", data, is_cut=comes == "cut")
    assert got == data
    assert data in recorded
    ((rule, culprit, advice),) = checked(tmp_path / "x.mcpspy")
    assert (rule, culprit) == ("unreadable-response", "configuration")
    assert "Write https" in advice


@pytest.mark.grid(4)
@pytest.mark.parametrize("data", [pytest.param(data, id=name) for name, data in GARBAGE.items()])
def test_other_garbage_stays_what_it_is(data: bytes, tmp_path: Path) -> None:
    got, recorded = answered(tmp_path / "x.mcpspy", data)
    assert got == data
    assert data in recorded
    ((rule, culprit, advice),) = checked(tmp_path / "x.mcpspy")
    assert (rule, culprit) == ("unreadable-response", "server")
    assert "https" not in advice


@contextmanager
def shaking_hands(upstream: SecureUpstream) -> Iterator[None]:
    """Let a server with TLS try to read one client's hello."""

    def serve() -> None:
        try:
            upstream.accept()
        except (ssl.SSLError, OSError):
            pass

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield
    finally:
        thread.join()


def test_a_real_server_with_tls_is_named_or_guessed_at(tmp_path: Path) -> None:
    upstream = SecureUpstream(tmp_path)
    url = upstream.url.replace("https://localhost", "http://127.0.0.1")
    proxy = Proxy(url, tmp_path / "x.mcpspy")
    try:
        with shaking_hands(upstream):
            client = proxy.connect()
            client.send(proxy.request(b"POST /mcp", b"Content-Type: application/json", body=BODY))
            client.rest()
        proxy.stop()
    finally:
        proxy.end()
        upstream.end()
    ((_, culprit, advice),) = checked(tmp_path / "x.mcpspy")
    assert culprit in ("configuration", "unclear")
    assert "https" in advice


HTTP = {
    "an answer": b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n",
    "an answer of old": b"HTTP/1.0 400 Bad request syntax\r\n\r\n<p>Bad request version",
    "a page": b"<!DOCTYPE HTML PUBLIC>\n<html><head><title>Error response</title></head></html>",
    "an answer without a body": b"HTTP/1.1 408 Request Timeout\r\n\r\n",
}


@pytest.mark.parametrize("data", [pytest.param(data, id=name) for name, data in HTTP.items()])
def test_a_server_without_tls_behind_an_https_url_is_called_so(data: bytes, tmp_path: Path) -> None:
    upstream = Upstream()
    proxy = Proxy(upstream.url.replace("http", "https"), tmp_path / "x.mcpspy", "--insecure")
    try:
        client, server = asked(upstream, proxy, proxy.request(b"POST /mcp", b"Content-Type: application/json", body=BODY))
        server.take(1)
        server.send(data)
        assert b" 502 " in client.head()
        proxy.stop()
    finally:
        proxy.end()
        upstream.end()
    ((rule, culprit, advice),) = checked(tmp_path / "x.mcpspy")
    assert (rule, culprit) == ("upstream-failed", "configuration")
    assert "Write http " in advice


def test_a_command_that_asks_says_it_too(tmp_path: Path) -> None:
    upstream = Upstream()

    def serve() -> None:
        try:
            while True:
                wire = upstream.accept()
                wire.head()
                wire.send(ALERTS["protocol version"])
                wire.close()
        except OSError:
            pass

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        ended = run("call", "--url", upstream.url, str(ROOT / "captures/logs.mcpspy:5"), "--yes")
    finally:
        upstream.end()
    assert "needs https" in ended.stderr
