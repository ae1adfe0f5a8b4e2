"""The report in Markdown: complete, and without any markup that comes from a payload."""

import re
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from mcpspy import read, transcribe
from mcpspy.views.markdown import report
from mcpspy.views.text.escape import markdown_code, markdown_text, safe_text
from mcpspy.views.timeline.timeline import rows_between
from tests.transcript.dialogue import notification, request, result
from tests.transcript.llm.traffic import ModelTraffic
from tests.views.scenes import call, failed, hostile_scene, opened
from tests.views.sequence.test_mermaid import HOSTILE, ORDINARY

CAPTURES = Path(__file__).parents[2] / "captures"
TAGS = re.compile(r"</?(\w+)")
OURS = {
    "h1", "h2", "h3", "p", "strong", "table", "thead", "tbody", "tr", "th", "td", "code", "pre", "ul", "li", "details", "summary",
    "br",
}  # fmt: skip

SPECIAL = [
    *ORDINARY,
    *HOSTILE,
    "@octocat",
    "#123",
    "GH-123",
    "https://evil.example",
    "www.evil.example",
    "![x](y)",
    "[x]: y",
    "| a | b |",
]


def written(name: str, rows: tuple[int, int] | None = None) -> str:
    transcript = transcribe(read(CAPTURES / f"{name}.mcpspy"))
    return "\n".join(report(transcript, rows_between(transcript.rows, rows), version="1", is_part=rows is not None))


def rendered(text: str) -> str:
    return str(MarkdownIt("gfm-like", {"html": True, "linkify": False}).render(text))


def meant(text: str) -> str:
    return safe_text(" ".join(text.split())).strip()


def test_a_report_names_the_peers_the_findings_and_the_failed_calls() -> None:
    text = written("refused")
    assert "| client | `stepclient` |" in text
    assert "- **error `server-died`**: The server ended with code 1" in text
    assert "### Row 1: `initialize 2025-11-25` unanswered" in text
    assert "```mermaid\nsequenceDiagram" in text
    assert "<details><summary>Last lines of stderr</summary>" in text


def test_selected_rows_are_shown_in_full() -> None:
    text = written("time", (4, 5))
    assert re.findall(r"^### Row (\d+)", text, re.MULTILINE) == ["4", "5"]


def test_without_problems_no_call_is_suspect() -> None:
    assert "Calls with problems" not in written("memory")


@pytest.mark.parametrize("text", SPECIAL)
def test_captured_words_are_plain_text(text: str) -> None:
    shown = rendered(f"x {markdown_text(text)} y")
    assert set(TAGS.findall(shown)) <= {"p"}
    assert "@octocat" not in shown
    assert "https://" not in shown
    assert "GH-123" not in shown


@pytest.mark.parametrize("text", SPECIAL)
def test_code_spans_keep_their_text(text: str) -> None:
    shown = rendered(f"x {markdown_code(text)} y")
    assert set(TAGS.findall(shown)) <= {"p", "code"}


@pytest.mark.grid(20)
@pytest.mark.parametrize("text", HOSTILE)
def test_a_report_on_hostile_peers_has_only_our_markup(text: str) -> None:
    transcript = hostile_scene(text).transcript
    shown = rendered("\n".join(report(transcript, transcript.rows, version="1", is_part=True)))
    assert set(TAGS.findall(shown)) <= OURS


def test_a_payload_cannot_end_its_fence() -> None:
    transcript = hostile_scene("```\n# Injected\n````").transcript
    assert "<h1>Injected" not in rendered("\n".join(report(transcript, transcript.rows, version="1", is_part=True)))


def test_a_report_on_a_long_session_shows_the_rows_around_suspect_calls() -> None:
    hello = {"protocolVersion": "2025-11-25", "clientInfo": {"name": "claude"}, "capabilities": {}}
    known = {"protocolVersion": "2025-11-25", "serverInfo": {"name": "weather", "version": "1"}, "capabilities": {"tools": {}}}
    scene = opened("weather").client(request(1, "initialize", hello)).server(result(1, known)).client(notification())
    for id in range(2, 401):
        answer = failed(id, "no such city") if id == 300 else result(id, {"content": []})
        scene.client(call(id, "get_weather", day=id)).server(answer)
    transcript = scene.transcript
    text = "\n".join(report(transcript, transcript.rows, version="1"))
    picture, timeline = text.partition("```mermaid")[2].split("```")[0], text.partition("<summary>Timeline")[2]
    assert re.findall(r": (\d+) tools/call", picture) == [*map(str, range(298, 305))]
    assert "9 rows of 401, around the calls above." in text
    assert re.findall(r"^ *(\d+) \d+ .*tools/call", timeline, re.MULTILINE) == [str(row) for row in range(298, 398)]
    assert "301 rows left out" in timeline


def test_a_report_lists_agent_runs_and_failed_model_calls() -> None:
    model = ModelTraffic()
    model.ask("user: What is **this**?").answer(429, {"error": {"message": "Too many requests", "type": "rate_limit_error"}})
    transcript = model.ends().transcript
    text = "\n".join(report(transcript, transcript.rows, version="1"))
    assert "| model | `m` by `chat.completions` |" in text
    assert "- “What is \\*\\*this\\*\\*?” · 3.00 ms: model 3.00 ms (1 model call, 0 tool uses)" in text
    assert "### Row 1: `chat.completions m` http error after 3.00 ms" in text
    assert "rate_limit_error" in text.partition("### Row 1")[2]
    assert "user->>+client1: “What is **this**?”" in text
