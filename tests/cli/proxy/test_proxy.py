"""`mcpspy proxy` as a user meets it: its first line, its options and their errors, TLS, and that no secret reaches the disk."""

import re
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest

from mcpspy.records import Header, Note
from tests.cli.terminal import run
from tests.deadlines import DEADLINE_S
from tests.live.http.ends import EVENTS, OK, Proxy, Upstream, asked, between, chunk
from tests.live.http.secure_ends import SecureUpstream

SECRETS = [f"s3cr3t{number}0123456789abcdef0123456789abcdef" for number in range(11)]


def refusal(mcpspy: list[str], *arguments: str) -> tuple[int, str]:
    """Return the exit status and the stderr of a `proxy` that cannot begin."""
    done = run("proxy", *arguments)
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    return done.returncode, done.stderr


def test_the_first_line_is_the_address_for_the_client(tmp_path: Path) -> None:
    with between(tmp_path / "x.mcpspy") as (_, proxy):
        assert proxy.address == f"http://127.0.0.1:{proxy.port}/mcp"


def test_the_address_has_the_path_and_the_query_of_the_servers(tmp_path: Path) -> None:
    upstream = Upstream()
    proxy = Proxy(f"http://127.0.0.1:{upstream.port}/a/sse?b=%20", tmp_path / "x.mcpspy")
    try:
        assert proxy.address.endswith(f":{proxy.port}/a/sse?b=%20")
        assert proxy.stop() == ""
    finally:
        proxy.end()
        upstream.end()


def test_the_header_says_what_is_tapped_and_where(tmp_path: Path) -> None:
    with between(tmp_path / "x.mcpspy") as (upstream, proxy):
        (header,) = proxy.found(Header)
        assert header.tapped == {"transport": "http", "url": upstream.url, "listen": proxy.address}
        assert header.label == f"127.0.0.1:{upstream.port}"
        assert header.redaction == "none"


def test_a_port_that_is_taken_is_an_error_that_names_a_way_out(mcpspy: list[str], tmp_path: Path) -> None:
    taken = Upstream()
    status, words = refusal(mcpspy, "http://127.0.0.1:1/mcp", "--listen", f"127.0.0.1:{taken.port}")
    taken.end()
    assert status == 4
    assert "--listen" in words
    assert words.count("\n") == 1


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "0.0.0.0", "[::1]"])
def test_an_upstream_that_is_the_tap_itself_is_an_error(host: str, mcpspy: list[str]) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    status, words = refusal(mcpspy, f"http://{host}:{port}/mcp", "--listen", f"127.0.0.1:{port}")
    assert status == 4
    assert "this tap itself" in words


WRONG = [
    (["ftp://127.0.0.1/"], "is not the URL of a server"),
    (["127.0.0.1:80"], "is not the URL of a server"),
    (["http://"], "is not the URL of a server"),
    (["http://127.0.0.1:99999/"], "is not the URL of a server"),
    (["http://127.0.0.1/", "--listen", "8765"], "HOST:PORT"),
    (["http://127.0.0.1/", "--listen", "127.0.0.1"], "HOST:PORT"),
    (["http://127.0.0.1/", "--listen", "0.0.0.0:0"], "--allow-remote"),
    (["http://127.0.0.1/", "--listen", "[::]:0"], "--allow-remote"),
    (["http://127.0.0.1/", "--listen", "example.com:0"], "--allow-remote"),
    (["http://127.0.0.1/", "--header", "Authorization"], "--header"),
    (["http://127.0.0.1/", "--header", "A: b\r\nC: d"], "--header"),
    (["http://127.0.0.1/", "--header", "A b: c"], "--header"),
    (["http://127.0.0.1/", "--header", "Content-Length: 5"], "the end of a request"),
    (["http://127.0.0.1/", "--allow-endpoint", "evil.example"], "is not an origin"),
    (["http://127.0.0.1/", "--max-size", "much"], "--max-size"),
    (["https://127.0.0.1/", "--ca", "/nowhere"], "--ca"),
]


@pytest.mark.parametrize(("arguments", "words"), WRONG)
def test_a_wrong_command_line_is_a_usage_error(arguments: list[str], words: str, mcpspy: list[str]) -> None:
    status, text = refusal(mcpspy, *arguments)
    assert status == 2
    assert words in re.sub(r"\s+", " ", text)


def test_a_file_that_holds_no_certificate_is_an_error(mcpspy: list[str], tmp_path: Path) -> None:
    file = tmp_path / "ca.pem"
    file.write_text("hello")
    status, words = refusal(mcpspy, "https://127.0.0.1/", "--ca", str(file), "--listen", "127.0.0.1:0")
    assert status == 2
    assert words.count("\n") == 1


def test_other_machines_may_be_let_in_by_a_name(tmp_path: Path) -> None:
    options = ("--listen", "0.0.0.0:0", "--allow-remote", "--allowed-host", "Desk.example")
    with between(tmp_path / "x.mcpspy", *options) as (upstream, proxy):
        _, server = asked(upstream, proxy, b"GET / HTTP/1.1\r\nHost: desk.example\r\n\r\n")
        assert server.head().startswith(b"GET / HTTP/1.1\r\nHost: 127.0.0.1:")


# Redaction, from the socket to the file


def spoken(upstream: Upstream, proxy: Proxy) -> None:
    """Play a dialogue with a secret in every place that a tap knows of."""
    name = [secret.encode() for secret in SECRETS]
    client, server = asked(
        upstream,
        proxy,
        proxy.request(b"GET /sse?api_key=" + name[0], b"Authorization: Bearer " + name[1], b"Accept: text/event-stream"),
    )
    server.head()
    events = chunk(b"event: endpoint\ndata: http://127.0.0.1:%d/messages/?session_id=%b\n\n" % (upstream.port, name[2]))
    server.send(EVENTS.replace(b"\r\n\r\n", b"\r\nSet-Cookie: a=" + name[3] + b"\r\n\r\n") + events + b"0\r\n\r\n")
    client.head()
    assert name[2] in client.take(len(events))
    client.take(5)
    fields = (b"Cookie: a=" + name[3], b"Mcp-Session-Id: " + name[2])
    client.send(proxy.request(b"POST /messages/?session_id=" + name[2], *fields))
    assert server.head().count(name[2]) == 2
    server.take(2)
    server.send(OK)
    client.take(len(OK))
    form = b"grant_type=authorization_code&code=" + name[4]
    client.send(proxy.request(b"POST /login/oauth/access_token", b"Content-Type: application/x-www-form-urlencoded", body=form))
    server.head()
    server.take(len(form))
    granted = b'{"access_token":"%b","refresh_token":"%b"}' % (name[5], name[6])
    more = (b"X-Secret-Id: " + name[8], b"X-Custom: Bearer " + name[9], b"Transfer-Encoding: chunked")
    body = chunk(granted) + b"0\r\nX-Token-Id: %b\r\n\r\n" % name[10]
    server.send(b"\r\n".join((b"HTTP/1.1 200 OK", b"Content-Type: application/json", *more, b"", body)))
    client.head()
    assert client.take(len(body)) == body
    client.send(b"GET / HTTP/1.1\nAuthorization: Bearer %b\n\n" % name[7])
    assert client.rest().startswith(b"HTTP/1.1 400 ")


def test_no_secret_is_in_the_file(tmp_path: Path) -> None:
    options = ("--header", "X-Api-Key: " + SECRETS[0])
    with between(tmp_path / "x.mcpspy", *options, redact="credentials") as (upstream, proxy):
        spoken(upstream, proxy)
        proxy.stop()
        text = proxy.capture.read_text()
        assert [secret for secret in SECRETS if secret in text] == []
        ids = re.findall(r"session_id=(redacted-\w+)|Mcp-Session-Id: (redacted-\w+)", text)
        assert len({in_url or in_field for in_url, in_field in ids}) == 1
        assert len(ids) > 4


def test_without_redaction_everything_is_in_the_file(tmp_path: Path) -> None:
    with between(tmp_path / "x.mcpspy", redact="none") as (upstream, proxy):
        spoken(upstream, proxy)
        proxy.stop()
        text = proxy.capture.read_text()
        assert [secret for secret in SECRETS if secret not in text] == []
        assert "redacted-" not in text


# TLS


@pytest.fixture
def secure(tmp_path: Path) -> Iterator[SecureUpstream]:
    upstream = SecureUpstream(tmp_path)
    yield upstream
    upstream.end()


@pytest.mark.parametrize("trust", ["by its authority", "blindly"])
def test_an_upstream_that_speaks_tls_is_reached_and_that_is_noted(trust: str, secure: SecureUpstream, tmp_path: Path) -> None:
    options = ("--insecure",) if trust == "blindly" else ("--ca", str(secure.ca))
    proxy = Proxy(secure.url, tmp_path / "x.mcpspy", *options)
    try:
        client, server = asked(secure, proxy, proxy.request())
        assert b"\r\nHost: localhost:%d\r\n" % secure.port in server.head()
        server.take(2)
        server.send(OK)
        assert client.take(len(OK)) == OK
        client.send(proxy.request(b"GET /sse"))
        server.head()
        server.send(EVENTS + chunk(b"data: 1\n\n"))
        assert client.take(len(EVENTS)) == EVENTS
        client.close()
        assert server.rest() == b""
        assert proxy.stop() == ""
        (text,) = [note.text for note in proxy.found(Note) if note.topic == "tls"]
        assert "TLSv1.3" in text
    finally:
        proxy.end()


def test_an_upstream_with_an_untrusted_certificate_is_a_502_that_says_so(secure: SecureUpstream, tmp_path: Path) -> None:
    proxy = Proxy(secure.url, tmp_path / "x.mcpspy")

    def refused() -> None:
        with pytest.raises(ssl.SSLError):
            secure.accept()

    thread = Thread(target=refused, daemon=True)
    thread.start()
    try:
        client = proxy.connect()
        client.send(proxy.request())
        answer = client.rest()
        assert answer.startswith(b"HTTP/1.1 502 ")
        assert b"certificate verify failed" in answer
        thread.join(DEADLINE_S)
        assert proxy.stop() == ""
    finally:
        proxy.end()
