"""The list of captures, at several widths, with hostile names."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from mcpspy.views.listing import (
    CaptureLine,
    CaptureState,
    RecordingLine,
    StoreUsage,
    UnreadableFile,
    listing,
    listing_json,
)
from mcpspy.views.text.line import line_cells, plain

BEGIN = datetime(2026, 11, 20, 22, 37, 1, tzinfo=UTC)


def capture(**facts: Any) -> CaptureLine:
    known: dict[str, Any] = {
        "path": "/store/x.mcpspy",
        "file": "x.mcpspy",
        "capture_id": "0123",
        "label": "weather",
        "begin": BEGIN,
        "begin_ns": 1_795_214_221_000_000_000,
        "lasted_ns": 192_000_000_000,
        "messages": 124,
        "counted": True,
        "size_bytes": 41_000,
        "gaps": 0,
        "state": CaptureState.LIVE,
    }
    return CaptureLine(**{**known, **facts})


RECORDINGS = [
    RecordingLine(
        address="@",
        client="claude",
        client_pid=123,
        captures=(
            capture(),
            capture(
                label="server-filesystem",
                file="y.mcpspy",
                messages=1,
                state=CaptureState.COMPLETE,
                begin=BEGIN.replace(second=2),
            ),
        ),
    ),
    RecordingLine(
        address="",
        client="",
        client_pid=None,
        captures=(capture(messages=0, gaps=2, state=CaptureState.INCOMPLETE, begin=BEGIN.replace(day=19)),),
    ),
]
KEPT = StoreUsage(captures=4, size_bytes=164_000, max_bytes=2_000_000, gone_captures=7, gone_bytes=9, gone_wall_ns=1)
UNUSABLE = [UnreadableFile(path="/store/z.mcpspy", file="z.mcpspy", reason="its header is damaged")]


def text(
    width: int | None, recordings: list[RecordingLine] = RECORDINGS, unusable: list[UnreadableFile] = UNUSABLE
) -> list[str]:
    return [plain(line) for line in listing(recordings, unusable, width=width)]


def test_the_list_at_80_cells() -> None:
    assert text(80) == [
        "@ 2026-11-20 22:37:01  claude (pid 123)",
        "  weather            22:37:01  192 s  124 messages  41 kB  live",
        "  server-filesystem  22:37:02  192 s     1 message  41 kB  complete",
        "",
        "  2026-11-19 22:37:01  unknown client",
        "  weather            22:37:01  192 s    0 messages  41 kB  incomplete, 2 gaps",
        "",
        "unreadable",
        "    z.mcpspy  its header is damaged",
    ]


def test_the_list_at_200_cells_names_the_files() -> None:
    assert text(200)[5] == ("  weather            22:37:01  192 s    0 messages  41 kB  incomplete, 2 gaps  x.mcpspy")


@pytest.mark.parametrize("width", [1, 5, 20, 43, 44, 59, 60, 80, 119, 120, 200])
def test_no_line_is_wider_than_the_screen(width: int) -> None:
    hostile = RecordingLine(
        address="@", client="天" * 99, client_pid=1, captures=(capture(label="天気" * 50), capture(label="\x1b[31m" * 9))
    )
    lines = list(listing([*RECORDINGS, hostile], UNUSABLE, width=width))
    assert max(map(line_cells, lines)) <= width


@pytest.mark.parametrize("width", [40, 60, 80])
def test_a_long_label_does_not_hide_the_state(width: int) -> None:
    recording = RecordingLine(
        address="@", client="c", client_pid=1, captures=(capture(label="x" * 99, gaps=2, state=CaptureState.INCOMPLETE),)
    )
    assert text(width, [recording], [])[1].endswith("  incomplete, 2 gaps")


def test_a_capture_of_a_later_day_shows_its_date() -> None:
    recording = RecordingLine(address="@", client="c", client_pid=1, captures=(capture(), capture(begin=BEGIN.replace(day=21))))
    assert "2026-11-21" in text(80, [recording], [])[2]


def test_a_partly_counted_capture_says_at_least() -> None:
    recording = RecordingLine(address="@", client="c", client_pid=1, captures=(capture(counted=False),))
    assert "at least 124 messages" in text(80, [recording], [])[1]


def test_a_capture_that_clients_share_says_up_to() -> None:
    recording = RecordingLine(address="@", client="c", client_pid=1, captures=(capture(is_part=True, is_shared=True),))
    assert "up to 124 messages" in text(80, [recording], [])[1]


def test_a_capture_of_a_model_api_has_no_number_of_messages() -> None:
    recording = RecordingLine(address="@", client="c", client_pid=1, captures=(capture(is_model=True),))
    assert "model API" in text(80, [recording], [])[1]
    assert json.loads(listing_json("/store", [recording], [], KEPT))["recordings"][0]["captures"][0]["leg"] == "model"


def test_captured_names_are_harmless() -> None:
    evil = "\x1b]0;x\x07\u202e[red]\ud800\n"
    recording = RecordingLine(address="@", client=evil, client_pid=1, captures=(capture(label=evil, file=evil),))
    shown = "\n".join(text(None, [recording], [UnreadableFile(path=evil, file=evil, reason=evil)]))
    assert not set(shown) & {"\x1b", "\x07", "\u202e", "\ud800"}
    assert "[red]" in shown


def test_an_empty_list_has_no_lines() -> None:
    assert text(80, [], []) == []


def test_the_json_has_every_fact() -> None:
    listed = json.loads(listing_json("/store", RECORDINGS, UNUSABLE, KEPT))
    assert listed["schema"] == 1
    assert listed["recordings"][0]["captures"][0] == {
        "path": "/store/x.mcpspy",
        "id": "0123",
        "label": "weather",
        "leg": "mcp",
        "wall_ns": 1_795_214_221_000_000_000,
        "begin": "2026-11-20T22:37:01.000+00:00",
        "lasted_ns": 192_000_000_000,
        "messages": 124,
        "size_bytes": 41_000,
        "gaps": 0,
        "complete": False,
        "failed_to_start": False,
        "live": True,
        "part": False,
    }
    removed = {"captures": 7, "bytes": 9, "last_wall_ns": 1}
    assert listed["kept"] == {"captures": 4, "bytes": 164_000, "max_bytes": 2_000_000, "removed": removed}
    assert listed["unreadable"] == [{"path": "/store/z.mcpspy", "reason": "its header is damaged"}]
