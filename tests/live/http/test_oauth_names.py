"""Names of the server in OAuth's challenges, links and documents: each becomes the proxy's, and nothing else does.

In the tables UPSTREAM and PORT are the ports of the server and of the proxy. A row has what the server sends and what arrives; a row
with one text passes as it is.
"""

import gzip
import json
import zlib
from pathlib import Path

import pytest

from mcpspy.records import Frame
from tests.cli.terminal import run
from tests.live.http.ends import EVENTS, Proxy, Upstream, asked, between, chunk
from tests.live.http.test_rewriting import TYPED, named, opened

SERVER = b"http://127.0.0.1:UPSTREAM"
OURS = b"http://127.0.0.1:PORT"
METADATA = b"/.well-known/oauth-protected-resource"
AS_METADATA = b"/.well-known/oauth-authorization-server"

CHALLENGES = [
    b"Bearer resource_metadata=SERVER/.well-known/y",
    b"Bearer resource_metadata=SERVER/.well-known/y, error=invalid_token",
    b'Bearer error="invalid_token",resource_metadata=SERVER/y,scope="a b"',
    b'Bearer resource_metadata = "SERVER/y"',
    b'Bearer resource_metadata\t=\t"SERVER/y"\t,\terror="x"',
    b"Bearer  resource_metadata= SERVER/y",
    b'BEARER Resource_Metadata="SERVER/y"',
    b'bearer RESOURCE_METADATA="SERVER/y?a=1,2"',
    b'Basic realm="x", Bearer resource_metadata="SERVER/y"',
    b'Bearer resource_metadata="SERVER/y", Basic realm="x"',
    b'Bearer resource_metadata="SERVER/y", DPoP algs="ES256", resource_metadata="SERVER/z"',
    b'Negotiate abc==, Bearer resource_metadata="SERVER/y"',
    b'Bearer error_description="say \\"hi\\"", resource_metadata="SERVER/y"',
    b'Bearer error_description="a, resource_metadata=", resource_metadata="SERVER/y"',
    b', ,Bearer ,resource_metadata="SERVER/y",,',
    b'Bearer resource_metadata="SERVER"',
    b'Bearer resource="SERVER/mcp", resource_metadata="SERVER/y"',
    b'Bearer realm="SERVER/mcp", resource_metadata="SERVER/y"',
    b'Bearer x="resource_metadata=", resource_metadata="SERVER/y"',
    b'Basic realm="x"\r\nWWW-Authenticate: Bearer resource_metadata="SERVER/y"',
    b"Bearer resource_metadata=SERVER/y\r\nX: 1\r\nwww-authenticate: Bearer resource_metadata=SERVER/z",
]
"""Each SERVER in them becomes the proxy."""

ESCAPED = (
    rb'Bearer resource_metadata="http:\/\/127.0.0.1:UPSTREAM\/y\"z"',
    rb'Bearer resource_metadata="http://127.0.0.1:PORT/y\"z"',
)

OTHER_CHALLENGES = [
    b'Bearer error_description="see resource_metadata=SERVER/y"',
    b'Bearer error_description="see SERVER/y"',
    rb'Bearer error_description="see \"SERVER/y\" or \"resource_metadata=SERVER/z\""',
    b'Bearer scope="SERVER/read"',
    b"Bearer scope=SERVER/read",
    b'Bearer resource_metadata="https://login.example/y"',
    b'Bearer resource_metadata="https://127.0.0.1:UPSTREAM/y"',
    b'Bearer resource_metadata="http://127.0.0.1:1/y"',
    b'Bearer resource_metadata="http://u@127.0.0.1:UPSTREAM/y"',
    b'Bearer resource_metadata="/.well-known/y"',
    b'Bearer resource_metadata="SERVER/y',
    b"Bearer resource_metadata=",
    b"Bearer",
    b"",
]
"""They pass as they are."""

LINKS = [
    (b"Link: <SERVER/y>; rel=oauth-protected-resource", b"Link: <OURS/y>; rel=oauth-protected-resource"),
    (b'Link: </y>; rel="a", <SERVER/z?b=<c>; rel="b"', b'Link: </y>; rel="a", <OURS/z?b=<c>; rel="b"'),
    (b'Link: <SERVER/y>;title="see <SERVER/z>", <SERVER>', b'Link: <OURS/y>;title="see <SERVER/z>", <OURS>'),
    (b"link: <https://login.example/y>; rel=x", b"link: <https://login.example/y>; rel=x"),
    (b"Link: SERVER/y", b"Link: SERVER/y"),
    (b"Link: <SERVER/y", b"Link: <SERVER/y"),
]

ISSUERS = [
    (b"http://127.0.0.1:9/cb?code=c&iss=http%3A%2F%2F127.0.0.1%3AUPSTREAM&state=s",
     b"http://127.0.0.1:9/cb?code=c&iss=http%3A%2F%2F127.0.0.1%3APORT&state=s"),
    (b"http://127.0.0.1:9/cb?iss=SERVER/&code=c", b"http://127.0.0.1:9/cb?iss=http%3A%2F%2F127.0.0.1%3APORT%2F&code=c"),
    (b"http://127.0.0.1:9/cb?code=c&iss=https%3A%2F%2Flogin.example", b"http://127.0.0.1:9/cb?code=c&iss=https%3A%2F%2Flogin.example"),
    (b"http://127.0.0.1:9/cb?code=c&miss=SERVER", b"http://127.0.0.1:9/cb?code=c&miss=SERVER"),
    (b"http://127.0.0.1:9/cb?code=c", b"http://127.0.0.1:9/cb?code=c"),
    (b"app:/cb?code=c&iss=SERVER", b"app:/cb?code=c&iss=http%3A%2F%2F127.0.0.1%3APORT"),
]  # fmt: skip
"""The redirect with which a login ends, which names the issuer (RFC 9207)."""


def spelled(text: bytes, upstream: Upstream, proxy: Proxy) -> bytes:
    """Put the addresses of this test into `text`."""
    return named(text.replace(b"SERVER", SERVER).replace(b"OURS", OURS), upstream, proxy)


def arriving(head: bytes, upstream: Upstream, proxy: Proxy) -> bytes:
    """Send a POST that is answered with these fields; return what arrives of them."""
    client, server = asked(upstream, proxy, proxy.request())
    server.head()
    server.take(2)
    before = b"HTTP/1.1 401 Unauthorized\r\nA: 1\r\n" + head + b"\r\nContent-Length: 0\r\n\r\n"
    server.send(before)
    after = client.head()
    assert proxy.head("response").head == before
    assert proxy.head("response").forwarded == (after if after != before else None)
    return after.removeprefix(b"HTTP/1.1 401 Unauthorized\r\nA: 1\r\n").removesuffix(b"\r\nContent-Length: 0\r\n\r\n")


FIELDS = [
    *((b"WWW-Authenticate: " + value, b"WWW-Authenticate: " + value.replace(b"SERVER", b"OURS")) for value in CHALLENGES),
    tuple(b"WWW-Authenticate: " + value for value in ESCAPED),
    *((b"WWW-Authenticate: " + value,) * 2 for value in OTHER_CHALLENGES),
    *LINKS,
    *((b"Location: " + sent, b"Location: " + arrives) for sent, arrives in ISSUERS),
]  # fmt: skip


@pytest.mark.grid(8)
@pytest.mark.parametrize(("sent", "arrives"), FIELDS)
def test_each_address_of_the_server_in_a_field_becomes_the_proxys(sent: bytes, arrives: bytes, tmp_path: Path) -> None:
    with between(tmp_path / "x.mcpspy") as (upstream, proxy):
        assert arriving(spelled(sent, upstream, proxy), upstream, proxy) == spelled(arrives, upstream, proxy)


RESOURCES = [
    (b'{"resource":"SERVER","authorization_servers":["SERVER"]}', b'{"resource":"OURS","authorization_servers":["OURS"]}'),
    (b'{"authorization_servers":["SERVER/a"],"resource":"SERVER/a"}', b'{"authorization_servers":["OURS/a"],"resource":"OURS/a"}'),
    (b'{"resource":"SERVER","authorization_servers":["https://a.example","SERVER/t",1,["SERVER"],"http://127.0.0.1:1"]}',
     b'{"resource":"OURS","authorization_servers":["https://a.example","OURS/t",1,["SERVER"],"http://127.0.0.1:1"]}'),
    (b'{"resource":"SERVER","authorization_servers":"SERVER"}', b'{"resource":"OURS","authorization_servers":"SERVER"}'),
    (b'{"a":{"resource":"SERVER/mcp"},"resource": "SERVER/mcp"}', b'{"a":{"resource":"SERVER/mcp"},"resource": "OURS/mcp"}'),
    (b'{"resource_documentation":"SERVER","resource":"SERVER"}', b'{"resource_documentation":"SERVER","resource":"OURS"}'),
    (b'{"scopes_supported":["SERVER/read"],"resource":"SERVER"}', b'{"scopes_supported":["SERVER/read"],"resource":"OURS"}'),
    (rb'{"resource":"http:\/\/127.0.0.1:UPSTREAM","x":"SERVER"}', b'{"resource":"OURS","x":"SERVER"}'),
    (rb'{"re\u0073ource":"\u0068ttp://127.0.0.1:UPSTREAM/mcp"}', rb'{"re\u0073ource":"OURS/mcp"}'),
    (b'{"resource":"https://a.example","resource":"SERVER"}', b'{"resource":"https://a.example","resource":"OURS"}'),
    (b'\xef\xbb\xbf{ "resource" :\n"SERVER/mcp" }\n', b'\xef\xbb\xbf{ "resource" :\n"OURS/mcp" }\n'),
    (b'{"resource":"SERVER/mcp","n":1e400,"x":"\xff","y":NaN}', b'{"resource":"OURS/mcp","n":1e400,"x":"\xff","y":NaN}'),
    (b'{"resource":"SERVER/a?b#d","resource_name":"SERVER/a?b#d"}', b'{"resource":"OURS/a?b#d","resource_name":"SERVER/a?b#d"}'),
    (b'{"resource":"SERVER/mcp","resource_name":"resource"}', b'{"resource":"OURS/mcp","resource_name":"resource"}'),
]  # fmt: skip

OTHER_RESOURCES = [
    b'{"resource":"https://mcp.example","authorization_servers":["SERVER"]}',
    b'{"resource":"http://localhost:UPSTREAM/mcp"}',
    b'{"resource":["SERVER"]}',
    b'{"resource":{"resource":"SERVER"}}',
    b'["resource","SERVER"]',
    b'{"Resource":"SERVER"}',
    b'{"x":{"resource":"SERVER"}}',
    b'{"resource":"SERVER"',
    b'{"resource":"SERVER.evil.example"}',
    b"SERVER",
]

ISS = b'"authorization_response_iss_parameter_supported":'
ISSUER_DOCUMENTS = [
    (b'{"issuer":"SERVER","token_endpoint":"SERVER/token"}', b'{"issuer":"OURS","token_endpoint":"OURS/token"}'),
    (b'{"issuer":"SERVER/","authorization_endpoint":"SERVER/"}', b'{"issuer":"OURS/","authorization_endpoint":"OURS/"}'),
    (b'{"issuer":"SERVER/t","authorization_endpoint":"SERVER/a",' + ISS + b"true}",
     b'{"issuer":"OURS/t","authorization_endpoint":"OURS/a",' + ISS + b"true}"),
    (b'{"issuer":"SERVER","authorization_endpoint":"SERVER/a",' + ISS + b"false}",
     b'{"issuer":"OURS","authorization_endpoint":"OURS/a",' + ISS + b"false}"),
    (b'{"issuer":"https://login.example","authorization_endpoint":"SERVER/a",' + ISS + b"true}",
     b'{"issuer":"https://login.example","authorization_endpoint":"OURS/a",' + ISS + b"true}"),
    (b'{"pushed_authorization_request_endpoint":"SERVER/p","device_authorization_endpoint":"SERVER/d?x=1","jwks_uri":"SERVER/j"}',
     b'{"pushed_authorization_request_endpoint":"OURS/p","device_authorization_endpoint":"OURS/d?x=1","jwks_uri":"SERVER/j"}'),
    (b'{"introspection_endpoint":"SERVER/i","revocation_endpoint":"SERVER/r","registration_endpoint":"SERVER/g"}',) * 2,
    (b'{"issuer":"SERVER","token_endpoint":"https://login.example/token","authorization_endpoint":"http://127.0.0.1:1/a"}',
     b'{"issuer":"OURS","token_endpoint":"https://login.example/token","authorization_endpoint":"http://127.0.0.1:1/a"}'),
    (b'{"token_endpoint":null,"authorization_endpoint":["SERVER/a"],"mtls_endpoint_aliases":{"token_endpoint":"SERVER/t"}}',) * 2,
    (b'{"issuer":"http://localhost:UPSTREAM"}',) * 2,
    (b'{"service_documentation":"SERVER","issuer":"SERVER"}', b'{"service_documentation":"SERVER","issuer":"OURS"}'),
]  # fmt: skip

DOCUMENTS = [
    *((METADATA + b"/mcp", *row) for row in RESOURCES),
    *((METADATA, row, row) for row in OTHER_RESOURCES),
    *((AS_METADATA, *row) for row in ISSUER_DOCUMENTS),
    (AS_METADATA + b"/tenant", *ISSUER_DOCUMENTS[0]),
    (b"/.well-known/openid-configuration", *ISSUER_DOCUMENTS[0]),
    (b"/tenant/.well-known/openid-configuration", *ISSUER_DOCUMENTS[0]),
    (b"/tenant" + AS_METADATA, *ISSUER_DOCUMENTS[0]),
    (b"/mcp" + METADATA, *RESOURCES[0]),
    (METADATA + b"?x=1", *RESOURCES[0]),
    (b"/mcp", RESOURCES[0][0], RESOURCES[0][0]),
    (b"/other", ISSUER_DOCUMENTS[0][0], ISSUER_DOCUMENTS[0][0]),
]


def answering(upstream: Upstream, proxy: Proxy, target: bytes, body: bytes, *fields: bytes) -> tuple[bytes, bytes]:
    """GET a document that is answered with its length; return the head and the body that arrive."""
    client, server = asked(upstream, proxy, proxy.request(b"GET " + target))
    server.head()
    server.send(TYPED + b"".join(field + b"\r\n" for field in fields) + b"Content-Length: %d\r\n\r\n" % len(body) + body)
    head = client.head()
    return head, client.take(int(head.lower().partition(b"content-length:")[2].split()[0]))


@pytest.mark.grid(8)
@pytest.mark.parametrize(("target", "sent", "arrives"), DOCUMENTS)
def test_the_member_that_names_the_server_is_found_by_its_name(
    target: bytes, sent: bytes, arrives: bytes, tmp_path: Path
) -> None:
    with between(tmp_path / "x.mcpspy") as (upstream, proxy):
        body, expected = (spelled(text, upstream, proxy) for text in (sent, arrives))
        assert answering(upstream, proxy, target, body)[1] == expected
        assert proxy.body("response") == body
        assert [frame.forwarded for frame in proxy.found(Frame)] == [expected if expected != body else None]


def test_metadata_that_ends_with_the_connection_is_rewritten(tmp_path: Path) -> None:
    with between(tmp_path / "x.mcpspy") as (upstream, proxy):
        client, server = asked(upstream, proxy, proxy.request(b"GET " + METADATA))
        server.head()
        body, expected = (spelled(text, upstream, proxy) for text in RESOURCES[0])
        server.send(TYPED + b"\r\n" + body)
        server.close()
        assert b"\r\nContent-Length: %d\r\n" % len(expected) in client.head()
        assert client.rest() == expected


FOUND = [
    ("401 Unauthorized", b'WWW-Authenticate: Bearer resource_metadata="SERVER/meta/prm.json?v=2"', b"/mcp"),
    ("401 Unauthorized", b"WWW-Authenticate: Bearer resource_metadata=SERVER/meta/prm.json?v=2#x", b"/mcp"),
    ("302 Found", b"Location: SERVER/meta/prm.json?v=2", METADATA),
    ("307 Temporary Redirect", b"Location: /meta/prm.json?v=2", METADATA + b"/mcp"),
    ("301 Moved Permanently", b"Location: ../meta/prm.json?v=2", METADATA),
]
NOT_FOUND = [
    ("302 Found", b"Location: SERVER/meta/prm.json?v=2", b"/mcp"),
    ("401 Unauthorized", b'WWW-Authenticate: Bearer resource_metadata="https://a.example/meta/prm.json?v=2"', b"/mcp"),
    ("401 Unauthorized", b'WWW-Authenticate: Bearer scope="SERVER/meta/prm.json?v=2"', b"/mcp"),
]


@pytest.mark.grid(5)
@pytest.mark.parametrize(
    ("status", "field", "target", "arrives"),
    [*((*row, "rewritten") for row in FOUND), *((*row, "as it came") for row in NOT_FOUND)],
)
def test_metadata_at_a_path_of_the_servers_own_is_found_by_what_led_there(
    status: str,
    field: bytes,
    target: bytes,
    arrives: str,
    tmp_path: Path,
) -> None:
    with between(tmp_path / "x.mcpspy") as (upstream, proxy):
        body, expected = (spelled(text, upstream, proxy) for text in RESOURCES[0])
        assert answering(upstream, proxy, b"/meta/prm.json?v=2", body)[1] == body, "nothing has led there yet"
        client, server = asked(upstream, proxy, proxy.request(b"GET " + target))
        server.head()
        server.send(b"HTTP/1.1 %b\r\n%b\r\nContent-Length: 0\r\n\r\n" % (status.encode(), spelled(field, upstream, proxy)))
        client.head()
        assert answering(upstream, proxy, b"/meta/prm.json?v=2", body)[1] == (expected if arrives == "rewritten" else body)
        assert answering(upstream, proxy, b"/meta/prm.json?v=3", body)[1] == body


ENDPOINTS = [
    (b"data: SERVER/m\nevent: endpoint\n\n", b"data: OURS/m\nevent: endpoint\n\n"),
    (b'event: endpoint\ndata: {"x":"SERVER/m","uri":"SERVER/m"}\n\n', b'event: endpoint\ndata: {"x":"SERVER/m","uri":"OURS/m"}\n\n'),
    (b'event: endpoint\ndata: {"uri":"SERVER/m",\ndata: "of":{"uri":"SERVER/m"}}\n\n',
     b'event: endpoint\ndata: {"uri":"OURS/m",\ndata: "of":{"uri":"SERVER/m"}}\n\n'),
    (b"xdata: SERVER/m\nevent: endpoint\n\ndata: SERVER/m\nevent: endpoint\n\n",
     b"xdata: SERVER/m\nevent: endpoint\n\ndata: OURS/m\nevent: endpoint\n\n"),
]  # fmt: skip


@pytest.mark.parametrize(("sent", "arrives"), ENDPOINTS)
def test_only_the_address_that_the_endpoint_event_announces_is_rewritten(sent: bytes, arrives: bytes, tmp_path: Path) -> None:
    with between(tmp_path / "x.mcpspy") as (upstream, proxy):
        client, server = opened(upstream, proxy)
        before, after = (spelled(text, upstream, proxy) for text in (sent, arrives))
        server.send(EVENTS + chunk(before) + b"0\r\n\r\n")
        expected = EVENTS + chunk(after) + b"0\r\n\r\n"
        assert client.take(len(expected)) == expected
        assert proxy.body("response") == before


LARGE = b'{"x":"' + b"x" * (1 << 20) + b'",'
LEFT = [
    (METADATA, RESOURCES[0][0], "gzip"),
    (METADATA + b"/mcp", RESOURCES[1][0], "deflate"),
    (AS_METADATA, ISSUER_DOCUMENTS[0][0], "gzip"),
    (b"/.well-known/openid-configuration", ISSUER_DOCUMENTS[1][0], "gzip"),
    (METADATA, LARGE + RESOURCES[0][0][1:], ""),
]
ALL_WELL = [
    (METADATA, RESOURCES[0][0], ""),
    (AS_METADATA, ISSUER_DOCUMENTS[2][0], ""),
    (AS_METADATA, ISSUER_DOCUMENTS[5][0], ""),
    (AS_METADATA, b'{"issuer":"https://login.example"}', "gzip"),
    (METADATA, b'{"x":"SERVER"}', "gzip"),
    (b"/mcp", RESOURCES[0][0], "gzip"),
    (METADATA, LARGE[:-1] + b"}", ""),
]


@pytest.mark.grid(5)
@pytest.mark.parametrize(("target", "document", "coding", "rules"), [
    *((*row, ["unrewritten-address"]) for row in LEFT), *((*row, []) for row in ALL_WELL),
])  # fmt: skip
def test_an_address_that_had_to_stay_passes_as_it_came_and_is_mcpspys_fault(
    target: bytes, document: bytes, coding: str, rules: list[str], tmp_path: Path
) -> None:
    with between(tmp_path / "x.mcpspy") as (upstream, proxy):
        plain = spelled(document, upstream, proxy)
        body = gzip.compress(plain) if coding == "gzip" else zlib.compress(plain) if coding else plain
        fields = (b"Content-Encoding: " + coding.encode(),) if coding else ()
        got = answering(upstream, proxy, target, body, *fields)[1]
        assert not rules or got == body
    findings = json.loads(run("check", "--json", str(tmp_path / "x.mcpspy")).stdout)["findings"]
    assert [(finding["rule"], finding["culprit"]) for finding in findings] == [(rule, "mcpspy") for rule in rules]
