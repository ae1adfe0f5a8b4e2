"""`mcpspy web` without a browser: who is let in, what each path answers, and how it begins and ends."""

import json
import os
import signal
import socket
import struct
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from email.message import Message
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple
from urllib.parse import quote, urlsplit

import pytest

from tests.cli.recording import Recording
from tests.cli.terminal import Running, on_pipe, run
from tests.deadlines import DEADLINE_S, eventually
from tests.transcript.llm.traffic import ModelTraffic, completion

pytest.importorskip("aiohttp")


PATHS = ("events", "row", "search", "diagram", "findings", "numbers", "recordings")


class Answer(NamedTuple):
    """An answer, whole."""

    status: int
    headers: Message
    body: bytes


class Served:
    """A `mcpspy web` at work, the secret of its address, and connections to it that last."""

    def __init__(self, running: Running) -> None:
        self.running = running
        url = urlsplit(running.wait_for("Ctrl-C").splitlines()[0])
        self.port = url.port or 0
        self.base = url.path
        self.open = ExitStack()

    def asked(self, path: str = "", *, base: str | None = None, method: str = "GET", **headers: str) -> Answer:
        """The answer to a request for a path below the secret one; `headers` have `_` for `-`."""
        with closing(HTTPConnection("127.0.0.1", self.port, timeout=DEADLINE_S)) as connection:
            given = {name.replace("_", "-"): value for name, value in headers.items()}
            connection.request(method, (self.base if base is None else base) + path, headers=given)
            with connection.getresponse() as answer:
                return Answer(answer.status, answer.headers, answer.read())

    def stream(self, recording: str) -> BinaryIO:
        """The stream of a recording, from behind the head of its answer."""
        link = self.open.enter_context(socket.create_connection(("127.0.0.1", self.port), DEADLINE_S))
        link.sendall(f"GET {self.base}events?recording={recording} HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\n\r\n".encode())
        file = self.open.enter_context(link.makefile("rb"))
        assert file.readline() == b"HTTP/1.1 200 OK\r\n"
        return file

    def news(self, recording: str) -> Iterator[dict[str, Any]]:
        """What the stream of a recording tells, as it comes. Each piece is one chunk."""
        for line in self.stream(recording):
            if line.startswith(b"data: "):
                yield json.loads(line.removeprefix(b"data: "))

    def json(self, path: str) -> Any:
        answer = self.asked(path)
        assert answer.status == 200, answer.body
        return json.loads(answer.body)


@contextmanager
def serving(*words: str) -> Iterator[Served]:
    with on_pipe("web", "--port", "0", *words, PYTHONPATH="") as running:
        served = Served(running)
        with served.open:
            yield served


@pytest.fixture
def recording() -> Recording:
    return Recording().ask(1, "initialize").answer(1).ask(2, name="search", arguments={"q": "天気 \ud800"}).answer(2)


def name_of(recording: Recording) -> str:
    return recording.path.rpartition("/")[2]


def test_the_page_is_there_for_who_knows_the_secret_and_comes_from_here(recording: Recording) -> None:
    with serving() as served:
        answer = served.asked()
        text = answer.body.decode()
        assert (answer.status, answer.headers.get_content_type()) == (200, "text/html")
        assert f'"recording":"{name_of(recording)}"' in text
        assert answer.headers["Cache-Control"] == "no-store"
        assert answer.headers["X-Frame-Options"] == "DENY"
        assert served.asked(Sec_Fetch_Site="same-origin", Origin=f"http://127.0.0.1:{served.port}").status == 200
        assert served.asked(Host=f"localhost:{served.port}").status == 200


def test_everybody_else_finds_nothing(recording: Recording) -> None:
    with serving() as served:
        refused = [
            served.asked(base="/"),
            served.asked(base="/wrong/"),
            *(served.asked(path, base="/wrong/") for path in PATHS),
            *(served.asked(path, Origin="http://evil.example") for path in PATHS),
            served.asked(base=served.base[:-2] + "/"),
            served.asked(base=served.base.upper()),
            served.asked(Host=f"evil.example:{served.port}"),
            served.asked(Host="127.0.0.1"),
            served.asked(Host=f"127.0.0.1.evil.example:{served.port}"),
            served.asked(Origin="http://evil.example"),
            served.asked(Origin="null"),
            served.asked(Origin=f"https://127.0.0.1:{served.port}"),
            served.asked(Sec_Fetch_Site="cross-site"),
            served.asked(Sec_Fetch_Site="same-site"),
            *(served.asked(method=method) for method in ("POST", "HEAD", "PUT", "DELETE", "OPTIONS", "PATCH")),
            served.asked("../"),
            served.asked("page.html"),
        ]
        assert {one.status for one in refused} == {404}
        assert {one.body for one in refused} <= {b"", b"mcpspy: there is nothing here\n", b"mcpspy: Not Found\n"}


def test_a_recording_is_no_path(recording: Recording) -> None:
    names = ["", "no", "../../etc/passwd", "%2e%2e%2fstore", "/etc/passwd", "a%00b", "x" * 4000, recording.path]
    with serving() as served:
        assert {served.asked(f"events?recording={name}").status for name in names} == {404}


def test_a_recording_is_told_from_its_beginning_and_as_it_grows(recording: Recording) -> None:
    with serving() as served:
        stream = served.news(name_of(recording))
        first = next(stream)
        assert [line[8:11] for line in first["rows"] if line[1]] == [["initialize", "", "ok"], ["tools/call", "search", "ok"]]
        recording.ask(3, name="later")
        (line,) = next(stream)["rows"]
        assert line[8:11] == ["tools/call", "later", "pending"]
        recording.answer(3)
        (after,) = next(stream)["rows"]
        assert (after[0], after[10]) == (line[0], "ok")


def test_what_joins_a_recording_later_is_told_too(recording: Recording) -> None:
    with serving() as served:
        stream = served.news(name_of(recording))
        next(stream)
        Recording("files").ask(1, "initialize").answer(1)
        servers = {line[7] for news in [next(stream)] for line in news["rows"]}
        assert servers == {"files"}


def test_what_is_damaged_is_told_and_what_follows_it_too(recording: Recording) -> None:
    with serving() as served:
        stream = served.news(name_of(recording))
        next(stream)
        with open(recording.path, "ab") as file:
            file.write(b'{"torn\n\xff\xfe\n')
        recording.ask(3, name="after")
        words: list[str] = []
        while "after" not in words:
            words += [word for line in next(stream)["rows"] for word in line[8:10]]
        assert "damage" in words


def test_what_has_no_header_is_no_recording_and_hinders_none(recording: Recording) -> None:
    folder = Path(recording.path).parent
    for number, data in enumerate((b"", b"garbage\n", b'{"mcpspy":99,"reads":99}\n', Path(recording.path).read_bytes()[:40])):
        (folder / f"broken-{number}.mcpspy").write_bytes(data)
    (folder / "folder.mcpspy").mkdir()
    with serving() as served:
        assert [one["recording"] for one in served.json("recordings")] == [name_of(recording)]
        assert next(served.news(name_of(recording)))["rows"]


def test_a_capture_that_is_removed_stays_as_far_as_it_was_read(recording: Recording) -> None:
    with serving() as served:
        stream = served.news(name_of(recording))
        look = next(stream)["look"]
        Path(recording.path).unlink()
        assert "incomplete" in next(stream)["summary"]
        assert served.json(f"row?look={look}&row=2")["messages"]
        assert served.json("recordings") == []
        assert served.asked(f"events?recording={name_of(recording)}").status == 404


def test_rows_texts_and_all_together_are_asked_of_the_stream_s_own_reading(recording: Recording) -> None:
    with serving() as served:
        stream = served.news(name_of(recording))
        look = next(stream)["look"]
        row = served.json(f"row?look={look}&row=2")
        assert json.loads(row["messages"][0]["text"])["params"]["arguments"] == {"q": "天気 \ud800"}
        assert served.json(f"search?look={look}&q={quote('天気')}") == [2]
        assert served.json(f"search?look={look}&q=SEARCH") == [2]
        assert served.json(f"diagram?look={look}")["lanes"] == ["claude", "weather"]
        assert {one["severity"] for one in served.json(f"findings?look={look}")} <= {"error", "warning", "info"}
        assert "tools/call" in served.json(f"numbers?look={look}")


def test_model_calls_are_told_and_searched_in_prompts_and_answers() -> None:
    traffic = ModelTraffic()
    traffic.ask("user: 天気は?").answer(200, completion("sunny"))
    tapped = {"transport": "http", "url": "http://127.0.0.1:3001/v1", "leg": "model"}
    recording = Recording("gpt", tapped=tapped)
    recording.write(traffic.records[1:])
    Recording("weather").ask(1, "initialize").answer(1)
    with serving() as served:
        stream = served.news(served.json("recordings")[0]["recording"])
        first = next(stream)
        (line,) = (line for line in first["rows"] if line[2] == "model call")
        assert line[7:11] == ["gpt", "chat.completions", "m", "ok"]
        look, number = first["look"], line[1]
        row = served.json(f"row?look={look}&row={number}")
        assert any("sunny" in one for one in row["told"])
        assert [one["kind"] for one in row["messages"]] == ["prompt", "answer"]
        assert served.json(f"search?look={look}&q={quote('天気')}") == served.json(f"search?look={look}&q=SUNNY") == [number]


def test_rows_that_are_not_there_are_not_found(recording: Recording) -> None:
    with serving() as served:
        stream = served.news(name_of(recording))
        look = next(stream)["look"]
        found = {
            row: served.asked(f"row?look={look}&row={row}").status for row in ("99", "0", "-1", "x", "", "9" * 40, "%D9%A1")
        }
        assert found == {"99": 404, "0": 404, "-1": 400, "x": 400, "": 400, "9" * 40: 400, "%D9%A1": 400}
        assert served.asked("row?look=99&row=2").status == 404


def test_who_leaves_is_let_go_without_a_word(recording: Recording) -> None:
    with serving() as served:
        with socket.create_connection(("127.0.0.1", served.port), DEADLINE_S) as link:
            link.sendall(
                f"GET {served.base}events?recording={name_of(recording)} HTTP/1.1\r\nHost: localhost:{served.port}\r\n\r\n".encode()
            )
            assert link.recv(16)
            link.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        recording.ask(3, name="unheard").answer(3)
        path = f"/proc/{served.running.process.pid}/fd"
        eventually(
            lambda: recording.path not in {os.readlink(one) for one in Path(path).iterdir() if one.is_symlink()},
            "the file to be let go",
        )
        assert served.running.end() == 0
        assert served.running.text.count("\n") == 2


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_while_somebody_looks(recording: Recording, number: signal.Signals) -> None:
    with serving() as served:
        stream = served.news(name_of(recording))
        next(stream)
        assert served.running.end(number) == 0
        assert "Traceback" not in served.running.text


def test_recordings_are_listed_and_their_captures_can_be_called_on_a_command_line(recording: Recording) -> None:
    with serving() as served:
        (one,) = served.json("recordings")
        assert (one["recording"], one["client"], one["servers"], one["live"]) == (
            name_of(recording),
            "claude",
            ["weather"],
            True,
        )
        (address,) = next(served.news(one["recording"]))["addresses"]
        assert run("show", address).returncode == 0


def test_an_empty_store_has_a_page() -> None:
    with serving() as served:
        assert served.asked().status == 200
        assert served.json("recordings") == []


def test_a_busy_port_is_told_with_what_to_do() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        done = run("web", "--port", str(port), PYTHONPATH="")
    assert (done.returncode, done.stdout) == (4, "")
    assert done.stderr == f"mcpspy: 127.0.0.1:{port}: Address already in use; another port: mcpspy web --port 0\n"


def test_without_aiohttp_it_says_what_brings_it(tmp_path: Any) -> None:
    (tmp_path / "aiohttp.py").write_text("raise ImportError\n")
    done = run("web", PYTHONPATH=str(tmp_path))
    assert (done.returncode, done.stdout) == (2, "")
    assert f"{sys.executable} -m pip install 'mcpspy[web]' brings it" in done.stderr
    assert "Traceback" not in done.stderr
