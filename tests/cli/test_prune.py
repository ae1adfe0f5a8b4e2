"""`mcpspy prune`, as a user calls it, on a store of real and of made-up captures."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from mcpspy.capture.store.catalog import CatalogEntry, Recording, entries, recordings
from mcpspy.capture.store.pruning import Bounds, prune, recordings_beyond
from mcpspy.capture.store.quota import quota_bytes
from tests.cli.terminal import run
from tests.deadlines import DEADLINE_S

DAY_NS = 86_400 * 10**9
NOW_NS = 1_795_000_000_000_000_000


def recorded(store: Path, label: str, *, age_days: int = 0) -> Path:
    """Record with a real tap into the store, and make the capture so many days old."""
    subprocess.run(
        [sys.executable, "-m", "mcpspy", "run", "--label", label, "--", "cat"],
        input=b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n',
        stdout=subprocess.DEVNULL,
        timeout=DEADLINE_S,
        check=True,
    )
    (path,) = [file for file in (store / "captures").iterdir() if f"-{label}-" in file.name]
    if age_days:
        first, rest = path.read_text(encoding="utf-8").split("\n", 1)
        header = json.loads(first)
        header.pop("crc")
        header["wall_ns"] -= age_days * DAY_NS
        header["parent"]["start"] = age_days  # another client's recording
        path.write_text(json.dumps(header) + "\n" + rest, encoding="utf-8")
    return path


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MCPSPY_HOME", str(tmp_path))
    return tmp_path


def recording(days: int, size_bytes: int = 100, *, live: bool = False) -> Recording:
    entry = CatalogEntry(path=f"/{days}", size_bytes=size_bytes, begin_ns=NOW_NS - days * DAY_NS, last_ns=0, live=live)
    return Recording(entries=(entry,))


def test_what_is_old_goes_and_what_is_young_stays(store: Path) -> None:
    old, young = recorded(store, "old", age_days=40), recorded(store, "young")
    done = run("prune", "--older-than", "30d")
    assert (done.returncode, old.exists(), young.exists()) == (0, False, True)
    assert "1 recording, " in done.stderr


def test_a_dry_run_says_what_would_go_and_removes_nothing(store: Path) -> None:
    old = recorded(store, "old", age_days=40)
    done = run("prune", "--older-than", "30d", "--dry-run")
    assert (done.returncode, old.exists()) == (0, True)
    assert done.stdout.endswith(" old\n")
    assert "would be deleted; nothing was deleted" in done.stderr


def test_list_says_what_went(store: Path) -> None:
    recorded(store, "old", age_days=40)
    recorded(store, "young")
    run("prune", "--keep", "1")
    assert "1 older recording (" in run("list").stderr


def test_a_capture_that_is_being_recorded_stays(store: Path) -> None:
    words = [sys.executable, "-m", "mcpspy", "run", "--label", "live", "--", "cat"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as tap:
        assert tap.stdin is not None
        assert tap.stdout is not None
        tap.stdin.write(b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n')
        tap.stdin.flush()
        tap.stdout.readline()
        output = json.loads(run("prune", "--keep", "0", "--json").stdout)
        tap.stdin.close()
        tap.wait(DEADLINE_S)
    assert (output["removed"], output["recordings"]) == ([], 1)
    assert len(list((store / "captures").iterdir())) == 1


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ((), "Give --older-than AGE, --keep N, --max-size SIZE or --quota SIZE"),
        (("--older-than", "3x"), "an age is a number with s, m, h, d or w"),
        (("--max-size", "much"), "a size is a number above 0"),
        (("--keep", "-1"), "-1 is not in the range"),
        (("--quota", "1kb"), "a quota is none, or at least 1mb; not 1kb"),
        (("--quota", "much"), "a size is a number above 0"),
    ],
)
def test_wrong_bounds_are_refused_with_what_is_right(store: Path, words: tuple[str, ...], sentence: str) -> None:
    done = run("prune", *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert sentence in done.stderr


def test_a_quota_is_set_shown_and_removed(store: Path) -> None:
    recorded(store, "young")
    done = run("prune", "--quota", "2gb")
    assert (done.returncode, quota_bytes()) == (0, 2 * 10**9)
    assert "1 capture, " in done.stderr
    assert " of at most 2.0 GB" in done.stderr
    assert "no quota" in run("prune", "--quota", "none").stderr
    assert quota_bytes() is None


def test_a_quota_that_cannot_be_stored_is_reported_and_recordings_are_deleted_anyway(store: Path) -> None:
    recorded(store, "old")
    (store / "quota").mkdir()
    done = run("prune", "--keep", "0", "--quota", "2gb")
    assert done.returncode == 2
    assert f"mcpspy: {store}/quota: the quota could not be kept: Is a directory" in done.stderr
    assert list((store / "captures").iterdir()) == []
    assert list(store.glob("quota.*")) == []


def test_a_capture_that_went_meanwhile_is_not_counted(store: Path) -> None:
    recorded(store, "old")
    kept = recordings(entries())
    assert (prune(kept, wall_ns=1).captures, prune(kept, wall_ns=1).captures) == (1, 0)


def test_a_dry_run_sets_no_quota(store: Path) -> None:
    run("prune", "--quota", "2gb", "--dry-run")
    assert quota_bytes() is None


def test_of_a_store_that_is_too_large_the_oldest_go_first() -> None:
    kept = [recording(days) for days in (1, 2, 3, 4)]
    assert recordings_beyond(kept, Bounds(max_bytes=250)) == [kept[3], kept[2]]


def test_a_live_recording_takes_room_and_stays() -> None:
    kept = [recording(1), recording(2, live=True), recording(3)]
    assert recordings_beyond(kept, Bounds(max_bytes=100)) == [kept[2]]
    assert recordings_beyond(kept, Bounds(recordings=0)) == [kept[2], kept[0]]


def test_of_several_bounds_each_counts() -> None:
    kept = [recording(1), recording(2), recording(30)]
    assert recordings_beyond(kept, Bounds(before_ns=NOW_NS - 7 * DAY_NS, recordings=1)) == [kept[2], kept[1]]
