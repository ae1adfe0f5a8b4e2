"""Blocks of packed rows in a file, and an export that keeps them there."""

from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.capture.file.reader import read
from mcpspy.cli.columns.block_file import BlockFile
from mcpspy.cli.columns.update import update
from mcpspy.transcript.packing.block_compression import compressed, decompressed, kept_in
from mcpspy.transcript.transcribe import transcribe
from tests.columns.test_early import CAPTURES, all_large


@given(st.lists(st.binary(max_size=300)), st.randoms())
def test_each_block_comes_back_as_it_was(blocks: list[bytes], chance: Random) -> None:
    file = BlockFile()
    try:
        named = [(file.add(block), block) for block in blocks]
        chance.shuffle(named)
        assert [file.get(name) for name, _ in named] == [block for _, block in named]
        assert file.add(b"more") not in dict(named)
    finally:
        file.close()


def test_a_block_is_in_memory_again_once_the_place_is_left() -> None:
    file = BlockFile()
    with kept_in(file):
        outside = compressed(b"\x93" * 1000, 0)
        assert len(outside) < 20
        assert decompressed(outside) == b"\x93" * 1000
    file.close()
    assert compressed(b"\x93" * 1000, 0) == b"\x93" * 1000


def test_all_blocks_of_rows_are_in_the_file_also_where_they_are_few() -> None:
    file = BlockFile()
    path = next(path for path in CAPTURES if path.name == "everything.mcpspy")
    with all_large(), kept_in(file):
        rows: Any = transcribe(read(path), pack_rows=True).rows
    file.close()
    assert rows._blocks
    assert max(map(len, rows._blocks)) < 20


def test_packed_rows_of_an_export_are_in_a_file_without_a_name(
    tmp_path: Path, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = []
    add = BlockFile.add

    def counted(self: BlockFile, block: bytes) -> bytes:
        sizes.append(len(block))
        return add(self, block)

    monkeypatch.setattr(BlockFile, "add", counted)
    with all_large():
        update([str(path) for path in CAPTURES[:20]], str(tmp_path / "columns"))
    assert len(sizes) > 20
    assert {path.name for path in store.iterdir()} == {"key"}


def test_a_full_disk_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    class Full:
        def seek(self, at: int) -> None:
            pass

        def write(self, data: bytes) -> int:
            return len(data) // 2

    monkeypatch.setattr("mcpspy.cli.columns.block_file._new_file", Full)
    with pytest.raises(OSError, match="No space left"):
        BlockFile().add(b"block")
