"""Columns of captures brought up to date: a capture that has not changed since it was written is not written again.

A capture that cannot be read is a row too, with the reason: of a thousand captures, a damaged one fails no export.
"""

import gc
import os
from collections.abc import Collection, Iterable, Iterator
from typing import Any, NamedTuple

from ...capture.store.columns import FILE_EXTENSION, ColumnKey, column_key, column_path, remove_columns
from ...capture.store.folder import is_live
from ...columns.files import LAST, ColumnFiles, files_of, state_in
from ...columns.tables import CaptureTables
from ...errors import CaptureError
from ...transcript.findings.run import all_findings
from ...transcript.model import Transcript
from ..progress import ReadingProgress, reading_many
from ..transcripts import CaptureSelection, header_of, transcript_of
from .known import KnownFiles, file_facts, written_by
from .masks import ShareMask


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
    paths: Collection[str],
    folder: str,
    *,
    payloads: bool = False,
    forgets_others: bool = False,
    store_key: bytes | None = None,
) -> Updated:
    """Bring the columns of these captures in a folder up to date. `forgets_others` says that it has those of no others.

    `store_key` is for the pseudonyms of secrets; None: that of the store.
    Raises: OSError: if the folder cannot be written.
    """
    by = written_by(payloads=payloads)
    files = KnownFiles(folder, by)
    written = unchanged = 0
    unreadable: list[tuple[str, str]] = []
    repeated: list[tuple[str, str]] = []
    known: dict[ColumnKey, str] = {}
    with reading_many(paths) as progress:
        for path in _one_by_one(paths, progress):
            key = unchanged_key = files.key(path)
            if key is None:
                key = column_key(header_of(path), os.path.basename(path))
            if key in known:
                repeated.append((path, known[key]))
                continue
            known[key] = path
            if unchanged_key is not None:
                unchanged += 1
                continue
            facts, state = files.facts(path), _state(path, by)
            if state is not None and state_in(column_path(folder, LAST, key)) == state:
                unchanged += 1
            else:
                problem = _write(path, folder, key, state, ShareMask(store_key), payloads=payloads)
                unnamed = column_key(None, os.path.basename(path))
                if key != unnamed:
                    remove_columns(folder, unnamed)  # of the time before its header was there
                written += 1
                if problem:
                    unreadable.append((path, problem))
            files.note(path, None if state is None else facts, key)
    if forgets_others:
        files.forget_others(paths)
    files.save()
    return Updated(written, unchanged, unreadable, repeated, frozenset(known))


def _one_by_one(paths: Iterable[str], progress: ReadingProgress) -> Iterator[str]:
    """Yield the paths, and note of each that it was read, or need not be."""
    done_bytes = 0
    for path in paths:
        yield path
        done_bytes += _size_bytes(path)
        progress.add(done_bytes - progress.done_bytes)


def remove_gone(folder: str, keys: frozenset[ColumnKey]) -> None:
    """Remove the columns of captures that are not among these. Raises: OSError."""
    for path in files_of(folder, LAST):
        date = os.path.basename(os.path.dirname(path)).removeprefix("date=")
        key = ColumnKey(os.path.basename(path).removesuffix(FILE_EXTENSION), date)
        if key not in keys:
            remove_columns(folder, key)


def _state(path: str, by: str) -> Any:
    """Return what columns depend on, as JSON; None if the file cannot be read."""
    facts = file_facts(path)
    return None if facts is None else {"by": by, "is_live": is_live(path), "facts": facts}


def _write(path: str, folder: str, key: ColumnKey, state: Any, mask: ShareMask, *, payloads: bool) -> str:
    """Write the columns of a capture. Return why it could not be read; empty if it could."""
    problem = ""
    files = ColumnFiles(lambda table: column_path(folder, table, key))
    tables = CaptureTables(key.capture_id, os.path.basename(path), _size_bytes(path), files.feed, mask, payloads=payloads)
    gc.disable()  # rows are no garbage: else a sixth of the time is looking for some
    try:
        try:
            if payloads or _has_bare_heads(path):
                mask.learn_files(path)
            transcript = _transcript(path)
            mask.learn(transcript)
        except (CaptureError, OSError) as error:
            problem = error.reason if isinstance(error, CaptureError) else error.strerror or str(error)
            tables.write_unreadable(problem)
        else:
            tables.write(transcript)
        files.finish(state)
    except BaseException:
        files.discard()
        raise
    finally:
        gc.enable()
    return problem


def _transcript(path: str) -> Transcript:
    """Read a capture, and find all that is wrong in it. Raises: CaptureError; OSError."""
    transcript, _ = transcript_of(CaptureSelection(paths=(path,)), keeps_noise=False)
    transcript.findings = all_findings(transcript)
    return transcript


def _has_bare_heads(path: str) -> bool:
    """Return whether heads were recorded with their secrets, which may be in texts too."""
    header = header_of(path)
    return header is not None and header.redaction == "none"


def _size_bytes(path: str) -> int:
    try:
        return os.path.getsize(path)
    except OSError:
        return 0
