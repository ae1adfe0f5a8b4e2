"""What `wrap` and `unwrap` print: servers with their state, a change as a diff of commands, and JSON."""

import json
import shlex
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from ..capture.catalog import entries
from ..capture.store import captures_folder
from ..errors import SetupError
from ..setup.entry import State
from ..setup.plan import Aim, Change, Found, Looked, wants
from ..setup.program import program
from ..views.escape import safe_text
from ..views.line import Line
from ..views.units import counted, size


def change_lines(
    file: Looked,
    servers: Iterable[Found],
    aim: Aim,
    after: Callable[[Found], list[str]],
    redacted: Callable[[list[str]], list[str]],
) -> list[Line]:
    """A file's servers: those to change with the command before and after, the others with why they stay."""
    config = file.config
    lines: list[Line] = [[(config.client.title, "strong"), (f"  {safe_text(str(config.file))}", "dim")]]
    for one in servers:
        lines.append([("  ", ""), *_name(one)])
        if wants(one, aim):
            lines.append([("    - ", "bad"), (_command(redacted(one.entry.argv)), "bad")])
            lines.append([("    + ", "good"), (_command(after(one)), "good")])
        else:
            lines.append([("    ", ""), (_why_not(one, aim), "dim")])
    return lines


def server_lines(servers: Iterable[Found]) -> list[Line]:
    """For each file its servers and whether they are wrapped."""
    lines: list[Line] = []
    last: object = None
    for one in servers:
        if one.config is not last:
            lines.append([(one.config.client.title, "strong"), (f"  {safe_text(str(one.config.file))}", "dim")])
            last = one.config
        style = {State.WRAPPED: "good", State.UNUSABLE: "warn"}.get(one.entry.state, "dim")
        lines.append([("  ", ""), *_name(one), (f"  {_state(one)}", "warn" if one.missing else style)])
    return lines


def status_lines() -> list[Line]:
    """What records now, where captures are, and how much they take."""
    known = entries()
    live = [safe_text(one.label) for one in known if one.live]
    total = size(sum(one.size_bytes for one in known))
    return [
        [],
        [("records now: ", ""), (", ".join(live) or "nothing", "good" if live else "dim")],
        [("captures: ", ""), (f"{counted(len(known), 'file')}, {total}, in {safe_text(captures_folder())}", "dim")],
    ]


def document(
    servers: Iterable[Found],
    done: Sequence[tuple[Change, Path | None]],
    problems: Iterable[SetupError],
    *,
    dry_run: bool,
    aim: Aim,
) -> str:
    """One JSON object (docs/json.md). Arguments and environments are left out: they may hold secrets."""
    known = entries()
    changed = [
        {
            "client": made.looked.config.client.name,
            "file": str(made.looked.config.file),
            "servers": [one.entry.name for one in made.servers],
            "backup": str(kept) if kept else None,
            "restart": made.looked.config.client.restart,
        }
        for made, kept in done
    ]
    whole = {
        "schema": 1,
        "aim": aim.value,
        "dry_run": dry_run,
        "program": program(),
        "servers": [_object(one) for one in servers],
        "changed": changed,
        "problems": [{"file": one.file, "reason": one.reason} for one in problems],
        "captures": {
            "folder": captures_folder(),
            "files": len(known),
            "bytes": sum(one.size_bytes for one in known),
            "live": [one.label for one in known if one.live],
        },
    }
    return json.dumps(whole)


def _object(one: Found) -> dict[str, Any]:
    found: dict[str, Any] = {
        "client": one.config.client.name,
        "scope": one.section.scope,
        "file": str(one.config.file),
        "server": one.entry.name,
        "state": one.entry.state.value,
    }
    if one.project:
        found["project"] = one.project
    if one.entry.problem:
        found["reason"] = one.entry.problem
    if one.program:
        found |= {"program": one.program, "missing": one.missing}
    return found


def _name(one: Found) -> Line:
    where = f"  {one.section.scope} {safe_text(one.project)}".rstrip() if one.section.scope != "user" else ""
    return [(safe_text(one.entry.name) or '""', "key"), (where, "dim")]


def _state(one: Found) -> str:
    match one.entry.state:
        case State.PLAIN:
            return "not wrapped"
        case State.WRAPPED if one.missing:
            return f"wrapped, but {safe_text(one.program)} is no longer there: mcpspy wrap mends it"
        case State.WRAPPED:
            return f"wrapped by {safe_text(one.program)}"
        case State.HTTP:
            return "HTTP: start mcpspy proxy URL, with the URL that it has now, and give it the address that is printed"
        case State.UNUSABLE:
            return f"cannot be wrapped: {one.entry.problem}"


def _why_not(one: Found, aim: Aim) -> str:
    if one.entry.state is State.WRAPPED:
        return f"wrapped already, by {safe_text(one.program)}"
    return "not wrapped" if aim is Aim.UNWRAP else _state(one)


def _command(argv: list[str]) -> str:
    return safe_text(shlex.join(argv))
