"""`mcpspy proxy --all`: what `mcpspy wrap` has wrapped is served, each server by itself."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

import pytest

from mcpspy.cli.proxy.taps import MAX_ENDS
from mcpspy.setup import ports
from mcpspy.setup.wrapping import PORTS
from tests.cli.terminal import COPY, on_terminal, run
from tests.deadlines import DEADLINE_S, eventually
from tests.live.http.ends import OK, Upstream, Wire
from tests.starting import Program


@pytest.fixture(autouse=True)
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A client's file in a made-up home folder."""
    home = tmp_path / "home"
    file = home / ".cursor" / "mcp.json"
    file.parent.mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(home)
    begin = os.getpid() % (len(PORTS) // 10) * 10  # other processes run these tests at the same time
    monkeypatch.setattr(ports, "PORTS", PORTS[begin : begin + 10])
    monkeypatch.setenv("SPY_PORTS", f"{begin}:{begin + 10}")
    return file


@pytest.fixture
def upstreams() -> Iterator[dict[str, Upstream]]:
    """Two servers."""
    by_name = {name: Upstream() for name in ("one", "two")}
    yield by_name
    for value in by_name.values():
        value.end()


class All:
    """A running `mcpspy proxy --all`. `addresses` are by label, as they were printed."""

    def __init__(self, count: int, *options: str) -> None:
        argv = [*COPY, "proxy", "--all", *options]
        self.process: subprocess.Popen[str] = Program(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addresses: dict[str, str] = {}
        self._taps: set[int] = set()
        self.read(count)

    def read(self, count: int) -> None:
        """Take the next so many lines."""
        assert self.process.stdout is not None
        for _ in range(count):
            address, label, _url = self.process.stdout.readline().split()
            self.addresses[label] = address
        self._taps.update(self.children())

    def port(self, label: str) -> int:
        return int(self.addresses[label].split(":")[2].partition("/")[0])

    def line(self) -> str:
        """Wait for the next line on stderr."""
        assert self.process.stderr is not None
        return self.process.stderr.readline()

    def children(self) -> list[int]:
        text = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text(encoding="ascii")
        return [int(word) for word in text.split()]

    def stop(self) -> str:
        """End it as a user does; what it still said on stderr."""
        self.process.send_signal(signal.SIGTERM)
        _, stderr = self.process.communicate(timeout=DEADLINE_S)
        assert self.process.returncode == 0
        return stderr

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        if self.process.wait(DEADLINE_S):
            for pid in self._taps:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        self.process.communicate(timeout=DEADLINE_S)


def wrap(file: Path, servers: dict[str, dict[str, Any]]) -> None:
    """Write and wrap a file with these servers."""
    file.write_text(json.dumps({"mcpServers": servers}))
    assert run("wrap", "--yes", "--without-service").returncode == 0


def wrapped(file: Path, upstreams: dict[str, Upstream]) -> None:
    wrap(file, {name: {"url": upstream.url} for name, upstream in upstreams.items()})


def assert_passes(port: int, upstream: Upstream) -> None:
    """Check that a request goes through to its server and an answer comes back."""
    client = Wire(socket.create_connection(("127.0.0.1", port), DEADLINE_S))
    client.send(b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Length: 2\r\n\r\n{}" % port)
    server = upstream.accept()
    assert b"\r\nHost: 127.0.0.1:%d\r\n" % upstream.port in server.head()
    server.take(2)
    server.send(OK)
    assert client.take(len(OK)) == OK
    client.close()


def captures() -> dict[str, int]:
    """Count the captures under each label."""
    recordings = json.loads(run("list", "--json", "--all").stdout)["recordings"]
    labels = [capture["label"] for recording in recordings for capture in recording["captures"]]
    return {label: labels.count(label) for label in labels}


def test_each_server_has_its_port_its_label_and_its_capture(file: Path, upstreams: dict[str, Upstream]) -> None:
    wrapped(file, upstreams)
    urls = {name: entry["url"].partition("#")[0] for name, entry in json.loads(file.read_text())["mcpServers"].items()}
    with All(2) as proxy:
        assert proxy.addresses == urls
        for name, upstream in upstreams.items():
            assert_passes(proxy.port(name), upstream)
        assert "where nothing listens" not in run("wrap", "--status").stdout
        assert proxy.stop() == ""
    assert captures() == {"one": 1, "two": 1}
    assert "where nothing listens" in run("wrap", "--status").stdout


def test_each_server_has_a_control_socket(file: Path, upstreams: dict[str, Upstream]) -> None:
    wrapped(file, upstreams)
    with All(2) as proxy:
        taps = json.loads(run("control", "--json").stdout)["taps"]
        assert sorted(tap["label"] for tap in taps) == ["one", "two"]
        assert run("control", "one", "--intercept", "method:* => status 503", "--keep").returncode == 0
        client = Wire(socket.create_connection(("127.0.0.1", proxy.port("one")), DEADLINE_S))
        body = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
        client.send(
            b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b"
            % (proxy.port("one"), len(body), body)
        )
        assert client.head().startswith(b"HTTP/1.1 503 ")
        client.close()
        assert_passes(proxy.port("two"), upstreams["two"])
        assert proxy.stop() == ""
    assert json.loads(run("control", "--json").stdout)["taps"] == []


def test_a_port_in_use_is_reported_and_tried_again_while_the_others_are_served(
    file: Path, upstreams: dict[str, Upstream]
) -> None:
    wrapped(file, upstreams)
    port = json.loads((Path(os.environ["MCPSPY_HOME"]) / "reserved_ports.json").read_text())["reserved_ports"][0]["port"]
    with socket.create_server(("127.0.0.1", port)) as taken, All(1) as proxy:
        assert proxy.line().startswith(
            f"mcpspy: one: 127.0.0.1:{port}: Address already in use; is there another mcpspy proxy? "
        )
        assert_passes(proxy.port("two"), upstreams["two"])
        taken.close()
        proxy.read(1)
        assert_passes(proxy.port("one"), upstreams["one"])


def test_if_all_ports_are_in_use_it_ends(file: Path, upstreams: dict[str, Upstream]) -> None:
    wrapped(file, upstreams)
    with All(2):
        done = subprocess.run(
            [sys.executable, "-m", "mcpspy", "proxy", "--all"], capture_output=True, timeout=DEADLINE_S, check=False
        )
    assert (done.returncode, done.stdout, done.stderr.count(b"another mcpspy proxy?")) == (4, b"", 2)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM])
def test_a_tap_that_ends_is_reported_and_started_again_and_the_others_go_on(
    file: Path, upstreams: dict[str, Upstream], number: signal.Signals
) -> None:
    wrapped(file, upstreams)
    with All(2) as proxy:
        os.kill(proxy.children()[0], number)
        status = 0 if number == signal.SIGTERM else -number
        assert proxy.line() == f"mcpspy: one: its tap ended with status {status}; it is started again\n"
        proxy.read(1)
        for name, upstream in upstreams.items():
            assert_passes(proxy.port(name), upstream)
        assert proxy.stop() == ""


def test_a_tap_that_ends_again_and_again_waits_for_its_next_start(file: Path, upstreams: dict[str, Upstream]) -> None:
    wrapped(file, upstreams)
    with All(2) as proxy:
        port, (one, other) = proxy.port("one"), proxy.children()
        for _ in range(MAX_ENDS):
            os.kill(one, signal.SIGKILL)
            line = proxy.line()
            if not line.endswith("started again\n"):
                break
            proxy.read(1)
            (one,) = set(proxy.children()) - {other}
        assert line == (
            "mcpspy: one: its tap ended with status -9; it is started again within 60 s, because it has ended 5 times\n"
        )
        run("wrap", "--status")
        assert proxy.children() == [other]
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port), DEADLINE_S)
        assert_passes(proxy.port("two"), upstreams["two"])
        assert proxy.stop() == ""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_to_all_processes_at_once_ends_them_without_a_word(
    file: Path, upstreams: dict[str, Upstream], number: signal.Signals
) -> None:
    wrapped(file, upstreams)
    with All(2) as proxy:
        children = proxy.children()
        os.kill(proxy.process.pid, signal.SIGSTOP)  # until all of them have the signal
        for pid in (*children, proxy.process.pid):
            os.kill(pid, number)
        os.kill(proxy.process.pid, signal.SIGCONT)
        _, stderr = proxy.process.communicate(timeout=DEADLINE_S)
        assert (proxy.process.returncode, stderr) == (0, "")


def test_servers_wrapped_later_are_served_and_unwrapped_ones_go_on(file: Path, upstreams: dict[str, Upstream]) -> None:
    file.write_text(json.dumps({"mcpServers": {name: {"url": upstream.url} for name, upstream in upstreams.items()}}))
    run("wrap", "--server", "one", "--yes", "--without-service")
    with All(1) as proxy:
        run("wrap", "--server", "two", "--yes", "--without-service")
        proxy.read(1)
        run("unwrap", "--server", "one", "--yes")
        for name, upstream in upstreams.items():
            assert_passes(proxy.port(name), upstream)


def test_a_server_that_moved_is_reached_where_it_is_now(file: Path, upstreams: dict[str, Upstream]) -> None:
    wrap(file, {"x": {"url": upstreams["one"].url}})
    with All(1) as proxy:
        port = proxy.port("x")
        wrap(file, {"x": {"url": upstreams["two"].url}})
        proxy.read(1)
        assert proxy.port("x") == port
        assert_passes(port, upstreams["two"])


def test_when_it_is_killed_no_tap_stays(file: Path, upstreams: dict[str, Upstream]) -> None:
    wrapped(file, upstreams)
    with All(2) as proxy:
        proxy.process.kill()
        eventually(lambda: not json.loads(run("wrap", "--status", "--json").stdout)["taps"], "taps to end")
    assert "one  " in run("list").stdout


def test_nothing_wrapped_is_nothing_to_serve() -> None:
    done = run("proxy", "--all")
    assert (done.returncode, "no HTTP server is wrapped" in done.stderr) == (2, True)


@pytest.mark.parametrize("option", [("--label", "x"), ("--listen", "127.0.0.1:0"), ("--header", "A: b"), ("http://h/",)])
def test_options_for_one_server_are_refused_with_all(option: tuple[str, ...]) -> None:
    done = run("proxy", "--all", *option)
    assert (done.returncode, "is for one server, and --all is for many" in done.stderr) == (2, True)


def test_a_proxy_of_nothing_is_a_usage_error() -> None:
    done = run("proxy")
    assert (done.returncode, "--all" in done.stderr) == (2, True)


def test_on_a_terminal_what_passes_is_shown(file: Path, upstreams: dict[str, Upstream]) -> None:
    wrap(file, {"one": {"url": upstreams["one"].url}})
    port = json.loads((Path(os.environ["MCPSPY_HOME"]) / "reserved_ports.json").read_text())["reserved_ports"][0]["port"]
    with on_terminal("proxy", "--all") as running:
        running.wait_for(f"http://127.0.0.1:{port}/mcp  one  ")
        client = Wire(socket.create_connection(("127.0.0.1", port), DEADLINE_S))
        body = b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}'
        client.send(b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Length: %d\r\n\r\n" % (port, len(body)) + body)
        running.wait_for("tools/list")
        client.close()
        assert running.end(signal.SIGTERM) == 0
