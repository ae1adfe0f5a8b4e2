"""Problems of requests that are refused over HTTP, and of answers that reach another client."""

from collections.abc import Callable
from pathlib import Path

import pytest

from mcpspy.records import Open, Record
from tests.known_problems.stage import Caller, Case, assert_found, assert_silent, hello, later, over_http


def greet(client: Caller) -> None:
    """Send initialize."""
    client.post("initialize", 0, **hello())


def greet_with(*tokens: str) -> Callable[[Caller], None]:
    """Send initialize with each of these tokens in turn."""

    def play(client: Caller) -> None:
        for token in tokens:
            client.fields["Authorization"] = f"Bearer {token}"
            greet(client)

    return play


def list_twice(client: Caller) -> None:
    """List the tools, and once more."""
    client.greet()
    client.post("tools/list", 1)
    client.post("tools/list", 2)


def share(client: Caller) -> None:
    """Run two clients of HTTP+SSE, of which each asks something."""
    streams = [client.request("GET", "/sse") for _ in range(2)]
    for id, stream in enumerate(streams):
        stream.readline()
        path = stream.readline().decode().removeprefix("data: ").strip()
        client.post("initialize", id, path, **hello("2024-11-05"))
    for stream in streams:
        while not stream.readline().startswith(b"data: {"):
            pass


def refused(why: str, rule: str, culprit: str, problem: int = 28) -> Case:
    """Make the case of a client that comes with a bad token, and with a good one after that."""
    faulty, sound = over_http(greet_with("bad", "bad"), f"refuses={why}"), over_http(greet_with("good"), f"refuses={why}")
    if problem == 8:
        sound = over_http(greet_with("bad", "good"), f"refuses={why}")
    return Case(problem=problem, rule=rule, culprit=culprit, faulty=faulty, sound=sound)


def lists_again(record: Record) -> bool:
    """Tell whether the second request for the tools begins here."""
    return isinstance(record, Open) and record.transaction > 3


CASES = (
    refused("token", "token-refused", "configuration", 8),
    refused("scope", "insufficient-scope", "configuration", 8),
    refused("gateway", "http-error", "gateway"),
    refused("host", "host-refused", "server"),
    refused("path", "wrong-endpoint", "configuration"),
    Case(
        problem=28,
        rule="early-retry",
        culprit="client",
        faulty=over_http(list_twice, "refuses=limit"),
        sound=later(over_http(list_twice, "refuses=limit"), 60, lists_again),
    ),
    Case(
        problem=17,
        rule="misdelivered-answer",
        culprit="server",
        faulty=over_http(share, "swapped", path="/sse"),
        sound=over_http(share, path="/sse"),
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
