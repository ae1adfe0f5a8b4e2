"""How the pains of docs/findings.md are played: real programs on both sides of mcpspy, with a fault and without, and then a check.

A test plays the client, over stdio or HTTP; servers are those of tests/peers. Nobody waits for a minute: where a rule looks for one,
the capture's clock is set forward at that point (`later`), and all else is as it was recorded.
"""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from click.testing import CliRunner

import mcpspy
from captures.serving import port, started
from mcpspy.capture.file.format import header_line, record_line
from mcpspy.capture.store.folder import captures_folder
from mcpspy.cli.check import command
from mcpspy.records import Close, Damage, Frame, Header, Record
from tests.conftest import PEERS
from tests.deadlines import DEADLINE_S
from tests.interop.serving import recorded
from tests.live.client import Client

REVISION = "2025-11-25"
BOTH = "application/json, text/event-stream"
SECOND_NS = 1_000_000_000

Play = Callable[[Path], Path]
"""Plays in a folder, and says where the capture is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """A pain that one rule finds. `ill` has it, `well` is the same without.

    `with_it` are rules that are right to find more in `ill`. `options` are those of the check.
    """

    pain: int
    rule: str
    culprit: str
    ill: Play
    well: Play
    options: Callable[[Path], tuple[str, ...]] = field(default=lambda folder: ())
    with_it: frozenset[str] = frozenset()

    def __str__(self) -> str:
        return f"{self.pain}-{self.rule}"


def checked(capture: Path, *options: str) -> list[dict[str, Any]]:
    """What `mcpspy check` finds."""
    done = CliRunner().invoke(command, [str(capture), "--json", *options])
    found: list[dict[str, Any]] = json.loads(done.stdout)["findings"]
    return found


def assert_found(scene: Scene, folder: Path) -> None:
    """The fault is found, and whose it is; at the default level nothing else is."""
    found = checked(scene.ill(folder), *scene.options(folder))
    assert (scene.rule, scene.culprit) in {(one["rule"], one["culprit"]) for one in found}
    assert [one["what"] for one in found if one["severity"] != "info" and one["rule"] not in {scene.rule, *scene.with_it}] == []


def assert_silent(scene: Scene, folder: Path) -> None:
    """Without the fault nothing is found at the default level, nor by this rule at any."""
    found = checked(scene.well(folder), *scene.options(folder))
    assert [one["what"] for one in found if one["severity"] != "info" or one["rule"] == scene.rule] == []


# --- stdio ---


class Talker(Client):
    """A client on stdio that speaks JSON-RPC."""

    def say(self, method: str, id: int | str | None = None, **params: Any) -> None:
        """Send a request, or without an id a notification."""
        self.together(asking(method, id, params))

    def together(self, *messages: dict[str, Any]) -> None:
        """Send messages in one write: nothing comes between them."""
        self.send(b"".join(json.dumps(one).encode() + b"\n" for one in messages))

    def answer(self, id: int | str, **result: Any) -> None:
        """Answer a request of the server."""
        self.send(json.dumps({"jsonrpc": "2.0", "id": id, "result": result}).encode() + b"\n")

    def heard(self) -> dict[str, Any]:
        """The next message; lines that are none are passed over."""
        while not (line := self.line()).startswith(b"{"):
            assert line, "the server left"
        message: dict[str, Any] = json.loads(line.decode("utf-8", "replace"))
        return message

    def ask(self, method: str, id: int | str, **params: Any) -> dict[str, Any]:
        """Send a request, and wait for what comes next."""
        self.say(method, id, **params)
        return self.heard()

    def greet(self, revision: str = REVISION, *, initialized: bool = True, **capabilities: Any) -> None:
        """The handshake."""
        self.ask("initialize", 0, **hello(revision, capabilities))
        if initialized:
            self.say("notifications/initialized")


def asking(method: str, id: int | str | None, params: dict[str, Any]) -> dict[str, Any]:
    """A request, or without an id a notification."""
    message = {"jsonrpc": "2.0", "id": id, "method": method, "params": params}
    return {name: value for name, value in message.items() if value is not None and value != {}}


def hello(revision: str = REVISION, capabilities: dict[str, Any] | None = None) -> dict[str, Any]:
    """The params of initialize."""
    return {
        "protocolVersion": revision,
        "capabilities": capabilities or {},
        "clientInfo": {"name": "talker", "version": "1.0"},
    }


def on_stdio(server: list[str], talk: Callable[[Talker], None], *, through: tuple[str, ...] = (), **environment: str) -> Play:
    """Start `server` under `mcpspy run`, talk to it, and leave as a client should."""

    def play(folder: Path) -> Path:
        before = captures()
        with Talker(server, "--quiet", "--label", "faulty", environment=environment, through=through) as client:
            talk(client)
            if client.stdin >= 0:
                client.close(client.stdin)
            client.rest()
            client.wait()
        (capture,) = captures() - before
        return capture

    return play


def captures() -> set[Path]:
    """What is in this test's store."""
    return set(Path(captures_folder()).glob("*.mcpspy"))


# --- HTTP ---


class Caller:
    """A client over HTTP, of one session at most."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._address, self.path = parts.netloc, parts.path
        self.fields: dict[str, str] = {}
        self._opened: list[HTTPConnection | HTTPResponse] = []

    def close(self) -> None:
        """Close all connections."""
        for one in self._opened:
            one.close()

    def request(self, verb: str, path: str = "", body: dict[str, Any] | None = None, **fields: str) -> HTTPResponse:
        """Ask, on a connection of its own, and wait for the head of the response."""
        connection = HTTPConnection(self._address, timeout=DEADLINE_S)
        given = {name.replace("_", "-"): value for name, value in fields.items()}
        data = None if body is None else json.dumps(body)
        connection.request(verb, path or self.path, data, {"Accept": BOTH, **self.fields, **given})
        self._opened.append(connection)
        self._opened.append(response := connection.getresponse())
        return response

    def post(self, method: str, id: int | str | None = None, path: str = "", **params: Any) -> HTTPResponse:
        """Send a message, and read the response to its end."""
        response = self.request("POST", path, asking(method, id, params), Content_Type="application/json")
        response.read()
        return response

    def greet(self) -> None:
        """The handshake, in a session of its own."""
        self.fields.clear()
        response = self.post("initialize", 0, **hello())
        self.fields = {"Mcp-Session-Id": response.headers["Mcp-Session-Id"], "MCP-Protocol-Version": REVISION}
        self.post("notifications/initialized")


@contextmanager
def serving(folder: Path, *words: str, peer: str = "faultyhttp.py") -> Iterator[int]:
    """A server of tests/peers on a free port, or on the one that the first word names. Yields the port."""
    (folder / "home").mkdir(exist_ok=True)
    with started([*python(peer), *(words or ("0",))], folder, folder / f"{peer}.log", {}) as said:
        yield port(said)


def python(peer: str) -> list[str]:
    """The argv of a program of tests/peers that needs the standard library alone."""
    return [sys.executable, "-I", "-S", str(PEERS / peer)]


def over_http(talk: Callable[[Caller], None], *faults: str, path: str = "/mcp") -> Play:
    """Start a server with these faults, put `mcpspy proxy` before it, and talk to that."""

    def play(folder: Path) -> Path:
        with (
            serving(folder, "0", *faults) as number,
            recorded(f"http://127.0.0.1:{number}{path}", folder) as tap,
            closing(Caller(tap)) as client,
        ):
            talk(client)
        return folder / "a.mcpspy"

    return play


# --- The clock ---


def later(play: Play, seconds: float, since: Callable[[Record], bool]) -> Play:
    """The capture of `play`, its clock set forward by so much from the first record on of which `since` is true."""
    begun = False

    def moved(at_ns: int, record: Record) -> int:
        nonlocal begun
        begun = begun or since(record)
        return at_ns + round(seconds * SECOND_NS) * begun

    return edited(play, moved)


def slowed(play: Play, times: int) -> Play:
    """The capture of `play`, by a clock that is so many times as fast."""
    return edited(play, lambda at_ns, record: at_ns * times)


def edited(play: Play, moved: Callable[[int, Record], int]) -> Play:
    """The capture of `play` with other times: what `moved` makes of them."""

    def played(folder: Path) -> Path:
        capture = play(folder)
        header, *records = mcpspy.read(capture)
        assert isinstance(header, Header)
        lines = [header_line(header)]
        for number, record in enumerate(records, 1):
            assert not isinstance(record, Damage)
            record.at_ns = moved(record.at_ns, record)
            if isinstance(record, Frame):
                record.first_ns = moved(record.first_ns, record)
            lines.append(record_line(number, record))
        capture.write_bytes(b"".join(lines))
        return capture

    return played


def holds(words: bytes, stream: int | None = None) -> Callable[[Record], bool]:
    """Whether a record is a frame with these words in it, on this stream or on any."""
    return lambda one: isinstance(one, Frame) and words in one.data and stream in (None, one.stream)


def leaves(record: Record) -> bool:
    """Whether the client closes the server's input here."""
    return isinstance(record, Close) and record.stream == 0
