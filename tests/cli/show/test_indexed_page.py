"""The live page of a large capture: the same from its index and without, and its first rows before it has read the others."""

from pathlib import Path
from typing import Any

import pytest

from mcpspy.cli import transcripts
from mcpspy.cli.web import stored_recordings
from mcpspy.cli.web.catalog_cache import CatalogCache
from mcpspy.cli.web.indexed_recording import IndexedRecording
from mcpspy.cli.web.stored_recordings import GrowingRecording, StoredRecordings
from tests.cli.recording import Recording
from tests.cli.terminal import run
from tests.conftest import ROOT

RECORDED = sorted((ROOT / "captures").glob("*.mcpspy"))


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty store in which every capture is large."""
    monkeypatch.setenv("MCPSPY_HOME", str(tmp_path))
    monkeypatch.setattr(transcripts, "LARGE_BYTES", 1)
    monkeypatch.setenv("SPY_LARGE_BYTES", "1")
    folder = tmp_path / "captures"
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder


def shown(recording: GrowingRecording | IndexedRecording) -> list[Any]:
    """Return everything that a page gets of a recording."""
    rows: dict[int, list[Any]] = {}
    progress: dict[str, Any] = {}
    parts: list[Any] = []
    heading: dict[str, Any] = {}
    for name in (None, "diagram", "findings", "numbers"):
        parts.append(None if name is None else recording.part(name))
        while (news := recording.take()) is not None:
            rows.update({index: line for index, *line in news.pop("rows")})
            progress.update(news.pop("progress"))
            heading = news
    numbers = sorted({line[0] for line in rows.values() if line[0]})
    matching = [{tuple(rows[index]) for index in recording.filter(text)} for text in ("status:ok", "not status:ok", "dur>1ms")]
    found = [recording.search(text) for text in ("tool", "nothing like it")]
    details = [recording.row(number) for number in (*numbers, len(numbers) + 2)]
    recording.close()
    return [sorted(map(tuple, rows.values())), progress, heading, parts, matching, found, details]


@pytest.mark.grid(6)
@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_a_page_is_the_same_with_an_index(path: Path, store: Path) -> None:
    copy = store / path.name
    copy.write_bytes(path.read_bytes())
    recordings = StoredRecordings()
    name = recordings.listed()[0]["recording"]
    before = recordings.open(name)
    assert isinstance(before, GrowingRecording)
    assert run("show", copy.stem).returncode == 0
    opened = recordings.open(name)
    assert opened is not None
    if not isinstance(opened, IndexedRecording):  # one client's rows of a capture that others may share
        (capture,) = CatalogCache().entries()
        assert capture.is_proxied
    assert shown(opened) == shown(before)


def test_the_first_rows_of_a_recording_come_before_the_others_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_recordings, "FIRST_ROWS", 4)
    recording = Recording()
    for id in range(20):
        recording.ask(id, name=f"read_{id}").answer(id)
    opened = StoredRecordings().open(recording.id)
    assert opened is not None
    counts = []
    while (news := opened.take()) is not None:
        counts.append(len(news["rows"]))
    assert counts[0] <= 4
    assert len(counts) > 1
    assert len(opened.search("read_")) == 20
