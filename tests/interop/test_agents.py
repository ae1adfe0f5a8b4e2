"""A client with servers on stdio and over HTTP is one recording; another client of the same HTTP server is another."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from captures.serving import PEERS, port, started
from tests.deadlines import DEADLINE_S, eventually
from tests.live.http.ends import Proxy
from tests.starting import Program

SERVER = (sys.executable, str(PEERS / "pyserver.py"))

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells which process has a connection")


@pytest.fixture(scope="module")
def upstream(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a server on the official SDK."""
    folder = tmp_path_factory.mktemp("upstream")
    with started((*SERVER, "http", "0"), folder, folder / "server.log", {}, Program) as output:
        yield f"http://127.0.0.1:{port(output)}/mcp"


class Client:
    """A client process of ours, which ends when told."""

    def __init__(self, name: str, url: str, *command: str) -> None:
        words = [sys.executable, str(PEERS / "twoservers.py"), name, url, *command]
        self.process = Program(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def has_called(self) -> None:
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "called\n"

    def end(self) -> None:
        self.process.communicate("\n", DEADLINE_S)
        assert self.process.returncode == 0


def output_of(mcpspy: list[str], *words: str) -> Any:
    done = subprocess.run([*mcpspy, *words, "--json"], capture_output=True, text=True, timeout=DEADLINE_S, check=True)
    return json.loads(done.stdout)


def called(shown: dict[str, Any]) -> list[str]:
    """Return the server of each tool call."""
    servers = [capture["server"] for capture in shown["captures"]]
    return sorted(servers[row["capture"]] for row in shown["rows"] if row.get("method") == "tools/call")


def clients(shown: dict[str, Any]) -> set[str]:
    return {client for capture in shown["captures"] for client in capture["clients"]}


def test_one_agent_is_one_recording_with_its_http_server_and_without_other_clients(
    upstream: str, mcpspy: list[str], store: Path
) -> None:
    capture = store / "captures" / "remote.mcpspy"
    capture.parent.mkdir(mode=0o700, parents=True)
    tap = Proxy(upstream, capture, "--label", "remote")
    try:
        agent = Client("claude-x", tap.address, *mcpspy, "run", "--label", "local", "--", *SERVER, "stdio")
        other = Client("other-y", tap.address)
        agent.has_called()
        other.has_called()

        def names() -> dict[str, set[str]]:
            recordings = output_of(mcpspy, "list")["recordings"]
            return {recording["client"]: {each["label"] for each in recording["captures"]} for recording in recordings}

        wanted = {"claude-x 1.2": {"remote", "local"}, "other-y 1.2": {"remote"}}
        eventually(lambda: names() == wanted, f"recordings of both clients, not {names()}")
        agent.end()
        other.end()
        assert tap.stop() == ""
    finally:
        tap.end()
    assert names() == wanted
    recordings = {recording["client"]: recording for recording in output_of(mcpspy, "list")["recordings"]}
    one, two = recordings["claude-x 1.2"], recordings["other-y 1.2"]
    assert [one["client_pid"], two["client_pid"]] == [agent.process.pid, other.process.pid]
    shown = output_of(mcpspy, "show", f"@{one['id']}")
    assert (called(shown), clients(shown)) == (["local", "remote"], {"claude-x"})
    shown = output_of(mcpspy, "show", two["address"])
    assert (called(shown), clients(shown)) == (["remote"], {"other-y"})
    copies = store / "copies"
    subprocess.run([*mcpspy, "export", "share", f"@{one['id']}", "-o", str(copies)], timeout=DEADLINE_S, check=True)
    data = b"".join(path.read_bytes() for path in copies.iterdir())
    assert b"claude-x" in data
    assert b"other-y" not in data, "the rows of other clients are not shared"
    shown = output_of(mcpspy, "show", "remote")
    assert (called(shown), clients(shown)) == (["remote", "remote"], {"claude-x", "other-y"})
    ports = {transaction["client_port"] for row in shown["rows"] for transaction in row.get("transactions", ())}
    assert len(ports) > 1, "each client has a port of its own"
    assert all(ports), "every client's port was found"
