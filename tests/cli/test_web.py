"""`mcpspy web` as a program: how it begins and ends, and what it prints. tests/live/test_web.py has what it serves."""

import json
import os
import signal
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.cli.recording import Recording
from tests.cli.terminal import Running, on_pipe, run
from tests.deadlines import DEADLINE_S, eventually


class Served:
    """A `mcpspy web` at work, and a connection to the address that it prints."""

    def __init__(self, running: Running) -> None:
        self.running = running
        url = urlsplit(running.wait_for("Ctrl-C").splitlines()[0])
        self.base = url.path
        self.connection = HTTPConnection("127.0.0.1", url.port, timeout=DEADLINE_S)

    def get(self, path: str) -> HTTPResponse:
        """Request a path below the secret one; the body of the response is not read yet."""
        self.connection.request("GET", self.base + path)
        response = self.connection.getresponse()
        assert response.status == 200
        return response


@contextmanager
def serving(*words: str) -> Iterator[Served]:
    with on_pipe("web", "--port", "0", *words) as running:
        served = Served(running)
        try:
            yield served
        finally:
            served.connection.close()


@pytest.fixture
def recording() -> Recording:
    return Recording().ask(1, "initialize").answer(1).ask(2, name="search").answer(2)


def test_the_address_that_it_prints_is_that_of_the_page(recording: Recording) -> None:
    with serving() as served, served.get("") as response:
        assert recording.id in response.read().decode()


def test_the_captures_of_a_recording_can_be_called_on_a_command_line(recording: Recording) -> None:
    with serving() as served:
        with served.get("recordings") as response:
            (listed,) = json.load(response)
        assert (listed["recording"], listed["client"], listed["servers"], listed["live"]) == (
            recording.id, "claude", ["weather"], True,
        )  # fmt: skip
        with served.get(f"events?recording={listed['recording']}") as stream:
            (address,) = json.loads(stream.readline().removeprefix(b"data: "))["addresses"]
    assert run("show", address).returncode == 0


def test_who_leaves_is_let_go_without_a_word(recording: Recording) -> None:
    with serving() as served:
        connection = served.connection
        connection.request("GET", f"{served.base}events?recording={recording.id}")
        link = connection.sock
        assert link.recv(16)
        link.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.close()
        recording.ask(3, name="unheard").answer(3)
        path = f"/proc/{served.running.process.pid}/fd"
        eventually(
            lambda: recording.path not in {os.readlink(file) for file in Path(path).iterdir() if file.is_symlink()},
            "the file to be let go",
        )
        assert served.running.end() == 0
        assert served.running.text.count("\n") == 2


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_while_a_page_is_open(recording: Recording, number: signal.Signals) -> None:
    with serving() as served, served.get(f"events?recording={recording.id}") as stream:
        assert stream.readline().startswith(b"data: ")
        assert served.running.end(number) == 0
        assert "Traceback" not in served.running.text


def test_a_port_in_use_is_reported_with_advice() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        done = run("web", "--port", str(port))
    assert (done.returncode, done.stdout) == (4, "")
    assert done.stderr == f"mcpspy: 127.0.0.1:{port}: Address already in use; for another port: mcpspy web --port 0\n"
