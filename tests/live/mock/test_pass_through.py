"""`mcpspy mock --on-miss pass-through` on stdio, as a process: live servers continue where captures end, and are ended."""

import json
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from captures.serving import port, started
from mcpspy.live.mock.stdio import MAX_WAITING_BYTES
from mcpspy.platform.processes import process
from mcpspy.records import Frame, Note
from mcpspy.transcript.model import Outcome
from tests.conftest import PEERS, NpmProgram
from tests.deadlines import DEADLINE_S, eventually
from tests.live.mock.mocking import Mocking, written
from tests.transcript.dialogue import Dialogue, cancelled, notification, request, result, tool_call

OPENING = request(
    1,
    "initialize",
    {"protocolVersion": "2025-11-25", "capabilities": {"roots": {}}, "clientInfo": {"name": "c", "version": "1"}},
)
INITIALIZED = notification("notifications/initialized")
OPENED = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "recorded", "version": "1"}}
GREET = request(2, "tools/call", {"name": "greet", "arguments": {"name": "Ada"}})
DRAW = tool_call(7, "draw")


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    """A handshake and a greeting; the server exited with 5."""
    recorded = Dialogue().client(OPENING).server(result(1, OPENED)).client(INITIALIZED)
    recorded.client(GREET).server(result(2, {"content": []}))
    return written(tmp_path / "tickets.mcpspy", recorded.client_leaves().exits(5).ends().records[:-1])


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Return the file to which the live server writes what it reads."""
    return tmp_path / "log"


def forward(*words: str | Path) -> tuple[str, ...]:
    return ("--on-miss", "pass-through", "--", sys.executable, *map(str, words))


def tickets(log: Path, *faults: str) -> tuple[str, ...]:
    return forward(PEERS / "tickets.py", log, *faults)


def puppet(*steps: str) -> tuple[str, ...]:
    return forward(PEERS / "puppet.py", *steps)


def read(log: Path) -> list[Any]:
    return [json.loads(line) for line in log.read_bytes().splitlines()] if log.exists() else []


def test_the_live_server_answers_what_was_never_recorded(capture: Path, log: Path) -> None:
    with Mocking(capture, *tickets(log)) as mock:
        mock.send(OPENING, INITIALIZED, GREET, DRAW)
        assert mock.told()["result"]["serverInfo"]["name"] == "recorded"
        assert mock.told() == result(2, {"content": []})
        assert "Your ticket is" in mock.told()["result"]["content"][0]["text"]
        mock.send({**GREET, "id": 8})
        assert mock.told()["result"]["content"][0]["text"] == "Hello, Ada", "the recording is behind us"
        status, _, stderr = mock.ends()
    assert status == 0, "the live server's"
    assert "from here on the live server answers: " in stderr


def test_the_live_server_hears_each_message_once_and_nothing_of_what_was_played(capture: Path, log: Path) -> None:
    with Mocking(capture, *tickets(log)) as mock:
        mock.send(OPENING, INITIALIZED, GREET, DRAW, tool_call(8, "wait"), cancelled(8))
        mock.ends()
    assert read(log) == [OPENING, INITIALIZED, DRAW, tool_call(8, "wait"), cancelled(8)]


def test_its_own_capture_is_the_longer_recording(capture: Path, log: Path) -> None:
    with Mocking(capture, *tickets(log)) as mock:
        mock.send(OPENING, INITIALIZED, GREET, DRAW)
        drawn = [mock.told(), mock.told(), mock.told()][-1]
        mock.ends()
        assert [record.injected for record in mock.records if isinstance(record, Frame) and record.stream == 1] == [
            True,
            True,
            False,
        ]
        longer = mock.own
    with Mocking(longer) as mock:
        mock.send(OPENING, INITIALIZED, GREET, DRAW)
        assert [mock.told()["id"], mock.told()["id"], mock.told()] == [1, 2, drawn]


def test_without_a_miss_no_server_is_started(capture: Path, log: Path) -> None:
    with Mocking(capture, *puppet(f"swallow={log}")) as mock:
        mock.send(OPENING, INITIALIZED)
        assert mock.told()["id"] == 1
        assert mock.ends()[0] == 5, "the recorded server's"
    assert not log.exists()


def test_what_the_live_server_asks_is_answered_by_the_client(capture: Path, log: Path) -> None:
    with Mocking(capture, *tickets(log)) as mock:
        mock.send(OPENING, INITIALIZED, tool_call(7, "ask"))
        assert [mock.told()["id"], mock.told()] == [1, request("ours", "roots/list", {})]
        mock.send(result("ours", {"roots": [{"uri": "file:///"}]}))
        assert mock.told()["result"]["content"][0]["text"] == "1 roots"
        assert mock.transcript.exchanges[-1].outcome is Outcome.OK


def test_what_is_piped_into_it_is_answered_before_it_ends(capture: Path, log: Path) -> None:
    with Mocking(capture, *tickets(log)) as mock:
        mock.send(DRAW, tool_call(8, "draw"))
        status, lines, _ = mock.ends()
    assert ([json.loads(line)["id"] for line in lines], status) == ([7, 8], 0)


def test_what_the_live_server_says_at_its_end_is_heard(capture: Path) -> None:
    farewell = '{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"bye"}}'
    with Mocking(capture, *puppet('say={"jsonrpc":"2.0","id":1,"result":{}}', "swallow", f"say={farewell}", "exit=9")) as mock:
        mock.send(OPENING, DRAW, cancelled(7))
        status, lines, _ = mock.ends()
    assert (status, lines[-1].decode()) == (9, farewell)


def test_its_stderr_is_shown_and_recorded(capture: Path) -> None:
    with Mocking(capture, *puppet("complain=it is late", "exit=3")) as mock:
        mock.send(DRAW)
        mock.told()
        _, _, stderr = mock.ends()
        logged = b"".join(record.data for record in mock.records if isinstance(record, Frame) and record.stream == 2)
    assert ("it is late\n" in stderr, logged) == (True, b"it is late\n")


def test_what_a_server_writes_to_its_stderr_at_its_end_is_recorded(capture: Path) -> None:
    with Mocking(capture, *puppet("ignore=TERM", "complain=ready", "swallow", "complain=so long", "exit=0")) as mock:
        mock.send(DRAW)
        assert mock.process.stderr is not None
        while mock.process.stderr.readline() != b"ready\n":
            pass
        mock.process.send_signal(signal.SIGTERM)
        mock.process.wait(DEADLINE_S)
        assert (
            b"".join(record.data for record in mock.records if isinstance(record, Frame) and record.stream == 2)
            == b"ready\nso long\n"
        )


def test_a_server_that_says_more_than_the_client_reads_is_held(capture: Path) -> None:
    line = json.dumps(notification("notifications/message", {"data": "x" * 1000}))
    with Mocking(capture, *puppet(f"repeat={line}")) as mock:
        mock.send(DRAW)
        eventually(lambda: mock.own.exists() and mock.own.stat().st_size > MAX_WAITING_BYTES, "what the server says")
        sizes: list[int] = []

        def has_stopped() -> bool:
            sizes.append(mock.own.stat().st_size)
            return len(sizes) > 100 and sizes[-100] == sizes[-1]

        eventually(has_stopped, "the server's silence")
        assert sizes[-1] < 4 * MAX_WAITING_BYTES
        assert mock.told() == json.loads(line), "and it goes on when the client reads"
        assert mock.process.stdout is not None
        eventually(lambda: mock.process.stdout.read(1 << 20) and mock.own.stat().st_size > sizes[-1], "more of it")  # type: ignore[union-attr]


def test_a_server_that_dies_is_told_to_the_client_and_its_status_kept(capture: Path, log: Path) -> None:
    with Mocking(capture, *tickets(log, "dies")) as mock:
        mock.send(OPENING, INITIALIZED, DRAW)
        assert mock.told()["id"] == 1
        why = mock.told()["error"]["message"]
        mock.send(tool_call(8, "draw"))
        again = mock.told()["error"]["message"]
        status, _, stderr = mock.ends()
    assert "the live server is gone: the server exited with status 3; its last words: out of tickets" in why
    assert again == why
    assert "the live server is gone" in stderr
    assert status == 3


def test_a_server_that_cannot_be_started_is_told_to_the_client(capture: Path) -> None:
    with Mocking(capture, "--on-miss", "pass-through", "--", "./no-such-server") as mock:
        mock.send(OPENING, DRAW)
        assert mock.told()["id"] == 1
        assert "./no-such-server: command not found" in mock.told()["error"]["message"]
        assert mock.ends()[0] == 4
        assert any(record.topic == "pass-through" for record in mock.records if isinstance(record, Note))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_live_server_and_what_it_started(capture: Path, number: signal.Signals) -> None:
    pid = '{"jsonrpc":"2.0","method":"notifications/message","params":{"data":{pid}}}'
    with Mocking(capture, *puppet("ignore=TERM,INT", "grandchild", f"say={pid}", "linger")) as mock:
        mock.send(DRAW)
        live = mock.told()["params"]["data"]
        mock.process.send_signal(number)
        assert mock.ends()[0] == 128 + number
    eventually(lambda: process(live) is None, "the live server's end")


def test_a_client_that_is_gone_ends_the_live_server(capture: Path) -> None:
    pid = '{"jsonrpc":"2.0","method":"notifications/message","params":{"data":{pid}}}'
    with Mocking(capture, *puppet(f"say={pid}", "linger")) as mock:
        mock.send(DRAW)
        live = mock.told()["params"]["data"]
        assert mock.process.stdin is not None
        assert mock.process.stdout is not None
        mock.process.stdout.close()
        mock.process.stdin.close()
        mock.process.stdin = mock.process.stdout = None
        eventually(lambda: process(live) is None, "the live server's end")


def test_a_server_that_remembers_is_told_first_what_was_played(capture: Path, log: Path) -> None:
    with Mocking(capture, "--catch-up", *tickets(log)) as mock:
        mock.send(OPENING, INITIALIZED, GREET, DRAW)
        assert [mock.told()["id"], mock.told()["id"], mock.told()["id"]] == [1, 2, 7]
    assert read(log) == [OPENING, INITIALIZED, GREET, DRAW]


@pytest.mark.parametrize(("options", "names"), [((), []), (("--catch-up",), ["Ada"])])
def test_a_server_that_others_wrote_knows_what_was_played_if_it_is_told(
    options: tuple[str, ...],
    names: list[str],
    tmp_path: Path,
    npm_program: NpmProgram,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ada = {"entities": [{"name": "Ada", "entityType": "person", "observations": ["counts"]}]}
    create = request(2, "tools/call", {"name": "create_entities", "arguments": ada})
    recorded = Dialogue().client(OPENING).server(result(1, OPENED)).client(INITIALIZED).client(create).server(result(2, {}))
    capture = written(tmp_path / "memory.mcpspy", recorded.closes().records[:-1])
    monkeypatch.setenv("MEMORY_FILE_PATH", str(tmp_path / "memory.json"))
    with Mocking(capture, *options, "--on-miss", "pass-through", "--", *npm_program("mcp-server-memory")) as mock:
        mock.send(OPENING, INITIALIZED, create)
        assert [mock.told()["id"], mock.told()] == [1, result(2, {})]
        mock.send(tool_call(7, "read_graph"))
        assert [entity["name"] for entity in mock.told()["result"]["structuredContent"]["entities"]] == names


def test_a_server_over_http_goes_on_too(capture: Path, tmp_path: Path) -> None:
    words = [sys.executable, str(PEERS / "pyserver.py"), "http", "0"]
    with started(words, tmp_path, tmp_path / "server", {}) as output:
        url = f"http://127.0.0.1:{port(output)}/mcp"
        with Mocking(capture, "--on-miss", "pass-through", "--url", url) as mock:
            mock.send(OPENING, INITIALIZED, tool_call(7, "add", a=40, b=2))
            assert [mock.told()["id"], mock.told()["result"]["structuredContent"]] == [1, {"result": 42}]
            assert mock.ends()[0] == 5, "a server with a URL has no status: the recorded one"
