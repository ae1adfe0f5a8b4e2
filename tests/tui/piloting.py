"""The interface under Textual's pilot: keys go in, the texts on the screen come out."""

import asyncio
import stat
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from textual import events
from textual.pilot import Pilot

from mcpspy.cli.transcripts import select_captures
from mcpspy.cli.tui_sources import FinishedSource, Programs, StoreDesk, source_of
from mcpspy.transcript.model import Transcript
from mcpspy.tui.app import Terminal
from mcpspy.tui.drawing import Letters, all_letters
from mcpspy.tui.source import RowSource
from tests.deadlines import DEADLINE_S, POLL_S

CAPTURES = Path(__file__).parents[2] / "captures"

NAMES = {" ": "space", ":": "colon", "*": "asterisk", "/": "slash", '"': "quotation_mark", ">": "greater_than_sign"}
SPOKEN = ("enter", "escape", "tab", "up", "down", "left", "right", "home", "end", "backspace")
"""Keys that have a name and no letter."""


class Piloted:
    """A running interface."""

    def __init__(self, terminal: Terminal, pilot: Pilot[None]) -> None:
        self.terminal = terminal
        self.pilot = pilot

    @property
    def screen(self) -> list[str]:
        """The lines on the screen."""
        strips = self.terminal.screen._compositor.render_strips()
        return ["".join(segment.text for segment in strip).rstrip() for strip in strips]

    @property
    def text(self) -> str:
        return "\n".join(self.screen)

    @property
    def foot(self) -> str:
        return self.screen[-1]

    @property
    def row(self) -> int:
        """The number of the row at the cursor."""
        return getattr(self.terminal.row_list.row, "row", 0)

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)
        await self.pilot.pause()

    async def type(self, text: str) -> None:
        await self.press(*(NAMES.get(letter, letter) for letter in text))

    async def burst(self, *keys: str) -> None:
        """Type keys faster than any of them is acted on: names of keys, or texts."""
        driver = self.terminal._driver
        assert driver is not None
        letters = [key for word in keys for key in ([word] if word in SPOKEN else list(word))]
        for letter in letters:
            event = events.Key(NAMES.get(letter, letter), None if letter in SPOKEN else letter)
            event.set_sender(self.terminal)
            driver.send_message(event)
        await self.pilot.pause()

    async def until(self, what: str | Callable[[str], object]) -> str:
        """Wait until the screen has a text, or something is true of it."""
        until = time.monotonic() + DEADLINE_S
        while not (what in self.text if isinstance(what, str) else what(self.text)):
            assert time.monotonic() < until, f"{what!r} was not shown, but:\n{self.text}"
            await asyncio.sleep(POLL_S)
        return self.text


@asynccontextmanager
async def piloted(
    shown: Path | Transcript | RowSource,
    *,
    size: tuple[int, int] = (80, 24),
    letters: Letters = all_letters,
    row: int = 0,
    follows: bool = False,
    waits: bool = True,
) -> AsyncIterator[Piloted]:
    """Show a capture, a transcript or a source; `waits` until the first screen is there."""
    if isinstance(shown, Path):
        source: Any = source_of(select_captures((str(shown),)))
    elif isinstance(shown, Transcript):
        source = FinishedSource(shown, ["capture.mcpspy"], "")
    else:
        source = shown
    terminal = Terminal(source, StoreDesk(), Programs(), letters, row=row, follows=follows)
    async with terminal.run_test(size=size) as pilot:
        if waits:
            await pilot.pause()
            await pilot.pause()
        yield Piloted(terminal, pilot)


def sed_editor(folder: Path, script: str) -> str:
    """Make a program for $EDITOR that edits with a script of sed. Return its path."""
    program = folder / "editor"
    program.write_text(f"#!/bin/sh\nsed -i '{script}' \"$1\"\ntouch -d '+2 seconds' \"$1\"\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return str(program)


def piloting(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """Run a test in a loop of its own."""
    import functools

    @functools.wraps(test)
    def run(*words: Any, **named: Any) -> None:
        asyncio.run(asyncio.wait_for(test(*words, **named), DEADLINE_S * 2))

    return run
