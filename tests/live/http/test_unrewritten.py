"""Addresses of the server that a login needs and that reach the client unchanged: mcpspy's own fault, never the server's.

A row has a request and its response. In the tables SERVER is the server's address, and UPSTREAM its port.
"""

import gzip
import json
from pathlib import Path

import pytest

from tests.cli.terminal import run
from tests.live.http.ends import Proxy, Upstream, asked, between, chunk
from tests.live.http.test_oauth_names import AS_METADATA, METADATA, spelled

OPENID = b"/.well-known/openid-configuration"
GET, AS_GET, OPENID_GET = (b"GET " + target for target in (METADATA, AS_METADATA, OPENID))
SSE = b"GET /sse\r\nAccept: text/event-stream"
USER = b"http://u@127.0.0.1:UPSTREAM"
LOCAL = b"http://localhost:UPSTREAM"
LARGE = b"x" * (2 << 20)
DEEP = b'"x":' + b"[" * 2_000 + b"]" * 2_000


def answer(
    body: bytes = b"", *fields: bytes, status: bytes = b"200 OK", kind: bytes = b"application/json", coding: bytes = b""
) -> tuple[bytes, bytes, bytes]:
    """Write a response: its head up to the length, its body, and the coding of the body."""
    typed = (b"Content-Type: " + kind,) if body else ()
    coded = (b"Content-Encoding: " + coding,) if coding else ()
    return b"\r\n".join((b"HTTP/1.1 " + status, *typed, *coded, *fields, b"")), body, coding


def refusal(challenge: bytes, status: bytes = b"401 Unauthorized") -> tuple[bytes, bytes, bytes]:
    return answer(b"", b"WWW-Authenticate: " + challenge, status=status)


def redirect(field: bytes) -> tuple[bytes, bytes, bytes]:
    return answer(b"", field, status=b"307 Temporary Redirect")


def events(body: bytes, coding: bytes = b"") -> tuple[bytes, bytes, bytes]:
    return answer(body, kind=b"text/event-stream", coding=coding)


def linked(value: bytes, status: bytes = b"401 Unauthorized") -> tuple[bytes, bytes, bytes]:
    return answer(b"", b"Link: " + value, status=status)


def endpoint(uri: bytes, coding: bytes = b"") -> tuple[bytes, bytes, bytes]:
    return events(b"event: endpoint\ndata: %b\n\n" % uri, coding)


POST = b"POST /mcp"
CHANGED = b'{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}'
PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
LEFT = {
    "a challenge with a user's name": (POST, refusal(b'Bearer resource_metadata="%b/y"' % USER)),
    "a challenge in single quotes": (POST, refusal(b"Bearer resource_metadata='SERVER/y'")),
    "a challenge in pointed brackets": (POST, refusal(b"Bearer resource_metadata=<SERVER/y>")),
    "a challenge whose quotes do not end": (POST, refusal(b'Bearer resource_metadata="SERVER/y')),
    "a challenge with a blank before the address": (POST, refusal(b'Bearer resource_metadata=" SERVER/y"')),
    "the second of two challenges": (POST, refusal(b'Basic realm="x"\r\nWWW-Authenticate: Bearer resource_metadata="%b/y"' % USER)),
    "a challenge to a GET": (b"GET /mcp", refusal(b'Bearer resource_metadata="%b/y"' % USER, b"403 Forbidden")),
    "a redirect with a user's name": (POST, redirect(b"Location: %b/mcp" % USER)),
    "a redirect of metadata with a user's name": (GET, redirect(b"Location: %b/y" % USER)),
    "a compressed endpoint": (SSE, events(b"event: endpoint\ndata: SERVER/m\n\n", b"gzip")),
    "an endpoint after a large comment": (SSE, events(b": " + LARGE + b"\nevent: endpoint\ndata: SERVER/m\n\n")),
    "an endpoint after a message": (SSE, events(b"event: message\ndata: %b\n\nevent: endpoint\ndata: SERVER/m\n\n" % CHANGED)),
    "a second endpoint": (SSE, events(b"event: endpoint\ndata: /m\n\nevent: endpoint\ndata: SERVER/m\n\n")),
    "a compressed endpoint in JSON": (SSE, events(b'event: endpoint\ndata: {"uri":"SERVER/m"}\n\n', b"gzip")),
    "a compressed resource": (GET, answer(b'{"resource":"SERVER/mcp"}', coding=b"gzip")),
    "a compressed resource with a list": (
        GET, answer(b'{"resource":"SERVER/mcp","authorization_servers":["SERVER"]}', coding=b"gzip")),
    "a compressed token endpoint of a third party": (
        AS_GET, answer(b'{"issuer":"https://login.example","token_endpoint":"SERVER/t"}', coding=b"gzip")),
    "a compressed page of a third party": (
        OPENID_GET, answer(b'{"issuer":"https://login.example","authorization_endpoint":"SERVER/a"}', coding=b"gzip")),
    "a large token endpoint": (AS_GET, answer(b'{"x":"%b","token_endpoint":"SERVER/t"}' % LARGE)),
    "the servers of a third party's resource": (
        GET, answer(b'{"resource":"https://mcp.example/mcp","authorization_servers":["SERVER"]}')),
    "a ninth authorization server": (
        GET, answer(b'{"resource":"SERVER","authorization_servers":[%b"SERVER"]}' % (b'"https://a.example",' * 8))),
    "an issuer with a user's name": (AS_GET, answer(b'{"issuer":"%b"}' % USER)),
    "a token endpoint with a user's name": (AS_GET, answer(b'{"issuer":"SERVER","token_endpoint":"%b/t"}' % USER)),
    "a resource in an envelope": (GET, answer(b'{"data":{"resource":"SERVER/mcp"}}')),
    "an issuer in an array": (AS_GET, answer(b'[{"issuer":"SERVER","token_endpoint":"SERVER/t"}]')),
    "a resource beside what nests deep": (GET, answer(b'{%b,"resource":"SERVER/mcp"}' % DEEP)),
    "a resource in JSON with a comma too many": (GET, answer(b'{"resource":"SERVER/mcp",}')),
    "a resource in JSON that is cut off": (GET, answer(b'{"resource":"SERVER/mcp"')),
    "a resource in UTF-16": (GET, answer('{"resource":"SERVER/mcp"}'.encode("utf-16-le"))),
    "metadata in a coding that nobody knows": (GET, answer(b"SERVER\xff", coding=b"x-unknown")),
    "the answer to a registration, compressed": (
        b"POST /register\r\nContent-Type: application/json",
        answer(b'{"client_id":"c","registration_client_uri":"SERVER/register/c"}', status=b"201 Created", coding=b"gzip")),
    "a link with a user's name": (POST, linked(b"<%b/y>; rel=oauth-protected-resource" % USER)),
    "the second of two links": (POST, linked(b'</a>; rel=a; title="x", <%b/y>; rel=b' % USER)),
    "a link in a response that is no refusal": (b"GET /other", linked(b"<%b/y>; rel=x" % USER, b"200 OK")),
    "a link with a user's name and another name of the host": (POST, linked(b"<http://u@localhost:UPSTREAM/y>")),
    "a link with a user's name and no scheme": (POST, linked(b"<//u@127.0.0.1:UPSTREAM/y>")),
    "a redirect with a user's name and no scheme": (POST, redirect(b"Location: //u@127.0.0.1:UPSTREAM/mcp")),
    "a redirect with a user's name and another name of the host": (POST, redirect(b"Location: http://u@[::1]:UPSTREAM/mcp")),
    "a challenge in single quotes with another name of the host": (POST, refusal(b"Bearer resource_metadata='%b/y'" % LOCAL)),
    "a challenge in single quotes without a scheme": (POST, refusal(b"Bearer resource_metadata='//127.0.0.1:UPSTREAM/y'")),
    "a compressed endpoint at localhost": (SSE, endpoint(LOCAL + b"/m", b"gzip")),
    "a compressed endpoint at ::1": (SSE, endpoint(b"http://[::1]:UPSTREAM/m", b"gzip")),
    "a compressed endpoint at all addresses": (SSE, endpoint(b"http://0.0.0.0:UPSTREAM/m", b"gzip")),
    "a compressed endpoint without a scheme": (SSE, endpoint(b"//127.0.0.1:UPSTREAM/m", b"gzip")),
    "a compressed endpoint without a scheme at localhost": (SSE, endpoint(b"//localhost:UPSTREAM/m", b"gzip")),
    "a second endpoint without a scheme": (
        SSE, events(b"event: endpoint\ndata: /m\n\nevent: endpoint\ndata: //127.0.0.1:UPSTREAM/m\n\n")),
    "a compressed token endpoint at localhost": (
        AS_GET, answer(b'{"issuer":"https://login.example","token_endpoint":"%b/t"}' % LOCAL, coding=b"gzip")),
    "a compressed page at ::1": (AS_GET, answer(b'{"authorization_endpoint":"http://[::1]:UPSTREAM/a"}', coding=b"gzip")),
    "a compressed token endpoint without a scheme": (
        AS_GET, answer(b'{"token_endpoint":"//127.0.0.1:UPSTREAM/t"}', coding=b"gzip")),
    "a large token endpoint at localhost": (AS_GET, answer(b'{"x":"%b","token_endpoint":"%b/t"}' % (LARGE, LOCAL))),
    "a token endpoint with a user's name at localhost": (AS_GET, answer(b'{"token_endpoint":"http://u@localhost:UPSTREAM/t"}')),
    "the answer to a registration at localhost, compressed": (
        b"POST /register\r\nContent-Type: application/json",
        answer(b'{"client_id":"c","registration_client_uri":"%b/register/c"}' % LOCAL, status=b"201 Created", coding=b"gzip")),
}  # fmt: skip
"""Each leaves one address as it is."""

WELL = {
    "a challenge": (POST, refusal(b'Bearer resource_metadata="SERVER/y"')),
    "a challenge of another server": (POST, refusal(b'Bearer resource_metadata="https://a.example/y"')),
    "a challenge of another port": (POST, refusal(b'Bearer resource_metadata="http://127.0.0.1:1/y"')),
    "a challenge that tells of it": (POST, refusal(b'Bearer error_description="see SERVER/y"')),
    "a challenge that tells of the parameter": (POST, refusal(b'Bearer error_description="no resource_metadata=SERVER/y"')),
    "a scope": (POST, refusal(b'Bearer scope="SERVER/read"')),
    "a relative challenge": (POST, refusal(b'Bearer resource_metadata="/y"')),
    "a redirect": (POST, redirect(b"Location: SERVER/mcp")),
    "a redirect elsewhere": (POST, redirect(b"Location: https://login.example/mcp")),
    "a redirect to a login elsewhere": (
        b"GET /authorize", redirect(b"Location: https://login.example/authorize?redirect_uri=SERVER/callback")),
    "a redirect elsewhere with a user's name": (POST, redirect(b"Location: https://u@login.example/mcp")),
    "another field": (POST, answer(b"", b"Content-Location: SERVER/mcp", status=b"401 Unauthorized")),
    "a link": (POST, answer(b"", b"Link: <SERVER/y>; rel=x", status=b"401 Unauthorized")),
    "an endpoint": (SSE, events(b"event: endpoint\ndata: SERVER/m\n\n")),
    "a relative endpoint, compressed": (SSE, events(b"event: endpoint\ndata: /m?to=SERVER\n\n", b"gzip")),
    "another event": (SSE, events(b"event: place\ndata: SERVER/m\n\n", b"gzip")),
    "a resource": (GET, answer(b'{"resource":"SERVER/mcp","authorization_servers":["SERVER"]}')),
    "documentation, compressed": (
        GET, answer(b'{"resource_documentation":"SERVER/doc","resource_name":"SERVER"}', coding=b"gzip")),
    "a text that names it, compressed": (GET, answer(b'{"x":"resource: SERVER"}', coding=b"gzip")),
    "servers elsewhere, compressed": (GET, answer(b'{"authorization_servers":["https://a.example/SERVER"]}', coding=b"gzip")),
    "endpoints that take no resource": (AS_GET, answer(b'{"jwks_uri":"SERVER/j","revocation_endpoint":"SERVER/r"}', coding=b"gzip")),
    "a resource under a name that is read, and one that is not": (
        GET, answer(b'{"a":{"resource":"SERVER/mcp"},"resource":"SERVER/mcp"}')),
    "aliases": (AS_GET, answer(b'{"token_endpoint":"SERVER/t","mtls_endpoint_aliases":{"token_endpoint":"SERVER/m"}}')),
    "deep nesting without an address": (GET, answer(b"{%b}" % DEEP)),
    "a page": (GET, answer(b'<a href="SERVER">"resource":"SERVER"</a>', kind=b"text/html")),
    "a page in a coding that nobody knows": (GET, answer(b"\xff", kind=b"text/html", coding=b"x-unknown")),
    "metadata that is missing": (GET, answer(b'{"resource":"SERVER"}', status=b"404 Not Found", coding=b"gzip")),
    "a coding that nobody knows where nothing is": (GET, answer(b"\xff", status=b"404 Not Found", coding=b"x-unknown")),
    "another document": (b"GET /other", answer(b'{"resource":"SERVER/mcp"}')),
    "another document in a coding that nobody knows": (b"GET /other", answer(b"\xff", coding=b"x-unknown")),
    "a tool's result": (
        b"POST /mcp\r\nContent-Type: application/json", answer(b'{"jsonrpc":"2.0","id":1,"result":{"issuer":"SERVER"}}')),
    "the answer to a registration": (
        b"POST /register\r\nContent-Type: application/json",
        answer(b'{"client_id":"c","registration_client_uri":"SERVER/register/c"}', status=b"201 Created")),
    "another answer in JSON": (
        b"POST /other\r\nContent-Type: application/json",
        answer(b'{"resource":"https://a.example","issuer":"SERVER"}')),
    "another answer in JSON in a coding that nobody knows": (
        b"POST /other\r\nContent-Type: application/json", answer(b"\xff", coding=b"x-unknown")),
    "the answer to a registration elsewhere": (
        b"POST /register\r\nContent-Type: application/json",
        answer(b'{"client_id":"c","registration_client_uri":"https://a.example/c"}', status=b"201 Created")),
    "the answer to a registration with a page of the client": (
        b"POST /register\r\nContent-Type: application/json",
        answer(b'{"client_id":"c","client_uri":"SERVER","redirect_uris":["SERVER/cb"]}', status=b"201 Created")),
    "a link elsewhere with a user's name": (POST, linked(b"<https://u@login.example/y>; rel=x")),
    "a link to another port with a user's name": (POST, linked(b"<http://u@127.0.0.1:1/y>; rel=x")),
    "a link with a title that names it": (POST, linked(b'</y>; title="see <%b/y>"' % USER)),
    "a link elsewhere that names it": (POST, linked(b"<https://login.example/?to=%b>" % USER)),
    "a relative link with an at sign": (POST, linked(b"</u@127.0.0.1:UPSTREAM>")),
    "links that are rewritten": (POST, linked(b"<SERVER/y>; rel=a, <%b/z>; rel=b, <//127.0.0.1:UPSTREAM>" % LOCAL)),
    "no link": (POST, linked(b"%b/y" % USER)),
    "a redirect without a scheme": (POST, redirect(b"Location: //127.0.0.1:UPSTREAM/mcp")),
    "a redirect without a scheme to localhost": (POST, redirect(b"Location: //localhost:UPSTREAM/mcp")),
    "a redirect elsewhere without a scheme": (POST, redirect(b"Location: //u@login.example/mcp")),
    "a redirect to localhost": (POST, redirect(b"Location: %b/mcp" % LOCAL)),
    "a redirect to another port of localhost": (POST, redirect(b"Location: http://u@localhost:1/mcp")),
    "a redirect to localhost by https": (POST, redirect(b"Location: https://u@localhost:UPSTREAM/mcp")),
    "a challenge at localhost": (POST, refusal(b'Bearer resource_metadata="%b/y"' % LOCAL)),
    "an endpoint at localhost": (SSE, endpoint(LOCAL + b"/m")),
    "an endpoint without a scheme": (SSE, endpoint(b"//127.0.0.1:UPSTREAM/m")),
    "a compressed endpoint elsewhere without a scheme": (SSE, endpoint(b"//login.example:UPSTREAM/m", b"gzip")),
    "a compressed endpoint at another port of localhost": (SSE, endpoint(b"http://localhost:1/m", b"gzip")),
    "a compressed endpoint at a name that begins with localhost": (SSE, endpoint(LOCAL[:-9] + b".example:UPSTREAM/m", b"gzip")),
    "a compressed endpoint by https": (SSE, endpoint(b"https://localhost:UPSTREAM/m", b"gzip")),
    "a token endpoint at localhost": (AS_GET, answer(b'{"token_endpoint":"%b/t","issuer":"SERVER"}' % LOCAL)),
    "a compressed token endpoint at another port of localhost": (
        AS_GET, answer(b'{"token_endpoint":"http://localhost:1/t"}', coding=b"gzip")),
    "a compressed issuer at localhost, which is never rewritten": (AS_GET, answer(b'{"issuer":"%b"}' % LOCAL, coding=b"gzip")),
    "a compressed server at localhost, which is never rewritten": (
        GET, answer(b'{"authorization_servers":["%b"]}' % LOCAL, coding=b"gzip")),
    "an issuer at localhost": (AS_GET, answer(b'{"issuer":"%b"}' % LOCAL)),
}  # fmt: skip
"""Each is rewritten, or needs no rewriting."""


def exchange(upstream: Upstream, proxy: Proxy, request_head: bytes, response: tuple[bytes, bytes, bytes]) -> None:
    """Send a request and its response through the proxy."""
    line, *fields = request_head.split(b"\r\n")
    message = PING if b"/mcp" in line else b"{}"
    client, server = asked(upstream, proxy, proxy.request(line, *fields, body=message))
    server.head()
    if line.startswith(b"POST"):
        server.take(len(message))
    head, body, coding = response
    head, body = spelled(head, upstream, proxy), spelled(body, upstream, proxy)
    if b"\0" in body:
        body = spelled(body.replace(b"\0", b""), upstream, proxy).decode().encode("utf-16-le")
    body = gzip.compress(body) if coding == b"gzip" else body
    server.send(head + b"Transfer-Encoding: chunked\r\n\r\n" + (chunk(body) if body else b"") + b"0\r\n\r\n")
    client.head()
    server.close()
    client.rest()


def check(capture: Path) -> list[dict[str, object]]:
    found: list[dict[str, object]] = json.loads(run("check", "--json", str(capture)).stdout)["findings"]
    return found


@pytest.mark.grid(12)
@pytest.mark.parametrize(("request_head", "response", "count"), [
    *(pytest.param(*row, 1, id=name) for name, row in LEFT.items()), *(pytest.param(*row, 0, id=name) for name, row in WELL.items()),
])  # fmt: skip
def test_an_address_that_stays_is_mcpspys_fault_and_nothing_else_is(
    request_head: bytes, response: tuple[bytes, bytes, bytes], count: int, tmp_path: Path
) -> None:
    with between(tmp_path / "x.mcpspy") as (upstream, proxy):
        exchange(upstream, proxy, request_head, response)
    findings = check(tmp_path / "x.mcpspy")
    assert count or not {finding["rule"] for finding in findings} & {"foreign-resource"}
    about = [finding for finding in findings if finding["rule"] == "unrewritten-address"]
    assert [finding["culprit"] for finding in about] == ["mcpspy"] * count, findings
    blamed = {finding["rule"] for finding in findings if finding["culprit"] == "server"}
    assert not count or blamed <= {
        "foreign-resource", "foreign-endpoint", "endpoint-dialect", "endpoint-user", "unreadable-response"
    }, blamed  # fmt: skip


LEADS = {
    "named by a challenge": (b"POST /mcp", refusal(b'Bearer resource_metadata="SERVER/meta?v=2"')),
    "named by a challenge without quotes": (b"POST /mcp", refusal(b"Bearer resource_metadata=SERVER/meta?v=2#x")),
    "named by a challenge at localhost": (b"POST /mcp", refusal(b'Bearer resource_metadata="%b/meta?v=2"' % LOCAL)),
    "named by a relative challenge": (b"POST /mcp", refusal(b'Bearer resource_metadata="/meta?v=2"')),
    "named by a challenge to a GET": (b"GET /mcp", refusal(b'Bearer resource_metadata="SERVER/meta?v=2"', b"403 Forbidden")),
    "named by a redirect of metadata": (GET, redirect(b"Location: SERVER/meta?v=2")),
    "named by a relative redirect of metadata": (GET + b"/a", redirect(b"Location: ../../meta?v=2")),
}  # fmt: skip
"""Each leads a client to `/meta?v=2`."""
NO_LEADS = {
    "that nothing named": (b"POST /mcp", refusal(b"Bearer")),
    "named by a scope": (b"POST /mcp", refusal(b'Bearer scope="SERVER/meta?v=2"')),
    "of another version": (b"POST /mcp", refusal(b'Bearer resource_metadata="SERVER/meta?v=3"')),
    "that another server has": (b"POST /mcp", refusal(b'Bearer resource_metadata="https://login.example/meta?v=2"')),
    "in a text": (b"POST /mcp", refusal(b'Bearer error_description="resource_metadata=SERVER/meta?v=2"')),
    "named by another redirect": (b"GET /other", redirect(b"Location: SERVER/meta?v=2")),
}  # fmt: skip
UNREADABLE = {
    "a coding that nobody knows": answer(b"SERVER\xff", coding=b"x-unknown"),
    "a compressed resource": answer(b'{"resource":"SERVER/mcp"}', coding=b"gzip"),
    "a compressed token endpoint": answer(b'{"token_endpoint":"SERVER/t"}', coding=b"gzip"),
    "a large document": answer(b'{"x":"%b","resource":"SERVER/mcp"}' % LARGE),
    "an array": answer(b'[{"resource":"SERVER/mcp"}]'),
}
READABLE = {
    "what is rewritten": answer(b'{"resource":"SERVER/mcp"}'),
    "what names nothing": answer(b'{"resource_name":"SERVER"}', coding=b"gzip"),
    "what is missing": answer(b'{"resource":"SERVER/mcp"}', status=b"404 Not Found", coding=b"gzip"),
}


@pytest.mark.grid(8)
@pytest.mark.parametrize(("lead", "document", "count"), [
    *(pytest.param(lead, document, 1, id=f"{name} {how}") for how, lead in LEADS.items() for name, document in UNREADABLE.items()),
    *(pytest.param(lead, document, 0, id=f"{name} {how}") for how, lead in LEADS.items() for name, document in READABLE.items()),
    *(pytest.param(lead, document, 0, id=f"{name} {how}") for how, lead in NO_LEADS.items() for name, document in UNREADABLE.items()),
])  # fmt: skip
def test_metadata_at_a_path_of_the_servers_own_is_judged_by_what_led_there(
    lead: tuple[bytes, tuple[bytes, bytes, bytes]], document: tuple[bytes, bytes, bytes], count: int, tmp_path: Path
) -> None:
    request_head, refused = lead
    with between(tmp_path / "x.mcpspy") as (upstream, proxy):
        exchange(upstream, proxy, request_head, refused)
        exchange(upstream, proxy, b"GET /meta?v=2", document)
    about = [finding for finding in check(tmp_path / "x.mcpspy") if finding["rule"] == "unrewritten-address"]
    assert [finding["culprit"] for finding in about] == ["mcpspy"] * count, about
