"""Controllers of an HTTP tap that die at any instant, and intercepts by chance: what the client gets, byte for byte."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from mcpspy.capture.file.verify import Status, verify
from mcpspy.records import Intercept, Note
from tests.live.http.ends import Proxy, Wire, chunk
from tests.live.http.test_intercepts import JSON, event
from tests.live.stdio.test_control import ODD_REQUESTS, Controller, socket_in

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.tiers import Tier

STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


def call(id: int, tool: str = "search", padding: int = 0) -> bytes:
    arguments = {"x": "y" * padding}
    return json.dumps(
        {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}
    ).encode()


def answer_to(body: bytes) -> bytes:
    """Return the whole response of the server: JSON for an even id, events for an odd one."""
    message = json.loads(body)
    result = json.dumps({"jsonrpc": "2.0", "id": message.get("id"), "result": {"heard": message.get("params")}}).encode()
    if isinstance(message.get("id"), int) and message["id"] % 2:
        return STREAM + chunk(event(result)) + b"0\r\n\r\n"
    return b"HTTP/1.1 200 OK\r\n" + JSON + b"\r\nContent-Length: %d\r\n\r\n%b" % (len(result), result)


class _Answering(BaseHTTPRequestHandler):
    """A server that answers each POST at once, with the same bytes for the same request."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.wfile.write(answer_to(self.rfile.read(int(self.headers["Content-Length"]))))

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@contextmanager
def answered(capture: Path, *options: str) -> Iterator[Proxy]:
    """Run such a server, and mcpspy in front of it."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Answering)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    proxy = Proxy(f"http://127.0.0.1:{server.server_address[1]}/mcp", capture, *options)
    try:
        yield proxy
    finally:
        proxy.end()
        server.shutdown()
        thread.join()
        server.server_close()


NO_SESSIONS: list[Any] = [None, [], "x", 7]
NO_TARGETS: list[Any] = [None, {}, "/mcp", 7]
NO_FIELDS: list[Any] = [None, [], [[1, 2]], [["a"]], {"a": 1}, "ab"]
ODD_SESSIONS: list[dict[str, Any]] = [
    {"do": "send", "payload": call(1).decode(), "session": session, "target": target, "fields": fields}
    for session in NO_SESSIONS
    for target in NO_TARGETS
    for fields in NO_FIELDS
]


def test_no_request_of_a_controller_that_makes_no_sense_costs_a_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MCPSPY_HOME", str(tmp_path))
    with answered(tmp_path / "x.mcpspy") as proxy:
        controller = Controller(socket_in(tmp_path))
        for number, request in enumerate([*ODD_REQUESTS, *ODD_SESSIONS]):
            assert isinstance(controller.raw(json.dumps(request).encode())["ok"], bool), request
            if not number % 20:
                wire = proxy.connect()
                wire.send(proxy.request(body=call(number * 2)))
                assert wire.take(len(answer_to(call(number * 2)))) == answer_to(call(number * 2))
        controller.leave()
        assert proxy.stop() == ""


def asked(proxy: Proxy, body: bytes) -> bytes:
    return proxy.request(b"POST /mcp", JSON, body=body)


def body_of(wire: Wire) -> bytes:
    """Read a response, and return its body or its events."""
    head = wire.head()
    length = re.search(rb"(?i)\r\ncontent-length: (\d+)", head)
    if length is not None:
        return wire.take(int(length[1]))
    data = b""
    while size := int(wire.until(b"\r\n"), 16):
        data += wire.take(size + 2)[:-2]
    assert wire.take(2) == b"\r\n"
    return data


def expected(body: bytes) -> bytes:
    """Return what `body_of` reads of the server's own response."""
    head, _, rest = answer_to(body).partition(b"\r\n\r\n")
    return rest if b"Content-Length" in head else rest[rest.index(b"\r\n") + 2 : -len(b"\r\n0\r\n\r\n")]


CONTROLLER = """
import json, os, socket, sys
s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1])
texts = ("tool:search => delay 1m", "tool:search => hold", "kind:result => reorder 1m", "kind:result => hold", "tool:x => drop")
for text in texts[int(sys.argv[2]):]:
    s.sendall(json.dumps({"do": "intercept", "text": text}).encode() + b"\\n")
    s.recv(4096)
call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "search"}}
facts = {"session": "", "target": "/mcp", "fields": []}
s.sendall(json.dumps({"do": "send", "payload": json.dumps(call), **facts}).encode() + b"\\n")
print(flush=True)
s.recv(1)
"""


@pytest.mark.parametrize("kills", [15, pytest.param(200, marks=pytest.mark.soak)])
def test_a_tap_whose_controllers_are_killed_goes_on_as_if_there_had_never_been_one(
    kills: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Requests come in random pieces while controllers add what matches nothing, or delays, send calls, and are killed."""
    monkeypatch.setenv("MCPSPY_HOME", str(tmp_path / "home"))
    random = Random(7)
    with answered(tmp_path / "killed.mcpspy") as proxy:
        path = socket_in(tmp_path / "home")
        wire = proxy.connect()
        for turn in range(kills):
            body = call(turn, padding=turn)
            data = asked(proxy, body)
            command = [sys.executable, "-I", "-S", "-c", CONTROLLER, str(path), str(random.randrange(5))]
            if random.random() < 0.5:
                cut = random.randrange(len(data) + 1)
                wire.send(data[:cut])
                data = data[cut:]
            with subprocess.Popen(command, stdout=subprocess.PIPE) as controller:
                assert controller.stdout is not None
                if random.random() < 0.7:
                    controller.stdout.readline()
                cut = random.randrange(len(data) + 1)
                wire.send(data[:cut])
                controller.send_signal(signal.SIGKILL)
                wire.send(data[cut:])
            assert body_of(wire) == expected(body)
        left = Controller(path)
        assert left.ask(do="status")["intercepts"] == left.ask(do="status")["held"] == []
        left.leave()
        proxy.stop()
        assert verify(str(proxy.capture)).status is Status.INTACT
        assert not [record.text for record in proxy.found(Note) if record.topic == "fault"]


RULES = (
    "tool:search => set result.heard=7 p=0.3",
    'tool:search => garbage "hm" p=0.3',
    "tool:search => truncate 30 p=0.3",
    "kind:result => delay 1ms..20ms p=0.3",
    'tool:search => error -32000 "no" p=0.2',
    "tool:search => set params.arguments.n=1 p=0.4",
)


def test_the_same_seed_sends_the_same_bytes_over_http_as_json_and_as_events(tmp_path: Path, tier: Tier) -> None:
    got: list[list[bytes]] = []
    count = tier(sample=40, more=100, full=1000)
    for nth, seed in enumerate(("7", "7", "8")):
        options = [word for rule in RULES for word in ("--intercept", rule)]
        with answered(tmp_path / f"{nth}.mcpspy", "--seed", seed, *options) as proxy:
            wire = proxy.connect()
            got.append([])
            for id in range(count):
                wire.send(asked(proxy, call(id)))
                got[-1].append(body_of(wire))
            proxy.stop()
            actions = {record.action.partition(" ")[0] for record in proxy.found(Intercept)}
            assert actions == {"set", "garbage", "truncate", "delay", "error"}
    first, second, other = got
    assert first == second
    assert first != other
    assert any(body == expected(call(id)) for id, body in enumerate(first))
