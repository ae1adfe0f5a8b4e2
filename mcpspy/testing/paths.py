"""Where the captures of a test lie, and how a recording gets there: whole, and only if the test went well.

A server that the code under test starts several times has a capture for each run: `weather.mcpspy`, `weather.run2.mcpspy`, ….
"""

import os
import shutil
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

from ..capture.store.folder import EXTENSION

FOLDER = "captures"
"""Beside the test's file."""

_MAX_BYTES = 100
"""Of a name that is made from a test's: some file systems take 143, and a digest, the number of a run and an extension follow."""


def place(name: str | os.PathLike[str] | None, *, test_file: Path, test: str, number: int) -> Path:
    """The capture that a test calls `name`; without a name, its `number`-th that has none.

    Names are those of files in `captures/` beside the test; paths that are absolute stay. `test` is pytest's node id.
    """
    folder = test_file.parent / FOLDER
    if name is None:
        stem = _file_part(test.partition("::")[2]) + (f"+{number}" if number > 1 else "")
        return folder / test_file.stem / f"{stem}{EXTENSION}"
    path = folder / name
    return path if path.suffix == EXTENSION or path.is_file() else path.with_name(path.name + EXTENSION)


def runs(path: Path) -> list[Path]:
    """The captures that are there of a recording: its first run, and those after it."""
    found = []
    number = 1
    while (one := _run(path, number)).exists():
        found.append(one)
        number += 1
    return found


def made(capture: Path) -> list[Path]:
    """The captures that taps and mocks made who were all told to record to `capture`, in that order: `x.mcpspy`, `x-2.mcpspy`, …."""
    found = capture.parent.glob(f"*{EXTENSION}")
    return sorted(found, key=lambda one: (len(one.name), one.name))


def land(recorded: Sequence[Path], path: Path) -> None:
    """Put the captures of a recording where they belong, each with one rename, and take away those of an earlier one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    for number, one in enumerate(recorded, 1):
        _land(one, _run(path, number))
    for stale in runs(path)[len(recorded) :]:
        stale.unlink()


def told(path: Path) -> str:
    """A path as a person at this desk would write it."""
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)


def _run(path: Path, number: int) -> Path:
    return path if number == 1 else path.with_name(f"{path.stem}.run{number}{path.suffix}")


def _land(recorded: Path, path: Path) -> None:
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        shutil.copyfile(recorded, beside)  # as private as other files of the project: it is meant to be committed
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def _file_part(name: str) -> str:
    """A test's name as a part of a file's; where more than brackets and colons had to change, a digest tells it from others."""
    function, _, parameters = name.partition("[")
    plain = function.replace("::", ".") + (f"-{parameters.removesuffix(']')}" if parameters else "")
    safe = "".join(one if one.isalnum() or one in "._-" else "-" for one in plain).strip(".-")
    safe = safe.encode()[:_MAX_BYTES].decode(errors="ignore")
    return safe if safe == plain else f"{safe}-{sha256(name.encode(errors='surrogatepass')).hexdigest()[:8]}"
