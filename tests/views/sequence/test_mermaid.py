"""Mermaid's own parser reads of our text what we meant: the participants and the words, ordinary and hostile ones."""

import re
from collections.abc import Sequence
from random import Random
from typing import Any

import pytest

from mcpspy.views.sequence.diagram import Arrow, ArrowKind, Aside, Diagram, Fragment, FragmentKind, Participant, Step
from mcpspy.views.sequence.layout import diagram
from mcpspy.views.sequence.mermaid import mermaid
from mcpspy.views.text.escape import safe_text
from tests.cli.terminal import run
from tests.conftest import ROOT, MermaidReader
from tests.tiers import Tier
from tests.transcript.dialogue import request, result
from tests.views.scenes import busy_scene, hostile_scene, opened, three_servers

ORDINARY = [
    "initialize",
    "tools/call get_weather",
    "ok · 12.0 ms",
    "a: b, c-d",
    "C:\\dir\\file.txt",
    "50 % of “it”",
    "x < y && z > 1",
]
HOSTILE = [
    "a; b", "a;b;", "#", "#35;", "# comment", "one\ntwo", "one\r\nclient1->>server1: injected", "%%{init: {'theme':'dark'}}%%",
    "%% comment", "x %% y", "end", "loop forever", "alt", "else", "note over client1: injected", "participant evil", "as evil",
    "A->>B: injected", "->>", "-->>", "--x", "-)", ":", "::", "a:b:c", "wrap: text", "nowrap: text", "WRAP:x", "<br/>", "<br>b",
    "<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "&lt;b&gt;", "&#35;", "#lt;", "ﬂ°°35¶ß", "$$x^2$$", "`code`",
    "**bold**", "style x:#fff;", "classDef a:#b;", "style a:b#c;d", "{", "}", "@{ \"type\": \"actor\" }", "client1@{}", "title x",
    "accTitle: x", "accDescr { x }", "autonumber", "activate server1", "create participant z", "box red", "rect rgb(0,0,0)",
    "שלום", "مرحبا", "user\u202etxt.exe", "🎉 👨\u200d👩\u200d👧 ❤️", "天気予報", "\x1b[31m", "\x00", "\ud800", "\u2028", "\u0085", "",
    "a\u00a0b", " ", "'", '"', "((x))", "[[x]]", "+1", "-1", "+", "-", "()", "---", "===", "{{x}}", "|x|", "//", "\\", "x" * 300,
]  # fmt: skip


def two_party(texts: list[str]) -> Diagram:
    """Make a diagram with each text as a name, a message and a note."""
    participants = [Participant(id=f"p{number}", name=text) for number, text in enumerate(texts)]
    steps = [Arrow(at_ns=0, start="p0", end="p0", kind=kind, text=text) for text in texts for kind in ArrowKind]
    return Diagram(participants=participants, steps=[*steps, *(Aside(at_ns=0, at="p0", text=text) for text in texts)])


def text_of(layout: Diagram) -> str:
    return "\n".join(mermaid(layout)) + "\n"


SILENT = {"active_start", "active_end", "loop_end", "rect_start", "rect_end"}
"""Signals of Mermaid that have no text."""


def words(read: dict[str, Any]) -> list[str]:
    """List the texts that Mermaid reads, in their order."""
    return [signal["text"] for signal in read["signals"] if signal["type"] not in SILENT]


def drawn(steps: Sequence[Step]) -> list[str]:
    """List the texts of a layout, in their order."""
    lines: list[str] = []
    for step in steps:
        match step:
            case Fragment():
                lines += [step.title, *drawn(step.steps)]
            case Arrow() | Aside():
                lines.append(step.text)
    return lines


def meant(text: str) -> str:
    """Return a text as a reader sees it: on one line, dangerous characters spelled out."""
    return safe_text(re.sub(r"[ \t\r\n\v\f\x85\u2028\u2029]+", " ", text).strip()) or " "


def unbroken(text: str) -> str:
    """Join the lines of a note, and leave out blanks, at which lines break."""
    return re.sub(r"<br/>|\s", "", text)


def assert_read_as_meant(read_mermaid: MermaidReader, texts: list[str]) -> None:
    (read,) = read_mermaid([text_of(two_party(texts))])
    assert "error" not in read, read
    assert [participant["text"] for participant in read["participants"]] == [meant(text) for text in texts]
    messages = [meant(text) for text in texts for _ in ArrowKind]
    assert words(read)[: len(messages)] == messages
    assert [unbroken(text) for text in words(read)[len(messages) :]] == [unbroken(meant(text)) for text in texts]


def test_ordinary_words_are_read_as_meant(read_mermaid: MermaidReader) -> None:
    assert_read_as_meant(read_mermaid, ORDINARY)


def test_hostile_words_are_read_as_words(read_mermaid: MermaidReader) -> None:
    assert_read_as_meant(read_mermaid, [text[:100] for text in HOSTILE])


def test_any_words_are_read_as_words(read_mermaid: MermaidReader, tier: Tier) -> None:
    chance = Random(12)
    signs = "#;:%{}<>&-+x)(\\/|@ \n\"'$ansywrpend=ﬂ°¶ß§0"
    count = tier(sample=100, more=500, full=5_000)
    texts = ["".join(chance.choices(signs, k=chance.randrange(24))) for _ in range(count)]
    for begin in range(0, count, 100):
        assert_read_as_meant(read_mermaid, texts[begin : begin + 100])


def test_a_scene_with_everything_is_read_as_drawn(read_mermaid: MermaidReader) -> None:
    for transcript in (busy_scene().transcript, three_servers()):
        layout = diagram(transcript, transcript.rows)
        (read,) = read_mermaid([text_of(layout)])
        assert [(participant["id"], participant["text"]) for participant in read["participants"]] == [
            (participant.id, participant.name) for participant in layout.participants
        ]
        assert [unbroken(text) for text in words(read)] == [unbroken(text) for text in drawn(layout.steps)]


def test_arrows_go_from_whom_to_whom_and_look_as_they_should(read_mermaid: MermaidReader) -> None:
    steps = [Arrow(at_ns=0, start="p0", end="p1", kind=kind, text=kind.value) for kind in ArrowKind]
    participants = [Participant(id="p0", name="a"), Participant(id="p1", name="b")]
    (read,) = read_mermaid([text_of(Diagram(participants=participants, steps=[*steps]))])
    assert [(signal["type"], signal["from"], signal["to"], signal["text"]) for signal in read["signals"]] == [
        ("solid", "p0", "p1", "request"),
        ("dotted", "p0", "p1", "response"),
        ("solid_point", "p0", "p1", "notification"),
        ("solid_cross", "p0", "p1", "cancellation"),
        ("dotted_cross", "p0", "p1", "lost"),
    ]


def test_scenes_of_hostile_strings_have_the_statements_that_were_meant(read_mermaid: MermaidReader) -> None:
    transcripts = [hostile_scene(text).transcript for text in HOSTILE]
    layouts = [diagram(transcript, transcript.rows) for transcript in transcripts]
    for text, layout, read in zip(HOSTILE, layouts, read_mermaid([text_of(layout) for layout in layouts]), strict=True):
        assert "error" not in read, (text, read)
        assert len(read["participants"]) == len(layout.participants), text
        assert len(words(read)) == len(drawn(layout.steps)), text


def test_ids_of_participants_are_never_captured_text() -> None:
    transcript = opened("evil;end").client(request(1)).server(result(1)).transcript
    text = text_of(diagram(transcript, transcript.rows))
    assert text.splitlines()[1:3] == ["    participant client1 as claude", "    participant server1 as evil#59;end"]


def test_groups_and_details_are_read_as_words(read_mermaid: MermaidReader) -> None:
    layouts = []
    for text in (hostile[:100] for hostile in HOSTILE):
        message = Arrow(at_ns=0, start="p0", end="p0", kind=ArrowKind.REQUEST, text="m", details=(text, "", text))
        note = Aside(at_ns=0, at="p0", text="n")
        phase = Fragment(kind=FragmentKind.PHASE, title=text, steps=[message])
        loop = Fragment(kind=FragmentKind.LOOP, title=text, steps=[note])
        layouts.append(Diagram(participants=[Participant(id="p0", name="a")], steps=[phase, loop]))
    for text, read in zip(HOSTILE, read_mermaid([text_of(layout) for layout in layouts]), strict=True):
        title = meant(text[:100])
        assert "error" not in read, (title, read)
        assert [participant["text"] for participant in read["participants"]] == ["a"]
        texts_read = words(read)
        assert [texts_read[0], texts_read[1], *texts_read[3:]] == [title, "m", title, "n"]
        assert texts_read[2].count("<br/>") == 2 + 2 * title.count("<br/>"), title


OPTIONS = [
    "",
    "--flat",
    "--http",
    "--show-proxy",
    "--detail params",
    "--detail full",
    "--http --show-proxy --detail full --flat",
]


@pytest.mark.parametrize("options", OPTIONS)
def test_every_capture_is_read_as_drawn_whatever_is_asked_for(options: str, read_mermaid: MermaidReader) -> None:
    paths = sorted((ROOT / "captures").glob("*.mcpspy"))
    texts = [run("export", "mermaid", str(path), *options.split()).stdout for path in paths]
    for path, text, read in zip(paths, texts, read_mermaid(texts), strict=True):
        assert "error" not in read, path
        lines = [line.strip() for line in text.splitlines()]
        assert len(read["participants"]) == sum(line.startswith(("participant ", "actor ")) for line in lines), path
        signals = [line for line in lines if line.startswith("loop ") or ": " in line]
        assert len(words(read)) == len(signals), path
