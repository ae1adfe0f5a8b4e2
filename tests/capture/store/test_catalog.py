"""The captures of the store, and its recordings."""

import os
from pathlib import Path
from typing import Any, Final

import pytest

from mcpspy.capture.store import folder as stores
from mcpspy.capture.store.catalog import COUNTED_BYTES, Count, Recording, count, entries, entry, has_message, recordings
from tests.capture.making import WALL_NS, header, lines, opens, stored


def labels(grouped: list[Recording]) -> list[list[str]]:
    return [[capture.label for capture in recording.entries] for recording in grouped]


def test_a_store_that_was_never_made_is_empty() -> None:
    assert entries() == []


def test_entries_come_newest_first() -> None:
    for begin_s, label in enumerate("abc"):
        stored(label, begin_s=begin_s)
    assert [capture.label for capture in entries()] == ["c", "b", "a"]


def test_an_entry_has_the_cheap_facts_of_its_capture() -> None:
    path = stored("weather", lasted_s=2, messages=3)
    capture = entry(path)
    assert capture is not None
    assert (capture.label, capture.client, capture.begin_ns, capture.last_ns, capture.live) == (
        "weather",
        "client",
        WALL_NS,
        2_000_000_000,
        False,
    )
    assert capture.end is not None


def test_a_file_that_is_no_capture_has_no_header_and_says_why() -> None:
    path = Path(stored("weather"))
    path.write_text("hello\n")
    (capture,) = entries()
    assert (capture.header, capture.error) == (None, "this is not an mcpspy capture; captures are made by mcpspy run")


@pytest.mark.parametrize(("content", "error"), [(b"", "it holds nothing yet"), (b'{"mcpspy":1,"min', "its header is damaged")])
def test_a_capture_whose_header_is_not_all_there_says_so(content: bytes, error: str) -> None:
    path = Path(stored("weather"))
    path.write_bytes(content)
    assert [capture.error for capture in entries()] == [error]


def test_a_header_that_is_written_while_its_capture_is_looked_at_is_not_missed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, data, fstat = tmp_path / "new.mcpspy", lines([]), os.fstat
    path.touch()
    monkeypatch.setattr(os, "fstat", lambda fd: (path.write_bytes(data), fstat(fd))[1])
    capture = entry(str(path))
    assert capture is not None
    assert capture.header is not None or capture.size_bytes == 0


def test_other_files_and_unreadable_names_are_ignored() -> None:
    folder = Path(stored("weather")).parent
    (folder / "notes.txt").write_text("x")
    (folder / "folder.mcpspy").mkdir()
    os.mkfifo(folder / "fifo.mcpspy")
    (folder / "gone.mcpspy").symlink_to("nowhere")
    other = folder.parent / "other.mcpspy"
    other.write_bytes(next(folder.glob("*weather*")).read_bytes())
    (folder / "link.mcpspy").symlink_to(other)
    assert [capture.label for capture in entries()] == ["weather"]


def test_a_capture_without_an_end_record_has_none_and_is_not_live() -> None:
    stored("weather", ended=False, lasted_s=4)
    (capture,) = entries()
    assert (capture.end, capture.live, capture.last_ns) == (None, False, 4_000_000_000)


def test_a_torn_last_line_does_not_hide_when_the_last_record_was_made() -> None:
    path = Path(stored("weather", ended=False, lasted_s=4))
    with path.open("ab") as file:
        file.write(b'{"n":99,"at_ns":')
    assert entries()[0].last_ns == 4_000_000_000


def test_a_last_line_longer_than_the_first_window_is_found() -> None:
    path = Path(stored("weather", ended=False, lasted_s=4))
    with path.open("ab") as file:
        file.write(b"x" * 200_000)
    assert entries()[0].last_ns == 4_000_000_000


def test_a_capture_that_a_tap_writes_is_live() -> None:
    fd, path = stores.create(None, "x", wall_ns=WALL_NS)
    os.write(fd, lines(opens(), end_ns=None))
    (capture,) = entries()
    os.close(fd)
    assert (capture.path, capture.live) == (path, True)


def test_counts_leave_out_stderr_and_count_gaps() -> None:
    stored("weather", messages=3, gap=True)
    assert count(entries()[0]) == Count(messages=3, gaps=1)


def test_counts_of_a_capture_without_an_end_record_come_from_reading_it() -> None:
    stored("weather", messages=3, gap=True, ended=False)
    assert count(entries()[0]) == Count(messages=3, gaps=1)


def test_counting_a_very_large_capture_is_bounded_and_says_so() -> None:
    path = Path(stored("weather", messages=1, ended=False))
    os.truncate(path, COUNTED_BYTES + 1)
    assert count(entries()[0]) == Count(messages=1, gaps=0, whole=False)


@pytest.mark.parametrize("ended", [True, False])
def test_a_capture_with_nothing_but_stderr_has_no_message(ended: bool) -> None:  # noqa: FBT001  # data, not a switch
    stored("weather", messages=0, ended=ended)
    stored("time", messages=1, ended=ended)
    assert {capture.label: has_message(capture) for capture in entries()} == {"weather": False, "time": True}


def test_captures_of_one_parent_that_overlap_are_one_recording() -> None:
    stored("a", begin_s=0, lasted_s=10)
    stored("b", begin_s=1, lasted_s=2)
    stored("c", begin_s=9, lasted_s=10)
    assert labels(recordings(entries())) == [["a", "b", "c"]]


def test_captures_of_one_parent_with_a_pause_between_are_two_recordings() -> None:
    stored("a", begin_s=0, lasted_s=1)
    stored("b", begin_s=2, lasted_s=1)
    assert labels(recordings(entries())) == [["b"], ["a"]]


@pytest.mark.parametrize(
    "other",
    [
        {"parent": {"pid": 99, "name": "other", "start": 2}},
        {"parent": {"pid": 11, "name": "client", "start": 3}},
        {"boot_id": "another boot"},
    ],
)
def test_captures_of_other_parents_are_other_recordings(other: dict[str, Any]) -> None:
    stored("a", begin_s=0, lasted_s=9)
    stored("b", begin_s=1, lasted_s=9, **other)
    assert labels(recordings(entries())) == [["b"], ["a"]]


MODEL: Final[dict[str, Any]] = {
    "tapped": {"transport": "http", "leg": "model"}, "parent": {"pid": 99, "name": "bash", "start": 1},
}  # fmt: skip


def test_a_capture_of_a_model_api_is_in_every_recording_that_it_overlaps() -> None:
    stored("model", begin_s=0, lasted_s=20, **MODEL)
    stored("a", begin_s=1, lasted_s=1)
    stored("b", begin_s=10, lasted_s=1)
    stored("c", begin_s=30, lasted_s=1)
    grouped = recordings(entries())
    assert labels(grouped) == [["c"], ["model", "b"], ["model", "a"]]
    assert [recording.client for recording in grouped] == ["client"] * 3


def test_a_capture_of_a_model_api_that_overlaps_no_recording_of_its_boot_is_one_by_itself() -> None:
    stored("a", begin_s=0, lasted_s=9, boot_id="another boot")
    stored("b", begin_s=1, lasted_s=8)
    stored("model", begin_s=10, lasted_s=9, **MODEL)
    grouped = recordings(entries())
    assert labels(grouped) == [["model"], ["b"], ["a"]]
    assert grouped[0].client == "", "the process that started its tap is no client"


def test_each_capture_can_be_in_one_recording_only() -> None:
    stored("model", begin_s=0, lasted_s=20, **MODEL)
    stored("a", begin_s=1, lasted_s=1)
    assert labels(recordings(entries(), each_once=True)) == [["a"], ["model"]]


def test_captures_with_an_unknown_parent_are_alone() -> None:
    stored("a", begin_s=0, lasted_s=9, parent={})
    stored("b", begin_s=1, lasted_s=9, parent={})
    assert labels(recordings(entries())) == [["b"], ["a"]]


def test_a_clock_that_was_set_back_does_not_divide_a_recording() -> None:
    stored("a", begin_s=0, lasted_s=10)
    stored("b", begin_s=5, lasted_s=1, wall_ns=WALL_NS - 3_600 * 10**9)
    assert [sorted(group) for group in labels(recordings(entries()))] == [["a", "b"]]


def test_a_live_capture_overlaps_with_all_that_begins_after_it() -> None:
    fd, _ = stores.create(None, "a", wall_ns=WALL_NS)
    os.write(fd, lines(opens(), end_ns=None, of=header(label="a", monotonic_ns=7 * 10**9)))
    stored("b", begin_s=3_600)
    grouped = recordings(entries())
    os.close(fd)
    assert labels(grouped) == [["a", "b"]]


@pytest.mark.parametrize("parent", [{"pid": [1]}, {"pid": {"a": 1}}, {"pid": "7"}, {"pid": 11, "start": [2], "name": ["x"]}])
def test_a_capture_with_nonsense_for_its_parent_is_alone_and_does_no_harm(parent: dict[str, Any]) -> None:
    stored("a", begin_s=0, lasted_s=9)
    stored("b", begin_s=1, lasted_s=9, parent=parent)
    assert labels(recordings(entries())) == [["b"], ["a"]]
