"""WHAT on the command line, the same for every verb: a text in; out the captures and rows that it names.

WHAT is `PATH`, `@`, `@1`, `@3f0c92ab`, `LABEL` or `-`, each with or without `:7` or `:7..20` after it. Captures are read no further
than the catalog does, and rows are only numbers here.
"""

import os
from collections.abc import Mapping, Sequence

import msgspec

from ...errors import AddressError, CaptureError
from ...lazy_pattern import lazy_pattern
from ...records import SERVER, Frame, Open
from ..file.reader import read
from .catalog import CatalogEntry, Recording, elsewhere, entries, has_failed, is_counted, recordings
from .folder import EXTENSION, captures_folder

STDIN = "-"

MOMENT_NS = 2_000_000_000
"""A server that its client ends sooner, before the server had said anything, may not have been wanted."""
BESIDE_NS = 10_000_000_000
"""Captures of one client that began closer together were started for the same reason."""

ID_DIGITS = 4
"""Least number of digits of a recording's id that name it."""

_ID = lazy_pattern(rf"@[0-9a-f]{{{ID_DIGITS},8}}")

_ONLY_PLAYED = "the store has captures of mocks and replays only; name one of them as mcpspy list does"


class Address(msgspec.Struct, frozen=True, kw_only=True):
    """The target of a WHAT: paths of captures (`-` is standard input), and the first and last row, counted from 1.

    `clients` has pid and start of the client's process for captures that other clients share: only its rows are meant.
    """

    captures: tuple[str, ...]
    rows: tuple[int, int] | None = None
    clients: Mapping[str, tuple[int, int]] = {}


def resolve(what: str = "@") -> Address:
    """Find the captures and rows that `what` names.

    `@` is the newest recording, `@1` the one before it; captures without a message do not count, unless their server failed, or there
    are no others; nor do those of mocks and replays, which the user did not mean. `@` and digits of its id is any recording.
    A label means its newest capture. The name of an existing file wins over all other meanings. A label
    wins over a folder of the same name.
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
    if _ID.fullmatch(name) and (named := _with_id(what, name[1:], known)):
        return _of_recording(named, rows)
    if name in ("", "@") or (name.startswith("@") and _is_number(name[1:])):
        return _of_recording(_recording(what, int(name[1:] or 0), known), rows)
    return Address(captures=(_labelled(what, name, known),), rows=rows)


def rows_alone(what: str) -> tuple[int, int] | None:
    """Read the rows of a WHAT that names nothing else, such as `:7`; None for any other. Raises: AddressError."""
    name, rows = _split(what)
    return rows if not name and not os.path.exists(what) else None


def addresses(grouped: Sequence[Recording]) -> list[str]:
    """Return the address of each recording, the newest first: `@`, `@1`, …; empty for one that they do not count.

    Those are mocks and replays, and recordings that say nothing, unless no other says anything.
    """
    count = 0
    names = []
    are_own = [not recording.is_played for recording in grouped]
    have_messages = [
        is_own and any(map(is_counted, recording.entries)) for is_own, recording in zip(are_own, grouped, strict=True)
    ]
    for counts in have_messages if any(have_messages) else are_own:
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
    """Return the path, or for a folder that of the newest capture with its name as label. Raises: AddressError."""
    if not os.path.isdir(path):
        return path
    candidates = _with_label(path, entries())
    if not candidates:
        raise AddressError(what, "this is a folder; name a capture in it")
    return _newest(candidates).path


def _of_recording(recording: Recording, rows: tuple[int, int] | None) -> Address:
    shared = {capture.path: capture.process.key for capture in recording.entries if capture.process is not None}
    return Address(captures=tuple(capture.path for capture in recording.entries), rows=rows, clients=shared)


def _with_id(what: str, digits: str, known: list[CatalogEntry]) -> Recording | None:
    """Return the recording whose id begins with these digits. Raises: AddressError: if there are several."""
    named = [recording for recording in recordings(known) if any(capture.id.startswith(digits) for capture in recording.own)]
    if len(named) > 1:
        raise AddressError(
            what, f"{len(named)} recordings have an id that begins so; give more digits of it, as mcpspy list does"
        )
    return named[0] if named else None


def _recording(what: str, back: int, known: list[CatalogEntry]) -> Recording:
    """Return the recording that is `back` before the newest."""
    if not known:
        raise _nothing_yet(what)
    counted: list[Recording] = []
    others: list[Recording] = []
    is_played = False
    for recording in recordings(known):
        if recording.is_played:
            is_played = True
            continue
        (counted if any(map(is_counted, recording.entries)) else others).append(recording)
        if len(counted) > back:
            break
    candidates = counted or others
    if not candidates and is_played:
        raise AddressError(what, _ONLY_PLAYED, searched_folder=captures_folder())
    if back >= len(candidates):
        there = "is only one recording" if len(candidates) == 1 else f"are only {len(candidates)} recordings"
        raise AddressError(what, f"there {there}; mcpspy list --all shows what there is", searched_folder=captures_folder())
    return candidates[back]


def _labelled(what: str, name: str, known: list[CatalogEntry]) -> str:
    """Return the path of the newest capture with this label, or of this name in the store."""
    candidates = _with_label(name, known)
    if candidates:
        return _newest(candidates).path
    path = os.path.join(captures_folder(), name.removesuffix(EXTENSION) + EXTENSION)
    if not os.path.dirname(name) and os.path.exists(path):
        return path
    if os.path.dirname(name) or name.rpartition(":")[0].endswith(EXTENSION) or name.endswith(EXTENSION):
        if os.path.exists(what.rpartition(":")[0]):
            raise AddressError(what, "rows are named by their numbers, as :7 or :7..20")
        raise AddressError(what, "there is no such file; mcpspy list shows what has been recorded")
    if not known:
        raise _nothing_yet(what)
    from difflib import get_close_matches

    close = get_close_matches(name, {capture.label for capture in known}, n=1)
    hint = f"; is it {close[0]}?" if close else "; mcpspy list shows what there is"
    raise AddressError(what, f"there is no such file, and no capture has this label{hint}", searched_folder=captures_folder())


def _with_label(label: str, known: list[CatalogEntry]) -> list[CatalogEntry]:
    return [capture for capture in known if capture.header and capture.label == label]


def _newest(candidates: list[CatalogEntry]) -> CatalogEntry:
    """Return the newest capture that counts, of captures with one label, the newest first.

    Some clients start a server several times at once and end all but one process: those do not hide the one that they keep.
    """
    newest = next(filter(is_counted, candidates), candidates[0])
    if not _was_dropped(newest):
        return newest
    siblings = (capture for capture in candidates if capture.parent == newest.parent)
    beside = [capture for capture in siblings if abs(capture.begin_ns - newest.begin_ns) < BESIDE_NS]
    return max(
        filter(is_counted, beside), key=lambda capture: (capture.live, capture.begin_ns + capture.last_ns), default=newest
    )


def _was_dropped(capture: CatalogEntry) -> bool:
    """Return whether the client ended the server by a signal, or within a moment and before the server had said anything."""
    if capture.live or has_failed(capture):
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
    reason = f"nothing has been recorded yet; {'; '.join(filter(None, (elsewhere(), advice)))}"
    return AddressError(what, reason, searched_folder=captures_folder())
