"""`mcpspy show` of a server that logs what it reads and writes: captures/logs.mcpspy, whose log is Chinese."""

import json
from pathlib import Path

import pytest

from mcpspy.views.text.cells import cells
from tests.cli.terminal import run

CAPTURE = str(Path(__file__).parents[3] / "captures" / "logs.mcpspy")


def test_every_message_is_quoted_by_a_line_of_the_log() -> None:
    rows = json.loads(run("show", "--json", CAPTURE).stdout)["rows"]
    messages = {message["record"] for row in rows for name in ("request", "response", "message") if (message := row.get(name))}
    quoted = {row["log_matches"]["record"] for row in rows if "log_matches" in row}
    assert quoted == messages


def test_every_line_that_quotes_is_shown_with_what_it_quotes() -> None:
    lines = [line for line in run("show", CAPTURE).stdout.splitlines() if "收到请求" in line]
    assert len(lines) == 6
    assert all(line.endswith(" after it arrived") for line in lines)


@pytest.mark.parametrize("what", [CAPTURE, f"{CAPTURE}:5"])
def test_at_80_columns_nothing_wraps_though_characters_are_wide(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = run("show", what).stdout.splitlines()
    assert any("收到请求: {" in line for line in lines)
    assert [line for line in lines if cells(line) > 80] == []


def test_the_numbers_tell_how_long_it_took_to_start() -> None:
    done = run("show", "--stats", CAPTURE)
    assert done.returncode == 0
    assert "start-up  first log line after 561 ms · first answer after 561 ms" in done.stdout


def test_the_numbers_are_json_too() -> None:
    (server,) = json.loads(run("show", "--stats", "--json", CAPTURE).stdout)["servers"]
    assert [call["method"] for call in server["calls"]] == ["initialize", "tools/call", "tools/list"]


@pytest.mark.parametrize("other", ["-f", "--raw", "--http"])
def test_the_numbers_go_with_no_other_view(other: str) -> None:
    assert run("show", "--stats", other, CAPTURE).returncode == 2


def test_the_numbers_of_rows_count_these_alone() -> None:
    (server,) = json.loads(run("show", "--stats", "--json", f"{CAPTURE}:4..5").stdout)["servers"]
    assert [(call["method"], call["count"]) for call in server["calls"]] == [("tools/call", 2)]
