"""Recordings of servers that speak no specification's MCP: a mock sends every byte that the server sent, but for generated ids."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from http.client import HTTPResponse
from pathlib import Path
from threading import Timer
from typing import Any

import pytest

from tests.cli.terminal import COPY
from tests.conftest import PEERS
from tests.deadlines import DEADLINE_S
from tests.interop.serving import recorded
from tests.known_problems.stage import Caller, serving
from tests.live.mock.mocking_http import HttpMocking
from tests.peers.stdiodialects import BANNER, SAYS, said
from tests.starting import Program, finished

MCPSPY = [sys.executable, "-m", "mcpspy"]

# --- stdio ---


def asking(method: str, id: int) -> bytes:
    """Make a line of the client: a request, or without an id a notification."""
    return json.dumps({"jsonrpc": "2.0", "method": method} | ({"id": id} if id else {})).encode() + b"\n"


def talk(words: list[str], first_id: int = 1) -> bytes:
    """Speak with a program on stdio, each message after the answer to the last; return all that it wrote."""
    methods = [*SAYS, "tools/list"]
    with Program(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        (deadline := Timer(DEADLINE_S, process.kill)).start()
        heard, due = b"", len(BANNER)
        for id, method in enumerate(methods, first_id):
            process.stdin.write(asking(method, 0 if method.startswith("notifications/") or method == "ping" else id))
            process.stdin.flush()
            due += len(said(method, id))
            while len(heard) < due and (data := os.read(process.stdout.fileno(), due - len(heard))):
                heard += data
        rest: bytes = process.communicate()[0]
        deadline.cancel()
    return bytes(heard) + rest


@pytest.mark.parametrize("when", ["early", "late"])
def test_a_mock_on_stdio_writes_what_the_server_wrote(when: str, tmp_path: Path) -> None:
    capture = tmp_path / "dialects.mcpspy"
    server = [sys.executable, str(PEERS / "stdiodialects.py"), when]
    written = talk([*MCPSPY, "run", "--quiet", "--capture", str(capture), "--", *server])
    assert written.startswith(BANNER)
    assert written.endswith(b"bye")
    assert talk([*COPY, "mock", str(capture), "--capture", str(tmp_path / "own.mcpspy")]) == written


def test_live_ids_are_spelled_as_the_server_spelled_them(tmp_path: Path) -> None:
    capture = tmp_path / "dialects.mcpspy"
    server = [sys.executable, str(PEERS / "stdiodialects.py")]
    talk([*MCPSPY, "run", "--quiet", "--capture", str(capture), "--", *server])
    written = talk([*COPY, "mock", str(capture), "--capture", str(tmp_path / "own.mcpspy")], 71)
    assert written == talk(server, 71)


# --- HTTP+SSE ---


def one_event(stream: HTTPResponse) -> bytes:
    """Read the bytes of the next event."""
    return b"".join(iter(stream.readline, b"\n")) + b"\n"


def session(client: Caller, path: str) -> list[bytes]:
    """Speak as a published walkthrough does; return every event."""
    stream = client.request("GET", path)
    events = [one_event(stream)]
    endpoint = json.loads(events[0].partition(b"data: ")[2])["uri"]
    client.fields["Mcp-Session-Id"] = endpoint.partition("=")[2]

    def ask(count: int, method: str, id: int | None, **params: Any) -> None:
        client.post(method, id, endpoint, **params)
        events.extend(one_event(stream) for _ in range(count))

    ask(1, "initialize", 1, protocolVersion="2024.11.05", capabilities={"tools": {}})
    ask(1, "tools/list", 2)
    ask(4, "tools/call", 3, name="get_weather", arguments={"location": "北京"})
    ask(4, "tools/call", 4, name="generate_code", arguments={})
    ask(3, "tools/call", 5, name="long_task", arguments={})
    ask(1, "ping", None)
    return events


def without_session(event: bytes) -> bytes:
    """Blank the id of the session, which a mock generates."""
    return re.sub(rb"sessionId=[^\"]*", b"sessionId=", event)


def of_server(talk: Callable[[Caller], list[bytes]], folder: Path) -> list[bytes]:
    """Record what a client and the server with the dialects say to each other; return the events."""
    with (
        serving(folder, "0", peer="dialects.py") as number,
        recorded(f"http://127.0.0.1:{number}/sse", folder, "--redact", "none") as url,
        closing(Caller(url)) as client,
    ):
        return talk(client)


def test_a_mock_over_http_and_sse_sends_every_event_of_the_server(tmp_path: Path) -> None:
    events = of_server(lambda client: session(client, "/sse"), tmp_path)
    with HttpMocking(tmp_path / "a.mcpspy", "--transport", "sse") as mock, closing(Caller(mock.url)) as client:
        played = session(client, "/sse")
    assert len(events) == 15
    assert [without_session(event) for event in played] == [without_session(event) for event in events]


# --- Comparison ---


def test_a_replay_compares_what_is_in_no_exchange(tmp_path: Path) -> None:
    capture = tmp_path / "dialects.mcpspy"
    server = PEERS / "stdiodialects.py"
    talk([*MCPSPY, "run", "--quiet", "--capture", str(capture), "--", sys.executable, str(server)])
    other = tmp_path / "other.py"
    other.write_text(
        server.read_text(encoding="utf-8").replace(r"[DONE]\n", "").replace('"completed"', '"done"'), encoding="utf-8"
    )
    done = [
        finished([*COPY, "replay", str(capture), "--json", "--", sys.executable, str(program)]) for program in (server, other)
    ]
    assert [replay.returncode for replay in done] == [0, 1], done[0].stdout
    (client,) = json.loads(done[1].stdout)["clients"]
    (comparison,) = client["comparison"]["servers"]
    assert [(change["how"], change["kind"]) for change in comparison["messages"]] == [
        ("removed", "malformed"),
        ("removed", "result"),
        ("added", "result"),
    ]
