"""Lines of a server's stderr, shown with the messages that they quote."""

import json
from datetime import UTC
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.transcript.log_matches import log_matches
from mcpspy.transcript.model import Numbered
from mcpspy.views.json.rows import transcript_json
from mcpspy.views.text.line import line_cells, plain
from mcpspy.views.timeline.exchange import row_lines
from mcpspy.views.timeline.logs import log_line, log_match_line
from mcpspy.views.timeline.timeline import timeline
from tests.transcript.dialogue import Dialogue, notification, request, result, tool_call
from tests.views.scenes import call, opened
from tests.views.test_hostile import HOSTILE, dangerous


def logged(words: str, value: Any) -> bytes:
    """Make a line of the log: words, and a value as Java's libraries write it."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return f"09:38:50.339 [main] DEBUG c.e.mcp.server.McpServer - {words}: {text}\n".encode("utf-8", "surrogatepass")


def chatty_scene() -> Dialogue:
    """Make a server that logs every message in Chinese: requests after it has read them, results before it writes them."""
    hello = request(0, "initialize", {"protocolVersion": "2025-06-18"})
    weather = call(1, "weather", city="北京")
    answer = result(1, {"content": [{"type": "text", "text": "城市: 北京\n天气: 小雨"}]})
    scene = opened("demo").client(hello).wait(900).stderr("=== MCP Demo Server 启动 ===\n".encode())
    scene.stderr(logged("收到请求", hello)).stderr(logged("发送响应", result(0))).server(result(0))
    scene.client(notification()).stderr(logged("收到请求", notification()))
    scene.client(weather).stderr(logged("收到请求", weather)).stderr(logged("发送响应", answer)).server(answer)
    return scene.stderr("标准输入已关闭,服务器停止\n".encode())


def shown(width: int | None) -> list[str]:
    return [plain(line) for line in timeline(chatty_scene().transcript, width=width, zone=UTC)]


def row(number: int, width: int | None = 80) -> list[str]:
    """Return the lines of the row with this number."""
    transcript = chatty_scene().transcript
    row = transcript.row(number)
    assert row is not None
    return [plain(line) for line in row_lines(transcript, row, width=width)]


def test_a_quoted_request_is_replaced_by_its_name() -> None:
    assert any(line.endswith("收到请求: {request of row 1} +902 ms") for line in shown(80))


def test_a_line_logged_before_its_message_shows_how_long_before() -> None:
    assert any(line.endswith("发送响应: {result of row 3} -1.00 ms") for line in shown(80))


@pytest.mark.parametrize("width", [40, 80, 120, 200])
def test_no_line_is_wider_than_the_screen(width: int) -> None:
    transcript = chatty_scene().transcript
    lines = list(timeline(transcript, width=width, zone=UTC))
    for row in transcript.rows:
        if isinstance(row, Numbered):
            lines += row_lines(transcript, row, width=width)
    assert [plain(line) for line in lines if line_cells(line) > width] == []


def test_on_a_pipe_the_line_is_complete_and_the_name_follows() -> None:
    assert any(
        line.endswith('"method":"notifications/initialized"}  = notification of row 2, logged 1.00 ms after it arrived')
        for line in shown(None)
    )


def test_a_row_has_the_lines_that_came_while_it_ran_and_marks_those_that_quote_it() -> None:
    lines = row(3)
    below = lines[lines.index("meanwhile") + 1 :]
    assert below[0].endswith("收到请求: {this request}, logged 1.00 ms after it arrived")
    assert below[1].endswith("发送响应: {this result}, logged 1.00 ms before it was sent")
    assert len(below) == 2


def test_a_notification_has_the_lines_that_quote_it_and_no_others() -> None:
    lines = row(2)
    below = lines[lines.index("on stderr") + 1 :]
    assert len(below) == 1
    assert below[0].endswith("{this notification}, logged 1.00 ms after it arrived")


def test_a_line_that_quotes_another_row_says_which() -> None:
    first, second = tool_call(1), tool_call(2)
    transcript = Dialogue().client(first).client(second).stderr(logged("got", second)).server(result(1)).transcript
    lines = [plain(line) for line in row_lines(transcript, transcript.exchanges[0], width=80)]
    assert any("{request of row 2}, logged" in line for line in lines)


def test_a_line_without_a_match_stays_as_it_is() -> None:
    assert any(line.endswith("stderr === MCP Demo Server 启动 ===") for line in shown(80))


def test_words_after_a_quoted_message_stay_where_there_is_room() -> None:
    line = logged("got", tool_call(1)).rstrip() + b" (76 bytes)\n"
    assert any(
        "got: {request of row 1} (76 bytes) +1.00 ms" in plain(rendered)
        for rendered in timeline(Dialogue().client(tool_call(1)).stderr(line).transcript, width=200)
    )


@pytest.mark.grid(15)
@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize("width", [20, 80, None])
def test_no_hostile_string_in_a_quoting_line_does_anything(text: str, width: int | None) -> None:
    scene = Dialogue().client(call(1, "x", text=text))
    before = text.replace("\n", " ").replace("{", " ")
    scene.stderr(logged(before, call(1, "x", text=text)).rstrip() + before.encode("utf-8", "surrogatepass") + b"\n")
    transcript = scene.transcript
    lines = [*timeline(transcript, width=width, zone=UTC), *row_lines(transcript, transcript.exchanges[0], width=width)]
    assert not any(dangerous(plain(line)) for line in lines)
    assert not any(width is not None and line_cells(line) > width for line in lines)


def test_the_json_names_the_quoted_message() -> None:
    transcript = chatty_scene().transcript
    made = json.loads("".join(transcript_json(transcript, transcript.rows, live=False)))
    matches = [row["log_matches"] for row in made["rows"] if row["kind"] == "stderr" and "log_matches" in row]
    assert [(match["row"], match["kind"], match["gap_ns"]) for match in matches][:2] == [
        (1, "request", 902_000_000),
        (1, "result", -1_000_000),
    ]


def test_the_json_has_the_start_up_of_the_server() -> None:
    transcript = chatty_scene().transcript
    (capture,) = json.loads("".join(transcript_json(transcript, transcript.rows, live=False)))["captures"]
    assert (capture["start_up"]["first_log_ns"], capture["start_up"]["took_ns"]) == (902_000_000, 905_000_000)
    assert [phase["phase"] for phase in capture["phases"]] == ["start", "handshake", "calls"]


def test_the_timeline_shows_the_start_up_of_the_server() -> None:
    assert "  start 902 ms · handshake 4.00 ms · calls 3.00 ms" in shown(80)
    assert any(
        line.endswith("server started: pid 101, first log line after 902 ms, first answer after 905 ms") for line in shown(120)
    )


def test_a_quoted_message_is_replaced_after_any_prefix() -> None:
    raw = ("天" * 500).encode() + logged("", tool_call(1))
    transcript = Dialogue().client(tool_call(1)).stderr(raw).transcript
    (quote,) = log_matches(transcript.rows).values()
    line = log_match_line(raw, quote, 60)
    assert plain(line).startswith("…")
    assert line_cells(line) <= 60


@pytest.mark.parametrize(
    "begin",
    [
        "09:38:50.339 [main] DEBUG c.e.mcp.server.McpServer - ",
        "2026-11-21 09:38:50,339 - DEBUG - ",
        "2026-11-21T09:38:50.339Z DEBUG mcp_server::stdio: ",
        "[2026-11-21 09:38:50] [DEBUG] [McpServer] ",
        "DEBUG:mcp.server.lowlevel:",
    ],
)
def test_the_prefix_of_a_logger_is_shortened_where_the_line_is_too_long(begin: str) -> None:
    shown = plain(log_line(f"{begin}已注册工具: weather\n".encode(), 34))
    assert shown == "DEBUG … 已注册工具: weather"


def test_a_line_that_fits_is_shown_as_it_is() -> None:
    line = "09:38:50.339 [main] INFO c.e.McpServer - 已注册工具: weather"
    assert plain(log_line(line.encode() + b"\n", 80)) == line


@given(st.text(st.characters(codec="utf-8"), max_size=80), st.integers(1, 90))
def test_no_line_of_a_log_is_wider_than_its_room(text: str, room: int) -> None:
    assert line_cells(log_line(text.encode(), room)) <= room
