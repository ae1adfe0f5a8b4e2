"""`mcpspy list` and bare `mcpspy`, as a user calls them."""

import json
import re
import subprocess
from pathlib import Path

import pytest

from mcpspy.capture.store.quota import set_quota, store_size
from mcpspy.views.listing import keeping_line
from tests.capture.making import stored
from tests.cli import terminal
from tests.cli.terminal import MCPSPY


def run(argv: list[str], **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a command to its end, its output as text."""
    return terminal.run(*argv[len(MCPSPY) :], stdin=None, **environment)


def test_the_newest_recording_comes_first_and_its_captures_below_it(mcpspy: list[str]) -> None:
    stored("first", label="weather", begin_s=0, messages=2)
    stored("second", label="time", begin_s=60, lasted_s=9)
    stored("third", label="git", begin_s=61, lasted_s=9, ended=False, gap=True)
    assert re.sub(r"@[0-9a-f]{8}", "ID", re.sub(r"[0-9.]+ kB", "SIZE", run([*mcpspy, "list"]).stdout)).splitlines() == [
        "@  2026-11-20 22:38:01  client (pid 11)  ID",
        "   time     22:38:01  9.00 s   1 message  SIZE  complete  second.mcpspy",
        "   git      22:38:02  9.00 s   1 message  SIZE  incomplete, 1 gap  third.mcpspy",
        "",
        "@1 2026-11-20 22:37:01  client (pid 11)  ID",
        "   weather  22:37:01  1.00 s  2 messages  SIZE  complete  first.mcpspy",
    ]


def test_the_addresses_are_those_that_verbs_take(mcpspy: list[str]) -> None:
    stored("old", begin_s=0)
    stored("silent", begin_s=60, messages=0)
    stored("new", begin_s=120)
    output = json.loads(run([*mcpspy, "list", "--json"]).stdout)
    assert [(recording["address"], recording["captures"][0]["label"]) for recording in output["recordings"]] == [
        ("@", "new"),
        (None, "silent"),
        ("@1", "old"),
    ]


def test_only_the_newest_recordings_are_listed_without_all(mcpspy: list[str]) -> None:
    for number in range(12):
        stored(f"s{number}", begin_s=60 * number)
    kept = keeping_line(*store_size(), None) + "\n"
    some, everything = run([*mcpspy, "list"]), run([*mcpspy, "list", "--all"])
    assert (some.stdout.count(" client "), some.stderr) == (10, f"2 older recordings: mcpspy list --all\n{kept}")
    assert (everything.stdout.count(" client "), everything.stderr) == (12, kept)


def test_an_empty_store_says_where_it_looked_and_what_to_do(mcpspy: list[str], store: Path) -> None:
    done = run([*mcpspy, "list"])
    assert (done.returncode, done.stdout) == (0, "")
    assert str(store / "captures") in done.stderr
    assert "mcpspy wrap" in done.stderr


def test_an_empty_store_is_an_empty_document(mcpspy: list[str], store: Path) -> None:
    assert json.loads(run([*mcpspy, "list", "--json"]).stdout) == {
        "schema": 1,
        "store": str(store / "captures"),
        "recordings": [],
        "unreadable": [],
        "kept": {
            "captures": 0,
            "bytes": 0,
            "max_bytes": None,
            "removed": {"captures": 0, "bytes": 0, "last_wall_ns": None},
        },
    }


def test_a_file_that_is_no_capture_is_named_and_does_no_harm(mcpspy: list[str]) -> None:
    Path(stored("weather")).with_name("junk.mcpspy").write_bytes(b"\x00junk")
    assert run([*mcpspy, "list"]).stdout.splitlines()[-2:] == [
        "unreadable",
        "    junk.mcpspy  this is not an mcpspy capture; captures are made by mcpspy run",
    ]


def test_impossible_times_in_a_header_do_no_harm(mcpspy: list[str]) -> None:
    stored("weather", wall_ns=10**30)
    assert run([*mcpspy, "list"]).stdout.startswith("@ 1970-01-01 00:00:00")
    assert run([*mcpspy, "prune", "--keep", "0", "--dry-run"]).stdout.startswith("1970-01-01 00:00 ")
    assert "| recorded | 1970-01-01 00:00:00 UTC" in run([*mcpspy, "export", "markdown"]).stdout


def test_bare_mcpspy_lists_the_newest_recordings_and_names_the_next_command(mcpspy: list[str]) -> None:
    for number in range(5):
        stored(f"s{number}", begin_s=60 * number)
    done = run(mcpspy)
    assert (done.returncode, done.stdout.count(" client ")) == (0, 3)
    assert "mcpspy show" in done.stderr


def test_bare_mcpspy_on_an_empty_store_says_how_to_begin(mcpspy: list[str]) -> None:
    done = run(mcpspy)
    assert (done.returncode, done.stdout) == (0, "")
    assert "mcpspy demo" in done.stderr


@pytest.mark.parametrize("environment", [{"LC_ALL": "C", "PYTHONUTF8": "0"}, {"PYTHONIOENCODING": "ascii"}, {"COLUMNS": "20"}])
def test_no_locale_makes_it_fail(environment: dict[str, str], mcpspy: list[str]) -> None:
    stored("天気")
    done = run([*mcpspy, "list"], **environment)
    assert (done.returncode, "1 capture, " in done.stderr, "Error" in done.stderr) == (0, True, False)


def test_the_size_of_the_store_is_shown_and_that_nothing_is_deleted_by_itself(mcpspy: list[str]) -> None:
    stored("weather")
    assert "no quota: nothing is deleted until you run mcpspy prune" in run([*mcpspy, "list"]).stderr
    set_quota(2 * 10**9)
    assert " of at most 2.0 GB; beyond that, the oldest recordings are deleted" in run([*mcpspy, "list"]).stderr


def test_index_files_of_earlier_versions_are_removed_and_counted(tmp_path: Path) -> None:
    folder = tmp_path / "captures"
    folder.mkdir(mode=0o700)
    for name in ("a.mcpspy.idx", "a.mcpspy.idx.check", "b.mcpspy.idx"):
        (folder / name).write_bytes(b"mcpspy-index\n")
    done = run([*MCPSPY, "list"], MCPSPY_HOME=str(tmp_path))
    assert "removed 3 index files of an earlier version" in done.stderr
    assert list(folder.iterdir()) == []
    assert "index file" not in run([*MCPSPY, "list"], MCPSPY_HOME=str(tmp_path)).stderr


def test_a_server_that_failed_to_start_is_not_called_complete(tmp_path: Path) -> None:
    home = {"MCPSPY_HOME": str(tmp_path)}
    run([*MCPSPY, "run", "--", "/nonexistent"], **home)
    run([*MCPSPY, "run", "--", "cat"], **home)
    listed = run([*MCPSPY, "list"], **home).stdout
    assert tuple(state for line in listed.splitlines() for state in ("failed to start", "complete") if state in line) == (
        "failed to start",
        "complete",
    )
    (recording,) = json.loads(run([*MCPSPY, "list", "--json"], **home).stdout)["recordings"]
    assert [(item["failed_to_start"], item["complete"]) for item in recording["captures"]] == [(True, True), (False, True)]
