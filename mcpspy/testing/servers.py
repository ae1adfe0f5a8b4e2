"""All MCP servers of one test: what the fixture `mcpspy` is. Decides what is played and what is recorded, and what is kept."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from shlex import quote
from time import monotonic, sleep
from typing import Final, Literal

from ..capture.store.folder import is_live
from ..errors import McpspyError, ReplayError
from . import requests as asked
from .paths import land, made, place, runs, told
from .playback import Playing
from .recording import Recording, failure, real_words
from .server import Server

RECORDED_ENDS_S: Final = 5.0
"""So long a server that is recorded may go on after its test, whose business it was to leave it: its last words are recorded too."""

PLAYED_ENDS_S: Final = 1.0
"""And so long a mock, which says nothing of interest any more."""

POLL_S: Final = 0.005

NO_RECORDING: Final = "none is recorded here (--mcpspy-record=none, the default where CI is set)"

CHOICES: Final = {
    "match": ("strict", "default", "loose"),
    "reuse": ("last", "error"),
    "on_miss": ("error", "nearest"),
    "transport": ("streamable", "sse"),
}
"""What options of `serve` may be."""

Real = Sequence[str] | str
"""A real server: a command, or a URL."""


def is_ci(environment: Mapping[str, str]) -> bool:
    """Whether we are where nothing is to be recorded by accident."""
    return environment.get("CI", "").lower() not in ("", "0", "false")


class Servers:
    """The servers of the test `test` (pytest's node id) in `test_file`. `record` and `match` are what the command line says.

    `make_folder` makes a folder for what is recorded meanwhile.
    """

    def __init__(self, *, test_file: Path, test: str, record: str, match: str | None, make_folder: Callable[[], Path]) -> None:
        self.is_well = False
        """Whether the test went well."""
        self._test_file = test_file
        self._test = test
        self._record = record
        self._match = match
        self._make_folder = make_folder
        self._servers: list[Server] = []
        self._unnamed = 0
        self._told: dict[Server, int] = {}
        """How many misses of each have been told."""

    def __repr__(self) -> str:
        return f"<mcpspy: {', '.join(map(repr, self._servers)) or 'serve() plays a capture'}>"

    def serve(
        self,
        name: str | os.PathLike[str] | None = None,
        *,
        record: Sequence[str] | str | None = None,
        match: Literal["strict", "default", "loose"] | None = None,
        ignore: Sequence[str] = (),
        reuse: Literal["last", "error"] | None = None,
        on_miss: Literal["error", "nearest"] | None = None,
        speed: float | None = None,
        transport: Literal["streamable", "sse"] | None = None,
        allow_misses: bool = False,
    ) -> Server:
        """A server played from the capture `name`, or recorded into it from `record`, a command or a URL.

        Names are those of files in `captures/` beside the test; without one it is `captures/MODULE/TEST.mcpspy`. What is recorded is
        kept if the test goes well. `match`, `ignore`, `reuse`, `on_miss`, `speed` and `transport` are those of `mcpspy mock`. A test
        whose server was asked what was never recorded fails, unless misses are allowed, or the nearest is played.

        Raises: AddressError, CaptureError, PathError, ReplayError: if it can be neither played nor recorded.
        """
        __tracebackhide__ = True
        self._unnamed += name is None
        path = place(name, test_file=self._test_file, test=self._test, number=self._unnamed)
        given = {"match": match or self._match, "reuse": reuse, "on_miss": on_miss, "transport": transport, "speed": speed}
        try:
            how = _how(told(path), given) | {"ignore": ignore}
            real = _real(told(path), record)
            behind = self._behind(path, real, how)
        except McpspyError as error:
            raise error.with_traceback(None) from None  # whoever reads it wrote the call, and none of what is below it
        server = Server(path, behind, real=real, allows_misses=allow_misses or on_miss == "nearest")
        self._servers.append(server)
        return server

    def misses_told(self) -> str:
        """What the servers were asked and was never recorded, since this was asked last; empty if nothing was."""
        return "\n\n".join(words for one in self._servers if (words := self._missed_words(one)))

    def close(self) -> str:
        """End what runs and keep what was recorded, if the test went well. Returns what is wrong now and has not been told."""
        for one in self._servers:
            one.close()
        for one in self._servers:
            _wait_for_end(one)
        wrong = [words for one in self._servers if (words := self._keep(one))]
        return "\n\n".join(words for words in (self.misses_told(), *wrong) if words)

    def sections(self) -> list[tuple[str, str]]:
        """Titles and texts for the report of a test that failed: what was never recorded, and all that each server was asked."""
        missed = self.misses_told()
        asked_of = [(f"mcpspy: {told(one.path)}", _section(one)) for one in self._servers]
        return [("mcpspy: never recorded", missed), *asked_of] if missed else asked_of

    def _behind(self, path: Path, real: Real | None, how: dict[str, str | Sequence[str]]) -> Playing | Recording:
        if real is not None and self._is_to_record(path):
            return Recording(real, told(path), self._make_folder() / path.name)
        return Playing(self._captures(path, real), told(path), how, self._make_folder() / path.name)

    def _is_to_record(self, path: Path) -> bool:
        if self._record == "none" or (self._record == "once" and path.exists()):
            return False
        if any(one.path == path and one.is_recorded for one in self._servers):
            raise ReplayError(told(path), "it is being recorded in this test already; give the second server a name of its own")
        return True

    def _captures(self, path: Path, real: Real | None) -> list[Path]:
        """The captures to play. Raises: ReplayError: if there is none, with how to get one."""
        if found := runs(path):
            return found
        if real is None:
            reason = "there is no such capture, and serve() is given nothing to record: add record=[COMMAND…] or record=URL"
        else:
            reason = f"there is no such capture, and {NO_RECORDING}: run this test where its server is, and commit the file"
        raise ReplayError(told(path), reason)

    def _missed_words(self, server: Server) -> str:
        if server.allows_misses or server.is_recorded:
            return ""
        transcript = server.transcript()
        misses = server.behind.misses(transcript)
        seen, self._told[server] = self._told.get(server, 0), len(misses)
        if len(misses) == seen:
            return ""
        from .messages import misses_words

        how = f"pytest {quote(self._test)} --mcpspy-record=all"
        anew = (
            f"To record it anew: {how}" if server.real else "To record it anew, give serve() a record=[COMMAND…] or record=URL."
        )
        return misses_words(told(server.path), misses[seen:], len(asked.calls(transcript)), anew)

    def _keep(self, server: Server) -> str:
        """Why a recording cannot be kept that should be; empty where all is well."""
        if not server.is_recorded or not self.is_well:
            return ""
        name, real, captures = told(server.path), real_words(server.real), made(server.behind.capture)
        if any(is_live(str(one)) for one in captures):
            return f"{name}: {real} still runs, {RECORDED_ENDS_S:g} s after the test, and is not kept: leave it in the test"
        reason = failure(captures, real)
        if reason:
            return f"{name}: {reason}"
        try:
            land(captures, server.path)
        except OSError as error:
            return f"{name}: it cannot be kept there: {error.strerror}"
        return ""


def _how(name: str, given: Mapping[str, str | float | None]) -> dict[str, str | Sequence[str]]:
    """What is given of the options of `mcpspy mock`. Raises: ReplayError: if one has a value that it cannot have."""
    for option, value in given.items():
        choices = CHOICES.get(option)
        if choices and value is not None and value not in choices:
            raise ReplayError(name, f"{option}={value!r} is none of {', '.join(map(repr, choices))}")
        if option == "speed" and not (value is None or (isinstance(value, int | float) and 0 <= value < float("inf"))):
            raise ReplayError(name, f"speed={value!r} is no speed: 0, 1 or another number above 0")
    return {option: f"{value:g}" if isinstance(value, int | float) else value for option, value in given.items() if value}


def _real(name: str, record: Sequence[str] | str | None) -> Real | None:
    """What `serve` is given to record from. Raises: ReplayError: if that is neither a command nor a URL."""
    if not isinstance(record, str):
        return record or None
    if not record.startswith(("http://", "https://")):
        raise ReplayError(
            name, f"record={record!r} is neither a URL nor a command: write a command as a list, {record.split()!r}"
        )
    return record


def _wait_for_end(server: Server) -> None:
    """Wait until nothing writes into its captures any more, for a while."""
    until = monotonic() + (RECORDED_ENDS_S if server.is_recorded else PLAYED_ENDS_S)
    while monotonic() < until and any(is_live(str(one)) for one in made(server.behind.capture)):
        sleep(POLL_S)


def _section(server: Server) -> str:
    captures = made(server.behind.capture)
    if not captures:
        return "nobody connected to it"
    from .messages import said

    kept = f"This is not kept in {told(server.path)}: the test failed.\n" if server.is_recorded else ""
    live = any(is_live(str(one)) for one in captures)
    return f"{said(asked.transcript_of(captures), live=live)}\n\n{kept}mcpspy show {' '.join(map(str, captures))}"
