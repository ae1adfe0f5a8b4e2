"""Two recorded sessions that differ in what their servers made up, and in nothing else; and sessions that do differ."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.replay.client.correlate.run import restore_correlated
from mcpspy.replay.compare.compare import ComparedSide, Comparison, compare
from mcpspy.transcript.model import Transcript
from mcpspy.transcript.transcribe import transcribe
from tests.transcript.dialogue import Dialogue, notification, request, result, tool_call

FIRST = "0f9e55b3c781"
SECOND = "a76c42a10f4d"
Say = Callable[[str], str]


def text(words: str) -> dict[str, object]:
    return {"content": [{"type": "text", "text": words}]}


def session(ids: Sequence[str], steps: Sequence[tuple[str, int]], say: Say = "opened {}.".format) -> Transcript:
    """Record steps of a client: `open` a ticket, or `write` to one that was opened, both by its place in `ids`."""
    scene = Dialogue()
    for id, (step, ticket) in enumerate(steps):
        if step == "open":
            scene.client(tool_call(id, "open", n=ticket)).server(result(id, text(say(ids[ticket]))))
        else:
            scene.client(tool_call(id, "write", ticket=ids[ticket])).server(result(id, text(f"wrote to {ids[ticket]}")))
    return transcribe(scene.records)


def compared(before: Transcript, after: Transcript) -> Comparison:
    restore_correlated(before, after)
    return compare(ComparedSide(transcript=before), ComparedSide(transcript=after))


OPENED_AND_WRITTEN = [("open", 0), ("open", 1), ("write", 0), ("write", 1), ("write", 0)]


@pytest.mark.parametrize(
    "say",
    [
        "opened {}.".format,
        "{}".format,
        lambda id: json.dumps({"ticket": id, "open": True}),
        lambda id: f"opened\n{id}",
        lambda id: f"ö\t{id} \u2028{id}",
        lambda id: json.dumps({"words": f"opened\n{id}", "ticket": id}),
    ],
)
def test_values_that_the_servers_made_up_are_no_difference(say: Say) -> None:
    before = session([FIRST, SECOND], OPENED_AND_WRITTEN, say)
    after = session(["4795321d6374", "b5d729fbfa7d"], OPENED_AND_WRITTEN, say)
    assert not compared(before, after).different


def test_a_value_that_the_other_session_had_elsewhere_is_no_difference_either() -> None:
    before, after = (session(ids, OPENED_AND_WRITTEN) for ids in ([FIRST, SECOND], [SECOND, FIRST]))
    assert not compared(before, after).different


def test_a_cursor_is_paired_with_that_of_its_page() -> None:
    def listed(cursor: str) -> Transcript:
        scene = Dialogue().client(request(1)).server(result(1, {"tools": [], "nextCursor": cursor}))
        scene.client(request(2, params={"cursor": cursor})).server(result(2, {"tools": [], "note": f"after {cursor}"}))
        return transcribe(scene.records)

    assert not compared(listed("page-two-of-7"), listed("page-two-of-8")).different


def test_a_client_that_uses_another_ticket_differs() -> None:
    before = session([FIRST, SECOND], [("open", 0), ("open", 1), ("write", 1), ("write", 0)])
    after = session(["4795321d6374", "b5d729fbfa7d"], [("open", 0), ("open", 1), ("write", 1), ("write", 1)])
    (change,) = compared(before, after).servers[0].calls
    (difference,) = change.params.listed
    assert (difference.path, difference.before, difference.after) == ("$.arguments.ticket", FIRST, SECOND)


def test_a_client_that_uses_an_id_of_its_own_differs() -> None:
    before = session([FIRST], [("open", 0), ("write", 0)])
    after = session([SECOND, "b5d729fbfa7d"], [("open", 0), ("write", 1)])
    (change,) = compared(before, after).servers[0].calls
    assert [difference.after for difference in change.params.listed] == ["b5d729fbfa7d"]


def test_what_a_call_that_only_one_session_has_brings_is_taken_for_nothing_else() -> None:
    before = session([FIRST], [("open", 0), ("write", 0)])
    scene = Dialogue().client(tool_call(0, "open", n=0)).server(notification("notifications/message", {"data": SECOND}))
    scene.server(result(0, text(f"opened {SECOND}."))).client(tool_call(1, "other")).server(result(1, text("b5d729fbfa7d")))
    scene.client(tool_call(2, "write", ticket=SECOND)).server(result(2, text(f"wrote to {SECOND}")))
    (change,) = compared(before, transcribe(scene.records)).servers[0].calls
    assert change.how == "added"


@given(
    steps=st.lists(st.tuples(st.sampled_from(["open", "write"]), st.integers(0, 3)), max_size=12),
    seeds=st.tuples(*[st.uuids(version=4)] * 8),
)
def test_whatever_ids_two_servers_make_up_nothing_differs(steps: list[tuple[str, int]], seeds: tuple[uuid.UUID, ...]) -> None:
    opened: set[int] = set()
    played: list[tuple[str, int]] = []
    for step, ticket in steps:
        if step == "open" or ticket in opened:
            opened.add(ticket)
            played.append((step, ticket))
    written = {ticket for step, ticket in played if step == "write"}
    played = [(step, ticket) for step, ticket in played if ticket in written]  # an id that no client uses is not correlated
    ids = [str(seed) for seed in seeds]
    assert not compared(session(ids[:4], played), session(ids[4:], played)).different
