"""`mcpspy show`, as a user calls it, on real captures."""

import json
import re
import subprocess
from pathlib import Path
from shutil import copy

import pytest

from mcpspy import read
from mcpspy.records import Frame
from tests.capture.making import header, lines, opens, stored
from tests.cli.recording import Recording
from tests.cli.terminal import MCPSPY, on_terminal, run
from tests.deadlines import DEADLINE_S
from tests.tiers import Tier

CAPTURES = Path(__file__).parents[3] / "captures"
TIME = str(CAPTURES / "time.mcpspy")
EVERYTHING = str(CAPTURES / "everything.mcpspy")


def frames(path: str) -> list[Frame]:
    """Return the frames of the protocol's streams."""
    return [record for record in read(path) if isinstance(record, Frame) and record.stream != 2]


def many_calls(count: int) -> bytes:
    """Make a capture of so many calls."""
    talk = []
    for id in range(count):
        at_ns = 1_000_000 * id
        ask = {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "forecast"}}
        talk.append(Frame(0, at_ns, at_ns, json.dumps(ask).encode() + b"\n"))
        talk.append(Frame(1, at_ns, at_ns, json.dumps({"jsonrpc": "2.0", "id": id, "result": {}}).encode() + b"\n"))
    return lines([*opens(), *talk], end_ns=10**12)


def test_a_capture_is_shown_with_its_summary_first_and_a_row_for_each_call() -> None:
    done = run("show", TIME)
    assert done.returncode == 0
    assert done.stdout.splitlines()[0].startswith("⚑ 5 calls")
    assert sum("→ tools/call" in line for line in done.stdout.splitlines()) >= 2


def test_nothing_named_is_the_newest_recording_with_all_its_servers() -> None:
    for label, begin_s in (("old", 0), ("weather", 60), ("time", 60.1)):
        stored(label, begin_s=begin_s, lasted_s=5)
    shown = run("show").stdout
    assert "weather" in shown
    assert "time" in shown
    assert "old" not in shown


def test_a_label_is_its_newest_capture() -> None:
    stored("weather", begin_s=0, messages=2)
    assert " 2 calls " in run("show", "weather").stdout.replace("✗", " ").replace("·", " ")


def test_captures_named_together_are_merged() -> None:
    shown = run("show", TIME, EVERYTHING).stdout
    assert "time" in shown
    assert "everything" in shown
    assert "server" in shown


def test_one_row_is_shown_in_full() -> None:
    shown = run("show", f"{TIME}:1").stdout
    assert shown.startswith("row 1 · initialize ")
    assert '"method": "initialize"' in shown


def test_a_range_of_rows_is_a_shorter_timeline() -> None:
    shown = run("show", f"{TIME}:2..3").stdout.splitlines()
    begin = next(at for at, line in enumerate(shown) if line.startswith("row"))
    assert [line.split()[0] for line in shown[begin + 1 :] if line[:3].strip()] == ["2", "3"]


@pytest.mark.parametrize("what", [f"{TIME}:99", f"{TIME}:99..100"])
def test_a_row_that_is_not_there_is_an_error_that_names_the_last_one(what: str) -> None:
    done = run("show", what)
    assert (done.returncode, done.stdout) == (2, "")
    assert "there is no row 99; the last one is" in done.stderr


def test_rows_before_the_last_capture_are_an_error() -> None:
    done = run("show", f"{TIME}:1", EVERYTHING)
    assert (done.returncode, done.stdout) == (2, "")
    assert "name them once, after the last capture" in done.stderr


@pytest.mark.parametrize("words", [(TIME, f"{EVERYTHING}:7..8"), (TIME, EVERYTHING, ":7..8")])
def test_rows_of_several_captures_are_those_of_their_common_timeline(words: tuple[str, ...]) -> None:
    together = json.loads(run("show", "--json", TIME, EVERYTHING).stdout)["rows"]
    some = json.loads(run("show", "--json", *words).stdout)["rows"]
    numbered = [(row["row"], row["capture"], row["at_ns"]) for row in some if "row" in row]
    assert numbered == [(row["row"], row["capture"], row["at_ns"]) for row in together if row.get("row") in (7, 8)]


def test_raw_is_every_byte_of_every_message_and_nothing_else() -> None:
    done = subprocess.run([*MCPSPY, "show", TIME, "--raw"], capture_output=True, timeout=DEADLINE_S, check=True)
    assert done.stdout == b"".join(frame.data for frame in frames(TIME))


def test_raw_of_a_row_is_the_bytes_of_its_messages() -> None:
    done = subprocess.run([*MCPSPY, "show", f"{TIME}:1", "--raw"], capture_output=True, timeout=DEADLINE_S, check=True)
    assert done.stdout == b"".join(frame.data for frame in frames(TIME)[:2])


def test_raw_on_a_terminal_is_harmless(tmp_path: Path) -> None:
    path = tmp_path / "x.mcpspy"
    path.write_bytes(lines([*opens(), Frame(1, 5, 5, b"\x1b]0;owned\x07\xff\n")]))
    with on_terminal("show", str(path), "--raw") as shown:
        assert shown.rest() == 0
        assert shown.text == "\\x1b]0;owned\\x07\\xff\n"


@pytest.mark.parametrize("option", ["-f", "--json"])
def test_raw_goes_alone(option: str) -> None:
    done = run("show", TIME, "--raw", option)
    assert (done.returncode, done.stdout) == (2, "")


def test_json_is_one_object() -> None:
    made = json.loads(run("show", EVERYTHING, "--json").stdout)
    assert made["schema"] == 1
    assert made["summary"]["complete"] is True


def test_json_of_a_row_has_its_payloads() -> None:
    (row,) = json.loads(run("show", f"{TIME}:1", "--json").stdout)["rows"]
    assert row["request"]["params"]["protocolVersion"]


@pytest.mark.parametrize("option", [(), ("--json",)])
def test_stderr_can_be_left_out(option: tuple[str, ...]) -> None:
    path = stored("weather")
    assert "stderr" in run("show", path, *option).stdout
    assert "stderr" not in run("show", path, *option, "--no-stderr").stdout


def test_standard_input_is_read_as_a_capture() -> None:
    done = run("show", "-", stdin=Path(TIME).read_bytes())
    assert done.stdout == run("show", TIME).stdout


def test_a_row_of_standard_input_is_no_option() -> None:
    done = run("show", "-:3", "--raw", stdin=Path(TIME).read_bytes())
    assert done.stdout == run("show", f"{TIME}:3", "--raw").stdout != ""


def test_a_call_without_an_answer_is_pending_while_it_is_recorded() -> None:
    recording = Recording().ask(1, name="forecast")
    shown = run("show").stdout
    assert re.search(r"1 pending · waiting for [\d.]+ m?s · recording", shown.splitlines()[0])
    assert "≥ " in shown
    assert shown.rstrip().endswith("pending")
    recording.end()
    assert "1 unanswered" in run("show").stdout.splitlines()[0]


def test_several_captures_that_are_recorded_are_shown_together() -> None:
    first, second = Recording("weather").ask(1).answer(1), Recording("time").ask(1)
    head = run("show").stdout.splitlines()[0]
    first.end()
    second.end()
    assert "2 calls" in head
    assert "1 pending · waiting for " in head
    assert head.endswith(" · recording")


def test_captures_that_are_recorded_are_merged_by_their_clocks() -> None:
    first, second = Recording("weather"), Recording("time")
    for id in range(3):
        first.ask(id, name=f"weather-{id}")
        second.ask(id, name=f"time-{id}")
    shown = run("show").stdout
    first.end()
    second.end()
    assert re.findall(r"tools/call (\S+)", shown) == ["weather-0", "time-0", "weather-1", "time-1", "weather-2", "time-2"]


def test_a_store_that_holds_nothing_says_where_it_looked(store: Path) -> None:
    done = run("show")
    assert (done.returncode, done.stdout) == (2, "")
    assert str(store) in done.stderr
    assert "Traceback" not in done.stderr


def test_a_file_that_is_no_capture_is_corrupt_input(tmp_path: Path) -> None:
    path = tmp_path / "x.mcpspy"
    path.write_bytes(b"hello\n")
    done = run("show", str(path))
    assert (done.returncode, done.stdout) == (3, "")
    assert "this is not an mcpspy capture" in done.stderr


def test_a_pipe_gets_no_escape_bytes_and_no_words_for_people() -> None:
    done = run("show", EVERYTHING, TERM="xterm-256color", COLORTERM="truecolor")
    assert "\x1b" not in done.stdout
    assert done.stderr == ""


def test_a_pipe_gets_lines_of_any_length(tmp_path: Path) -> None:
    path = tmp_path / "x.mcpspy"
    ask = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "x" * 200}}
    path.write_bytes(lines([*opens(), Frame(0, 5, 5, json.dumps(ask).encode() + b"\n")]))
    assert "x" * 200 in run("show", str(path)).stdout


@pytest.mark.parametrize("columns", [60, 30])
def test_a_terminal_gets_colours_within_its_width_and_the_next_command(columns: int, store: Path) -> None:
    (store / "captures").mkdir(parents=True)
    copy(EVERYTHING, store / "captures")
    with on_terminal("show", columns=columns) as shown:
        assert shown.rest() == 0
    assert "\x1b[" in shown.text
    assert max(map(len, shown.words.splitlines())) <= columns
    assert "mcpspy export mermaid" in shown.words.splitlines()[-1]


@pytest.mark.parametrize(("term", "no_color"), [("xterm", "1"), ("dumb", "")], ids=["NO_COLOR", "TERM=dumb"])
@pytest.mark.parametrize("words", [("show",), ("export", "text")], ids=" ".join)
def test_a_terminal_without_colours_gets_no_escape_bytes(
    words: tuple[str, ...], term: str, no_color: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", no_color)
    with on_terminal(*words, EVERYTHING, term=term) as shown:
        assert shown.rest() == 0
    assert "\x1b" not in shown.text
    assert "tools/call" in shown.text


ENVIRONMENTS = [
    {"COLUMNS": "20"},
    {"COLUMNS": "1"},
    {"COLUMNS": "wide"},
    {"LANG": "C", "LC_ALL": "C"},
    {"PYTHONIOENCODING": "ascii"},
    {"PYTHONIOENCODING": "latin-1"},
    {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"},
]


@pytest.mark.grid(3)
@pytest.mark.parametrize(
    "environment", ENVIRONMENTS, ids=lambda variables: " ".join(f"{name}={value}" for name, value in variables.items())
)
@pytest.mark.parametrize("what", [EVERYTHING, f"{EVERYTHING}:9"], ids=["timeline", "row"])
def test_no_environment_brings_a_traceback_or_escape_bytes(what: str, environment: dict[str, str]) -> None:
    done = subprocess.run(
        [*MCPSPY, "show", what], capture_output=True, timeout=DEADLINE_S, check=False, env={"PATH": "/usr/bin", **environment}
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout
    assert b"\x1b" not in done.stdout


def test_an_encoding_without_our_letters_gets_others() -> None:
    shown = run("show", TIME, PYTHONIOENCODING="ascii").stdout
    assert "> tools/call" in shown


def test_a_reader_that_has_seen_enough_is_no_error(tmp_path: Path) -> None:
    path = tmp_path / "x.mcpspy"
    path.write_bytes(many_calls(3_000))
    for words in (
        ["show"],
        ["show", "--json"],
        ["show", "--raw"],
        ["export", "jsonl"],
        ["export", "text", "--unfold"],
    ):
        with subprocess.Popen([*MCPSPY, *words, str(path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            process.stdout.readline()
            process.stdout.close()
            assert (process.wait(DEADLINE_S), process.stderr.read()) == (0, b"")


def test_many_rows_are_shown(tmp_path: Path, tier: Tier) -> None:
    count = tier(sample=5_000, more=20_000, full=100_000)
    path = tmp_path / "x.mcpspy"
    path.write_bytes(many_calls(count))
    shown = run("show", str(path)).stdout
    assert sum("→ tools/call forecast" in line for line in shown.splitlines()) == count


def test_a_label_with_escapes_does_nothing_to_a_terminal(tmp_path: Path) -> None:
    path = tmp_path / "x.mcpspy"
    path.write_bytes(lines(opens(), of=header(label="\x1b[2J\u202e", tapped={"argv": ["\x1b]0;x\x07"]})))
    with on_terminal("show", str(path)) as shown:
        assert shown.rest() == 0
    assert "\x1b" not in shown.words
    assert "\u202e" not in shown.words
    assert r"\x1b[2J\u202e" in shown.words


def test_help_says_what_a_what_is() -> None:
    assert ":7..20" in run("show", "--help").stdout
