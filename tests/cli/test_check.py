"""`mcpspy check`, as a user and a build server call it, on real captures."""

import json
import re
from pathlib import Path

import pytest

from mcpspy.capture.file.parse import lines_of
from mcpspy.transcript.findings.registry import RULES
from tests.capture.making import header, lines, opens
from tests.cli.recording import Recording
from tests.cli.terminal import PLAIN, on_terminal, run

ROOT = Path(__file__).parents[2]
CAPTURES = ROOT / "captures"
FINDINGS = ROOT / "tests" / "findings"
TIME = str(CAPTURES / "time.mcpspy")
GIT = str(CAPTURES / "git.mcpspy")
REFUSED = str(CAPTURES / "refused.mcpspy")
NOISE = str(FINDINGS / "stdout-noise.mcpspy")
DAMAGED = str(FINDINGS / "capture-damaged.mcpspy")


def rules(*words: str) -> list[str]:
    """The rules of the findings that a check has found."""
    return [one["rule"] for one in json.loads(run("check", *words, "--json").stdout)["findings"]]


# --- What it finds, and the exit status ---


def test_a_capture_without_faults_passes() -> None:
    done = run("check", TIME)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("✓ nothing found in 5 calls")


def test_a_fault_fails_and_is_told_with_its_culprit() -> None:
    done = run("check", REFUSED)
    assert done.returncode == 1
    assert done.stdout.startswith("server refused: 1 error\n  error   Server died  server-died  ")


@pytest.mark.parametrize(
    ("name", "fail_on", "status"),
    [
        (NOISE, "error", 0), (NOISE, "warning", 1), (NOISE, "info", 1), (GIT, "warning", 0), (GIT, "info", 1), (REFUSED, "error", 1),
    ],
)  # fmt: skip
def test_the_exit_status_follows_the_severity_that_fails(name: str, fail_on: str, status: int) -> None:
    assert run("check", name, "--fail-on", fail_on).returncode == status


def test_arguments_are_held_against_their_schema() -> None:
    assert rules(str(FINDINGS / "arguments-invalid.mcpspy")) == ["arguments-invalid"]


@pytest.mark.parametrize(("path", "found"), [("", ["not-as-specified"]), (PLAIN["PYTHONPATH"], [])], ids=["extra", "plain"])
def test_messages_are_held_against_the_official_types_where_these_are_installed(path: str, found: list[str]) -> None:
    done = run("check", str(FINDINGS / "not-as-specified.mcpspy"), "--json", PYTHONPATH=path)
    assert [one["rule"] for one in json.loads(done.stdout)["findings"]] == found


def test_a_file_that_is_no_capture_is_corrupt_input(tmp_path: Path) -> None:
    path = tmp_path / "x.mcpspy"
    path.write_text("hello\n")
    assert run("check", str(path)).returncode == 3


def test_a_what_that_names_nothing_is_a_mistake() -> None:
    assert run("check", "no-such-label").returncode == 2


def test_standard_input_is_a_capture_too() -> None:
    done = run("check", "-", stdin=Path(NOISE).read_bytes())
    assert (done.returncode, "stdout-noise" in done.stdout) == (1, True)


def test_several_captures_are_checked_together() -> None:
    made = json.loads(run("check", REFUSED, NOISE, TIME, "--json").stdout)
    found = {one["rule"]: one["path"] for one in made["findings"]}
    assert found == {"server-died": REFUSED, "stdout-noise": NOISE}


def test_rows_can_be_asked_for() -> None:
    assert rules(f"{GIT}:2") == ["unused-tools"]
    assert rules(f"{GIT}:3..4") == []


def test_a_filter_leaves_what_is_about_its_rows() -> None:
    assert rules(GIT, "--filter", "method:tools/list") == ["unused-tools"]
    assert rules(GIT, "--filter", "method:tools/call") == []


def test_a_filter_finds_what_is_about_a_record_that_has_no_number() -> None:
    assert rules(REFUSED, "--filter", "kind:exit") == ["server-died"]


def test_it_is_said_how_much_a_filter_left_out() -> None:
    assert run("check", REFUSED, "--filter", "tool:none").stderr == "mcpspy: 1 finding left out by the filter\n"


def test_a_filter_knows_findings_that_have_to_be_asked_for() -> None:
    assert rules(GIT, "--filter", "rule:unused-tools") == ["unused-tools"]


def test_a_filter_that_cannot_be_read_is_a_mistake() -> None:
    assert run("check", GIT, "--filter", "method:(").returncode == 2


def test_a_capture_that_is_being_recorded_is_checked_as_it_is_now() -> None:
    recording = Recording()
    recording.ask(1, name="forecast")
    assert rules("@") == []
    recording.kill()


# --- Which rules ---


@pytest.mark.parametrize("words", ["stdout-noise", "stdout-*", "transport", "cost,stdout-noise", "unused-tools, transport"])
def test_rules_are_selected_by_name_glob_and_family(words: str) -> None:
    assert rules(NOISE, "--select", words) == ["stdout-noise"]


@pytest.mark.parametrize("words", ["stdout-noise", "*noise", "transport", "cost,stdout-noise"])
def test_rules_are_ignored_by_name_glob_and_family(words: str) -> None:
    done = run("check", NOISE, "--ignore", words)
    assert (done.returncode, done.stdout[:1]) == (0, "✓")


def test_options_can_be_repeated() -> None:
    assert rules(NOISE, "--select", "cost", "--select", "transport", "--ignore", "cost", "--ignore", "trust") == [
        "stdout-noise"
    ]


def test_what_is_ignored_is_ignored_though_it_was_selected() -> None:
    assert rules(NOISE, "--select", "transport", "--ignore", "stdout-noise") == []


@pytest.mark.parametrize("option", ["--select", "--ignore", "--explain"])
def test_a_rule_that_does_not_exist_is_a_mistake_and_the_nearest_is_named(option: str) -> None:
    done = run("check", NOISE, option, "stdout-nosie")
    assert (done.returncode, done.stdout) == (2, "")
    assert "there is no rule 'stdout-nosie'. Did you mean stdout-noise" in done.stderr


@pytest.mark.parametrize("words", ["nothing-*", "\x1b[31m", "behavior"])
def test_a_glob_or_a_family_that_means_no_rule_is_a_mistake(words: str) -> None:
    done = run("check", NOISE, "--select", words)
    assert (done.returncode, "\x1b" in done.stderr) == (2, False)


def test_the_rules_are_listed_with_their_severities() -> None:
    shown = run("check", "--rules").stdout
    for rule in RULES.values():
        assert re.search(rf"^  {rule.name} +{rule.severity} ", shown, re.MULTILINE)


def test_the_selected_rules_are_listed() -> None:
    shown = run("check", "--rules", "--select", "cost").stdout.splitlines()
    assert [line.split()[0] for line in shown] == ["cost", "costly-tools", "unused-tools", "large-result", "unused-offers"]


@pytest.mark.parametrize("words", [("check", "--explain", "stdout-noise"), ("help", "stdout-noise")])
def test_a_rule_is_explained(words: tuple[str, ...]) -> None:
    shown = run(*words).stdout
    rule = RULES["stdout-noise"]
    assert all(said in shown for said in (rule.what, rule.why, rule.blame, rule.fix, rule.example.splitlines()[0]))


def test_rules_are_data_too() -> None:
    made = json.loads(run("check", "--rules", "--select", "cost", "--json").stdout)
    assert [one["name"] for one in made["rules"]] == ["costly-tools", "unused-tools", "large-result", "unused-offers"]
    (one,) = json.loads(run("check", "--explain", "stdout-noise", "--json").stdout)["rules"]
    assert (one["severity"], one["family"], one["fix"]) == ("warning", "transport", RULES["stdout-noise"].fix)


@pytest.mark.parametrize("width", ["40", "80"])
def test_no_line_of_an_explanation_is_wider_than_asked(width: str) -> None:
    for words in (("--rules",), ("--explain", "header-contradicts")):
        assert max(map(len, run("check", *words, COLUMNS=width).stdout.splitlines())) <= int(width)


# --- Formats ---


@pytest.mark.parametrize("format", ["text", "json", "junit", "sarif", "github"])
def test_the_exit_status_is_the_same_in_every_format(format: str) -> None:
    assert [run("check", name, "--format", format).returncode for name in (TIME, NOISE)] == [0, 1]


@pytest.mark.parametrize("format", ["json", "junit", "sarif", "github"])
def test_what_programs_read_is_utf_8_whatever_the_locale_is(format: str) -> None:
    there = run("check", NOISE, "--format", format, LC_ALL="C", PYTHONIOENCODING="ascii", PYTHONUTF8="0").stdout
    assert "“Weather server" in there or "\\u201cWeather server" in there or "\\u201c" in there


def test_a_location_is_the_line_of_the_record() -> None:
    (one,) = json.loads(run("check", NOISE, "--json").stdout)["findings"]
    line = Path(NOISE).read_bytes().splitlines()[one["line"] - 1]
    assert json.loads(line)["n"] == one["record"]


def test_a_location_in_a_damaged_capture_is_the_line_all_the_same(tmp_path: Path) -> None:
    whole = Path(NOISE).read_bytes().splitlines(keepends=True)
    path = tmp_path / "x.mcpspy"
    path.write_bytes(b"".join([whole[0], b"foreign\n", b"more\n", *whole[1:]]))
    noise = next(
        one for one in json.loads(run("check", str(path), "--json").stdout)["findings"] if one["rule"] == "stdout-noise"
    )
    assert noise["line"] == noise["record"] + 3
    assert json.loads(path.read_bytes().splitlines()[noise["line"] - 1])["n"] == noise["record"]


def test_records_that_do_not_stand_in_a_file_have_no_line(tmp_path: Path) -> None:
    path = tmp_path / "x.mcpspy"
    path.write_bytes(b'{"mcpspy":1}\n{"n":1}\n\xff\xfe\n{"n":' + b"9" * 400 + b'}\n { "n" : 3}\n')
    assert lines_of(path, {1, 2, 3}) == {1: 2, 3: 5}


# --- On a terminal ---


def test_on_a_terminal_it_is_coloured_and_ends_with_a_command() -> None:
    with on_terminal("check", REFUSED, columns=80) as shown:
        assert shown.rest() == 1
        assert "\x1b[31m" in shown.text
        assert "mcpspy check --explain server-died" in shown.words.splitlines()[-1]


def test_on_a_pipe_there_is_no_colour_and_no_advice() -> None:
    done = run("check", REFUSED)
    assert "\x1b" not in done.stdout
    assert done.stderr == ""


def test_captured_text_is_harmless_in_every_format(tmp_path: Path) -> None:
    path = tmp_path / "x.mcpspy"
    noise = "\x1b]0;owned\x07\u202e::error::x".encode() + b"\xff\n"
    from mcpspy.records import Frame

    path.write_bytes(lines([*opens(), Frame(1, 5, 5, noise)], of=header(label="a\x1b[31mb")))
    for format in ("text", "json", "junit", "sarif", "github"):
        shown = run("check", str(path), "--format", format).stdout
        assert "owned" in shown
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", shown)
