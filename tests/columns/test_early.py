"""Columns of a large capture, whose rows are written while it is read: they are those that are written afterwards."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mcpspy.capture.file import reader
from mcpspy.cli.columns.update import update
from mcpspy.columns.schema import TABLES
from mcpspy.columns.tables import RowTables
from mcpspy.transcript import transcribe
from mcpspy.transcript.model import Row
from mcpspy.transcript.packing import rows as packed_rows
from tests.columns.reading import rows_of
from tests.conftest import ROOT
from tests.sharing.hiding import lines as written
from tests.tiers import Tier
from tests.transcript.dialogue import result
from tests.views.scenes import call, opened, refused

CAPTURES = sorted([*(ROOT / "captures").glob("*.mcpspy"), *(ROOT / "tests" / "findings").glob("*.mcpspy")])


@contextmanager
def all_large() -> Iterator[None]:
    """Take every capture for a large one, of which few rows are new."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(packed_rows, "BLOCK_ROWS", 3)
        patch.setattr(packed_rows, "NEWEST_ROWS", 0)
        patch.setattr(packed_rows, "READ_ROWS", 0)
        patch.setattr(packed_rows, "MOST_NEWEST_ROWS", 0)
        patch.setattr(transcribe, "LARGE_ROWS", 0)
        patch.setattr(transcribe, "LARGE_BYTES", 0)
        patch.setattr(reader, "_BATCH_BYTES", 700)
        yield


def tables(paths: list[Path], folder: Path) -> dict[str, list[str]]:
    """Export captures, and return the rows of all tables."""
    update([*map(str, paths)], str(folder))
    return {table: sorted(map(repr, rows_of(folder, table))) for table in TABLES}


def test_rows_that_are_written_early_are_those_that_are_written_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tier: Tier
) -> None:
    captures = CAPTURES[:: tier(sample=12, more=2, full=1)]
    wanted = {path: tables([path], tmp_path / f"afterwards-{at}") for at, path in enumerate(captures)}
    fed: list[int] = []
    feed = RowTables.feed

    def counted(self: RowTables, rows: list[Row]) -> None:
        fed.append(len(rows))
        feed(self, rows)

    monkeypatch.setattr(RowTables, "feed", counted)
    with all_large():
        for at, path in enumerate(captures):
            assert tables([path], tmp_path / f"early-{at}") == wanted[path], path.name
    assert fed.count(3) > 30


def test_a_secret_that_comes_late_is_replaced_in_rows_that_were_written_early(tmp_path: Path) -> None:
    scene = opened("weather")
    for id in range(1, 60):
        scene.client(call(id, "again")).server(refused(id, -32000, "tr0ub4dor-and-3 is wrong"))
    scene.client(call(60, "login", password="tr0ub4dor-and-3")).server(result(60)).closes()
    path = tmp_path / "x.mcpspy"
    path.write_bytes(written(scene.records))
    wanted = tables([path], tmp_path / "afterwards")
    assert "tr0ub4dor" not in repr(wanted)
    with all_large():
        assert tables([path], tmp_path / "early") == wanted
