"""One MCP server of a test, played from a capture or recorded under a tap: how to reach it, and what it was asked."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

from . import requests as asked
from .paths import made, told

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from ..replay.mock.miss import Miss
    from ..transcript.model import Exchange, Transcript
    from .playback import Playing
    from .process import Process
    from .recording import Recording


class Server:
    """How to reach a server, and what it was asked. `path` is its capture, or where that will be.

    On stdio it is a `command` with `args`, and `env` is what its environment needs besides; over HTTP a `url`. What it was asked so
    far can be looked at any time: `tool_calls`, `calls`, `misses`, `transcript()`.
    """

    __slots__ = ("_process", "allows_misses", "behind", "path", "real")

    def __init__(
        self, path: Path, behind: Playing | Recording, *, real: Sequence[str] | str | None, allows_misses: bool
    ) -> None:
        self.path = path
        self.behind = behind
        self.real = real
        self.allows_misses = allows_misses
        self._process: Process | None = None

    def __repr__(self) -> str:
        return f"<Server {'recorded to' if self.is_recorded else 'played from'} {told(self.path)}>"

    # How to reach it

    @property
    def command(self) -> str:
        """The program that a client of stdio is to start. Raises: ReplayError: if the server is being recorded over HTTP."""
        __tracebackhide__ = True
        return self._argv[0]

    @property
    def args(self) -> list[str]:
        """Its arguments. Raises: ReplayError: if the server is being recorded over HTTP."""
        __tracebackhide__ = True
        return self._argv[1:]

    @property
    def env(self) -> dict[str, str]:
        """What its environment needs besides what clients hand on (`PATH`, `HOME`)."""
        return {"MCPSPY_HOME": os.environ["MCPSPY_HOME"]} if os.environ.get("MCPSPY_HOME") else {}

    @property
    def url(self) -> str:
        """Where it is over HTTP. It is started when that is first asked, and ends with the test.

        Raises: ReplayError: if it cannot be started, or is being recorded on stdio.
        """
        __tracebackhide__ = True
        if self._process is None:
            self._process = self.behind.listen()
        return self._process.url

    def stdio_parameters(self) -> Any:
        """The same for the official SDK: `mcp.StdioServerParameters`. Raises: ImportError: if that is not installed."""
        from mcp import StdioServerParameters

        return StdioServerParameters(command=self.command, args=self.args, env=self.env or None)

    @property
    def _argv(self) -> list[str]:
        __tracebackhide__ = True
        return [sys.executable, "-P", "-m", "mcpspy", *self.behind.stdio_arguments()]

    # What it was asked

    @property
    def is_recorded(self) -> bool:
        """Whether the real server answers this time, and is recorded."""
        return self.behind.is_recording

    @property
    def calls(self) -> list[Exchange]:
        """All that it was asked so far, `initialize` included: the exchanges of `transcript()` that the client began."""
        return asked.calls(self.transcript())

    @property
    def tool_calls(self) -> list[tuple[str, dict[str, Any]]]:
        """The tools that were called so far, in order: the name of each and its arguments."""
        return asked.tool_calls(self.transcript())

    @property
    def misses(self) -> list[str]:
        """What it was asked so far and was never recorded, a sentence for each."""
        return [one.sentence for one in self.missed()]

    def missed(self) -> list[Miss]:
        """The same, with all that is known of each."""
        return self.behind.misses(self.transcript())

    def transcript(self) -> Transcript:
        """All that was said so far; of a server that was started several times, of all its runs."""
        return asked.transcript_of(made(self.behind.capture))

    def assert_all_played(self) -> None:
        """Hold that all that was recorded has been asked for, but for what clients ask by themselves (`initialize`, `ping`)."""
        __tracebackhide__ = True
        left = self.behind.left_over(self.transcript())
        if left:
            from .messages import left_over_words  # and with it the views, which a test that is well can do without

            raise AssertionError(left_over_words(told(self.path), left))

    def close(self) -> None:
        """End what `url` started."""
        if self._process is not None:
            self._process.close()
