"""Params and results in a few words: one rule for all methods, whatever a peer sends."""

import json
from typing import Any

import pytest

from mcpspy.transcript.model import Exchange, Outcome
from mcpspy.views.text.line import line_cells, plain
from mcpspy.views.timeline.details import MAX_LETTERS, Detail, params_words, result_words
from mcpspy.views.timeline.phrases import outcome_phrase
from mcpspy.views.timeline.timeline import timeline
from tests.transcript.dialogue import notification, request, result
from tests.views.scenes import busy_scene, call, opened


def exchange(method: str, params: Any, answer: Any = None) -> Exchange:
    scene = opened("server").client(request(1, method, params)).server(result(1, answer if answer is not None else {}))
    return next(row for row in scene.transcript.rows if isinstance(row, Exchange) and row.method == method)


@pytest.mark.parametrize(
    ("method", "params", "words"),
    [
        ("tools/call", {"name": "read", "arguments": {"path": "notes/today.md"}}, "path = “notes/today.md”"),
        ("tools/call", {"name": "sum", "arguments": {"a": 1, "b": 2.5, "c": None}}, "a = 1, b = 2.5, c = null"),
        ("tools/call", {"name": "echo", "arguments": {"message": "Hello"}}, "message = “Hello”"),
        ("tools/call", {"name": "now", "arguments": {}}, ""),
        ("tools/call", {"name": "now", "_meta": {"progressToken": 1}}, ""),
        ("prompts/get", {"name": "greet", "arguments": {"who": "Bo"}}, "who = “Bo”"),
        ("resources/read", {"uri": "file:///a"}, ""),
        (
            "completion/complete",
            {"ref": {"type": "ref/prompt", "name": "greet"}, "argument": {"name": "who", "value": "B"}},
            "who = “B”",
        ),
        ("logging/setLevel", {"level": "debug"}, ""),
        (
            "sampling/createMessage",
            {"messages": [{"role": "user", "content": {"type": "text", "text": "Hi"}}], "maxTokens": 9},
            "“Hi”, maxTokens = 9",
        ),
        (
            "elicitation/create",
            {"message": "Who?", "requestedSchema": {"properties": {"name": {}, "age": {}}}},
            "“Who?”, {name, age}",
        ),
        (
            "initialize",
            {"protocolVersion": "2025-06-18", "capabilities": {"roots": {}}, "clientInfo": {"name": "c", "version": "1"}},
            "c 1",
        ),
        ("acme/search", {"query": "x", "tags": ["a", "b"], "of": {"id": 7}}, 'query = “x”, tags = ["a","b"], of = {"id":7}'),
        ("tools/call", {"name": "t", "arguments": ["no", "object"]}, ""),
        ("tools/call", ["no", "object"], ""),
        ("tools/call", "text", ""),
    ],
)
def test_the_params_of_any_method_are_named_without_its_target(method: str, params: Any, words: str) -> None:
    raw = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}, separators=(",", ":")).encode()
    scene = opened("server").client(raw + b"\n")
    row = next(row for row in scene.transcript.rows if isinstance(row, Exchange) and row.method == method)
    assert params_words(row.request) == words


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ({"content": [{"type": "text", "text": "Hello\n  world"}]}, "“Hello world”"),
        ({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}, "“a”, “b”"),
        ({"content": [{"type": "text", "text": '{"n": 1}'}], "structuredContent": {"n": 1}}, "n = 1"),
        ({"content": [], "structuredContent": {"degrees": 21, "sky": "clear"}}, "degrees = 21, sky = “clear”"),
        ({"content": []}, ""),
        ({"content": "no list"}, ""),
        ({"content": [7, None]}, ""),
        ({"hits": [{"name": "a"}, {"name": "b"}], "took": 3}, "2 hits: a, b, took = 3"),
        ({}, ""),
        ([1], ""),
    ],
)
def test_the_head_of_a_result_is_its_words(answer: Any, words: str) -> None:
    row = exchange("acme/do", {}, answer)
    assert row.response is not None
    assert result_words(row.response) == words


@pytest.mark.parametrize(
    ("method", "answer", "words"),
    [
        ("tools/list", {"tools": [{"name": "add"}, {"name": "sub"}]}, "2 tools: add, sub"),
        ("resources/read", {"contents": [{"uri": "a", "mimeType": "text/plain", "text": "Hello"}]}, "text/plain 5 B “Hello”"),
        ("prompts/get", {"messages": [{"role": "user", "content": {"type": "text", "text": "Hi"}}]}, "1 message: user “Hi”"),
        ("roots/list", {"roots": [{"uri": "file:///a", "name": "a"}]}, "1 root: a"),
        ("tools/call", {"content": [{"type": "image", "data": "aGk=", "mimeType": "image/png"}]}, "image/png 2 B"),
    ],
)
def test_lists_and_contents_are_counted_and_named(method: str, answer: Any, words: str) -> None:
    row = exchange(method, {}, answer)
    assert row.outcome is Outcome.OK
    assert outcome_phrase(row, Detail.PARAMS).detail == words


def test_a_large_argument_and_a_large_result_are_read_no_further_than_they_are_shown() -> None:
    text = '北\\n"' * 400_000
    row = exchange(
        "tools/call", {"name": "write", "arguments": {"path": "a", "text": text}}, {"content": [{"type": "text", "text": text}]}
    )
    assert row.response is not None
    assert params_words(row.request).startswith('path = “a”, text = “北\\n"北\\n"')
    assert len(params_words(row.request)) <= MAX_LETTERS + 1
    assert len(result_words(row.response)) <= MAX_LETTERS + 2


def test_no_value_can_control_a_terminal() -> None:
    bad = "\x1b[31m\u202e\ud800"
    row = exchange(
        "tools/call", {"name": "t", "arguments": {bad: bad, "n": [bad]}}, {"content": [{"type": "text", "text": bad}]}
    )
    assert row.response is not None
    for words in (params_words(row.request), result_words(row.response)):
        assert words.isprintable()
        assert "\\u202e" in words


@pytest.mark.parametrize(("width", "is_shown"), [(80, False), (99, False), (100, True), (120, True), (None, True)])
def test_rows_show_params_and_results_from_100_columns_on(width: int | None, is_shown: bool) -> None:  # noqa: FBT001
    lines = [
        plain(line)
        for line in timeline(
            opened("x")
            .client(call(1, "read", path="a.md"))
            .server(result(1, {"content": [{"type": "text", "text": "Hello"}]}))
            .transcript,
            width=width,
        )
    ]
    row = next(line for line in lines if "tools/call" in line)
    assert ("read path = “a.md”  ok: “Hello”" in row) == is_shown


def test_on_a_narrow_screen_they_get_lines_of_their_own_if_they_are_wanted() -> None:
    scene = opened("x").client(call(1, "read", path="a.md")).server(result(1, {"content": [{"type": "text", "text": "Hello"}]}))
    lines = [plain(line).strip() for line in timeline(scene.transcript, width=60, detail=Detail.PARAMS)]
    at = next(at for at, line in enumerate(lines) if "tools/call" in line)
    assert lines[at + 1 : at + 3] == ["→ path = “a.md”", "← “Hello”"]


@pytest.mark.parametrize("width", [1, 20, 52, 80, 100, 110, 200])
@pytest.mark.parametrize("detail", list(Detail))
def test_no_line_is_wider_than_the_screen_in_any_detail(width: int, detail: Detail) -> None:
    assert all(line_cells(line) <= width for line in timeline(busy_scene().transcript, width=width, detail=detail))


def test_a_notification_of_an_unknown_method_shows_its_params() -> None:
    scene = opened("x").server(notification("notifications/acme", {"left": 3, "unit": "days"}))
    assert any("notifications/acme: left = 3, unit = “days”" in plain(line) for line in timeline(scene.transcript))
