"""A transcript from an index shows what the reader of the whole capture shows, whatever happens to either of them."""

import gc
import json
import os
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.capture.file.reader import read
from mcpspy.capture.store.folder import INDEX_EXTENSION
from mcpspy.index import code
from mcpspy.index.build import write_index
from mcpspy.index.file import IndexWriter, identity
from mcpspy.index.load import indexed_transcript
from mcpspy.records import Frame, Record
from mcpspy.transcript.transcribe import transcribe
from tests.conftest import ROOT
from tests.index.showing import VERSION, assert_shows_the_same, from_index, index, make_blocks_small, shown, whole
from tests.transcript.dialogue import Dialogue
from tests.transcript.test_properties import CAPTURES, numbered
from tests.transcript.test_usual import DIALOGUES, capture
from tests.views.scenes import busy_scene, hostile_scene

RECORDED = sorted((ROOT / "captures").glob("*.mcpspy"))


@pytest.fixture(scope="module", autouse=True)
def small_blocks() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        make_blocks_small(patch)
        yield


@pytest.mark.grid(6)
@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_recorded_sessions_are_shown_the_same(path: Path, tmp_path: Path) -> None:
    copy = tmp_path / path.name
    copy.write_bytes(path.read_bytes())
    assert index(copy)
    assert_shows_the_same(copy)


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="counts the open files of this process")
def test_a_transcript_that_nobody_has_any_more_leaves_no_file_open(tmp_path: Path) -> None:
    copy = tmp_path / "streamable.mcpspy"
    copy.write_bytes((ROOT / "captures" / copy.name).read_bytes())
    assert index(copy)

    def open_files() -> int:
        return [os.path.realpath(f"/proc/self/fd/{name}") for name in os.listdir("/proc/self/fd")].count(str(copy))

    transcript = from_index(copy)
    assert transcript is not None
    assert all(carrier.request is not None for carrier in transcript.captures[0].transactions.values())
    assert len([*transcript.rows]) > 1
    assert open_files() == 1
    del transcript
    gc.collect()
    assert open_files() == 0


@pytest.mark.parametrize("text", ["weather", "\x1b[2J\u202e\x07\r\n", "</script>"])
def test_scenes_are_shown_the_same(text: str, tmp_path: Path) -> None:
    path = tmp_path / "scene.mcpspy"
    path.write_bytes(capture(hostile_scene(text).records))
    assert index(path)
    assert_shows_the_same(path)


def has_half_a_letter(path: Path) -> bool:
    """Return whether a capture may have a name that no MessagePack has."""
    return b"\\ud" in path.read_bytes()


@given(DIALOGUES)
def test_dialogues_are_shown_the_same(lines: list[tuple[int, bytes, bool]]) -> None:
    frames: list[Record] = [Frame(stream, 0, 0, data, part) for stream, data, part in lines]
    with TemporaryDirectory() as folder:
        path = Path(folder) / "x.mcpspy"
        path.write_bytes(capture(numbered([*Dialogue().records, *frames])))
        if index(path) or not has_half_a_letter(path):
            assert_shows_the_same(path)


@given(CAPTURES, st.integers(0, 40))
def test_whatever_can_be_indexed_is_shown_the_same(records: list[Record], cut: int) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "x.mcpspy"
        data = capture(records)
        path.write_bytes(data[: len(data) - cut])
        if index(path):
            assert_shows_the_same(path)


@given(DIALOGUES, st.lists(st.tuples(st.integers(0), st.integers(0, 255)), min_size=1, max_size=3), st.integers(0, 200))
def test_a_damaged_index_changes_nothing(lines: list[tuple[int, bytes, bool]], flips: list[tuple[int, int]], cut: int) -> None:
    frames: list[Record] = [Frame(stream, 0, 0, data, part) for stream, data, part in lines]
    with TemporaryDirectory() as folder:
        path = Path(folder) / "x.mcpspy"
        path.write_bytes(capture(numbered([*Dialogue().records, *frames])))
        if not index(path):
            assert has_half_a_letter(path)
            return
        beside = Path(f"{path}{INDEX_EXTENSION}")
        data = bytearray(beside.read_bytes())
        for place, byte in flips:
            data[place % len(data)] = byte
        beside.write_bytes(data[: len(data) - cut % 3 * cut])
        transcript = from_index(path)
        if transcript is not None:
            assert list(shown(transcript)) == list(shown(whole(path)))


def a_capture(folder: Path, name: str = "x", lines: int = 9) -> Path:
    path = folder / f"{name}.mcpspy"
    scene = busy_scene()
    for number in range(lines):
        scene.client({"jsonrpc": "2.0", "id": 100 + number, "method": "ping"})
    path.write_bytes(capture(numbered(scene.records)))
    return path


def test_a_capture_that_grew_or_changed_has_no_index_until_it_is_written_again(tmp_path: Path) -> None:
    path = a_capture(tmp_path)
    assert index(path)
    data = path.read_bytes()
    for changed in (data + b"{", data[:-9], data.replace(b"ping", b"pong", 1)):
        path.write_bytes(changed)
        assert from_index(path) is None
        assert index(path)
        assert_shows_the_same(path)


def test_the_index_of_another_capture_is_ignored(tmp_path: Path) -> None:
    path, other = a_capture(tmp_path), a_capture(tmp_path, "other", 10)
    assert index(path)
    assert index(other)
    os.replace(f"{other}{INDEX_EXTENSION}", f"{path}{INDEX_EXTENSION}")
    assert from_index(path) is None


def test_an_index_of_another_version_is_ignored(tmp_path: Path) -> None:
    path = a_capture(tmp_path)
    assert index(path)
    assert indexed_transcript(str(path), "2", lambda: whole(path)) is None


def test_the_word_for_the_code_changes_with_each_rule(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for room in code._ROOMS:
        (tmp_path / room).mkdir(parents=True, exist_ok=True)
    rule = tmp_path / "transcript" / "findings" / "rule.py"
    rule.parent.mkdir()
    rule.write_text("MOST = 1")
    monkeypatch.setattr(code, "_PACKAGE", str(tmp_path))
    before = code.code_word()
    assert code.code_word() == before
    status = rule.stat()
    other = tmp_path / "other.py"
    other.write_text("MOST = 2")
    os.utime(other, ns=(status.st_atime_ns, status.st_mtime_ns))
    other.replace(rule)
    assert code.code_word() != before


def test_an_index_that_others_can_read_or_that_is_a_link_is_ignored(tmp_path: Path) -> None:
    path = a_capture(tmp_path)
    assert index(path)
    beside = Path(f"{path}{INDEX_EXTENSION}")
    assert beside.stat().st_mode & 0o777 == 0o600
    beside.chmod(0o644)
    assert from_index(path) is None
    beside.chmod(0o600)
    moved = beside.rename(tmp_path / "elsewhere")
    beside.symlink_to(moved)
    assert from_index(path) is None


def test_a_capture_that_changes_while_it_is_indexed_gets_no_index(tmp_path: Path) -> None:
    path = a_capture(tmp_path)
    before, transcript = identity(str(path)), transcribe(read(path))
    with path.open("ab") as file:
        file.write(b"{")
    assert before is not None
    assert not write_index(str(path), transcript, before, VERSION, (0, 0, 0, 0, 0))
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def test_readers_that_write_an_index_at_once_leave_a_whole_one(tmp_path: Path) -> None:
    path = a_capture(tmp_path, lines=40)
    children = [fork_and_index(path) for _ in range(4)]
    assert [os.waitpid(child, 0)[1] for child in children] == [0] * 4
    assert_shows_the_same(path)
    assert sorted(file.name for file in tmp_path.iterdir()) == [path.name, path.name + INDEX_EXTENSION]


def fork_and_index(path: Path) -> int:
    """Write an index in another process, and read it at once."""
    child = os.fork()
    if child == 0:
        try:
            os._exit(0 if index(path) and from_index(path) is not None else 1)
        finally:
            os._exit(2)
    return child


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no such pipes on Windows")
def test_a_pipe_with_the_name_of_an_index_is_not_waited_for(tmp_path: Path) -> None:
    path = a_capture(tmp_path)
    os.mkfifo(f"{path}{INDEX_EXTENSION}", 0o600)
    assert from_index(path) is None
    assert index(path)
    assert_shows_the_same(path)


@pytest.mark.parametrize("size", [0, 1000])
def test_a_full_disk_leaves_no_part_of_an_index(size: int, tmp_path: Path) -> None:
    resource = pytest.importorskip("resource", reason="there is no such limit on Windows")
    path = a_capture(tmp_path)
    child = os.fork()
    if child == 0:
        try:
            resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
            os._exit(1 if index(path) else 0)
        finally:
            os._exit(2)
    assert os.waitpid(child, 0)[1] == 0
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def test_a_user_who_interrupts_the_writing_of_an_index_has_no_part_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    path = a_capture(tmp_path)
    monkeypatch.setattr(IndexWriter, "finish", interrupt)
    with pytest.raises(KeyboardInterrupt):
        index(path)
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def test_an_index_that_is_removed_while_it_is_written_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, finish = a_capture(tmp_path), IndexWriter.finish

    def make_room_and_finish(writer: IndexWriter, *facts: Any) -> None:
        for file in tmp_path.glob("*.idx*"):
            file.unlink()
        finish(writer, *facts)

    monkeypatch.setattr(IndexWriter, "finish", make_room_and_finish)
    assert not index(path)
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def test_what_killed_writers_have_left_is_removed_by_the_next(tmp_path: Path) -> None:
    path = a_capture(tmp_path)
    beside = f"{path}{INDEX_EXTENSION}"
    for ending in (".1", ".2", ".x", f".{os.getpid()}", ".check.1"):
        Path(beside + ending).touch()
    for ending in (".1", ".x", ".check.1"):
        os.utime(beside + ending, (0, 0))
    assert index(path)
    others = {name for name in os.listdir(tmp_path) if name.startswith(f"{path.name}{INDEX_EXTENSION}.")}
    assert others == {f"{path.name}{INDEX_EXTENSION}{ending}" for ending in (".2", ".x", ".check.1")}


def test_a_message_in_parts_is_read_from_all_of_them(tmp_path: Path) -> None:
    text = "x" * (3 << 19)
    line = json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"text": text}}).encode() + b"\n"
    scene = Dialogue().client({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
    scene.parts(1, line[: 1 << 19], line[1 << 19 : 2 << 19], line[2 << 19 :])
    path = tmp_path / "x.mcpspy"
    path.write_bytes(capture(numbered(scene.records)))
    assert index(path)
    assert os.path.getsize(f"{path}{INDEX_EXTENSION}") < 10_000
    assert_shows_the_same(path)


def test_no_index_is_written_where_the_folder_takes_no_file(tmp_path: Path) -> None:
    path = a_capture(tmp_path)
    os.mkdir(f"{path}{INDEX_EXTENSION}")
    assert not index(path)
    assert from_index(path) is None
