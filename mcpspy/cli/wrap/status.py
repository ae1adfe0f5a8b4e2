"""The lower half of `wrap --status`: what is being recorded, the size of the store and its quota, and the last errors in it."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from ...capture.file.reader import sound_record
from ...capture.store.catalog import CatalogEntry, entries
from ...capture.store.folder import captures_folder
from ...capture.store.pruning import prune_totals
from ...capture.store.quota import quota_bytes, store_size
from ...errors import CaptureError
from ...records import Exit, Gap, Note, Record
from ...setup.wrapping import port_of
from ...transcript.findings.rule import Severity
from ...views.listing import keeping_line
from ...views.text.escape import safe_text
from ...views.text.line import Line
from ...views.text.units import size, wall_time
from ..transcripts import transcript_of_file

SHOWN_ERRORS = 5
SEARCHED_CAPTURES = 10
WHOLE_BYTES = 1 << 18
"""A capture up to this size is read whole, for its findings: all ten together take half a second at most."""
TAIL_BYTES = 1 << 18
"""Of a larger one only this much of its end is read, for what the tap itself recorded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredError:
    """An error in a capture, at `wall_ns` of Unix time; `rule` is that of the finding, or the kind of record."""

    wall_ns: int
    label: str
    rule: str
    text: str
    path: str


@cache
def stored() -> list[CatalogEntry]:
    """List the captures of the store, the newest first; the store is read once."""
    return entries()


def listening_ports() -> frozenset[int]:
    """Find the ports of this machine at which HTTP taps listen now."""
    urls = (str(capture.header.tapped.get("listen", "")) for capture in stored() if capture.live and capture.header)
    return frozenset(filter(None, map(port_of, urls)))


def store_usage() -> str:
    """Say how large the store is, and whether it has a quota."""
    files, taken_bytes = store_size()
    return keeping_line(files, taken_bytes, quota_bytes())


def status_lines() -> list[Line]:
    """Show what is being recorded, where captures are and how large they are, and the last errors."""
    live = [capture for capture in stored() if capture.live]
    lines: list[Line] = [[("recording now", "strong"), ("" if live else "  nothing", "dim")]]
    for capture in live:
        listen = str(capture.header.tapped.get("listen", "")) if capture.header else ""
        client = f"  for {safe_text(capture.client)}" if capture.client and not listen else ""
        lines.append(
            [
                ("  ", ""),
                (safe_text(capture.label), "key"),
                (f"{client}  since {_when(capture.begin_ns)}, {size(capture.size_bytes)}", "dim"),
                (f"  {safe_text(listen)}" if listen else "", "dim"),
            ]
        )
    lines.append([("captures", "strong"), (f"  {safe_text(captures_folder())}: {store_usage()}", "dim")])
    errors = last_errors()
    lines.append([("last errors", "strong"), ("" if errors else "  none", "dim")])
    for error in errors:
        when, label = (f"{_when(error.wall_ns)}  ", "dim"), (safe_text(error.label), "key")
        lines.append([("  ", ""), when, label, (f"  {safe_text(error.text)}", "bad")])
    return lines


def captures_object() -> dict[str, Any]:
    """Describe the store and its quota for programs (docs/json.md)."""
    files, taken_bytes = store_size()
    gone, by_quota = prune_totals(), prune_totals(by_quota=True)
    return {
        "folder": captures_folder(),
        "files": files,
        "bytes": taken_bytes,
        "max_bytes": quota_bytes(),
        "live": [capture.label for capture in stored() if capture.live],
        "removed": {"captures": gone.captures + by_quota.captures, "bytes": gone.bytes + by_quota.bytes},
    }


def status_object() -> dict[str, Any]:
    """Describe the whole status for programs."""
    taps = [
        {
            "label": capture.label,
            "client": capture.client,
            "pid": capture.header.pid if capture.header else None,
            "path": capture.path,
            "begin_wall_ns": capture.begin_ns,
            "bytes": capture.size_bytes,
            "listen": capture.header.tapped.get("listen") if capture.header else None,
        }
        for capture in stored()
        if capture.live
    ]
    errors = [
        {"wall_ns": error.wall_ns, "label": error.label, "rule": error.rule, "text": error.text, "path": error.path}
        for error in last_errors()
    ]
    return {"captures": captures_object(), "taps": taps, "errors": errors}


def last_errors() -> list[StoredError]:
    """Find the last errors of the newest captures, the newest first: findings, and faults that a tap recorded."""
    errors = [error for capture in stored()[:SEARCHED_CAPTURES] if capture.header for error in _errors(capture)]
    return sorted(errors, key=lambda error: error.wall_ns, reverse=True)[:SHOWN_ERRORS]


def _errors(capture: CatalogEntry) -> list[StoredError]:
    try:
        if capture.size_bytes <= WHOLE_BYTES:
            return list(_error_findings(capture))
        return [
            StoredError(wall_ns=capture.begin_ns + record.at_ns, label=capture.label, rule=rule, text=text, path=capture.path)
            for record in _tail(capture)
            for rule, text in _recorded_errors(record)
        ]
    except (OSError, CaptureError):
        return []  # it was removed


def _error_findings(capture: CatalogEntry) -> Iterator[StoredError]:
    for finding in transcript_of_file(capture.path).findings:
        if finding.severity is Severity.ERROR:
            yield StoredError(
                wall_ns=capture.begin_ns + finding.at_ns,
                label=capture.label,
                rule=finding.rule,
                text=finding.what,
                path=capture.path,
            )


def _tail(capture: CatalogEntry) -> Iterator[Record]:
    with open(capture.path, "rb") as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - TAIL_BYTES))
        for line in file.read(TAIL_BYTES).split(b"\n")[1:]:
            record = sound_record(line)
            if record is not None:
                yield record


def _recorded_errors(record: Record) -> Iterator[tuple[str, str]]:
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
