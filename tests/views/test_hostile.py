"""Hostile strings, in every field that others fill, are harmless wherever a view prints them. Views are discovered, not listed."""

import json
import unicodedata
from datetime import UTC

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcpspy.records import Header, Open, Record
from mcpspy.transcript.model import Transcript
from mcpspy.transcript.transcribe import transcribe
from mcpspy.views.json.rows import message_lines
from mcpspy.views.text.line import line_cells, plain
from mcpspy.views.timeline.exchange import carrying_transactions
from mcpspy.views.timeline.http_wire import wire_lines
from mcpspy.views.timeline.timeline import timeline
from tests.capture import strategies
from tests.tiers import current_tier, slow_examples
from tests.transcript.llm.traffic import ModelTraffic, completion, delta, sse
from tests.transcript.test_properties import RECORDS
from tests.views.discovered import Subject, views
from tests.views.http_scenes import hostile_traffic
from tests.views.scenes import hostile_scene

HOSTILE = {
    "clear screen": "\x1b[2J\x1b[H",
    "clipboard": "\x1b]52;c;cm0gLXJmIH4=\x07",
    "title": "\x1b]0;owned\x1b\\",
    "hyperlink": "\x1b]8;;http://evil\x1b\\click\x1b]8;;\x1b\\",
    "c1": "\x9b2J\x9d0;x\x9c",
    "bidi": "user\u202e\u2066txt.exe\u2069",
    "zero width": "pay\u200b\u200d\u2060pal\ufeff",
    "separators": "a\u2028b\u2029c\x85d",
    "lines": "one\ntwo\r\nthree\rfour\tfive\x0b\x0c",
    "lone surrogates": "\ud800 \udfff",
    "nul": "\x00\x01\x7f",
    "markup": "[link=http://evil]x[/link] [bold red]y[/]",
    "mermaid": "x; A->>B: injected\n%%{init: {}}%% #35; end",
    "html": "</script><img src=x onerror=alert(1)>",
    "tags": "\U000e0041\U000e007f",
    "rtl": "שלום مرحبا",
    "wide": "天気🎉" * 40,
    "marks": "a" + "\u0301" * 500,
    "formula": "=cmd|' /C calc'!A0",
}

DANGEROUS = {"Cc", "Cf", "Cs", "Zl", "Zp"}


def dangerous(text: str) -> set[str]:
    if text.isprintable():  # as most lines are, which is far quicker to see
        return set()
    return {sign for sign in text if unicodedata.category(sign) in DANGEROUS}


def printed(transcript: Transcript, width: int | None) -> list[str]:
    """Print everything that can be printed of a transcript, line by line."""
    return list(Subject(transcript, width).printed())


def hostile_transcript(text: str) -> Transcript:
    scene = hostile_scene(text)
    scene.records.insert(4, Open(at_ns=0, stream=2, sender="server", name=text))
    return scene.transcript


def hostile_model(text: str) -> Transcript:
    """Make a conversation in which the model's API, its tools and its turns say this text."""
    traffic = ModelTraffic(label=text.encode("utf-8", "replace").decode())
    tools = [{"type": "function", "function": {"name": text, "description": text, "parameters": {text: text}}}]
    use = {"id": text, "type": "function", "function": {"name": text, "arguments": json.dumps({text: text})}}
    traffic.ask(f"user: {text}", model=text, tools=tools).answer(200, completion(text, tool_calls=[use]))
    traffic.ask(f"user: {text}", f"assistant: {text}", model=text, tools=tools).answer(400, {"error": {"message": text}})
    traffic.ask(f"user: {text}").stream().raw(sse(delta(text), text.encode("utf-8", "replace"))).close(how="reset")
    return traffic.wire


TRANSCRIPTS = {
    "stdio": hostile_transcript,
    "http": lambda text: hostile_traffic(text).wire,
    "model": hostile_model,
}


def test_views_of_every_kind_are_discovered() -> None:
    packages = {view.name.partition(".")[0] for view in views()}
    assert packages >= {"check", "compare", "json", "page", "pytest", "sequence", "statistics", "text", "timeline"}


SHOWN = [(name, kind, width) for width in (20, None, 80) for kind in TRANSCRIPTS for name in HOSTILE]
EACH_ONCE = [(name, [*TRANSCRIPTS][number % 3], (20, None)[number % 2]) for number, name in enumerate(HOSTILE)]
"""Every text, in one of the kinds of transcripts and at one of two widths in turn."""


@pytest.mark.parametrize(("name", "kind", "width"), current_tier()(sample=EACH_ONCE, more=SHOWN, full=SHOWN))
def test_nothing_dangerous_is_printed(name: str, kind: str, width: int | None) -> None:
    assert [line for line in printed(TRANSCRIPTS[kind](HOSTILE[name]), width) if dangerous(line)] == []


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_no_hostile_string_makes_a_line_of_http_wider_than_the_screen(text: str) -> None:
    transcript = hostile_traffic(text).wire
    lines = wire_lines(transcript, carrying_transactions(transcript, transcript.rows), width=40)
    assert [line for line in lines if line_cells(line) > 40] == []


@settings(max_examples=slow_examples(current_tier()))
@given(st.text(st.characters(), max_size=20))
def test_no_string_at_all_makes_anything_raise_or_prints_anything_dangerous(text: str) -> None:
    for make in TRANSCRIPTS.values():
        assert not any(dangerous(line) for line in printed(make(text), 80))


@settings(max_examples=slow_examples(current_tier()))
@given(strategies.HEADERS, st.lists(strategies.RECORDS | RECORDS, max_size=12))
def test_no_records_at_all_make_anything_raise_or_print_anything_dangerous(header: Header, records: list[Record]) -> None:
    assert not any(dangerous(line) for line in printed(transcribe([header, *records]), 80))


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_json_says_exactly_what_was_said(text: str) -> None:
    transcript = hostile_transcript(text)
    lines = [json.loads(line) for line in message_lines(transcript, transcript.rows)]
    assert any(line.get("params") == {text: text} for line in lines)


def test_markup_is_text() -> None:
    transcript = hostile_transcript("[link=http://evil]x[/link]")
    assert any("[link=http://evil]x[/link]" in plain(line) for line in timeline(transcript, zone=UTC))
