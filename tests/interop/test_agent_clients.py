"""Clients of other making before `mcpspy mcp`: both generations of both official SDKs, and the official inspector.

Each uses the tools, the resources and the prompts, directly and through mcpspy, which then finds nothing in the traffic.
"""

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.agent.agents import capture
from tests.cli.terminal import run
from tests.conftest import NPM_SCRIPTS, BuiltProgram, Peer
from tests.deadlines import SCENE_S
from tests.interop.serving import recorded
from tests.interop.test_agent_server import listening
from tests.interop.test_generations import FIRST, SECOND
from tests.interop.test_http_inspector import INSPECTOR

SCRIPT = str(NPM_SCRIPTS / "list_client.mjs")
CLIENTS = {
    "Python 1": ("mcp1/bin/python",),
    "Python 2": ("mcp2/bin/python",),
    "TypeScript 1": ("npm/.installed", "node", SCRIPT, FIRST, "default"),
    "TypeScript 2": ("npm2/.installed", "node", SCRIPT, SECOND, "default"),
    "TypeScript 2, auto": ("npm2/.installed", "node", SCRIPT, SECOND, "auto"),
}
"""For each, the part of build that it needs, and its words; the program of Python clients is that part."""

QUESTIONS = {
    "tools/list": (),
    "tools/call": ("--tool-name", "findings"),
    "resources/list": (),
    "resources/templates/list": (),
    "resources/read": ("--uri", "mcpspy://recording/ID/numbers"),
    "prompts/list": (),
    "prompts/get": ("--prompt-name", "write_a_bug_report"),
}
"""Methods that the inspector calls, each with a new connection."""


@pytest.fixture
def recording(store: Path) -> str:
    """The id of the one recording in the store."""
    (store / "captures").mkdir(parents=True)
    shutil.copy(capture("everything"), store / "captures")
    (resource, *_) = json.loads(run("list", "--json").stdout)["recordings"]
    return str(resource["id"])


@pytest.fixture(params=CLIENTS)
def client(request: pytest.FixtureRequest, built: BuiltProgram, peer: Peer) -> list[str]:
    """The words that start a client, up to the tool that it calls."""
    needs, *words = CLIENTS[request.param]
    path = built(needs)
    return [*(words or [path, peer("listclient.py")[1]]), "findings"]


@pytest.fixture
def inspector(built: BuiltProgram) -> list[str]:
    """The words that start the inspector's command line."""
    built("inspector/node_modules/.bin/node")
    return [*INSPECTOR[:2], "--cli"]


def printed(words: list[str]) -> str:
    """Run a client that has to succeed, and return its output."""
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=SCENE_S, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def used_all(output: str) -> bool:
    """Return whether a client has printed tools, findings, both resources and both prompts."""
    words = (
        "recordings timeline row findings",
        "Nothing found",
        ": how often",
        ": the sequence diagram",
        "hangs",
        "bug report",
    )
    return all(word in output for word in words)


def nothing_is_found(own: Path) -> None:
    done = run("check", str(own))
    assert done.returncode == 0
    assert "nothing found in" in done.stdout, done.stdout


@pytest.mark.usefixtures("recording")
def test_a_client_of_any_generation_uses_all_of_it_over_stdio(client: list[str], mcpspy: list[str], tmp_path: Path) -> None:
    own = tmp_path / "own.mcpspy"
    assert used_all(printed([*client, *mcpspy, "run", "--capture", str(own), "--", *mcpspy, "mcp"]))
    nothing_is_found(own)


@pytest.mark.usefixtures("recording")
def test_a_client_of_any_generation_uses_all_of_it_over_http(client: list[str], mcpspy: list[str], tmp_path: Path) -> None:
    with listening(mcpspy) as url:
        assert used_all(printed([*client, url]))
        with recorded(url, tmp_path) as through:
            assert used_all(printed([*client, through]))
    nothing_is_found(tmp_path / "a.mcpspy")


def asked(inspector: list[str], recording: str, *target: str, options: tuple[str, ...] = ()) -> Iterator[dict[str, object]]:
    """Let the inspector ask all its questions, and yield the answers."""
    for method, words in QUESTIONS.items():
        question = [word.replace("ID", recording) for word in words]
        yield json.loads(printed([*inspector, *target, "--", *options, "--method", method, *question]))


def complete(answers: list[dict[str, object]]) -> None:
    tools, findings, resources, templates, numbers, prompts, prompt = answers
    assert len(tools["tools"]) == 6  # type: ignore[arg-type]  # a list
    assert "Nothing found" in json.dumps(findings)
    assert len(resources["resources"]) == len(templates["resourceTemplates"]) == len(prompts["prompts"]) == 2  # type: ignore[arg-type]
    assert "how often" in json.dumps(numbers)
    assert "bug report" in json.dumps(prompt)


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_the_inspector_uses_all_of_it_over_stdio_and_nothing_is_found(
    era: str, inspector: list[str], recording: str, mcpspy: list[str], tmp_path: Path, store: Path
) -> None:
    tap = [*mcpspy, "run", "--capture", str(tmp_path / "own.mcpspy"), *mcpspy, "mcp"]
    complete(list(asked(inspector, recording, *tap, options=("-e", f"MCPSPY_HOME={store}", "--protocol-era", era))))
    captures = sorted(tmp_path.glob("own*.mcpspy"))
    assert len(captures) == len(QUESTIONS)
    for own in captures:
        nothing_is_found(own)


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_the_inspector_uses_all_of_it_over_http_and_nothing_is_found(
    era: str, inspector: list[str], recording: str, mcpspy: list[str], tmp_path: Path
) -> None:
    options = ("--transport", "http", "--protocol-era", era)
    with listening(mcpspy) as url, recorded(url, tmp_path) as through:
        complete(list(asked(inspector, recording, url, options=options)))
        complete(list(asked(inspector, recording, through, options=options)))
    nothing_is_found(tmp_path / "a.mcpspy")
