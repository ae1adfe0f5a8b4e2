"""Files of a test's captures: their names, and how a new capture gets there, whole and only if the test passed.

A server that the code under test starts several times has a capture for each server run: `weather.mcpspy`, `weather.run2.mcpspy`, ….
"""

import os
import shutil
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

from ..capture.store.folder import EXTENSION

FOLDER = "captures"
"""The folder beside the test's file."""

_MAX_BYTES = 100
"""Limit of a name that is made from a test's: some file systems take 143, and a digest, a number and the extension follow."""


def capture_path(name: str | os.PathLike[str] | None, *, test_file: Path, test: str, number: int) -> Path:
    """Return the path of the capture that a test calls `name`; without a name, of its `number`-th capture without one.

    Names are those of files in `captures/` beside the test; absolute paths stay. `test` is pytest's node id.
    """
    folder = test_file.parent / FOLDER
    if name is None:
        stem = _file_part(test.partition("::")[2]) + (f"+{number}" if number > 1 else "")
        return folder / test_file.stem / f"{stem}{EXTENSION}"
    path = folder / name
    return path if path.suffix == EXTENSION or path.is_file() else path.with_name(path.name + EXTENSION)


def server_runs(path: Path) -> list[Path]:
    """List the captures that exist of a server: of its first run, and of those after it."""
    paths = []
    number = 1
    while (run := _run_path(path, number)).exists():
        paths.append(run)
        number += 1
    return paths


def written_captures(capture: Path) -> list[Path]:
    """List the captures of all taps and mocks that were given the file `capture`, in order: `x.mcpspy`, `x-2.mcpspy`, …."""
    paths = capture.parent.glob(f"*{EXTENSION}")
    return sorted(paths, key=lambda path: (len(path.name), path.name))


def keep(recorded: Sequence[Path], path: Path) -> None:
    """Copy recorded captures to `path` and the names that follow from it, each with one rename; remove earlier ones there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    for number, capture in enumerate(recorded, 1):
        _copy(capture, _run_path(path, number))
    for stale in server_runs(path)[len(recorded) :]:
        stale.unlink()


def shown_path(path: Path) -> str:
    """Spell a path as a person who works in this folder would."""
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)


def _run_path(path: Path, number: int) -> Path:
    return path if number == 1 else path.with_name(f"{path.stem}.run{number}{path.suffix}")


def _copy(recorded: Path, path: Path) -> None:
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        shutil.copyfile(recorded, beside)  # as private as other files of the project: it is meant to be committed
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def _file_part(name: str) -> str:
    """Make a test's name a part of a file's name; where more than brackets and colons had to change, a digest keeps it unique."""
    function, _, parameters = name.partition("[")
    plain = function.replace("::", ".") + (f"-{parameters.removesuffix(']')}" if parameters else "")
    safe = "".join(letter if letter.isalnum() or letter in "._-" else "-" for letter in plain).strip(".-")
    safe = safe.encode()[:_MAX_BYTES].decode(errors="ignore")
    return safe if safe == plain else f"{safe}-{sha256(name.encode(errors='surrogatepass')).hexdigest()[:8]}"
