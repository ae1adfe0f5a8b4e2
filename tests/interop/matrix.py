"""Every capture of captures/, played again: before which client, over which transport, to which server; what is left out, and why.

Stories name the folder in which they were recorded, and one an authorization server: `moved` puts others in their place.
"""

import json
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from subprocess import PIPE
from typing import Any

from captures.make import DEMO, LONG, STORIES, Step, call, known, put
from captures.serving import PEERS, port, started
from mcpspy.records import CLIENT, SERVER
from mcpspy.transcript.model import Exchange, Kind, Outcome, Transcript, UnpairedMessage
from tests.cli.terminal import COPY
from tests.conftest import ROOT
from tests.deadlines import DEADLINE_S
from tests.starting import Program

CAPTURES = ROOT / "captures"
ISSUER = "http://127.0.0.1:9000"
"""The authorization server of the captures; its URL ends in a slash where it says who it is."""

TRANSPORTS = {"stdio": "stdio", "streamable": "Streamable HTTP", "sse": "HTTP+SSE"}
PATHS = {"streamable": "/mcp", "sse": "/sse"}

DIALECT = "its server speaks a dialect that no specification has, and official clients do not"
LEFT_OUT = {
    "refused": "its server does not start: there are no answers to serve, and there is no server to replay to",
    "channels": DIALECT,
    "prompts": DIALECT,
}
"""Captures of no session that ended well, or of none that official clients can have."""

OWN_STEPS: dict[str, tuple[str, list[Step]]] = {
    "oauth": ("legacy", [known("whoami"), call("whoami"), {"list": "tools"}]),
    "resumed": ("legacy", [known(LONG), {**call(LONG, duration=1.2, steps=4), "progress": True}]),
}
"""Steps of the official client, over the transports that the capture's own client does not speak."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unsaid:
    """Methods of a story that do not occur over another transport, and the reason for the table."""

    methods: frozenset[str]
    why: str


NO_STDIN = Unsaid(methods=frozenset({"roots/list"}), why="without `roots/list`, which came after stdin was closed")
NO_PING = Unsaid(methods=frozenset({"ping"}), why="without `ping`, which found the session deleted")
UNSAID = {
    ("goodbye", "streamable"): NO_STDIN,
    ("goodbye", "sse"): NO_STDIN,
    ("resumed", "stdio"): NO_PING,
    ("resumed", "sse"): NO_PING,
}

SERVED = sorted(set(STORIES) - set(LEFT_OUT))
HTTP_STORIES = {name: "sse" if story.path == "/sse" else "streamable" for name, story in STORIES.items() if story.path}
"""Those that were recorded over HTTP, and over which transport: there HTTP says the same too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """Row of the table for a replayed story: the options, how many of its client's requests are not sent, and the reason.

    `volatile` names the members of results that differ from replay to replay with this server, besides those that the specification
    says are new each time. They are left out of the comparison.
    """

    options: tuple[str, ...] = ()
    unsent: int = 0
    volatile: tuple[str, ...] = ()
    why: str = ""

    @property
    def rules(self) -> list[str]:
        """The ignore rules that leave out what is volatile."""
        return [f"$..{name}" for name in self.volatile]


TIME = ("datetime", "day_of_week", "is_dst", "time_difference")
"""Members of mcp-server-time's answers that depend on the day of the replay; the last two change with summer time."""

REPLAYED = {
    "oauth": Replayed(
        options=("--header", "Authorization: Bearer good"),
        unsent=1,
        why="with `--header 'Authorization: …'`, and without the request that was refused for want of it",
    ),
    "resumed": Replayed(unsent=1, why=NO_PING.why),
    "time": Replayed(
        volatile=TIME,
        why=f"with `--ignore '$..NAME'` for {', '.join(f'`{name}`' for name in TIME)}, which depend on the day of the replay",
    ),
}


def moved(name: str, folder: Path, **places: str) -> Path:
    """Copy a capture as if it had been recorded in `folder`; `places` are texts that replace other recorded ones.

    The lines that change lose their checksum, as those do that somebody edits.
    """
    made = folder / f"{name}.mcpspy"
    lines = (CAPTURES / f"{name}.mcpspy").read_bytes().splitlines(keepends=True)
    for old, new in {str(DEMO): str(folder), **places}.items():
        lines = [_edited(line, old.encode(), new.encode()) for line in lines]
    made.write_bytes(b"".join(lines))
    return made


def _edited(line: bytes, old: bytes, new: bytes) -> bytes:
    return line if old not in line else re.sub(rb',"crc":"[0-9a-f]+"\}$', b"}", line.replace(old, new), flags=re.MULTILINE)


@contextmanager
def placed(name: str, folder: Path) -> Iterator[Path]:
    """The capture of a story, moved to `folder`; the authorization server that it names runs."""
    (folder / "home").mkdir()
    with ExitStack() as running:
        if ISSUER.encode() not in (CAPTURES / f"{name}.mcpspy").read_bytes():
            yield moved(name, folder)
            return
        words = [sys.executable, str(PEERS / "issuer.py"), "0"]
        output = running.enter_context(started(words, folder, folder / "home" / "issuer.log", {}))
        yield moved(name, folder, **{ISSUER: f"http://127.0.0.1:{port(output)}"})


def client(name: str, transport: str, folder: Path, server: Sequence[str]) -> list[str]:
    """Return the words that start a story's client before `server`: a command, or the one word that is a URL."""
    story = STORIES[name]
    if story.client and transport == "streamable":
        program, *arguments = story.client
        return put([sys.executable, str(PEERS / program), *arguments], URL=server[0])
    if story.client and name == "oauth" and transport == "sse":
        return [sys.executable, str(PEERS / "loginclient.py"), "legacy", *server]
    mode, story_steps = OWN_STEPS.get(name, (story.mode, list(story.steps)))
    steps = json.dumps(story_steps).replace("FOLDER", str(folder))
    return [sys.executable, str(PEERS / "stepclient.py"), mode, steps, *server]


@contextmanager
def mocking(capture: Path, transport: str, folder: Path, *options: str) -> Iterator[str]:
    """A mock of a capture over HTTP, which records to `FOLDER/own.mcpspy`. Yields its URL; ends it as Ctrl-C would."""
    words = [*COPY, "mock", str(capture), "--listen", "127.0.0.1:0", "--transport", transport]
    words += ["--capture", str(folder / "own.mcpspy"), *options]
    with Program(words, cwd=folder, stdout=PIPE, stderr=PIPE, text=True) as mock:
        try:
            assert mock.stderr is not None
            line = mock.stderr.readline()
            url = re.search(r"http://\S+", line)
            assert url, line + mock.stderr.read()
            yield url[0]
            mock.terminate()
            _, stderr = mock.communicate(timeout=DEADLINE_S)
            assert mock.returncode == 0, stderr
        finally:
            mock.kill()


def asks_together(name: str) -> bool:
    """Check that the client of a story sends several requests at the same time."""
    return any("together" in step for step in STORIES[name].steps)


# What came of it


def answer(exchange: Exchange) -> Any:
    """Return the result or error of an exchange, without the message's id."""
    response = exchange.response
    if response is None:
        return None
    return response.error if response.kind is Kind.ERROR else response.result


def calls(transcript: Transcript, without: Unsaid | None = None) -> list[tuple[Any, ...]]:
    """List the client's requests with their answers, without those that HTTP refused: these never reached the server."""
    unheard = (Outcome.HTTP_ERROR, Outcome.REDIRECTED)
    return [
        (exchange.method, exchange.target, exchange.outcome, exchange.progress, answer(exchange))
        for exchange in transcript.exchanges
        if exchange.sender == CLIENT
        and exchange.outcome not in unheard
        and not (without and exchange.method in without.methods)
    ]


def questions(transcript: Transcript, without: Unsaid | None = None) -> list[tuple[str, Any]]:
    """List the server's requests with their params."""
    questions_of_server = [exchange for exchange in transcript.exchanges if exchange.sender == SERVER]
    return [
        (exchange.method, exchange.request.params)
        for exchange in questions_of_server
        if not (without and exchange.method in without.methods)
    ]


def transactions(transcript: Transcript) -> Counter[tuple[Any, ...]]:
    """Count the HTTP requests by method, path, status and the fields that decide the form of an answer.

    Without their order, as some are sent at the same time; without ports; and without requests that were given up before the answer.
    """
    counts: Counter[tuple[Any, ...]] = Counter()
    for transaction in transcript.captures[0].transactions.values():
        if transaction.response is not None:
            head = transaction.response.head
            answer_fields = (head.get("www-authenticate"), head.get("location"), head.media_type)
            path = transaction.target.partition("?")[0]
            counts[transaction.method, path, transaction.status, *(re.sub(r":\d+", "", word) for word in answer_fields)] += 1
    return counts


def news(transcript: Transcript) -> list[tuple[str | None, Any]]:
    """List the server's messages that belong to no request."""
    unpaired_messages = [row.message for row in transcript.rows if isinstance(row, UnpairedMessage)]
    return [(message.method, message.params) for message in unpaired_messages if message.sender == SERVER]
