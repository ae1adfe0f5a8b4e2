"""Long sessions: runs of like calls become loops, the odd ones out are drawn, and the same loops are in all formats."""

from collections.abc import Callable, Iterable

import pytest

from mcpspy.records import Spawn
from mcpspy.views.sequence.diagram import Diagram, Fragment, FragmentKind, Step, flat, messages
from mcpspy.views.sequence.ladder import ladder
from mcpspy.views.sequence.layout import MAX_UNFOLDED, Drawing, diagram
from mcpspy.views.sequence.mermaid import mermaid
from mcpspy.views.sequence.plantuml import plantuml
from mcpspy.views.sequence.svg import svg
from mcpspy.views.text.line import plain
from tests.transcript.dialogue import Dialogue, notification, request, result
from tests.views.golden import same_as_golden
from tests.views.overlaps import assert_no_overlap
from tests.views.scenes import call, failed, given_up, opened, ticket_session

SIZES = [20, 200, 2_000]


def drawn(scene: Dialogue, *, folds: bool | None = True, fragments: bool = False) -> Diagram:
    transcript = scene.transcript
    return diagram(transcript, transcript.rows, Drawing(folds=folds, with_fragments=fragments))


def loops(steps: Iterable[Step]) -> list[str]:
    """List the titles of loops, without the rows."""
    titles: list[str] = []
    for step in steps:
        if isinstance(step, Fragment):
            titles += [step.title.split(" · rows")[0]] if step.kind is FragmentKind.LOOP else []
            titles += loops(step.steps)
    return titles


def texts(layout: Diagram) -> list[str]:
    return [step.text.split(" · ")[0] for step in flat(layout.steps) if hasattr(step, "text")][1:]


def calls(*tools: str) -> Dialogue:
    scene = opened("tickets")
    for id, tool in enumerate(tools):
        scene.client(call(id, tool)).server(failed(id, "no") if tool == "fails" else result(id))
    return scene


@pytest.mark.grid(5)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(
    ("name", "view"),
    [
        ("mermaid", mermaid),
        ("plantuml", plantuml),
        ("svg", svg),
        ("text", lambda layout: map(plain, ladder(layout, width=100))),
    ],
)
def test_sessions_of_any_size_look_as_they_did(size: int, name: str, view: Callable[[Diagram], Iterable[str]]) -> None:
    layout = drawn(ticket_session(size), folds=None, fragments=True)
    assert same_as_golden(f"fold-{size}-{name}", ([(line, "")] for line in view(layout)))


@pytest.mark.parametrize("size", SIZES)
def test_no_text_overlaps_another_and_none_is_outside_the_picture(size: int) -> None:
    assert_no_overlap("\n".join(svg(drawn(ticket_session(size), folds=None, fragments=True))))


def test_like_calls_are_one_loop_with_the_first_of_them() -> None:
    layout = drawn(calls(*["open_ticket"] * 150))
    assert loops(layout.steps) == ["×150 open_ticket · p50 1.00 ms · all ok"]
    assert texts(layout) == ["1 tools/call open_ticket", "1 ok"]


def test_every_message_is_drawn_or_counted() -> None:
    scene = ticket_session(200)
    assert messages(drawn(scene).steps) == messages(drawn(scene, folds=False).steps)


def test_fewer_than_three_are_drawn_one_by_one() -> None:
    assert not loops(drawn(calls("open_ticket", "open_ticket", "search", "search")).steps)


def test_a_session_folds_by_itself_above_sixty_messages() -> None:
    half = MAX_UNFOLDED // 2
    assert not loops(drawn(calls(*["open_ticket"] * half), folds=None).steps)
    assert loops(drawn(calls(*["open_ticket"] * (half + 1)), folds=None).steps)


def test_another_call_stands_between_two_loops() -> None:
    layout = drawn(calls(*["open_ticket"] * 5, "search", *["open_ticket"] * 4))
    assert [title[:14] for title in loops(layout.steps)] == ["×5 open_ticket", "×4 open_ticket"]
    assert "6 tools/call search" in texts(layout)


def test_errors_and_slow_calls_are_drawn_within_the_loop() -> None:
    scene = opened("tickets")
    for id in range(40):
        scene.client(call(id, "open_ticket")).wait(200 if id == 9 else 0).server(failed(id, "full") if id == 5 else result(id))
    layout = drawn(scene)
    assert loops(layout.steps) == ["×40 open_ticket · p50 1.00 ms · 1 error, 1 slow"]
    assert texts(layout)[2:] == [
        "6 tools/call open_ticket",
        "6 tool error",
        "10 tools/call open_ticket",
        "10 ok",
    ]


def test_of_many_odd_calls_one_of_each_kind_is_drawn_before_more_of_one_kind() -> None:
    scene = opened("tickets")
    for id in range(60):
        text = "rare" if id == 50 else "often"
        scene.client(call(id, "open_ticket")).server(failed(id, text) if id % 3 == 2 else result(id))
    layout = drawn(scene)
    assert loops(layout.steps) == ["×60 open_ticket · p50 1.00 ms · 20 errors (6 drawn)"]
    errors = [step.text for step in flat(layout.steps) if hasattr(step, "text") and "error" in step.text]
    assert sum("rare" in text for text in errors) == 1


def test_calls_that_repeat_as_a_group_are_one_loop() -> None:
    layout = drawn(calls(*["search", "open_ticket"] * 20, "search", "close_ticket"))
    assert loops(layout.steps) == ["×20 search, open_ticket · p50 1.00 ms, 1.00 ms · all ok"]
    assert texts(layout)[-4:] == ["41 tools/call search", "41 ok", "42 tools/call close_ticket", "42 ok"]


def test_calls_at_the_same_time_are_one_loop() -> None:
    scene = opened("tickets")
    for id in range(10):
        scene.client(call(id, "open_ticket"))
    for id in range(10):
        scene.server(result(id))
    assert loops(drawn(scene).steps) == ["×10 open_ticket · p50 10.0 ms · all ok"]


def test_heartbeats_and_log_messages_do_not_end_a_run() -> None:
    scene = opened("tickets")
    for id in range(10):
        scene.client(call(id, "open_ticket")).server(result(id))
        scene.server(notification("notifications/message", {"level": "info", "data": id}))
        scene.client(request(f"p{id}", "ping")).server(result(f"p{id}"))
    assert loops(drawn(scene).steps) == ["×10 open_ticket · p50 1.00 ms · all ok · 10 log messages, 10 pings"]


def test_heartbeats_alone_fold_too() -> None:
    scene = opened("tickets")
    for id in range(40):
        scene.client(request(id, "ping")).server(result(id))
    assert loops(drawn(scene).steps) == ["×40 ping · p50 1.00 ms · every 2.00 ms · all ok"]


def test_a_call_that_stays_open_is_drawn_and_prevents_no_loop() -> None:
    scene = opened("tickets").client(call("long", "watch"))
    for id in range(40):
        scene.client(call(id, "open_ticket")).server(result(id))
    layout = drawn(scene.server(result("long")))
    assert loops(layout.steps) == ["×40 open_ticket · p50 1.00 ms · all ok"]
    assert texts(layout)[0] == "1 tools/call watch"
    assert texts(layout)[-1] == "1 ok"


def test_tasks_and_their_polls_fold_as_a_group() -> None:
    scene = opened("tickets")
    for task in range(5):
        created = {"task": {"taskId": f"t{task}", "status": "working"}, "resultType": "task"}
        scene.client(call(f"c{task}", "greet")).server(result(f"c{task}", created))
        for poll in range(3):
            status = {"taskId": f"t{task}", "status": "working"}
            scene.client(request(f"g{task}-{poll}", "tasks/get", {"taskId": f"t{task}"})).server(
                result(f"g{task}-{poll}", status)
            )
    (title,) = loops(drawn(scene).steps)
    assert title.startswith("×5 greet, tasks/get · ")


def test_calls_of_several_tools_without_a_pattern_do_not_fold() -> None:
    assert not loops(drawn(calls(*"abcdbeafcgd")).steps)


def test_flat_two_recordings_of_one_session_are_one_diagram() -> None:
    pictures = []
    for pid, port, waits in ((7, 3000, (1, 90, 2, 1)), (8123, 4711, (40, 1, 1, 700))):
        scene = opened("tickets").add(Spawn(at_ns=0, pid=pid))
        if pid == 7:
            scene.stderr(b"ready\n")
        for id, wait in enumerate(waits):
            scene.client(call(id, "open_ticket")).wait(wait).server(result(id))
        scene.client(call("x", "find")).wait(pid).server(
            failed("x", f"no http://localhost:{port}/db in /home/u{pid}/notes/a.txt")
        )
        scene.client(call("y", "slow")).wait(3_000 + pid).client(given_up("y", "bored"))
        scene.exits()
        transcript = scene.transcript
        layout = diagram(transcript, transcript.rows, Drawing(folds=True, with_fragments=False, with_particulars=False))
        pictures.append([*mermaid(layout), *plantuml(layout), *svg(layout), *map(plain, ladder(layout, width=100))])
    assert pictures[0] == pictures[1]
    text = "\n".join(pictures[0])
    assert "tool error: no http://localhost/db in …/a.txt" in text
    assert "×4 open_ticket · all ok" in text
    assert "server started" in text
