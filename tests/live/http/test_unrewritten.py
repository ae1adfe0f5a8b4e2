"""Addresses of the server that a login needs and that reach the client unchanged: mcpspy's own fault, never the server's.

A row has a request and its response. In the tables SERVER is the server's address, and UPSTREAM its port.
"""

import gzip
import json
from pathlib import Path

import pytest

from tests.cli.terminal import run
from tests.live.http.ends import asked, between, chunk
from tests.live.http.test_oauth_names import AS_METADATA, METADATA, spelled

OPENID = b"/.well-known/openid-configuration"
GET, AS_GET, OPENID_GET = (b"GET " + target for target in (METADATA, AS_METADATA, OPENID))
SSE = b"GET /sse\r\nAccept: text/event-stream"
USER = b"http://u@127.0.0.1:UPSTREAM"
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
}  # fmt: skip
"""Each is rewritten, or needs no rewriting."""


@pytest.mark.grid(12)
@pytest.mark.parametrize(("request_head", "response", "count"), [
    *(pytest.param(*row, 1, id=name) for name, row in LEFT.items()), *(pytest.param(*row, 0, id=name) for name, row in WELL.items()),
])  # fmt: skip
def test_an_address_that_stays_is_mcpspys_fault_and_nothing_else_is(
    request_head: bytes, response: tuple[bytes, bytes, bytes], count: int, tmp_path: Path
) -> None:
    with between(tmp_path / "x.mcpspy") as (upstream, proxy):
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
    findings = json.loads(run("check", "--json", str(tmp_path / "x.mcpspy")).stdout)["findings"]
    assert count or not {finding["rule"] for finding in findings} & {"foreign-resource"}
    about = [finding for finding in findings if finding["rule"] == "unrewritten-address"]
    assert [finding["culprit"] for finding in about] == ["mcpspy"] * count, findings
    accused = {finding["rule"] for finding in findings if finding["culprit"] == "server"}
    assert not count or accused <= {"foreign-resource", "endpoint-dialect", "unreadable-response"}, accused
