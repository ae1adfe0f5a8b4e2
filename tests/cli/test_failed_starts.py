"""Servers that could not be started: whatever looks at the newest recording speaks of them first."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from mcpspy.cli.tui_sources import StoreDesk
from mcpspy.cli.web.stored_recordings import StoredRecordings
from mcpspy.records import Exit
from tests.agent.agents import call as ask_agent
from tests.capture.making import stored
from tests.cli.terminal import run

INITIALIZE = b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}\n'


def script(path: Path, text: str, mode: int = 0o755) -> str:
    path.write_text(text, encoding="utf-8")
    path.chmod(mode)
    return str(path)


def commands(folder: Path) -> dict[str, list[str]]:
    """Return commands that cannot serve, by what is wrong with them."""
    return {
        "command not found": ["npxx", "-y", "server-github"],
        "no such file": [str(folder / "nothing" / "server")],
        "not executable": [script(folder / "server.py", "print(1)\n", 0o644)],
        "a folder": [str(folder)],
        "interpreter of its first line missing": [script(folder / "shebang", "#!/nonexistent/python9\n")],
        "interpreter not in PATH": [script(folder / "env", "#!/usr/bin/env python9\n")],
        "a shell that does not find it": ["sh", "-c", "npxx -y server-github"],
        "a relative command of another folder": ["./server.sh"],
        "a missing script": [sys.executable, str(folder / "gone.py")],
        "a missing module": [sys.executable, "-c", "import no_such_module_here"],
        "a failure at once": ["sh", "-c", "echo missing API key >&2; exit 3"],
    }


KINDS = (
    "command not found", "no such file", "not executable", "a folder", "interpreter of its first line missing",
    "interpreter not in PATH", "a shell that does not find it", "a relative command of another folder", "a missing script",
    "a missing module", "a failure at once",
)  # fmt: skip


def healthy(label: str = "weather", begin_s: float = 0) -> None:
    stored(label, begin_s=begin_s)


@pytest.mark.parametrize("kind", KINDS)
def test_the_newest_recording_is_the_server_that_did_not_start(kind: str, tmp_path: Path) -> None:
    healthy()
    done = run("run", "--label", "github", "--", *commands(tmp_path)[kind])
    assert done.returncode != 0
    checked = run("check", "--json")
    assert checked.returncode == 1
    assert [finding["rule"] for finding in json.loads(checked.stdout)["findings"]] in (["server-not-started"], ["server-died"])
    listed = json.loads(run("list", "--json").stdout)["recordings"]
    assert [(recording["address"], recording["captures"][0]["label"]) for recording in listed] == [
        ("@", "github"), ("@1", "weather"),
    ]  # fmt: skip
    assert [item["servers"] for item in StoredRecordings().listed()] == [["github"], ["weather"]]
    assert "github" in run("show").stdout.splitlines()[1]


def failed(name: str = "github", **facts: Any) -> str:
    """Put a capture of a server into the store that could not be started, a minute after the healthy one."""
    exit = facts.pop("exit", None) or Exit(at_ns=2, pid=13, error="command not found")
    return stored(name, messages=0, more=[exit], **{"begin_s": 60, "lasted_s": 0.02, **facts})


@pytest.mark.parametrize("words", [("check",), ("check", "github"), ("check", "--since", "2026-11-20")])
def test_check_fails_because_of_it(words: tuple[str, ...]) -> None:
    healthy()
    failed()
    done = run(*words)
    assert done.returncode == 1
    assert "command not found" in done.stdout


@pytest.mark.parametrize("words", [("show",), ("show", "github"), ("show", "--since", "2026-11-20"), ("show", "--stats")])
def test_show_says_so_and_does_not_ask_to_use_its_client(words: tuple[str, ...]) -> None:
    healthy()
    failed()
    done = run(*words)
    assert done.returncode == 0
    assert "github could not be started: command not found" in done.stdout
    assert "use its client" not in done.stderr


def test_the_page_the_terminal_interface_and_an_agent_open_it() -> None:
    healthy()
    failed()
    pages = StoredRecordings()
    (newest, _) = pages.listed()
    opened = pages.open(newest["recording"])
    assert opened is not None
    opened.take()
    assert "server-not-started" in json.dumps(opened.part("findings"))
    opened.close()
    assert [item.servers for item in StoreDesk().recordings()] == [("github",), ("weather",)]
    found = ask_agent("", "findings")
    assert [finding["rule"] for finding in found.content["findings"]] == ["server-not-started"]
    assert [item["what"] for item in ask_agent("", "recordings").content["recordings"]] == ["@", "@1"]


PLAYED: dict[str, tuple[str, ...]] = {
    "call @": ("call", "@", "forecast"),
    "call LABEL": ("call", "github", "forecast"),
    "call a row": ("call", "@:1"),
    "mock @": ("mock", "@"),
    "mock LABEL": ("mock", "github"),
    "mock over HTTP": ("mock", "@", "--listen", "127.0.0.1:0"),
    "replay @": ("replay", "@"),
    "replay LABEL": ("replay", "github", "--", "cat"),
}
"""Verbs that need a server's messages."""


@pytest.mark.parametrize("verb", PLAYED)
def test_what_plays_a_recording_says_why_it_cannot(verb: str) -> None:
    healthy("github")
    failed("github-2", label="github")
    done = run(*PLAYED[verb])
    assert done.returncode == 2
    assert "its server could not be started (command not found)" in done.stderr


def test_the_recording_before_it_can_still_be_played() -> None:
    healthy("github")
    failed("github-2", label="github")
    assert run("show", "@1:1").returncode == 0
    assert "there is nothing to send" not in run("replay", "@1", "--dry-run").stderr


# Neighbours: captures that say nothing new, which `@` leaves out as before.

SILENT: dict[str, dict[str, Any]] = {
    "ended well": {"exit": Exit(at_ns=2, pid=13, code=0)},
    "ended by a signal of its client": {"exit": Exit(at_ns=2, pid=13, signal="SIGTERM")},
    "killed": {"exit": Exit(at_ns=2, pid=13, signal="SIGKILL")},
    "its tap was killed": {"exit": Exit(at_ns=2, pid=13, code=0), "ended": False},
    "a mock that failed": {"tapped": {"transport": "stdio", "mock": "x.mcpspy"}},
    "a replay that failed": {"tapped": {"transport": "stdio", "argv": ["npxx"], "replay": "x.mcpspy"}},
}
"""Ends of servers that nobody spoke to."""


@pytest.mark.parametrize("name", SILENT)
def test_other_servers_that_nobody_spoke_to_do_not_count(name: str) -> None:
    healthy()
    failed("silent", **SILENT[name])
    listed = json.loads(run("list", "--json").stdout)["recordings"]
    assert {recording["captures"][0]["label"]: recording["address"] for recording in listed} == {"weather": "@", "silent": None}
    assert run("check").returncode == 0 or "silent" not in run("check").stdout


def test_a_newer_recording_is_spoken_of_first() -> None:
    failed(begin_s=0)
    healthy(begin_s=60)
    assert [item["servers"] for item in StoredRecordings().listed()] == [["weather"], ["github"]]
    assert "github" not in run("check").stdout


# One client with several servers.


def test_a_client_whose_first_server_fails_has_one_recording_with_the_next() -> None:
    failed("github", begin_s=0)
    healthy("weather", begin_s=0.5)  # after the first had ended
    done = run("check")
    assert done.returncode == 1
    assert "command not found" in done.stdout
    assert {len(recording["captures"]) for recording in json.loads(run("list", "--json").stdout)["recordings"]} == {2}


@pytest.mark.parametrize("other", [{"parent": {"pid": 99, "name": "other", "start": 7}}, {"begin_s": 30.0}])
def test_another_client_or_a_later_session_is_another_recording(other: dict[str, Any]) -> None:
    failed("github", begin_s=0)
    stored("weather", **{"begin_s": 0.5, **other})
    assert len(json.loads(run("list", "--json").stdout)["recordings"]) == 2
    assert run("check", "@1").returncode == 1


def test_a_server_that_fails_beside_others_is_in_their_recording() -> None:
    stored("weather", begin_s=0, lasted_s=9)
    failed("github", begin_s=1)
    stored("files", begin_s=2, lasted_s=9)
    (recording,) = json.loads(run("list", "--json").stdout)["recordings"]
    assert len(recording["captures"]) == 3
    assert run("check").returncode == 1


def test_a_server_that_is_not_found_fails_for_a_real_client_too() -> None:
    done = run("run", "--label", "github", "--", "npxx", stdin=INITIALIZE)
    assert done.returncode == 127
    assert run("check").returncode == 1
