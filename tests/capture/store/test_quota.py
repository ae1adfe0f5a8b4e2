"""The store's quota: what is removed when it is full, and what never is. On captures of the real writer, with real locks."""

import fcntl
import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from mcpspy.capture.file.reader import read
from mcpspy.capture.store.pruning import make_room, prune_totals
from mcpspy.capture.store.quota import MIN_QUOTA_BYTES, QuotaGuard, quota_bytes, set_quota, store_size
from mcpspy.cli.new_capture import with_quota_guard
from mcpspy.records import Frame, Note
from tests.capture.making import stored
from tests.cli.recording import Recording
from tests.deadlines import DEADLINE_S, eventually

ANY = ("--listen", "127.0.0.1:0", "--quiet")
SIZE = 300_000
QUOTA = 1_000_000


def large(name: str, *, day: int, client: int = 0, ended: bool = True) -> Path:
    """Make a capture of 300 kB, of a client of its own unless one is given."""
    parent = {"pid": client or day + 100, "name": "client", "start": 2}
    path = Path(stored(name, begin_s=day * 86_400, parent=parent, ended=ended))
    data = path.read_bytes()
    cut = data.index(b"\n") + 1
    path.write_bytes(data[:cut] + b"\n" * (SIZE - len(data)) + data[cut:])
    return path


def look() -> None:
    """Look at the store as a tap with a small capture does, a second after its start."""
    QuotaGuard(Recording("tap")._writer).look()


def names(*paths: Path) -> list[bool]:
    return [path.exists() for path in paths]


def test_without_a_quota_nothing_is_ever_removed() -> None:
    paths = [large(f"c{day}", day=day) for day in range(5)]
    look()
    assert (quota_bytes(), names(*paths)) == (None, [True] * 5)


@pytest.mark.parametrize("text", [b"", b"much\n", b"-1\n", b"999999\n", b"9" * 40, b"\xff\xfe"])
def test_a_quota_that_makes_no_sense_is_none(store: Path, text: bytes) -> None:
    store.mkdir()
    (store / "quota").write_bytes(text)
    assert quota_bytes() is None


def test_a_quota_is_set_and_lifted_again(store: Path) -> None:
    set_quota(MIN_QUOTA_BYTES)
    assert (quota_bytes(), (store / "quota").stat().st_mode & 0o777) == (MIN_QUOTA_BYTES, 0o600)
    set_quota(None)
    set_quota(None)
    assert quota_bytes() is None


def test_a_store_below_its_quota_is_left_alone() -> None:
    paths = [large(f"c{day}", day=day) for day in range(3)]
    set_quota(QUOTA)
    look()
    assert names(*paths) == [True] * 3


def test_the_oldest_recordings_are_removed_until_there_is_room() -> None:
    oldest, old, young, newest = (large(f"c{day}", day=day) for day in range(4))
    set_quota(QUOTA)
    look()
    assert names(oldest, old, young, newest) == [False, True, True, True]
    gone = prune_totals(by_quota=True)
    assert (gone.captures, gone.bytes, prune_totals().captures) == (1, SIZE, 0)


def test_the_ended_captures_of_a_live_recording_are_removed_last() -> None:
    live = Recording("live", client=7)
    ended = [Recording(f"ended{number}", client=7) for number in range(2)]
    for tap in ended:
        tap.end()
        with open(tap.path, "ab") as file:
            file.write(b"\n" * SIZE)
    younger = [large(f"c{day}", day=day) for day in range(2)]
    make_room(SIZE, wall_ns=1)
    assert names(*younger, Path(ended[0].path), Path(ended[1].path), Path(live.path)) == [False, False, False, False, True]


def test_a_client_that_records_for_weeks_makes_room_too() -> None:
    live = Recording("live", client=7)
    first, last = Recording("first", client=7), Recording("last", client=7)
    for tap in (first, last):
        tap.end()
        with open(tap.path, "ab") as file:
            file.write(b"\n" * SIZE)
    make_room(int(1.5 * SIZE), wall_ns=1)
    assert names(Path(first.path), Path(last.path), Path(live.path)) == [False, True, True]


def test_while_live_captures_fill_the_store_payloads_are_not_kept() -> None:
    set_quota(QUOTA)
    tap = Recording("tap").ask(1, name="x" * QUOTA)
    guard = QuotaGuard(tap._writer)
    guard.look()
    tap.ask(2, name="secret of no room")
    set_quota(10 * QUOTA)
    guard._due_ns = 0  # a minute later
    guard.look()
    tap.ask(3, name="room again").end()
    records = list(read(tap.path))
    notes = [record.text.split(":")[0] for record in records if isinstance(record, Note) and record.topic == "quota"]
    assert notes == ["the store is at its quota with what is being recorded", "there is room again"]
    assert [bool(record.data) for record in records if isinstance(record, Frame)] == [True, False, True]


def test_a_small_capture_keeps_its_payloads_though_others_fill_the_store() -> None:
    set_quota(QUOTA)
    Recording("large").ask(1, name="x" * QUOTA)
    small = Recording("small")
    QuotaGuard(small._writer).look()
    small.ask(1).end()
    assert all(record.data for record in read(small.path) if isinstance(record, Frame))


def test_a_tap_looks_again_when_its_own_capture_has_grown_and_not_before() -> None:
    set_quota(QUOTA)
    tap = Recording("tap")
    guard = QuotaGuard(tap._writer)
    guard.look()
    old = [large(f"c{day}", day=day) for day in range(4)]
    guard.look()
    assert names(*old) == [True] * 4
    tap.ask(1, name="x" * (QUOTA // 16))
    guard.look()
    assert names(*old)[0] is False


def test_one_tap_at_a_time_removes_captures(store: Path) -> None:
    paths = [large(f"c{day}", day=day) for day in range(4)]
    set_quota(QUOTA)
    with open(store / "pruning.lock", "w") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        look()
        assert names(*paths) == [True] * 4
    look()
    assert names(*paths) == [False, True, True, True]


def test_twenty_taps_that_look_at_once_remove_no_more_than_one_would_and_count_it_once() -> None:
    paths = [large(f"c{day}", day=day) for day in range(8)]
    set_quota(QUOTA)
    guards = [QuotaGuard(Recording(f"tap{number}")._writer) for number in range(20)]
    with ThreadPoolExecutor(20) as pool:
        list(pool.map(lambda guard: guard.look(), guards))
    assert names(*paths) == [False] * 5 + [True] * 3
    assert (prune_totals(by_quota=True).captures, prune_totals(by_quota=True).bytes) == (5, 5 * SIZE)


def test_if_files_cannot_be_locked_only_captures_with_an_end_are_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    whole, torn = large("whole", day=0), large("torn", day=1, ended=False)

    def no_locks(fd: int, operation: int) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(fcntl, "flock", no_locks)
    make_room(0, wall_ns=1)
    assert names(whole, torn) == [False, True]


def test_a_store_that_cannot_be_pruned_does_not_stop_the_tap(store: Path) -> None:
    paths = [large(f"c{day}", day=day) for day in range(4)]
    set_quota(QUOTA)
    (store / "pruning.lock").mkdir()
    look()
    assert names(*paths) == [True] * 4


@pytest.mark.parametrize(
    "verb", [["run", "--label", "live", "--", "cat"], ["proxy", "http://127.0.0.1:9", "--label", "live", *ANY]]
)
def test_a_running_tap_makes_room_by_itself_and_stays(store: Path, verb: list[str]) -> None:
    paths = [large(f"c{day}", day=day) for day in range(4)]
    set_quota(QUOTA)
    words = [sys.executable, "-m", "mcpspy", *verb]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as tap:
        assert tap.stdin is not None
        eventually(lambda: not paths[0].exists() and prune_totals(by_quota=True).captures, "the tap to make room")
        tap.stdin.close()
        if verb[0] == "proxy":
            tap.terminate()
        tap.wait(DEADLINE_S)
    (own,) = [name for name in os.listdir(store / "captures") if "-live-" in name]
    assert names(*paths) == [False, True, True, True]
    assert store_size()[0] == 4
    assert [record for record in read(store / "captures" / own) if isinstance(record, Note) and record.topic == "quota"] == []


def test_a_tap_whose_capture_is_elsewhere_does_not_make_room(store: Path) -> None:
    def later(sync: Callable[[], None]) -> None:
        sync()

    own = Recording("tap")
    assert with_quota_guard(later, own._writer, str(store / "captures-of-mine" / "x.mcpspy")) is later
    assert with_quota_guard(later, own._writer, own.path) is not later
