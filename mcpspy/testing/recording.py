"""A server that is recorded while it is tested: the real one, under a tap that writes where no capture of a test lies."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import ReplayError
from ..records import Exit
from ..transcript.model import ChannelEvent, Exchange, Transcript
from .process import LISTEN, Process
from .requests import refuses, transcript_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from ..replay.mock.miss import Miss


class Recording:
    """The server that `real` starts, a command, or is at, a URL.

    `name` is what its capture is called, `capture` the file for now.
    """

    is_recording = True

    __slots__ = ("_real", "capture", "name")

    def __init__(self, real: Sequence[str] | str, name: str, capture: Path) -> None:
        self.name = name
        self.capture = capture
        self._real = real

    def stdio_arguments(self) -> list[str]:
        """The command line of mcpspy that starts the server under a tap. Raises: ReplayError: if it is one of HTTP."""
        __tracebackhide__ = True
        if isinstance(self._real, str):
            raise ReplayError(self.name, f"it is to be recorded from {self._real}, which is HTTP: connect to `url`")
        return ["run", "--quiet", f"--capture={self.capture}", "--", *self._real]

    def listen(self) -> Process:
        """Stand before the server. Raises: ReplayError: if it is one of stdio, or cannot be reached."""
        __tracebackhide__ = True
        if not isinstance(self._real, str):
            raise ReplayError(
                self.name,
                "it is to be recorded from a command, which is stdio: start `command`, or record from the URL of a server",
            )
        arguments = ["proxy", self._real, f"--listen={LISTEN}", "--quiet", f"--capture={self.capture}"]
        return Process(arguments, what=self.name, output=self.capture.with_suffix(".output"))

    def misses(self, transcript: Transcript) -> list[Miss]:
        """Nothing is missed where the real server answers."""
        return []

    def left_over(self, transcript: Transcript) -> list[Exchange]:
        """Nothing is left over either."""
        return []


def real_words(real: Sequence[str] | str | None) -> str:
    """What is recorded, as a person would write it."""
    return real if isinstance(real, str) else " ".join(real or ())


def failure(paths: Sequence[Path], real: str) -> str:
    """Why captures of a recording cannot be played again; empty if they can."""
    if not paths:
        return f"nothing was recorded: nobody connected to {real}"
    transcript = transcript_of(paths)
    if any(one.response is not None for one in transcript.exchanges) or refuses(transcript):
        return ""
    exits = [row.record for row in transcript.rows if isinstance(row, ChannelEvent) and isinstance(row.record, Exit)]
    for one in exits:
        if one.error:
            return f"{real} could not be started: {one.error}"
    found = [one.what for one in transcript.findings if one.severity == "error"]
    return found[0] if found else f"{real} answered nothing"
