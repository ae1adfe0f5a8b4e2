"""A replay for people: what it will send, and, beside the comparison, what it did not send, or was not answered, and why."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

from ...replay.client.outgoing import Effect
from ...replay.mock.miss import request_name
from ...transcript.model import Kind
from ..text.escape import one_line, safe_text
from ..text.line import Line, Piece, fitted
from ..text.units import counted

if TYPE_CHECKING:
    from ...replay.client.outgoing import Effects, PlannedMessage
    from ...replay.client.plan import Plan, UnsentMessage
    from ...replay.client.player import Report
    from ...transcript.model import Exchange, Message

MAX_LISTED: Final = 20
MAX_NAMES: Final = 8

_WORDS: Final[dict[Effect, Piece]] = {
    Effect.NONE: ("", ""),
    Effect.READS: ("read-only", "dim"),
    Effect.CHANGES: ("may change something", "warn"),
    Effect.DESTROYS: ("destructive", "bad"),
}


def intent(plans: Iterable[Plan], effects: Effects, target: str) -> str:
    """One sentence: how much goes where, and what of it may change something. Safe to be shown."""
    sends = [send for plan in plans for send in plan.sends]
    found = [effects.of(send.exchange) for send in sends if send.exchange is not None]
    calls = len(found) - found.count(Effect.NONE)
    among = f", {counted(calls, 'tool call')} among them," if calls else ""
    told = f"{counted(len(sends), 'message')} to send{among} to {target}"
    parts = [
        f"{found.count(effect)} {words}"
        for effect, words in ((Effect.DESTROYS, "destructive"), (Effect.CHANGES, "not known to be read-only"))
        if found.count(effect)
    ]
    return safe_text(told) + (f" ({', '.join(parts)})" if parts else "")


def changing(plans: Iterable[Plan], effects: Effects) -> list[str]:
    """The calls that are not known to read alone, each once, destructive ones first. Safe to be shown."""
    found: dict[str, Effect] = {}
    for plan in plans:
        for one in plan.requests:
            effect = effects.of(one)
            if effect in (Effect.CHANGES, Effect.DESTROYS):
                found[one_line(request_name(one.request), 80)] = effect
    ranked = sorted(found.items(), key=lambda one: one[1] is not Effect.DESTROYS)
    return [f"{name}{' (destructive)' if effect is Effect.DESTROYS else ''}" for name, effect in ranked]


def plan_lines(found: Iterable[PlannedMessage], left_out: Iterable[UnsentMessage], width: int | None) -> Iterator[Line]:
    """What would be sent, in order, and what would not."""
    for one in found:
        yield from _rehearsed_lines(one, width)
    yield from unsent_lines(left_out, width)


def _rehearsed_lines(one: PlannedMessage, width: int | None) -> Iterator[Line]:
    sign: Piece = ("✗ ", "bad") if one.refused else ("→ ", "")
    line: Line = [(f"{one.send.row:>4} ", "dim"), sign, *_named(one.send.message)]
    words = _WORDS[one.effect or Effect.NONE]
    line += [("  ", ""), words] if words[0] else []
    if one.refused:
        line += [("  ", ""), (one.refused, "bad")]
    yield fitted(line, width)
    yield fitted([("       ", ""), (one_line(one.data.decode("utf-8", "replace")), "dim")], width)
    for each in one.carried[:MAX_NAMES]:
        value = one_line(str(each.value), 60)
        yield fitted([("       ", ""), (f"{one_line(each.what)} {value} of row {each.from_row}: the live one", "wait")], width)


def end_lines(report: Report, sends: int, width: int | None) -> Iterator[Line]:
    """That the server was gone, or somebody stopped it, before all was sent, or answered; nothing where that was not so."""
    after = f" after {report.sends} of {counted(sends, 'message')}" if report.sends else ""
    if report.stopped is not None:
        yield fitted([("✗ ", "bad"), (f"interrupted{after}", "strong")], width)
    elif report.lost:
        yield fitted([("✗ ", "bad"), (f"stopped{after}: ", "strong"), (one_line(report.lost, 400), "")], width)


def report_lines(report: Report, recorded: dict[int, Exchange], width: int | None) -> Iterator[Line]:
    """What of a plan came otherwise than it was recorded, by no fault of an answer; nothing where all went out and was answered.

    `recorded` are the exchanges of the recording by row: what was not answered then either is no news.
    """
    if report.unsent:
        yield []
        yield from unsent_lines(report.unsent, width)
    late = [(row, "no answer in time") for row in report.late if recorded[row].response is not None]
    late += report.ended.items()
    if late:
        yield []
        yield fitted([("not answered", "strong")], width)
        for row, why in late[:MAX_LISTED]:
            yield fitted([("  ", ""), *_named(recorded[row].request), (f"  row {row}: ", "dim"), (one_line(why), "")], width)
        yield from _more(len(late))
    if report.misses:
        yield []
        yield fitted([("asked by the server, and never recorded", "strong")], width)
        for miss in report.misses[:MAX_LISTED]:
            yield fitted([("  ", ""), (one_line(miss.sentence), "")], width)
        yield from _more(len(report.misses))


def unsent_lines(unsent: Iterable[UnsentMessage], width: int | None) -> Iterator[Line]:
    """What was not sent, and why."""
    listed = list(unsent)
    if listed:
        yield fitted([("not sent", "strong")], width)
    for one in listed[:MAX_LISTED]:
        yield fitted([("  ", ""), *_named(one.message), (f"  row {one.row}: ", "dim"), (one_line(one.why), "")], width)
    yield from _more(len(listed))


def _more(count: int) -> Iterator[Line]:
    if count > MAX_LISTED:
        yield [(f"  and {count - MAX_LISTED:,} more", "dim")]


def _named(message: Message) -> Line:
    if message.kind is Kind.MALFORMED:
        return [("no JSON-RPC", "warn")]
    words: Line = [(one_line(message.method or f"the {message.kind.value} to a question"), "")]
    if message.target:
        words += [(" ", ""), (one_line(message.target, 80), "strong")]
    return words
