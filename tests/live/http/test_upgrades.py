"""Offers to go on with HTTP/2, which the tap could not read: it does not pass them on. What begins with HTTP/2 is refused."""

import subprocess
from pathlib import Path

import pytest

from tests.cli.terminal import run
from tests.conftest import PEERS, DebianProgram
from tests.deadlines import DEADLINE_S
from tests.live.http.ends import OK, asked, between

OFFERS = [
    (b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n", b""),
    (b"Upgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\nConnection: Upgrade, HTTP2-Settings\r\n", b""),
    (b"connection:upgrade,http2-settings\r\nupgrade:H2C\r\nhttp2-settings:AAMAAABk\r\n", b""),
    (
        b"Connection: keep-alive, Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: A\r\n",
        b"Connection: keep-alive\r\n",
    ),
    (b"Connection: Upgrade\r\nUpgrade: h2c\r\n", b""),
    (b"Connection: close, Upgrade\r\nX: 1\r\nUpgrade: h2c\r\nY: 2\r\n", b"Connection: close\r\nX: 1\r\nY: 2\r\n"),
    (b"Connection: Upgrade\r\nUpgrade: h2c, websocket\r\n", b"Connection: Upgrade\r\nUpgrade: websocket\r\n"),
    (b"Connection: Upgrade\r\nUpgrade: TLS/1.3 , h2c\r\n", b"Connection: Upgrade\r\nUpgrade: TLS/1.3\r\n"),
    (b"Upgrade: h2c\r\n", b""),
    (b"Connection: Upgrade\r\nConnection: HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: A\r\n", b""),
]
OTHERS = [
    b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: h2c\r\n",
    b"Connection:  Upgrade ,x\r\nUpgrade:  websocket\r\n",
    b"Connection: keep-alive\r\n",
    b"Connection: Upgrade\r\nUpgrade: h2c-like\r\n",
    b"X-Upgrade: h2c\r\n",
    b"User-Agent: h2c\r\n",
]


@pytest.mark.grid(5)
@pytest.mark.parametrize(("sent", "arrives"), [*OFFERS, *((fields, fields) for fields in OTHERS)])
def test_an_offer_of_http_2_stays_between_client_and_tap(sent: bytes, arrives: bytes, tmp_path: Path) -> None:
    with between(tmp_path / "x.mcpspy") as (upstream, proxy):
        begin, end = b"POST /mcp HTTP/1.1\r\nA: 1\r\nHost: ", b"Content-Length: 2\r\n\r\n"
        client, server = asked(upstream, proxy, begin + proxy.host + b"\r\n" + sent + end + b"{}")
        expected = begin + b"127.0.0.1:%d\r\n" % upstream.port + arrives + end
        assert server.head() == expected
        server.send(OK)
        assert client.take(len(OK)) == OK
        assert proxy.head("request").head == begin + proxy.host + b"\r\n" + sent + end
        assert proxy.head("request").forwarded == expected


def test_http_2_without_an_offer_is_refused_with_the_reason_and_what_to_do(tmp_path: Path) -> None:
    with between(tmp_path / "x.mcpspy") as (upstream, proxy):
        client = proxy.connect()
        client.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0")
        answer = client.rest()
        assert answer.startswith(b"HTTP/1.1 400 ")
        assert answer.endswith(b"mcpspy: no HTTP/1.x request line: it begins HTTP/2, and mcpspy speaks HTTP/1.1\n")
        assert not upstream.was_called
    said = run("check", str(tmp_path / "x.mcpspy")).stdout
    assert "Let the client speak HTTP/1.1 to mcpspy" in said


def test_javas_client_which_offers_http_2_is_read(tmp_path: Path, debian_program: DebianProgram) -> None:
    with between(tmp_path / "x.mcpspy") as (upstream, proxy):
        java = [debian_program("java"), str(PEERS / "Ask.java"), proxy.address]
        with subprocess.Popen(java, stdout=subprocess.PIPE, text=True) as asking:
            server = upstream.accept()
            head = server.head()
            assert b"h2c" not in head
            server.take(int(head.lower().partition(b"content-length:")[2].split()[0]))
            body = b'{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}'
            server.send(
                b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)
            )
            assert asking.communicate(timeout=DEADLINE_S)[0] == f"HTTP_1_1 200 {body.decode()}\n"
        assert b"h2c" in proxy.head("request").head
    assert "ok: 0 tools" in run("show", str(tmp_path / "x.mcpspy")).stdout
