"""Captures of a client and tests/peers/tickets.py, made by the real tap, and `mcpspy replay` against a server with other faults."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

from tests.cli.terminal import MCPSPY, run
from tests.conftest import PEERS
from tests.deadlines import DEADLINE_S

if TYPE_CHECKING:
    from pathlib import Path

SERVER = [sys.executable, str(PEERS / "tickets.py")]
GREETING = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "clerk", "version": "1"}}


def call(name: str, /, **arguments: Any) -> dict[str, Any]:
    return {"method": "tools/call", "params": {"name": name, "arguments": arguments}}


LIST: dict[str, Any] = {"method": "tools/list"}


def recorded(folder: Path, *requests: Any, server: list[str] | None = None) -> str:
    """A capture of these requests behind a handshake, each with an answer before the next, but for those to `wait`.

    One may be a function of the answers so far. Questions are answered with one root.
    """
    path = str(folder / "tickets.mcpspy")
    words = [*MCPSPY, "run", "--capture", path, "--label", "tickets", "--quiet", "--", *(server or SERVER)]
    answers: list[Any] = []
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdin is not None
        assert process.stdout is not None

        def say(message: dict[str, Any]) -> None:
            process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")  # type: ignore[union-attr]
            process.stdin.flush()  # type: ignore[union-attr]

        for id, request in enumerate(({"method": "initialize", "params": GREETING}, *requests)):
            fields = request(answers) if callable(request) else request
            say({"id": id, **fields})
            while "wait" not in str(fields):
                message = json.loads(process.stdout.readline())
                if "method" not in message:
                    answers.append(message)
                    break
                say({"id": message["id"], "result": {"roots": [{"uri": "file:///srv"}]}})
            if id == 0:
                say({"method": "notifications/initialized"})
        process.stdin.close()
        process.wait(DEADLINE_S)
    return path


def replay(*words: str, faults: tuple[str, ...] = (), log: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run `mcpspy replay words` against the server with these faults; what the server reads is in `log`."""
    return run("replay", *words, "--", *SERVER, str(log or ""), *faults)


def heard(log: Path) -> list[Any]:
    """Read the messages that the server received, from its log."""
    return [json.loads(line) for line in log.read_bytes().splitlines()] if log.exists() else []


def heard_names(log: Path) -> list[str]:
    """Return the names of their tools, or else their methods."""
    return [message.get("params", {}).get("name") or message.get("method", "answer") for message in heard(log)]
