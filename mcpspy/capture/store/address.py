"""WHAT on the command line, the same for every verb: a text in; out the captures and rows that it names.

WHAT is `PATH`, `@`, `@1`, `LABEL` or `-`, each with or without `:7` or `:7..20` after it. Captures are read no further than the
catalog does, and rows are only numbers here.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass

from ...errors import AddressError, CaptureError
from ...records import SERVER, Frame, Open
from ..file.reader import read
from .catalog import CatalogEntry, Recording, entries, has_message, recordings
from .folder import EXTENSION, captures_folder

STDIN = "-"

MOMENT_NS = 2_000_000_000
"""A server that its client ends sooner, before the server had said anything, may not have been wanted."""
BESIDE_NS = 10_000_000_000
"""Captures of one client that began closer together were started for the same reason."""

_ONLY_PLAYED = "the store has captures of mocks and replays only; name one of them as mcpspy list does"


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """The target of a WHAT: paths of captures (`-` is standard input), and the first and last row, counted from 1."""

    captures: tuple[str, ...]
    rows: tuple[int, int] | None = None


def resolve(what: str = "@", *, skips_replays: bool = False, skips_mocks: bool = False) -> Address:
    """Find the captures and rows that `what` names.

    `@` is the newest recording, `@1` the one before it; captures without a message do not count, unless there are no others. For
    `@`, captures of replays do not count with `skips_replays`, nor those of mocks with `skips_mocks`; `@1` is what `mcpspy list`
    calls so. A label means its newest capture. The name of an existing file wins over all other meanings.
    Raises: AddressError: says what is wrong and where it was looked for. OSError: if the store cannot be read.
    """
    what = what or "@"
    if os.path.exists(what):
        return Address(captures=(_file(what, what),))
    name, rows = _split(what)
    if name == STDIN:
        return Address(captures=(STDIN,), rows=rows)
    if os.path.exists(name):
        return Address(captures=(_file(what, name),), rows=rows)
    known = entries()
    if rows and any(capture.label == what for capture in known):
        name, rows = what, None
    if name in ("", "@") or (name.startswith("@") and _is_number(name[1:])):
        back = int(name[1:] or 0)
        played = [(skips_replays and capture.is_replay) or (skips_mocks and capture.is_mock) for capture in known]
        counted = known if back else [capture for capture, is_played in zip(known, played, strict=True) if not is_played]
        if known and not counted:
            raise AddressError(what, _ONLY_PLAYED, searched_folder=captures_folder())
        return Address(captures=_recording(what, back, counted), rows=rows)
    return Address(captures=(_labelled(what, name, known),), rows=rows)


def rows_alone(what: str) -> tuple[int, int] | None:
    """Read the rows of a WHAT that names nothing else, such as `:7`; None for any other. Raises: AddressError."""
    name, rows = _split(what)
    return rows if not name and not os.path.exists(what) else None


def addresses(have_messages: Sequence[bool]) -> list[str]:
    """Return the address of each recording, the newest first: `@`, `@1`, …; empty for one without a message, unless none has any."""
    count = 0
    names = []
    for counts in have_messages if any(have_messages) else [True] * len(have_messages):
        names.append(("@" if not count else f"@{count}") if counts else "")
        count += counts
    return names


def _split(what: str) -> tuple[str, tuple[int, int] | None]:
    """Split `what` into a name and rows. An end that only looks like rows (`a:b`) belongs to the name."""
    name, colon, tail = what.rpartition(":")
    first, dots, last = tail.partition("..")
    if not colon or not _is_number(first) or (dots and not _is_number(last)):
        return what, None
    rows = int(first), int(last or first)
    if rows[0] < 1 or rows[1] < rows[0]:
        raise AddressError(what, f"there are no rows {tail}: they count from 1, upwards, as :7 or :7..20")
    return name, rows


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= len("1000000000")


def _file(what: str, path: str) -> str:
    if os.path.isdir(path):
        raise AddressError(what, "this is a folder; name a capture in it")
    return path


def _recording(what: str, back: int, known: list[CatalogEntry]) -> tuple[str, ...]:
    """Return the paths of the recording that is `back` before the newest."""
    if not known:
        raise _nothing_yet(what)
    counted: list[Recording] = []
    others: list[Recording] = []
    for recording in recordings(known):
        (counted if any(map(has_message, recording.entries)) else others).append(recording)
        if len(counted) > back:
            break
    candidates = counted or others
    if back >= len(candidates):
        there = "is only one recording" if len(candidates) == 1 else f"are only {len(candidates)} recordings"
        raise AddressError(what, f"there {there}", searched_folder=captures_folder())
    return tuple(capture.path for capture in candidates[back].entries)


def _labelled(what: str, name: str, known: list[CatalogEntry]) -> str:
    """Return the path of the newest capture with this label, or of this name in the store."""
    candidates = [capture for capture in known if capture.header and capture.label == name]
    if candidates:
        return _newest(candidates).path
    path = os.path.join(captures_folder(), name.removesuffix(EXTENSION) + EXTENSION)
    if os.sep not in name and os.path.exists(path):
        return path
    if os.sep in name or name.rpartition(":")[0].endswith(EXTENSION) or name.endswith(EXTENSION):
        if os.path.exists(what.rpartition(":")[0]):
            raise AddressError(what, "rows are named by their numbers, as :7 or :7..20")
        raise AddressError(what, "there is no such file; mcpspy list shows what has been recorded")
    if not known:
        raise _nothing_yet(what)
    from difflib import get_close_matches

    close = get_close_matches(name, {capture.label for capture in known}, n=1)
    hint = f"; is it {close[0]}?" if close else "; mcpspy list shows what there is"
    raise AddressError(what, f"there is no such file, and no capture has this label{hint}", searched_folder=captures_folder())


def _newest(candidates: list[CatalogEntry]) -> CatalogEntry:
    """Return the newest capture that counts, of captures with one label, the newest first.

    Some clients start a server several times at once and end all but one process: those do not hide the one that they keep.
    """
    newest = next(filter(has_message, candidates), candidates[0])
    if not _was_dropped(newest):
        return newest
    siblings = (capture for capture in candidates if capture.parent == newest.parent)
    beside = [capture for capture in siblings if abs(capture.begin_ns - newest.begin_ns) < BESIDE_NS]
    return max(
        filter(has_message, beside), key=lambda capture: (capture.live, capture.begin_ns + capture.last_ns), default=newest
    )


def _was_dropped(capture: CatalogEntry) -> bool:
    """Return whether the client ended the server by a signal, or within a moment and before the server had said anything."""
    if capture.live:
        return False
    why = "SIGKILL" if capture.end is None else capture.end.why
    if why.startswith("SIG"):
        return True
    return why not in ("server exited", "not started") and capture.last_ns < MOMENT_NS and not _has_answer(capture)


def _has_answer(capture: CatalogEntry) -> bool:
    outputs = set()
    try:
        for record in read(capture.path):
            if isinstance(record, Open) and record.sender == SERVER and record.name != "stderr":
                outputs.add(record.stream)
            if isinstance(record, Frame) and record.stream in outputs:
                return True
    except (OSError, CaptureError):
        pass
    return False


def _nothing_yet(what: str) -> AddressError:
    advice = "mcpspy wrap inserts mcpspy between your clients and their servers, and mcpspy demo shows a small example"
    reason = f"nothing has been recorded yet; {advice}"
    return AddressError(what, reason, searched_folder=captures_folder())
