"""The store's folder: where captures are, their names, their modes, and which are being written."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from mcpspy.capture.store import folder as stores
from tests.deadlines import DEADLINE_S

WALL_NS = 1_795_214_221_000_000_000  # 2026-11-20T22:37:01Z


def mode(path: str | Path) -> int:
    return stat.S_IMODE(os.stat(path).st_mode)


def made(path: str | None, label: str = "weather") -> str:
    fd, name = stores.create(path, label, wall_ns=WALL_NS)
    os.close(fd)
    return name


def test_a_capture_without_a_file_goes_into_the_store_named_by_time_label_and_pid(store: Path) -> None:
    assert made(None) == str(store / "captures" / f"20261120T223701Z-weather-{os.getpid()}.mcpspy")


def test_captures_of_the_same_instant_and_pid_do_not_collide() -> None:
    assert len({made(None) for _ in range(5)}) == 5


def test_the_file_and_its_folders_are_private() -> None:
    before = os.umask(0)
    try:
        path = Path(made(None))
    finally:
        os.umask(before)
    assert [mode(path), mode(path.parent), mode(path.parent.parent)] == [0o600, 0o700, 0o700]


@pytest.mark.parametrize(
    ("label", "part"),
    [
        ("a/b", "a-b"),
        ("../../etc/passwd", "etc-passwd"),
        ("", "server"),
        ("..", "server"),
        ("\x00\n\x1b", "server"),
        ("天気", "天気"),
        ("\udc80x", "x"),
        ("x" * 300, "x" * 48),
        (".hidden", "hidden"),
    ],
)
def test_a_label_cannot_lead_out_of_the_store(label: str, part: str, store: Path) -> None:
    assert made(None, label) == str(store / "captures" / f"20261120T223701Z-{part}-{os.getpid()}.mcpspy")


def test_a_file_that_exists_is_left_alone_and_the_next_number_is_taken(tmp_path: Path) -> None:
    path = tmp_path / "x.mcpspy"
    path.write_text("mine")
    assert made(str(path)) == str(tmp_path / "x-2.mcpspy")
    assert made(str(path)) == str(tmp_path / "x-3.mcpspy")
    assert path.read_text() == "mine"


def test_a_dangling_link_is_not_written_through(tmp_path: Path) -> None:
    link = tmp_path / "x.mcpspy"
    link.symlink_to(tmp_path / "elsewhere")
    assert made(str(link)) == str(tmp_path / "x-2.mcpspy")


def test_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError):
        made(str(tmp_path))


def test_a_missing_folder_is_an_error_and_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        made(str(tmp_path / "no" / "x.mcpspy"))


@pytest.mark.parametrize("device", ["/dev/null", "/dev/full"])
def test_a_device_is_opened_as_it_is(device: str) -> None:
    assert [made(device), made(device)] == [device, device]


def test_a_fifo_that_nobody_reads_does_not_hold_up_the_tap(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    with pytest.raises(OSError, match="No such device"):
        made(str(fifo))


def test_a_second_writer_on_a_fifo_is_refused(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    first, _ = stores.create(str(fifo), "x", wall_ns=WALL_NS)
    try:
        with pytest.raises(BlockingIOError, match="another mcpspy"):
            stores.create(str(fifo), "x", wall_ns=WALL_NS)
    finally:
        os.close(first)
        os.close(reader)


def test_a_capture_is_live_while_its_writer_has_it_open() -> None:
    fd, path = stores.create(None, "x", wall_ns=WALL_NS)
    during = stores.is_live(path)
    os.close(fd)
    assert (during, stores.is_live(path)) == (True, False)


def test_a_second_writer_on_one_file_cannot_lock_it() -> None:
    first, path = stores.create(None, "x", wall_ns=WALL_NS)
    second = os.open(path, os.O_WRONLY | os.O_APPEND)
    try:
        with pytest.raises(BlockingIOError):
            stores.lock(second)
    finally:
        os.close(first)
        os.close(second)


def test_a_capture_whose_writer_was_killed_is_not_live() -> None:
    code = (
        "import sys; from mcpspy.capture.store import folder; print(folder.create(None, '', wall_ns=1)[1], flush=True); input()"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        path = process.stdout.readline().strip()
        during = stores.is_live(path)
        process.kill()
        process.wait(DEADLINE_S)
    assert (during, stores.is_live(path)) == (True, False)


def test_a_capture_that_does_not_exist_is_not_live(tmp_path: Path) -> None:
    assert not stores.is_live(str(tmp_path / "none"))


def test_the_store_is_found_from_the_home_directory_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MCPSPY_HOME")
    monkeypatch.setenv("XDG_DATA_HOME", "/elsewhere")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert stores.captures_folder() == str(tmp_path / ".mcpspy" / "captures")


@pytest.mark.parametrize("home", [None, "", "relative"])
def test_without_a_usable_home_variable_the_account_says_where_home_is(
    home: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pwd import getpwuid

    monkeypatch.delenv("MCPSPY_HOME")
    monkeypatch.delenv("HOME")
    if home is not None:
        monkeypatch.setenv("HOME", home)
    assert stores.home_folder() == f"{getpwuid(os.getuid()).pw_dir.rstrip('/')}/.mcpspy"


def test_an_empty_mcpspy_home_counts_as_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MCPSPY_HOME", "")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert stores.home_folder() == str(tmp_path / ".mcpspy")


def test_the_key_is_made_once_and_private(store: Path) -> None:
    first = stores.key()
    assert (first, len(first), mode(store / "key")) == (stores.key(), stores.KEY_BYTES, 0o600)


def test_a_torn_key_is_replaced(store: Path) -> None:
    store.mkdir()
    (store / "key").write_bytes(b"short")
    assert stores.key() == stores.key() == (store / "key").read_bytes()


def test_a_store_that_cannot_keep_a_key_still_yields_one(store: Path) -> None:
    store.write_text("a file where the folder should be")
    assert len(stores.key()) == stores.KEY_BYTES


def test_a_key_that_others_could_read_is_made_private(store: Path) -> None:
    first = stores.key()
    (store / "key").chmod(0o644)
    assert (stores.key(), mode(store / "key")) == (first, 0o600)


@pytest.mark.parametrize("content", [b"k" * stores.KEY_BYTES, b"short"])
def test_a_link_is_no_key(store: Path, tmp_path: Path, content: bytes) -> None:
    planted = tmp_path / "planted"
    planted.write_bytes(content)
    store.mkdir()
    (store / "key").symlink_to(planted)
    assert stores.key() != content
    assert planted.read_bytes() == content


def test_a_fifo_is_no_key_and_holds_nothing_up(store: Path) -> None:
    store.mkdir()
    os.mkfifo(store / "key")
    assert len(stores.key()) == stores.KEY_BYTES


def test_a_key_of_another_user_is_not_used(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = stores.key()
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    assert stores.key() != first
    assert (store / "key").read_bytes() == first


def complaints(path: str | None = None) -> list[str]:
    """Make a capture, and return the lines about its folders."""
    lines: list[str] = []
    fd, _ = stores.create(path, "x", wall_ns=WALL_NS, complain=lines.append)
    os.close(fd)
    return lines


@pytest.mark.parametrize("rights", [0o777, 0o755, 0o710, 0o701])
def test_folders_that_mcpspy_made_are_made_private_again(rights: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MCPSPY_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    folders = [tmp_path / ".mcpspy", tmp_path / ".mcpspy" / "captures"]
    for folder in folders:
        folder.mkdir()
        folder.chmod(rights)
    assert complaints() == []
    assert [mode(folder) for folder in folders] == [0o700, 0o700]


def test_a_folder_that_the_user_named_is_left_as_it_is_and_reported(store: Path) -> None:
    (store / "captures").mkdir(parents=True)
    store.chmod(0o755)
    (store / "captures").chmod(0o777)
    (line,) = complaints()
    assert line.endswith(f"chmod 700 {store}")
    assert (mode(store), mode(store / "captures")) == (0o755, 0o700)
    store.chmod(0o700)
    assert complaints() == []


def test_a_folder_behind_a_link_is_left_as_it_is_and_reported(store: Path, tmp_path: Path) -> None:
    store.mkdir(0o700)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    elsewhere.chmod(0o750)
    (store / "captures").symlink_to(elsewhere)
    (line,) = complaints()
    assert line.endswith(f"chmod 700 {store / 'captures'}")
    assert mode(elsewhere) == 0o750


def test_a_folder_of_another_user_is_reported(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store.mkdir(0o700)
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    (line,) = complaints()
    assert f"{store} belongs to another user" in line


def test_a_private_store_and_a_named_file_are_no_reason_to_complain(store: Path, tmp_path: Path) -> None:
    assert complaints() == []
    store.chmod(0o777)
    assert complaints(str(tmp_path / "x.mcpspy")) == []


def test_processes_that_start_together_agree_on_the_key() -> None:
    code = "import sys; sys.stdin.read(1); from mcpspy.capture.store import folder; sys.stdout.buffer.write(folder.key())"
    racers = [subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) for _ in range(6)]
    for racer in racers:
        assert racer.stdin is not None
        racer.stdin.write(b"x")
        racer.stdin.flush()
    assert len({racer.communicate(timeout=DEADLINE_S)[0] for racer in racers}) == 1


def test_the_way_to_the_store_needs_no_heavy_import() -> None:
    code = (
        "import sys; before = set(sys.modules); import mcpspy.capture.store.folder; print(*sorted(set(sys.modules) - before))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=DEADLINE_S)
    assert {name.partition(".")[0] for name in done.stdout.split()} <= {"mcpspy", "__future__", "errno", "time"}
