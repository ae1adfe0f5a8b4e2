"""A progress bar on stderr while captures are read, if that takes longer than a second.

It is for a person: there is none on a pipe, with `--quiet`, or where the output is for programs.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from .invocation import parameters

if TYPE_CHECKING:
    from rich.progress import Progress

PATIENCE_S: Final = 1.0
"""Time before a bar appears."""


_of_many: list[ReadingProgress] = []
"""The progress of all files that are read one after another; empty if each has its own."""


class ReadingProgress:
    """Progress of reading `total_bytes`. `add` says that more were read; it costs next to nothing until a bar is due."""

    __slots__ = ("_bar", "_begun_s", "_is_shown", "done_bytes", "total_bytes")

    def __init__(self, total_bytes: int, *, is_shown: bool) -> None:
        self.total_bytes = total_bytes
        self.done_bytes = 0
        self._is_shown = is_shown
        self._begun_s = time.monotonic()
        self._bar: Progress | None = None

    @property
    def share(self) -> float:
        """The share that was read so far, of something."""
        return self.done_bytes / self.total_bytes

    def add(self, count: int) -> None:
        """Take note of so many bytes."""
        self.done_bytes += count
        if self._bar is not None:
            self._bar.update(self._bar.task_ids[0], completed=self.done_bytes)
        elif self._is_shown and time.monotonic() - self._begun_s > PATIENCE_S:
            self._bar = _bar(self.total_bytes, self.done_bytes)
            self._bar.start()  # now that an interrupt would end it

    def end(self) -> None:
        """Take the bar away."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None


@contextmanager
def reading(paths: Iterable[str], *, passes: int = 1) -> Iterator[ReadingProgress]:
    """Show progress while these files are read, each so many times. The size of a pipe counts as nothing.

    Within `reading_many` it is the progress of that.
    """
    if _of_many:
        yield _of_many[0]
        return
    sizes = (os.path.getsize(path) for path in paths if os.path.isfile(path))
    progress = ReadingProgress(passes * sum(sizes), is_shown=_is_wanted())
    try:
        yield progress
    finally:
        progress.end()


@contextmanager
def reading_many(paths: Iterable[str]) -> Iterator[ReadingProgress]:
    """Show one progress while these files are read one after another, by those that show the progress of each."""
    with reading(paths) as progress:
        _of_many.append(progress)
        try:
            yield progress
        finally:
            _of_many.clear()


def _is_wanted() -> bool:
    options = parameters()
    is_for_programs = options.get("as_json") or options.get("format", "text") not in ("text", "table") or options.get("quiet")
    return not is_for_programs and all(stream is not None and stream.isatty() for stream in (sys.stdout, sys.stderr))


def _bar(total_bytes: int, done_bytes: int) -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("reading"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    bar = Progress(*columns, console=Console(stderr=True), transient=True)
    bar.add_task("", total=total_bytes, completed=done_bytes)
    return bar
