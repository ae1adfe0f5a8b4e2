"""Checks for people: by culprit, the worst first, complete and harmless at every width."""

import re
from dataclasses import replace

import pytest

from mcpspy.transcript.findings.rule import Severity
from mcpspy.transcript.findings.run import all_findings
from mcpspy.transcript.transcribe import transcribe
from mcpspy.views.check.model import CheckResult
from mcpspy.views.check.text import check_lines, next_lines
from mcpspy.views.text.line import line_cells, plain
from tests.transcript.dialogue import Dialogue, make_header
from tests.views.check.checking import busy, checked, hostile, quiet
from tests.views.golden import same_as_golden


def shown(check: CheckResult, width: int | None = None) -> list[str]:
    return [plain(line) for line in check_lines(check, width=width)]


@pytest.mark.parametrize("width", [80, 200])
def test_a_check_looks_as_it_did(width: int) -> None:
    assert same_as_golden(f"check-{width}", check_lines(checked(busy()), width=width))


def test_findings_are_grouped_by_culprit_with_the_worst_first() -> None:
    heads = [line for line in shown(checked(busy())) if line and not line.startswith((" ", "✗"))]
    assert heads == [
        "client claude: 1 error",
        "server weather: 1 error, 1 warning",
        "agent behind claude: 1 note",
    ]


def test_each_finding_says_what_happened_whose_fault_it_is_and_what_to_do() -> None:
    check = checked(busy())
    text = "\n".join(shown(check))
    for finding in check.findings:
        assert check.rules[finding.rule].title in text
        assert finding.what in text
        assert finding.blame in text
        assert f"→ {finding.advice}" in text


def test_a_finding_says_how_often_it_was_met() -> None:
    assert "stdout-noise  @:4  0.006 s  ×2  rows 4, 5" in "\n".join(shown(checked(busy())))


def test_a_place_is_a_row_as_show_takes_it_or_else_a_line_of_the_file() -> None:
    text = "\n".join(shown(checked(busy())))
    assert re.search(r"malformed-message +\S+:6 ", text)
    assert "server-died  captures/weather.mcpspy, line 22  " in text


def test_a_client_without_a_name_is_not_called_client_twice() -> None:
    headers = [make_header(parent={"pid": pid, "start": pid}) for pid in (1, 2)]
    dialogues = [Dialogue(header=header).client(b"hello\n").ends() for header in headers]
    transcript = transcribe(*(dialogue.records for dialogue in dialogues))
    check = replace(checked(quiet()), transcript=transcript, findings=all_findings(transcript), paths={0: "a", 1: "b"})
    assert [line for line in shown(check) if line.startswith("client")] == ["client: 1 error", "client 2: 1 error"]


def test_the_folder_of_a_file_is_left_out_where_there_is_no_room() -> None:
    long = checked(busy(), path="/a/very/long/way/to/the/captures/of/this/week/weather.mcpspy")
    assert "server-died  /a/very/long/way" in "\n".join(shown(long))
    assert "server-died  weather.mcpspy, line 22  0.017 s" in "\n".join(shown(long, 80))


def test_of_captures_that_were_named_together_each_has_its_own_time() -> None:
    check = replace(checked(busy()), address="")
    check.transcript.captures[0].shift_ns -= 10**9
    assert "malformed-message  captures/weather.mcpspy, line 13  1.008 s" in "\n".join(shown(check))


def test_the_totals_come_last() -> None:
    assert shown(checked(busy()))[-1].startswith("✗ 2 errors · 1 warning · 1 note · in 6 calls of 1 capture")


def test_a_check_without_findings_says_so() -> None:
    (line,) = shown(checked(quiet()))
    assert line == "✓ nothing found in 3 calls of 1 capture"


def test_findings_below_the_limit_are_shown_and_let_pass() -> None:
    dialogue = quiet().server(b"\n")
    assert shown(checked(dialogue))[-1].endswith("none is as bad as a warning")
    assert shown(checked(dialogue, fail_on=Severity.NOTE))[-1].startswith("✗ 1 note")


@pytest.mark.parametrize("width", [20, 80, 200])
def test_no_line_is_wider_than_the_screen(width: int) -> None:
    for dialogue in (busy(), hostile()):
        assert max(line_cells(line) for line in check_lines(checked(dialogue), width=width)) <= width


@pytest.mark.parametrize("width", [None, 80])
def test_nothing_that_was_captured_reaches_the_screen_as_it_was(width: int | None) -> None:
    text = "\n".join(shown(checked(hostile()), width) + [plain(line) for line in next_lines(checked(hostile()))])
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b\u202e\ufffe\ud800]", text)


def test_the_next_command_shows_the_worst_row_or_explains_its_rule() -> None:
    lines = [plain(line) for line in next_lines(checked(busy()))]
    assert lines[1].startswith("mcpspy show @:6 ")
    assert lines[2].startswith("mcpspy check --explain ")
    assert next_lines(checked(quiet())) == []
