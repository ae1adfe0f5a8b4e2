"""Sockets beside those of taps that are not mcpspy's: what they send is bounded, checked, and harmless on a terminal."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import pytest

from mcpspy.cli import main as command_line
from mcpspy.control import client
from tests.deadlines import DEADLINE_S

ID = "5ad31f0200000001"
STATUS: dict[str, Any] = {
    "ok": True,
    "id": ID,
    "label": "weather",
    "pid": 4711,
    "capture": "/nowhere/weather.mcpspy",
    "begin_ns": 1,
    "transport": "stdio",
    "intercepts": [{"id": 1, "text": "tool:x => drop", "by": "controller 1"}],
    "held": [{"id": 2, "sender": "client", "held_ns": 5, "text": "t => hold", "bytes": 3, "payload": "{}"}],
}
ESCAPES = "\x1b[2J\x1b]0;owned\x07\r\n\u202ex"
RAW = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]")
"""Signs that may not reach a terminal; a line feed ends each line of ours."""


def line(**changed: Any) -> bytes:
    return json.dumps({**STATUS, **changed}).encode() + b"\n"


def without(name: str) -> bytes:
    return json.dumps({key: value for key, value in STATUS.items() if key != name}).encode() + b"\n"


SENT: dict[str, bytes] = {
    "a word": b"hello\n",
    "nothing but lines": b"\n\n\n",
    "half an object": b'{"ok":true,"id"\n',
    "half a line": line()[:50],
    "a line without its end": line()[:-1],
    "a list": b"[1]\n",
    "a number": b"7\n",
    "null": b"null\n",
    "a text": b'"ok"\n',
    "no JSON number": b'{"ok":NaN}\n',
    "a long number": b'{"ok":true,"begin_ns":' + b"9" * 5_000 + b"}\n",
    "an infinite number": line(begin_ns=float("inf")),
    "deep": b"[" * 100_000 + b"\n",
    "deep and whole": b"[" * 100_000 + b"]" * 100_000 + b"\n",
    "no UTF-8": b'{"ok":true,"label":"\xff\xfe"}\n',
    "zeros": bytes(1_000) + b"\n",
    "an empty object": b"{}\n",
    "ok alone": b'{"ok":true}\n',
    "a refusal": b'{"ok":false}\n',
    "a refusal with escapes": json.dumps({"ok": False, "error": ESCAPES}).encode() + b"\n",
    "an answer of HTTP": b"HTTP/1.1 400 Bad Request\r\n\r\n",
    **{f"no {name}": without(name) for name in STATUS if name not in ("id", "transport")},
    **{f"{name} is a list": line(**{name: [[1]]}) for name in STATUS if name not in ("ok", "id")},
    **{f"{name} is an object": line(**{name: {"a": 1}}) for name in STATUS if name not in ("ok", "id")},
    **{f"{name} is null": line(**{name: None}) for name in STATUS if name not in ("ok", "id")},
    "pid has escapes": line(pid=ESCAPES),
    "an intercept's id has escapes": line(intercepts=[{"id": ESCAPES, "text": "t", "by": "b"}]),
    "an intercept lacks its text": line(intercepts=[{"id": 1}]),
    "a held message has another id": line(held=[{**STATUS["held"][0], "id": ESCAPES}]),
    "a held message was held for a text": line(held=[{**STATUS["held"][0], "held_ns": "5"}]),
    "held is a list of numbers": line(held=[1, 2]),
}
"""Answers to `status` that no tap gives."""

HARMLESS: dict[str, bytes] = {
    "as a tap": line(),
    "in two lines": line() + b"more\n",
    "with what a later mcpspy may say": line(new=[1]),
    "a label with escapes": line(label=ESCAPES),
    "texts with escapes": line(
        intercepts=[{"id": 1, "text": ESCAPES, "by": ESCAPES}], held=[{**STATUS["held"][0], "payload": ESCAPES}]
    ),
    "a sender with escapes": line(held=[{**STATUS["held"][0], "sender": ESCAPES}]),
    "after an event": b'{"event":"progress"}\n' + line(),
    "no id, for a command line's intercept": line(intercepts=[{"id": None, "text": "t", "by": "run"}]),
}


class Fake:
    """A socket in the folder that sends `data` to each that connects; again and again if `endless`. It closes unless `stays`."""

    def __init__(self, path: Path, data: bytes, *, endless: bool = False, stays: bool = False, pause_s: float = 0) -> None:
        self._listener = socket.socket(socket.AF_UNIX)
        folder = os.open(path.parent, os.O_RDONLY)
        self._listener.bind(f"/proc/self/fd/{folder}/{path.name}")  # the path itself may be too long
        os.close(folder)
        self._listener.listen()
        self._data, self._endless, self._stays, self._pause_s = data, endless, stays, pause_s
        self.sent_bytes = 0
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                with connection, suppress(OSError):
                    self._talk(connection)

    def _talk(self, connection: socket.socket) -> None:
        connection.settimeout(DEADLINE_S)
        connection.recv(1 << 16)
        while True:
            connection.sendall(self._data)
            self.sent_bytes += len(self._data)
            if not self._endless:
                break
            time.sleep(self._pause_s)
        while self._stays and connection.recv(1 << 16):
            pass

    def close(self) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(DEADLINE_S)


@pytest.fixture
def live(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the taps' sockets, as a tap makes it."""
    monkeypatch.setenv("MCPSPY_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(client, "ANSWER_S", 0.3)
    folder = tmp_path / "home" / "live"
    (tmp_path / "home").mkdir(mode=0o700)
    folder.mkdir(mode=0o700)
    return folder


@pytest.fixture
def fakes() -> Iterator[list[Fake]]:
    """Fakes that are closed at the end."""
    made: list[Fake] = []
    yield made
    for fake in made:
        fake.close()


def control(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    """Run the verb, and return its status and all that it printed, which is fit for a terminal."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(sys, "argv", ["mcpspy", "control", *words])
        status = command_line.main()
    printed = capsys.readouterr()
    text = printed.out + printed.err
    assert not RAW.search(text)
    assert "Traceback" not in text
    return status, text


@pytest.mark.parametrize("what", SENT)
def test_what_is_no_status_of_a_tap_is_left_out_and_the_taps_beside_it_are_listed(
    what: str, live: Path, fakes: list[Fake], capsys: pytest.CaptureFixture[str]
) -> None:
    fakes += [Fake(live / f"{ID}.sock", line()), Fake(live / "ffffffffffffffff.sock", SENT[what])]
    status, text = control(capsys)
    assert (status, text.count("  pid ")) == (0, 1)
    assert control(capsys, "weather")[0] == 0
    control(capsys, "ffffffff", "--remove", "1")
    assert (live / "ffffffffffffffff.sock").exists()


@pytest.mark.parametrize("what", HARMLESS)
def test_a_status_that_makes_sense_is_shown_whatever_its_texts_are(
    what: str, live: Path, fakes: list[Fake], capsys: pytest.CaptureFixture[str]
) -> None:
    fakes.append(Fake(live / f"{ID}.sock", HARMLESS[what]))
    status, text = control(capsys)
    assert (status, text.count("  pid 4711")) == (0, 1)
    assert len(json.loads(control(capsys, "--json")[1])["taps"]) == 1


@pytest.mark.parametrize(
    ("data", "facts"),
    [
        (b"x" * (1 << 16), {"endless": True}),
        (b"x", {"endless": True, "pause_s": 0.02}),
        (b'{"event":1}\n', {"endless": True}),
        (b"\n", {"endless": True, "pause_s": 0.02}),
        (b"", {"stays": True}),
        (line()[:-1], {"stays": True}),
    ],
    ids=["an endless line", "a slow line", "events", "empty lines", "nothing", "no end"],
)
def test_what_never_comes_to_an_end_is_given_up(
    data: bytes, facts: dict[str, Any], live: Path, fakes: list[Fake], capsys: pytest.CaptureFixture[str]
) -> None:
    fakes.append(Fake(live / f"{ID}.sock", data, **facts))
    begun_s = time.monotonic()
    assert "No server runs" in control(capsys)[1]
    assert time.monotonic() - begun_s < 10
    assert fakes[0].sent_bytes < 200_000_000


def test_any_junk_is_left_out(live: Path, fakes: list[Fake], capsys: pytest.CaptureFixture[str]) -> None:
    random = Random(5)
    whole = line()
    for number in range(60):
        data = bytearray(whole)
        for _ in range(random.randrange(1, 8)):
            at = random.randrange(len(data))
            data[at : at + random.randrange(4)] = random.randbytes(random.randrange(4))
        fakes.append(Fake(live / f"{number:016x}.sock", bytes(data) + b"\n"))
    assert control(capsys)[0] == 0
    assert control(capsys, "--json")[0] == 0


# --- What lies in the folder ---


def test_what_is_no_socket_is_left_where_it_is(
    live: Path, fakes: list[Fake], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (live / "0000000000000001.sock").write_text("mine")
    (live / "0000000000000002.sock").mkdir()
    os.mkfifo(live / "0000000000000003.sock")
    fakes.append(Fake(tmp_path / "elsewhere.sock", line()))
    (live / "0000000000000004.sock").symlink_to(tmp_path / "elsewhere.sock")
    (live / "0000000000000005.sock").symlink_to(tmp_path / "nothing")
    fakes.append(Fake(live / f"{ESCAPES.replace('/', '')}.sock", line()))
    before = sorted(os.listdir(live))
    assert "No server runs" in control(capsys)[1]
    assert sorted(os.listdir(live)) == before


def test_a_socket_that_nobody_listens_at_is_removed(live: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Fake(live / f"{ID}.sock", b"").close()
    control(capsys)
    assert os.listdir(live) == []


@pytest.mark.parametrize("what", ["a link", "open to others", "a file", "a dangling link"])
def test_a_folder_that_is_not_private_is_not_believed(
    what: str, live: Path, fakes: list[Fake], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fakes.append(Fake(live / f"{ID}.sock", line()))
    match what:
        case "a link":
            live.rename(tmp_path / "elsewhere")
            live.symlink_to(tmp_path / "elsewhere")
        case "open to others":
            live.chmod(0o777)
        case "a file":
            live.rename(tmp_path / "elsewhere")
            live.write_text("")
        case "a dangling link":
            live.rename(tmp_path / "elsewhere")
            live.symlink_to(tmp_path / "nothing")
    status, text = control(capsys)
    assert (status, "  pid " in text, str(live) in text) == (2, False, True)
    assert control(capsys, "weather", "--remove", "1")[0] == 2


def test_without_the_folder_nothing_runs(live: Path, capsys: pytest.CaptureFixture[str]) -> None:
    live.rmdir()
    assert control(capsys)[0] == 0


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="only root can become another user")
@pytest.mark.parametrize("owner", ["of the folder", "of the socket", "of the process"])
def test_what_belongs_to_another_user_is_not_believed(
    owner: str, live: Path, fakes: list[Fake], capsys: pytest.CaptureFixture[str]
) -> None:
    path = live / f"{ID}.sock"
    if owner == "of the process":
        code = (
            "import os, socket, sys; s = socket.socket(socket.AF_UNIX); os.chdir(sys.argv[1]); os.setuid(65534); "
            "s.bind(sys.argv[2]); s.listen(); print(flush=True); c, _ = s.accept(); c.sendall(sys.argv[3].encode()); c.recv(9)"
        )
        live.chmod(0o777)
        words = [sys.executable, "-I", "-S", "-c", code, str(live), path.name, line().decode()]
        with subprocess.Popen(words, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            process.stdout.readline()
            live.chmod(0o700)
            os.chown(path, os.geteuid(), -1)
            assert "  pid " not in control(capsys)[1]
            process.kill()
        return
    fakes.append(Fake(path, line()))
    os.chown(live if owner == "of the folder" else path, 65534, -1)
    assert "  pid " not in control(capsys)[1]
