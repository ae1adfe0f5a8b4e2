"""The stage for the problems of docs/known-problems.md: real programs on both sides of mcpspy, with a fault and without.

A test plays the client, over stdio or HTTP; servers are those of tests/peers. No test waits for a minute: where a rule looks for one,
`later` sets the capture's clock forward at that point, and everything else stays as recorded.
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
from tests.deadlines import DEADLINE_S
from tests.interop.serving import recorded
from tests.live.client import Client
from tests.starting import PEERS, Program

REVISION = "2025-11-25"
BOTH = "application/json, text/event-stream"
SECOND_NS = 1_000_000_000

Play = Callable[[Path], Path]
"""A function that plays in a folder, and gives the path of the capture."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A problem that one rule finds. `faulty` has it, `sound` is the same without.

    `with_it` are rules that rightly find something in `faulty` too. `options` are those of the check.
    """

    problem: int
    rule: str
    culprit: str
    faulty: Play
    sound: Play
    options: Callable[[Path], tuple[str, ...]] = field(default=lambda folder: ())
    with_it: frozenset[str] = frozenset()

    def __str__(self) -> str:
        return f"{self.problem}-{self.rule}"


def checked(capture: Path, *options: str) -> list[dict[str, Any]]:
    """Give the findings of `mcpspy check`."""
    done = CliRunner().invoke(command, [str(capture), "--json", *options])
    findings: list[dict[str, Any]] = json.loads(done.stdout)["findings"]
    return findings


def assert_found(case: Case, folder: Path) -> None:
    """Expect the fault with its culprit, and nothing else at the default level."""
    findings = checked(case.faulty(folder), *case.options(folder))
    assert (case.rule, case.culprit) in {(finding["rule"], finding["culprit"]) for finding in findings}
    others = [finding for finding in findings if finding["rule"] not in {case.rule, *case.with_it}]
    assert [finding["what"] for finding in others if finding["severity"] != "note"] == []


def assert_silent(case: Case, folder: Path) -> None:
    """Expect nothing at the default level, and nothing of this rule at any."""
    findings = checked(case.sound(folder), *case.options(folder))
    assert [finding["what"] for finding in findings if finding["severity"] != "note" or finding["rule"] == case.rule] == []


# --- stdio ---


class Talker(Client):
    """A client on stdio that speaks JSON-RPC."""

    def say(self, method: str, id: int | str | None = None, **params: Any) -> None:
        """Send a request, or without an id a notification."""
        self.together(asking(method, id, params))

    def together(self, *messages: dict[str, Any]) -> None:
        """Send messages in a single write."""
        self.send(b"".join(json.dumps(message).encode() + b"\n" for message in messages))

    def answer(self, id: int | str, **result: Any) -> None:
        """Answer a request of the server."""
        self.send(json.dumps({"jsonrpc": "2.0", "id": id, "result": result}).encode() + b"\n")

    def heard(self) -> dict[str, Any]:
        """Wait for the next message; skip lines that are not messages."""
        while not (line := self.line()).startswith(b"{"):
            assert line, "the server left"
        message: dict[str, Any] = json.loads(line.decode("utf-8", "replace"))
        return message

    def ask(self, method: str, id: int | str, **params: Any) -> dict[str, Any]:
        """Send a request, and wait for the next message."""
        self.say(method, id, **params)
        return self.heard()

    def greet(self, revision: str = REVISION, *, initialized: bool = True, **capabilities: Any) -> None:
        """Do the handshake."""
        self.ask("initialize", 0, **hello(revision, capabilities))
        if initialized:
            self.say("notifications/initialized")


def asking(method: str, id: int | str | None, params: dict[str, Any]) -> dict[str, Any]:
    """Make a request, or without an id a notification."""
    message = {"jsonrpc": "2.0", "id": id, "method": method, "params": params}
    return {name: value for name, value in message.items() if value is not None and value != {}}


def hello(revision: str = REVISION, capabilities: dict[str, Any] | None = None) -> dict[str, Any]:
    """Make the params of initialize."""
    return {
        "protocolVersion": revision,
        "capabilities": capabilities or {},
        "clientInfo": {"name": "talker", "version": "1.0"},
    }


def on_stdio(server: list[str], talk: Callable[[Talker], None], *, through: tuple[str, ...] = (), **environment: str) -> Play:
    """Start `server` under `mcpspy run`, talk to it, and close it as a client should."""

    def play(folder: Path) -> Path:
        before = captures()
        with Talker(server, "--quiet", "--label", "faulty", environment=environment, through=through) as client:
            talk(client)
            if client.stdin >= 0:
                client.close(client.stdin)
            if client.stdout >= 0:
                client.rest()
            client.wait()
        (capture,) = captures() - before
        return capture

    return play


def captures() -> set[Path]:
    """List the captures in this test's store."""
    return set(Path(captures_folder()).glob("*.mcpspy"))


# --- HTTP ---


class Caller:
    """A client over HTTP with at most one session."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._address, self.path = parts.netloc, parts.path
        self.fields: dict[str, str] = {}
        self._opened: list[HTTPConnection | HTTPResponse] = []

    def close(self) -> None:
        """Close all connections."""
        for opened in self._opened:
            opened.close()

    def begin(self, verb: str, body: dict[str, Any] | None = None) -> HTTPConnection:
        """Send a request on a new connection, and do not wait for the response."""
        connection = HTTPConnection(self._address, timeout=DEADLINE_S)
        kind = {} if body is None else {"Content-Type": "application/json"}
        connection.request(verb, self.path, None if body is None else json.dumps(body), {"Accept": BOTH, **kind, **self.fields})
        self._opened.append(connection)
        return connection

    def request(self, verb: str, path: str = "", body: dict[str, Any] | None = None, **fields: str) -> HTTPResponse:
        """Send a request on a new connection, and wait for the head of the response."""
        connection = HTTPConnection(self._address, timeout=DEADLINE_S)
        headers = {name.replace("_", "-"): value for name, value in fields.items()}
        data = None if body is None else json.dumps(body)
        connection.request(verb, path or self.path, data, {"Accept": BOTH, **self.fields, **headers})
        self._opened.append(connection)
        self._opened.append(response := connection.getresponse())
        return response

    def post(self, method: str, id: int | str | None = None, path: str = "", **params: Any) -> HTTPResponse:
        """Send a message, and read the response to its end."""
        response = self.request("POST", path, asking(method, id, params), Content_Type="application/json")
        response.read()
        return response

    def greet(self) -> None:
        """Do the handshake, in a new session."""
        self.fields.clear()
        response = self.post("initialize", 0, **hello())
        self.fields = {"Mcp-Session-Id": response.headers["Mcp-Session-Id"], "MCP-Protocol-Version": REVISION}
        self.post("notifications/initialized")


@contextmanager
def serving(folder: Path, *words: str, peer: str = "faultyhttp.py") -> Iterator[int]:
    """Run a server of tests/peers on a free port, or on the one that the first word names. Yields the port."""
    (folder / "home").mkdir(exist_ok=True)
    with started(
        [sys.executable, str(PEERS / peer), *(words or ("0",))], folder, folder / f"{peer}.log", {}, Program
    ) as output:
        yield port(output)


def python(peer: str) -> list[str]:
    """Give the argv of a program of tests/peers that needs only the standard library."""
    return [sys.executable, "-I", "-S", str(PEERS / peer)]


def over_http(talk: Callable[[Caller], None], *faults: str, path: str = "/mcp") -> Play:
    """Start a server with these faults, put `mcpspy proxy` in front of it, and talk to that."""

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
    """Set the clock of the capture forward by so much, from the first record on for which `since` is true."""
    begun = False

    def moved(at_ns: int, record: Record) -> int:
        nonlocal begun
        begun = begun or since(record)
        return at_ns + round(seconds * SECOND_NS) * begun

    return edited(play, moved)


def slowed(play: Play, times: int) -> Play:
    """Multiply the times of the capture."""
    return edited(play, lambda at_ns, record: at_ns * times)


def edited(play: Play, moved: Callable[[int, Record], int]) -> Play:
    """Change the times of the capture: `moved` gives the new one of a record."""

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
    """Make a test for frames that hold these words, on this stream or on any."""
    return lambda record: isinstance(record, Frame) and words in record.data and stream in (None, record.stream)


def leaves(record: Record) -> bool:
    """Return whether the client closes the server's input here."""
    return isinstance(record, Close) and record.stream == 0
