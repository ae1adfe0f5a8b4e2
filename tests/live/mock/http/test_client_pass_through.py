"""`mcpspy mock --listen --on-miss pass-through`, as a process: each live client continues with its own server, on its own streams."""

import json
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from mcpspy.platform.processes import process
from mcpspy.records import Frame
from tests.conftest import PEERS
from tests.deadlines import eventually
from tests.live.mock.mocking import written
from tests.live.mock.mocking_http import Asking, HttpMocking
from tests.transcript.dialogue import Dialogue, notification, request, result, tool_call

OPENING = request(
    1,
    "initialize",
    {"protocolVersion": "2025-11-25", "capabilities": {"roots": {}}, "clientInfo": {"name": "c", "version": "1"}},
)
INITIALIZED = notification("notifications/initialized")
OPENED = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "recorded", "version": "1"}}
DRAW = tool_call(7, "draw")


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    """A handshake and a list."""
    recorded = Dialogue().client(OPENING).server(result(1, OPENED)).client(INITIALIZED).client(request(2))
    return written(tmp_path / "tickets.mcpspy", recorded.server(result(2, {"tools": []})).closes().records[:-1])


def forward(program: str, *words: str) -> tuple[str, ...]:
    return ("--on-miss", "pass-through", "--", sys.executable, str(PEERS / program), *words)


def opened(mock: HttpMocking) -> Asking:
    asking = mock.connect()
    assert asking.ask(OPENING).answer == result(1, OPENED)
    asking.ask(INITIALIZED)
    return asking


def answered(asking: Asking, message: Any = DRAW) -> Any:
    """Return what a live server answers on a stream."""
    (answer,) = asking.ask(message).messages
    return answer


def drawn(asking: Asking) -> Any:
    return answered(asking)["result"]["content"][0]["text"]


def is_gone(pid: int) -> bool:
    return process(pid) is None


def test_each_client_goes_on_with_a_server_of_its_own(capture: Path) -> None:
    with HttpMocking(capture, *forward("tickets.py")) as mock:
        client, other = opened(mock), opened(mock)
        assert client.ask(request(2)).answer == result(2, {"tools": []}), "as long as the recording knows"
        first, second = drawn(client), drawn(other)
        assert first != second
        assert drawn(client) == first
        assert mock.ends()[0] == 0


def test_clients_without_sessions_whose_ids_are_the_same_are_told_apart(capture: Path) -> None:
    meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
    info = {"io.modelcontextprotocol/clientInfo": {"name": "crowd", "version": "1"}}
    with HttpMocking(capture, *forward("pyserver.py", "stdio")) as mock:
        clients = [mock.connect() for _ in range(3)]
        for n, client in enumerate(clients):
            call = {"name": "add", "arguments": {"a": n, "b": 100}, "_meta": {**meta, **info}}
            client.send(
                request(1, "tools/call", call), MCP_Protocol_Version="2026-07-28", Mcp_Method="tools/call", Mcp_Name="add"
            )
        sums = [client.told().messages[0]["result"]["structuredContent"]["result"] for client in clients]
    assert sums == [100, 101, 102]


def test_its_own_capture_is_the_longer_recording(capture: Path) -> None:
    with HttpMocking(capture, *forward("tickets.py")) as mock:
        ticket = drawn(opened(mock))
        mock.ends()
        frames = [record for record in mock.records if isinstance(record, Frame) and b"Your ticket" in record.data]
        assert [frame.injected for frame in frames] == [False]
        longer = mock.own
    with HttpMocking(longer) as mock:
        assert drawn(opened(mock)) == ticket


def test_what_the_live_server_asks_comes_on_the_stream_of_the_call(capture: Path) -> None:
    with HttpMocking(capture, *forward("tickets.py")) as mock:
        asking = opened(mock)
        call = asking.ask(tool_call(7, "ask"))
        assert call.next() == request("ours", "roots/list", {})
        assert asking.again().ask(result("ours", {"roots": []})).status == 202
        assert call.next()["result"]["content"][0]["text"] == "0 roots"


def test_a_server_that_dies_is_told_to_its_client(capture: Path) -> None:
    with HttpMocking(capture, *forward("tickets.py", "", "dies")) as mock:
        why = answered(opened(mock))["error"]["message"]
        assert "the server exited with status 3; its last words: out of tickets" in why
        assert "the live server is gone" in mock.ends()[2]


ANSWERS = (
    f"await={json.dumps(OPENING)}",
    'say={"jsonrpc":"2.0","id":1,"result":{}}',
    f"await={json.dumps(DRAW)}",
    'say={"jsonrpc":"2.0","id":7,"result":{pid}}',
)
"""The steps of a server that answers a call with its process id."""


def test_a_server_that_says_more_than_its_client_reads_is_held(capture: Path) -> None:
    line = json.dumps(notification("notifications/message", {"data": "x" * 10_000}))
    with HttpMocking(capture, *forward("puppet.py", *ANSWERS[:3], f"repeat={line}")) as mock:
        call = opened(mock).ask(DRAW)
        sizes: list[int] = []

        def has_stopped() -> bool:
            sizes.append(mock.own.stat().st_size)
            return len(sizes) > 100 and sizes[-1] > 1_000_000 and sizes[-100] == sizes[-1]

        eventually(has_stopped, "the server's silence")
        assert call.next() == json.loads(line), "and it goes on when the client reads"
        eventually(lambda: call.next() and mock.own.stat().st_size > sizes[-1], "more of it")


def test_deleting_the_session_ends_its_server(capture: Path) -> None:
    with HttpMocking(capture, *forward("puppet.py", *ANSWERS, "swallow")) as mock:
        asking = opened(mock)
        live = answered(asking)["result"]
        assert process(live) is not None
        asking.ask(method="DELETE")
        eventually(partial(is_gone, live), "the live server's end")


def test_ending_the_mock_ends_every_server(capture: Path) -> None:
    with HttpMocking(capture, *forward("puppet.py", "ignore=TERM", *ANSWERS, "linger")) as mock:
        pids = [answered(opened(mock))["result"] for _ in range(2)]
        assert mock.ends()[0] == 0
        for live in pids:
            eventually(partial(is_gone, live), "the live server's end")
