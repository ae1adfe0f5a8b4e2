"""The files of which a folder has columns, in a list beside them: to see that a file did not change takes one `stat`.

The list saves time and nothing else. What it does not have, or has of another version, is looked at in the files of columns.
So is what was written by other code: the rows and findings of a capture may change with any rule.
"""

from __future__ import annotations

import json
import os
import stat
import sys
from binascii import crc32
from collections.abc import Collection, Iterable, Iterator
from typing import Any, Final

import click

from ... import __version__
from ...capture.store.columns import ColumnKey, column_path
from ...capture.store.folder import is_live

NAME: Final = "known.json"

_PACKAGE: Final = os.path.dirname(os.path.dirname(os.path.dirname(__file__)))
_ROOMS: Final = (
    "", "capture/file", "columns", "transcript", "views/text", "views/timeline", "wire",
)  # fmt: skip
"""Those that make columns of a capture."""


def written_by(*, payloads: bool) -> str:
    """Return what columns depend on beside their capture, as a word."""
    return f"{__version__} {_code_word()}{' with payloads' * payloads}"


class KnownFiles:
    """The list of a folder, for columns that were written by the code `by`."""

    def __init__(self, folder: str, by: str) -> None:
        self._path = os.path.join(folder, NAME)
        self._folder = folder
        self._by = by
        self._files = self._read()
        self._saved = dict(self._files)

    def key(self, path: str) -> ColumnKey | None:
        """Return the key under which the columns of a file are, as it is now; None if that is not known."""
        entry = self._files.get(os.path.abspath(path))
        if entry is None or entry[0] != file_facts(path):
            return None
        key = ColumnKey(entry[1], entry[2])
        return key if os.path.exists(column_path(self._folder, "captures", key)) else None

    def are(self, paths: Collection[str]) -> bool:
        """Return whether these are all files of the list, and did not change."""
        return len(paths) == len(self._files) and all(self.key(path) is not None for path in paths)

    def facts(self, path: str) -> list[int] | None:
        """Return what is noted of a file, to be taken before it is read; None of one that is still recorded, which may end unseen."""
        return None if is_live(path) else file_facts(path)

    def note(self, path: str, facts: list[int] | None, key: ColumnKey) -> None:
        """Note that the columns of a file are there."""
        if facts is None:
            self._files.pop(os.path.abspath(path), None)
        else:
            self._files[os.path.abspath(path)] = (facts, *key)

    def forget_others(self, paths: Iterable[str]) -> None:
        """Forget all files but these."""
        kept = set(map(os.path.abspath, paths))
        self._files = {path: entry for path, entry in self._files.items() if path in kept}

    def save(self) -> None:
        """Write the list if it has changed. Raises: OSError."""
        if self._files == self._saved:
            return
        temporary = f"{self._path}.{os.getpid()}"
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(fd, "w", encoding="utf-8", errors="surrogatepass") as file:
            json.dump({"by": self._by, "files": self._files}, file)
        os.replace(temporary, self._path)
        self._saved = dict(self._files)

    def _read(self) -> dict[str, tuple[list[int], str, str]]:
        try:
            with open(self._path, encoding="utf-8", errors="surrogatepass") as file:
                data: Any = json.load(file)
            if data["by"] != self._by:
                return {}
            files = data["files"].items()
            return {path: ([int(fact) for fact in facts], str(name), str(date)) for path, (facts, name, date) in files}
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return {}


def are_alike(folder: str) -> bool:
    """Return whether all columns of a folder are of one version, with or without payloads, so that all files of a table are alike."""
    try:
        with open(os.path.join(folder, NAME), encoding="utf-8", errors="surrogatepass") as file:
            known = len(json.load(file)["files"])
        dates = os.scandir(os.path.join(folder, "captures"))
        return known == sum(len(os.listdir(date)) for date in dates)
    except (OSError, ValueError, KeyError, TypeError):
        return False


def file_facts(path: str) -> list[int] | None:
    """Return what changes with the content of a file; None if there is no regular file."""
    try:
        facts = os.stat(path)
    except OSError:
        return None
    return [facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns, facts.st_ino] if stat.S_ISREG(facts.st_mode) else None


def _code_word() -> str:
    """Return a word for the code as it is installed here, with the packages beside it: some decode what others cannot.

    Files are compared by their status and not read, which takes 3 ms and not 20: no content changes without the time of change.
    """
    packages = os.stat(os.path.dirname(os.path.dirname(click.__file__))).st_mtime_ns
    files = sorted(status for room in _ROOMS for status in _statuses(os.path.join(_PACKAGE, room), deep=bool(room)))
    return f"{crc32(repr((sys.version, packages, files)).encode()):08x}"


def _statuses(folder: str, *, deep: bool) -> Iterator[tuple[str, int, int, int]]:
    """Yield name, size, inode and time of change of each file in a folder, and with `deep` in those below it."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir():
                if deep and entry.name != "__pycache__":
                    yield from _statuses(entry.path, deep=True)
            else:
                facts = entry.stat()
                yield entry.path, facts.st_size, facts.st_ino, facts.st_ctime_ns
