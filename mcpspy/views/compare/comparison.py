"""A comparison as lines: a summary, then for each server its identity, definitions, calls, timing and findings.

Every call that differs is shown. A difference is a path, the value before and the value after; a long value is cut around it.
"""

from collections import Counter
from collections.abc import Iterator
from datetime import tzinfo
from shlex import quote
from typing import Any, Final

from ...replay.compare.compare import CallChange, Comparison, DurationChange, FindingChange, ServerComparison
from ...replay.compare.difference import Difference, Differences, rule_for
from ...replay.compare.messages import MessageChange
from ...replay.compare.server import DefinitionChange
from ...replay.json_values import readable_json
from ...transcript.model import CaptureInfo, Exchange
from ..page.text_runs import alike
from ..text.cells import wrapped
from ..text.escape import one_line, safe_text
from ..text.hint import command_lines
from ..text.line import Line, Piece, fitted, line_cells
from ..text.units import counted, duration
from ..timeline.findings import STYLES
from ..timeline.summary import capture_line, headline

_SIGNS: Final[dict[str, Piece]] = {"added": ("+ ", "good"), "removed": ("- ", "bad"), "changed": ("~ ", "warn")}
MAX_CAPTURES: Final = 8
MAX_NAMES: Final = 5

VALUE_LETTERS: Final = 160
"""The most letters of a value shown where the width is unbounded."""

MIN_VALUE_LETTERS: Final = 24

SHOWN: Final = 12
"""The most differences of one thing that are shown; the JSON output has more."""


def comparison_lines(
    comparison: Comparison, *, width: int | None = None, zone: tzinfo | None = None, unsent: int = 0
) -> Iterator[Line]:
    """Yield the complete comparison. `zone` is the time zone of the captures' beginnings; None means the system's.

    `unsent` is the number of messages that a replay had to leave out: without them there is no good result.
    """
    yield from _summary(comparison, width, unsent)
    for name, transcript in (("A", comparison.before), ("B", comparison.after)):
        for capture in transcript.captures[:MAX_CAPTURES]:
            yield fitted(_side(name, capture, zone), width)
    several = len(comparison.servers) > 1
    for server in comparison.servers:
        lines = list(_server(server, comparison, width))
        if several and lines:
            yield []
            yield fitted([(one_line(server.name), "strong")], width)
        yield from lines


def _summary(comparison: Comparison, width: int | None, unsent: int) -> list[Line]:
    same = sum(server.same for server in comparison.servers)
    parts: list[Line] = [[(text, "strong" if at == 0 else "")] for at, text in enumerate(_counts(comparison))]
    sign: Piece = ("✗ ", "bad") if comparison.different or unsent else ("✓ ", "good")
    if not comparison.different:
        parts = [[("no difference in the others" if unsent else "no difference", "" if unsent else "strong")]]
    if unsent:
        parts.insert(0, [(f"{counted(unsent, 'message')} not sent", "strong")])
    return headline(sign, [*parts, [(f"{counted(same, 'call')} unchanged", "dim")]], width)


def _counts(comparison: Comparison) -> Iterator[str]:
    servers = comparison.servers
    yield from _hows(
        "server",
        ["removed" if server.after is None else "added" for server in servers if None in (server.before, server.after)],
    )
    differences = sum(server.identity.count for server in servers)
    if differences:
        yield f"{counted(differences, 'difference')} in identity"
    yield from _hows("definition", [change.how for server in servers for change in server.definitions])
    yield from _hows("call", [change.how for server in servers for change in server.calls])
    yield from _hows("message", [change.how for server in servers for change in server.messages])
    yield from _hows("finding", [change.how for server in servers for change in server.findings])
    if comparison.limit.counts and comparison.slower:
        yield f"{counted(len(comparison.slower), 'call')} slower"


def _hows(noun: str, hows: list[str]) -> Iterator[str]:
    """Yield `2 calls changed, 1 added`."""
    counts = Counter(hows)
    words = [(counts[how], how) for how in ("changed", "added", "removed") if counts[how]]
    if words:
        (count, how), *others = words
        yield ", ".join([f"{counted(count, noun)} {how}", *(f"{count:,} {how}" for count, how in others)])


def _side(name: str, capture: CaptureInfo, zone: tzinfo | None) -> Line:
    line = capture_line(capture, zone) or [("  a capture without its header", "dim")]
    return [(f"  {name}", "strong"), *line, *([] if capture.complete else [(" · incomplete", "warn")])]


def _server(server: ServerComparison, comparison: Comparison, width: int | None) -> Iterator[Line]:
    if server.before is None or server.after is None:
        yield []
        yield fitted(
            [_SIGNS["added" if server.before is None else "removed"], (one_line(server.name), "strong"), (_only(server), "")],
            width,
        )
        return
    if server.identity:
        yield from _section("identity", width=width)
        yield from difference_lines(server.identity, indent=2, width=width)
    if server.definitions:
        yield from _section("definitions", width=width)
        for definition in server.definitions:
            yield from _definition(definition, width)
    if server.calls:
        yield from _section("calls", width=width)
        for call in server.calls:
            yield from _call(call, width)
    if server.messages:
        yield from _section("messages of the server", "in no exchange", width=width)
        for message in server.messages:
            yield from _message(message, width)
    if server.took:
        yield from _section("timing", _limit_words(comparison), width=width)
        for took in server.took:
            yield from _took(took, width)
    if server.findings:
        yield from _section("findings", width=width)
        for finding in server.findings:
            yield from _finding(finding, width)


def _only(server: ServerComparison) -> str:
    return f" is only in {'B' if server.before is None else 'A'}, with {counted(len(server.calls), 'call')}"


def _section(name: str, more: str = "", *, width: int | None) -> Iterator[Line]:
    yield []
    yield fitted([(name, "strong"), *([(f" · {more}", "dim")] if more else [])], width)


def _definition(change: DefinitionChange, width: int | None) -> Iterator[Line]:
    yield fitted([("  ", ""), _SIGNS[change.how], (f"{change.part.value} ", ""), (one_line(change.name), "strong")], width)
    yield from difference_lines(change.fields, indent=6, width=width)


def _call(change: CallChange, width: int | None) -> Iterator[Line]:
    shown = change.after or change.before
    assert shown is not None
    line: Line = [("  ", ""), _SIGNS[change.how], *_call_words(shown)]
    if change.outcomes is not None:
        before, after = change.outcomes
        line += [("  ", ""), (before.value, "bad"), (" → ", ""), (after.value, "good")]
    elif change.how != "changed":
        line += [("  ", ""), (shown.outcome.value, "dim")]
    yield fitted([*line, *_rows(change.before, change.after)], width)
    yield from difference_lines(change.params, indent=6, width=width)
    yield from difference_lines(change.answer, indent=6, width=width)
    if change.repeated and (change.params or change.answer):
        names = ", ".join(one_line(name, 40) for name in change.repeated[:MAX_NAMES])
        yield from _note_lines(f"an object has more than one {names}: the last one was compared", indent=6, width=width)


def _message(change: MessageChange, width: int | None) -> Iterator[Line]:
    message = change.row.message
    row = f"  {'B' if change.how == 'added' else 'A'}:{change.row.row}" + (f"  ×{change.count:,}" if change.count > 1 else "")
    words: Line = [(one_line(message.method or message.kind.value), "")]
    yield fitted([("  ", ""), _SIGNS[change.how], *words, (row, "dim")], width)
    yield from _note_lines(one_line(message.raw.decode("utf-8", "replace")), indent=6, width=width)


def _took(took: DurationChange, width: int | None) -> Iterator[Line]:
    style = "bad" if took.after_ns > took.before_ns else "good"
    times: Line = [(duration(took.before_ns), "dim"), (" → ", "dim"), (duration(took.after_ns), style)]
    yield fitted([("    ", ""), *_call_words(took.after), ("  ", ""), *times, *_rows(took.before, took.after)], width)


def _limit_words(comparison: Comparison) -> str:
    limit = comparison.limit
    words = f"by a factor of {limit.factor:g} and at least {duration(limit.least_ns)}"
    return words + ("; slower counts as a difference" if limit.counts else "; not counted as a difference")


def _finding(change: FindingChange, width: int | None) -> Iterator[Line]:
    finding = change.finding
    row = "" if finding.row is None else f"  {'B' if change.how == 'added' else 'A'}:{finding.row}"
    times = f"  ×{change.count:,}" if change.count > 1 else ""
    severity: Piece = (f"{finding.severity.value} ", STYLES[finding.severity])
    yield fitted([("  ", ""), _SIGNS[change.how], severity, (finding.rule, "strong"), (row + times, "dim")], width)
    yield from _note_lines(one_line(finding.what), indent=6, width=width)


def _call_words(exchange: Exchange) -> Line:
    words: Line = [(one_line(exchange.method), "")]
    if exchange.target:
        words += [(" ", ""), (one_line(exchange.target, 80), "strong")]
    return words


def _rows(before: Exchange | None, after: Exchange | None) -> Line:
    rows = [f"{name}:{exchange.row}" for name, exchange in (("A", before), ("B", after)) if exchange is not None]
    return [("  " + " ".join(rows), "dim")]


def next_lines(comparison: Comparison, before: str, after: str, width: int | None) -> list[Line]:
    """Return the next commands after an empty line: the first call that differs on both sides, and a rule that ignores it.

    `before` and `after` are the WHATs, quoted; empty where a WHAT cannot be followed by a row.
    """
    commands: list[tuple[str, str]] = []
    changed = next((change for server in comparison.servers for change in server.calls if change.how == "changed"), None)
    if changed is None or changed.before is None or changed.after is None:
        return []
    for what, row, name in ((before, changed.before.row, "before"), (after, changed.after.row, "after")):
        if what:
            commands.append((f"mcpspy show {what}:{row}", f"the first call that differs, {name}"))
    first = next(iter((*changed.params.listed, *changed.answer.listed)), None)
    if first is not None and first.steps:
        commands.append((f"--ignore {quote(rule_for(first.steps))}", "ignores its first difference"))
    return command_lines(commands, width)


def difference_lines(differences: Differences, *, indent: int, width: int | None) -> Iterator[Line]:
    """Yield a line for each difference, or three where it does not fit, and below them the number of differences left out."""
    for difference in differences.listed[:SHOWN]:
        yield from _lines(difference, " " * indent, width)
    more = differences.count - min(len(differences.listed), SHOWN)
    if more:
        yield fitted([(" " * indent, ""), (f"… {counted(more, 'more difference')}", "dim")], width)


def _lines(difference: Difference, indent: str, width: int | None) -> Iterator[Line]:
    room = VALUE_LETTERS if width is None else max(width - len(indent) - 4, MIN_VALUE_LETTERS)
    line: Line = [(indent, ""), *_line(difference, room)]
    if width is None or line_cells(line) <= width:
        yield line
        return
    yield fitted([(indent, ""), (safe_text(difference.path), "key")], width)
    before, after = _values(difference, room)
    for sign, text, style in (("- ", before, "bad"), ("+ ", after, "good")):
        if text:
            yield fitted([(f"{indent}  {sign}", style), (text, style)], width)


def _line(difference: Difference, letters: int) -> Line:
    before, after = _values(difference, letters)
    line: Line = [(safe_text(difference.path), "key")]
    if difference.how == "added":
        return [*line, (" added: ", ""), (after, "good")]
    if difference.how == "removed":
        return [*line, (" removed: ", ""), (before, "bad")]
    return [*line, (": ", ""), (before, "bad"), (" ≠ ", ""), (after, "good")]


def _values(difference: Difference, letters: int) -> tuple[str, str]:
    """Return both values, safe; empty for a value that does not exist."""
    begin = 0
    old, new = difference.before, difference.after
    if isinstance(old, str) and isinstance(new, str) and max(len(old), len(new)) > letters:
        begin = max(0, alike(old, new) - letters // 4)
    before = "" if difference.how == "added" else _shortened(difference.before, begin, letters)
    return before, "" if difference.how == "removed" else _shortened(difference.after, begin, letters)


def _shortened(value: Any, begin: int, letters: int) -> str:
    if isinstance(value, str):
        text, end = value[begin : begin + letters], begin + letters < len(value)
        return safe_text(f"{'…' if begin else ''}{readable_json(text)}{'…' if end else ''}")
    text = readable_json(value)
    return safe_text(text if len(text) <= letters else text[:letters] + "…")


def _note_lines(text: str, *, indent: int, width: int | None) -> Iterator[Line]:
    """Yield a safe sentence of ours, indented."""
    for part in [text] if width is None else wrapped(text, max(width - indent, MIN_VALUE_LETTERS), 3):
        yield fitted([(" " * indent, ""), (part, "dim")], width)
