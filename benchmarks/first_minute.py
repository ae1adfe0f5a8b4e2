"""The first minute: from three clients' files with five servers to the first call on the screen, typed by a script and counted.

    python -m benchmarks.first_minute [--json]

It stands in for a bare container, without one: a home folder of its own, an empty environment but for pip's, a virtual environment
made anew, and mcpspy installed from this folder. Four of the servers are programs, the fifth is behind a URL; the clients are on the
official SDK and read the files of Cursor, Gemini CLI and Junie. What is typed is typed at a terminal. A stand-in for systemctl
listens as systemd would and starts the service on the first connection: no command keeps a process alive.
"""

import argparse
import json
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.cli.systemctl import put_systemctl

ROOT = Path(__file__).parents[1]
PEERS = ROOT / "tests" / "peers"
DEADLINE_S = 180.0
PROMPT = "$ "
_escape = re.compile(r"\x1b\[[\d;?]*[a-zA-Z]")


class Terminal:
    """A shell at a terminal: what is typed is counted, what is drawn can be waited for."""

    def __init__(self, home: Path, environment: dict[str, str]) -> None:
        self.drawn = ""
        reading, writing = pty.openpty()
        self._fd = reading
        self.shell = subprocess.Popen(
            ["/bin/sh", "-i"], cwd=home, env=environment, stdin=writing, stdout=writing, stderr=writing, start_new_session=True
        )
        os.close(writing)
        self.wait_for(PROMPT)

    def type(self, line: str) -> None:
        """Type one line, and Enter."""
        self.drawn = ""
        os.write(self._fd, f"{line}\n".encode())

    def wait_for(self, what: str) -> None:
        """Read until it is on the screen. Raises: RuntimeError."""
        until = time.monotonic() + DEADLINE_S
        while not re.search(what if what != PROMPT else re.escape(PROMPT) + "$", self.drawn):
            if not select.select([self._fd], [], [], max(0.0, until - time.monotonic()))[0]:
                raise RuntimeError(f"waited for {what!r}, and saw:\n{self.drawn}")
            self.drawn = _escape.sub("", self.drawn + os.read(self._fd, 1 << 16).decode(errors="replace")).replace("\r", "")

    def close(self) -> None:
        """End the shell and what it started."""
        os.killpg(self.shell.pid, signal.SIGHUP)
        self.shell.kill()
        self.shell.wait()
        os.close(self._fd)


def servers(folder: Path, url: str) -> dict[str, object]:
    """Five entries as people write them."""
    python = str(Path(sys.executable).absolute())
    subprocess.run(["git", "init", "-q", str(folder / "repository")], check=True)
    return {
        "time": {"command": str(Path(python).with_name("mcp-server-time"))},
        "git": {"command": str(Path(python).with_name("mcp-server-git")), "args": ["-r", str(folder / "repository")]},
        "weather": {"command": python, "args": [str(PEERS / "logserver.py"), "0"], "env": {"UNITS": "metric"}},
        "lab": {"command": python, "args": [str(PEERS / "pyserver.py"), "stdio"]},
        "remote": {"url": url},
    }


@contextmanager
def http_server(folder: Path) -> Iterator[str]:
    """The URL of a server that somebody else runs."""
    with (
        (folder / "remote.log").open("wb") as log,
        subprocess.Popen(
            [sys.executable, str(PEERS / "pyserver.py"), "http", "0"], stdout=subprocess.PIPE, stderr=log
        ) as process,
    ):
        assert process.stdout is not None
        try:
            yield f"http://127.0.0.1:{int(process.stdout.readline())}/mcp"
        finally:
            process.kill()


def environment(home: Path) -> dict[str, str]:
    """Make the environment of a fresh login that can install packages."""
    pip = {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
    config = Path.home() / ".config" / "pip" / "pip.conf"
    settings = {"PIP_CONFIG_FILE": str(config)} if config.exists() else {}
    path = f"{home.parent / 'systemctl' / 'bin'}:/usr/bin:/bin"
    return {**settings, **pip, "HOME": str(home), "PATH": path, "LANG": "C.UTF-8", "TERM": "xterm", "PS1": PROMPT}


def mcpspy(home: Path, *words: str) -> bytes:
    """Run the installed mcpspy, and return its output."""
    done = subprocess.run(
        [home / "mcpspy/bin/mcpspy", *words], env=environment(home), cwd=home, check=True, capture_output=True
    )
    return done.stdout


def client_files(home: Path, servers: dict[str, object]) -> dict[Path, str]:
    """Write files of Cursor, Gemini CLI and Junie with these servers. Return their texts."""
    names = {
        ".cursor/mcp.json": ("time", "git"),
        ".gemini/settings.json": ("weather", "lab"),
        ".junie/mcp/mcp.json": ("remote",),
    }
    texts = {
        home / path: json.dumps({"mcpServers": {name: servers[name] for name in some}}, indent=2)
        for path, some in names.items()
    }
    for file, text in texts.items():
        file.parent.mkdir(parents=True)
        file.write_text(text, encoding="utf-8")
    return texts


def first_minute(folder: Path) -> dict[str, object]:
    """Play a new user's first minute; count the lines typed, the choices and the seconds. Raises: RuntimeError: what did not come."""
    home = folder / "home"
    home.mkdir()
    systemctl = put_systemctl(folder / "systemctl") / "systemctl"
    (folder / "systemctl" / "listen").touch()
    copy = shutil.copytree(ROOT, folder / "mcpspy", ignore=shutil.ignore_patterns(".*", "build", "tests", "captures"))
    with http_server(folder) as url:
        files = client_files(home, servers(folder, url))
        desk = Terminal(home, environment(home))
        try:
            began = time.monotonic()
            python = getattr(sys, "_base_executable", sys.executable)
            install = [f"{python} -m venv ~/mcpspy", f"~/mcpspy/bin/pip install -q {copy}"]
            for line in install:
                desk.type(line)
                desk.wait_for(PROMPT)
            installed = time.monotonic()
            entered, choices = ["~/mcpspy/bin/mcpspy wrap", "~/mcpspy/bin/mcpspy show -f"], 0
            desk.type(entered[0])
            desk.wait_for(r"\[all, some, none\]")
            choices += 1
            desk.type("")
            desk.wait_for(PROMPT)
            desk.type(entered[1])
            calls = json.dumps({"time": ["get_current_time", {"timezone": "UTC"}]})
            clients = [[sys.executable, str(PEERS / "configclient.py"), str(file), calls] for file in files]
            work = subprocess.Popen(clients[0], stdout=subprocess.PIPE, env=environment(home), cwd=home)
            desk.wait_for("tools/call get_cur")  # the name is cut to fit 80 columns
            on_screen = time.monotonic()
            stdout, _ = work.communicate(timeout=DEADLINE_S)
            for client in clients[1:]:
                stdout += subprocess.run(client, stdout=subprocess.PIPE, env=environment(home), cwd=home, check=True).stdout
            listed = json.loads(mcpspy(home, "list", "--json"))
            mcpspy(home, "unwrap", "--yes")
            return {
                "install": install,
                "commands": entered,
                "choices": choices,
                "restarts": 1,
                "answered": sorted(json.loads(line)["server"] for line in stdout.splitlines()),
                "recorded": sorted(
                    {capture["label"] for recording in listed["recordings"] for capture in recording["captures"]}
                ),
                "install_s": round(installed - began, 1),
                "first_call_s": round(on_screen - installed, 1),
                "restored": all(file.read_text(encoding="utf-8") == text for file, text in files.items()),
            }
        finally:
            subprocess.run([systemctl, "--user", "disable"], env=environment(home), check=True)
            desk.close()


def main() -> None:
    """Type it, and say what it took."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        counts = first_minute(Path(folder))
    if options.json:
        print(json.dumps(counts))
        return
    for name, value in counts.items():
        print(f"{name}: {value}")


if __name__ == "__main__":
    main()
