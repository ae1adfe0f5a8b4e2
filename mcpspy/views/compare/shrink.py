"""The smallest sequence with which something happens, for people and for programs."""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote
from typing import TYPE_CHECKING, Any, Final

from ...replay.mock.miss import request_name
from ...transcript.model import Kind
from ...wire.json_spans import members
from ..text.escape import one_line, safe_text
from ..text.json_text import SCHEMA, as_json
from ..text.line import Line, fitted
from ..text.units import counted
from ..timeline.phrases import outcome_phrase
from ..timeline.summary import headline

if TYPE_CHECKING:
    from ...replay.client.plan import Send
    from ...replay.shrink import ShrinkResult
    from ...transcript.model import Exchange, Message

PARAMS_LETTERS: Final = 60

MAX_LISTED: Final = 50


def shrunk_lines(found: ShrinkResult, width: int | None) -> Iterator[Line]:
    """What happened, in how many runs, and each message that it takes, with what became of it when it happened."""
    parts: list[Line] = [
        [(one_line(found.until), "strong")],
        [(f"{len(found.sends):,} of {counted(found.of, 'message')}", "")],
        [(one_line(found.happened.what), "bad")],
    ]
    yield from headline(("✗ ", "bad"), parts, width)
    yield fitted([("  ", ""), (_how(found), "dim")], width)
    yield []
    if not found.sends:
        yield [("the handshake alone is enough", "")]
    for send in found.sends[:MAX_LISTED]:
        yield fitted(_send_line(send, found), width)
    if len(found.sends) > MAX_LISTED:
        yield [(f"     and {len(found.sends) - MAX_LISTED:,} more", "dim")]


def shrunk_next_lines(found: ShrinkResult, again: str, width: int | None) -> Iterator[Line]:
    """What to do with it, behind an empty line; `again` is the command that sends it once more."""
    commands = ((f"mcpspy show {quote(found.path)}", "what passed"), (again, "sends it once more"))
    longest = max(len(command) for command, _ in commands)
    yield []
    for command, why in commands:
        yield fitted([(safe_text(command.ljust(longest)), "strong"), (f"   {why}", "dim")], width)


def _how(found: ShrinkResult) -> str:
    told = counted(found.runs, "run")
    if found.unresolved:
        told += f", {found.unresolved:,} of them without a server"
    if found.is_minimal:
        return f"{told}; it takes every one of these" if found.sends else told
    return f"{told}; there may be a smaller sequence"


def _send_line(send: Send, found: ShrinkResult) -> Line:
    line: Line = [(f"{send.row:>4} ", "dim"), ("→ ", ""), (one_line(request_name(send.message) or "no JSON-RPC"), "")]
    params = _params(send.message)
    line += [(" ", ""), (params, "dim")] if params else []
    live = found.live.get(send.row)
    if live is not None:
        line += [("  ", ""), *_outcome(live)]
        line += [("  ⚑", "warn")] if live.row == found.happened.row else []
    return line


def _params(message: Message) -> str:
    """The arguments of a call; of others what it asks."""
    if message.kind is Kind.MALFORMED:
        return one_line(message.raw.decode("utf-8", "replace"), PARAMS_LETTERS)
    params = members(message.raw).get("params", b"")
    shown = bytes(members(params).get("arguments", b"" if message.target else params))
    return one_line(shown.decode("utf-8", "replace"), PARAMS_LETTERS)


def _outcome(live: Exchange) -> Line:
    phrase = outcome_phrase(live)
    line: Line = [(phrase.word, phrase.style)]
    return [*line, (f": {phrase.detail}", "")] if phrase.detail else line


def shrunk_json(found: ShrinkResult | None, until: str, again: str, *, of: int, runs: int, unresolved: int) -> str:
    """One object; of what did not happen, only that."""
    made: dict[str, Any] = {"schema": SCHEMA, "until": until, "happened": found is not None, "of": of, "runs": runs}
    made["unresolved"] = unresolved
    if found is not None:
        made |= {
            "what": found.happened.what,
            "row": found.happened.row,
            "minimal": found.is_minimal,
            "capture": found.path,
            "again": again,
            "rows": [_send_object(send, found) for send in found.sends],
        }
    return as_json(made) + "\n"


def _send_object(send: Send, found: ShrinkResult) -> dict[str, Any]:
    live = found.live.get(send.row)
    return {
        "row": send.row,
        "kind": send.message.kind.value,
        "method": send.message.method,
        "target": send.message.target,
        "live_row": None if live is None else live.row,
        "outcome": None if live is None else live.outcome.value,
    }
