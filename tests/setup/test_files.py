"""A configuration file is replaced whole or not at all, and never over what somebody else wrote."""

import json
import os
import stat
import subprocess
import sys
from fcntl import LOCK_EX, LOCK_NB, flock
from pathlib import Path

import pytest

from mcpspy.errors import SetupError
from mcpspy.setup.commit import setup_lock
from mcpspy.setup.files import Snapshot, keep, read, replace
from tests.deadlines import DEADLINE_S, SCENE_S


def snapshot(file: Path) -> Snapshot:
    state = read(file)
    assert state is not None
    return state


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A configuration file."""
    path = tmp_path / "mcp.json"
    path.write_bytes(b"{}\r\n")
    return path


def test_no_file_is_no_error(tmp_path: Path) -> None:
    assert read(tmp_path / "none" / "mcp.json") is None


def test_the_mode_stays(file: Path) -> None:
    file.chmod(0o640)
    replace(snapshot(file), "new")
    assert stat.S_IMODE(file.stat().st_mode) == 0o640


def test_a_link_stays_a_link_and_its_target_is_changed(file: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.json"
    link.symlink_to(file)
    replace(snapshot(link), "new\r\n")
    assert (link.is_symlink(), file.read_bytes()) == (True, b"new\r\n")


def test_nothing_is_left_beside_the_file(file: Path) -> None:
    replace(snapshot(file), "new")
    assert os.listdir(file.parent) == ["mcp.json"]


def test_a_file_that_changed_meanwhile_is_left_alone(file: Path) -> None:
    before = snapshot(file)
    file.write_bytes(b"theirs")
    with pytest.raises(SetupError, match="another program wrote"):
        replace(before, "ours")
    assert (file.read_bytes(), os.listdir(file.parent)) == (b"theirs", ["mcp.json"])


def test_a_file_with_a_second_name_is_left_alone(file: Path, tmp_path: Path) -> None:
    os.link(file, tmp_path / "other")
    with pytest.raises(SetupError, match="hard link"):
        replace(snapshot(file), "new")


def test_what_is_not_utf_8_is_refused(file: Path) -> None:
    file.write_bytes("{}".encode("utf-16"))
    with pytest.raises(SetupError, match="not UTF-8"):
        _ = snapshot(file).text


def test_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SetupError):
        read(tmp_path)


def test_the_copy_is_private_and_the_same_content_is_kept_once(file: Path, tmp_path: Path) -> None:
    folder = tmp_path / "backups"
    first = keep(snapshot(file), folder)
    assert keep(snapshot(file), folder) == first
    assert (first.read_bytes(), stat.S_IMODE(first.stat().st_mode)) == (b"{}\r\n", 0o600)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_copies_of_two_files_of_one_name_do_not_meet(file: Path, tmp_path: Path) -> None:
    other = tmp_path / "b" / "mcp.json"
    other.parent.mkdir()
    other.write_bytes(file.read_bytes())
    assert keep(snapshot(file), tmp_path / "k") != keep(snapshot(other), tmp_path / "k")


@pytest.mark.parametrize("aim", ["wrap", "unwrap"])
def test_killed_before_any_system_call_nothing_is_lost_and_a_second_try_does_it(aim: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.setup.killed", str(tmp_path / "made"), aim],
        capture_output=True,
        timeout=SCENE_S,
        check=True,
    )
    calls = [json.loads(line) for line in done.stdout.splitlines()]
    assert [row for row in calls if row[1]] == []
    assert {"open", "write", "fsync", "replace", "flock"} <= {call for call, _ in calls}


def test_what_one_that_was_killed_left_there_goes_and_what_another_does_now_stays(file: Path) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait(DEADLINE_S)
    left, now = (file.with_name(f".mcp.json.mcpspy-{pid}-00") for pid in (gone.pid, os.getpid()))
    left.touch()
    now.touch()
    replace(snapshot(file), "new")
    assert (left.exists(), now.exists()) == (False, True)


def test_a_read_only_file_is_left_alone_by_root_too(file: Path) -> None:
    file.chmod(0o444)
    with pytest.raises(SetupError, match="read-only"):
        replace(snapshot(file), "new")


def test_a_folder_that_takes_no_file_is_named(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != file.parent)
    with pytest.raises(SetupError, match=f"written into {file.parent} first; make that folder writable"):
        replace(snapshot(file), "new")


def test_a_loop_of_links_is_reported(tmp_path: Path) -> None:
    first, other = tmp_path / "a", tmp_path / "b"
    first.symlink_to(other)
    other.symlink_to(first)
    with pytest.raises(SetupError, match="cannot be read"):
        read(first)


def test_only_one_at_a_time_has_the_lock(tmp_path: Path) -> None:
    with setup_lock(tmp_path), (tmp_path / "setup.lock").open() as other, pytest.raises(BlockingIOError):
        flock(other, LOCK_EX | LOCK_NB)
    with (tmp_path / "setup.lock").open() as other:
        flock(other, LOCK_EX | LOCK_NB)


def test_a_folder_of_ours_that_cannot_be_made_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(SetupError, match="no backup can be kept there"), setup_lock(tmp_path / "file"):
        pass
