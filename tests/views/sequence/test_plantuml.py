"""PlantUML reads of our text what we meant: the words of names, messages, notes and groups, ordinary and hostile ones."""

import re
import subprocess
from collections.abc import Callable, Sequence
from random import Random
from xml.etree import ElementTree as ET

import pytest

from mcpspy import read, transcribe
from mcpspy.views.sequence.diagram import (
    TEXT_CELLS,
    Arrow,
    ArrowKind,
    Aside,
    Diagram,
    Fragment,
    FragmentKind,
    OmittedMessages,
    Participant,
    Step,
)
from mcpspy.views.sequence.layout import Drawing, diagram
from mcpspy.views.sequence.plantuml import plantuml
from mcpspy.views.text.cells import cut
from mcpspy.views.text.escape import safe_text
from mcpspy.views.timeline.details import Detail
from tests.conftest import ROOT, DebianProgram
from tests.deadlines import SCENE_S
from tests.tiers import Tier
from tests.views.scenes import busy_scene, hostile_scene, ticket_session
from tests.views.sequence.test_llm import hostile
from tests.views.sequence.test_mermaid import HOSTILE, ORDINARY

TEXT = "{http://www.w3.org/2000/svg}text"

Reader = Callable[[Sequence[Diagram]], list[list[str]]]


@pytest.fixture
def read_plantuml(debian_program: DebianProgram) -> Reader:
    """`read_plantuml(layouts)` is what stands in PlantUML's picture of each, line by line from above, in one start of it."""
    program = debian_program("plantuml")

    def read(layouts: Sequence[Diagram]) -> list[list[str]]:
        source = "".join(line + "\n" for layout in layouts for line in plantuml(layout))
        words = [program, "-tsvg", "-pipe", "-charset", "UTF-8"]
        done = subprocess.run(words, input=source.encode(), capture_output=True, timeout=SCENE_S, check=False)
        assert done.returncode == 0, done.stderr
        return [_lines(picture) for picture in done.stdout.split(b"<?xml ")[1:]]

    return read


def _lines(picture: bytes) -> list[str]:
    lines: dict[str, list[tuple[float, str]]] = {}
    for element in ET.fromstring(picture.partition(b"?>")[2]).iter(TEXT):
        lines.setdefault(element.get("y", ""), []).append((float(element.get("x", "0")), element.text or ""))
    joined = ["".join(text for _, text in sorted(some)) for _, some in sorted(lines.items(), key=lambda line: float(line[0]))]
    return [text.replace("\xa0", " ").strip() for text in joined]


def meant(text: str) -> str:
    """Return a text as a reader sees it: on one line, dangerous characters spelled out."""
    return safe_text(re.sub(r"[ \t\r\n\v\f\x85\u2028\u2029]+", " ", text).strip()).replace("\xa0", " ").strip()


def shown(text: str) -> str:
    """Return such a text cut to the length that is shown."""
    return meant(cut(text, TEXT_CELLS))


def diagram_of(steps: list[Step]) -> Diagram:
    return Diagram(participants=[Participant(id="p0", name="a"), Participant(id="p1", name="b")], steps=steps)


def arrow(text: str, **more: tuple[str, ...]) -> Arrow:
    return Arrow(at_ns=0, start="p0", end="p1", kind=ArrowKind.REQUEST, text=text, **more)  # type: ignore[arg-type]


def texts_of(steps: Sequence[Step]) -> list[str]:
    """List the texts of a layout from top to bottom, as PlantUML draws them."""
    lines: list[str] = []
    for step in steps:
        match step:
            case Fragment():
                title = shown(step.title)
                lines += [*([f"[{title}]", "loop"] if step.kind is FragmentKind.LOOP else [title]), *texts_of(step.steps)]
            case Arrow():
                lines += [shown(step.text), *map(meant, step.details)]
            case Aside():
                lines.append(shown(step.text))
            case OmittedMessages():
                lines.append(f"… {step.count:,} more message{'s' if step.count > 1 else ''}")
    return lines


QUOTES = ["“it”", "a »b« c", "„d“", "4\u20138 — \u2018x\u2019", "«", "\u201f", "a \u2010 b"]


def headings(layout: Diagram) -> list[str]:
    """Return the names of lanes in one line, and below it those of persons."""
    persons = [participant.name for participant in layout.participants if participant.is_person]
    return ["".join(participant.name for participant in layout.participants if not participant.is_person), *persons]


def test_words_of_messages_are_read_as_words(read_plantuml: Reader) -> None:
    texts = [*ORDINARY, *(text[:100] for text in HOSTILE), *QUOTES]
    (words,) = read_plantuml([diagram_of([arrow(text) for text in texts])])
    assert words[1:] == [meant(text) for text in texts]


def test_words_of_notes_and_groups_and_payloads_are_read_as_words(read_plantuml: Reader) -> None:
    texts = [text[:40] for text in (*ORDINARY, *HOSTILE) if meant(text[:40])]
    steps: list[Step] = []
    for text in texts:
        inner: list[Step] = [Aside(at_ns=0, at="p0", text=text), arrow("x", details=("  " + text,))]
        steps.append(Fragment(kind=FragmentKind.PHASE, title=text, steps=inner))
    (words,) = read_plantuml([diagram_of(steps)])
    assert words[1:] == [line for text in texts for line in (meant(text), meant(text), "x", meant(text))]


def test_any_words_are_read_as_words(read_plantuml: Reader) -> None:
    chance = Random(12)
    signs = "#;:%{}<>&-+x)(\\/|@ \n\"'$ansywrpend=ﬂ°¶ß§0~*_[]^!.`,"
    texts = ["".join(chance.choices(signs, k=chance.randrange(24))) for _ in range(400)]
    (words,) = read_plantuml([diagram_of([arrow(text) for text in texts])])
    assert words[1:] == [meant(text) for text in texts]


def test_words_of_titles_and_loops_and_names_are_read_as_words(read_plantuml: Reader) -> None:
    texts = [meant(text[:40]) for text in (*ORDINARY, *HOSTILE, *QUOTES) if meant(text[:40])]
    layouts = []
    for text in texts:
        loop = Fragment(kind=FragmentKind.LOOP, title=text, steps=[Aside(at_ns=0, at="p0", text="x")])
        layouts.append(Diagram(participants=[Participant(id="p0", name=text)], steps=[loop], title=text))
    for text, words in zip(texts, read_plantuml(layouts), strict=True):
        assert words == [text, text, f"[{text}]", "loop", "x"]


DRAWINGS = [
    Drawing(),
    Drawing(with_fragments=False),
    Drawing(with_http=True),
    Drawing(with_proxy=True, max_messages=5),
    Drawing(detail=Detail.PARAMS),
    Drawing(detail=Detail.FULL),
    Drawing(title="All of it", with_http=True, with_proxy=True, detail=Detail.FULL, with_fragments=False),
]


def test_every_capture_is_read_as_drawn_whatever_is_asked_for(read_plantuml: Reader, tier: Tier) -> None:
    transcripts = {path.stem: transcribe(read(path)) for path in sorted((ROOT / "captures").glob("*.mcpspy"))}
    chosen = [(name, drawing) for name in transcripts for drawing in DRAWINGS]
    chosen = chosen[:: tier(sample=3, more=1, full=1)]  # in steps that are no divisor of how many drawings there are
    layouts = [diagram(transcripts[name], transcripts[name].rows, drawing) for name, drawing in chosen]
    for (name, drawing), layout, words in zip(chosen, layouts, read_plantuml(layouts), strict=True):
        title = [layout.title] if layout.title else []
        assert words == [*title, *headings(layout), *texts_of(layout.steps)], (name, drawing)


def test_long_sessions_are_read_as_drawn(read_plantuml: Reader) -> None:
    transcripts = [ticket_session(calls).transcript for calls in (20, 200, 2_000)]
    layouts = [diagram(transcript, transcript.rows) for transcript in transcripts]
    for layout, words in zip(layouts, read_plantuml(layouts), strict=True):
        assert words == [*headings(layout), *texts_of(layout.steps)]


def test_scenes_of_hostile_strings_are_read_as_drawn(read_plantuml: Reader) -> None:
    texts = [text for text in HOSTILE if meant(text)]
    transcripts = [hostile_scene(text[:60]).transcript for text in texts[::2]]
    transcripts += [hostile(text[:60]) for text in texts[1::2]]
    texts = [*texts[::2], *texts[1::2]]
    transcripts.append(busy_scene().transcript)
    layouts = [diagram(transcript, transcript.rows, Drawing(detail=Detail.FULL)) for transcript in transcripts]
    for text, layout, words in zip([*texts, "busy"], layouts, read_plantuml(layouts), strict=True):
        assert words[len(headings(layout)) :] == texts_of(layout.steps), text


def test_ids_of_participants_are_never_captured_text() -> None:
    layout = Diagram(participants=[Participant(id="p0", name='x" as y')], steps=[])
    assert 'participant "x<U+0022> as y" as p0' in list(plantuml(layout))
