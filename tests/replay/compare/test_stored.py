"""Comparisons by digests: they find what a comparison of all rows finds, and read few of these."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.replay.compare import stored
from mcpspy.replay.compare.compare import ComparedSide, Comparison, ServerComparison, compare
from mcpspy.replay.compare.digests import CALL, digests_of
from mcpspy.replay.compare.stored import compare_stored
from mcpspy.transcript.model import Exchange
from tests.replay.compare.test_compare import TOOL, call, opened, text
from tests.transcript.dialogue import Dialogue, error, notification, request, result

CALLS = st.lists(
    st.tuples(st.integers(0, 12), st.sampled_from(["sun", "rain", None]), st.sampled_from([0, 150, 400])), max_size=12
)
"""Calls of a session: what they ask for, the answer (None: an error), and the milliseconds that it takes."""

MORE = st.lists(st.sampled_from(["log", "stray", "noise", "changed", "stderr"]), max_size=3)


def session(calls: list[tuple[int, str | None, int]], more: list[str], token: int) -> Dialogue:
    """Return a session with these calls; each has a progress token, which is new each time."""
    made = opened()
    for id, (city, answer, took_ms) in enumerate(calls, 10):
        made.client(call(id, "read", {"progressToken": token + id}, path=f"city {city}")).wait(took_ms)
        made.server(error(id, -32603) if answer is None else text(id, answer))
    for name in more:
        add(made, name)
    return made


def add(made: Dialogue, name: str) -> None:
    """Add a message that is in no exchange, or a line that is none."""
    match name:
        case "log":
            made.server(notification("notifications/message", {"level": "info", "data": "at 12:30"}))
        case "stray":
            made.server(result(900, {}))
        case "noise":
            made.server(b"starting up 42\n")
        case "changed":
            made.server(notification("notifications/tools/list_changed"))
        case "stderr":
            made.stderr(b"a line\n")


def both(before: Dialogue, after: Dialogue) -> tuple[Comparison, Comparison]:
    """Compare by digests, and all rows."""
    of_digests = compare_stored(before.transcript, after.transcript)
    assert of_digests is not None
    return of_digests, compare(ComparedSide(transcript=before.transcript), ComparedSide(transcript=after.transcript))


def only(comparison: Comparison) -> ServerComparison:
    (server,) = comparison.servers
    return server


def number(row: Exchange | None) -> int:
    return 0 if row is None else row.row


def facts(comparison: Comparison) -> dict[str, Any]:
    server = only(comparison)
    return {
        "same": server.same,
        "identity": server.identity,
        "definitions": [(change.how, change.name) for change in server.definitions],
        "calls": sorted(
            (change.how, number(change.before), number(change.after), change.answer.count) for change in server.calls
        ),
        "messages": [(change.how, change.row.row, change.count) for change in server.messages],
        "took": sorted((number(change.before), number(change.after)) for change in server.took),
        "findings": [(change.how, change.finding.rule, change.count) for change in server.findings],
    }


@given(CALLS, CALLS, MORE, MORE)
def test_of_different_calls_it_finds_what_a_comparison_of_all_rows_finds(
    before: list[tuple[int, str | None, int]], after: list[tuple[int, str | None, int]], more: list[str], more_after: list[str]
) -> None:
    once = [list({city: (city, answer, took_ms) for city, answer, took_ms in calls}.values()) for calls in (before, after)]
    of_digests, whole = both(session(once[0], more, 1), session(once[1], more_after, 500))
    assert facts(of_digests) == facts(whole)
    assert of_digests.different == whole.different


@given(CALLS, CALLS, MORE)
def test_of_calls_that_repeat_it_counts_as_many(
    before: list[tuple[int, str | None, int]], after: list[tuple[int, str | None, int]], more: list[str]
) -> None:
    of_digests, whole = map(only, both(session(before, more, 1), session(after, more, 500)))
    paired = [server.same + sum(change.how == "changed" for change in server.calls) for server in (of_digests, whole)]
    assert paired[0] == paired[1]
    assert len(of_digests.calls) + of_digests.same == len(whole.calls) + whole.same


@given(CALLS, st.integers(0, 12), st.integers(0, 12))
def test_a_call_more_is_found_wherever_it_is(calls: list[tuple[int, str | None, int]], at: int, city: int) -> None:
    more = [*calls[:at], (100 + city, "sun", 0), *calls[at:]]
    (change,) = only(both(session(calls, [], 1), session(more, [], 1))[0]).calls
    assert (change.how, change.after is not None) == ("added", True)
    (change,) = only(both(session(more, [], 1), session(calls, [], 1))[0]).calls
    assert (change.how, change.before is not None) == ("removed", True)


def test_another_definition_and_another_server_are_differences() -> None:
    other = opened(server={"protocolVersion": "2025-11-25", "serverInfo": {"name": "s", "version": "2"}, "capabilities": {}})
    of_digests, whole = both(opened(), other)
    assert facts(of_digests) == facts(whole)
    assert of_digests.different
    of_digests, whole = both(opened(), opened(tools=[{**TOOL, "description": "Reads a file."}, {**TOOL, "name": "write"}]))
    assert facts(of_digests) == facts(whole)
    assert len(only(of_digests).definitions) == 2


def test_only_rows_that_differ_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[int, str | None, int]] = [(city, "sun", 0) for city in range(300)]
    changed = [*calls[:200], (200, "rain", 0), *calls[201:]]
    before, after = session(calls, [], 1).transcript, session(changed, [], 1).transcript
    read: list[int] = []
    plain = stored._Side.call

    def counted(side: Any, at: int) -> Exchange:
        read.append(at)
        return plain(side, at)

    monkeypatch.setattr(stored._Side, "call", counted)
    comparison = compare_stored(before, after)
    assert comparison is not None
    assert only(comparison).same == 301
    assert len(read) == 2


def test_more_differences_than_can_be_read_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored, "MAX_READ", 3)
    before = session([(city, "sun", 0) for city in range(9)], ["log", "changed", "stray", "noise"], 1)
    of_digests, _ = both(before, session([(city, "rain", 0) for city in range(9)], [], 1))
    assert len(only(of_digests).calls) == 3
    assert of_digests.unread == 6 + 1
    of_digests, _ = both(before, session([(city, "sun", 0) for city in range(20, 29)], ["log", "changed", "stray", "noise"], 1))
    assert of_digests.unread == 6
    assert of_digests.different


def test_values_that_are_new_in_each_session_do_not_change_a_digest() -> None:
    digests = [digests_of(session([(1, "sun", 0)], [], token).transcript) for token in (1, 2)]
    assert digests[0] is not None
    assert digests[0] == digests[1]
    assert digests[0].kinds.count(CALL) == 3


def test_an_answer_that_is_spelled_in_another_way_is_no_difference() -> None:
    before, after = opened(), opened()
    before.client(request(9, "ping")).server(b'{"jsonrpc":"2.0","id":9,"result":{"a":1,"b":2}}\n')
    after.client(request(9, "ping")).server(b'{"jsonrpc":"2.0","id":9,"result":{"b": 2, "a": 1.0}}\n')
    of_digests, whole = both(before, after)
    assert facts(of_digests) == facts(whole)
    assert not of_digests.different
