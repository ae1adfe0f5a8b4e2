"""One MCP server of a test, played from a capture or recorded under a tap: how to reach it, and which requests it got."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

from . import requests
from .paths import shown_path, written_captures

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from ..replay.mock.miss import Miss
    from ..transcript.model import Exchange, Transcript
    from .backends import Backend
    from .process import ListeningProcess


class ServerUnderTest:
    """A server that the code under test connects to. `path` is its capture, or where that will be.

    On stdio it is a `command` with `args`, and `env` is what its environment needs; over HTTP it is a `url`. Its requests so
    far can be looked at any time: `tool_calls`, `calls`, `misses`, `transcript()`.
    """

    __slots__ = ("_process", "allows_misses", "backend", "path", "real")

    def __init__(self, path: Path, backend: Backend, *, real: Sequence[str] | str | None, allows_misses: bool) -> None:
        self.path = path
        self.backend = backend
        self.real = real
        """The command or URL of the real server, if the test gives one."""
        self.allows_misses = allows_misses
        self._process: ListeningProcess | None = None

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {'recorded to' if self.is_recorded else 'played from'} {shown_path(self.path)}>"

    # How to reach it

    @property
    def command(self) -> str:
        """The program that a client of stdio starts. Raises: ReplayError: if the server is being recorded over HTTP."""
        __tracebackhide__ = True
        return self._argv[0]

    @property
    def args(self) -> list[str]:
        """Its arguments. Raises: ReplayError: if the server is being recorded over HTTP."""
        __tracebackhide__ = True
        return self._argv[1:]

    @property
    def env(self) -> dict[str, str]:
        """The environment that it needs besides what clients hand on (`PATH`, `HOME`)."""
        return {"MCPSPY_HOME": os.environ["MCPSPY_HOME"]} if os.environ.get("MCPSPY_HOME") else {}

    @property
    def url(self) -> str:
        """Its address over HTTP. The server starts when this is first read, and ends with the test.

        Raises: ReplayError: if it cannot be started, or is being recorded on stdio.
        """
        __tracebackhide__ = True
        if self._process is None:
            self._process = self.backend.listen()
        return self._process.url

    def stdio_parameters(self) -> Any:
        """Return the same for the official SDK: `mcp.StdioServerParameters`. Raises: ImportError: if that is not installed."""
        from mcp import StdioServerParameters

        return StdioServerParameters(command=self.command, args=self.args, env=self.env or None)

    @property
    def _argv(self) -> list[str]:
        __tracebackhide__ = True
        return [sys.executable, "-P", "-m", "mcpspy", *self.backend.stdio_arguments()]

    # Its requests

    @property
    def is_recorded(self) -> bool:
        """True if the real server answers this time, and is recorded."""
        return self.backend.is_recording

    @property
    def calls(self) -> list[Exchange]:
        """All requests so far, `initialize` included: the exchanges of `transcript()` that the client began."""
        return requests.calls(self.transcript())

    @property
    def tool_calls(self) -> list[tuple[str, dict[str, Any]]]:
        """The tools that were called so far, in order: the name of each and its arguments."""
        return requests.tool_calls(self.transcript())

    @property
    def misses(self) -> list[str]:
        """The requests so far that were never recorded, a sentence for each."""
        return [miss.sentence for miss in self.detailed_misses()]

    def detailed_misses(self) -> list[Miss]:
        """Return the same with all that is known of each."""
        return self.backend.misses(self.transcript())

    def transcript(self) -> Transcript:
        """Return all that was said so far; of a server that was started several times, in all its runs."""
        return requests.read_transcript(written_captures(self.backend.capture))

    def assert_all_played(self) -> None:
        """Assert that every recorded request was made, but for those that clients make by themselves (`initialize`, `ping`)."""
        __tracebackhide__ = True
        unplayed = self.backend.unplayed(self.transcript())
        if unplayed:
            from .messages import unplayed_report  # and with it the views, which a test that passes can do without

            raise AssertionError(unplayed_report(shown_path(self.path), unplayed))

    def close(self) -> None:
        """End the process that `url` started."""
        if self._process is not None:
            self._process.close()
