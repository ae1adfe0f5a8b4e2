"""Intercepts with the programs of others around them: an official client, a mock, a replay; and what becomes of their captures."""

from __future__ import annotations

import asyncio
import json
import os
from typing import TYPE_CHECKING, Any

import pytest
from mcp import ClientSession, MCPError
from mcp.client.stdio import StdioServerParameters, stdio_client

from mcpspy import read
from mcpspy.records import CLIENT, Frame, Intercept
from mcpspy.transcript.transcribe import transcribe
from tests.cli.replays import LIST, SERVER, call, heard_names, recorded
from tests.cli.terminal import MCPSPY, run
from tests.deadlines import DEADLINE_S

if TYPE_CHECKING:
    from pathlib import Path

ANSWER = {"content": [{"type": "text", "text": "from a file"}]}
TIME_OUT_S = 1.0


async def _outcome(command: list[str], time_out_s: float) -> str:
    """Return what an official client gets for one call: the text, or its error."""
    parameters = StdioServerParameters(command=command[0], args=command[1:], env=dict(os.environ))
    async with asyncio.timeout(DEADLINE_S), stdio_client(parameters) as streams, ClientSession(*streams) as session:
        await session.initialize()
        try:
            result: Any = await session.call_tool("greet", {"name": "Ada"}, read_timeout_seconds=time_out_s)
        except MCPError as error:
            return str(error)
        return str(result.content[0].text)


def outcome(*options: str, server: list[str] | None = None, time_out_s: float = DEADLINE_S) -> str:
    command = [*MCPSPY, "run", "--quiet", *options, "--", *(server or SERVER)]
    return asyncio.run(_outcome(command, time_out_s))


@pytest.mark.grid(4)
@pytest.mark.parametrize(
    ("action", "expected"),
    [
        ("tool:greet => delay 100ms", "Hello, Ada"),
        ('tool:greet => error -32000 "try later"', "try later"),
        ('tool:greet => set params.arguments.name="Bob"', "Hello, Bob"),
        ('tool:greet => set result.content[0].text="changed"', "changed"),
        ("tool:greet => remove params.arguments.name", "Hello, None"),
        ('tool:greet => garbage "loading"', "Hello, Ada"),
        ("tool:greet => disconnect", "Connection closed"),
        ("tool:greet => disconnect 30", "Connection closed"),
        ("tool:greet => reorder 100ms", "Hello, Ada"),
        ("tool:greet => duplicate", "Hello, Ada"),
        ("tool:greet => kill", "Connection closed"),
    ],
)
def test_an_official_client_sees_the_intercept(action: str, expected: str) -> None:
    assert expected in outcome("--intercept", action)


@pytest.mark.parametrize("action", ["drop", "stall", "truncate 30"])
def test_an_official_client_waits_in_vain(action: str) -> None:
    assert "imed out" in outcome("--intercept", f"tool:greet => {action}", time_out_s=TIME_OUT_S)


def test_an_official_client_gets_the_answer_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "answer.json").write_text(json.dumps(ANSWER), encoding="utf-8")
    assert outcome("--intercept", f"tool:greet => respond {tmp_path / 'answer.json'}") == "from a file"


def test_a_mock_misbehaves(tmp_path: Path) -> None:
    mock = [*MCPSPY, "mock", recorded(tmp_path, LIST, call("greet", name="Ada"))]
    assert outcome(server=mock) == "Hello, Ada"
    assert "try later" in outcome("--intercept", 'tool:greet => error -32000 "try later"', server=mock)


@pytest.mark.parametrize("action", ["kind:result tool:greet => disconnect", "tool:greet => drop"])
def test_a_mock_says_why_it_gives_no_answer(action: str, tmp_path: Path) -> None:
    path = str(tmp_path / "silent.mcpspy")
    outcome("--capture", path, "--intercept", action, time_out_s=TIME_OUT_S)
    sent = [message.raw for message in transcribe(list(read(path))).messages if message.sender == CLIENT]
    done = run("mock", path, stdin=b"".join(line.rstrip(b"\n") + b"\n" for line in sent))
    assert "tools/call greet gets no answer, as recorded: intercepted: " in done.stderr


def test_a_replayed_client_misbehaves(tmp_path: Path) -> None:
    capture, log = recorded(tmp_path, call("greet", name="Ada"), call("draw")), tmp_path / "log"
    words = [*MCPSPY, "run", "--quiet", "--intercept", "tool:greet => error -32000", "--", *SERVER, str(log)]
    done = run("replay", capture, "--", *words)
    assert done.returncode == 1
    assert "-32000" in done.stdout
    assert heard_names(log) == ["initialize", "notifications/initialized", "draw"]


def _intercepted(folder: Path) -> Path:
    path = folder / "intercepted.mcpspy"
    assert outcome("--capture", str(path), "--intercept", 'tool:greet => set params.arguments.name="Bob"') == "Hello, Bob"
    return path


def test_a_shared_capture_keeps_both_what_came_and_what_was_sent(tmp_path: Path) -> None:
    out = tmp_path / "shared.mcpspy"
    assert run("export", "share", str(_intercepted(tmp_path)), "-o", str(out)).returncode == 0
    assert run("verify", str(out)).returncode == 0
    records = list(read(out))
    (act,) = [record for record in records if isinstance(record, Intercept)]
    (frame,) = [record for record in records if isinstance(record, Frame) and record.number == act.frame]
    assert (b"Ada" in frame.data, b"Bob" in (frame.forwarded or b"")) == (True, True)
    assert "intercepted: set params.arguments.name" in run("show", str(out)).stdout


def test_a_capture_that_breaks_off_after_an_intercept_can_be_repaired(tmp_path: Path) -> None:
    path, out = _intercepted(tmp_path), tmp_path / "sound.mcpspy"
    lines = path.read_bytes().splitlines(keepends=True)
    at = next(at for at, text in enumerate(lines) if b'"intercept"' in text)
    path.write_bytes(b"".join(lines[: at + 2]) + lines[at + 2][:20])
    assert run("verify", str(path), "--repair", str(out)).returncode in (0, 1)
    assert "intercepted: set params.arguments.name" in run("show", str(out)).stdout
