"""The control socket of a tap: intercepts are added to a server that runs, and undone when their controller leaves or dies."""

from __future__ import annotations

import json
import os
import signal
import socket
import stat
import subprocess
import sys
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from mcpspy.platform.control_sockets import MAX_CONTROLLERS
from mcpspy.records import Intercept, Note
from mcpspy.transcript.findings.run import all_findings
from mcpspy.transcript.transcribe import transcribe
from tests.cli import terminal
from tests.deadlines import DEADLINE_S, eventually
from tests.intercept.making import call, line
from tests.live.client import MCPSPY, Client
from tests.live.stdio.test_intercepts import ANSWERER, SERVER_COMMAND

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MCPSPY_HOME", str(tmp_path))
    return tmp_path


def socket_in(home: Path) -> Path:
    """Wait for the one socket, and return its path."""
    return eventually(lambda: next((home / "live").glob("*.sock"), None), "a control socket")


class Controller:
    """A connection to a tap, as docs/control.md describes it."""

    def __init__(self, path: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(DEADLINE_S)
        self._socket.connect(str(path))
        self._lines = self._socket.makefile("rb")

    def ask(self, **request: Any) -> dict[str, Any]:
        self._socket.sendall(json.dumps(request).encode() + b"\n")
        return dict(json.loads(self._lines.readline()))

    def raw(self, line: bytes) -> dict[str, Any]:
        self._socket.sendall(line + b"\n")
        while "event" in (answer := dict(json.loads(self._lines.readline()))):
            pass
        return answer

    def event(self) -> dict[str, Any]:
        """Wait for the next event."""
        return dict(json.loads(self._lines.readline()))

    def leave(self) -> None:
        self._lines.close()
        self._socket.close()


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return terminal.run("control", *arguments)


def error_of(answer: bytes) -> Any:
    return json.loads(answer).get("error", {}).get("message")


def answered(client: Client, id: int) -> Any:
    client.send(call(id))
    return error_of(client.line())


def test_an_intercept_is_added_to_a_server_that_runs_and_undone_when_its_controller_leaves(home: Path) -> None:
    with Client(SERVER_COMMAND) as client:
        assert answered(client, 1) is None
        path = socket_in(home)
        controller = Controller(path)
        assert controller.ask(do="intercept", text='tool:search => error 7 "by us"') == {"ok": True, "id": 1}
        assert answered(client, 2) == "by us"
        assert [listed["text"] for listed in controller.ask(do="status")["intercepts"]] == ['tool:search => error 7 "by us"']
        controller.leave()
        second = Controller(path)
        eventually(lambda: second.ask(do="status")["intercepts"] == [], "the controller has left")
        assert answered(client, 3) is None
        second.leave()
        client.close(client.stdin)
        client.rest()
        assert client.wait() == 0
        records = client.records()
    assert not path.exists()
    assert [record.sent for record in records if isinstance(record, Intercept)] == ["nothing"]
    notes = [record.text.split(") ")[1] for record in records if isinstance(record, Note) and record.topic == "control"]
    assert notes == ['added intercept 1: tool:search => error 7 "by us"', "left"]
    assert all(finding.culprit == "unclear" for finding in all_findings(transcribe(records)))


def test_the_socket_is_private_and_can_be_switched_off(home: Path) -> None:
    with Client(SERVER_COMMAND) as client:
        path = socket_in(home)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        client.close(client.stdin)
        client.wait()
    with Client(SERVER_COMMAND, "--no-control") as client:
        assert answered(client, 1) is None
        assert not list((home / "live").glob("*"))
        client.close(client.stdin)
        client.wait()


def test_a_path_that_is_too_long_for_a_socket_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if sys.platform != "linux":
        pytest.skip("only Linux has a way around the limit")
    home = tmp_path / ("long" * 30)
    monkeypatch.setenv("MCPSPY_HOME", str(home))
    with Client(SERVER_COMMAND, "--label", "weather") as client:
        socket_in(home)
        assert "weather" in run().stdout
        client.close(client.stdin)
        client.wait()


def test_a_socket_that_a_killed_tap_left_is_removed(home: Path) -> None:
    with Client(SERVER_COMMAND) as client:
        path = socket_in(home)
        client.process.kill()
        client.process.wait()
    assert path.exists()
    assert run("--json").stdout == '{\n  "schema": 1,\n  "taps": []\n}\n'
    assert not path.exists()


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="only root can become another user")
def test_another_user_is_refused(home: Path) -> None:
    with Client(SERVER_COMMAND) as client:
        path = socket_in(home)
        # the mode lets it in, so that the tap itself has to refuse
        outer = (
            "import os, socket, sys; os.chdir(os.path.dirname(sys.argv[1])); name = os.path.basename(sys.argv[1]); "
            "os.chmod(name, 0o666); os.setuid(65534); "
            "s = socket.socket(socket.AF_UNIX); s.connect(name); os._exit(len(s.recv(9)))"
        )
        path.parent.chmod(0o755)
        subprocess.run([sys.executable, "-I", "-S", "-c", outer, str(path)], timeout=DEADLINE_S, check=True)
        note = client.recorded(Note, topic="control")
        assert note.text == "a process of user 65534 was refused at the control socket"
        client.close(client.stdin)
        client.wait()


def test_two_controllers_do_not_undo_each_others_intercepts(home: Path) -> None:
    with Client(SERVER_COMMAND) as client:
        path = socket_in(home)
        first, second = Controller(path), Controller(path)
        assert first.ask(do="intercept", text='tool:search => error 1 "first"')["ok"]
        assert second.ask(do="intercept", text='tool:search => error 2 "second"')["ok"]
        assert answered(client, 1) == "first"
        first.leave()
        eventually(lambda: len(second.ask(do="status")["intercepts"]) == 1, "the controller has left")
        assert answered(client, 2) == "second"
        assert second.ask(do="keep")["ok"]
        second.leave()
        assert answered(client, 3) == "second"
        third = Controller(path)
        assert third.ask(do="remove", id=2)["ok"]
        assert answered(client, 4) is None
        third.leave()
        client.close(client.stdin)
        client.wait()


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        ({"do": "dance"}, "there is nothing to do that is called 'dance'"),
        ({"do": "intercept"}, "intercept needs a text, and answers are an object"),
        ({"do": "intercept", "text": "tool:x => dance"}, "there is no action “dance”"),
        ({"do": "intercept", "text": "tool:x => respond /etc/passwd"}, "/etc/passwd was not sent along"),
        ({"do": "remove", "id": 9}, "there is no intercept 9 of a controller"),
    ],
)
def test_a_request_that_is_not_done_says_why(home: Path, request_: dict[str, Any], words: str) -> None:
    with Client(SERVER_COMMAND) as client:
        controller = Controller(socket_in(home))
        answer = controller.ask(**request_)
        assert not answer["ok"]
        assert words in answer["error"]
        assert answered(client, 1) is None
        controller.leave()
        client.close(client.stdin)
        client.wait()


def test_the_verb_lists_adds_and_removes(home: Path) -> None:
    with Client(SERVER_COMMAND, "--label", "weather") as client:
        socket_in(home)
        assert "weather" in run().stdout
        added = run("weather", "--intercept", 'tool:search => error 7 "by us"', "--keep")
        assert added.returncode == 0, added.stderr
        assert answered(client, 1) == "by us"
        (tap,) = json.loads(run("weather", "--json").stdout)["taps"]
        assert [intercept["id"] for intercept in tap["intercepts"]] == [1]
        assert run("weather", "--remove", "1").returncode == 0
        assert answered(client, 2) is None
        assert run("sunshine").returncode == 2
        client.close(client.stdin)
        client.wait()


NO_IDS: list[Any] = [[], {}, None, "1", 1e300, -1]
NO_INTERCEPTS: list[Any] = [None, 7, [], "", "\ud800", "x" * 100_000, "(" * 20_000, "tool:x => hold 9e9s"]
NO_ANSWERS: list[Any] = [None, [], {"f": 7}, {"f": "\ud800"}]
NO_PAYLOADS: list[Any] = [None, 7, "", "{", "[]", "7", '{"id":1}', "\ud800", "[" * 100_000]
NO_MESSAGES: list[Any] = [None, 7, "ab", {"a": 1}, [["client"]], [["client", 7]]]
ODD_REQUESTS: list[Any] = [
    *([], 7, None, "status", {}, {"do": None}, {"do": []}, {"do": {"do": "status"}}),
    *({"do": what, "id": id} for what in ("remove", "release", "drop", "edit", "cancel") for id in NO_IDS),
    *({"do": "intercept", "text": text} for text in NO_INTERCEPTS),
    *({"do": "intercept", "text": "tool:x => respond f", "answers": answers} for answers in NO_ANSWERS),
    *({"do": "send", "payload": payload} for payload in NO_PAYLOADS),
    *({"do": "restart", "messages": messages} for messages in NO_MESSAGES),
    {"do": "send", "payload": call(1).decode().strip(), "session": [], "target": {}, "fields": 7},
]


def test_no_request_that_makes_no_sense_costs_a_message(home: Path) -> None:
    with Client(SERVER_COMMAND) as client:
        controller = Controller(socket_in(home))
        for number, request in enumerate(ODD_REQUESTS):
            answer = controller.raw(json.dumps(request).encode())
            assert isinstance(answer["ok"], bool), request
            if not number % 10:
                assert answered(client, number) is None
        for junk in (b"", b"\x00", b"\xff" * 100, b'{"do":', b"[" * 100_000, b"{}{}"):
            assert controller.raw(junk)["ok"] is False
        controller.leave()
        assert answered(client, 1_000) is None
        client.close(client.stdin)
        assert client.rest() == b""
        assert client.wait() == 0


def test_so_many_controllers_and_no_more_are_served(home: Path) -> None:
    with Client(SERVER_COMMAND) as client:
        path = socket_in(home)
        controllers = [Controller(path) for _ in range(MAX_CONTROLLERS)]
        assert all(controller.ask(do="status")["ok"] for controller in controllers)
        with socket.socket(socket.AF_UNIX) as another:
            another.settimeout(DEADLINE_S)
            another.connect(str(path))
            assert another.recv(1) == b""
        controllers.pop().leave()
        eventually(lambda: "weather" in run().stdout or "pid" in run().stdout, "room for another")
        for controller in controllers:
            controller.leave()
        assert answered(client, 1) is None
        client.close(client.stdin)
        client.wait()


@pytest.mark.parametrize("what", ["missing", "open to others", "a link", "a dangling link", "a file"])
def test_the_folder_of_sockets_is_private_or_there_is_no_socket(home: Path, tmp_path: Path, what: str) -> None:
    live, elsewhere = home / "live", tmp_path / "elsewhere"
    elsewhere.mkdir(mode=0o755)
    match what:
        case "open to others":
            live.mkdir()
            live.chmod(0o777)
        case "a link":
            live.symlink_to(elsewhere)
        case "a dangling link":
            live.symlink_to(tmp_path / "nothing")
        case "a file":
            live.write_text("mine")
    with Client(SERVER_COMMAND) as client:
        assert answered(client, 1) is None
        if what in ("missing", "open to others"):
            socket_in(home)
            assert stat.S_IMODE(live.lstat().st_mode) == 0o700
        client.close(client.stdin)
        assert client.wait() == 0
    assert (stat.S_IMODE(elsewhere.stat().st_mode), os.listdir(elsewhere)) == (0o755, [])
    assert not (tmp_path / "nothing").exists()


def test_a_home_that_is_made_for_a_socket_alone_is_private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MCPSPY_HOME", str(tmp_path / "new" / "home"))
    with Client(SERVER_COMMAND, "--capture", str(tmp_path / "x.mcpspy"), "--redact", "none") as client:
        socket_in(tmp_path / "new" / "home")
        assert stat.S_IMODE((tmp_path / "new" / "home").stat().st_mode) == 0o700
        client.close(client.stdin)
        client.wait()


def held_message(controller: Controller) -> dict[str, Any]:
    """Wait until a message is held, and return it."""
    return dict(eventually(lambda: next(iter(controller.ask(do="status")["held"]), None), "a held message"))


@pytest.mark.parametrize("what", ["release", "edit", "drop", "leave", "close", "remove", "time"])
def test_a_held_call_goes_on_when_it_is_let_go(home: Path, what: str) -> None:
    with Client(SERVER_COMMAND) as client:
        first, second = Controller(socket_in(home)), Controller(socket_in(home))
        assert second.ask(do="intercept", text=f"tool:search => hold {'300ms' if what == 'time' else ''}")["ok"]
        client.send(call(1))
        client.send(call(2, tool="other"))
        assert json.loads(client.line())["id"] == 2  # it holds back no others
        if what != "time":
            held = held_message(first)
            assert (held["sender"], json.loads(held["payload"])["id"]) == ("client", 1)
        match what:
            case "release" | "drop":
                assert first.ask(do=what, id=held["id"])["ok"]
            case "edit":
                assert first.ask(do="edit", id=held["id"], payload=held["payload"].replace('"search"', '"find"'))["ok"]
            case "remove":
                assert first.ask(do="remove", id=1)["ok"]
            case "leave":
                second.leave()
            case "close":
                client.close(client.stdin)
        if what == "drop":
            client.close(client.stdin)
            assert client.rest() == b""
        else:
            assert json.loads(json.loads(client.line())["result"]["content"][0]["text"])["name"] == (
                "find" if what == "edit" else "search"
            )
        first.leave()
        second.leave()
        client.close(client.stdin)
        client.rest()
        assert client.wait() == 0
        records = client.records()
    (record,) = [record for record in records if isinstance(record, Intercept)]
    assert record.sent == {"drop": "nothing", "edit": "changed"}.get(what, "unchanged")
    assert record.action.startswith("hold ")
    assert record.action.endswith({"drop": "s, dropped", "edit": "s, edited"}.get(what, "s"))
    assert [record.topic for record in records if isinstance(record, Note)].count("held") == 1


@pytest.mark.parametrize(
    ("text", "sent"), [('{"a" :\n1e400, "a":2}', '{"a" : 1e400, "a":2}'), ("{", ""), ("[NaN]", ""), ("", "")]
)
def test_an_edited_message_is_json_and_otherwise_as_it_was_edited(home: Path, text: str, sent: str) -> None:
    with Client([sys.executable, "-I", "-S", "-c", "import sys; sys.stdout.write(sys.stdin.readline())"]) as client:
        controller = Controller(socket_in(home))
        assert controller.ask(do="intercept", text="tool:search => hold")["ok"]
        client.send(call(1))
        id = held_message(controller)["id"]
        assert controller.ask(do="edit", id=id, payload=text)["ok"] is bool(sent)
        controller.leave()
        assert client.line().decode().strip() == (sent or call(1).decode().strip())
        client.close(client.stdin)
        client.wait()


ODD = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"search","a":%b,"b":"x","c":%b}}'
KEPT = [
    b'"\xff"', b'"\xe2\x82"', b'"\xed\xa0\x80"', b'"\xc0\xaf"', b'"caf\xe9 \xff\xfe"', b'"\\ud800"', '"\u2028\ufffd\ufeff"'.encode(),
    b'"\\u00e9"', b"1e400", b"1.0", b"9007199254740993", b'{"x":1,"x":2}', b' [ 1 ,\r2 ]\r ', b'"\x7f"',
]  # fmt: skip


ENDS = (b"\n", b" \r\n", b"\r\n")


def test_all_bytes_around_an_edit_stay(home: Path) -> None:
    with holding(home) as held:
        for odd, end in product(KEPT, ENDS):
            message = ODD % (odd, odd) + end
            assert held(message, lambda text: text.replace('"x"', '"y z"') + "\n") == message.replace(b'"x"', b'"y z"')
            assert held.last_act == ("changed", "edited")
            assert held(message, lambda text: f"\ufeff{text}\n\n") == message
            assert held.last_act == ("unchanged", "s")


@pytest.mark.parametrize(
    ("old", "new", "sent"),
    [
        ('"caf\ufffd"', '"café"', b'"caf\\u00e9"'),
        ('"x"', '"ö😀"', b'"\\u00f6\\ud83d\\ude00"'),
        ('"x"', "\r\n[1,\n2]", b" [1, 2]"),
        ('"x"', '"\ufffd"', b'"\\ufffd"'),
        ('"b":"x",', "", b""),
    ],
)
def test_what_is_edited_in_a_message_that_is_not_utf_8_is_what_was_written(home: Path, old: str, new: str, sent: bytes) -> None:
    message = ODD % (b'"caf\xe9"', b'"\xff"') + b"\n"
    with holding(home) as held:
        after = message.replace(old.encode().replace("\ufffd".encode(), b"\xe9"), sent)
        assert held(message, lambda text: text.replace(old, new)) == after


@pytest.mark.parametrize(
    ("odd", "edit", "reason"),
    [
        (b'"\xff"', lambda text: text.replace('"search"', '"find"').replace('"x"', '"y"'), "not UTF-8"),
        (b'"\xff"', lambda text: text.replace('"\ufffd"', '"a\ufffd"').replace('"x"', '"y"'), "not UTF-8"),
        (b"[NaN]", lambda text: text.replace('"x"', '"y"'), "JSON"),
        (b"1", lambda text: text.replace('"x"', "x"), "JSON"),
        (b'"%b"' % (b"a" * 10_001), lambda text: text.replace('"x"', '"y"'), "too long"),
        (b'"%b"' % (b"\xff" * 10_001), lambda text: text.replace('"x"', '"y"'), "too long"),
    ],
)
def test_an_edit_that_would_change_other_bytes_is_refused_with_the_reason(
    home: Path, odd: bytes, edit: Callable[[str], str], reason: str
) -> None:
    message = ODD % (odd, b"3") + b"\n"
    with holding(home) as held:
        assert held(message, edit) == message
        assert reason in held.reason


class HeldCalls:
    """A server that repeats what it gets, and a controller that edits each message to it."""

    def __init__(self, client: Client, controller: Controller) -> None:
        self._client, self._controller = client, controller
        self.reason = ""

    def __call__(self, message: bytes, edit: Callable[[str], str]) -> bytes:
        """Send a message that is held and edited, or released if the edit is refused. Return what the server got."""
        self._client.send(message)
        held = held_message(self._controller)
        whole = message.decode("utf-8", "replace") if held["bytes"] > 10_000 else held["payload"]
        answer = self._controller.ask(do="edit", id=held["id"], payload=edit(whole))
        self.reason = answer.get("error", "")
        if self.reason:
            assert self._controller.ask(do="release", id=held["id"])["ok"]
        return self._client.line()

    @property
    def last_act(self) -> tuple[str, str]:
        """The latest message: `sent`, and the last word about it."""
        act = [record for record in self._client.records() if isinstance(record, Intercept)][-1]
        return act.sent, act.action.rsplit(" ", 1)[1]


@contextmanager
def holding(home: Path) -> Iterator[HeldCalls]:
    with Client(["cat"], "--intercept", "sender:client => hold") as client:
        controller = Controller(socket_in(home))
        yield HeldCalls(client, controller)
        controller.leave()
        client.close(client.stdin)
        assert client.rest() == b""
        assert client.wait() == 0


@pytest.mark.parametrize("options", [[], ["--reload"]])
def test_a_controller_is_told_that_its_intercept_changed_nothing(home: Path, options: list[str]) -> None:
    words = ["control", "weather", "--intercept", "tool:search => remove params.x"]
    log = home / "log"
    with Client(SERVER_COMMAND, "--label", "weather", *options) as client, log.open("wb") as stderr:
        socket_in(home)
        with subprocess.Popen([*MCPSPY, *words], stderr=stderr) as control:
            eventually(lambda: b"They stay" in log.read_bytes() or None, "the intercept")
            client.send(call(1))
            said = b"mcpspy: the message has no params.x, so the intercept tool:search => remove params.x changed nothing\n"
            eventually(lambda: said in log.read_bytes() or None, "a word that it changed nothing")
            client.close(client.stdin)
            client.wait()
            assert control.wait(DEADLINE_S) == 0
        assert [record.topic for record in client.records() if isinstance(record, Note)].count("not-intercepted") == 1


def test_an_answer_is_held_and_an_intercept_of_run_holds_too(home: Path) -> None:
    with Client(SERVER_COMMAND, "--label", "weather", "--intercept", "kind:result => hold") as client:
        controller = Controller(socket_in(home))
        client.send(call(1))
        held = held_message(controller)
        assert held["sender"] == "server"
        controller.leave()
        assert run("weather", "--release", str(held["id"])).returncode == 0
        assert json.loads(client.line())["id"] == 1
        client.close(client.stdin)
        assert client.wait() == 0


def test_what_a_controller_delayed_goes_on_when_it_leaves_though_its_call_is_never_answered(home: Path) -> None:
    mute = ANSWERER.replace('if "method" in message', 'if "mcpspy" not in text and "method" in message')
    with Client([sys.executable, "-I", "-S", "-c", mute]) as client:
        controller = Controller(socket_in(home))
        assert controller.ask(do="intercept", text="tool:search => delay 1m")["ok"]
        assert controller.ask(do="send", payload=call(9).decode().strip())["ok"]
        client.send(call(1))
        eventually(
            lambda: any(act.action == "delay 60 s" for act in client.records() if isinstance(act, Intercept)), "the delay"
        )
        controller.leave()
        assert json.loads(client.line())["id"] == 1
        client.close(client.stdin)
        client.wait()


@pytest.mark.parametrize("kills", [20, pytest.param(200, marks=pytest.mark.soak)])
def test_a_tap_whose_controllers_are_killed_goes_on_as_if_there_had_never_been_one(home: Path, kills: int) -> None:
    """Messages come in random pieces while controllers add what matches nothing, or delays, send calls, and are killed."""
    random = Random(7)
    code = """
import json, os, socket, sys
s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1])
for text in ("tool:search => delay 1m", "tool:search => hold", "tool:other => drop", "method:x => kill")[int(sys.argv[2]):]:
    s.sendall(json.dumps({"do": "intercept", "text": text}).encode() + b"\\n")
    s.recv(4096)
call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "search"}}
s.sendall(json.dumps({"do": "send", "payload": json.dumps(call)}).encode() + b"\\n")
print(flush=True)
s.recv(1)
"""
    with Client(SERVER_COMMAND) as client:
        path = socket_in(home)
        for turn in range(kills):
            data = line({"id": turn, "method": "tools/call", "params": {"name": "search", "arguments": {"x": "y" * turn}}})
            cut = random.randrange(len(data) + 1)
            command = [sys.executable, "-I", "-S", "-c", code, str(path), str(random.randrange(4))]
            if random.random() < 0.5:
                client.send(data[:cut])
                data = data[cut:]
            with subprocess.Popen(command, stdout=subprocess.PIPE) as controller:
                assert controller.stdout is not None
                if random.random() < 0.7:
                    controller.stdout.readline()
                cut = random.randrange(len(data) + 1)
                client.send(data[:cut])
                controller.send_signal(signal.SIGKILL)
                client.send(data[cut:])
            answer = json.loads(client.line())
            assert answer["id"] == turn
            assert json.loads(answer["result"]["content"][0]["text"])["arguments"] == {"x": "y" * turn}
        client.close(client.stdin)
        assert client.rest() == b""
        assert client.wait() == 0
