"""Restarts of a server under a client that lives: no call is lost, none is sent twice, and the capture tells one story."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import mcpspy
from mcpspy.records import Exit, Frame, Note, Record
from mcpspy.transcript.findings.run import all_findings
from mcpspy.transcript.transcribe import transcribe
from tests.cli.terminal import run
from tests.deadlines import DEADLINE_S, SCENE_S, eventually
from tests.live.client import MCPSPY, Client
from tests.live.stdio.test_control import Controller, socket_in

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.conftest import Peer
    from tests.tiers import Tier

SERVER = """
import json, os, sys, time
VERSION = "one"
{begin}
def say(message):
    print(json.dumps({{"jsonrpc": "2.0", **message}}), flush=True)
for line in sys.stdin:
    heard_ns = time.monotonic_ns()
    message = json.loads(line)
    method, params = message.get("method"), message.get("params", {{}})
    with open(os.environ["HEARD"], "a") as file:
        print(VERSION, line.strip(), file=file)
    if method is None:
        say({{"method": "notifications/message", "params": {{"level": "info", "data": message["result"]}}}})
    elif "id" not in message:
        pass
    elif method == "initialize":
        result = {{"protocolVersion": "2025-06-18", "capabilities": {{"tools": {{"listChanged": True}}}}}}
        say({{"id": message["id"], "result": {{**result, "serverInfo": {{"name": "weather", "version": VERSION}}}}}})
    elif method == "tools/list":
        tool = {{"name": "forecast", "description": VERSION, "inputSchema": {{"type": "object"}}}}
        say({{"id": message["id"], "result": {{"tools": [tool]}}}})
    elif method == "subscriptions/listen":
        pass
    elif method == "tools/call":
        wish = params["arguments"]
        if "ask" in wish:
            say({{"id": 1, "method": "roots/list"}})
        while "until" in wish and not os.path.exists(wish["until"]):
            time.sleep(0.005)
        if "never" not in wish:
            times = {{"heard_ns": heard_ns, "said_ns": time.monotonic_ns()}} if "times" in wish else {{}}
            say({{"id": message["id"], "result": {{"content": [{{"type": "text", "text": VERSION}}], **times}}}})
    else:
        say({{"id": message["id"], "result": {{}}}})
"""

OPENING = {
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {"roots": {}}, "clientInfo": {"name": "lab", "version": "1"}},
}


class Bench:
    """A client that a test plays, in front of a server whose program it can change."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.folder = folder
        self.heard_file = folder / "heard"
        self.program = folder / "server.py"
        self.change("one")
        environment = {"HEARD": str(self.heard_file)}
        self.client = Client([sys.executable, "-I", "-S", str(self.program)], *options, environment=environment)
        self._last_id = 0

    def change(self, version: str, begin: str = "") -> None:
        """Make the server another one, as an editor does: by a new file in place of the old one."""
        new = self.folder / "new"
        new.write_text(SERVER.format(begin=begin).replace('"one"', f'"{version}"'), encoding="utf-8")
        new.rename(self.program)

    def heard(self) -> list[tuple[str, Any]]:
        """Return what servers heard, each with the version of the server."""
        lines = self.heard_file.read_text(encoding="utf-8").splitlines()
        return [(version, json.loads(text)) for version, _, text in (line.partition(" ") for line in lines)]

    def send(self, **message: Any) -> int:
        """Send a message; a request gets an id, which is returned."""
        if "method" in message and not message["method"].startswith("notifications/"):
            self._last_id += 1
            message["id"] = self._last_id
        self.client.send(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        return self._last_id

    def call(self, **arguments: Any) -> int:
        return self.send(method="tools/call", params={"name": "forecast", "arguments": arguments})

    def get(self) -> Any:
        """Read the next message."""
        return json.loads(self.client.line())

    def said(self) -> str:
        """Call the tool, and return its answer."""
        id = self.call()
        answer = self.get()
        assert answer["id"] == id
        return str(answer["result"]["content"][0]["text"])

    def open(self) -> None:
        """Do the handshake, and list the tools."""
        self.send(**OPENING)
        self.get()
        self.send(method="notifications/initialized")
        self.send(method="tools/list")
        self.get()

    def end(self) -> list[Record]:
        """Leave; return what was recorded."""
        self.client.close(self.client.stdin)
        self.client.rest()
        self.client.wait()
        return self.client.records()


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MCPSPY_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def bench(tmp_path: Path, home: Path) -> Iterator[Callable[..., Bench]]:
    made: list[Bench] = []

    def make(*options: str) -> Bench:
        made.append(Bench(tmp_path, *options))
        return made[-1]

    yield make
    for each in made:
        each.client.__exit__(None, None, None)


def control(*arguments: str) -> subprocess.CompletedProcess[str]:
    return run("control", *arguments)


def restart(home: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Restart the only server that runs."""
    return control(socket_in(home).stem, "--restart", *options)


def phases(records: list[Record]) -> list[str]:
    return [record.extra["phase"] for record in records if isinstance(record, Note) and record.topic == "restart"]


def restarted(controller: Controller) -> dict[str, Any]:
    """Restart, and wait until it is done."""
    begun = controller.ask(do="restart")["restart"]

    def done() -> dict[str, Any] | None:
        state: dict[str, Any] = controller.ask(do="status")["restart"]
        return state if state["number"] > begun["number"] or state["state"] != "starting" else None

    return eventually(done, "the restart")


CHANGED = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}


@pytest.mark.grid(1)
@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_no_call_of_a_busy_client_is_lost_or_waits_for_a_restart(home: Path, peer: Peer, tier: Tier, mode: str) -> None:
    command = [*MCPSPY, "run", "--reload", "--watch", str(Path(__file__)), "--", *peer("pyserver.py"), "stdio"]
    client = subprocess.Popen(
        [*peer("steadyclient.py"), mode, "3", *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert client.stdin is not None
        assert client.stdout is not None
        assert client.stdout.readline() == "ready\n"
        controller = Controller(socket_in(home))
        assert controller.ask(do="follow")["knows"]
        for _ in range(tier(sample=5, more=20, full=100)):
            assert restarted(controller)["state"] == "done"
        controller.leave()
        counts = json.loads(client.communicate(timeout=SCENE_S)[0])
        assert client.returncode == 0
    finally:
        client.kill()
        client.communicate()
    assert counts["wrong"] == []
    assert counts["calls"] > 100
    (capture,) = (home / "captures").glob("*.mcpspy")
    records = list(mcpspy.read(capture))
    sent = [record.data for record in records if isinstance(record, Frame) and record.stream == 0]
    assert len(sent) == len(set(sent))
    assert [finding for finding in all_findings(transcribe(records)) if finding.severity != "note"] == []


WAIT_NS = 50_000_000
START_S = 0.4
"""So long a server takes to start here. A call that waited for a restart would wait as long."""


def test_no_call_waits_longer_than_its_answer_takes(bench: Callable[..., Bench], home: Path, tier: Tier) -> None:
    """The server's clock says how long an answer took, and the capture how long the client waited for it."""
    lab = bench("--reload", "--watch", str(Path(__file__)))
    lab.open()
    lab.change("two", begin=f"time.sleep({START_S})")
    controller = Controller(socket_in(home))
    assert controller.ask(do="follow")["knows"]
    is_over = threading.Event()
    answers: list[Any] = []

    def call_all_the_time() -> None:
        while not is_over.is_set():
            id = lab.call(times=1)
            while (message := lab.get()).get("id") != id:
                assert message == CHANGED
            answers.append(message["result"])

    client = threading.Thread(target=call_all_the_time)
    client.start()
    try:
        for _ in range(tier(sample=4, more=20, full=100)):
            assert restarted(controller)["state"] == "done"
    finally:
        is_over.set()
        client.join(DEADLINE_S)
    controller.leave()
    calls = [row for row in transcribe(lab.end()).exchanges if row.method == "tools/call"]
    assert len(calls) == len(answers) > 100
    waits_ns = sorted(
        (row.duration_ns or 0) - (row.response.result["said_ns"] - row.response.result["heard_ns"])
        for row in calls
        if row.response is not None
    )
    assert len(waits_ns) == len(calls)
    assert waits_ns[len(waits_ns) * 999 // 1000] < WAIT_NS  # a machine with other work makes any process wait now and then
    assert waits_ns[-1] < START_S * 1e9


def test_a_change_of_a_file_restarts_the_server_and_the_client_is_told_what_changed(bench: Callable[..., Bench]) -> None:
    lab = bench("--reload")
    lab.open()
    assert lab.said() == "one"
    lab.change("two")
    assert lab.get() == CHANGED
    assert lab.said() == "two"
    records = lab.end()
    assert phases(records) == ["begin", "done", "ended"]
    transcript = transcribe(records)
    assert [row.method for row in transcript.exchanges] == ["initialize", "tools/list", "tools/call", "tools/call"]
    assert all_findings(transcript) == []
    told = [message for version, message in lab.heard() if version == "two"]
    assert told[0] == {"jsonrpc": "2.0", **OPENING, "id": 1}
    assert [message["method"] for message in told] == ["initialize", "notifications/initialized", "tools/list", "tools/call"]


def test_a_list_that_has_not_changed_is_not_announced(bench: Callable[..., Bench], home: Path) -> None:
    lab = bench()
    lab.open()
    assert restart(home).returncode == 0
    assert lab.said() == "one"
    lab.end()


def test_a_tap_that_kept_nothing_learns_the_handshake_from_its_capture(bench: Callable[..., Bench], home: Path) -> None:
    lab = bench()
    lab.open()
    lab.send(method="logging/setLevel", params={"level": "debug"})
    lab.get()
    for uri in ("a:1", "a:2"):
        lab.send(method="resources/subscribe", params={"uri": uri})
        lab.get()
    lab.send(method="resources/unsubscribe", params={"uri": "a:1"})
    lab.get()
    lab.change("two")
    assert restart(home).returncode == 0
    assert lab.get() == CHANGED
    assert lab.said() == "two"
    told = [message for version, message in lab.heard() if version == "two"]
    assert [message["method"] for message in told] == [
        "initialize",
        "notifications/initialized",
        "logging/setLevel",
        "resources/subscribe",
        "tools/list",
        "tools/call",
    ]
    assert told[3]["params"] == {"uri": "a:2"}
    lab.end()


def test_a_call_in_flight_gets_its_answer_from_the_old_server_and_later_calls_from_the_new_one(
    bench: Callable[..., Bench], home: Path, tmp_path: Path
) -> None:
    lab = bench()
    lab.open()
    slow = lab.call(until=str(tmp_path / "go"))
    lab.change("two")
    assert restart(home).returncode == 0
    assert lab.get() == CHANGED
    assert lab.said() == "two"
    (tmp_path / "go").touch()
    answer = lab.get()
    assert (answer["id"], answer["result"]["content"][0]["text"]) == (slow, "one")
    heard = [message["id"] for _, message in lab.heard() if message.get("method") == "tools/call"]
    assert len(heard) == len(set(heard))
    lab.end()


@pytest.mark.parametrize("option", [(), ("--stop-first",)], ids=["beside", "stop-first"])
def test_a_call_that_the_old_server_never_answers_is_answered_after_the_grace_time(
    bench: Callable[..., Bench], home: Path, option: tuple[str, ...]
) -> None:
    lab = bench("--reload", "--grace", "100ms")
    lab.open()
    hanging = lab.call(never=True)
    assert restart(home, *option).returncode == 0
    answer = lab.get()
    assert answer["id"] == hanging
    assert answer["error"]["message"] == "mcpspy: the server was restarted before it answered"
    assert lab.said() == "one"
    assert all_findings(transcribe(lab.end())) == []


def test_a_server_that_does_not_start_leaves_the_old_one_in_place(bench: Callable[..., Bench], home: Path) -> None:
    lab = bench()
    lab.open()
    lab.change("two", begin="sys.exit('no luck')")
    failed = restart(home)
    assert failed.returncode == 1
    assert "--stop-first" in failed.stderr
    assert "no luck" in failed.stderr
    assert lab.said() == "one"
    lab.change("three")
    assert restart(home).returncode == 0
    assert lab.get() == CHANGED
    assert lab.said() == "three"
    (note,) = (record for record in lab.end() if isinstance(record, Note) and record.extra.get("phase") == "failed")
    assert note.extra["log"] == "no luck"


PORT = """
import socket
listener = socket.socket()
listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
listener.bind(("127.0.0.1", int(open(os.environ["HEARD"] + ".port").read())))
listener.listen()
"""


def test_a_server_that_holds_a_port_is_restarted_when_the_old_one_has_ended(
    bench: Callable[..., Bench], home: Path, tmp_path: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        (tmp_path / "heard.port").write_text(str(free.getsockname()[1]), encoding="utf-8")
    lab = bench()
    lab.open()
    lab.change("two", begin=PORT)
    assert restart(home).returncode == 0
    lab.get()
    lab.change("three", begin=PORT)
    failed = restart(home)
    assert failed.returncode == 1
    assert "--stop-first" in failed.stderr
    with subprocess.Popen([*MCPSPY, "control", socket_in(home).stem, "--restart", "--stop-first"]) as waiting:
        eventually(lambda: phases(lab.client.records()).count("begin") == 3, "the third restart")
        id = lab.call()
        assert waiting.wait(DEADLINE_S) == 0
    assert lab.get() == CHANGED
    answer = lab.get()
    assert (answer["id"], answer["result"]["content"][0]["text"]) == (id, "three")
    lab.end()


def test_without_a_server_calls_are_answered_until_the_next_restart(bench: Callable[..., Bench], home: Path) -> None:
    lab = bench()
    lab.open()
    lab.change("two", begin="sys.exit(3)")
    assert restart(home, "--stop-first").returncode == 1
    lab.call()
    assert "no server runs" in lab.get()["error"]["message"]
    lab.change("three")
    assert restart(home).returncode == 0
    assert lab.get() == CHANGED
    assert lab.said() == "three"
    assert all_findings(transcribe(lab.end())) == []


def test_a_server_that_dies_under_reload_is_replaced_at_the_next_change(bench: Callable[..., Bench]) -> None:
    lab = bench("--reload")
    lab.open()
    os.kill(lab.client.recorded(mcpspy.Spawn).pid, 9)
    lab.client.recorded(Exit)
    lab.call()
    assert "error" in lab.get()
    lab.change("two")
    assert lab.get() == CHANGED
    assert lab.said() == "two"
    lab.end()


def test_the_status_is_that_of_the_last_server(bench: Callable[..., Bench], home: Path) -> None:
    lab = bench("--reload")
    lab.open()
    lab.change("two", begin="import atexit; atexit.register(lambda: os._exit(7))")
    assert lab.get() == CHANGED
    lab.client.recorded(Note, text="server 1 has ended (exit 0)")
    lab.end()
    assert lab.client.process.returncode == 7


def test_answers_go_to_the_server_that_asked_though_both_use_one_id(
    bench: Callable[..., Bench], home: Path, tmp_path: Path
) -> None:
    lab = bench()
    lab.open()
    slow = lab.call(ask=True, until=str(tmp_path / "go"))
    first = lab.get()
    lab.change("two")
    assert restart(home).returncode == 0
    assert lab.get() == CHANGED
    lab.call(ask=True)
    second = lab.get()
    assert lab.get()["result"]["content"][0]["text"] == "two"
    assert first["id"] != second["id"]
    lab.send(id=second["id"], result="for two")
    assert lab.get()["params"]["data"] == "for two"
    lab.send(id=first["id"], result="for one")
    (tmp_path / "go").touch()
    assert {lab.get().get("id"), lab.get().get("id")} == {slow, None}
    assert [(version, message["id"]) for version, message in lab.heard() if "result" in message] == [("two", 1), ("one", 1)]
    lab.end()


def test_a_question_of_a_server_that_has_ended_is_withdrawn_and_its_answer_goes_nowhere(
    bench: Callable[..., Bench], home: Path
) -> None:
    lab = bench("--reload", "--grace", "100ms")
    lab.open()
    lab.call(ask=True, never=True)
    question = lab.get()
    assert restart(home).returncode == 0
    assert "error" in lab.get()
    withdrawn = lab.get()
    assert (withdrawn["method"], withdrawn["params"]["requestId"]) == ("notifications/cancelled", question["id"])
    lab.send(id=question["id"], result="late")
    assert lab.said() == "one"
    assert not [message for _, message in lab.heard() if message.get("result") == "late"]
    assert all_findings(transcribe(lab.end())) == []


def test_restarts_that_are_asked_for_during_a_restart_become_one(
    bench: Callable[..., Bench], home: Path, tmp_path: Path
) -> None:
    go = tmp_path / "go"
    lab = bench("--reload", "--watch", str(Path(__file__)))
    lab.open()
    lab.change("two", begin=f"while not os.path.exists({str(go)!r}): time.sleep(0.005)")
    controller = Controller(socket_in(home))
    for _ in range(5):
        assert controller.ask(do="restart")["ok"]
    go.touch()
    eventually(lambda: phases(lab.client.records()).count("done") == 2, "two")
    assert lab.get() == CHANGED
    assert lab.said() == "two"
    controller.leave()
    assert phases(lab.end()).count("begin") == 2


def test_intercepts_act_before_and_after_a_restart(bench: Callable[..., Bench], home: Path) -> None:
    lab = bench("--reload", "--intercept", 'kind:result tool:forecast => set result.content[0].text="ours"')
    lab.open()
    assert lab.said() == "ours"
    assert restart(home).returncode == 0
    assert lab.said() == "ours"
    controller = Controller(socket_in(home))
    assert controller.ask(do="intercept", text='tool:forecast => error 7 "no"')["ok"]
    lab.call()
    assert lab.get()["error"]["code"] == 7
    controller.leave()
    second = Controller(socket_in(home))
    eventually(lambda: len(second.ask(do="status")["intercepts"]) == 1, "the controller to leave")
    second.leave()
    assert lab.said() == "ours"
    lab.end()


def test_a_modern_client_is_told_by_its_subscription_which_the_new_server_gets_too(
    bench: Callable[..., Bench], home: Path
) -> None:
    lab = bench()
    lab.send(method="tools/list")
    lab.get()
    listening = lab.send(method="subscriptions/listen", params={"notifications": {"toolsListChanged": True}})
    lab.change("two")
    assert restart(home).returncode == 0
    meta = {"io.modelcontextprotocol/subscriptionId": listening}
    assert lab.get() == {**CHANGED, "params": {"_meta": meta}}
    assert lab.said() == "two"
    methods = [message["method"] for version, message in lab.heard() if version == "two"]
    assert methods == ["tools/list", "subscriptions/listen", "tools/call"]
    lab.end()


def test_a_replayed_session_is_the_one_that_the_client_saw(bench: Callable[..., Bench], home: Path) -> None:
    lab = bench("--reload")
    lab.open()
    assert restart(home).returncode == 0
    assert lab.said() == "one"
    lab.end()
    capture = str(lab.client.capture)
    verified = subprocess.run([*MCPSPY, "verify", capture], capture_output=True, timeout=DEADLINE_S, check=False)
    assert verified.returncode == 0
    command = [*MCPSPY, "replay", capture, "--yes", "--", sys.executable, "-I", "-S", str(lab.program)]
    environment = {**os.environ, "HEARD": str(lab.folder / "again")}
    replayed = subprocess.run(command, capture_output=True, text=True, timeout=SCENE_S, check=False, env=environment)
    assert replayed.returncode == 0, replayed.stdout + replayed.stderr
