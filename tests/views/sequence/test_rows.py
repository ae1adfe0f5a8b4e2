"""Tests of who takes part in a diagram, and of its arrows and their order."""

from mcpspy.transcript.model import Transcript
from mcpspy.views.sequence.diagram import Arrow, ArrowKind, Aside, Diagram, flat
from mcpspy.views.sequence.layout import diagram
from tests.transcript.dialogue import Dialogue, notification, request, result
from tests.views.scenes import call, given_up, opened, progress, refused, three_servers


def drawn(scene: Dialogue | Transcript) -> Diagram:
    transcript = scene.transcript if isinstance(scene, Dialogue) else scene
    return diagram(transcript, transcript.rows)


def arrows(scene: Dialogue) -> list[tuple[str, str, ArrowKind, str]]:
    return [(step.start, step.end, step.kind, step.text) for step in flat(drawn(scene).steps) if isinstance(step, Arrow)]


def asides(scene: Dialogue) -> list[str]:
    return [step.text for step in flat(drawn(scene).steps) if isinstance(step, Aside)]


def test_clients_come_first_then_servers_with_ids_of_ours() -> None:
    participants = drawn(three_servers()).participants
    assert [(participant.id, participant.name) for participant in participants] == [
        ("client1", "claude-code"),
        ("server1", "weather"),
        ("server2", "filesystem-of-a-long-name"),
        ("server3", "天気"),
    ]


def test_who_takes_part_in_none_of_the_rows_is_left_out() -> None:
    transcript = three_servers()
    only = diagram(transcript, [row for row in transcript.rows if row.capture == 1])
    assert [participant.id for participant in only.participants] == ["client1", "server2"]


def test_a_call_is_an_arrow_there_and_an_arrow_back_with_how_long_it_took() -> None:
    assert arrows(opened("weather").client(call(1, "forecast")).wait(9).server(result(1))) == [
        ("client1", "server1", ArrowKind.REQUEST, "1 tools/call forecast"),
        ("server1", "client1", ArrowKind.RESPONSE, "1 ok · 10.0 ms"),
    ]


def test_a_request_of_the_server_goes_the_other_way() -> None:
    scene = opened("weather").server(request(1, "roots/list")).client(result(1))
    assert [arrow[:2] for arrow in arrows(scene)] == [("server1", "client1"), ("client1", "server1")]


def test_an_error_is_told_on_the_way_back() -> None:
    scene = opened("weather").client(request(1)).server(refused(1, -32601, "no such method"))
    assert arrows(scene)[1][3] == "1 error · 1.00 ms: -32601 no such method"


def test_progress_is_one_arrow_however_often_it_came() -> None:
    scene = opened("weather").client(call(1, "forecast", token=1))
    for step in range(1, 4):
        scene.server(progress(1, step, f"step {step}"))
    kinds = [(kind, text) for _, _, kind, text in arrows(scene.server(result(1)))]
    assert kinds[1] == (ArrowKind.NOTIFICATION, "1 progress ×3: 3/17 step 3")
    assert len(kinds) == 3


def test_a_cancelled_call_ends_in_a_cancellation() -> None:
    scene = opened("weather").client(call(1, "forecast")).client(given_up(1, "no patience"))
    assert arrows(scene)[1:] == [("client1", "server1", ArrowKind.CANCELLATION, "1 cancelled: no patience")]


def test_an_answer_that_never_came_is_a_lost_arrow_at_the_end() -> None:
    scene = opened("weather").client(request(1)).client(request(2)).server(result(2)).closes()
    assert arrows(scene)[-1] == ("server1", "client1", ArrowKind.LOST, "1 unanswered")


def test_calls_that_overlap_are_drawn_in_the_order_of_time() -> None:
    scene = opened("weather").client(request(1)).client(request(2)).server(result(2)).server(result(1))
    assert [text.split(" ")[0] for *_, text in arrows(scene)] == ["1", "2", "2", "1"]


def test_a_notification_is_an_arrow_of_its_own() -> None:
    assert arrows(opened("weather").client(notification()))[0][2:] == (ArrowKind.NOTIFICATION, "1 notifications/initialized")


def test_lifecycle_and_noise_are_notes() -> None:
    scene = opened("weather").server(b"Listening\n").client(request(1)).server(result(1)).client_leaves().exits(1)
    assert asides(scene) == ["server started: pid 101", "1 noise on stdout: Listening", "server exited 1"]


def test_stderr_is_not_part_of_a_diagram() -> None:
    assert asides(opened("weather").stderr(b"hello\n")) == ["server started: pid 101"]
