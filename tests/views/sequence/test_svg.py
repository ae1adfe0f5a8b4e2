"""The picture: XML that is what it says, words that stay in their room, and nothing that a payload could start."""

import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from mcpspy import read, transcribe
from mcpspy.views.sequence.diagram import Arrow, ArrowKind, Diagram, Participant, flat
from mcpspy.views.sequence.layout import Drawing, diagram
from mcpspy.views.sequence.svg import CELL_PX, svg
from mcpspy.views.text.cells import cells
from tests.views.scenes import busy_scene, hostile_scene, three_servers
from tests.views.sequence.test_mermaid import HOSTILE

CAPTURES = Path(__file__).parents[3] / "captures"
SVG = "{http://www.w3.org/2000/svg}"
HARMLESS = {"svg", "style", "title", "g", "line", "rect", "path", "circle", "text"}


def parsed(layout: Diagram) -> ET.Element:
    return ET.fromstring("\n".join(svg(layout)))


def words(root: ET.Element) -> list[str]:
    return [element.text or "" for element in root.iter(f"{SVG}text")]


def test_every_message_stands_in_the_picture_with_its_row() -> None:
    transcript = transcribe(read(CAPTURES / "time.mcpspy"))
    layout = diagram(transcript, transcript.rows)
    texts_of_row = {
        element.get("data-row"): [text.text for text in element.iter(f"{SVG}text")]
        for element in parsed(layout).iter(f"{SVG}g")
    }
    assert {str(step.row) for step in flat(layout.steps) if isinstance(step, Arrow)} <= set(texts_of_row)


@pytest.mark.grid(20)
@pytest.mark.parametrize("text", HOSTILE)
def test_what_peers_wrote_is_text_and_nothing_else(text: str) -> None:
    transcript = hostile_scene(text).transcript
    root = parsed(diagram(transcript, transcript.rows, Drawing(title=text, with_proxy=True)))
    assert {element.tag.removeprefix(SVG) for element in root.iter()} <= HARMLESS
    assert not [name for element in root.iter() for name in element.attrib if name.startswith("on") or "href" in name]


def test_words_have_no_more_room_than_there_is_between_their_lanes() -> None:
    long = Arrow(at_ns=0, start="p0", end="p1", kind=ArrowKind.REQUEST, text="天" * 300)
    layout = Diagram(participants=[Participant(id="p0", name="a"), Participant(id="p1", name="b")], steps=[long])
    root = parsed(layout)
    (shown,) = [word for word in words(root) if "天" in word]
    left, right = (float(element.get("x1", "0")) for element in root.iter(f"{SVG}line"))
    assert cells(shown) * CELL_PX <= right - left


def test_words_on_a_way_past_other_lanes_stand_between_two_of_them() -> None:
    transcript = three_servers()
    root = parsed(diagram(transcript, transcript.rows))
    lanes = [float(element.get("x1", "0")) for element in root.iter(f"{SVG}line")]
    shown = [
        element
        for group in root.iter(f"{SVG}g")
        for element in group.iter(f"{SVG}text")
        if element.get("text-anchor") == "middle"
    ]
    assert len(shown) > 20
    for element in shown:
        begin, px = (
            float(element.get("x", "0")) - float(element.get("textLength", "0")) / 2,
            float(element.get("textLength", "0")),
        )
        assert not [at for at in lanes if begin <= at <= begin + px], element.text


def test_words_that_have_to_stand_over_a_lane_have_a_margin() -> None:
    participants = [Participant(id=f"p{number}", name="a") for number in range(3)]
    steps = [Arrow(at_ns=0, start="p0", end="p2", kind=ArrowKind.REQUEST, text=text) for text in ("short", "long " * 20)]
    kinds = [element.get("class") for element in parsed(Diagram(participants=participants, steps=steps)).iter(f"{SVG}text")]
    assert kinds.count("over") == 1


def test_lines_of_a_payload_are_indented_by_their_place() -> None:
    layout = Diagram(
        participants=[Participant(id="p0", name="a"), Participant(id="p1", name="b")],
        steps=[Arrow(at_ns=0, start="p0", end="p1", kind=ArrowKind.REQUEST, text="x", details=("{", '  "a": 1', "}"))],
    )
    first, second, _ = (element for element in parsed(layout).iter(f"{SVG}text") if element.get("class") == "detail")
    assert second.text == '"a": 1'
    assert float(second.get("x", "0")) - float(first.get("x", "0")) == pytest.approx(2 * CELL_PX, abs=0.1)


def test_words_of_any_font_take_the_room_that_was_counted() -> None:
    transcript = three_servers()
    for element in parsed(diagram(transcript, transcript.rows)).iter(f"{SVG}text"):
        assert element.text
        assert float(element.get("textLength", "0")) == pytest.approx(cells(element.text) * CELL_PX, abs=0.1)


def test_nothing_is_drawn_outside_the_picture() -> None:
    transcript = busy_scene().transcript
    root = parsed(diagram(transcript, transcript.rows))
    width, height = float(root.get("width", "0")), float(root.get("height", "0"))
    for element in root.iter(f"{SVG}rect"):
        if element.get("class") == "paper":
            continue
        assert float(element.get("x", "0")) >= 0
        assert float(element.get("x", "0")) + float(element.get("width", "0")) <= width
        assert float(element.get("y", "0")) + float(element.get("height", "0")) <= height


def test_a_diagram_of_nothing_is_a_picture_of_nothing() -> None:
    assert words(parsed(Diagram(participants=[], steps=[]))) == []


def test_every_colour_is_spelled_out() -> None:
    text = "\n".join(svg(Diagram(participants=[], steps=[])))
    assert "var(" not in text
    assert not re.search(r"(fill|stroke): [A-Z]", text)
