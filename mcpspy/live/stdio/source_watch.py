"""The files of a server: which they are, and a thread that says when they have changed."""

from __future__ import annotations

import os
from _thread import start_new_thread
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ...platform.watch import Watch

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

SOURCES: Final = frozenset(
    ".py .js .mjs .cjs .ts .mts .cts .rb .php .lua .pl .sh .jar .class".split()  # noqa: SIM905 - a line, not fourteen
)
"""The endings of files that count in a folder: others are often what a server itself writes."""

NO_SOURCES: Final = frozenset({"node_modules", "__pycache__", "venv", "site-packages"})
"""Folders that do not count, and neither do those whose names begin with a dot."""

MAX_FILES: Final = 10_000

MAX_NAME_BYTES: Final = 4000

QUIET_S: Final = 0.1
"""Time without a change after which a change is over: an editor or a compiler writes several files."""


def default_path(argv: Sequence[str]) -> str:
    """Return the folder of the program that a command names, the program itself, or our own folder. Empty if that is no project's."""
    for word in argv[1:]:
        if os.path.isfile(word):
            return os.path.dirname(os.path.abspath(word))
    if "/" in argv[0] and len(argv) == 1:
        return argv[0]
    folder = os.getcwd()
    return "" if folder in ("/", os.path.expanduser("~")) else folder


def watch_in_a_thread(paths: Sequence[str]) -> int:
    """Return a descriptor from which the name of a changed file can be read, one to a line, after changes have come to rest.

    What changes from now on counts, also before the thread comes to run.
    """
    reading, writing = os.pipe()
    start_new_thread(_watch, (paths, writing, _states(paths)))
    return reading


def _watch(paths: Sequence[str], writing: int, before: dict[str, tuple[int, int]]) -> None:
    """Write the name of a changed file, whenever files have changed and changed no more for a moment. Runs in a thread of its own."""
    watch = Watch()
    while True:
        now = _states(paths)
        for path in [*paths, *_folders(paths), *now]:
            watch.add(path)  # before the files are looked at again, so that no change is missed
        now = _states(paths)
        if now == before:
            watch.wait()
            continue
        if watch.wait(QUIET_S):
            continue  # more is changing
        changed = [path for path in (*now, *before) if now.get(path) != before.get(path)]
        before = now
        os.write(writing, changed[0].encode("utf-8", "surrogateescape")[:MAX_NAME_BYTES] + b"\n")


def _states(paths: Sequence[str]) -> dict[str, tuple[int, int]]:
    """Return size and time of change of each file that counts."""
    states: dict[str, tuple[int, int]] = {}
    for path in (path for given in paths for path in _files(given)):
        try:
            status = os.stat(path)
        except OSError:
            continue
        states[path] = (status.st_size, status.st_mtime_ns)
        if len(states) >= MAX_FILES:
            break
    return states


def _files(path: str) -> Iterator[str]:
    if not os.path.isdir(path):
        yield path
        return
    for folder, folders, names in os.walk(path):
        folders[:] = [name for name in folders if _counts(name)]
        yield from (os.path.join(folder, name) for name in names if Path(name).suffix in SOURCES and _counts(name))


def _folders(paths: Sequence[str]) -> Iterator[str]:
    for path in paths:
        if not os.path.isdir(path):
            yield os.path.dirname(os.path.abspath(path))  # an editor may replace the file by another
            continue
        for folder, folders, _ in os.walk(path):
            folders[:] = [name for name in folders if _counts(name)]
            yield folder


def _counts(name: str) -> bool:
    return not name.startswith(".") and name not in NO_SOURCES
