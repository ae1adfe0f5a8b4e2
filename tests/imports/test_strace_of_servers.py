"""Servers of every kind under strace: whatever calls, descriptors and threads they use, their messages are found."""

import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pytest

from mcpspy import open as open_captures
from mcpspy import read
from mcpspy.records import CLIENT, SERVER, Frame, Side
from tests.cli.terminal import on_pipe, run
from tests.conftest import DebianProgram
from tests.deadlines import DEADLINE_S, eventually
from tests.imports.logging_clients import rows_in_any_order

Said = list[tuple[Side, bytes]]

KEPT = ["-e", "trace=read,write,readv,writev,recvfrom,sendto,recvmsg,sendmsg", "-s", "1000000"]
RECIPE = ["-ttt", "-T", "-y", *KEPT]
SDK_SERVER = [sys.executable, "-P", "-m", "mcp_server_time", "--local-timezone", "UTC"]
INITIALIZE = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}}
ASKS = [("initialize", INITIALIZE), ("tools/list", {}), ("ping", {})]
INITIALIZED = b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n'

SERVER_BY_HAND = """\
import asyncio, json, os, socket, sys

def answers(data):
    ids = [message["id"] for message in map(json.loads, data.decode().splitlines()) if "id" in message]
    return [json.dumps({"jsonrpc": "2.0", "id": number, "result": {"text": "\\u676d" * 200}}).encode() + b"\\n" for number in ids]

def by_bytes():
    while data := os.read(0, 65536):
        os.write(1, b"".join(answers(data)))

def by_vectors():
    buffers = bytearray(7), bytearray(65536)
    while count := os.readv(0, buffers):
        os.writev(1, [part for answer in answers(b"".join(buffers)[:count]) for part in (answer[:9], answer[9:])])

def by_socket():
    stdin, stdout = socket.socket(fileno=0), socket.socket(fileno=1)
    while data := stdin.recv(65536):
        stdout.sendall(b"".join(answers(data)))

def by_messages():
    stdin, stdout = socket.socket(fileno=0), socket.socket(fileno=1)
    while data := stdin.recvmsg(65536)[0]:
        stdout.sendmsg([part for answer in answers(data) for part in (answer[:9], answer[9:])])

def by_copies():
    stdin, stdout = os.dup(0), os.dup(1)
    os.dup2(2, 1)
    while data := os.read(stdin, 65536):
        print("asked", flush=True)
        os.write(stdout, b"".join(answers(data)))

async def by_loop():
    loop, reader = asyncio.get_running_loop(), asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    transport, _ = await loop.connect_write_pipe(asyncio.BaseProtocol, sys.stdout)
    while data := await reader.read(65536):
        transport.write(b"".join(answers(data)))

way = globals()[sys.argv[1]]
asyncio.run(way()) if asyncio.iscoroutinefunction(way) else way()
"""


@pytest.fixture
def strace(debian_program: DebianProgram) -> str:
    """The path of strace; a test is skipped where this user may not trace."""
    path = debian_program("strace")
    if subprocess.run([path, "-o", "/dev/null", "true"], capture_output=True, timeout=DEADLINE_S, check=False).returncode:
        pytest.skip("this user may not trace")
    return path


@contextmanager
def started(argv: list[str]) -> Iterator[tuple[subprocess.Popen[bytes], IO[bytes], IO[bytes]]]:
    """Start a server with pipes. It has ended well when the caller has."""
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield process, process.stdin, process.stdout
            process.stdin.close()
            assert process.wait(DEADLINE_S) == 0
        finally:
            process.kill()


@contextmanager
def started_on_sockets(argv: list[str]) -> Iterator[tuple[IO[bytes], IO[bytes]]]:
    """Start a server with a socket as stdin and one as stdout, as clients in Node do."""
    (ours_in, stdin), (ours_out, stdout) = socket.socketpair(), socket.socketpair()
    with subprocess.Popen(argv, stdin=stdin.fileno(), stdout=stdout.fileno(), stderr=subprocess.DEVNULL) as process:
        stdin.close()
        stdout.close()
        with ours_in.makefile("wb") as to_server, ours_out.makefile("rb") as from_server:
            ours_in.close()
            ours_out.close()
            yield to_server, from_server
        assert process.wait(DEADLINE_S) == 0


def talk(to_server: IO[bytes], from_server: IO[bytes], first: int = 0) -> Said:
    """Ask a server one thing after another, and return what both sides said."""
    said: Said = []
    for number, (method, params) in enumerate(ASKS, first):
        asked = json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode() + b"\n"
        to_server.write(asked)
        to_server.flush()
        said += [(CLIENT, asked), (SERVER, from_server.readline())]
        if method == "initialize":
            to_server.write(INITIALIZED)
            said.append((CLIENT, INITIALIZED))
    return said


def said_in(trace: Path) -> Said:
    """Return what both sides said according to strace."""
    done = run("import", str(trace), "-o", f"{trace}.mcpspy")
    assert done.returncode == 0, done.stderr
    frames = [record for record in read(done.stdout.strip()) if isinstance(record, Frame) and record.stream != 2]
    return [(CLIENT if frame.stream == 0 else SERVER, frame.data) for frame in frames]


@pytest.mark.parametrize("options", [["-y"], ["-yy"], ["-ttt", "-T"]], ids=str)
@pytest.mark.parametrize("way", ["by_bytes", "by_vectors", "by_copies", "by_loop"])
def test_messages_on_pipes_are_found_whatever_calls_a_server_uses(
    way: str, options: list[str], strace: str, tmp_path: Path
) -> None:
    trace = tmp_path / "server.strace"
    argv = [strace, "-f", *options, *KEPT, "-o", str(trace), sys.executable, "-c", SERVER_BY_HAND, way]
    with started(argv) as (_, to_server, from_server):
        said = talk(to_server, from_server)
    assert said_in(trace) == said


@pytest.mark.parametrize("options", [["-y"], ["-yy"], ["-ttt", "-T"]], ids=str)
@pytest.mark.parametrize("way", ["by_bytes", "by_socket", "by_messages", "by_copies"])
def test_messages_on_sockets_are_found_whatever_calls_a_server_uses(
    way: str, options: list[str], strace: str, tmp_path: Path
) -> None:
    trace = tmp_path / "server.strace"
    argv = [strace, "-f", *options, *KEPT, "-o", str(trace), sys.executable, "-c", SERVER_BY_HAND, way]
    with started_on_sockets(argv) as (to_server, from_server):
        said = talk(to_server, from_server)
    assert said_in(trace) == said


def test_a_server_on_the_sdk_has_the_rows_and_findings_of_the_taps_capture(strace: str, tmp_path: Path) -> None:
    trace, capture = tmp_path / "server.strace", tmp_path / "tap.mcpspy"
    traced = [strace, "-f", *RECIPE, "-o", str(trace), *SDK_SERVER]
    with started([sys.executable, "-m", "mcpspy", "run", "--capture", str(capture), "--", *traced]) as (
        _,
        to_server,
        from_server,
    ):
        talk(to_server, from_server)
    said_in(trace)
    imported, tapped = open_captures(f"{trace}.mcpspy"), open_captures(capture)
    assert len(imported.exchanges) == len(ASKS)
    assert rows_in_any_order(imported) == rows_in_any_order(tapped)
    assert [finding.rule for finding in imported.findings] == [finding.rule for finding in tapped.findings]
    assert imported.captures[0].exit is not None


@pytest.mark.parametrize("options", [RECIPE, ["-e", "trace=read,write", "-s", "1000000"]], ids=["recipe", "short"])
def test_a_server_on_the_sdk_is_looked_at_while_it_runs_and_goes_on(options: list[str], strace: str, tmp_path: Path) -> None:
    trace = tmp_path / "hang.strace"
    with started(SDK_SERVER) as (server, to_server, from_server):
        talk(to_server, from_server)
        words = [strace, "-f", *options, "-o", str(trace), "-p", str(server.pid)]
        with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as tracer:
            assert tracer.stderr is not None
            assert "attached" in tracer.stderr.readline()
            eventually(lambda: b"read(" in trace.read_bytes(), "the read in which the server waits, begun again")
            said = talk(to_server, from_server, first=10)
            eventually(lambda: trace.read_bytes().count(b"result") == len(ASKS), "the answers in strace's output")
            with on_pipe("show", "-f", str(trace)) as shown:
                shown.wait_for("→ tools/list")
                shown.end()
            tracer.terminate()
        assert len(talk(to_server, from_server, first=20)) == len(said)
    assert said_in(trace) == said


def test_files_of_each_thread_are_read_when_strace_has_joined_them(
    strace: str, debian_program: DebianProgram, tmp_path: Path
) -> None:
    with started([strace, "-ff", *RECIPE, "-o", str(tmp_path / "hang"), *SDK_SERVER]) as (_, to_server, from_server):
        said = talk(to_server, from_server)
    joined = subprocess.run(
        [debian_program("strace-log-merge"), str(tmp_path / "hang")], capture_output=True, timeout=DEADLINE_S, check=True
    )
    trace = tmp_path / "joined.strace"
    trace.write_bytes(joined.stdout)
    assert said_in(trace) == said
