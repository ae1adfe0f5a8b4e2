"""The next useful command after a timeline: the call that failed, the live view, the diagram. Refuses to give more than two."""

import re
import shlex
from collections.abc import Iterable, Sequence

from ...transcript.model import Exchange, ModelCall, Outcome, Transcript
from .cells import cells, padded
from .escape import safe_text
from .line import Line, line_cells

_rows = re.compile(r":\d+(\.\.\d+)?$").sub

_IS = {
    Outcome.ERROR: "an error",
    Outcome.TOOL_ERROR: "a tool error",
    Outcome.HTTP_ERROR: "an HTTP error",
    Outcome.UNANSWERED: "unanswered",
    Outcome.PENDING: "pending",
}
"""The outcomes that one wants to see whole, the most urgent first, in a sentence."""


def next_commands(
    transcript: Transcript,
    whats: Iterable[str],
    *,
    live: bool,
    width: int | None = None,
    filters: Iterable[str] = (),
    since: str = "",
    found: Sequence[str] = (),
) -> list[Line]:
    """A blank line and one or two commands, each with what it does; `whats`, `filters` and `since` are those that were given.

    Where no WHAT was given, `found` is what WHAT calls the recordings that it came to; empty: the newest.

    Where `width` cells are too few, it is not said what they do, and a command that does not fit is left out: half of one is no use.
    """
    whats = list(whats)
    named = whats or list(found)
    here = _words(whats) + "".join(f" -F {shlex.quote(one)}" for one in filters)
    calls: list[Exchange | ModelCall] = [*transcript.exchanges, *transcript.model_calls]
    commands: list[tuple[str, str]] = []
    if calls and len(named) <= 1:
        commands.append(_whole(calls, _rows("", named[0]) if named else "@"))
    if live:
        of_late = f" --since {shlex.quote(since)}" if since else ""
        commands.append((f"mcpspy show -f{here}{of_late}", "go on live"))
    elif calls:
        of = here if whats else _words(named) + here
        commands.append((f"mcpspy export mermaid{of}", "the sequence diagram"))
    safe = [(safe_text(command), why) for command, why in commands]
    return _lines([one for one in safe if width is None or cells(one[0]) <= width], width)


def _words(whats: Iterable[str]) -> str:
    return "".join(f" {shlex.quote(one)}" for one in whats)


def _lines(commands: list[tuple[str, str]], width: int | None) -> list[Line]:
    longest = max((cells(command) for command, _ in commands), default=0)
    lines: list[Line] = [[(padded(command, longest), "strong"), (f"   {why}", "dim")] for command, why in commands]
    if width is not None and any(line_cells(line) > width for line in lines):
        lines = [[(command, "strong")] for command, _ in commands]
    return [[], *lines] if lines else []


def _whole(calls: list[Exchange | ModelCall], what: str) -> tuple[str, str]:
    """The call to be seen whole: the first of the worst, or the slowest where all went well."""
    for outcome, words in _IS.items():
        row = next((one for one in calls if one.outcome is outcome), None)
        if row is not None:
            return f"mcpspy show {shlex.quote(f'{what}:{row.row}')}", f"the first that is {words}, whole"
    slowest = max(calls, key=lambda one: one.duration_ns or 0)
    return f"mcpspy show {shlex.quote(f'{what}:{slowest.row}')}", "the slowest call, whole"
