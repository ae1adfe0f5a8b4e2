"""A comparison for people: a summary, then server by server what each side is, offers, was asked and answered, took and did wrong.

Refuses to leave out a call that differs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import tzinfo
from typing import TYPE_CHECKING, Final

from ...replay.compare.difference import rule_for
from ..text.escape import one_line, safe_text
from ..text.line import Line, Piece, fitted
from ..text.units import counted, duration
from ..timeline.findings import STYLES
from ..timeline.summary import capture_line, headline
from .differences import difference_lines, note_lines

if TYPE_CHECKING:
    from ...replay.compare.compare import CallChange, Comparison, DurationChange, FindingChange, ServerComparison
    from ...replay.compare.server import DefinitionChange
    from ...transcript.model import CaptureInfo, Exchange

_SIGNS: Final[dict[str, Piece]] = {"added": ("+ ", "good"), "removed": ("- ", "bad"), "changed": ("~ ", "warn")}
MAX_CAPTURES: Final = 8
MAX_NAMES: Final = 5


def comparison_lines(found: Comparison, *, width: int | None = None, zone: tzinfo | None = None) -> Iterator[Line]:
    """All of it. `zone` is the time zone of the sides' beginnings; None: the system's."""
    yield from _summary(found, width)
    for name, transcript in (("A", found.before), ("B", found.after)):
        for capture in transcript.captures[:MAX_CAPTURES]:
            yield fitted(_side(name, capture, zone), width)
    several = len(found.servers) > 1
    for one in found.servers:
        lines = list(_server(one, found, width))
        if several and lines:
            yield []
            yield fitted([(one_line(one.name), "strong")], width)
        yield from lines


def _summary(found: Comparison, width: int | None) -> list[Line]:
    same = sum(one.same for one in found.servers)
    parts: list[Line] = [[(text, "strong" if at == 0 else "")] for at, text in enumerate(_counts(found))]
    sign: Piece = ("✗ ", "bad") if found.different else ("✓ ", "good")
    if not found.different:
        parts = [[("no difference", "strong")]]
    return headline(sign, [*parts, [(f"{counted(same, 'call')} the same", "dim")]], width)


def _counts(found: Comparison) -> Iterator[str]:
    servers = found.servers
    yield from _hows(
        "server", ["removed" if one.after is None else "added" for one in servers if None in (one.before, one.after)]
    )
    told = sum(one.identity.count for one in servers)
    if told:
        yield f"{counted(told, 'difference')} in who speaks"
    yield from _hows("definition", [one.how for server in servers for one in server.definitions])
    yield from _hows("call", [one.how for server in servers for one in server.calls])
    yield from _hows("finding", [one.how for server in servers for one in server.findings])
    if found.limit.counts and found.slower:
        yield f"{counted(len(found.slower), 'call')} slower"


def _hows(noun: str, hows: list[str]) -> Iterator[str]:
    """`2 calls changed, 1 added`."""
    counts = Counter(hows)
    words = [(counts[how], how) for how in ("changed", "added", "removed") if counts[how]]
    if words:
        (count, how), *others = words
        yield ", ".join([f"{counted(count, noun)} {how}", *(f"{count:,} {how}" for count, how in others)])


def _side(name: str, capture: CaptureInfo, zone: tzinfo | None) -> Line:
    line = capture_line(capture, zone) or [("  a capture without its header", "dim")]
    return [(f"  {name}", "strong"), *line, *([] if capture.complete else [(" · incomplete", "warn")])]


def _server(one: ServerComparison, found: Comparison, width: int | None) -> Iterator[Line]:
    if one.before is None or one.after is None:
        yield []
        yield fitted(
            [_SIGNS["added" if one.before is None else "removed"], (one_line(one.name), "strong"), (_only(one), "")], width
        )
        return
    if one.identity:
        yield from _section("who speaks", width=width)
        yield from difference_lines(one.identity, indent=2, width=width)
    if one.definitions:
        yield from _section("what is offered", width=width)
        for definition in one.definitions:
            yield from _definition(definition, width)
    if one.calls:
        yield from _section("calls", width=width)
        for call in one.calls:
            yield from _call(call, width)
    if one.took:
        yield from _section("time", _limit_words(found), width=width)
        for took in one.took:
            yield from _took(took, width)
    if one.findings:
        yield from _section("findings", width=width)
        for finding in one.findings:
            yield from _finding(finding, width)


def _only(one: ServerComparison) -> str:
    return f" is in {'B' if one.before is None else 'A'} alone, with {counted(len(one.calls), 'call')}"


def _section(name: str, more: str = "", *, width: int | None) -> Iterator[Line]:
    yield []
    yield fitted([(name, "strong"), *([(f" · {more}", "dim")] if more else [])], width)


def _definition(one: DefinitionChange, width: int | None) -> Iterator[Line]:
    yield fitted([("  ", ""), _SIGNS[one.how], (f"{one.part.value} ", ""), (one_line(one.name), "strong")], width)
    yield from difference_lines(one.fields, indent=6, width=width)


def _call(one: CallChange, width: int | None) -> Iterator[Line]:
    shown = one.after or one.before
    assert shown is not None
    line: Line = [("  ", ""), _SIGNS[one.how], *_asked(shown)]
    if one.outcomes is not None:
        before, after = one.outcomes
        line += [("  ", ""), (before.value, "bad"), (" → ", ""), (after.value, "good")]
    elif one.how != "changed":
        line += [("  ", ""), (shown.outcome.value, "dim")]
    yield fitted([*line, *_rows(one.before, one.after)], width)
    yield from difference_lines(one.params, indent=6, width=width)
    yield from difference_lines(one.answer, indent=6, width=width)
    if one.repeated and (one.params or one.answer):
        names = ", ".join(one_line(name, 40) for name in one.repeated[:MAX_NAMES])
        yield from note_lines(f"an object has more than one {names}: the last one was compared", indent=6, width=width)


def _took(one: DurationChange, width: int | None) -> Iterator[Line]:
    style = "bad" if one.after_ns > one.before_ns else "good"
    times: Line = [(duration(one.before_ns), "dim"), (" → ", "dim"), (duration(one.after_ns), style)]
    yield fitted([("    ", ""), *_asked(one.after), ("  ", ""), *times, *_rows(one.before, one.after)], width)


def _limit_words(found: Comparison) -> str:
    limit = found.limit
    past = f"{limit.factor:g} times as long or as short, and {duration(limit.least_ns)} apart"
    return past + ("; longer is a difference" if limit.counts else "; no difference")


def _finding(one: FindingChange, width: int | None) -> Iterator[Line]:
    finding = one.finding
    row = "" if finding.row is None else f"  {'B' if one.how == 'added' else 'A'}:{finding.row}"
    times = f"  ×{one.count:,}" if one.count > 1 else ""
    severity: Piece = (f"{finding.severity.value} ", STYLES[finding.severity])
    yield fitted([("  ", ""), _SIGNS[one.how], severity, (finding.rule, "strong"), (row + times, "dim")], width)
    yield from note_lines(one_line(finding.what), indent=6, width=width)


def _asked(one: Exchange) -> Line:
    words: Line = [(one_line(one.method), "")]
    if one.target:
        words += [(" ", ""), (one_line(one.target, 80), "strong")]
    return words


def _rows(before: Exchange | None, after: Exchange | None) -> Line:
    rows = [f"{name}:{one.row}" for name, one in (("A", before), ("B", after)) if one is not None]
    return [("  " + " ".join(rows), "dim")]


def next_lines(found: Comparison, before: str, after: str, width: int | None) -> list[Line]:
    """What to do next, behind an empty line: the first call that differs, whole, on both sides; and a rule that ignores it.

    `before` and `after` are the WHATs, quoted; empty where rows cannot be asked of them.
    """
    commands: list[tuple[str, str]] = []
    changed = next((one for server in found.servers for one in server.calls if one.how == "changed"), None)
    if changed is None or changed.before is None or changed.after is None:
        return []
    for what, row, name in ((before, changed.before.row, "before"), (after, changed.after.row, "after")):
        if what:
            commands.append((f"mcpspy show {what}:{row}", f"the first call that differs, {name}"))
    first = next(iter((*changed.params.listed, *changed.answer.listed)), None)
    if first is not None and first.steps:
        commands.append((f"--ignore {_quoted(rule_for(first.steps))}", "leaves out what differs first in it"))
    longest = max((len(command) for command, _ in commands), default=0)
    lines: list[Line] = [
        fitted([(safe_text(command.ljust(longest)), "strong"), (f"   {why}", "dim")], width) for command, why in commands
    ]
    return [[], *lines] if lines else []


def _quoted(text: str) -> str:
    from shlex import quote

    return quote(text)
