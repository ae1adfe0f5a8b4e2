"""Golden screens: the text on a terminal, compared with files beside the tests.

After an intended change, run `MCPSPY_WRITE_GOLDEN=1 pytest tests/tui/test_golden_screens.py`, and look at the difference.
"""

import os
import re
import time
from difflib import unified_diff
from pathlib import Path

from tests.deadlines import POLL_S, SCENE_S
from tests.tui.tmux import TmuxScreen

FOLDER = Path(__file__).parent / "golden"

RESTS_S = 2.5
"""A screen that is written is one that has not changed for so long."""

CHANGING = (
    (re.compile(r"\d[\d.,]* (?:ns|µs|ms|s|min)(?!\w)"), "~"),
    (re.compile(r"\b\d+\.\d{3,6}\b"), "~"),
    (re.compile(r"mcpspy-[0-9a-f]{8}-\d+|mcpspy-[0-9a-f]+…"), "mcpspy-~"),
    (re.compile(r"port \d+|pid \d+|127\.0\.0\.1:\d+"), "~"),
    (re.compile(r"of \d+ lines"), "of ~ lines"),
    (re.compile(r" · \d+ findings?"), ""),
    (re.compile(r"(?<=\S) +(?=\S)"), " "),
    (re.compile(r" +│"), " │"),
)
"""Patterns of all that differs from run to run: times, ids, and the blanks that make up for them."""


def settled(text: str) -> str:
    """Return a screen of a live recording without what differs from run to run."""
    for pattern, replacement in CHANGING:
        text = pattern.sub(replacement, text)
    return text


def is_golden(shown: TmuxScreen, name: str, *, live: bool = False) -> bool:
    """Wait until the screen is the golden one."""
    path = FOLDER / f"{name}.txt"
    if os.environ.get("MCPSPY_WRITE_GOLDEN"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(_rested(shown, live=live) + "\n", encoding="utf-8")
    wanted = path.read_text(encoding="utf-8").rstrip("\n")
    until = time.monotonic() + SCENE_S
    while (text := _text(shown, live=live)) != wanted:
        difference = "\n".join(unified_diff(wanted.split("\n"), text.split("\n"), "golden", "screen", lineterm=""))
        assert time.monotonic() < until, f"{name}:\n{difference}"
        time.sleep(POLL_S * 10)
    return True


def _text(shown: TmuxScreen, *, live: bool) -> str:
    return settled(shown.text) if live else shown.text


def _rested(shown: TmuxScreen, *, live: bool) -> str:
    """Return the screen once it has been the same for a while."""
    text, since = _text(shown, live=live), time.monotonic()
    while time.monotonic() < since + RESTS_S:
        time.sleep(POLL_S * 10)
        if (now := _text(shown, live=live)) != text:
            text, since = now, time.monotonic()
    return text
