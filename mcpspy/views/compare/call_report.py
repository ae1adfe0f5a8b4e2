"""One call as lines: its outcome and time, the answer, and what differs from the recorded one."""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote
from typing import TYPE_CHECKING, Final

from ...replay.compare.difference import rule_for
from ...transcript.model import Outcome
from ...wire.json_spans import members
from ..text.escape import one_line
from ..text.hint import command_lines
from ..text.line import Line, fitted
from ..text.pretty import pretty
from ..text.units import duration
from .differences import difference_lines

if TYPE_CHECKING:
    from ...replay.compare.compare import CallChange, Comparison
    from ...transcript.model import Exchange

_PARTS: Final = ("result", "error")


def call_lines(live: Exchange, recorded: Exchange | None, comparison: Comparison | None, width: int | None) -> Iterator[Line]:
    """Yield a call that was answered: `recorded` is the one that it repeats, if it repeats one."""
    is_good = live.outcome is Outcome.OK
    words: Line = [("✓ " if is_good else "✗ ", "good" if is_good else "bad"), (one_line(live.method), "")]
    if live.target:
        words += [(" ", ""), (one_line(live.target, 80), "strong")]
    words += [("  ", ""), (live.outcome.value, "good" if is_good else "bad"), (f"  {duration(live.duration_ns or 0)}", "")]
    if recorded is not None and recorded.duration_ns:
        words.append((f", recorded {duration(recorded.duration_ns)}", "dim"))
    yield fitted(words, width)
    answer = members(live.response.raw) if live.response is not None else {}
    yield from pretty(next((bytes(answer[part]) for part in _PARTS if part in answer), b""), width=width)
    if comparison is not None and recorded is not None:
        yield []
        yield from _comparison_lines(comparison, recorded.row, width)


def call_next_lines(comparison: Comparison | None, path: str, row: int | None, width: int | None) -> list[Line]:
    """Return the next commands after an empty line."""
    commands = [] if row is None else [(f"mcpspy show {quote(path)}:{row}", "the call in full")]
    change = None if comparison is None else _change(comparison)
    first = None if change is None else next(iter(change.answer.listed), None)
    if first is not None and first.steps:
        commands.append((f"--ignore {quote(rule_for(first.steps))}", "ignores the first difference"))
    return command_lines(commands, width)


def _comparison_lines(comparison: Comparison, row: int, width: int | None) -> Iterator[Line]:
    change = _change(comparison)
    if not comparison.different or change is None:
        yield fitted([("✓ ", "good"), (f"as recorded in row {row}", "")], width)
        return
    yield fitted([("✗ ", "bad"), (f"differs from row {row}", "strong")], width)
    if change.outcomes is not None:
        before, after = change.outcomes
        yield fitted([("    ", ""), (before.value, "bad"), (" → ", ""), (after.value, "good")], width)
    yield from difference_lines(change.params, indent=4, width=width)
    yield from difference_lines(change.answer, indent=4, width=width)


def _change(comparison: Comparison) -> CallChange | None:
    """Return the change of the one call that was compared."""
    return next((change for server in comparison.servers for change in server.calls), None)
