"""Logins at the server itself: `resource` names the server there, and the browser goes on at the server's own address.

In the tables UPSTREAM and PORT are the ports of the server and of the proxy. A row has what the client sends and what arrives; a row
with one text passes as it is.
"""

import json
from pathlib import Path

import pytest

from mcpspy.records import Frame, Open
from tests.cli.terminal import run
from tests.deadlines import eventually
from tests.live.http.ends import OK, Proxy, Upstream, asked, between
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


def test_a_browser_goes_on_at_the_servers_own_address(tmp_path: Path) -> None:
    with between(tmp_path / "x.mcpspy") as (upstream, proxy):
        learned(upstream, proxy)
        for fields in ((), (b"Sec-Fetch-Site: cross-site", b"Sec-Fetch-Mode: navigate", b"Sec-Fetch-Dest: document")):
            client = proxy.connect()
            client.send(spelled(proxy.request(b"GET " + BROWSER, *fields), upstream, proxy))
            head = client.head()
            assert head.startswith(b"HTTP/1.1 302 Found\r\n")
            assert b"\r\nLocation: %b\r\n" % spelled(LOCATION, upstream, proxy) in head
            assert client.rest() == b""
        assert not upstream.was_called
        assert proxy.head("response", 1).injected
        foreign = proxy.connect()
        foreign.send(b"GET /t/authorize HTTP/1.1\r\nHost: evil.example\r\n\r\n")
        assert foreign.head().startswith(b"HTTP/1.1 421 ")
    findings = json.loads(run("check", "--json", str(tmp_path / "x.mcpspy")).stdout)["findings"]
    assert ["302" in finding["what"] for finding in findings] == [False]


def test_a_browser_whose_way_back_names_the_server_passes_through_the_proxy(tmp_path: Path) -> None:
    with between(tmp_path / "x.mcpspy") as (upstream, proxy):
        learned(upstream, proxy, DOCUMENT[:-1] + b"," + ISS + b"true}")
        _, server = asked(upstream, proxy, spelled(proxy.request(b"GET " + BROWSER), upstream, proxy))
        target = spelled(LOCATION, upstream, proxy).removeprefix(b"http://127.0.0.1:%d" % upstream.port)
        assert server.head().startswith(b"GET %b HTTP/1.1\r\n" % target)


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
