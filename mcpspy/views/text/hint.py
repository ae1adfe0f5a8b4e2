"""The next useful commands after a timeline, two at most: the call that failed, the live view, the diagram."""

import shlex
from collections.abc import Iterable, Sequence

from ...lazy_pattern import lazy_pattern
from ...transcript.model import Exchange, ModelCall, Outcome, Transcript
from .cells import cells, padded
from .escape import safe_text
from .line import Line, fitted, line_cells

_rows = lazy_pattern(r":\d+(\.\.\d+)?$")

_NOUNS = {
    Outcome.ERROR: "error",
    Outcome.TOOL_ERROR: "tool error",
    Outcome.HTTP_ERROR: "HTTP error",
    Outcome.UNANSWERED: "unanswered call",
    Outcome.PENDING: "pending call",
}
"""The outcomes of calls worth showing in full, the most urgent first."""


def next_commands(
    transcript: Transcript,
    whats: Iterable[str],
    *,
    live: bool,
    width: int | None = None,
    filters: Iterable[str] = (),
    since: str = "",
    shown_whats: Sequence[str] = (),
) -> list[Line]:
    """Return a blank line and one or two commands, each with what it does. `whats`, `filters` and `since` are the user's options.

    Where the user gave no WHAT, `shown_whats` are the addresses of the recordings shown; empty means the newest.

    Where `width` cells are too few for the descriptions, they are left out. A command that does not fit is left out as well,
    because half of one is of no use.
    """
    whats = list(whats)
    named = whats or list(shown_whats)
    here = _words(whats) + "".join(f" -F {shlex.quote(expression)}" for expression in filters)
    calls: list[Exchange | ModelCall] = [*transcript.exchanges, *transcript.model_calls]
    commands: list[tuple[str, str]] = []
    if calls and len(named) <= 1:
        commands.append(_show_command(calls, _rows.sub("", named[0]) if named else "@"))
    if live:
        since_option = f" --since {shlex.quote(since)}" if since else ""
        commands.append((f"mcpspy show -f{here}{since_option}", "follow live"))
    elif calls:
        of = here if whats else _words(named) + here
        commands.append((f"mcpspy export mermaid{of}", "the sequence diagram"))
    fitting = [(command, why) for command, why in commands if width is None or cells(safe_text(command)) <= width]
    lines = command_lines(fitting, None)
    if width is not None and any(line_cells(line) > width for line in lines):
        return [[], *([(safe_text(command), "strong")] for command, _ in fitting)]
    return lines


def command_lines(commands: Iterable[tuple[str, str]], width: int | None) -> list[Line]:
    """Return a blank line, and below it each command with what it does, in two columns; nothing without commands."""
    safe = [(safe_text(command), why) for command, why in commands]
    longest = max((cells(command) for command, _ in safe), default=0)
    lines = [fitted([(padded(command, longest), "strong"), (f"   {why}", "dim")], width) for command, why in safe]
    return [[], *lines] if lines else []


def _words(whats: Iterable[str]) -> str:
    return "".join(f" {shlex.quote(what)}" for what in whats)


def _show_command(calls: list[Exchange | ModelCall], what: str) -> tuple[str, str]:
    """Return the command that shows the first call with the worst outcome, or the slowest where all are ok."""
    firsts: dict[Outcome, Exchange | ModelCall] = {}
    for call in calls:
        firsts.setdefault(call.outcome, call)
    for outcome, noun in _NOUNS.items():
        row = firsts.get(outcome)
        if row is not None:
            return f"mcpspy show {shlex.quote(f'{what}:{row.row}')}", f"the first {noun} in full"
    slowest = max(calls, key=lambda call: call.duration_ns or 0)
    return f"mcpspy show {shlex.quote(f'{what}:{slowest.row}')}", "the slowest call in full"
