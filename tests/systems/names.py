"""Names that differ in case alone are names of one file, as on macOS and Windows: see sitecustomize.py.

A file keeps the case that it was made with. mcpspy alone sees it so, also through the modules that do what their callers ask for.
"""

import builtins
import io
import os
import sys
from collections.abc import Callable
from typing import Any

ONE_PATH = "open stat lstat mkdir rmdir unlink remove listdir scandir readlink access chmod chdir utime truncate"
TWO_PATHS = "rename replace link"

THROUGH = {
    "pathlib",
    "pathlib._local",
    "pathlib._abc",
    "pathlib._os",
    "shutil",
    "tempfile",
    "os",
    "io",
    "genericpath",
    "posixpath",
    "windows",
    "names",
}
"""Modules that do what their callers ask for."""

_lstat, _listdir, _fspath = os.lstat, os.listdir, os.fspath


def asker() -> str:
    """Return the name of the module that asks, past those that ask for others."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__") in THROUGH:
        frame = frame.f_back
    return str(frame.f_globals.get("__name__", ""))


def ignore_case(is_ours: Callable[[str], bool]) -> None:
    """Let the modules of which `is_ours` is true find files by names in any case."""
    for paths, names in enumerate((ONE_PATH, TWO_PATHS), 1):
        for name in names.split():
            setattr(os, name, _finding(getattr(os, name), paths, is_ours))
    builtins.open = io.open = _finding(open, 1, is_ours)


def actual(path: str) -> str:
    """Return the path as it is on the disk: with the case of what exists, and its own of what does not."""
    try:
        _lstat(path)
        return path
    except (OSError, ValueError):
        pass
    folder, name = os.path.split(path)
    if not name:
        return path
    folder = actual(folder) if folder else folder
    try:
        found = [other for other in _listdir(folder or ".") if other.casefold() == name.casefold()]
    except (OSError, ValueError):
        return path
    return os.path.join(folder, found[0] if found else name)


def _finding(function: Callable[..., Any], paths: int, is_ours: Callable[[str], bool]) -> Callable[..., Any]:
    def call(*arguments: Any, **named: Any) -> Any:
        if "dir_fd" in named or not is_ours(asker()):
            return function(*arguments, **named)
        return function(
            *(
                actual(_fspath(path)) if at < paths and isinstance(path, str | os.PathLike) else path
                for at, path in enumerate(arguments)
            ),
            **named,
        )

    return call
