"""`--filter` and `mcpspy help`, as a user calls them."""

import json
import signal
from pathlib import Path

import pytest

from mcpspy.cli.verbs import TOPICS, VERBS
from tests.cli.recording import Recording
from tests.cli.terminal import on_pipe, on_terminal, run
from tests.conftest import ROOT

FILES = str(ROOT / "captures" / "filesystem.mcpspy")
HTTP = str(ROOT / "tests" / "golden" / "capture-1-http.mcpspy")


def numbers(shown: str) -> list[int]:
    """Return the row numbers of a timeline."""
    lines = shown.splitlines()
    begin = next((at for at, line in enumerate(lines) if line.startswith("row")), len(lines))
    return [int(line[:3]) for line in lines[begin + 1 :] if line[:3].strip().isdecimal()]


def test_rows_that_match_are_shown_with_their_numbers_and_counted() -> None:
    whole, some = run("show", FILES).stdout, run("show", FILES, "-F", "tool:*text*").stdout
    assert some.splitlines()[0] == whole.splitlines()[0]
    assert "2 of 9 rows match tool:*text*\n" in some
    assert numbers(some) == [6, 9]
    # the column of calls is as wide as the rows that are shown need
    whole_lines, lines = ({" ".join(line.split()) for line in text.splitlines()} for text in (whole, some))
    assert {line for line in lines if line[:1].isdecimal() and " rows match " not in line} <= whole_lines


def test_of_two_filters_both_have_to_match() -> None:
    assert numbers(run("show", FILES, "-F", "tool:*text*", "--filter", "status:tool-error").stdout) == [9]


def test_nothing_that_matches_is_no_error() -> None:
    done = run("show", FILES, "-F", "tool:no-such-tool")
    assert "0 of 9 rows match tool:no-such-tool" in done.stdout
    assert (done.returncode, numbers(done.stdout)) == (0, [])


def test_a_filter_goes_with_a_range_of_rows() -> None:
    shown = run("show", f"{FILES}:1..6", "-F", "tool:*text*").stdout
    assert "1 of 6 rows matches" in shown
    assert numbers(shown) == [6]


def test_one_row_that_does_not_match_is_not_shown_in_full() -> None:
    assert run("show", f"{FILES}:9", "-F", "status:tool-error").stdout.startswith("row 9 ·")
    done = run("show", f"{FILES}:9", "-F", "status:ok")
    assert done.stdout == ""
    assert "0 of 1 row matches status:ok" in done.stderr


def test_the_document_tells_the_filter_and_has_its_rows_alone() -> None:
    document = json.loads(run("show", "--json", FILES, "-F", "tool:*text*  and status:tool-error").stdout)
    assert document["filter"] == {"expression": "tool:*text* status:tool-error", "matching": 1, "of": 9}
    assert [row["row"] for row in document["rows"]] == [9]


def test_without_a_filter_the_document_tells_none() -> None:
    assert "filter" not in json.loads(run("show", "--json", FILES).stdout)


def test_only_findings_about_matching_rows_are_shown() -> None:
    outputs = [run("show", HTTP, "-F", expression).stdout for expression in ("rule:upstream-failed", "not rule:*")]
    assert ["upstream-failed  row 6" in output for output in outputs] == [True, False]
    assert numbers(outputs[0]) == [6]
    assert 6 not in numbers(outputs[1])


def test_raw_bytes_are_those_of_rows_that_match() -> None:
    raw = run("show", "--raw", FILES, "-F", "status:tool-error").stdout.splitlines()
    assert [json.loads(line)["id"] for line in raw] == [7, 7]


def test_the_wire_view_has_the_transactions_of_rows_that_match() -> None:
    wire = run("show", "--http", HTTP, "-F", "tool:echo").stdout
    assert "transaction 2 " in wire
    assert "transaction 1 " not in wire


def test_the_numbers_are_of_rows_that_match() -> None:
    numbered = run("show", "--stats", FILES, "-F", "tool:*text*").stdout
    assert numbered.startswith("2 of 9 rows match tool:*text*\n")
    assert "read_text_file" in numbered
    assert "write_file" not in numbered


def test_findings_of_a_check_can_be_filtered() -> None:
    assert [
        run("check", HTTP, "-F", expression).returncode for expression in ("http:502", "tool:echo rule:upstream-failed")
    ] == [1, 0]


def test_standard_input_can_be_filtered() -> None:
    done = run("show", "-", "-F", "status:tool-error", stdin=Path(FILES).read_bytes())
    assert numbers(done.stdout) == [9]


@pytest.mark.parametrize("format", ["mermaid", "text", "jsonl"])
def test_what_is_exported_can_be_filtered(format: str) -> None:
    done = run("export", format, FILES, "-F", "status:tool-error")
    assert "Access denied" in done.stdout
    assert "initialize" not in done.stdout


def test_an_export_of_nothing_says_so() -> None:
    done = run("export", "jsonl", FILES, "-F", "tool:x")
    assert (done.returncode, done.stdout) == (0, "")
    assert "0 of 9 rows match tool:x" in done.stderr


@pytest.mark.parametrize("verb", [("show",), ("show", "-f"), ("export", "text")], ids=" ".join)
def test_a_filter_that_cannot_be_read_is_pointed_at_before_anything_is_looked_for(verb: tuple[str, ...]) -> None:
    done = run(*verb, "no-such-capture", "-F", "status:ok dur>2")
    assert done.returncode == 2
    assert done.stdout == ""
    lines = done.stderr.splitlines()
    assert lines[0].startswith("mcpspy: in the filter, column 15: “2” has no unit. Write ")
    assert lines[1:] == ["  status:ok dur>2", " " * 16 + "^"]


def test_a_terminal_shows_the_next_command_with_the_filter() -> None:
    with on_terminal("show", FILES, "-F", "tool:*text* dur>0ms", columns=200) as shown:
        assert shown.rest() == 0
    assert "-F 'tool:*text* dur>0ms'" in shown.words
    assert f"{FILES}:9" in shown.words


# --- Live ---


def test_a_row_appears_live_when_it_ends_if_it_matches() -> None:
    recording = Recording().ask(1, name="first").answer(1)
    with on_pipe("show", "-f", "-F", "tool:first or tool:last") as shown:
        shown.wait_for("tools/call first")
        recording.ask(2, name="hidden").answer(2).ask(3, name="last").answer(3)
        assert "hidden" not in shown.wait_for("tools/call last")
    recording.end()


def test_a_row_that_matches_late_appears_then_and_stays() -> None:
    recording = Recording()
    with on_pipe("show", "-f", "--json", "-F", '"late"') as shown:
        recording.ask(1, name="early").answer(1)
        recording.ask(2, name="waits").answer(2, result={"word": "late"}).answer(2)
        shown.wait_for(lambda words: words.count("\n") >= 2)
        rows = [json.loads(line) for line in shown.words.splitlines()]
        assert [(row["row"], row["outcome"]) for row in rows] == [(2, "ok"), (2, "ok")]
    recording.end()


def test_a_row_that_ended_before_it_matched_is_printed_when_it_does() -> None:
    recording = Recording()
    with on_pipe("show", "-f", "-F", '"late"') as shown:
        recording.ask(1, name="twice").answer(1).ask(2, name="other", word="late").answer(2)
        assert "twice" not in shown.wait_for("other")
        recording.answer(1, result={"word": "late"})
        shown.wait_for("tools/call twice")
    recording.end()


def test_what_was_pending_when_it_matched_is_printed_when_it_ends() -> None:
    recording = Recording()
    with on_pipe("show", "-f", "-F", "status:pending") as shown:
        recording.ask(1, name="forecast").answer(1)
        shown.wait_for("tools/call forecast")
    recording.end()


def test_on_a_terminal_calls_that_match_are_pending_and_counted_alone() -> None:
    recording = Recording().ask(1, name="slow").ask(2, name="other").ask(3, name="quick").answer(3)
    with on_terminal("show", "-f", "-F", "tool:slow or tool:quick") as shown:
        words = shown.wait_for("2 calls")
        assert "slow" in words
        assert "other" not in words
        shown.end(signal.SIGINT)
        assert "2 of 3 rows match tool:slow or tool:quick" in shown.words
    recording.end()


def test_rules_cannot_be_filtered_live() -> None:
    done = run("show", "-f", FILES, "-F", "rule:*")
    assert done.returncode == 2
    assert "leave out -f" in done.stderr


# --- Help ---


@pytest.mark.grid(6)
@pytest.mark.parametrize("verb", [verb for verb in VERBS if verb not in TOPICS])
def test_help_on_a_verb_is_its_own_help(verb: str) -> None:
    assert run("help", verb).stdout == run(verb, "--help").stdout != ""


@pytest.mark.parametrize("topic", list(TOPICS))
def test_every_topic_is_explained(topic: str) -> None:
    done = run("help", topic)
    assert done.returncode == 0
    assert len(done.stdout.splitlines()) > 15


def test_help_alone_names_verbs_and_topics() -> None:
    words = run("help").stdout
    assert all(f"  {name}" in words for name in [*VERBS, *TOPICS])
    assert words.startswith(run("--help").stdout)


def test_help_on_what_is_not_there_names_what_is() -> None:
    done = run("help", "filtr")
    assert done.returncode == 2
    assert "filter" in done.stderr


def test_the_topic_on_filters_fits_a_narrow_terminal_and_keeps_its_keys() -> None:
    with on_terminal("help", "filter", columns=60) as shown:
        assert shown.rest() == 0
    assert max(map(len, shown.words.splitlines())) <= 60
    assert "  session" in shown.words
