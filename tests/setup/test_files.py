"""A configuration file is replaced whole or not at all, and never over what somebody else wrote."""

import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from mcpspy.errors import SetupError
from mcpspy.setup.files import Snapshot, keep, read, replace
from tests.deadlines import DEADLINE_S


def snapshot(file: Path) -> Snapshot:
    found = read(file)
    assert found is not None
    return found


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
    with pytest.raises(SetupError, match="somebody else wrote"):
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


STEPS = ["os.open", "os.fsync", "os.chmod", "os.replace"]
KILLED = """
import os, signal, sys
from pathlib import Path
from mcpspy.setup.files import keep, read, replace
file, name, nth, when = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4]
function = name.removeprefix("os.")
whole, calls = getattr(os, function), 0
def dying(*arguments, **named):
    global calls
    calls += 1
    if calls == nth and when == "before":
        os.kill(os.getpid(), signal.SIGKILL)
    result = whole(*arguments, **named)
    if calls == nth:
        os.kill(os.getpid(), signal.SIGKILL)
    return result
setattr(os, function, dying)
snapshot = read(file)
keep(snapshot, file.parent / "kept")
replace(snapshot, "new")
"""


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("nth", [1, 2])
@pytest.mark.parametrize("step", STEPS)
def test_killed_at_any_step_no_file_is_lost(file: Path, step: str, nth: int, when: str) -> None:
    argv = [sys.executable, "-c", KILLED, str(file), step, str(nth), when]
    done = subprocess.run(argv, timeout=DEADLINE_S, check=False)
    assert done.returncode == -signal.SIGKILL
    assert file.read_bytes() in (b"{}\r\n", b"new")
