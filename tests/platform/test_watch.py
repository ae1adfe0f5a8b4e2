"""Waiting for files and folders, with inotify and by looking."""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mcpspy.platform.watch import LOOK_S, Watch
from tests.deadlines import DEADLINE_S

Maker = Callable[..., Watch]


@pytest.fixture(params=[True, False], ids=["inotify", "polling"])
def make_watch(request: pytest.FixtureRequest) -> Iterator[Maker]:
    """Return a function that makes a Watch of this kind, which is closed in the end."""
    made: list[Watch] = []

    def make(**options: int) -> Watch:
        watch = Watch(inotify=request.param, reader_fd=options.get("reader_fd"), input_fd=options.get("input_fd"))
        made.append(watch)
        return watch

    yield make
    for watch in made:
        watch.close()


@pytest.fixture
def watch(make_watch: Maker) -> Watch:
    return make_watch()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "folder" / "file"
    path.parent.mkdir()
    path.write_bytes(b"a")
    return path


def append(path: Path) -> None:
    with path.open("ab") as opened:
        opened.write(b"b")


def in_a_moment(act: Callable[[], object]) -> threading.Timer:
    """Do it in another thread, while this one waits."""
    timer = threading.Timer(0.05, act)
    timer.start()
    return timer


def removed(folder: Path) -> None:
    (folder / "file").unlink()
    folder.rmdir()


def renamed(folder: Path) -> None:
    folder.rename(folder.with_name("old"))


@pytest.mark.parametrize("go", [removed, renamed])
def test_a_folder_that_went_is_watched_again_when_it_is_added_anew(
    watch: Watch, file: Path, go: Callable[[Path], None]
) -> None:
    watch.add(str(file.parent))
    go(file.parent)
    assert watch.wait(DEADLINE_S)
    file.parent.mkdir()
    os.utime(file.parent, (1, 1))  # so that what is made in it changes its time
    watch.add(str(file.parent))
    while watch.wait(0):
        pass
    file.write_bytes(b"b")
    assert watch.wait(DEADLINE_S)


def test_a_file_that_grows_ends_the_wait(watch: Watch, file: Path) -> None:
    watch.add(str(file))
    timer = in_a_moment(lambda: append(file))
    assert watch.wait(DEADLINE_S)
    timer.join()


def test_a_file_that_grew_before_the_wait_ends_it_at_once(watch: Watch, file: Path) -> None:
    watch.add(str(file))
    append(file)
    assert watch.wait(DEADLINE_S)


def test_a_new_file_in_a_folder_ends_the_wait(watch: Watch, file: Path) -> None:
    watch.add(str(file.parent))
    timer = in_a_moment(lambda: (file.parent / "new").write_bytes(b""))
    assert watch.wait(DEADLINE_S)
    timer.join()


def test_nothing_happens_for_as_long_as_was_asked(watch: Watch, file: Path) -> None:
    watch.add(str(file))
    begin = time.monotonic()
    assert not watch.wait(2 * LOOK_S)
    assert time.monotonic() - begin >= 1.9 * LOOK_S


def test_the_same_growth_does_not_end_two_waits(watch: Watch, file: Path) -> None:
    watch.add(str(file))
    append(file)
    assert watch.wait(DEADLINE_S)
    assert not watch.wait(LOOK_S)


def test_what_is_watched_already_can_be_added_again(watch: Watch, file: Path) -> None:
    watch.add(str(file))
    append(file)
    watch.add(str(file))
    assert watch.wait(DEADLINE_S)


def test_what_was_removed_does_not_end_the_wait(watch: Watch, file: Path) -> None:
    watch.add(str(file))
    watch.remove(str(file))
    append(file)
    assert not watch.wait(LOOK_S)


def test_what_does_not_exist_can_be_added_and_removed(watch: Watch, file: Path) -> None:
    watch.add(str(file.parent / "gone"))
    watch.remove(str(file.parent / "gone"))
    watch.remove("never added")
    assert not watch.wait(LOOK_S)


def test_a_pipe_that_has_something_ends_the_wait(make_watch: Maker) -> None:
    reading, writing = os.pipe()
    watch = make_watch(input_fd=reading)
    os.write(writing, b"x")
    assert watch.wait(DEADLINE_S)
    watch.remove_input()
    assert not watch.wait(LOOK_S)
    os.close(reading)
    os.close(writing)


def test_a_reader_that_goes_away_is_noticed(make_watch: Maker) -> None:
    reading, writing = os.pipe()
    watch = make_watch(reader_fd=writing)
    timer = in_a_moment(lambda: os.close(reading))
    with pytest.raises(BrokenPipeError):
        watch.wait(DEADLINE_S)
    timer.join()
    os.close(writing)


def test_waiting_costs_no_time_on_the_processor(file: Path) -> None:
    watch = Watch()
    if watch.polling:
        pytest.skip("this system has no inotify")
    watch.add(str(file))
    begin_ns = time.thread_time_ns()
    watch.wait(1.0)
    assert time.thread_time_ns() - begin_ns < 2_000_000
    watch.close()


@pytest.mark.skipif(os.name != "posix", reason="Windows has no signals that a process sends to itself")
def test_a_signal_that_came_just_before_a_wait_ends_it_once(make_watch: Maker) -> None:
    watch = make_watch()
    before = signal.signal(signal.SIGUSR1, lambda *_: None)
    try:
        watch.wake_by_signals()
        os.kill(os.getpid(), signal.SIGUSR1)
        began_s = time.monotonic()
        watch.wait(DEADLINE_S if watch.polling is False else LOOK_S)
        assert time.monotonic() - began_s < DEADLINE_S / 2
        began_s = time.monotonic()
        assert not watch.wait(LOOK_S)
        assert time.monotonic() - began_s >= LOOK_S / 2
    finally:
        signal.signal(signal.SIGUSR1, before)
