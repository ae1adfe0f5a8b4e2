"""Problems of answers: lost at the end of a stream, given to the wrong call, changed on the way, or to a call that was repeated."""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tests.findings.test_gateways import count_far, hops
from tests.known_problems.stage import (
    REVISION,
    Caller,
    Case,
    Play,
    Talker,
    asking,
    assert_found,
    assert_silent,
    hello,
    holds,
    later,
    on_stdio,
    over_http,
    python,
)
from tests.known_problems.test_http import count

FAULTY = python("faulty.py")


def resume(client: Caller, *, gives_up: bool) -> None:
    """Call a tool whose stream ends at once, resume it, and wait for the answer or give up."""
    client.greet()
    client.post("tools/call", 1, name="count", arguments={"n": 1}, _meta={"progressToken": "t"})
    stream = client.request("GET", Last_Event_ID="1", Accept="text/event-stream")
    if gives_up:
        stream.readline()
        client.post("notifications/cancelled", requestId=1, reason="Request timed out")
    else:
        stream.read()


def repeat(client: Talker, text: str) -> None:
    """Give a slow call up, and make one with this text. Each is answered when the next message comes."""
    client.greet(roots={"listChanged": True})
    client.ask("tools/list", 1)
    client.say("tools/call", 2, name="echo", arguments={"text": "pay"})
    if text == "pay":
        client.say("notifications/cancelled", requestId=2, reason="timed out")
    else:
        client.say("notifications/roots/list_changed")
    client.heard()
    client.say("tools/call", 3, name="echo", arguments={"text": text})
    client.say("notifications/roots/list_changed")
    client.heard()


def fetch(client: Talker) -> None:
    """Call a tool as a task, and ask for it."""
    client.greet()
    client.ask("tools/call", 1, name="echo", arguments={"text": "a"}, task={"ttl": 3000})
    if "error" not in client.ask("tasks/get", 2, taskId="t1"):
        client.ask("tasks/result", 3, taskId="t1")


def list_tools(client: Talker) -> None:
    """List the tools."""
    client.greet()
    client.ask("tools/list", 1)


def ask_twice(client: Talker) -> None:
    """Make two calls at once."""
    client.greet()
    calls = [
        asking("tools/call", at, {"name": "echo", "arguments": {"text": city}}) for at, city in enumerate(("Rome", "Paris"), 1)
    ]
    client.together(*calls)
    client.heard()
    client.heard()


def knock(token: str) -> Play:
    """Show a token, and list the tools if it is good."""

    def talk(client: Caller) -> None:
        client.fields["Authorization"] = f"Bearer {token}"
        session = client.post("initialize", 0, **hello()).getheader("Mcp-Session-Id")
        if session:
            client.fields |= {"Mcp-Session-Id": session, "MCP-Protocol-Version": REVISION}
            client.post("notifications/initialized")
            client.post("tools/list", 1)

    return over_http(talk, "refuses=token")


def through(gateway: str, talk: Callable[[Caller], None] = count_far) -> Play:
    """Call a tool through a gateway that is tapped on both sides."""

    def play(folder: Path) -> Path:
        with hops(folder, gateway) as url, closing(Caller(url)) as client:
            talk(client)
        return folder / "a.mcpspy"

    return play


def count_twice(client: Caller) -> None:
    """Call a tool with two different arguments."""
    client.greet()
    for id in (2, 3):
        client.post("tools/call", id, name="count", arguments={"n": 0, "seed": id}, _meta={"progressToken": id})


def other_side(folder: Path) -> tuple[str, ...]:
    """Give the capture of the gateway's other side."""
    return (str(folder / "b.mcpspy"),)


CASES = (
    Case(problem=4, rule="unfinished-event", culprit="server", faulty=over_http(count, "unended"), sound=over_http(count)),
    Case(
        problem=6,
        rule="not-redelivered",
        culprit="server",
        faulty=later(
            over_http(lambda client: resume(client, gives_up=True), "resumed=nothing"), 60, holds(b"notifications/cancelled")
        ),
        sound=over_http(lambda client: resume(client, gives_up=False), "resumed=answer"),
    ),
    Case(problem=8, rule="placeholder-sent", culprit="configuration", faulty=knock("${API_KEY}"), sound=knock("good")),
    Case(
        problem=9,
        rule="changed-by-gateway",
        culprit="gateway",
        faulty=through("rounds"),
        sound=through(""),
        options=other_side,
    ),
    Case(
        problem=9,
        rule="withheld-by-gateway",
        culprit="gateway",
        faulty=through("mutes"),
        sound=through(""),
        options=other_side,
    ),
    Case(
        problem=17,
        rule="swapped-answers",
        culprit="server",
        faulty=on_stdio([*FAULTY, "pairs=swapped"], ask_twice),
        sound=on_stdio([*FAULTY, "pairs=right"], ask_twice),
    ),
    Case(
        problem=29,
        rule="carried-out-twice",
        culprit="client",
        faulty=on_stdio([*FAULTY, "slow"], lambda client: repeat(client, "pay")),
        sound=on_stdio([*FAULTY, "slow"], lambda client: repeat(client, "other")),
    ),
    Case(
        problem=29,
        rule="repeated-by-gateway",
        culprit="gateway",
        faulty=through("doubles", count_twice),
        sound=through("", count_twice),
        options=other_side,
    ),
    Case(
        problem=29,
        rule="answered-by-gateway",
        culprit="gateway",
        faulty=through("caches", count_twice),
        sound=through("", count_twice),
        options=other_side,
    ),
    Case(
        problem=29,
        rule="task-expired",
        culprit="client",
        faulty=later(on_stdio([*FAULTY, "tasks=gone"], fetch), 9, holds(b"tasks/get")),
        sound=on_stdio([*FAULTY, "tasks"], fetch),
    ),
    Case(
        problem=30,
        rule="repeated-tool-name",
        culprit="server",
        faulty=on_stdio([*FAULTY, "twice"], list_tools),
        sound=on_stdio(FAULTY, list_tools),
    ),
)


@pytest.mark.grid(6)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_fault_and_its_culprit_are_found(case: Case, tmp_path: Path) -> None:
    assert_found(case, tmp_path)


@pytest.mark.grid(3)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_without_the_fault_nothing_is(case: Case, tmp_path: Path) -> None:
    assert_silent(case, tmp_path)
