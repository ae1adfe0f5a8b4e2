"""The ladder: lifelines stay in their columns, whatever the words between them and however wide the screen."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.transcript.model import Transcript
from mcpspy.views.sequence.diagram import Arrow, ArrowKind, Diagram, Participant
from mcpspy.views.sequence.ladder import LIFELINE, MIN_SPAN_CELLS, ladder, spans
from mcpspy.views.sequence.ladder import names as headings
from mcpspy.views.sequence.layout import diagram
from mcpspy.views.text.cells import cells
from mcpspy.views.text.line import Line, line_cells, plain
from tests.transcript.dialogue import request, result
from tests.views.golden import same_as_golden
from tests.views.scenes import busy_scene, call, opened, three_servers


def drawn(transcript: Transcript, width: int) -> list[Line]:
    return list(ladder(diagram(transcript, transcript.rows), width=width))


@pytest.mark.parametrize("width", [40, 80, 200])
def test_a_scene_with_everything_looks_as_it_did(width: int) -> None:
    assert same_as_golden(f"ladder-{width}", drawn(busy_scene().transcript, width))


@pytest.mark.parametrize("width", [80, 120])
def test_three_servers_at_once_look_as_they_did(width: int) -> None:
    assert same_as_golden(f"ladder-lanes-{width}", drawn(three_servers(), width))


@pytest.mark.parametrize("width", [20, 33, 44, 60, 80, 100, 200, 400])
def test_no_line_is_wider_than_the_screen(width: int) -> None:
    for transcript in (busy_scene().transcript, three_servers()):
        assert all(line_cells(line) <= width for line in drawn(transcript, width))


def test_the_last_lifeline_stands_in_one_column_beside_wide_letters_too() -> None:
    scene = opened("天気").client(call(1, "天気予報を取得する")).server(result(1)).client(request(2)).server(result(2))
    ends = {cells(plain(line)) for line in drawn(scene.transcript, 80)}
    assert len(ends) == 1


def test_a_request_has_a_solid_line_and_its_answer_a_broken_one() -> None:
    scene = opened("weather").client(request(1)).server(result(1))
    *_, there, back = (plain(line) for line in drawn(scene.transcript, 60))
    assert there.endswith(f"────►{LIFELINE}")
    assert back.endswith("╌╌╌╌┤")
    assert f"{LIFELINE}◄╌ 1 ok" in back


def test_many_participants_on_a_small_screen_do_not_make_it_raise() -> None:
    assert drawn(three_servers(), 1)


def test_a_diagram_of_nothing_is_a_line_of_nothing() -> None:
    assert [plain(line) for line in ladder(diagram(Transcript(), []), width=80)] == [""]


WORDS = st.text("ab天", min_size=1, max_size=30)


TIMES_CELLS = 10
"""Width of the column of times, with the blanks after it."""

SAID = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5), WORDS), max_size=5)


@given(st.lists(WORDS, min_size=2, max_size=6), SAID, st.integers(44, 160))
def test_lanes_have_the_room_that_there_is_and_names_do_not_touch(
    names: list[str], messages: list[tuple[int, int, str]], width: int
) -> None:
    participants = [Participant(id=f"p{number}", name=name) for number, name in enumerate(names)]
    steps = [
        Arrow(at_ns=0, start=f"p{start % len(names)}", end=f"p{end % len(names)}", kind=ArrowKind.REQUEST, text=text)
        for start, end, text in messages
    ]
    layout = Diagram(participants=participants, steps=steps)
    room = width - TIMES_CELLS - 1
    gaps = spans(layout, room)
    assert sum(gaps) <= max(room, MIN_SPAN_CELLS * len(gaps))
    assert min(gaps) >= MIN_SPAN_CELLS
    shown = headings(layout, gaps)
    heading, *_ = ladder(layout, width=width)
    assert all(name in plain(heading) for name in shown)
