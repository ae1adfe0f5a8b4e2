"""Logins at the server itself: `resource` names the server there, and the browser goes on at the server's own address.

In the tables UPSTREAM and PORT are the ports of the server and of the proxy. A row has what the client sends and what arrives; a row
with one text passes as it is.
"""

import gzip
import json
from pathlib import Path

import pytest

from mcpspy.records import Frame, Open
from tests.cli.terminal import run
from tests.deadlines import eventually
from tests.live.http.ends import OK, Proxy, Upstream, asked, between, chunk
from tests.live.http.test_oauth_names import AS_METADATA, ISS, METADATA, answering, spelled
from tests.live.http.test_rewriting import TYPED

FORM = b"Content-Type: application/x-www-form-urlencoded"
DOCUMENT = (
    b'{"issuer":"SERVER/t","authorization_endpoint":"SERVER/t/authorize","token_endpoint":"SERVER/t/token?a=1",'
    b'"registration_endpoint":"SERVER/t/register","revocation_endpoint":"SERVER/t/revoke","introspection_endpoint":"SERVER/t/look",'
    b'"pushed_authorization_request_endpoint":"SERVER/t/par","device_authorization_endpoint":"SERVER/t/device"}'
)
OUR_PORT = b"127.0.0.1%3APORT"
MINE = b"resource=http%3A%2F%2F127.0.0.1%3APORT%2Fmcp"
THEIRS = b"resource=http%3A%2F%2F127.0.0.1%3AUPSTREAM%2Fmcp"

PARAMETERS = [
    (b"grant_type=authorization_code&code=c%2F1&code_verifier=v&" + MINE + b"&client_id=i",
     b"grant_type=authorization_code&code=c%2F1&code_verifier=v&" + THEIRS + b"&client_id=i"),
    (b"grant_type=refresh_token&refresh_token=r&" + MINE, b"grant_type=refresh_token&refresh_token=r&" + THEIRS),
    (b"grant_type=client_credentials&client_secret=s+t&scope=a+b&" + MINE,
     b"grant_type=client_credentials&client_secret=s+t&scope=a+b&" + THEIRS),
    (b"resource=http%3a%2f%2f127.0.0.1%3aPORT%2fmcp", THEIRS),
    (b"resource=http://127.0.0.1:PORT/mcp&a", THEIRS + b"&a"),
    (b"resource=HTTP://127.0.0.1:PORT", b"resource=http%3A%2F%2F127.0.0.1%3AUPSTREAM"),
    (b"resource=http://127.0.0.1:PORT/&b=", b"resource=http%3A%2F%2F127.0.0.1%3AUPSTREAM%2F&b="),
    (b"res%6Furce=http://127.0.0.1:PORT/mcp", b"res%6Furce=" + THEIRS[9:]),
    (b"resource=http://127.0.0.1:PORT/a%20b+c%2Bd%ff%C3%A4?x%26y",
     b"resource=http%3A%2F%2F127.0.0.1%3AUPSTREAM%2Fa%20b%20c%2Bd%FF%C3%A4%3Fx%26y"),
    (MINE + b"&resource=https%3A%2F%2Fa.example&" + MINE, THEIRS + b"&resource=https%3A%2F%2Fa.example&" + THEIRS),
    (b"&&" + MINE + b"&", b"&&" + THEIRS + b"&"),
]  # fmt: skip
OTHERS = [
    b"resource=https%3a%2f%2fmcp.example%2Fmcp&x=%7e",
    b"resource=http%3A%2F%2F127.0.0.1%3AUPSTREAM%2fmcp",
    b"resource=http://127.0.0.1:1/mcp",
    b"resource=https://127.0.0.1:PORT/mcp",
    b"resource=http://127.0.0.1:PORT.evil.example/mcp",
    b"resource=urn%3amcp:x",
    b"resource=mcp&resource=&resource",
    b"xresource=http://127.0.0.1:PORT/mcp&resource2=http://127.0.0.1:PORT/mcp",
    b"audience=http://127.0.0.1:PORT/mcp&redirect_uri=http://127.0.0.1:PORT/cb",
    b"request=e30.http://127.0.0.1:PORT/mcp",
    b"a=1;resource=http://127.0.0.1:PORT/mcp",
    b'{"resource":"http://127.0.0.1:PORT/mcp"}',
    b"\xff\x00%zz=&%=%",
]
"""They pass as they are, in a form and in a query."""

PATHS = [b"/t/token", b"/t/token?a=1", b"/t/par", b"/t/device", b"/t/authorize"]
OTHER_PATHS = [b"/t/register", b"/t/revoke", b"/t/look", b"/mcp", b"/t/token/x", b"/token", b"/T/token"]
OTHER_HEADS = [
    (b"Content-Type: application/json",),
    (b"Content-Type: text/plain",),
    (),
    (b"Content-Type: application/x-www-form-urlencoded-x",),
    (FORM, b"Content-Encoding: gzip"),
    (FORM, b"Expect: 100-continue"),
]
SENT, ARRIVES = PARAMETERS[0]
FORMS = [
    *((b"/t/token", (FORM,), *row) for row in PARAMETERS),
    *((path, (FORM,), SENT, ARRIVES) for path in PATHS),
    (b"/t/token", (FORM.upper() + b" ; charset=UTF-8",), SENT, ARRIVES),
    *((b"/t/token", (FORM,), row, row) for row in OTHERS),
    *((path, (FORM,), SENT, SENT) for path in OTHER_PATHS),
    *((b"/t/token", head, SENT, SENT) for head in OTHER_HEADS),
    (b"/t/token", (FORM,), b"a=" + b"x" * (1 << 20) + b"&" + SENT, b"a=" + b"x" * (1 << 20) + b"&" + SENT),
    (b"/t/token", (FORM,), b"", b""),
]


def learned(upstream: Upstream, proxy: Proxy, document: bytes = DOCUMENT) -> None:
    """Let the proxy see the metadata of an authorization server."""
    answering(upstream, proxy, AS_METADATA + b"/t", spelled(document, upstream, proxy))


@pytest.mark.grid(8)
@pytest.mark.parametrize(("target", "fields", "sent", "arrives"), FORMS)
def test_only_the_resource_of_a_login_changes_on_its_way(
    target: bytes, fields: tuple[bytes, ...], sent: bytes, arrives: bytes, tmp_path: Path
) -> None:
    with between(tmp_path / "x.mcpspy") as (upstream, proxy):
        form, expected = (spelled(text, upstream, proxy) for text in (sent, arrives))
        request = proxy.request(b"POST " + target, *fields, b"X: %b" % OUR_PORT, body=form)
        client, server = asked(upstream, proxy, request)
        before = server.head()
        assert server.take(len(form)) == form, "nothing has been learned yet"
        server.send(OK)
        assert client.take(len(OK)) == OK
        learned(upstream, proxy)
        client, server = asked(upstream, proxy, request)
        assert server.head() == before.replace(b"Length: %d\r" % len(form), b"Length: %d\r" % len(expected))
        assert server.take(len(expected)) == expected
        server.send(OK)
        assert client.take(len(OK)) == OK
    findings = json.loads(run("check", "--json", str(tmp_path / "x.mcpspy")).stdout)["findings"]
    assert {finding["rule"] for finding in findings} <= {"malformed-message"}, "a form that says to be JSON"


def test_a_form_in_pieces_arrives_whole_and_those_that_follow_it_as_well(tmp_path: Path) -> None:
    with between(tmp_path / "x.mcpspy") as (upstream, proxy):
        learned(upstream, proxy)
        form, expected = (spelled(text, upstream, proxy) for text in PARAMETERS[1])
        request = proxy.request(b"POST /t/token", FORM, body=form)
        chunked = b"POST /t/token HTTP/1.1\r\nHost: %b\r\n%b\r\nTransfer-Encoding: chunked\r\n\r\n" % (proxy.host, FORM)
        client, server = asked(upstream, proxy, proxy.request())
        server.head()
        server.take(2)
        for piece in (request[:30], request[30:-9], request[-9:]):
            client.send(piece)
        assert b"Content-Length: %d\r\n" % len(expected) in server.head()
        assert server.take(len(expected)) == expected
        for piece in (
            request,
            chunked + b"3\r\n" + form[:3] + b"\r\n%x\r\n" % len(form[3:]),
            form[3:] + b"\r\n0\r\n\r\n",
            request,
        ):
            client.send(piece)
        for _ in range(3):
            assert b"Content-Length: %d\r\n" % len(expected) in server.head()
            assert server.take(len(expected)) == expected
        server.send(OK * 5)
        assert client.take(len(OK) * 5) == OK * 5


def test_intercepts_leave_the_forms_of_a_login_to_the_proxy(tmp_path: Path) -> None:
    with between(tmp_path / "x.mcpspy", "--intercept", "tool:any => delay 1s") as (upstream, proxy):
        learned(upstream, proxy)
        form, expected = (spelled(text, upstream, proxy) for text in PARAMETERS[1])
        client, server = asked(upstream, proxy, proxy.request(b"POST /t/token", FORM, body=form) * 2)
        for _ in range(2):
            assert b"Content-Length: %d\r\n" % len(expected) in server.head()
            assert server.take(len(expected)) == expected
            server.send(OK)
            assert client.take(len(OK)) == OK


@pytest.mark.parametrize("is_half_closed", [False, True])
def test_a_form_that_does_not_become_whole_is_recorded_as_it_came(is_half_closed: bool, tmp_path: Path) -> None:  # noqa: FBT001
    with between(tmp_path / "x.mcpspy") as (upstream, proxy):
        learned(upstream, proxy)
        client, server = asked(upstream, proxy, proxy.request())
        server.head()
        server.take(2)
        server.send(OK)
        client.take(len(OK))
        client.send(proxy.request(b"POST /t/token", FORM, body=b"grant_type=refresh_token")[:-4])
        if is_half_closed:
            client.socket.shutdown(1)
            assert server.rest().endswith(b"grant_type=refresh_t")
        client.close()
        eventually(lambda: len([head for head in proxy.found(Open) if head.name == "request"]) == 3, "the record of the form")
        assert proxy.ending("request", 2)[0] == "client"
        assert proxy.body("request", 2) == b"grant_type=refresh_t"


LOCATION = b"SERVER/t/authorize?response_type=code&client_id=%7E&" + THEIRS + b"&state=s"
BROWSER = b"/t/authorize?response_type=code&client_id=%7E&" + MINE + b"&state=s"


NAMED = DOCUMENT[:-1] + b"," + ISS + b"true}"
CALLBACK = b"Location: http://127.0.0.1:9/cb?state=s&"
PAGE = b"Content-Type: text/html\r\n"

ENDINGS = [
    (b"302 Found", CALLBACK + b"code=c\r\n", CALLBACK + b"code=c\r\n"),
    (b"303 See Other", CALLBACK + b"error=access_denied\r\n", CALLBACK + b"error=access_denied\r\n"),
    (b"302 Found", CALLBACK + b"code=c&iss=SERVER/t\r\n", CALLBACK + b"code=c&iss=http%3A%2F%2F127.0.0.1%3APORT%2Ft\r\n"),
    (b"302 Found", b"location: app:/cb#code=c&iss=SERVER\r\n", b"location: app:/cb#code=c&iss=http%3A%2F%2F127.0.0.1%3APORT\r\n"),
    (b"302 Found", *[CALLBACK + b"code=c&iss=https%3A%2F%2Flogin.example\r\n"] * 2),
    (b"400 Bad Request", b"", b""),
    (b"401 Unauthorized", PAGE, PAGE),
    (b"429 Too Many Requests", b"Retry-After: 1\r\n", b"Retry-After: 1\r\n"),
    (b"500 Internal Server Error", PAGE, PAGE),
]  # fmt: skip
"""The server ends the login at once, or refuses it: its status and fields, and those that arrive."""
STEPS = [
    (b"302 Found", b"Location: SERVER/consent?txn_id=t\r\nSet-Cookie: a=b; Secure; HttpOnly\r\n"),
    (b"303 See Other", b"Location: /login\r\n"),
    (b"307 Temporary Redirect", b"location: login?next=%2Ft%2Fauthorize%3Fcode_challenge=x\r\n"),
    (b"302 Found", b"Location: https://login.example/authorize?client_id=i&redirect_uri=SERVER%2Fauth%2Fcallback&state=s\r\n"),
    (b"302 Found", b""),
    (b"200 OK", PAGE),
    (b"200 OK", PAGE + b"Set-Cookie: session=s; SameSite=Lax\r\n"),
    (b"200 OK", PAGE + b"Content-Encoding: gzip\r\n"),
]
"""The server wants to see the user, or sends them on: the browser begins anew where the server's cookies are."""


def browsing(
    upstream: Upstream, proxy: Proxy, status: bytes, fields: bytes, body: bytes, framing: str, line: bytes = b"GET " + BROWSER
) -> tuple[bytes, bytes]:
    """Let a browser log in, and the server answer; return the head and the body that arrive."""
    request = spelled(proxy.request(line, b"Connection: close"), upstream, proxy)
    client, server = asked(upstream, proxy, request.replace(b"\r\nContent-Length: 2\r\n\r\n{}", b"\r\n\r\n"))
    target = spelled(LOCATION, upstream, proxy).removeprefix(b"http://127.0.0.1:%d" % upstream.port)
    assert server.head().startswith(b"GET %b HTTP/1.1\r\n" % target)
    ends = {"chunks": b"Transfer-Encoding: chunked\r\n", "length": b"Content-Length: %d\r\n" % len(body), "close": b""}[framing]
    sent = chunk(body) + b"0\r\n\r\n" if framing == "chunks" and body else b"0\r\n\r\n" if framing == "chunks" else body
    server.send(b"HTTP/1.1 %b\r\n%b%b\r\n%b" % (status, spelled(fields, upstream, proxy), ends, sent))
    server.close()
    return client.head(), client.rest()


@pytest.mark.grid(4)
@pytest.mark.parametrize("framing", ["length", "chunks", "close"])
@pytest.mark.parametrize("document", [DOCUMENT, NAMED])
@pytest.mark.parametrize(("status", "sent", "arrives"), ENDINGS)
def test_the_end_of_a_login_passes_with_the_name_that_the_client_knows(
    status: bytes, sent: bytes, arrives: bytes, document: bytes, framing: str, tmp_path: Path
) -> None:
    with between(tmp_path / "x.mcpspy") as (upstream, proxy):
        learned(upstream, proxy, document)
        head, body = browsing(upstream, proxy, status, sent, b"<p>Bye", framing)
        assert head.startswith(b"HTTP/1.1 %b\r\n%b" % (status, spelled(arrives, upstream, proxy)))
        assert body == (chunk(b"<p>Bye") + b"0\r\n\r\n" if framing == "chunks" else b"<p>Bye")


@pytest.mark.grid(4)
@pytest.mark.parametrize("framing", ["length", "chunks", "close"])
@pytest.mark.parametrize(
    ("body", "document"), [(b"", DOCUMENT), (b"<form action=/login>", DOCUMENT), (b"<form action=/login>", NAMED)]
)
@pytest.mark.parametrize(("status", "fields"), STEPS)
def test_a_browser_goes_on_at_the_servers_own_address(
    status: bytes, fields: bytes, body: bytes, document: bytes, framing: str, tmp_path: Path
) -> None:
    with between(tmp_path / "x.mcpspy") as (upstream, proxy):
        learned(upstream, proxy, document)
        body = gzip.compress(body) if b"gzip" in fields else body
        head, rest = browsing(upstream, proxy, status, fields, body, framing)
        assert head.startswith(b"HTTP/1.1 302 Found\r\n")
        assert head.lower().count(b"\r\nlocation: ") == 1
        assert b"location: %b\r\n" % spelled(LOCATION, upstream, proxy) in head.replace(b"Location", b"location")
        assert b"cookie" not in head.lower()
        assert rest in {b"", b"0\r\n\r\n"}
        record = proxy.head("response", 1)
        assert (record.forwarded, record.injected) == (head, False)
        assert record.head.startswith(b"HTTP/1.1 %b\r\n" % status)
        assert proxy.body("response", 1) == body
        assert [frame.forwarded for frame in proxy.found(Frame) if frame.stream == record.stream] == ([b""] if body else [])
    findings = json.loads(run("check", "--json", str(tmp_path / "x.mcpspy")).stdout)["findings"]
    assert findings == []


def test_a_foreign_page_cannot_begin_a_login(tmp_path: Path) -> None:
    with between(tmp_path / "x.mcpspy") as (upstream, proxy):
        learned(upstream, proxy)
        foreign = proxy.connect()
        foreign.send(b"GET /t/authorize HTTP/1.1\r\nHost: evil.example\r\n\r\n")
        assert foreign.head().startswith(b"HTTP/1.1 421 ")
        assert not upstream.was_called


OTHER_BROWSERS = [
    (b"GET /authorize?" + MINE, b'{"resource":"SERVER","authorization_servers":["https://a.example"]}'),
    (b"GET /t/other?" + MINE, DOCUMENT),
    (b"GET /mcp?" + MINE, DOCUMENT),
    (b"GET /t/authorize?" + MINE, b'{"issuer":"SERVER","authorization_endpoint":"https://login.example/t/authorize"}'),
    (b"GET /t/authorize?" + MINE, b'{"issuer":"SERVER","authorization_endpoint":"http://127.0.0.1:1/t/authorize"}'),
    (b"GET /t/authorize?" + MINE, b'{"authorization_endpoint":["SERVER/t/authorize"]}'),
    (b"GET /t/authorize?" + MINE, b'{"resource":"https://a.example","authorization_servers":["SERVER"]}'),
]


@pytest.mark.parametrize(("line", "document"), OTHER_BROWSERS)
def test_any_other_request_with_a_resource_passes_as_it_is(line: bytes, document: bytes, tmp_path: Path) -> None:
    with between(tmp_path / "x.mcpspy") as (upstream, proxy):
        learned(upstream, proxy, document)
        _, server = asked(upstream, proxy, spelled(proxy.request(line), upstream, proxy))
        assert server.head().startswith(spelled(line, upstream, proxy) + b" HTTP/1.1\r\n")


def test_a_server_without_a_document_of_its_own_has_its_endpoints_at_the_default_paths(tmp_path: Path) -> None:
    with between(tmp_path / "x.mcpspy") as (upstream, proxy):
        document = b'{"resource":"SERVER/mcp","authorization_servers":["SERVER"]}'
        answering(upstream, proxy, METADATA + b"/mcp", spelled(document, upstream, proxy))
        form, expected = (spelled(text, upstream, proxy) for text in PARAMETERS[0])
        _, server = asked(upstream, proxy, proxy.request(b"POST /token", FORM, body=form))
        server.head()
        assert server.take(len(expected)) == expected


SECRETS = (b"code-7f3a", b"verifier-7f3a", b"secret-7f3a", b"refresh-7f3a", b"assertion-7f3a", b"access-7f3a")


def test_no_secret_of_a_login_reaches_the_disk(tmp_path: Path) -> None:
    with between(tmp_path / "x.mcpspy", redact="credentials") as (upstream, proxy):
        learned(upstream, proxy, DOCUMENT.replace(b"/t/token?a=1", b"/t/x"))
        form = spelled(
            b"grant_type=a&code=%b&code_verifier=%b&client_secret=%b&refresh_token=%b&assertion=%b&" % SECRETS[:5] + MINE,
            upstream,
            proxy,
        )
        client, server = asked(upstream, proxy, proxy.request(b"POST /t/x", FORM, body=form))
        server.head()
        arrived = server.until(b"%2Fmcp")
        assert all(secret in arrived for secret in SECRETS[:5])
        answer = b'{"access_token":"%b"}' % SECRETS[5]
        server.send(TYPED + b"Content-Length: %d\r\n\r\n" % len(answer) + answer)
        client.head()
        client.take(len(answer))
        sent = [frame.forwarded or b"" for frame in proxy.found(Frame)]
        assert [arrived[-20:] in frame for frame in sent] == [False, True, False]
    kept = (tmp_path / "x.mcpspy").read_bytes()
    assert not [secret for secret in SECRETS if secret in kept]


def test_a_form_whose_head_comes_alone_arrives_after_it(tmp_path: Path) -> None:
    with between(tmp_path / "x.mcpspy") as (upstream, proxy):
        learned(upstream, proxy)
        client, server = asked(upstream, proxy, proxy.request())
        server.head()
        server.take(2)
        server.send(OK)
        client.take(len(OK))
        form, expected = (spelled(text, upstream, proxy) for text in PARAMETERS[1])
        head, _, _ = proxy.request(b"POST /t/token", FORM, body=form).partition(form)
        client.send(head)
        asked(upstream, proxy, proxy.request())[1].head()  # so the proxy has read the head
        client.send(form)
        assert b"Content-Length: %d\r\n" % len(expected) in server.head()
        assert server.take(len(expected)) == expected


KEPT = b'"client_id":"c","client_uri":"SERVER","redirect_uris":["SERVER/cb"],"jwks_uri":"SERVER/j"'
REGISTRATIONS = [
    (
        b'{"client_id":"c","registration_client_uri":"SERVER/register/c"}',
        b'{"client_id":"c","registration_client_uri":"OURS/register/c"}',
    ),
    (
        b'{"registration_client_uri":"SERVER/r?client=c",' + KEPT + b"}",
        b'{"registration_client_uri":"OURS/r?client=c",' + KEPT + b"}",
    ),
    (rb'{"registration_client_uri":"http:\/\/127.0.0.1:UPSTREAM\/r\/c"}', b'{"registration_client_uri":"OURS/r/c"}'),
    (b'{"registration_client_uri":"http://localhost:UPSTREAM/r"}', b'{"registration_client_uri":"OURS/r"}'),
    (b'{"registration_client_uri":"//127.0.0.1:UPSTREAM/r"}', b'{"registration_client_uri":"//127.0.0.1:PORT/r"}'),
    (b'{"registration_client_uri":"https://a.example","registration_client_uri":"SERVER/r"}',
     b'{"registration_client_uri":"https://a.example","registration_client_uri":"OURS/r"}'),
    (b'{"x":{"registration_client_uri":"SERVER/x"},"registration_client_uri": "SERVER/y"}\n',
     b'{"x":{"registration_client_uri":"SERVER/x"},"registration_client_uri": "OURS/y"}\n'),
    *((same, same) for same in (
        b"{" + KEPT + b"}",
        b'{"registration_client_uri":"https://login.example/register/c"}',
        b'{"registration_client_uri":"https://127.0.0.1:UPSTREAM/r"}',
        b'{"registration_client_uri":"http://u@127.0.0.1:UPSTREAM/r"}',
        b'{"registration_client_uri":"/register/c"}',
        b'{"registration_client_uri":["SERVER/r"]}',
        b'{"client":{"registration_client_uri":"SERVER/r"}}',
        b'[{"registration_client_uri":"SERVER/r"}]',
        b'{"registration_client_uri":"SERVER/r"',
        b'{"error":"invalid_client_metadata","error_description":"SERVER/r"}',
    )),
]  # fmt: skip
"""Answers to a registration (RFC 7591, section 3.2.1; RFC 7592, section 3)."""
JSON = b"Content-Type: application/json\r\n"


def sent_back(
    upstream: Upstream, proxy: Proxy, line: bytes, body: bytes, status: bytes = b"201 Created", *, comes: str = "whole"
) -> bytes:
    """Let the server answer a request with this body, and return the one that arrives."""
    client, server = asked(upstream, proxy, spelled(proxy.request(line, JSON.strip()), upstream, proxy))
    server.head()
    server.take(0 if line.startswith(b"GET") else 2)
    head = b"HTTP/1.1 %b\r\n%bCache-Control: no-store\r\n" % (status, JSON)
    if comes == "in chunks":
        server.send(head + b"Transfer-Encoding: chunked\r\n\r\n" + chunk(body[:9]) + chunk(body[9:]) + b"0\r\n\r\n")
    else:
        server.send(head + b"Content-Length: %d\r\n\r\n" % len(body) + (b"" if comes == "after its head" else body))
    if comes == "after its head":
        asked(upstream, proxy, proxy.request())[1].head()  # so the proxy has read the head
        server.send(body)
    arrived = client.head().lower()
    if b"transfer-encoding" in arrived:
        return client.until(b"0\r\n\r\n")
    return client.take(int(arrived.partition(b"content-length:")[2].split()[0]))


@pytest.mark.grid(4)
@pytest.mark.parametrize("comes", ["whole", "after its head", "in chunks"])
@pytest.mark.parametrize(("sent", "arrives"), REGISTRATIONS)
def test_the_answer_to_a_registration_names_the_proxy(sent: bytes, arrives: bytes, comes: str, tmp_path: Path) -> None:
    with between(tmp_path / "x.mcpspy") as (upstream, proxy):
        body, expected = (spelled(text, upstream, proxy) for text in (sent, arrives))
        if comes == "in chunks" and body == expected:
            expected = chunk(body[:9]) + chunk(body[9:]) + b"0\r\n\r\n"
        for _ in range(4):  # a head that comes often has a shorter way
            assert sent_back(upstream, proxy, b"POST /register", body, comes=comes) == expected
    findings = json.loads(run("check", "--json", str(tmp_path / "x.mcpspy")).stdout)["findings"]
    said = {finding["rule"] for finding in findings if "register" in finding["what"]}
    assert said <= {"malformed-message", "unrewritten-address"}


REGISTERED = b'{"registration_client_uri":"SERVER/clients/c"}'
ELSEWHERE = [(b"POST /mcp", b"200 OK"), (b"POST /t/register", b"201 Created"), (b"POST /register", b"400 Bad Request"),
             (b"GET /clients/other", b"200 OK"), (b"POST /registers", b"201 Created")]  # fmt: skip


@pytest.mark.parametrize(("line", "status"), ELSEWHERE)
def test_an_answer_to_something_else_passes_as_it_is(line: bytes, status: bytes, tmp_path: Path) -> None:
    with between(tmp_path / "x.mcpspy") as (upstream, proxy):
        body = spelled(REGISTERED, upstream, proxy)
        assert sent_back(upstream, proxy, line, body, status) == body


@pytest.mark.parametrize("method", [b"GET", b"PUT"])
def test_a_registration_is_read_and_changed_where_its_answer_said(method: bytes, tmp_path: Path) -> None:
    with between(tmp_path / "x.mcpspy") as (upstream, proxy):
        before, after = (spelled(text, upstream, proxy) for text in (REGISTERED, REGISTERED.replace(b"SERVER", b"OURS")))
        assert sent_back(upstream, proxy, method + b" /clients/c", before, b"200 OK") == before
        assert sent_back(upstream, proxy, b"POST /register", before) == after
        assert sent_back(upstream, proxy, method + b" /clients/c", before, b"200 OK") == after


def test_no_secret_of_a_registration_reaches_the_disk(tmp_path: Path) -> None:
    with between(tmp_path / "x.mcpspy", redact="credentials") as (upstream, proxy):
        secrets = b'{"client_secret":"secret-7f3a","registration_access_token":"access-7f3a",'
        body = spelled(secrets + REGISTERED[1:], upstream, proxy)
        assert sent_back(upstream, proxy, b"POST /register", body) == spelled(
            secrets + REGISTERED[1:].replace(b"SERVER", b"OURS"), upstream, proxy
        )
    assert b"7f3a" not in (tmp_path / "x.mcpspy").read_bytes()
