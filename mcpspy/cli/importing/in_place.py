"""Captures in place of files that can be imported: temporary ones, which go when the command ends."""

from __future__ import annotations

import atexit
import os
import tempfile
from functools import cache
from shutil import rmtree

from .convert import CaptureFiles, copy_all
from .open_source import can_be_imported, open_source


def captures_of(paths: tuple[str, ...]) -> tuple[str, ...]:
    """Return these paths, and for each that can be imported the captures made of it. Raises: ImportFileError; OSError."""
    return tuple(capture for path in paths for capture in _captures(path))


def _captures(path: str) -> tuple[str, ...]:
    if not os.path.isfile(path) or not can_be_imported(path):
        return (path,)  # if it is no capture, its reader says so
    return _imported(os.path.abspath(path), path)


@cache
def _imported(_absolute: str, path: str) -> tuple[str, ...]:
    """Import a file, once for a command that names it twice."""
    source = open_source(path)
    files = CaptureFiles(os.path.join(_folder(), f"{os.path.basename(path)}.mcpspy"))
    with source.file:
        copy_all(source.importer, source.chunks(), files)
    if not files.captures:
        raise source.nothing(path)
    return tuple(capture.path for capture in files.captures)


@cache
def _folder() -> str:
    folder = tempfile.mkdtemp(prefix="mcpspy-import-")
    atexit.register(rmtree, folder, ignore_errors=True)
    return folder
