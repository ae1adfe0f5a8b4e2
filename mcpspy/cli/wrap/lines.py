"""The output of `wrap` and `unwrap`: servers with their state, a change as a diff of what clients start, next steps, and JSON.

Below it `wrap --status` shows what is being recorded, the size of the store and its quota, and the last errors in it.
"""

import json
import os
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from ...capture.file.reader import sound_record
from ...capture.redaction.redactor import Redactor
from ...capture.store.catalog import CatalogEntry, entries
from ...capture.store.folder import captures_folder
from ...capture.store.pruning import prune_totals
from ...capture.store.quota import quota_bytes, store_size
from ...errors import CaptureError, SetupError
from ...records import Exit, Gap, Note, Record
from ...setup.clients import McpClient
from ...setup.commit import AppliedChange
from ...setup.entry import ConfigEntry, EntryState
from ...setup.plan import Aim, ConfigChange, ConfigFileState, ConfiguredServer, WrapSettings, client_words
from ...setup.service import SOCKET
from ...setup.wrapping import port_of
from ...transcript.findings.rule import Severity
from ...views.listing import keeping_line
from ...views.text.escape import safe_text
from ...views.text.line import Line
from ...views.text.units import size, wall_time
from ..screen import say
from ..transcripts import transcript_of_file
from .serving import served_ports

SHOWN_ERRORS = 5
SEARCHED_CAPTURES = 10
WHOLE_BYTES = 1 << 18
"""A capture up to this size is read whole, for its findings: all ten together take half a second at most."""

TAIL_BYTES = 1 << 18
"""Of a larger one only this much of its end is read, for what the tap itself recorded."""


def change_lines(
    file: ConfigFileState,
    servers: Iterable[ConfiguredServer],
    planned: ConfigChange | None,
    settings: WrapSettings,
    redactor: Redactor,
) -> list[Line]:
    """Show the servers of a file: for those that change what the client starts before and after, for others why they do not."""
    after = {id(server): words for server, words in zip(planned.servers, planned.after, strict=True)} if planned else {}
    lines: list[Line] = [_file_line(file.file.client, str(file.file.path))]
    for server in servers:
        entry = server.entry
        lines.append([("  ", ""), *_name(server)])
        becomes = after.get(id(server))
        if becomes is not None:
            # a port that is not reserved yet is reserved for the original that the file names, so the user has to see that
            is_new = settings.aim is Aim.WRAP and entry.is_http and server.missing
            before = [entry.server_url] if is_new else client_words(entry)
            for sign, style, words in (("-", "bad", before), ("+", "good", becomes)):
                lines += [[(f"    {sign} ", style), (_shown(entry, words, redactor), style)]] if words else []
            if entry.is_http and settings.aim is Aim.WRAP:
                lines.append([(f"      {_how_served(entry, settings)}", "dim" if settings.by_service else "warn")])
        else:
            lines.append([("    ", ""), (_reason_not_to_change(server, settings), "dim")])
        lines += _recording_settings(server)
    return lines


def server_lines(servers: Iterable[ConfiguredServer]) -> list[Line]:
    """Show the servers of each file, and whether they are wrapped."""
    lines: list[Line] = []
    last: object = None
    listening = _listening_ports() | served_ports()
    for server in servers:
        entry = server.entry
        if server.file is not last:
            lines.append(_file_line(server.file.client, str(server.file.path)))
            last = server.file
        is_bad = server.missing or (entry.is_http and _is_wrapped(server) and port_of(entry.url) not in listening)
        style = "warn" if is_bad else {EntryState.WRAPPED: "good", EntryState.UNUSABLE: "warn"}.get(entry.state, "dim")
        lines.append([("  ", ""), *_name(server), (f"  {_state(server, listening)}", style)])
        lines += _recording_settings(server)
    return lines


def say_next_steps(aim: Aim, applied: Sequence[AppliedChange], *, quota_changed: bool, by_service: bool) -> None:
    """Say on stderr which files were changed, which clients to restart, and what to run next."""
    clients: dict[str, McpClient] = {}
    for change in applied:
        file = change.change.state.file
        clients[file.client.name] = file.client
        is_shared = file.sections[0].scope == "project"
        before = {Aim.WRAP: "unwrap", Aim.ADD: "take it out"}.get(aim)
        note = f" The file belongs to the project: {before} before you share it." if is_shared and before else ""
        say(f"Changed {safe_text(str(file.path))}. Backup: {safe_text(str(change.kept))}.{note}")
    for client in clients.values():
        say(f"{client.title}: {client.restart}.")
    if aim is Aim.ADD and clients:
        say("Next: ask your agent what mcpspy recorded. To undo this: mcpspy unwrap --self.")
    if aim is not Aim.WRAP or not (clients or quota_changed):
        return
    entries = [server.entry for change in applied for server in change.change.servers]
    names = [f"`{safe_text(entry.name)}`" for entry in entries if entry.is_http]
    if names:
        listed = " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))
        works = f"{listed} {'works' if len(names) == 1 else 'work'}"
        how = f"through the service {SOCKET}" if by_service else "only while `mcpspy proxy --all` is running"
        say(f"{works} {how}.")
    say(f"Store: {_store_usage()}.{'' if quota_bytes() else ' mcpspy wrap --quota 2gb sets a quota.'}")
    if "MCPSPY_HOME" in os.environ and any(not entry.is_http for entry in entries):
        say(
            "MCPSPY_HOME is set in this shell, but a client passes it on only if the server's env in the file has it;"
            " otherwise the server is recorded in ~/.mcpspy."
        )
    if clients:
        say("Next: mcpspy show -f. To undo this: mcpspy unwrap.")


def document(
    servers: Iterable[ConfiguredServer],
    applied: Sequence[AppliedChange],
    problems: Iterable[SetupError],
    *,
    settings: WrapSettings,
    dry_run: bool,
    more: dict[str, Any],
) -> str:
    """Write one JSON object (docs/json.md), without arguments, environments and URLs, which may contain secrets."""
    changed = [
        {
            "client": change.change.state.file.client.name,
            "file": str(change.change.state.file.path),
            "servers": [server.entry.name for server in change.change.servers],
            "backup": str(change.kept) if change.kept else None,
            "restart": change.change.state.file.client.restart,
        }
        for change in applied
    ]
    whole = {
        "schema": 1,
        "aim": settings.aim.value,
        "dry_run": dry_run,
        "program": list(settings.program),
        "servers": [_object(server, settings) for server in servers],
        "changed": changed,
        "problems": [{"file": problem.what, "reason": problem.reason} for problem in problems],
    }
    return json.dumps(whole | more)


def _object(server: ConfiguredServer, settings: WrapSettings) -> dict[str, Any]:
    entry = server.entry
    facts: dict[str, Any] = {
        "client": server.file.client.name,
        "scope": server.section.scope,
        "file": str(server.file.path),
        "server": entry.name,
        "transport": "http" if entry.is_http else "stdio",
        "state": entry.state.value,
    }
    if server.project:
        facts["project"] = server.project
    obstacle = entry.problem or (settings.http_obstacle if _is_left_alone(entry, settings) else "")
    if obstacle:
        facts["reason"] = obstacle
    if server.program:
        facts |= {"program": server.program, "missing": server.missing}
    if entry.is_http and _is_wrapped(server):
        facts |= {"port": port_of(entry.url), "missing": server.missing}
    return facts


def _file_line(client: McpClient, path: str) -> Line:
    return [(client.title, "strong"), (f"  {safe_text(path)}", "dim")]


def _name(server: ConfiguredServer) -> Line:
    scope = server.section.scope
    where = f"  {scope} {safe_text(server.project)}".rstrip() if scope != "user" else ""
    return [(safe_text(server.entry.name) or '""', "key"), (where, "dim")]


def _is_wrapped(server: ConfiguredServer) -> bool:
    return server.entry.state is EntryState.WRAPPED


def _state(server: ConfiguredServer, listening: frozenset[int]) -> str:
    match server.entry.state:
        case EntryState.PLAIN:
            return "not wrapped"
        case EntryState.WRAPPED if server.entry.is_http:
            return _http_state(server, listening)
        case EntryState.WRAPPED if server.missing:
            return f"wrapped, but {safe_text(server.program)} does not exist any more: mcpspy wrap repairs this"
        case EntryState.WRAPPED:
            return f"wrapped by {safe_text(server.program)}"
        case EntryState.LOGIN:
            return (
                "not wrapped: the client may be logged in to it (OAuth), and a login is for one URL; "
                "mcpspy wrap --oauth wraps it too"
            )
        case EntryState.UNUSABLE:
            return f"cannot be wrapped: {server.entry.problem}"
        case EntryState.OWN if server.missing:
            return f"mcpspy's own, but {safe_text(server.program)} does not exist any more: mcpspy wrap --self repairs this"
        case EntryState.OWN:
            return "mcpspy's own server, which is never wrapped"
        case EntryState.ABSENT:
            return "not there yet"


def _http_state(server: ConfiguredServer, listening: frozenset[int]) -> str:
    port = port_of(server.entry.url)
    if server.missing:
        return f"wrapped, but its port {port} is not reserved here: mcpspy wrap repairs this"
    if port in listening:
        return f"wrapped, at port {port}" + (f", served by {SOCKET}" if port in served_ports() else "")
    return f"wrapped, at port {port}, where nothing listens: {_only_while_running(server.entry)}"


def _reason_not_to_change(server: ConfiguredServer, settings: WrapSettings) -> str:
    entry = server.entry
    if entry.state is EntryState.WRAPPED:
        by = f"at port {port_of(entry.url)}" if entry.is_http else f"by {safe_text(server.program)}"
        return f"already wrapped, {by}"
    if entry.state is EntryState.OWN and settings.aim is Aim.ADD:
        return f"already there, by {safe_text(server.program) or 'its URL'}"
    if _is_left_alone(entry, settings):
        advice = f"mcpspy wrap --without-service wraps it, and {_only_while_running(entry)}"
        return f"left alone: {settings.http_obstacle}; {advice}"
    is_plain = settings.aim is Aim.UNWRAP and not (entry.has_unknown_original or entry.state is EntryState.OWN)
    return "not wrapped" if is_plain else _state(server, frozenset())


def _is_left_alone(entry: ConfigEntry, settings: WrapSettings) -> bool:
    """Return whether the server would be wrapped if there were a way to serve it."""
    return entry.is_http and entry.state is EntryState.PLAIN and bool(settings.http_obstacle)


def _how_served(entry: ConfigEntry, settings: WrapSettings) -> str:
    return f"served by the service {SOCKET}" if settings.by_service else _only_while_running(entry)


def _only_while_running(entry: ConfigEntry) -> str:
    return f"`{safe_text(entry.name)}` works only while `mcpspy proxy --all` is running"


def _recording_settings(server: ConfiguredServer) -> list[Line]:
    """Show what the file says about the recording: somebody else may have written it."""
    words = server.entry.recording_settings
    return [[("    recorded with: ", "dim"), (safe_text(shlex.join(words)), "warn")]] if words else []


def _shown(entry: ConfigEntry, words: Sequence[str], redactor: Redactor) -> str:
    return safe_text(redactor.url(words[0]) if entry.is_http else shlex.join(redactor.argv(list(words))))


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


def _listening_ports() -> frozenset[int]:
    """Find the ports of this machine at which HTTP taps listen now."""
    urls = (str(capture.header.tapped.get("listen", "")) for capture in stored() if capture.live and capture.header)
    return frozenset(filter(None, map(port_of, urls)))


def _store_usage() -> str:
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
    lines.append([("captures", "strong"), (f"  {safe_text(captures_folder())}: {_store_usage()}", "dim")])
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
