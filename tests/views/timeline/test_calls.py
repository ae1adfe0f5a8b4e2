"""The part of a row in its call, polls that are folded, and the call above a row that is shown in full."""

import json
from typing import Any

import pytest

from mcpspy.views.json.rows import row_object
from mcpspy.views.json.transactions import transaction_object
from mcpspy.views.text.columns import Lanes
from mcpspy.views.text.line import line_cells, plain
from mcpspy.views.timeline.calls import MAX_PARTS
from mcpspy.views.timeline.exchange import row_lines
from mcpspy.views.timeline.timeline import Timeline, timeline, timeline_columns
from tests.transcript.calls.test_join import (
    EXTENSION,
    again,
    ask,
    created,
    done,
    listen,
    on,
    poll,
    polled,
    required,
    status_told,
    subscribe,
    task,
    to_urls,
    updated,
    url_elicitation,
)
from tests.transcript.dialogue import Dialogue, notification, request, result
from tests.transcript.traffic import Traffic, opened_session

HARM = "\x1b[31m\u202e\x07"


def shown(dialogue: Dialogue, width: int | None = None) -> list[str]:
    """Return the lines of the rows."""
    lines = [plain(line) for line in timeline(dialogue.transcript, width=width)]
    begin = next(at for at, line in enumerate(lines) if line.startswith("row"))
    lines = [line for line in lines[begin + 1 :] if "server started" not in line]
    return [line for line in lines if line and not line.startswith(("⚑", "    "))]


def outcomes(dialogue: Dialogue) -> list[str]:
    """Return the outcome of each row."""
    return [line.partition("→ ")[2].partition("  ")[2].strip() for line in shown(dialogue) if "→ " in line]


def above(dialogue: Dialogue, row: int, width: int | None = None) -> list[str]:
    """Return the lines about the call above a row."""
    transcript = dialogue.transcript
    selected = transcript.row(row)
    assert selected is not None
    lines = [plain(line) for line in row_lines(transcript, selected, width=width)]
    begin = next((at for at, line in enumerate(lines) if line.startswith("call of row")), len(lines))
    return lines[begin : lines.index("", begin)] if begin < len(lines) else []


def two_rounds(wait_ms: int = 3000) -> Dialogue:
    """Make a call that needed input."""
    return (
        Dialogue(begins=False)
        .client(ask(1))
        .server(required(1, "s"))
        .wait(wait_ms)
        .client(again(2, state="s"))
        .server(result(2))
    )


def test_the_last_round_shows_the_duration_of_the_call() -> None:
    assert outcomes(two_rounds()) == ["needs input: elicitation/create", "ok: round 2 of row 1, 3.00 s in total"]


def test_a_round_in_between_shows_its_number() -> None:
    dialogue = Dialogue().client(ask(1)).server(required(1, "a")).client(again(2, state="a")).server(required(2, "b"))
    assert outcomes(dialogue)[1] == "needs input: round 2 of row 1 · elicitation/create"


def test_on_a_narrow_screen_a_rows_part_in_its_call_has_a_line_of_its_own() -> None:
    lines = [plain(line) for line in timeline(two_rounds().transcript, width=60)]
    assert "round 2 of row 1, 3.00 s in total" in [line.strip() for line in lines]
    assert all(len(line) <= 60 for line in lines)


def test_polls_without_news_are_counted_in_the_next_one_with_news() -> None:
    dialogue = polled(Dialogue(), 16).client(poll(17)).server(result(17, task("t", "completed")))
    dialogue.client(poll(18, method="tasks/result")).server(result(18))
    assert outcomes(dialogue)[1:] == [
        "ok ×17: completed after 16.0 s · polls 1–17 of row 1",
        "ok: result of row 1, 16.0 s in total",
    ]


def test_polls_are_counted_across_other_calls() -> None:
    dialogue = Dialogue()
    for name in ("t", "u"):
        dialogue.client(ask(name)).server(created(name, name))
    for id in range(4):
        dialogue.client(poll(id, "t")).server(result(id, task("t"))).client(poll(10 + id, "u")).server(
            result(10 + id, task("u"))
        )
    dialogue.client(poll(9, "t")).server(result(9, task("t", "completed")))
    assert [line.split(":")[1] for line in outcomes(dialogue)[2:]] == [
        " completed after 21.0 ms · polls 1–5 of row 1",
        " working · polls 1–4 of row 2",
    ]


def test_withheld_polls_come_before_the_next_row_of_their_call() -> None:
    dialogue = (
        polled(Dialogue(), 3).server(status_told("t", "completed")).client(poll(9, method="tasks/result")).server(result(9))
    )
    assert outcomes(dialogue)[1:] == ["ok ×3: working · polls 1–3 of row 1", "ok: result of row 1, 3.00 s in total"]


def test_each_poll_with_a_new_status_is_shown() -> None:
    dialogue = polled(Dialogue(), 0)
    for id, status in enumerate(("working", "working", "input_required", "working"), 1):
        dialogue.client(poll(id)).server(result(id, task("t", status)))
    assert outcomes(dialogue)[1:] == ["ok ×3: input_required · polls 1–3 of row 1", "ok: working · poll 4 of row 1"]


def test_a_poll_that_failed_is_shown() -> None:
    dialogue = polled(Dialogue(), 2).client(poll(8)).server({"jsonrpc": "2.0", "id": 8, "error": {"code": 1, "message": "no"}})
    assert outcomes(dialogue)[-1] == "error ×3: 1 no · polls 1–3 of row 1"


def test_selected_rows_are_not_folded() -> None:
    lines = [plain(line) for line in timeline(polled(Dialogue(), 4).transcript, rows=(1, 5))]
    assert sum("tasks/get" in line for line in lines) == 4


def test_live_and_offline_fold_alike() -> None:
    dialogue = polled(Dialogue(begins=False), 5).client(poll(9)).server(result(9, task("t", "completed")))
    transcript = dialogue.transcript
    lanes = Lanes(transcript.captures)
    machine = Timeline(timeline_columns(transcript.rows, lanes, None), lanes)
    live: list[str] = []
    for row in transcript.rows:
        live += [plain(line) for line in [*machine.feed(row), *machine.pause()]]
    live += [plain(line) for line in machine.close()]
    rows = ("tools/call", "tasks/get")
    assert [line for line in live if any(method in line for method in rows)] == [
        line for line in shown(dialogue) if any(method in line for method in rows)
    ]


@pytest.mark.parametrize(
    ("dialogue", "words"),
    [
        (polled(Dialogue(), 0).server(status_told("t", "completed")), "completed after 2.00 ms · of row 1"),
        (Dialogue().client(subscribe(1)).server(result(1)).server(updated()), "x:1 · of row 1"),
        (Dialogue().client(listen(1)).server(on(1)), "of row 1"),
        (Dialogue().client(ask(1)).server(to_urls(1, "e")).server(done("e")), "of row 1"),
        (Dialogue().server(url_elicitation(1, "e")).client(result(1)).server(done("e")), "of row 1, 2.00 ms in total"),
    ],
)
def test_a_notification_names_its_call(dialogue: Dialogue, words: str) -> None:
    assert shown(dialogue)[-1].endswith(words)


def test_a_subscription_counts_its_notifications() -> None:
    dialogue = (
        Dialogue().client(listen(1)).server(on(1, "subscriptions/acknowledged")).server(on(1)).server(on(1)).server(result(1))
    )
    assert outcomes(dialogue)[0] == "ok: 2 notifications"


def test_a_request_within_a_task_names_its_call() -> None:
    related = {"_meta": {"io.modelcontextprotocol/related-task": {"taskId": "t"}}}
    dialogue = polled(Dialogue(), 0).server(request(1, "roots/list", related)).client(result(1, {"roots": []}))
    assert "for row 1" in shown(dialogue)[-1]


def test_partial_results_are_counted_below_their_row() -> None:
    dialogue = Dialogue().client(ask(1)).server(result(1, {"isComplete": False})).server(result(1, {"isComplete": False}))
    lines = [plain(line).strip() for line in timeline(dialogue.server(result(1, {"isComplete": True})).transcript)]
    assert "0.003                   ← partial result ×2" in lines


def test_a_session_that_replaces_an_unknown_one_says_so() -> None:
    traffic = Traffic()
    opened_session(traffic, "s1")
    traffic.post(request(7), session="s1").answer(404)
    opened_session(traffic, "s2")
    lines = [plain(line) for line in timeline(traffic.transcript)]
    (line,) = [line for line in lines if "replaces an unknown session" in line]
    assert "initialize" in line
    capture = traffic.transcript.captures[0]
    transactions = [transaction_object(transaction, capture) for transaction in capture.transactions.values()]
    assert [(transaction.get("session_unknown"), transaction.get("session_before")) for transaction in transactions[2:4]] == [
        (3, None),
        (None, "s1"),
    ]


# --- Whole ---


def test_the_rows_of_a_call_are_listed_above_each_of_them() -> None:
    assert above(two_rounds(), 2) == above(two_rounds(), 1)
    assert above(two_rounds(), 2) == [
        "call of row 1 · ok · 3.00 s in total · 2.00 ms on the wire · 2 rounds",
        "    row 1       tools/call greet  needs input: elicitation/create  1.00 ms",
        "    row 2       tools/call greet  ok  1.00 ms",
    ]


def test_a_call_of_one_exchange_has_no_list() -> None:
    assert above(Dialogue().client(ask(1)).server(result(1)), 1) == []


def test_the_polls_of_a_call_are_one_line() -> None:
    lines = above(polled(Dialogue(), 17, EXTENSION), 5)
    assert lines[0] == "call of row 1 · pending · 18.0 ms on the wire · 17 polls · task t working"
    assert [line.split("  ")[2] for line in lines[1:]] == ["row 1", "rows 2–18"]


def test_a_long_list_shows_its_beginning_and_its_end() -> None:
    dialogue = Dialogue().client(ask(0)).server(required(0, "0"))
    for id in range(1, 101):
        dialogue.client(again(id, state=str(id - 1))).server(required(id, str(id)))
    lines = above(dialogue, 50)
    assert (len(lines), [line for line in lines if "more lines" in line]) == (
        MAX_PARTS + 2,
        [f"    … {101 - MAX_PARTS} more lines"],
    )


def test_no_line_of_a_list_is_wider_than_the_screen() -> None:
    transcript = polled(Dialogue(), 17, EXTENSION).transcript
    row = transcript.row(1)
    assert row is not None
    assert max(line_cells(line) for line in row_lines(transcript, row, width=40)) <= 40


def test_names_of_tasks_are_harmless() -> None:
    dialogue = (
        Dialogue().client(ask(1, HARM)).server(created(1, HARM)).client(poll(2, HARM)).server(result(2, task(HARM, HARM)))
    )
    dialogue.server(notification("notifications/tasks/status", task(HARM, HARM)))
    text = "".join([*shown(dialogue), *above(dialogue, 1), *above(dialogue, 3)])
    assert not set(HARM) & set(text) - {"[", "3", "1", "m"}


# --- JSON ---


def as_json(dialogue: Dialogue) -> list[Any]:
    """Return the member `call` of each numbered row."""
    transcript = dialogue.transcript
    return [made["call"] for row in transcript.rows if "call" in (made := row_object(row, transcript.captures))]


def test_json_describes_a_call_on_its_first_row_and_its_part_on_the_others() -> None:
    first, second = as_json(two_rounds())
    assert second == {"row": 1, "part": "round", "number": 2}
    assert first == {
        "row": 1, "part": "round", "number": 1, "outcome": "ok", "duration_ns": 3_003_000_000, "wire_ns": 2_000_000, "rounds": 2,
        "polls": 0, "notifications": 0, "needs_input": False, "last_row": 2,
    }  # fmt: skip


def test_json_describes_a_task() -> None:
    first, *polls, call = as_json(polled(Dialogue(), 2).server(status_told("t", "completed")))
    assert first["task"] == {"id": "t", "status": "completed", "ttl_ms": 60_000, "poll_interval_ms": 1000}
    assert (polls, call) == (
        [{"row": 1, "part": "poll", "number": 1}, {"row": 1, "part": "poll", "number": 2}],
        {"row": 1, "part": "notification"},
    )


def test_json_counts_elicitations() -> None:
    first, _ = as_json(Dialogue().client(ask(1)).server(to_urls(1, "e", "f")).server(done("e")))
    assert first["elicitations"] == {"asked": 2, "completed": 1}


def test_the_json_of_a_call_is_json() -> None:
    assert json.loads(json.dumps(as_json(polled(Dialogue(), 2))))
