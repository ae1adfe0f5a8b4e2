"""The smallest sequence, as lines and as JSON."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from mcpspy.replay.client.plan import Send
from mcpspy.replay.condition import Occurrence
from mcpspy.replay.shrink import ShrinkResult
from mcpspy.views.compare.replays import MAX_SENDS, shrunk_json, shrunk_lines, shrunk_next_lines
from mcpspy.views.text.line import line_cells, plain
from tests.transcript.dialogue import Dialogue, error, notification, request, result

HOSTILE = "\x1b[2Jevil\u202e\n\r\x07"


def shrink_result(name: str = "echo", *, sends: int = 2) -> ShrinkResult:
    """Make a notification and calls of a tool of this name; the last call is answered with an error."""
    recorded = Dialogue().client(notification("notifications/a"))
    for id in range(1, sends):
        recorded.client(request(id, "tools/call", {"name": name, "arguments": {"text": name}}))
        recorded.server(result(id) if id < sends - 1 else error(id, -32603))
    rows = {exchange.row: exchange for exchange in recorded.exchanges}
    calls = [Send(message=exchange.request, row=row, exchange=exchange) for row, exchange in rows.items()]
    return ShrinkResult(
        until=f'"{name}"',
        happened=Occurrence(f"error -32603: {name}", max(rows, default=None)),
        sends=(Send(message=recorded.unpaired_messages[0], row=1), *calls),
        live=rows,
        of=67,
        runs=21,
        unresolved=0,
        is_minimal=True,
        path=f"/tmp/{name}.mcpspy",
    )


def lines(shrunk: ShrinkResult, width: int | None = 100) -> list[str]:
    return [plain(line) for line in shrunk_lines(shrunk, width)]


def test_each_message_has_its_row_its_arguments_and_its_outcome() -> None:
    assert lines(shrink_result()) == [
        '✗ "echo" · 2 of 67 messages · error -32603: echo',
        "  21 runs; every one of these is needed",
        "",
        "   1 → notifications/a",
        '   2 → tools/call echo {"text": "echo"}  error: -32603 no  ⚑',
    ]


def test_a_payload_that_is_not_json_rpc_is_shown_as_it_is() -> None:
    (unpaired,) = Dialogue().client(b"what?\n").unpaired_messages
    noise = replace(shrink_result(), sends=(Send(message=unpaired, row=1),))
    assert lines(noise)[-1] == "   1 → no JSON-RPC what?"


def test_an_unfinished_search_says_so() -> None:
    cut = replace(shrink_result(), is_minimal=False, unresolved=2)
    assert lines(cut)[1] == "  21 runs, 2 of them without a server; there may be a smaller sequence"


def test_a_long_sequence_is_cut() -> None:
    assert lines(shrink_result(sends=MAX_SENDS + 7))[-1] == "     and 7 more"


def test_text_of_peers_is_harmless_for_terminals_and_programs() -> None:
    hostile = shrink_result(HOSTILE)
    shown = "".join([*lines(hostile, None), *(plain(line) for line in shrunk_next_lines(hostile, f"mcpspy {HOSTILE}", None))])
    shrunk = shrunk_json(hostile, HOSTILE, HOSTILE, of=1, runs=1, unresolved=0)
    for sign in ("\x1b", "\u202e", "\x07", "\r"):
        assert sign not in shown
        assert sign not in shrunk


@pytest.mark.parametrize("width", [20, 40, 80])
def test_no_line_is_wider_than_the_screen(width: int) -> None:
    assert all(line_cells(line) <= width for line in shrunk_lines(shrink_result("a long name " * 9), width))


def test_a_condition_that_never_became_true_has_few_fields() -> None:
    assert json.loads(shrunk_json(None, "crash", "", of=67, runs=1, unresolved=0)) == {
        "schema": 1, "until": "crash", "happened": False, "of": 67, "runs": 1, "unresolved": 0,
    }  # fmt: skip
