"""The state of things, for `wrap --status`: which taps run, what the store takes and may take, and the last errors in it."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from ...capture.file.reader import sound_record
from ...capture.store.catalog import CatalogEntry, entries
from ...capture.store.folder import captures_folder
from ...capture.store.pruning import pruned
from ...capture.store.quota import quota_bytes, taken
from ...errors import CaptureError
from ...records import Exit, Gap, Note, Record
from ...setup.address import port_of
from ...transcript.findings.rule import Severity
from ...views.store.usage import keeping_line
from ...views.text.escape import safe_text
from ...views.text.line import Line
from ...views.text.units import size, wall_time
from ..transcripts import transcript_of

SHOWN_ERRORS = 5
LOOKED_CAPTURES = 10
WHOLE_BYTES = 1 << 18
"""A capture up to this size is understood whole, for its findings: all ten together take half a second at most."""
TAIL_BYTES = 1 << 18
"""Of a larger one only this much of its end is looked at, for what its tap said itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mishap:
    """One error of a capture: when it was, as Unix time, and what; `rule` is the finding's, or the kind of record."""

    wall_ns: int
    label: str
    rule: str
    text: str
    path: str


@cache
def known() -> list[CatalogEntry]:
    """The captures of the store, the newest first; looked at once."""
    return entries()


def served_ports() -> frozenset[int]:
    """The ports of this machine at which HTTP taps listen now."""
    listening = (str(one.header.tapped.get("listen", "")) for one in known() if one.live and one.header)
    return frozenset(filter(None, map(port_of, listening)))


def keeping() -> str:
    """What the store takes, what it may take, and what becomes of it then."""
    files, taken_bytes = taken()
    return keeping_line(files, taken_bytes, quota_bytes())


def status_lines() -> list[Line]:
    """Which taps run now, where captures are and what they take, and the last errors."""
    live = [one for one in known() if one.live]
    lines: list[Line] = [[], [("records now", "strong"), ("" if live else "  nothing", "dim")]]
    for one in live:
        listen = str(one.header.tapped.get("listen", "")) if one.header else ""
        by = f"  for {safe_text(one.client)}" if one.client and not listen else ""
        lines.append(
            [
                ("  ", ""),
                (safe_text(one.label), "key"),
                (f"{by}  since {_when(one.begin_ns)}, {size(one.size_bytes)}", "dim"),
                (f"  {safe_text(listen)}" if listen else "", "dim"),
            ]
        )
    lines.append([("captures", "strong"), (f"  {keeping()}, in {safe_text(captures_folder())}", "dim")])
    found = mishaps()
    lines.append([("last errors", "strong"), ("" if found else "  none", "dim")])
    for mishap in found:
        what = f"{safe_text(mishap.text)}"
        lines.append(
            [("  ", ""), (f"{_when(mishap.wall_ns)}  ", "dim"), (safe_text(mishap.label), "key"), (f"  {what}", "bad")]
        )
    return lines


def captures_object() -> dict[str, Any]:
    """What the store holds and may hold, for programs (docs/json.md)."""
    files, taken_bytes = taken()
    gone, by_quota = pruned(), pruned(by_quota=True)
    return {
        "folder": captures_folder(),
        "files": files,
        "bytes": taken_bytes,
        "max_bytes": quota_bytes(),
        "live": [one.label for one in known() if one.live],
        "removed": {"captures": gone.captures + by_quota.captures, "bytes": gone.bytes + by_quota.bytes},
    }


def status_object() -> dict[str, Any]:
    """All of the status for programs."""
    taps = [
        {
            "label": one.label,
            "client": one.client,
            "pid": one.header.pid if one.header else None,
            "path": one.path,
            "begin_wall_ns": one.begin_ns,
            "bytes": one.size_bytes,
            "listen": one.header.tapped.get("listen") if one.header else None,
        }
        for one in known()
        if one.live
    ]
    errors = [
        {"wall_ns": one.wall_ns, "label": one.label, "rule": one.rule, "text": one.text, "path": one.path} for one in mishaps()
    ]
    return {"captures": captures_object(), "taps": taps, "errors": errors}


def mishaps() -> list[Mishap]:
    """The last errors of the newest captures, the newest first: findings, and what taps said of themselves."""
    found = [mishap for one in known()[:LOOKED_CAPTURES] if one.header for mishap in _of(one)]
    return sorted(found, key=lambda one: one.wall_ns, reverse=True)[:SHOWN_ERRORS]


def _of(one: CatalogEntry) -> list[Mishap]:
    try:
        if one.size_bytes <= WHOLE_BYTES:
            return list(_findings(one))
        return [
            Mishap(wall_ns=one.begin_ns + record.at_ns, label=one.label, rule=rule, text=text, path=one.path)
            for record in _tail(one)
            for rule, text in _said(record)
        ]
    except (OSError, CaptureError):
        return []  # it went away


def _findings(one: CatalogEntry) -> Iterator[Mishap]:
    for found in transcript_of((one.path,))[0].findings:
        if found.severity is Severity.ERROR:
            yield Mishap(wall_ns=one.begin_ns + found.at_ns, label=one.label, rule=found.rule, text=found.what, path=one.path)


def _tail(one: CatalogEntry) -> Iterator[Record]:
    with open(one.path, "rb") as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - TAIL_BYTES))
        for line in file.read(TAIL_BYTES).split(b"\n")[1:]:
            record = sound_record(line)
            if record is not None:
                yield record


def _said(record: Record) -> Iterator[tuple[str, str]]:
    match record:
        case Exit(error=str(error)) if error:
            yield "exit", f"could not be started: {error}"
        case Exit(code=int(code)) if code:
            yield "exit", f"exited with status {code}"
        case Exit(signal=str(name)) if name:
            yield "exit", f"was ended by {name}"
        case Gap():
            yield "gap", f"{record.frames} frames were not recorded: {record.why}"
        case Note(topic="fault"):
            yield "fault", record.text


def _when(wall_ns: int) -> str:
    return wall_time(wall_ns).strftime("%Y-%m-%d %H:%M")
