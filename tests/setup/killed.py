"""A program that wraps a file, and is killed before each of its system calls in turn, in a copy of itself each time.

Usage: killed.py FOLDER AIM. Prints for each call what was about to happen and what is wrong then, as a line of JSON.
"""

import json
import os
import shutil
import signal
import sys
from itertools import count
from pathlib import Path
from types import FrameType
from typing import Any

from mcpspy.setup.commit import apply_change
from mcpspy.setup.plan import Aim
from mcpspy.setup.ports import read_reserved_ports
from mcpspy.setup.wrapping import port_of
from tests.setup.planning import config, planned, settings, state_of

TEXT = '{\n  "mcpServers": {\n    "a": {"command": "x"},\n    "b": {"url": "https://h.example/mcp"}\n  }\n}\n'
SYSTEM = {"posix", "_io", "fcntl"}
ASIDE = {
    *("fspath", "_path_normpath", "text_encoding", "getpid", "geteuid", "fileno", "urandom"),
    *("stat", "lstat", "fstat", "listdir", "access", "read"),
}
"""Calls of those modules that leave the world as it is: to be killed before one is to be killed before the next."""


def wrap(home: Path, file: Path, aim: Aim) -> None:
    """Change one file as `mcpspy wrap --yes` or `unwrap --yes` does."""
    made = planned(config(file), aim, read_reserved_ports(home))
    if made is not None:
        apply_change(made, settings(aim), home)


def killed(home: Path, file: Path, aim: Aim, nth: int) -> str | None:
    """Kill the process before its nth call, and return that call; None if it had finished before."""
    reading, writing = os.pipe()
    pid = os.fork()
    if not pid:
        seen = 0

        def before(frame: FrameType, event: str, called: Any) -> None:
            nonlocal seen
            owner = getattr(called, "__self__", None)
            module = getattr(called, "__module__", None) or type(owner).__module__
            if event == "c_call" and module in SYSTEM and called.__name__ not in ASIDE:
                seen += 1
                if seen == nth:
                    os.write(writing, called.__name__.encode())
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.setprofile(before)
        wrap(home, file, aim)
        sys.setprofile(None)
        os._exit(0)
    os.close(writing)
    with open(reading, encoding="utf-8") as pipe:
        call = pipe.read()
    return call if os.waitpid(pid, 0)[1] else None


def wrongs(home: Path, file: Path, before: str, after: str) -> list[str]:
    """List the problems that a killed command left."""
    problems = []
    text = file.read_text()
    if text not in (before, after):
        problems.append(f"the file holds {text!r}")
    reserved = read_reserved_ports(home).by_port
    ports = [port_of(server.entry.url) for server in state_of(config(file)).servers if server.entry.is_http]
    if any(port and port not in reserved for port in ports):
        problems.append("a URL is at a port that is not reserved")
    unfinished = [*file.parent.glob(".*.mcpspy-*"), *home.rglob(".*.mcpspy-*")]
    problems += [f"others can read {left.name}" for left in unfinished if left.stat().st_mode & 0o077]
    if text == after and before not in [backup.read_text() for backup in (home / "backups").iterdir()]:
        problems.append("there is no copy of the file as it was")
    return problems


def main(folder: Path, aim: Aim) -> None:
    """Kill the process before one call after the other."""
    home, file = folder / "home", folder / "mcp.json"
    for nth in count(1):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        file.write_text(TEXT)
        file.chmod(0o644)
        if aim is Aim.UNWRAP:
            wrap(home, file, Aim.WRAP)
        before = file.read_text()
        after = TEXT if aim is Aim.UNWRAP else made.text if (made := planned(config(file), aim)) else ""
        call = killed(home, file, aim, nth)
        problems = wrongs(home, file, before, after)
        wrap(home, file, aim)
        if file.read_text() != after:
            problems.append("a second try does not do it")
        if call is None and file.stat().st_mode & 0o777 != 0o644:
            problems.append("the mode has changed")
        if sorted(os.listdir(folder)) != ["home", "mcp.json"]:
            problems.append(f"left behind: {sorted(os.listdir(folder))}")
        sys.stdout.write(json.dumps([call, problems]) + "\n")
        if call is None:
            return


main(Path(sys.argv[1]), Aim(sys.argv[2]))
