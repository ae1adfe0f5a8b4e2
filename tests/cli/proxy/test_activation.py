"""`mcpspy proxy --all` as the service starts it: by systemd-socket-activate, from the units that `wrap` wrote."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mcpspy.setup import ports
from mcpspy.setup.wrapping import PORTS
from tests.cli.proxy.test_all import assert_passes, captures
from tests.cli.systemctl import Systemctl
from tests.cli.terminal import run
from tests.conftest import DebianProgram
from tests.deadlines import DEADLINE_S, eventually
from tests.live.http.ends import Upstream


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A made-up home folder, whose ports no other test uses at the same time."""
    folder = tmp_path / "home"
    (folder / ".cursor").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.chdir(folder)
    begin = 150 + os.getpid() % 15 * 10
    monkeypatch.setattr(ports, "PORTS", PORTS[begin : begin + 10])
    monkeypatch.setenv("SPY_PORTS", f"{begin}:{begin + 10}")
    Systemctl(tmp_path / "systemctl", monkeypatch)
    return folder


@pytest.fixture
def upstreams() -> Iterator[dict[str, Upstream]]:
    """Two servers."""
    by_name = {name: Upstream() for name in ("one", "two")}
    yield by_name
    for value in by_name.values():
        value.end()


def wrapped(home: Path, upstreams: dict[str, Upstream]) -> dict[str, int]:
    """Write and wrap a file with these servers. Return the port of each."""
    file = home / ".cursor" / "mcp.json"
    file.write_text(json.dumps({"mcpServers": {name: {"url": upstream.url} for name, upstream in upstreams.items()}}))
    assert run("wrap", "--yes").returncode == 0
    urls = {name: entry["url"] for name, entry in json.loads(file.read_text())["mcpServers"].items()}
    return {name: int(url.split(":")[2].partition("/")[0]) for name, url in urls.items()}


@contextmanager
def activated(program: str, home: Path) -> Iterator["subprocess.Popen[str]"]:
    """The program of systemd, listening as `mcpspy.socket` says; it becomes what `mcpspy.service` says."""
    units = home / ".config" / "systemd" / "user"
    addresses = re.findall(r"(?m)^ListenStream=(.*)$", (units / "mcpspy.socket").read_text())
    service = (units / "mcpspy.service").read_text()
    (command,) = re.findall(r"(?m)^ExecStart=(.*)$", service)
    (environment,) = re.findall(r"(?m)^Environment=(.*)$", service)
    listen = [word for address in addresses for word in ("-l", address)]
    argv = [program, *listen, "-E", *shlex.split(environment), *shlex.split(command)]
    with subprocess.Popen(argv, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        for _ in addresses:
            assert "Listening on 127.0.0.1:" in process.stderr.readline()
        try:
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=DEADLINE_S)


def children(process: "subprocess.Popen[str]") -> list[int]:
    text = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text(encoding="ascii")
    return [int(word) for word in text.split()]


def test_the_first_connection_starts_it_and_is_served_and_recorded(
    home: Path, upstreams: dict[str, Upstream], debian_program: DebianProgram
) -> None:
    port = wrapped(home, upstreams)
    with activated(debian_program("systemd-socket-activate"), home):
        assert captures() == {}
        for name, upstream in upstreams.items():
            assert_passes(port[name], upstream)
        assert captures() == {"one": 1, "two": 1}


def test_a_tap_that_ends_is_started_again_at_the_same_socket(
    home: Path, upstreams: dict[str, Upstream], debian_program: DebianProgram
) -> None:
    port = wrapped(home, upstreams)
    with activated(debian_program("systemd-socket-activate"), home) as process:
        assert_passes(port["one"], upstreams["one"])
        eventually(lambda: len(children(process)) == 2, "both taps")
        killed = children(process)
        for pid in killed:
            os.kill(pid, signal.SIGKILL)
        # one that is being killed may still accept a connection, which then ends with it
        eventually(lambda: not set(killed) & set(children(process)), "both taps to be gone")
        for name, upstream in upstreams.items():
            assert_passes(port[name], upstream)


def test_a_server_wrapped_while_it_runs_is_served_too(
    home: Path, upstreams: dict[str, Upstream], debian_program: DebianProgram
) -> None:
    port = wrapped(home, {"one": upstreams["one"]})
    with activated(debian_program("systemd-socket-activate"), home):
        assert_passes(port["one"], upstreams["one"])
        port = wrapped(home, upstreams)
        eventually(lambda: "two" in captures(), "the new tap")
        assert_passes(port["two"], upstreams["two"])


def test_sockets_for_another_process_are_not_taken() -> None:
    script = (
        "import os, socket; from mcpspy.cli.proxy.taps import _inherited_listeners as take;"
        "listener = socket.create_server(('127.0.0.1', 0)); os.dup2(listener.fileno(), 3);"
        "variables = {'LISTEN_PID': '1', 'LISTEN_FDS': '1'}; print(take(variables), variables);"
        "taken = take({'LISTEN_PID': str(os.getpid()), 'LISTEN_FDS': '2'}); print([*taken] == [listener.getsockname()[1]])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=DEADLINE_S, check=False)
    assert (done.stdout, done.stderr) == ("{} {}\nTrue\n", "")
