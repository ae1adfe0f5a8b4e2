"""Coding agents and bridges as they are, with a scripted model API and a server, both behind mcpspy: nothing is found.

The model is tests/peers/modelserver.py. No agent speaks to anything but the loopback.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from captures.serving import PEERS, port, started
from tests.conftest import BuiltProgram
from tests.deadlines import SCENE_S
from tests.interop.serving import recorded
from tests.known_problems.stage import python

BIN = "agents/node_modules/.bin"
WORDS = "Echo the word hello, please."

Start: TypeAlias = Callable[[str, list[str], Path], tuple[list[str], dict[str, str]]]
"""Function of the URL of a model API, the command of a server and a folder: the words that start an agent, and its variables."""


def story(*uses: dict[str, Any]) -> dict[str, Any]:
    """Tell what the model says: these uses, one after the other, and then a text."""
    first, *later = ({"tools": [use]} for use in uses)
    return {"answers": [{"to": "hello again", "text": "Echoed."}, {"to": WORDS, **first}, *later]}


def use(name: str, **item: Any) -> dict[str, Any]:
    """Make a use of the server's tool; `item` are members of its item in responses."""
    return {"id": "call_1", "name": name, "arguments": {"text": "hello again"}, "item": item}


def search(name: str, **query: Any) -> dict[str, Any]:
    """Make a search for that tool."""
    item = {"type": "tool_search_call", "execution": "client", "arguments": query}
    return {"id": "call_0", "name": name, "arguments": query, "item": item}


def claude(defers: str, url: str, tap: list[str], folder: Path) -> tuple[list[str], dict[str, str]]:
    """Start Claude Code."""
    (folder / "mcp.json").write_text(json.dumps({"mcpServers": {"lab": {"command": tap[0], "args": tap[1:]}}}))
    words = ["claude", "-p", WORDS, "--model", "claude-sonnet-4-5", "--strict-mcp-config", "--mcp-config", "mcp.json"]
    return [*words, "--allowedTools", "mcp__lab", "ToolSearch"], {
        "ANTHROPIC_BASE_URL": url.removesuffix("/v1"),
        "ANTHROPIC_API_KEY": "k",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
        "ENABLE_TOOL_SEARCH": defers,
        "MCP_TIMEOUT": f"{SCENE_S * 1000:.0f}",
    }


def codex(model: str, url: str, tap: list[str], folder: Path) -> tuple[list[str], dict[str, str]]:
    """Start Codex, which offers tools as it thinks best for each model."""
    settings = {
        "model": model,
        "model_provider": "scripted",
        "check_for_update_on_startup": False,
        "analytics.enabled": False,
        "model_providers.scripted.name": "scripted",
        "model_providers.scripted.base_url": url,
        "model_providers.scripted.wire_api": "responses",
        "mcp_servers.lab.command": tap[0],
        "mcp_servers.lab.args": tap[1:],
        "mcp_servers.lab.startup_timeout_sec": int(SCENE_S),
    }
    (folder / ".codex").mkdir()
    lines = [f"{name} = {json.dumps(value)}\n" for name, value in settings.items()]
    (folder / ".codex" / "config.toml").write_text("".join(lines))
    return ["codex", "exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", WORDS], {}


ECHO = use("mcp__lab__echo")
IN_NAMESPACE = use("echo", namespace="mcp__lab")
PROGRAM = 'text(await tools.mcp__lab__echo({text: "hello again"}));'

RUNS: dict[str, tuple[Start, dict[str, Any]]] = {
    "Claude Code": (partial(claude, "false"), story(ECHO)),
    "Claude Code, deferred": (
        partial(claude, "true"),
        story(search("ToolSearch", query="select:mcp__lab__echo", max_results=5), ECHO),
    ),
    "Codex": (partial(codex, "unknown"), story(IN_NAMESPACE)),
    "Codex, deferred": (partial(codex, "gpt-5.5"), story(search("tool_search", query="echo"), IN_NAMESPACE)),
    "Codex, programs": (partial(codex, "gpt-6-sol"), story(use("exec", type="custom_tool_call", input=PROGRAM))),
}


@contextmanager
def scripted(told: dict[str, Any], folder: Path) -> Iterator[str]:
    """Serve a model API that is told what to say, with mcpspy before it. Yields its URL."""
    (folder / "story.json").write_text(json.dumps(told))
    words = [sys.executable, str(PEERS / "modelserver.py"), str(folder / "story.json")]
    with (
        started(words, folder, folder / "model.log", {}) as output,
        recorded(f"http://127.0.0.1:{port(output)}/v1", folder, "--model", "--label", "model") as url,
    ):
        yield url


def printed(words: list[str], folder: Path, variables: dict[str, str]) -> str:
    """Run a program that has to succeed, and return its output."""
    env = {"HOME": str(folder), "PATH": os.environ["PATH"], "TERM": "dumb", **variables}
    done = subprocess.run(
        words, cwd=folder, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=SCENE_S, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("name", RUNS)
def test_a_healthy_run_of_a_coding_agent_has_no_finding(
    name: str, mcpspy: list[str], built: BuiltProgram, tmp_path: Path
) -> None:
    (tmp_path / "home").mkdir()
    start, told = RUNS[name]
    captures = [str(tmp_path / "a.mcpspy"), str(tmp_path / "lab.mcpspy")]
    tap = [*mcpspy, "run", "--label", "lab", "--capture", captures[1], "--", *python("faulty.py")]
    with scripted(told, tmp_path) as url:
        (program, *words), variables = start(url, tap, tmp_path)
        assert "Echoed." in printed([built(f"{BIN}/{program}"), *words], tmp_path, variables)
    printed([*mcpspy, "check", "--fail-on", "note", *captures], tmp_path, {})
    shown = json.loads(printed([*mcpspy, "show", "--stats", "--json", *captures], tmp_path, {}))
    uses = len(told["answers"]) - 1
    assert [(run["asked"], run["uses"], run["whole"]) for run in shown["runs"]] == [(WORDS, uses, True)]


class Bridge:
    """A bridge from stdio to HTTP, as clients start one for each session."""

    def __init__(self, words: list[str], folder: Path) -> None:
        env = {"HOME": str(folder), "PATH": os.environ["PATH"]}
        self.process = subprocess.Popen(words, cwd=folder, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, method: str, id: int, **params: Any) -> Any:
        """Send a request, and return its result."""
        self.say(method, id=id, params=params)
        assert self.process.stdout is not None
        messages = (json.loads(line) for line in self.process.stdout)
        return next(message["result"] for message in messages if message.get("id") == id)

    def say(self, method: str, **more: Any) -> None:
        """Send a message."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", "method": method, **more}) + "\n")
        self.process.stdin.flush()

    def call(self) -> str:
        """Go through a session with one call, and return the text of its result."""
        about = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "me", "version": "1"}}
        self.ask("initialize", 0, **about)
        self.say("notifications/initialized")
        self.ask("tools/list", 1)
        result = self.ask("tools/call", 2, name="add", arguments={"a": 1, "b": 2})
        self.process.communicate(timeout=SCENE_S)
        return str(result["content"][0]["text"])


@contextmanager
def remote(folder: Path) -> Iterator[str]:
    """Serve MCP over HTTP, with mcpspy before it. Yields its URL."""
    (folder / "home").mkdir()
    words = [sys.executable, str(PEERS / "pyserver.py"), "http", "0"]
    with (
        started(words, folder, folder / "server.log", {}) as output,
        recorded(f"http://127.0.0.1:{port(output)}/mcp", folder) as url,
    ):
        yield url


def test_mcp_remote_that_is_started_twice_leaves_out_no_session(mcpspy: list[str], built: BuiltProgram, tmp_path: Path) -> None:
    """The second one probes with GET before it begins its own session."""
    words = [built(f"{BIN}/mcp-remote")]
    with remote(tmp_path) as url:
        for _ in range(2):
            bridge = Bridge([*words, url, "--allow-http"], tmp_path)
            try:
                assert bridge.call() == "3"
            finally:
                bridge.process.kill()
    # That this server writes head and body apart, as `body-waits` notes, is true.
    printed([*mcpspy, "check", "--fail-on", "warning", str(tmp_path / "a.mcpspy")], tmp_path, {})


def test_mcporter_s_calls_have_no_finding(mcpspy: list[str], built: BuiltProgram, tmp_path: Path) -> None:
    mcporter = built(f"{BIN}/mcporter")
    with remote(tmp_path) as url:
        assert "3" in printed([mcporter, "call", "--http-url", url, "--allow-http", "add", "a=1", "b=2"], tmp_path, {})
        tap = [*mcpspy, "run", "--capture", str(tmp_path / "lab.mcpspy"), "--", *python("faulty.py")]
        servers = {"mcpServers": {"lab": {"command": tap[0], "args": tap[1:]}}}
        (tmp_path / "mcporter.json").write_text(json.dumps(servers))
        words = [mcporter, "--config", "mcporter.json", "call", "lab.echo", "text=hello"]
        assert "hello" in printed(words, tmp_path, {})
    for name in ("a", "lab"):
        printed([*mcpspy, "check", "--fail-on", "warning", str(tmp_path / f"{name}.mcpspy")], tmp_path, {})
