"""The requests that `mcpspy mcp` sends where its user allows it, by `mcpspy call` and `mcpspy replay`.

Each runs in a process of its own: it waits, and has signals to end it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from shlex import join
from typing import Any, Final

from ...agent.source import ReplayRun, SendingPlan
from ...capture.store.folder import captures_folder
from ...errors import AgentToolError
from ...views.text.escape import one_line, without_logins
from ..call.result import NOT_SENT
from ..transcripts import CaptureSelection, header_of

HARMLESS: Final = ("none", "reads")
"""Effects of requests that change nothing."""

WIDTH: Final = "160"
MAX_NAME_LETTERS: Final = 100


def planned_call(arguments: dict[str, Any]) -> SendingPlan:
    """Say what to ask before a call. Raises: McpspyError."""
    planned = _call(arguments, "--dry-run")
    if planned["effect"] in HARMLESS:
        return SendingPlan("")
    name = one_line(f"{planned['method']} {planned['name'] or ''}".rstrip(), MAX_NAME_LETTERS)
    return SendingPlan(f"Let the agent send “{name}”? It may change something: it is not marked as read-only.")


def sent_call(arguments: dict[str, Any]) -> dict[str, Any]:
    """Send a request once, and return what `mcpspy call --json` prints. Raises: McpspyError."""
    return _call(arguments, "--yes", "--timeout", str(arguments.get("timeout_s", 60)))


def _call(arguments: dict[str, Any], *options: str) -> dict[str, Any]:
    tool, values = arguments.get("tool"), arguments.get("arguments", {})
    if any(text.startswith("-") for text in (tool or "", *values)) or (values and not tool):
        raise AgentToolError("arguments are those of a tool, and no name begins with -", "Name the tool with tool.")
    words = [
        arguments["what"],
        *([tool] if tool else []),
        *(f"{name}:={json.dumps(value)}" for name, value in values.items()),
    ]
    changes = [f"--set={path}={json.dumps(value)}" for path, value in arguments.get("set", {}).items()]
    return _document("call", *words, *changes, *options)


def planned_replay(selection: CaptureSelection) -> SendingPlan:
    """Say what to ask before a replay. Raises: McpspyError."""
    planned = _document("replay", _replayed(selection), "--dry-run")
    server = planned["target"].get("url") or join(planned["target"].get("argv", ()))
    effects = [message["effect"] for message in planned["sends"] if "effect" in message]
    changing = sum(effect not in HARMLESS for effect in effects)
    verb = "send to" if "url" in planned["target"] else "start"
    words = f"Let the agent {verb} {without_logins(server)}: {len(effects)} requests, {changing} of which may change something?"
    return SendingPlan(words, must_ask=True)


def sent_replay(selection: CaptureSelection, timeout_s: float) -> ReplayRun:
    """Replay a capture to its recorded server, once. Raises: McpspyError."""
    done = _run("replay", _replayed(selection), "--yes", "--timeout", str(timeout_s))
    return ReplayRun(done.returncode, "\n".join(filter(None, (done.stdout.strip("\n"), done.stderr.strip("\n")))))


def _replayed(selection: CaptureSelection) -> str:
    """Return the WHAT of a replay: a capture that was recorded here. Raises: AgentToolError.

    Another one names a server that somebody else chose.
    """
    if len(selection.paths) != 1:
        raise AgentToolError(f"{len(selection.paths)} servers were recorded", "Name one by its label, as recordings lists it.")
    (path,) = selection.paths
    header = header_of(path)
    if os.path.dirname(os.path.abspath(path)) != captures_folder() or header is None or "imported" in header.tapped:
        raise AgentToolError("Only what mcpspy recorded here is replayed for an agent", "A user can: mcpspy replay.")
    return path if selection.rows is None else f"{path}:{selection.rows[0]}..{selection.rows[1]}"


def _document(*words: str) -> dict[str, Any]:
    """Run a verb, and read the JSON that it prints. Raises: AgentToolError: if it prints none."""
    done = _run(*words, "--json")
    if not done.stdout:
        last = done.stderr.strip().rpartition("mcpspy: ")[2] or f"mcpspy {words[0]} ended with status {done.returncode}"
        sent = "Nothing was sent." if done.returncode == NOT_SENT else "It is not known whether it was sent."
        raise AgentToolError(f"mcpspy {words[0]} did not do this", sent, last)
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def _run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-P", "-m", "mcpspy", *words],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        env={**os.environ, "COLUMNS": WIDTH, "NO_COLOR": "1"},
        check=False,
    )
