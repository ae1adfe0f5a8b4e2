"""Problems of what is said in sessions: lists, notes, forms and calls that belong together."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.known_problems.stage import Case, Play, Talker, assert_found, assert_silent, holds, later, on_stdio, python

SHELF = python("shelf.py")
A, B = "memo:///a", "memo:///b"

Talk = Callable[[Talker], None]


def shelf(talk: Talk, *faults: str) -> Play:
    """Talk to the server with these faults."""
    return on_stdio([*SHELF, *faults], talk)


def case(problem: int, rule: str, culprit: str, talk: Talk, *faults: str, sound: Talk | None = None) -> Case:
    """Make a case of a fault of the server, or of a client that talks otherwise than the `sound` one."""
    return Case(problem=problem, rule=rule, culprit=culprit, faulty=shelf(talk, *faults), sound=shelf(sound or talk))


def calls(*names: str, **arguments: Any) -> Talk:
    """Call these tools, after the whole list was read."""

    def talk(client: Talker) -> None:
        read_list(client)
        for at, name in enumerate(names, 10):
            client.ask("tools/call", at, name=name, arguments=arguments)

    return talk


def read_list(client: Talker) -> None:
    """Read both pages of the tools."""
    client.greet(elicitation={})
    client.ask("tools/list", 1)
    client.ask("tools/list", 2, cursor="2")


def read_a_page(client: Talker) -> None:
    """Read the first page alone, and call a tool."""
    client.greet()
    client.ask("tools/list", 1)
    client.ask("tools/call", 3, name="dump")


def read_again(client: Talker) -> None:
    """Read the last page nine times."""
    read_list(client)
    for at in range(20, 29):
        client.ask("tools/list", at)


def order(*arguments: dict[str, str]) -> Talk:
    """Ask for orders, of which none is found."""

    def talk(client: Talker) -> None:
        read_list(client)
        client.ask("tools/call", 9, name="orders", arguments={})
        for at, given in enumerate(arguments, 10):
            client.ask("tools/call", at, name="find", arguments=given)

    return talk


def log_in(client: Talker) -> None:
    """Call a tool that asks for something, and decline."""
    read_list(client)
    question = client.ask("tools/call", 10, name="login", arguments={})
    client.answer(question["id"], action="decline")
    client.line()


def read_notes(client: Talker) -> None:
    """Read two notes."""
    client.greet()
    client.ask("resources/read", 1, uri=A)
    client.ask("resources/read", 2, uri=B)


def watch_note(client: Talker) -> None:
    """Read a note, have it changed, and read it again."""
    client.greet()
    client.ask("resources/subscribe", 1, uri=A)
    change_note(client)


def change_note(client: Talker) -> None:
    """Read the note, change it, read it again, and wait for all answers."""
    client.ask("resources/read", 2, uri=A)
    client.say("tools/call", 3, name="write", arguments={"uri": A, "text": "other"})
    while client.heard().get("id") != 3:
        pass
    client.ask("resources/read", 4, uri=A)


def have_note_changed(client: Talker) -> None:
    """Change a note without a subscription."""
    client.greet()
    change_note(client)


def wait_for_storm(client: Talker) -> None:
    """Ping, and read on to the pong."""
    client.greet()
    client.say("ping", 1)
    while "id" not in client.heard():
        pass


def work(client: Talker) -> None:
    """Make two requests while a call runs."""
    client.greet()
    client.say("tools/call", 1, name="work")
    client.say("ping", 2)
    client.say("tools/list", 3)
    for _ in range(3):
        client.line()


def stop_working(client: Talker) -> None:
    """Cancel a call that runs, and ping."""
    client.greet()
    client.say("tools/call", 1, name="work", _meta={"progressToken": "t"})
    client.say("notifications/cancelled", requestId=1)
    client.say("ping", 2)
    while client.heard().get("id") != 2:
        pass


DONE = holds(b'"done"', 1)
KNOWN = {"order_id": "ORD-1041"}, {"order_id": "ORD-1042"}
UNKNOWN = {"order_id": "ORD-7001"}, {"order_id": "ORD-7002"}

CASES = (
    Case(
        problem=3,
        rule="cancellation-ignored",
        culprit="server",
        faulty=later(shelf(stop_working, "goes_on"), 2, holds(b'"progress": 5', 1)),
        sound=later(shelf(stop_working), 2, DONE),
    ),
    Case(
        problem=4,
        rule="blocked-by-call",
        culprit="server",
        faulty=later(shelf(work, "blocks"), 5, DONE),
        sound=later(shelf(work), 5, DONE),
    ),
    case(23, "secret-asked", "server", log_in, "nosy"),
    case(31, "calls-in-circles", "agent", calls(*["dump", "count"] * 4), sound=calls("dump", "count")),
    case(31, "invented-id", "agent", order(*UNKNOWN), sound=order(*KNOWN)),
    case(31, "placeholder-argument", "agent", order({"path": "/path/to/order"}), sound=order({"path": "/home/order"})),
    case(32, "pages-unread", "client", read_a_page, sound=calls("dump")),
    case(32, "overlapping-pages", "server", read_list, "overlap"),
    case(32, "listed-again", "client", read_again, sound=read_list),
    case(32, "change-storm", "server", wait_for_storm, "stormy"),
    case(33, "tool-name-refused", "server", read_list, "names"),
    case(33, "schema-refused", "server", read_list, "schemas"),
    case(34, "other-resource", "server", read_notes, "mixed"),
    case(34, "update-missing", "server", watch_note, "silent"),
    case(34, "unasked-update", "server", have_note_changed, "eager"),
    case(35, "text-contradicts", "server", calls("count"), "contradicts"),
    case(35, "text-cut", "server", calls("dump"), "cut"),
)


@pytest.mark.grid(6)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_fault_and_its_culprit_are_found(case: Case, tmp_path: Path) -> None:
    assert_found(case, tmp_path)


@pytest.mark.grid(3)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_without_the_fault_nothing_is(case: Case, tmp_path: Path) -> None:
    assert_silent(case, tmp_path)
