"""The lines about a verified capture, at several widths."""

from typing import Any

import pytest

from mcpspy.views.text.line import line_cells, plain
from mcpspy.views.verification import CaptureProblem, VerifiedCapture, verification


def verified(**facts: Any) -> VerifiedCapture:
    known: dict[str, Any] = {
        "path": "weather.mcpspy",
        "status": "damaged",
        "live": False,
        "complete": True,
        "format": 1,
        "size_bytes": 41_000,
        "records": 124,
        "frames": 120,
        "unusable_lines": 1,
        "unusable_bytes": 412,
        "problems": (
            CaptureProblem(status="damaged", reason="crc", text="the line does not match its CRC", line=7, offset=2301),
        ),
        "more_problems": 0,
    }
    return VerifiedCapture(**{**known, **facts})


def text(capture: VerifiedCapture, width: int | None) -> list[str]:
    return [plain(line) for line in verification(capture, width=width)]


@pytest.mark.parametrize("width", [80, 200, None])
def test_a_damaged_capture_lists_its_problems_with_their_places(width: int | None) -> None:
    assert text(verified(), width) == [
        "weather.mcpspy: damaged, 124 records in 41 kB; 1 unusable line (412 B)",
        "  line 7, byte 2301: the line does not match its CRC",
    ]


def test_a_long_problem_continues_on_the_next_line() -> None:
    trouble = CaptureProblem(status="incomplete", reason="gap", text="word " * 30, line=7, offset=2301)
    lines = text(verified(problems=(trouble,)), 60)
    assert len(lines) > 2
    assert " ".join(" ".join(lines[1:]).split()).count("word") == 30


def test_the_result_is_on_a_line_of_its_own_below_a_long_path() -> None:
    intact = verified(status="intact", path="/home/ada/" + "x" * 60, unusable_lines=0, problems=())
    assert text(intact, 80)[1:] == ["  intact, 124 records in 41 kB"]


@pytest.mark.parametrize("width", [1, 10, 30, 80])
def test_no_line_is_wider_than_the_screen(width: int) -> None:
    trouble = CaptureProblem(status="damaged", reason="shape", text="天" * 99, line=7, offset=2301)
    capture = verified(path="天" * 99, problems=(trouble,), repaired="天" * 99, marked_missing=3)
    assert max(map(line_cells, verification(capture, width=width))) <= max(width, 10)


def test_captured_text_is_harmless() -> None:
    evil = "\x1b]0;x\x07\u202e\ud800\n"
    trouble = CaptureProblem(status="damaged", reason="shape", text=evil, line=7, offset=2301)
    shown = "".join(text(verified(path=evil, problems=(trouble,), repaired=evil), None))
    assert not set(shown) & {"\x1b", "\x07", "\u202e", "\ud800", "\n"}


def test_problems_that_are_not_listed_are_counted() -> None:
    assert text(verified(more_problems=2_001), 80)[-1] == "  … 2,001 more problems"
