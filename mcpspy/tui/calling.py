"""A call that is made again: where it goes, what the user may change in it, and its outcome as lines. `mcpspy call` sends it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from shlex import join
from typing import Any, Final, NamedTuple, NoReturn

from ..capture.store.folder import live_folder
from ..control.client import EXTENSION, Controller
from ..records import CLIENT
from ..replay.client.outgoing import CALL, Effect, Effects, pseudonym
from ..replay.compare.difference import path_of
from ..transcript.definitions import DefinitionKind, offers
from ..transcript.filter.filter import filter_rows
from ..transcript.findings.json_schema import Validators
from ..transcript.model import CaptureInfo, Exchange, Numbered, Transcript
from ..views.text.escape import one_line, safe_text, without_logins
from ..views.text.line import Line, fitted
from ..views.text.pretty import pretty
from ..views.text.units import duration
from ..wire.json_spans import members
from .prompt import read_filter

MAX_CHANGE_BYTES: Final = 100_000
"""A change is a word of a command line, and Linux takes none of 128 KiB."""

_PARTS: Final = ("result", "error")


class CallDestination(NamedTuple):
    """The server that a call goes to: `words` name it for `mcpspy call`, which runs in `cwd`; `name` is for the user.

    One that `is_fresh` is started, or reached, for this call alone. `apart` is the same server in a session of its own, if it can be
    chosen too.
    """

    words: tuple[str, ...]
    name: str
    is_fresh: bool
    cwd: str = ""
    apart: CallDestination | None = None


class RepeatedCall(NamedTuple):
    """A recorded call that is to be made again: `what` is its address, `changes` are values for `--set`."""

    exchange: Exchange
    what: str
    to: CallDestination
    changes: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Its method and target, safe on a terminal."""
        return one_line(" ".join(filter(None, (self.exchange.method, self.exchange.target))), 60)

    @property
    def words(self) -> list[str]:
        """The command line of `mcpspy`. The user was asked already."""
        changes = [word for change in self.changes for word in ("--set", change)]
        return ["call", self.what, "--yes", "--json", *changes, *self.to.words]


def why_not_again(row: Numbered) -> str:
    """Say why a row cannot be called again; empty if it can."""
    if not isinstance(row, Exchange):
        return f"row {row.row} is no call"
    if row.sender != CLIENT:
        return f"row {row.row} is a request of the server; only those of the client can be made again"
    return f"row {row.row} is the handshake, which each session has once" if row.method == "initialize" else ""


def destination(info: CaptureInfo) -> CallDestination | str:
    """Return where the calls of a capture go: its running session, else its server; or why there is none."""
    header = info.header
    if header is None:
        return "the capture does not name its server"
    url, argv = str(header.tapped.get("url") or ""), header.tapped.get("argv")
    running = CallDestination((), f"the running session of {one_line(info.label)}", is_fresh=False)
    if url:
        is_secret = bool(pseudonym(url.encode()))
        apart = None if is_secret else CallDestination(("--url", url), safe_text(without_logins(url)), is_fresh=True)
        if is_running(header.capture_id):
            return running._replace(apart=apart)
        return apart or "the recorded URL has a redacted value; use mcpspy call with --url"
    if is_running(header.capture_id):
        return running
    if not isinstance(argv, list | tuple) or not argv:
        return "the capture does not name its server; use mcpspy call with -- COMMAND"
    words = tuple(map(str, argv))
    if pseudonym("\n".join(words).encode("utf-8", "surrogatepass")):
        return "the recorded command has a redacted value; use mcpspy call with -- COMMAND"
    cwd = header.cwd if os.path.isdir(header.cwd) else ""
    return CallDestination(("--", *words), f"a new {one_line(join(words), 50)}", is_fresh=True, cwd=cwd)


def is_running(capture_id: str) -> bool:
    """Return whether a tap that can be controlled records this capture."""
    try:
        Controller(live_folder(), capture_id + EXTENSION).close()
    except OSError:
        return False
    return True


# --- What the server says about the tool ---


def _listings(transcript: Transcript) -> Transcript:
    """Return the rows with lists of tools."""
    condition = read_filter("method:tools/list")
    assert condition is not None
    return Transcript(transcript.captures, filter_rows(condition, transcript, transcript.rows).rows)


def danger(transcript: Transcript, exchange: Exchange) -> str:
    """Say what a call may change; empty if it is marked as read-only, or calls no tool."""
    effect = Effects(_listings(transcript)).of(exchange)
    if effect is Effect.DESTROYS:
        return "it is marked as destructive"
    return "it may change something, for it is not marked as read-only" if effect is Effect.CHANGES else ""


def mistake(transcript: Transcript, exchange: Exchange, value: Any) -> str:
    """Say why edited arguments do not fit the tool's input schema; empty if they do, or if that cannot be told."""
    if exchange.method != CALL:
        return ""
    tools = offers(_listings(transcript))[exchange.capture].definitions(DefinitionKind.TOOL)
    tool = next((tool for tool in tools if tool.name == exchange.target), None)
    schema = None if tool is None else json.loads(tool.raw).get("inputSchema")
    return safe_text(Validators().mistake(schema, value))


# --- What the user edits ---


def editable(exchange: Exchange) -> Any:
    """Return what the user edits: the arguments of a tool, else the params without those that are for the protocol."""
    params = exchange.request.params
    if exchange.method == CALL:
        return params.get("arguments", {}) if isinstance(params, dict) else {}
    return {name: value for name, value in params.items() if name != "_meta"} if isinstance(params, dict) else {}


def changes(exchange: Exchange, value: Any) -> tuple[str, ...]:
    """Return the values for `--set` that make of the recorded request the edited one. Raises: ValueError: if none can."""
    before = editable(exchange)
    params = exchange.request.params
    is_call = exchange.method == CALL
    steps = ("arguments",) if is_call else ()
    has_place = isinstance(before, dict) and (not is_call or (isinstance(params, dict) and "arguments" in params))
    if not isinstance(value, dict):
        raise ValueError("it has to be an object")
    if has_place and not before.keys() - value.keys():
        new = {name: item for name, item in value.items() if name not in before or _differ(before[name], item)}
        words = tuple(f"{path_of((*steps, name))}={json.dumps(item)}" for name, item in new.items())
    elif is_call:
        words = (f"{path_of(steps)}={json.dumps(value)}",)
    else:
        raise ValueError(f"{', '.join(sorted(before.keys() - value.keys()))} cannot be left out")
    if any(len(word) > MAX_CHANGE_BYTES for word in words):
        raise ValueError("a value is too long for this; use mcpspy call")
    return words


def _differ(before: Any, after: Any) -> bool:
    return json.dumps(before, sort_keys=True) != json.dumps(after, sort_keys=True)


def read_json(text: str) -> Any:
    """Read what the user has edited. Raises: ValueError: if it is no JSON."""
    return json.loads(text, parse_constant=_refuse_constant)


def _refuse_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is no JSON")


# --- What came of it ---


def outcome_lines(call: RepeatedCall, output: str, words: str, width: int) -> Iterator[Line]:
    """Yield the outcome of `mcpspy call`: `output` is its JSON, without which `words` say why nothing was sent."""
    where: Line = [("to ", "dim"), (call.to.name, "")]
    try:
        result: dict[str, Any] = json.loads(output)
    except ValueError:
        yield [("✗ ", "bad"), (call.name, "strong"), ("  was not sent", "bad")]
        yield fitted(where, width)
        yield []
        yield from (fitted([(safe_text(line), "")], width) for line in words.splitlines())
        return
    yield fitted(_heading(call, result), width)
    yield fitted(where, width)
    yield from (fitted([("changed ", "dim"), (safe_text(change), "")], width) for change in call.changes)
    yield []
    if result["answer"] is None:
        yield fitted([(safe_text(str(result["why"])), "bad")], width)
        return
    if call.exchange.response is None:
        yield [(f"row {call.exchange.row} has no answer to compare with", "dim")]
        yield []
    else:
        yield from _difference_lines(call.exchange.row, result["comparison"], width)
    answer = members(str(result["answer"].get("text", "")).encode("utf-8", "surrogatepass"))
    yield from pretty(next((bytes(answer[part]) for part in _PARTS if part in answer), b""), width=width)
    if result["row"] is not None:
        yield []
        yield fitted([("recorded in ", "dim"), (safe_text(f"{result['capture']}:{result['row']}"), "")], width)


def _heading(call: RepeatedCall, result: dict[str, Any]) -> Line:
    is_good = result["outcome"] == "ok"
    style = "good" if is_good else "bad"
    line: Line = [("✓ " if is_good else "✗ ", style), (call.name, "strong"), (f"  {result['outcome'] or 'no answer'}", style)]
    if result["took_ns"] is not None:
        line.append((f"  {duration(result['took_ns'])}", ""))
    before = (result["recorded"] or {}).get("took_ns")
    return line if before is None else [*line, (f", recorded {duration(before)}", "dim")]


def _difference_lines(row: int, comparison: dict[str, Any] | None, width: int) -> Iterator[Line]:
    """Yield what differs from the recorded answer, and an empty line."""
    servers: Sequence[dict[str, Any]] = comparison["servers"] if comparison else []
    change = next((call for server in servers for call in server["calls"]), None)
    if change is None or not comparison or not comparison["summary"]["different"]:
        yield [("✓ ", "good"), (f"as recorded in row {row}", "")]
        yield []
        return
    yield [("✗ ", "bad"), (f"differs from row {row}", "strong")]
    before, after = change["outcomes"]
    if before != after:
        yield [(f"    {before}", "bad"), (" → ", ""), (f"{after}", "good")]
    for difference in (*change["params"], *change["answer"]):
        yield fitted([(f"    {safe_text(difference['path'])}", "key")], width)
        for sign, name, style in (("-", "before", "bad"), ("+", "after", "good")):
            value = _value(difference, name)
            if value:
                yield fitted([(f"      {sign} {safe_text(value)}", style)], width)
    yield []


def _value(difference: dict[str, Any], name: str) -> str:
    if name in difference:
        return json.dumps(difference[name], ensure_ascii=False)
    count = difference.get(f"{name}_bytes")
    return "" if count is None else f"{count:,} bytes"
