"""PlantUML reads of our text what we meant: the words of names, messages, notes and groups, ordinary and hostile ones."""

import re
import subprocess
from collections.abc import Callable
from random import Random
from xml.etree import ElementTree as ET

import pytest

from mcpspy.views.escape import safe_text
from mcpspy.views.sequence.layout import Drawing, diagram
from mcpspy.views.sequence.model import Arrow, ArrowKind, Aside, Detail, Diagram, Group, GroupKind, Participant, Step
from mcpspy.views.sequence.plantuml import plantuml
from tests.conftest import DebianProgram
from tests.deadlines import SCENE_S
from tests.views.scenes import busy_scene, hostile_scene
from tests.views.sequence.test_mermaid import HOSTILE, ORDINARY

TEXT = "{http://www.w3.org/2000/svg}text"

Reader = Callable[[Diagram], list[str]]


@pytest.fixture
def read_plantuml(debian_program: DebianProgram) -> Reader:
    """`read_plantuml(layout)` is what stands in PlantUML's picture of it, line by line from above."""
    program = debian_program("plantuml")

    def read(layout: Diagram) -> list[str]:
        source = "\n".join(plantuml(layout)) + "\n"
        words = [program, "-tsvg", "-pipe", "-charset", "UTF-8"]
        done = subprocess.run(words, input=source.encode(), capture_output=True, timeout=SCENE_S, check=False)
        assert done.returncode == 0, done.stderr
        lines: dict[str, list[tuple[float, str]]] = {}
        for one in ET.fromstring(done.stdout).iter(TEXT):
            lines.setdefault(one.get("y", ""), []).append((float(one.get("x", "0")), one.text or ""))
        joined = ["".join(text for _, text in sorted(some)) for _, some in sorted(lines.items(), key=lambda one: float(one[0]))]
        return [one.replace("\xa0", " ").strip() for one in joined]

    return read


def meant(text: str) -> str:
    """What a reader shall see: one line, dangerous signs spelled out."""
    return safe_text(re.sub(r"[ \t\r\n\v\f\x85\u2028\u2029]+", " ", text).strip()).replace("\xa0", " ").strip()


def told(steps: list[Step]) -> Diagram:
    return Diagram(participants=[Participant(id="p0", name="a"), Participant(id="p1", name="b")], steps=steps)


def arrow(text: str, **more: tuple[str, ...]) -> Arrow:
    return Arrow(at_ns=0, start="p0", end="p1", kind=ArrowKind.REQUEST, text=text, **more)  # type: ignore[arg-type]


def test_words_of_messages_are_read_as_words(read_plantuml: Reader) -> None:
    texts = [*ORDINARY, *(text[:100] for text in HOSTILE)]
    assert read_plantuml(told([arrow(text) for text in texts]))[1:] == [meant(text) for text in texts]


def test_words_of_notes_and_groups_and_payloads_are_read_as_words(read_plantuml: Reader) -> None:
    texts = [text[:40] for text in (*ORDINARY, *HOSTILE) if meant(text[:40])]
    steps: list[Step] = []
    for text in texts:
        inner: list[Step] = [Aside(at_ns=0, at="p0", text=text), arrow("x", details=("  " + text,))]
        steps.append(Group(kind=GroupKind.PHASE, title=text, steps=inner))
    said = [one for text in texts for one in (meant(text), meant(text), "x", meant(text))]
    assert read_plantuml(told(steps))[1:] == said


def test_any_words_are_read_as_words(read_plantuml: Reader) -> None:
    chance = Random(12)
    signs = "#;:%{}<>&-+x)(\\/|@ \n\"'$ansywrpend=ﬂ°¶ß§0~*_[]^!.`,"
    texts = ["".join(chance.choices(signs, k=chance.randrange(24))) for _ in range(400)]
    assert read_plantuml(told([arrow(text) for text in texts]))[1:] == [meant(text) for text in texts]


def test_a_scene_with_everything_is_drawn_without_a_complaint(read_plantuml: Reader) -> None:
    for scene in (busy_scene(), hostile_scene("@enduml")):
        transcript = scene.transcript
        for detail in Detail:
            found = read_plantuml(diagram(transcript, transcript.rows, Drawing(detail=detail, is_proxy_shown=True, title="!x")))
            assert not [one for one in found if "rror" in one and "yntax" in one]
            assert any("mcpspy" in one for one in found)


def test_ids_of_participants_are_never_captured_text() -> None:
    layout = Diagram(participants=[Participant(id="p0", name='x" as y')], steps=[])
    assert 'participant "x<U+0022> as y" as p0' in list(plantuml(layout))
