"""`mcpspy proxy --model` as a user meets it: what it says to set, what reaches the disk, and that it maps nothing of MCP's."""

import gzip
import subprocess
import sys
import zlib
from functools import partial
from pathlib import Path

import pytest

from mcpspy.cli.proxy.command import api_variables, base_url
from mcpspy.records import Frame, Header
from tests.deadlines import DEADLINE_S, eventually
from tests.live.http.ends import EVENTS, OK, Proxy, Upstream, asked, between, chunk

OWN = "http://127.0.0.1:8765"

BASES = [
    ("https://api.openai.com/v1", ["OPENAI_BASE_URL=/v1"]),
    ("https://api.openai.com", ["OPENAI_BASE_URL=/v1"]),
    ("https://api.anthropic.com", ["ANTHROPIC_BASE_URL="]),
    ("https://api.anthropic.com/v1/messages?beta=true", ["ANTHROPIC_BASE_URL="]),
    ("http://127.0.0.1:11434/v1/", ["OPENAI_BASE_URL=/v1", "ANTHROPIC_BASE_URL="]),
    ("https://openrouter.ai/api/v1/chat/completions", ["OPENAI_BASE_URL=/api/v1", "ANTHROPIC_BASE_URL=/api"]),
    ("https://api.deepseek.com/anthropic", ["ANTHROPIC_BASE_URL=/anthropic"]),
    ("https://gemini.example/v1beta/openai/", ["OPENAI_BASE_URL=/v1beta/openai"]),
]


@pytest.mark.parametrize(("url", "expected"), BASES)
def test_the_variables_have_the_prefix_of_the_apis_paths(url: str, expected: list[str]) -> None:
    assert api_variables(OWN, base_url(url)) == [setting.replace("=", f"={OWN}", 1) for setting in expected]


def test_the_lines_after_the_url_name_the_variables_to_set(tmp_path: Path) -> None:
    upstream = Upstream()
    argv = [
        sys.executable,
        "-m",
        "mcpspy",
        "proxy",
        "--model",
        f"http://127.0.0.1:{upstream.port}/v1",
        "--listen",
        "127.0.0.1:0",
    ]
    process = subprocess.Popen([*argv, "--capture", str(tmp_path / "x.mcpspy")], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        address, openai, anthropic = (process.stdout.readline().strip() for _ in range(3))
    finally:
        process.terminate()
        process.communicate(timeout=DEADLINE_S)
        upstream.end()
    assert address.endswith("/v1")
    assert (openai, anthropic) == (f"OPENAI_BASE_URL={address}", f"ANTHROPIC_BASE_URL={address.removesuffix('/v1')}")


def test_the_header_says_whose_leg_it_is(tmp_path: Path) -> None:
    with between(tmp_path / "x.mcpspy", "--model") as (_, proxy):
        (header,) = proxy.found(Header)
        assert (header.tapped["transport"], header.tapped["leg"]) == ("http", "model")


def test_what_is_about_servers_of_mcp_is_an_error_before_a_model(mcpspy: list[str]) -> None:
    argv = [*mcpspy, "proxy", "--model", "http://127.0.0.1:1/v1", "--allow-endpoint", "http://127.0.0.1:2"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=DEADLINE_S, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert "--allow-endpoint" in done.stderr


KEYS = [f"sk-s3cr3t{number}0123456789abcdef" for number in range(5)]


def test_no_key_reaches_the_disk(tmp_path: Path) -> None:
    with between(tmp_path / "x.mcpspy", "--model", redact="credentials") as (upstream, proxy):
        names = (b"Authorization: Bearer ", b"x-api-key: ", b"api-key: ", b"x-goog-api-key: ")
        fields = [name + key.encode() for name, key in zip(names, KEYS, strict=False)]
        line = b"POST /v1beta/models/m:generate?key=" + KEYS[4].encode()
        client, server = asked(upstream, proxy, proxy.request(line, *fields))
        head = server.head()
        assert all(key.encode() in head for key in KEYS)
        server.take(2)
        server.send(OK)
        client.take(len(OK))
        proxy.stop()
        text = proxy.capture.read_text()
    assert [key for key in KEYS if key in text] == []


def test_nothing_of_mcps_is_mapped(tmp_path: Path) -> None:
    with between(tmp_path / "x.mcpspy", "--model") as (upstream, proxy):
        wanted = proxy.request(b"GET /v1/responses/r?stream=true", b"Accept: text/event-stream", b"Accept-Encoding: gzip")
        client, server = asked(upstream, proxy, wanted)
        assert b"\r\nAccept-Encoding: gzip\r\n" in server.head()
        sent = EVENTS + chunk(b"event: endpoint\ndata: http://127.0.0.1:%d/messages\n\n" % upstream.port) + b"0\r\n\r\n"
        server.send(sent)
        assert client.take(len(sent)) == sent
        client.send(proxy.request(b"GET /.well-known/oauth-protected-resource"))
        server.head()
        body = b'{"resource":"http://127.0.0.1:%d/"}' % upstream.port
        sent = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)
        server.send(sent)
        assert client.take(len(sent)) == sent


def has_parts(proxy: Proxy, count: int) -> bool:
    return len([item for item in proxy.found(Frame) if item.part]) == count


def test_a_compressed_stream_is_recorded_as_it_comes(tmp_path: Path) -> None:
    events = [b"data: %d\n\n" % number for number in range(3)]
    packer = zlib.compressobj(wbits=31)
    packed = [packer.compress(event) + packer.flush(zlib.Z_SYNC_FLUSH) for event in events]
    head = EVENTS.replace(b"\r\n\r\n", b"\r\nContent-Encoding: gzip\r\n\r\n")
    with between(tmp_path / "x.mcpspy", "--model") as (upstream, proxy):
        client, server = asked(upstream, proxy, proxy.request(b"POST /v1/messages"))
        server.head()
        server.send(head)
        client.head()
        for count, piece in enumerate(packed, 1):
            server.send(chunk(piece))
            client.take(len(chunk(piece)))
            eventually(partial(has_parts, proxy, count), "a part of the stream")
        last = packer.flush()
        server.send(chunk(last) + b"0\r\n\r\n")
        assert client.take(len(chunk(last)) + 5).endswith(b"0\r\n\r\n")
        eventually(lambda: proxy.ending("response") == ("server", "eof"), "the end")
        assert gzip.decompress(proxy.body("response")) == b"".join(events)
