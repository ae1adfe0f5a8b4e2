"""Files that mcpspy cannot read are named by what they are, with what to save instead; texts that look alike are not."""

import bz2
import gzip
import io
import lzma
import sqlite3
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.imports.formats import unreadable
from tests.cli.terminal import run

MESSAGE = '{"jsonrpc":"2.0","id":1,"method":"ping"}'
PRETTY = '{\n  "jsonrpc": "2.0",\n  "id": 1,\n  "method": "tools/list"\n}\n'


def _zipped() -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("server.log", MESSAGE)
    return file.getvalue()


def _database() -> bytes:
    with sqlite3.connect(":memory:") as database:
        database.execute("create table a (b)")
        return database.serialize()


POST = f"POST /mcp HTTP/1.1\nContent-Length: {len(MESSAGE)}\n\n{MESSAGE}\n".encode()
TSHARK = b"\n" + b"=" * 67 + b"\nFollow: tcp,%b\nFilter: tcp.stream eq 2\nNode 0: 10.0.0.1:47796\nNode 1: 10.0.0.2:8000\n"
FOLLOWED: dict[str, bytes] = {
    "tshark's ascii": TSHARK % b"ascii" + b"%d\n%b" % (len(POST), POST),
    "tshark's hex": TSHARK % b"hex" + b"00000000  50 4f 53 54 20 2f 6d 63  70 20 48 54 54 50 2f 31  POST /mc p HTTP/1\n",
    "tshark's raw": TSHARK % b"raw" + POST.hex().encode(),
    "yaml": b"peers:\n  - peer: 0\n    host: 10.0.0.1\n    port: 47796\n",
    "yaml of Wireshark 3": b"# Packet 4\npeer0_0: !!binary |\n  UE9TVA==\n",
    "the window's hex": b"00000000  50 4f 53 54 20 2f 6d 63  70 20 48 54 54 50 2f 31  POST /mc p HTTP/1\n",
    "the window's hex, the server first": b"    00000000  48 54 54 50 2f 31 2e 31  20 32 30 30 20 4f 4b 0d  HTTP/1.1  200 OK.\n",
    "the window's ascii": POST,
    "the window's ascii, the server first": b"HTTP/1.1 200 OK\n\n" + MESSAGE.encode(),
    "the window's raw": b"\xef\xbb\xbf" + POST.replace(b"\n", b"\r\n"),
}
FILES: dict[str, tuple[bytes, str, str]] = {
    **{name: (data, "a followed stream", "import the packet capture itself") for name, data in FOLLOWED.items()},
    "gzip": (gzip.compress(MESSAGE.encode()), "gzip", "gunzip -c"),
    "bzip2": (bz2.compress(MESSAGE.encode()), "bzip2", "bunzip2 -c"),
    "xz": (lzma.compress(MESSAGE.encode()), "xz", "xz -dc"),
    "zstd": (b"\x28\xb5\x2f\xfd\x04\x00" + b"a" * 40, "zstd", "zstd -dc"),
    "zip": (_zipped(), "zip", "unzip -p"),
    "utf-16": (MESSAGE.encode("utf-16"), "UTF-16", "iconv"),
    "utf-16, no mark": (f"{MESSAGE}\n".encode("utf-16-le"), "UTF-16", "iconv"),
    "utf-16, big end first": (f"\ufeff{MESSAGE}".encode("utf-16-be"), "UTF-16", "iconv"),
    "a flow": (b"4000:9:websocket;0:~8:response;", "mitmproxy", "hardump"),
    "a flow, a request first": (b"1219:7:request;500:4:path;4:/mcp;", "mitmproxy", "hardump"),
    "a cassette": (b"interactions:\n- request:\n    uri: http://a/mcp\n", "cassette", "mcpspy proxy"),
    "a cassette in JSON": (b'{"version": 1, "interactions": [{"request": {"method": "POST"}}]}', "cassette", "mcpspy proxy"),
    "pdml": (b'<?xml version="1.0"?>\n<pdml version="0" creator="wireshark/4.0">\n', "PDML", "pcapng"),
    "psml": (b'<?xml version="1.0"?>\n<psml version="0">\n', "PSML", "pcapng"),
    "tshark json": (b'[\n  {\n    "_index": "packets-2025",\n    "_source": {\n      "layers": {', "tshark", "pcapng"),
    "tshark ek": (b'{"index":{"_index":"packets-2025-01-01"}}\n{"timestamp":"1","layers":{}}\n', "tshark", "pcapng"),
    "a database": (_database(), "SQLite", "MCPHawk"),
    "a page": (b"<!DOCTYPE html>\n<html><body>" + MESSAGE.encode(), "HTML", "text"),
    "burp": (b'<?xml version="1.0"?>\n<items burpVersion="2024">\n', "Burp", "HAR"),
    "saz": (_zipped().replace(b"server.log", b"raw/1_c.tx"), "zip", "unzip -p"),
    "a core": (b"\x7fELF\x02\x01\x01" + b"\0" * 60, "ELF", ""),
    "a picture": (b"\x89PNG\r\n\x1a\n" + b"\0" * 20, "PNG", ""),
    "pretty": (PRETTY.encode(), "over several lines", "jq -c"),
    "a pretty list": (f"[\n{PRETTY},\n{PRETTY}]\n".encode(), "over several lines", "jq -c"),
    "pretty in a log": (f"2025-06-10 08:00:00 received:\n{PRETTY}".encode(), "over several lines", "mcpspy run"),
    "pretty after words": (f"[client] received: {PRETTY}".encode(), "over several lines", "let the program do so"),
    "an object of node on one line": (b"in: { jsonrpc: '2.0', id: 1, method: 'ping' }\n", "as objects", "mcpspy run"),
    "a record of Java": (b"DEBUG Sending JSONRPCRequest[jsonrpc=2.0, method=ping, id=a-0, params=null]\n", "as objects", "as JSON"),
    "a struct of Rust": (b"TRACE got JsonRpcRequest { jsonrpc: JsonRpcVersion2_0, id: Number(2) }\n", "as objects", "as JSON"),
    "the Python SDK on stdio": (
        b"2025-07-22 16:04:14,219 - mcp.server.lowlevel.server - DEBUG - Initializing server 'x'\n", "Python SDK", "mcpspy run"
    ),
    "FastMCP's server": (b"[07/22/25] INFO  Processing request of type CallToolRequest  server.py:534\n", "Python SDK", "mcpspy run"),
    "the Python SDK, formatted anew": (
        b"DEBUG - Received message: root=InitializedNotification(method='notifications/initialized', jsonrpc='2.0')\n",
        "Python SDK",
        "mcpspy run",
    ),
    "Cursor": (b"2025-06-01 19:23:14.451 [info] user-x: Handling CreateClient action\n", "Cursor", "mcpspy run"),
    "Cursor, an error": (b"2025-06-01 19:23:14 [error] user-x: Client error for command spawn ENOENT\n", "Cursor", "mcpspy run"),
    "Claude Code": (
        b'{"debug":"Starting connection","timestamp":"2025-06-01T10:00:00Z","sessionId":"a","cwd":"/b"}\n',
        "Claude Code",
        "mcpspy run",
    ),
    "objects of node": (b"received {\n  jsonrpc: '2.0',\n  id: 1,\n  method: 'tools/list'\n}\n", "over several lines", "as JSON"),
    "etl": (b"GMBU" + b"\x02\0\0\0", "", ""),
    "snoop": (b"snoop\0\0\0\0\0\0\2", "snoop", "pcapng"),
    "nothing known": (b"hello\nworld\n", "", ""),
    "a readme": (b"# Notes\n\nWe use gzip, PDML and interactions: none.\n", "", ""),
    "other yaml": (b"services:\n  interactions: 3\n", "", ""),
    "json": (b'{"a": 1}\n', "", ""),
    "other lines of hex": (b"00000000  7b 22 61 22 3a 31 7d 0a                           |{a:1}|\n", "", ""),
    "peers of something else": (b"peers:\n  - host: 10.0.0.1\n", "", ""),
    "a line below which nothing is followed": (b"=" * 67 + b"\nReport\n", "", ""),
    "a word about objects": (b"expected jsonrpc: '2.0' in the message\n", "", ""),
    "words of a server": (b"INFO processing request of type A\nReceived message: root=1\n", "", ""),
    "an error of another editor": (b"2025-06-01 19:23:14 [error] x: client failed\n", "", ""),
    "lines of debug": (b'{"debug":"x","cwd":"/b"}\n', "", ""),
    "pretty without jsonrpc": (b'received 1: {\n  "method": "tools/list",\n  "params": {}\n}\n', "over several lines", "mcpspy run"),
    "a method of something else": (b'{\n  "method": "POST",\n  "path": "/tools/list"\n}\n', "", ""),
    "an access log": (b"POST /mcp 200 12 ms\n", "", ""),
    "a number and a colon": (b"12:30 started\n", "", ""),
}  # fmt: skip


@pytest.mark.parametrize("name", FILES)
def test_a_file_is_named_by_what_it_is(name: str) -> None:
    data, what, instead = FILES[name]
    said = unreadable(data)
    assert (what in said, instead in said, bool(what)) == (True, True, bool(said))


@pytest.mark.parametrize("verb", ["show", "check", "import"])
@pytest.mark.parametrize("name", ["gzip", "utf-16", "a flow", "pretty", "tshark's ascii", "the window's ascii"])
def test_every_verb_says_so(name: str, verb: str, tmp_path: Path) -> None:
    path = tmp_path / "x.bin"
    path.write_bytes(FILES[name][0])
    done = run(verb, str(path))
    assert done.returncode != 0
    assert (FILES[name][1] in done.stderr, FILES[name][2] in done.stderr) == (True, True)
    assert "not an mcpspy capture" not in done.stderr


@pytest.mark.parametrize("first", ["POST /mcp 200\n", "received POST /mcp HTTP/1.1\n", "======\n", ""])
def test_a_log_whose_first_line_only_names_http_is_read(first: str, tmp_path: Path) -> None:
    path = tmp_path / "server.log"
    path.write_text(f'{first}received {{"jsonrpc":"2.0","id":1,"method":"initialize"}}\n')
    assert run("show", str(path)).returncode == 0


def test_standard_input_is_named_too() -> None:
    done = run("show", "-", stdin=FILES["gzip"][0])
    assert "gzip" in done.stderr


def test_a_file_of_no_known_kind_is_still_no_capture(tmp_path: Path) -> None:
    path = tmp_path / "x.txt"
    path.write_bytes(FILES["nothing known"][0])
    assert "not an mcpspy capture" in run("show", str(path)).stderr


@given(st.binary(max_size=300))
def test_any_bytes_are_looked_at(data: bytes) -> None:
    unreadable(data)
