"""`mcpspy check --baseline`: what is accepted is a file of JSON for each server, and what differs from it is found."""

import json
import os
from pathlib import Path

import pytest

from mcpspy.cli.baseline import file_name
from mcpspy.records import Frame
from tests.capture.making import header, lines, opens
from tests.cli.terminal import run
from tests.conftest import Peer
from tests.live.mock.mocking import written
from tests.transcript.dialogue import Dialogue, request, result

CAPTURES = Path(__file__).parents[2] / "captures"
GIT = str(CAPTURES / "git.mcpspy")
TIME = str(CAPTURES / "time.mcpspy")
EXAMPLES = Path(__file__).parents[1] / "findings"

MESSAGES = (
    b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},'
    b'"clientInfo":{"name":"client","version":"1"}}}\n'
    b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n'
    b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}\n'
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "accepted"


def check(name: str, folder: Path, *words: str) -> list[tuple[str, str]]:
    """Return the rules and severities of the findings about changed definitions."""
    done = run("check", name, "--baseline", str(folder), "--select", "trust", "--json", *words)
    return [(finding["rule"], finding["severity"]) for finding in json.loads(done.stdout)["findings"]]


def test_a_server_that_nobody_accepted_fails_the_check(folder: Path) -> None:
    folder.mkdir()
    assert check(GIT, folder) == [("not-accepted", "error")]


def test_a_folder_that_is_not_there_is_a_mistake(folder: Path) -> None:
    done = run("check", GIT, "--baseline", str(folder))
    assert (done.returncode, done.stdout) == (2, "")
    assert f"there is no folder {folder}. Add --accept to write a baseline there." in done.stderr


@pytest.mark.parametrize("words", [(), ("--fail-on", "error"), ("--select", "tool-changed,offer-changed")], ids=" ".join)
def test_a_server_under_another_label_fails_the_check(folder: Path, words: tuple[str, ...]) -> None:
    run("check", GIT, "--baseline", str(folder), "--accept")
    assert run("check", TIME, "--baseline", str(folder), *words).returncode == 1


@pytest.mark.parametrize(("rows", "words"), [("", ("--filter", "method:ping")), ("", ("--since", "1h")), (":1", ())])
def test_no_selection_of_rows_hides_that_nothing_was_compared(
    folder: Path, tmp_path: Path, rows: str, words: tuple[str, ...]
) -> None:
    run("check", TIME, "--baseline", str(folder), "--accept")
    path = tmp_path / "x.mcpspy"
    talk = Frame(0, 1, 1, b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
    path.write_bytes(lines([*opens(), talk], of=header(label="time")))
    assert check(f"{GIT}{rows}", folder, *words) == [("not-accepted", "error")]
    assert check(f"{path}{rows}", folder, *words) == [("not-compared", "error")]
    assert run("check", f"{path}{rows}", "--baseline", str(folder), *words).returncode == 1


def test_a_server_that_is_not_to_be_compared_can_be_left_out(folder: Path) -> None:
    run("check", GIT, "--baseline", str(folder), "--accept")
    assert run("check", TIME, "--baseline", str(folder), "--ignore", "not-accepted").returncode == 0


@pytest.mark.parametrize("label", ["git", "other"])
def test_a_capture_without_a_list_fails_the_check(folder: Path, tmp_path: Path, label: str) -> None:
    run("check", GIT, "--baseline", str(folder), "--accept")
    path = tmp_path / "x.mcpspy"
    path.write_bytes(lines(opens(), of=header(label=label)))
    assert check(str(path), folder, "--select", "tool-changed") == [("not-compared", "error")]


def test_a_list_of_nothing_is_no_list_of_tools(folder: Path, tmp_path: Path) -> None:
    run("check", GIT, "--baseline", str(folder), "--accept")
    made = Dialogue(label="other")
    made.client(request(1, "prompts/list")).server(result(1, {"prompts": []}))
    path = written(tmp_path / "x.mcpspy", made.closes().records)
    assert check(str(path), folder, "--select", "tool-changed") == [("not-compared", "error")]


def test_a_list_in_one_of_several_captures_is_enough(folder: Path, tmp_path: Path) -> None:
    run("check", GIT, "--baseline", str(folder), "--accept")
    path = tmp_path / "x.mcpspy"
    path.write_bytes(lines(opens(), of=header(label="git")))
    done = run("check", GIT, str(path), "--baseline", str(folder), "--select", "tool-changed")
    assert (done.returncode, done.stdout.count("not-compared")) == (0, 0)


@pytest.mark.parametrize("words", [(), ("--label", "candidate")], ids=" ".join)
def test_a_replay_is_compared_with_the_baseline_of_the_server_that_it_replays(
    folder: Path, tmp_path: Path, words: tuple[str, ...], peer: Peer
) -> None:
    recorded, replayed = str(tmp_path / "tickets.mcpspy"), str(tmp_path / "again.mcpspy")
    run("run", "--label", "tickets", "--capture", recorded, "--", *peer("tickets.py"), stdin=MESSAGES)
    run("check", recorded, "--baseline", str(folder), "--accept")
    run("replay", recorded, "--yes", "--capture", replayed, *words, "--", *peer("tickets.py"))
    assert check(replayed, folder) == []


def test_what_was_accepted_passes(folder: Path) -> None:
    accepted = run("check", GIT, "--baseline", str(folder), "--accept")
    assert accepted.returncode == 0
    assert accepted.stderr.startswith("mcpspy: accepted git: 12 tools added (")
    assert check(GIT, folder) == []


def test_there_is_a_file_for_each_server(folder: Path) -> None:
    run("check", GIT, TIME, "--baseline", str(folder), "--accept")
    assert sorted(os.listdir(folder)) == ["git.json", "time.json"]


def test_accepting_the_same_again_changes_no_byte(folder: Path) -> None:
    run("check", GIT, "--baseline", str(folder), "--accept")
    before = (folder / "git.json").read_bytes()
    again = run("check", GIT, "--baseline", str(folder), "--accept")
    assert again.stderr == f"mcpspy: accepted git: nothing changed; see {folder}/git.json\n"
    assert (folder / "git.json").read_bytes() == before


def test_a_change_is_found_and_can_be_accepted(folder: Path) -> None:
    clean, changed = (str(EXAMPLES / name) for name in ("tool-changed.clean.mcpspy", "tool-changed.mcpspy"))
    run("check", clean, "--baseline", str(folder), "--accept")
    assert check(changed, folder) == [("tool-changed", "error")]
    done = run("check", changed, "--baseline", str(folder), "--accept")
    assert (done.returncode, "1 tool changed (read)" in done.stderr) == (0, True)
    assert check(changed, folder) == []
    assert check(clean, folder) == [("tool-changed", "error")]


def test_a_file_is_made_to_be_read_and_compared(folder: Path) -> None:
    run("check", GIT, "--baseline", str(folder), "--accept")
    text = (folder / "git.json").read_text(encoding="utf-8")
    made = json.loads(text)
    assert (made["server"], list(made["tools"])) == ("git", sorted(made["tools"]))
    assert text.splitlines()[1] == '  "kind": "mcpspy baseline",'
    assert text.endswith("}\n")


def test_nothing_that_is_hidden_stays_hidden_in_the_file(folder: Path) -> None:
    run("check", str(EXAMPLES / "hidden-characters.mcpspy"), "--baseline", str(folder), "--accept")
    text = (folder / "example.json").read_text(encoding="utf-8")
    assert ("\u202e" in text, "\\u202e" in text) == (False, True)
    assert check(str(EXAMPLES / "hidden-characters.mcpspy"), folder) == [("hidden-characters", "error")]


@pytest.mark.parametrize("text", ["", "hello", "[]", "{}", '{"kind":"mcpspy baseline","schema":2}', "[" * 100_000])
def test_a_file_that_is_no_baseline_is_corrupt_input(folder: Path, text: str) -> None:
    folder.mkdir()
    (folder / "git.json").write_text(text)
    done = run("check", GIT, "--baseline", str(folder))
    assert (done.returncode, done.stdout) == (3, "")
    assert "git.json" in done.stderr


def test_a_file_that_somebody_edited_is_refused_and_stays(folder: Path) -> None:
    run("check", GIT, "--baseline", str(folder), "--accept")
    path = folder / "git.json"
    edited = path.read_text(encoding="utf-8").replace("Shows", "Sends")
    path.write_text(edited, encoding="utf-8")
    done = run("check", GIT, "--baseline", str(folder), "--accept")
    assert (done.returncode, "somebody edited it" in done.stderr) == (3, True)
    assert path.read_text(encoding="utf-8") == edited


def test_accepting_without_a_folder_is_a_mistake() -> None:
    done = run("check", GIT, "--accept")
    assert (done.returncode, "--baseline DIR" in done.stderr) == (2, True)


def test_a_capture_that_lists_nothing_accepts_nothing(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "x.mcpspy"
    path.write_bytes(lines(opens()))
    done = run("check", str(path), "--baseline", str(folder), "--accept")
    assert "nothing to accept" in done.stderr
    assert os.listdir(folder) == []


def test_a_folder_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = run("check", GIT, "--baseline", str(tmp_path / "file" / "x"), "--accept")
    assert (done.returncode, done.stdout, "file" in done.stderr) == (2, "", True)


def test_no_label_leads_out_of_the_folder(folder: Path, tmp_path: Path) -> None:
    talk = run("show", str(EXAMPLES / "tool-added.mcpspy"), "--raw").stdout.encode().splitlines(keepends=True)
    frames = [Frame(at % 2, at * 1000, at * 1000, line) for at, line in enumerate(talk)]
    path = tmp_path / "x.mcpspy"
    path.write_bytes(lines([*opens(), *frames], of=header(label="../../evil")))
    run("check", str(path), "--baseline", str(folder), "--accept")
    (name,) = os.listdir(folder)
    assert name == file_name("../../evil")
    assert sorted(os.listdir(tmp_path)) == ["accepted", "x.mcpspy"]


@pytest.mark.parametrize("label", ["../x", "a/b", ".", "..", "", ".hidden", "-x", "a\x1bb", "ü", "a" * 300, "CON:"])
def test_a_file_name_is_plain_and_short(label: str) -> None:
    name = file_name(label)
    assert name.endswith(".json")
    assert len(name) < 120
    assert not name.startswith((".", "-"))
    assert set(name) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")


def test_labels_that_differ_have_files_that_differ() -> None:
    assert len({file_name(label) for label in ("a b", "a/b", "a-b", "a" * 90, "a" * 91)}) == 5
