"""The captures that are played for a WHAT: sessions that can be played from their beginning, and the probes before them.

    client  weather  ├ server/discover ┤  ├ tools/list … ┤      a client that starts its server twice: a probe, and a session that
                                                               has no handshake of its own

Used by the verbs that play a server or a client; others show what was named.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import islice

from ...capture.file.reader import read
from ...capture.store.address import resolve
from ...capture.store.catalog import entries, entry, recordings
from ...errors import AddressError, CaptureError
from ...records import CLIENT
from ...transcript.mcp.codes import PROTOCOL_VERSION
from ...transcript.mcp.methods import DISCOVER, INITIALIZE, OPENINGS
from ...transcript.transcribe import transcribe
from ..new_capture import report

FIRST_RECORDS = 1000
"""The records of a capture among which its handshake is looked for."""

MAX_BACK = 50
"""The number of recordings before the newest that are looked at."""


def playable(what: str, paths: Sequence[str]) -> tuple[str, ...]:
    """Return the captures to play for a WHAT that names `paths`: those, or older ones if none of those has a session.

    Of several sessions of one server in an imported file it is the newest. What is chosen is reported.
    """
    if os.path.exists(what):
        return _newest(what, paths) if len(paths) > 1 else tuple(paths)
    if not any(map(has_session, paths)):
        for older in _older(what, paths):
            if any(map(has_session, older)):
                report(f"mcpspy: {' and '.join(paths)}: no session begins there, so {' and '.join(older)} is played")
                return older
    return tuple(paths)


def one_session(what: str, paths: Sequence[str]) -> tuple[str, ...]:
    """Return the newest session if `paths` are several captures of one server, and report that; else `paths`."""
    return _newest(what, paths) if len(paths) > 1 and len(set(map(_label, paths))) == 1 else tuple(paths)


def probes_of(path: str) -> tuple[str, ...]:
    """Return the captures of the store in which the client of a session without a handshake had asked for the server's era."""
    if not has_session(path) or _opening(path)[0] & OPENINGS:
        return ()
    for recording in recordings(entries()):
        beside = [capture.path for capture in recording.entries]
        if path in beside:
            others = (other for other in beside[: beside.index(path)] if _label(other) == _label(path))
            return tuple(other for other in others if not has_session(other) and DISCOVER in _opening(other)[0])
    return ()


def has_session(path: str) -> bool:
    """Return whether a capture has `initialize`, or requests of the modern era besides a probe: these need no handshake."""
    methods, is_modern = _opening(path)
    return INITIALIZE in methods or (is_modern and bool(methods - OPENINGS))


@cache
def _opening(path: str) -> tuple[frozenset[str], bool]:
    """Return the methods that the client used first, and whether it is of the modern era.

    A FIFO is not opened, since what was read from it would be gone. What is no capture is reported when it is played.
    """
    if not os.path.isfile(path):
        return frozenset(), False
    try:
        exchanges = transcribe(islice(read(path), FIRST_RECORDS), with_findings=False).exchanges
    except (CaptureError, OSError):
        return frozenset(), False
    requests = [exchange.request for exchange in exchanges if exchange.sender == CLIENT]
    is_modern = any(PROTOCOL_VERSION.encode() in request.raw for request in requests)
    return frozenset(request.method or "" for request in requests), is_modern


def _older(what: str, paths: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Yield what a label or `@` named before the newest."""
    if what in ("", "@"):
        for back in range(1, MAX_BACK):
            try:
                yield resolve(f"@{back}").captures
            except AddressError:
                return
    yield from (
        (capture.path,) for capture in entries() if capture.header and capture.label == what and capture.path not in paths
    )


def _newest(what: str, paths: Sequence[str]) -> tuple[str, ...]:
    """Return the newest session of each server, in place of all."""
    chosen = {_label(path): path for path in sorted(paths, key=has_session)}
    if len(chosen) < len(paths):
        numbers = ", ".join(f"{label}: {paths.index(path) + 1}" for label, path in chosen.items())
        report(f"mcpspy: {what} is {len(paths)} sessions; of each server the newest that has a handshake is played ({numbers})")
    return tuple(chosen.values())


def _label(path: str) -> str:
    found = entry(path)
    return found.label if found else ""
