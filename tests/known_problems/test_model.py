"""Problems between a model and its tools: a tool that is not called, or called wrongly, and results that the model never saw.

The model is a server of tests/peers that says what its story has; the client is played here, on both legs, and makes the faults.
"""

import json
import sys
from collections.abc import Callable
from functools import cache
from http.client import HTTPConnection
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import urlsplit

import pytest

from captures.serving import port, started
from tests.conftest import PEERS
from tests.deadlines import DEADLINE_S
from tests.interop.serving import recorded
from tests.known_problems.stage import Case, Play, Talker, assert_found, assert_silent, on_stdio, python

FAULTY = python("faulty.py")
LETTERS = 400
ANSWERS = [
    {"to": "What?", "tools": [{"id": "c1", "name": "echo", "arguments": {"text": "x"}}]},
    {"to": "echoed", "tools": [{"id": "c2", "name": "page", "arguments": {"letters": LETTERS}}]},
    {"to": "paged", "tools": [{"id": "c3", "name": "echo", "arguments": {"text": "again"}}]},
    {"text": "Done."},
]


class Asking:
    """A client's conversation with the model, which each prompt repeats."""

    def __init__(self, url: str, tools: list[dict[str, Any]]) -> None:
        self._url = urlsplit(url)
        self._tools = [
            {"type": "function", "function": {"name": tool["name"], "parameters": tool["inputSchema"]}} for tool in tools
        ]
        self._turns: list[dict[str, Any]] = []

    def say(self, **turn: Any) -> None:
        """Send a turn, and add the model's answer."""
        self._turns.append(turn)
        connection = HTTPConnection(self._url.netloc, timeout=DEADLINE_S)
        body = json.dumps({"model": "m", "messages": self._turns, "tools": self._tools})
        connection.request("POST", f"{self._url.path}/chat/completions", body, {"Content-Type": "application/json"})
        self._turns.append(json.loads(connection.getresponse().read())["choices"][0]["message"])
        connection.close()

    def tell(self, id: str, text: str) -> None:
        """Tell the model the result of a tool use."""
        self.say(role="tool", tool_call_id=id, content=text)


def sound(client: Talker, url: str) -> None:
    """Offer all tools, call them as the model wants, and tell it all results."""
    client.greet()
    tools = client.ask("tools/list", 1)["result"]["tools"]
    model = Asking(url, tools)
    model.say(role="user", content="What?")
    model.tell("c1", f"echoed: {call(client, 2, 'echo', text='x')}")
    model.tell("c2", f"paged: {call(client, 3, 'page', letters=LETTERS)}")
    model.tell("c3", call(client, 4, "echo", text="again"))


def faulty(client: Talker, url: str) -> None:
    """Leave out a tool, change arguments, cut a result, and omit a call."""
    client.greet()
    tools = client.ask("tools/list", 1)["result"]["tools"]
    model = Asking(url, [*tools[:1], {**tools[1], "name": "pages"}])
    model.say(role="user", content="What?")
    model.tell("c1", f"echoed: {call(client, 2, 'echo', text='X')}")
    model.tell("c2", f"paged: {call(client, 3, 'page', letters=LETTERS)[:100]}")
    model.tell("c3", "The user said no.")


def call(client: Talker, id: int, name: str, **arguments: Any) -> str:
    """Call a tool, and give the text of its result."""
    text: str = client.ask("tools/call", id, name=name, arguments=arguments)["result"]["content"][0]["text"]
    return text


@cache
def played(talk: Callable[[Talker, str], None]) -> tuple[bytes, bytes]:
    """Give the capture of the server and that of the model API. All cases share the same two plays."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "home").mkdir()
        (folder / "story.json").write_text(json.dumps({"answers": ANSWERS}))
        words = [sys.executable, str(PEERS / "modelserver.py"), str(folder / "story.json")]
        with (
            started(words, folder, folder / "model.log", {}) as output,
            recorded(f"http://127.0.0.1:{port(output)}/v1", folder, "--model", "--label", "m") as url,
        ):
            server = on_stdio(FAULTY, lambda client: talk(client, url))(folder)
        return server.read_bytes(), (folder / "a.mcpspy").read_bytes()


def both(talk: Callable[[Talker, str], None]) -> Play:
    """Play with both sides recorded; the first capture is the server's."""

    def play(folder: Path) -> Path:
        for name, data in zip(("server", "model"), played(talk), strict=True):
            (folder / f"{name}.mcpspy").write_bytes(data)
        return folder / "server.mcpspy"

    return play


def model_leg(folder: Path) -> tuple[str, ...]:
    """Name the capture of the model API, which is checked together with the server's."""
    return (str(folder / "model.mcpspy"),)


RULES = (
    (26, "tool-not-offered"),
    (26, "use-not-offered"),
    (26, "use-not-called"),
    (26, "arguments-changed"),
    (27, "result-cut"),
)
FOUND = frozenset(rule for _, rule in RULES)

CASES = tuple(
    Case(
        problem=problem,
        rule=rule,
        culprit="model" if rule == "use-not-offered" else "client",
        faulty=both(faulty),
        sound=both(sound),
        options=model_leg,
        with_it=FOUND,
    )
    for problem, rule in RULES
)


@pytest.mark.grid(6)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_fault_and_its_culprit_are_found(case: Case, tmp_path: Path) -> None:
    assert_found(case, tmp_path)


@pytest.mark.grid(3)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_without_the_fault_nothing_is(case: Case, tmp_path: Path) -> None:
    assert_silent(case, tmp_path)
