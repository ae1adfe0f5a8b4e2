"""The next useful command after a timeline: the call that failed, the live view, the diagram. Refuses to give more than two."""

import shlex
from collections.abc import Iterable

from ..transcript.model import Exchange, Outcome, Transcript
from .escape import safe_text
from .line import Line

_IS = {
    Outcome.ERROR: "an error",
    Outcome.TOOL_ERROR: "a tool error",
    Outcome.UNANSWERED: "unanswered",
    Outcome.PENDING: "pending",
}
"""The outcomes that one wants to see whole, the most urgent first, in a sentence."""


def next_commands(transcript: Transcript, whats: Iterable[str], *, live: bool) -> list[Line]:
    """A blank line and one or two commands, each with what it does; `whats` are those that were given."""
    whats = list(whats)
    here = " ".join(shlex.quote(one) for one in whats)
    exchanges = transcript.exchanges
    found: list[tuple[str, str]] = []
    if exchanges and len(whats) <= 1:
        what, _, _ = (here or "@").partition(":") if not whats or ":" in whats[0] else (here, "", "")
        found.append(_whole(exchanges, what))
    if live:
        found.append((f"mcpspy show -f {here}".rstrip(), "go on live"))
    elif exchanges:
        found.append((f"mcpspy export mermaid {here}".rstrip(), "the sequence diagram"))
    width = max((len(command) for command, _ in found), default=0)
    lines: list[Line] = [[(safe_text(command).ljust(width), "strong"), (f"   {why}", "dim")] for command, why in found]
    return [[], *lines] if lines else []


def _whole(exchanges: list[Exchange], what: str) -> tuple[str, str]:
    """The call to be seen whole: the first of the worst, or the slowest where all went well."""
    for outcome, words in _IS.items():
        row = next((one for one in exchanges if one.outcome is outcome), None)
        if row is not None:
            return f"mcpspy show {what}:{row.row}", f"the first that is {words}, whole"
    slowest = max(exchanges, key=lambda one: one.duration_ns or 0)
    return f"mcpspy show {what}:{slowest.row}", "the slowest call, whole"
