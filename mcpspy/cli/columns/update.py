"""Columns of captures brought up to date: a capture that has not changed since it was written is not written again.

A capture that cannot be read is a row too, with the reason: of a thousand captures, a damaged one fails no export.
"""

import gc
import os
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from ... import __version__
from ...capture.store.columns import FILE_EXTENSION, ColumnKey, column_key, column_path, remove_columns
from ...columns.batches import TextMask
from ...columns.files import LAST, ColumnFiles, files_of, state_in
from ...columns.tables import CaptureTables
from ...errors import CaptureError
from ...index.code import code_word
from ...index.file import identity
from ...transcript.findings.run import all_findings
from ..transcripts import CaptureSelection, header_of, transcript_of
from .masks import CredentialMask, ShareMask


class Updated(NamedTuple):
    """The result of an update: how many captures were written and how many unchanged, and files that could not be read, with why."""

    written: int
    unchanged: int
    unreadable: list[tuple[str, str]]
    repeated: list[tuple[str, str]]
    """Captures that were left out, because another file has the same one."""
    keys: frozenset[ColumnKey]
    """The keys of all captures that there are columns of now."""


def update(
    paths: Iterable[str], folder: str, *, payloads: bool = False, on_written: Callable[[str], None] = lambda path: None
) -> Updated:
    """Bring the columns of these captures in a folder up to date. Raises: OSError: if the folder cannot be written."""
    version = f"{__version__} {code_word()}"
    written = unchanged = 0
    unreadable: list[tuple[str, str]] = []
    repeated: list[tuple[str, str]] = []
    known: dict[ColumnKey, str] = {}
    for path in paths:
        key = column_key(header_of(path), os.path.basename(path))
        if key in known:
            repeated.append((path, known[key]))
            continue
        known[key] = path
        state = _state(path, version, payloads=payloads)
        if state is not None and state_in(column_path(folder, LAST, key)) == state:
            unchanged += 1
            continue
        problem = _write(path, folder, key, state, payloads=payloads)
        unnamed = column_key(None, os.path.basename(path))
        if key != unnamed:
            remove_columns(folder, unnamed)  # of the time before its header was there
        on_written(path)
        written += 1
        if problem:
            unreadable.append((path, problem))
    return Updated(written, unchanged, unreadable, repeated, frozenset(known))


def remove_gone(folder: str, keys: frozenset[ColumnKey]) -> None:
    """Remove the columns of captures that are not among these. Raises: OSError."""
    for path in files_of(folder, LAST):
        date = os.path.basename(os.path.dirname(path)).removeprefix("date=")
        key = ColumnKey(os.path.basename(path).removesuffix(FILE_EXTENSION), date)
        if key not in keys:
            remove_columns(folder, key)


def _state(path: str, version: str, *, payloads: bool) -> Any:
    """Return what columns depend on, as JSON; None if the file cannot be read."""
    known = identity(path)
    if known is None:
        return None
    facts = {name: getattr(known, name) for name in type(known).__slots__}
    return {"by": version, "payloads": payloads, **facts}


def _write(path: str, folder: str, key: ColumnKey, state: Any, *, payloads: bool) -> str:
    """Write the columns of a capture. Return why it could not be read; empty if it could."""
    problem = ""
    files = ColumnFiles(lambda table: column_path(folder, table, key))
    try:
        mask: TextMask = CredentialMask()
        size_bytes = _size_bytes(path)

        def tables() -> CaptureTables:
            return CaptureTables(key.capture_id, os.path.basename(path), size_bytes, files.feed, mask, payloads=payloads)

        try:
            transcript, _ = transcript_of(CaptureSelection(paths=(path,)), keeps_noise=False, packs_rows=True)
            mask = ShareMask(path) if payloads else mask
        except (CaptureError, OSError) as error:
            problem = error.reason if isinstance(error, CaptureError) else error.strerror or str(error)
            tables().write_unreadable(problem)
        else:
            transcript.findings = all_findings(transcript)
            gc.disable()  # rows are no garbage: else a sixth of the time is looking for some
            try:
                tables().write(transcript)
            finally:
                gc.enable()
        files.finish(state)
    except BaseException:
        files.discard()
        raise
    return problem


def _size_bytes(path: str) -> int:
    try:
        return os.path.getsize(path)
    except OSError:
        return 0
