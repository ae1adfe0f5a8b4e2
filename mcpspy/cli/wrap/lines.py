"""What `wrap` and `unwrap` print: servers with their state, a change as a diff of what clients start, and JSON."""

import json
import shlex
from collections.abc import Iterable, Sequence
from typing import Any

from ...capture.redaction.redactor import Redactor
from ...errors import SetupError
from ...setup.address import port_of
from ...setup.commit import Done
from ...setup.entry import Entry, State
from ...setup.plan import Aim, Change, Found, Looked, Means, start
from ...views.text.escape import safe_text
from ...views.text.line import Line
from .status import served_ports


def change_lines(
    file: Looked, servers: Iterable[Found], planned: Change | None, means: Means, redactor: Redactor
) -> list[Line]:
    """A file's servers: those to change with what the client has before and after, the others with why they stay."""
    config = file.config
    after = {id(one): becomes for one, becomes in zip(planned.servers, planned.after, strict=True)} if planned else {}
    lines: list[Line] = [[(config.client.title, "strong"), (f"  {safe_text(str(config.file))}", "dim")]]
    for one in servers:
        lines.append([("  ", ""), *_name(one)])
        becomes = after.get(id(one))
        if becomes is not None:
            # a place that is not known is made for what the file says, so that has to be seen
            is_anew = means.aim is Aim.WRAP and one.entry.is_http and one.missing
            before = [one.entry.server_url] if is_anew else start(one.entry)
            lines.append([("    - ", "bad"), (_shown(one.entry, before, redactor), "bad")])
            lines.append([("    + ", "good"), (_shown(one.entry, becomes, redactor), "good")])
            if one.entry.is_http and means.aim is Aim.WRAP:
                lines.append([("      where it answers while mcpspy proxy --all runs", "dim")])
        else:
            lines.append([("    ", ""), (_why_not(one, means), "dim")])
        lines += _terms(one)
    return lines


def server_lines(servers: Iterable[Found]) -> list[Line]:
    """For each file its servers and whether they are wrapped."""
    lines: list[Line] = []
    last: object = None
    served = served_ports()
    for one in servers:
        if one.config is not last:
            lines.append([(one.config.client.title, "strong"), (f"  {safe_text(str(one.config.file))}", "dim")])
            last = one.config
        bad = one.missing or (one.entry.is_http and _is_wrapped(one) and port_of(one.entry.url) not in served)
        style = "warn" if bad else {State.WRAPPED: "good", State.UNUSABLE: "warn"}.get(one.entry.state, "dim")
        lines.append([("  ", ""), *_name(one), (f"  {_state(one, served)}", style)])
        lines += _terms(one)
    return lines


def document(
    servers: Iterable[Found],
    done: Sequence[Done],
    problems: Iterable[SetupError],
    *,
    means: Means,
    dry_run: bool,
    more: dict[str, Any],
) -> str:
    """One JSON object (docs/json.md). Arguments, environments and URLs are left out: they may hold secrets."""
    changed = [
        {
            "client": one.change.looked.config.client.name,
            "file": str(one.change.looked.config.file),
            "servers": [found.entry.name for found in one.change.servers],
            "backup": str(one.kept) if one.kept else None,
            "restart": one.change.looked.config.client.restart,
        }
        for one in done
    ]
    whole = {
        "schema": 1,
        "aim": means.aim.value,
        "dry_run": dry_run,
        "program": list(means.program),
        "servers": [_object(one) for one in servers],
        "changed": changed,
        "problems": [{"file": one.file, "reason": one.reason} for one in problems],
    }
    return json.dumps(whole | more)


def _object(one: Found) -> dict[str, Any]:
    entry = one.entry
    found: dict[str, Any] = {
        "client": one.config.client.name,
        "scope": one.section.scope,
        "file": str(one.config.file),
        "server": entry.name,
        "transport": "http" if entry.is_http else "stdio",
        "state": entry.state.value,
    }
    if one.project:
        found["project"] = one.project
    if entry.problem:
        found["reason"] = entry.problem
    if one.program:
        found |= {"program": one.program, "missing": one.missing}
    if entry.is_http and _is_wrapped(one):
        found |= {"port": port_of(entry.url), "missing": one.missing}
    return found


def _name(one: Found) -> Line:
    where = f"  {one.section.scope} {safe_text(one.project)}".rstrip() if one.section.scope != "user" else ""
    return [(safe_text(one.entry.name) or '""', "key"), (where, "dim")]


def _is_wrapped(one: Found) -> bool:
    return one.entry.state is State.WRAPPED


def _state(one: Found, served: frozenset[int]) -> str:
    match one.entry.state:
        case State.PLAIN:
            return "not wrapped"
        case State.WRAPPED if one.entry.is_http:
            return _http_state(one, served)
        case State.WRAPPED if one.missing:
            return f"wrapped, but {safe_text(one.program)} is no longer there: mcpspy wrap mends it"
        case State.WRAPPED:
            return f"wrapped by {safe_text(one.program)}"
        case State.LOGIN:
            return (
                "not wrapped: the client may have to log in to it (OAuth), and a login holds for one URL; "
                "mcpspy wrap --oauth wraps it too"
            )
        case State.UNUSABLE:
            return f"cannot be wrapped: {one.entry.problem}"


def _http_state(one: Found, served: frozenset[int]) -> str:
    port = port_of(one.entry.url)
    if one.missing:
        return f"wrapped, but its place, port {port}, is not known here: mcpspy wrap mends it"
    return f"wrapped, at port {port}" + ("" if port in served else ", where nothing answers: start mcpspy proxy --all")


def _why_not(one: Found, means: Means) -> str:
    if one.entry.state is State.WRAPPED:
        by = f"at port {port_of(one.entry.url)}" if one.entry.is_http else f"by {safe_text(one.program)}"
        return f"wrapped already, {by}"
    return "not wrapped" if means.aim is Aim.UNWRAP and not one.entry.is_lost else _state(one, frozenset())


def _terms(one: Found) -> list[Line]:
    """What the file decides of the recording: whoever wrote it may be somebody else."""
    return (
        [[("    recorded as this file says: ", "dim"), (safe_text(shlex.join(terms)), "warn")]]
        if (terms := one.entry.terms)
        else []
    )


def _shown(entry: Entry, words: Sequence[str], redactor: Redactor) -> str:
    return safe_text(redactor.url(words[0]) if entry.is_http else shlex.join(redactor.argv(list(words))))
