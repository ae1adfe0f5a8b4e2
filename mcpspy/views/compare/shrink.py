"""The smallest sequence of messages that makes a condition true, as lines and as JSON."""

from collections.abc import Iterator
from shlex import quote
from typing import Any, Final

from ...replay.client.plan import Send
from ...replay.mock.miss import request_name
from ...replay.shrink import ShrinkResult
from ...transcript.model import Kind, Message
from ...wire.json_spans import members
from ..text.escape import one_line
from ..text.hint import command_lines
from ..text.json_text import SCHEMA, as_json
from ..text.line import Line, fitted
from ..text.units import counted
from ..timeline.phrases import outcome_phrase
from ..timeline.summary import headline

PARAMS_LETTERS: Final = 60

MAX_LISTED: Final = 50


def shrunk_lines(shrunk: ShrinkResult, width: int | None) -> Iterator[Line]:
    """Yield the condition, the number of runs, and each message of the sequence with its outcome in the last run."""
    parts: list[Line] = [
        [(one_line(shrunk.until), "strong")],
        [(f"{len(shrunk.sends):,} of {counted(shrunk.of, 'message')}", "")],
        [(one_line(shrunk.happened.what), "bad")],
    ]
    yield from headline(("✗ ", "bad"), parts, width)
    yield fitted([("  ", ""), (_how(shrunk), "dim")], width)
    yield []
    if not shrunk.sends:
        yield [("the handshake alone is enough", "")]
    for send in shrunk.sends[:MAX_LISTED]:
        yield fitted(_send_line(send, shrunk), width)
    if len(shrunk.sends) > MAX_LISTED:
        yield [(f"     and {len(shrunk.sends) - MAX_LISTED:,} more", "dim")]


def shrunk_next_lines(shrunk: ShrinkResult, again: str, width: int | None) -> list[Line]:
    """Return the next commands after an empty line; `again` is the command that sends the sequence again."""
    commands = ((f"mcpspy show {quote(shrunk.path)}", "what was sent and answered"), (again, "send it again"))
    return command_lines(commands, width)


def _how(shrunk: ShrinkResult) -> str:
    words = counted(shrunk.runs, "run")
    if shrunk.unresolved:
        words += f", {shrunk.unresolved:,} of them without a server"
    if shrunk.is_minimal:
        return f"{words}; every one of these is needed" if shrunk.sends else words
    return f"{words}; there may be a smaller sequence"


def _send_line(send: Send, shrunk: ShrinkResult) -> Line:
    line: Line = [(f"{send.row:>4} ", "dim"), ("→ ", ""), (one_line(request_name(send.message) or "no JSON-RPC"), "")]
    params = _params(send.message)
    line += [(" ", ""), (params, "dim")] if params else []
    live = shrunk.live.get(send.row)
    if live is not None:
        line += [("  ", ""), *outcome_phrase(live).line()]
        line += [("  ⚑", "warn")] if live.row == shrunk.happened.row else []
    return line


def _params(message: Message) -> str:
    """Return the arguments of a call, or the params of any other message."""
    if message.kind is Kind.MALFORMED:
        return one_line(message.raw.decode("utf-8", "replace"), PARAMS_LETTERS)
    params = members(message.raw).get("params", b"")
    shown = bytes(members(params).get("arguments", b"" if message.target else params))
    return one_line(shown.decode("utf-8", "replace"), PARAMS_LETTERS)


def shrunk_json(shrunk: ShrinkResult | None, until: str, again: str, *, of: int, runs: int, unresolved: int) -> str:
    """Return one object. If the condition never became true, it holds only that."""
    members: dict[str, Any] = {"schema": SCHEMA, "until": until, "happened": shrunk is not None, "of": of, "runs": runs}
    members["unresolved"] = unresolved
    if shrunk is not None:
        members |= {
            "what": shrunk.happened.what,
            "row": shrunk.happened.row,
            "minimal": shrunk.is_minimal,
            "capture": shrunk.path,
            "again": again,
            "rows": [_send_object(send, shrunk) for send in shrunk.sends],
        }
    return as_json(members) + "\n"


def _send_object(send: Send, shrunk: ShrinkResult) -> dict[str, Any]:
    live = shrunk.live.get(send.row)
    return {
        "row": send.row,
        "kind": send.message.kind.value,
        "method": send.message.method,
        "target": send.message.target,
        "live_row": None if live is None else live.row,
        "outcome": None if live is None else live.outcome.value,
    }
