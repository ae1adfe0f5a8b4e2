"""`mcpspy check`, as a user and a build server call it, on real captures."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from mcpspy.capture.file.format import header_line
from mcpspy.capture.file.reader import lines_of
from mcpspy.capture.file.writer import Writer
from mcpspy.records import Frame
from mcpspy.transcript.findings.registry import RULES
from mcpspy.transcript.findings.rule import Family
from tests.capture.making import header, lines, opens
from tests.cli.recording import Recording
from tests.cli.terminal import MCPSPY, PLAIN, on_terminal, run
from tests.deadlines import SCENE_S
from tests.findings.account import captures
from tests.tiers import Tier

COST = [name for name, rule in RULES.items() if rule.family is Family.COST]

ROOT = Path(__file__).parents[2]
CAPTURES = ROOT / "captures"
FINDINGS = ROOT / "tests" / "findings"
TIME = str(CAPTURES / "time.mcpspy")
SSE = str(CAPTURES / "sse.mcpspy")
GIT = str(CAPTURES / "git.mcpspy")
REFUSED = str(CAPTURES / "refused.mcpspy")
NOISE = str(FINDINGS / "stdout-noise.mcpspy")
DAMAGED = str(FINDINGS / "capture-damaged.mcpspy")


def rules(*words: str) -> list[str]:
    """Return the rules of the findings of a check."""
    return [finding["rule"] for finding in json.loads(run("check", *words, "--json").stdout)["findings"]]


# --- What it finds, and the exit status ---


@pytest.mark.parametrize("at_ns", [2**62 + 1, 2**63, -(2**63), 2**64, 10**30])
def test_a_time_that_no_clock_has_is_damage(at_ns: int, tmp_path: Path) -> None:
    answer = json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"content": []}}).encode() + b"\n"
    asked = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "x"}}).encode() + b"\n"
    path = tmp_path / "x.mcpspy"
    path.write_bytes(lines([*opens(), Frame(0, 5, 5, asked), Frame(1, at_ns, at_ns, answer)]))
    for words in (("check", "--json"), ("show", "--json"), ("show", "--stats", "--json")):
        done = run(*words, str(path))
        assert "Traceback" not in done.stderr
        assert "damage" in done.stdout


MAX_PEAK_KIB = 200_000


@pytest.mark.grid
@pytest.mark.parametrize("text", ["garbage ", "{", "["])
@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_a_line_of_garbage_is_checked_in_little_memory(stream: str, text: str, tmp_path: Path, tier: Tier) -> None:
    capture, count = tmp_path / "x.mcpspy", tier(sample=100, more=300, full=300)
    number, part = ("stdout", "stderr").index(stream) + 1, (text * ((1 << 20) // len(text))).encode()
    writer = Writer(os.open(capture, os.O_WRONLY | os.O_CREAT, 0o600), header_line(header()))
    writer(opens())
    for at_ns in range(2, count + 2):
        writer((Frame(number, at_ns, at_ns, part, part=True),))
    writer((Frame(number, 5_000, 5_000, b"!\n"),))
    writer.close(5_000)
    output, peak_kib = _checked(capture)
    assert ("stdout-noise" in output or "malformed-message" in output) == (stream == "stdout")
    assert peak_kib < MAX_PEAK_KIB


def test_a_damaged_line_of_any_length_is_checked_in_little_memory(tmp_path: Path, tier: Tier) -> None:
    capture = tmp_path / "x.mcpspy"
    with open(TIME, "rb") as whole, open(capture, "wb") as file:
        file.write(whole.readline())
        file.writelines(b"garbage " * (1 << 17) for _ in range(tier(sample=150, more=300, full=300)))
        file.write(b"\n" + whole.read())
    output, peak_kib = _checked(capture)
    assert "Line 2 of the capture: the line is longer than 64 MiB." in output
    assert peak_kib < MAX_PEAK_KIB


def _checked(capture: Path) -> tuple[str, int]:
    """Return the output of `mcpspy check`, and the peak of its memory.

    A small process starts it: Linux counts the memory of the one that forked into the peak.
    """
    starter = (
        "import resource, subprocess, sys; subprocess.run(sys.argv[1:]);"
        " print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    )
    words = [sys.executable, "-c", starter, *MCPSPY, "check", str(capture)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=SCENE_S, check=True, env={**os.environ, **PLAIN})
    output, _, peak_kib = done.stdout.rstrip().rpartition("\n")
    return output, int(peak_kib)


def test_a_capture_without_faults_passes() -> None:
    done = run("check", TIME)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("⚑ nothing found in 5 calls of 1 capture · 1 tool error")


def test_a_fault_fails_and_is_told_with_its_culprit() -> None:
    done = run("check", REFUSED)
    assert done.returncode == 1
    assert done.stdout.startswith("server refused: 1 error\n  error   Server died  server-died  ")


@pytest.mark.parametrize(
    ("name", "fail_on", "status"),
    [
        (NOISE, "error", 0), (NOISE, "warning", 1), (NOISE, "note", 1), (SSE, "warning", 0), (SSE, "note", 1), (REFUSED, "error", 1),
    ],
)  # fmt: skip
def test_the_exit_status_follows_the_severity_that_fails(name: str, fail_on: str, status: int) -> None:
    assert run("check", name, "--fail-on", fail_on).returncode == status


def test_arguments_are_held_against_their_schema() -> None:
    assert rules(str(FINDINGS / "arguments-invalid.mcpspy")) == ["arguments-invalid"]


@pytest.mark.parametrize(("path", "count"), [("", 0), (PLAIN["PYTHONPATH"], 1)], ids=["extra", "plain"])
def test_a_check_says_whether_the_official_types_are_missing(path: str, count: int) -> None:
    made = json.loads(run("check", str(FINDINGS / "not-as-specified.mcpspy"), "--json", PYTHONPATH=path).stdout)
    assert [finding["rule"] for finding in made["findings"]] == ["not-as-specified"]
    assert len([unchecked for unchecked in made["summary"]["unchecked"] if "mcp-types" in unchecked["reason"]]) == count


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
    path_of = {finding["rule"]: finding["path"] for finding in made["findings"]}
    assert path_of == {"server-died": REFUSED, "stdout-noise": NOISE}


def test_rows_can_be_asked_for() -> None:
    assert rules(f"{SSE}:5") == ["large-result"]
    assert rules(f"{SSE}:3..4") == []


def test_a_filter_leaves_what_is_about_its_rows() -> None:
    assert rules(SSE, "--filter", "method:tools/call") == ["large-result"]
    assert rules(SSE, "--filter", "method:tools/list") == []


def test_a_filter_finds_what_is_about_a_record_that_has_no_number() -> None:
    assert rules(REFUSED, "--filter", "kind:exit") == ["server-died"]


def test_it_is_said_how_much_a_filter_left_out() -> None:
    assert run("check", REFUSED, "--filter", "tool:none").stderr == "mcpspy: 1 finding left out by the filter\n"


def test_a_filter_knows_findings_that_have_to_be_asked_for() -> None:
    assert rules(SSE, "--filter", "rule:large-result") == ["large-result"]


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
    assert (done.returncode, done.stdout[:1]) == (0, "·")


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
    assert [line.split()[0] for line in shown] == ["cost", *COST]


@pytest.mark.parametrize("words", [("check", "--explain", "stdout-noise"), ("help", "stdout-noise")])
def test_a_rule_is_explained(words: tuple[str, ...]) -> None:
    shown = run(*words).stdout
    rule = RULES["stdout-noise"]
    assert all(text in shown for text in (rule.what, rule.why, rule.blame, rule.advice, rule.example.splitlines()[0]))


def test_rules_are_data_too() -> None:
    made = json.loads(run("check", "--rules", "--select", "cost", "--json").stdout)
    assert [rule["name"] for rule in made["rules"]] == COST
    (rule,) = json.loads(run("check", "--explain", "stdout-noise", "--json").stdout)["rules"]
    assert (rule["severity"], rule["family"], rule["advice"]) == ("warning", "transport", RULES["stdout-noise"].advice)


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
    (finding,) = json.loads(run("check", NOISE, "--json").stdout)["findings"]
    line = Path(NOISE).read_bytes().splitlines()[finding["line"] - 1]
    assert json.loads(line)["n"] == finding["record"]


def test_a_location_in_a_damaged_capture_is_the_line_all_the_same(tmp_path: Path) -> None:
    whole = Path(NOISE).read_bytes().splitlines(keepends=True)
    path = tmp_path / "x.mcpspy"
    path.write_bytes(b"".join([whole[0], b"foreign\n", b"more\n", *whole[1:]]))
    noise = next(
        finding
        for finding in json.loads(run("check", str(path), "--json").stdout)["findings"]
        if finding["rule"] == "stdout-noise"
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


CREDENTIAL = "ghp_Zy9Xw8Vu7Ts6Rq5Po4Nm3Lk2Ji1Hg0Fe9Dc8"


def test_no_format_prints_a_credential_that_a_result_or_stderr_shows(tmp_path: Path) -> None:
    folder = tmp_path / "shown.mcpspy"
    text = json.dumps({"content": [{"type": "text", "text": f"line\n{CREDENTIAL}"}]})
    account = (
        f'· handshake 2025-11-25, server: tools\n→ tools/call 1 {{"name":"config"}}\n← result 1 {text}\n'
        f"! token {CREDENTIAL}\n← not JSON, but {CREDENTIAL}\n← {'x' * 50} {CREDENTIAL}\n"
        f"! dying with {CREDENTIAL}\n· the server exits 1"
    )
    folder.write_bytes(captures(account)[0])
    for format in ("text", "json", "junit", "sarif", "github"):
        done = run("check", str(folder), "--format", format)
        assert done.returncode == 1
        assert "credential-shown" in done.stdout
        assert CREDENTIAL[:8] not in done.stdout + done.stderr
    (finding,) = json.loads(run("check", str(folder), "--json", "--select", "credential-shown").stdout)["findings"]
    shown = "a token in clear, 40 letters that begin with “ghp” at $.result.content[0].text"
    assert (finding["what"], finding["count"]) == (f"The result of tools/call config shows {shown}.", 5)


def test_a_state_that_only_its_server_reads_and_an_argument_are_no_shown_credentials(tmp_path: Path) -> None:
    jwt = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N"
    path = tmp_path / "well.mcpspy"
    call = f'→ tools/call 1 {{"name":"login","arguments":{{"token":"{CREDENTIAL}"}}}}'
    account = f'{call}\n← result 1 {{"content":[],"nextCursor":"{jwt}"}}'
    path.write_bytes(captures(account)[0])
    assert json.loads(run("check", str(path), "--json", "--select", "credential-shown").stdout)["findings"] == []
