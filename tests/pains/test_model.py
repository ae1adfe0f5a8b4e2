"""Pains between a model and its tools: a tool that is not called, or called wrongly, and results that the model never saw.

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
from tests.pains.stage import Play, Scene, Talker, assert_found, assert_silent, on_stdio, python

FAULTY = python("faulty.py")
LETTERS = 400
ANSWERS = [
    {"to": "What?", "tools": [{"id": "c1", "name": "echo", "arguments": {"text": "x"}}]},
    {"to": "echoed", "tools": [{"id": "c2", "name": "page", "arguments": {"letters": LETTERS}}]},
    {"to": "paged", "tools": [{"id": "c3", "name": "echo", "arguments": {"text": "again"}}]},
    {"text": "Done."},
]


class Asking:
    """A client's conversation with the model: it repeats all of it in each prompt."""

    def __init__(self, url: str, tools: list[dict[str, Any]]) -> None:
        self._url = urlsplit(url)
        self._tools = [
            {"type": "function", "function": {"name": one["name"], "parameters": one["inputSchema"]}} for one in tools
        ]
        self._turns: list[dict[str, Any]] = []

    def say(self, **turn: Any) -> None:
        """Take a turn, and have the model's answer be the next."""
        self._turns.append(turn)
        connection = HTTPConnection(self._url.netloc, timeout=DEADLINE_S)
        body = json.dumps({"model": "m", "messages": self._turns, "tools": self._tools})
        connection.request("POST", f"{self._url.path}/chat/completions", body, {"Content-Type": "application/json"})
        self._turns.append(json.loads(connection.getresponse().read())["choices"][0]["message"])
        connection.close()

    def tell(self, id: str, text: str) -> None:
        """Tell it what came of a tool use."""
        self.say(role="tool", tool_call_id=id, content=text)


def well(client: Talker, url: str) -> None:
    """All tools are offered and called as the model wants, and it is told all that they return."""
    client.greet()
    tools = client.ask("tools/list", 1)["result"]["tools"]
    model = Asking(url, tools)
    model.say(role="user", content="What?")
    model.tell("c1", f"echoed: {call(client, 2, 'echo', text='x')}")
    model.tell("c2", f"paged: {call(client, 3, 'page', letters=LETTERS)}")
    model.tell("c3", call(client, 4, "echo", text="again"))


def ill(client: Talker, url: str) -> None:
    """A tool is left out, arguments are changed, a result is cut, and a call is not made."""
    client.greet()
    tools = client.ask("tools/list", 1)["result"]["tools"]
    model = Asking(url, [*tools[:1], {**tools[1], "name": "pages"}])
    model.say(role="user", content="What?")
    model.tell("c1", f"echoed: {call(client, 2, 'echo', text='X')}")
    model.tell("c2", f"paged: {call(client, 3, 'page', letters=LETTERS)[:100]}")
    model.tell("c3", "The user said no.")


def call(client: Talker, id: int, name: str, **arguments: Any) -> str:
    """What a tool returns."""
    text: str = client.ask("tools/call", id, name=name, arguments=arguments)["result"]["content"][0]["text"]
    return text


@cache
def played(talk: Callable[[Talker, str], None]) -> tuple[bytes, bytes]:
    """The captures of the server's leg and of the model's. Every scene has the same two plays."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "home").mkdir()
        (folder / "story.json").write_text(json.dumps({"answers": ANSWERS}))
        words = [sys.executable, str(PEERS / "modelserver.py"), str(folder / "story.json")]
        with (
            started(words, folder, folder / "model.log", {}) as said,
            recorded(f"http://127.0.0.1:{port(said)}/v1", folder, "--model", "--label", "m") as url,
        ):
            server = on_stdio(FAULTY, lambda client: talk(client, url))(folder)
        return server.read_bytes(), (folder / "a.mcpspy").read_bytes()


def both(talk: Callable[[Talker, str], None]) -> Play:
    """Play with both legs recorded; what is named first is the server's."""

    def play(folder: Path) -> Path:
        for name, data in zip(("server", "model"), played(talk), strict=True):
            (folder / f"{name}.mcpspy").write_bytes(data)
        return folder / "server.mcpspy"

    return play


def model_leg(folder: Path) -> tuple[str, ...]:
    """The model's capture, which is checked together with the server's."""
    return (str(folder / "model.mcpspy"),)


RULES = (
    (26, "tool-not-offered"),
    (26, "use-not-offered"),
    (26, "use-not-called"),
    (26, "arguments-changed"),
    (27, "result-cut"),
)
FOUND = frozenset(rule for _, rule in RULES)

SCENES = tuple(
    Scene(
        pain=pain,
        rule=rule,
        culprit="model" if rule == "use-not-offered" else "client",
        ill=both(ill),
        well=both(well),
        options=model_leg,
        with_it=FOUND,
    )
    for pain, rule in RULES
)


@pytest.mark.parametrize("scene", SCENES, ids=str)
def test_the_fault_and_its_culprit_are_found(scene: Scene, tmp_path: Path) -> None:
    assert_found(scene, tmp_path)


@pytest.mark.parametrize("scene", SCENES, ids=str)
def test_without_the_fault_nothing_is(scene: Scene, tmp_path: Path) -> None:
    assert_silent(scene, tmp_path)
