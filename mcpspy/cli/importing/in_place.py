"""Captures in place of files that can be imported: temporary ones, which go when the command ends."""

from __future__ import annotations

import atexit
import os
import sys
import tempfile
from functools import cache
from shutil import rmtree
from typing import BinaryIO

from ...capture.store.address import STDIN
from ...errors import ImportFileError
from ...imports.formats import HEAD_BYTES
from .convert import CaptureFiles, copy_all
from .open_source import OpenedSource, can_be_imported, is_format, open_source, spooled


def captures_of(path: str) -> tuple[str, ...]:
    """Return the captures made of a file, or the path if it cannot be imported. Raises: ImportFileError; OSError."""
    if not os.path.isfile(path) or not can_be_imported(path):
        return (path,)  # if it is no capture, its reader says so
    return _imported(os.path.abspath(path), path)


def capture_of_stdin() -> BinaryIO:
    """Return the capture made of standard input, or a copy of standard input if it cannot be imported.

    Raises: ImportFileError: if it has several sessions; OSError.
    """
    copy = spooled(sys.stdin.buffer)
    if not is_format("standard input", copy.read(HEAD_BYTES)):
        copy.seek(0)
        return copy  # its reader says that it is no capture
    source = open_source(STDIN, copy=copy)
    files = _made(source, STDIN, "stdin")
    if len(files) > 1:
        raise ImportFileError(
            "standard input", f"{len(files)} sessions are in it, and this shows one; write it to a file, and name that"
        )
    return open(files[0], "rb")


@cache
def _imported(_absolute: str, path: str) -> tuple[str, ...]:
    """Import a file, once for a command that names it twice."""
    return _made(open_source(path), path, os.path.basename(path))


def _made(source: OpenedSource, path: str, name: str) -> tuple[str, ...]:
    files = CaptureFiles(os.path.join(_folder(), f"{name}.mcpspy"))
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
