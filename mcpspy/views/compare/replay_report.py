"""A replay as lines: what it will send, and beside the comparison, what was not sent or not answered, and why."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

from ...replay.client.outgoing import Effect, Effects, PlannedMessage
from ...replay.client.plan import Plan, UnsentMessage
from ...replay.client.player import Report
from ...replay.mock.miss import request_name
from ...transcript.model import Exchange, Kind, Message
from ..text.escape import one_line, safe_text
from ..text.line import Line, Piece, fitted
from ..text.units import counted

MAX_LISTED: Final = 20
MAX_NAMES: Final = 8

_WORDS: Final[dict[Effect, Piece]] = {
    Effect.NONE: ("", ""),
    Effect.READS: ("read-only", "dim"),
    Effect.CHANGES: ("may change something", "warn"),
    Effect.DESTROYS: ("destructive", "bad"),
}


def intent(plans: Iterable[Plan], effects: Effects, target: str) -> str:
    """Return one safe sentence: how many messages go where, and how many of the calls may change something."""
    sends = [send for plan in plans for send in plan.sends]
    counts = Counter(effects.of(send.exchange) for send in sends if send.exchange is not None)
    calls = counts.total() - counts[Effect.NONE]
    including = f", including {counted(calls, 'tool call')}" if calls else ""
    sentence = f"{counted(len(sends), 'message')} to send to {target}{including}"
    risks = ((Effect.DESTROYS, "destructive"), (Effect.CHANGES, "not known to be read-only"))
    parts = [f"{counts[effect]} {words}" for effect, words in risks if counts[effect]]
    return safe_text(sentence) + (f" ({', '.join(parts)})" if parts else "")


def changing_calls(plans: Iterable[Plan], effects: Effects) -> list[str]:
    """Return the calls that are not known to be read-only, each once, destructive ones first. The texts are safe."""
    names: dict[str, Effect] = {}
    for plan in plans:
        for exchange in plan.requests:
            effect = effects.of(exchange)
            if effect in (Effect.CHANGES, Effect.DESTROYS):
                names[one_line(request_name(exchange.request), 80)] = effect
    ranked = sorted(names.items(), key=lambda pair: pair[1] is not Effect.DESTROYS)
    return [f"{name}{' (destructive)' if effect is Effect.DESTROYS else ''}" for name, effect in ranked]


def plan_lines(planned: Iterable[PlannedMessage], left_out: Iterable[UnsentMessage], width: int | None) -> Iterator[Line]:
    """Yield the messages that would be sent, in order, and those that would not."""
    for message in planned:
        yield from _rehearsed_lines(message, width)
    yield from unsent_lines(left_out, width)


def _rehearsed_lines(planned: PlannedMessage, width: int | None) -> Iterator[Line]:
    sign: Piece = ("✗ ", "bad") if planned.refused else ("→ ", "")
    line: Line = [(f"{planned.send.row:>4} ", "dim"), sign, *_message_words(planned.send.message)]
    effect = _WORDS[planned.effect or Effect.NONE]
    line += [("  ", ""), effect] if effect[0] else []
    if planned.refused:
        line += [("  ", ""), (planned.refused, "bad")]
    yield fitted(line, width)
    yield fitted([("       ", ""), (one_line(planned.data.decode("utf-8", "replace")), "dim")], width)
    for value in planned.correlated[:MAX_NAMES]:
        words = f"{one_line(value.what)} {one_line(str(value.value), 60)} of row {value.from_row}: replaced by the live value"
        yield fitted([("       ", ""), (words, "wait")], width)


def end_lines(report: Report, sends: int, width: int | None) -> Iterator[Line]:
    """Yield a line if the replay was interrupted, or the server was gone, before everything was sent and answered."""
    after = f" after {report.sends} of {counted(sends, 'message')}" if report.sends else ""
    if report.stopped is not None:
        yield fitted([("✗ ", "bad"), (f"interrupted{after}", "strong")], width)
    elif report.lost:
        yield fitted([("✗ ", "bad"), (f"stopped{after}: ", "strong"), (one_line(report.lost, 400), "")], width)


def report_lines(report: Report, recorded: dict[int, Exchange], width: int | None) -> Iterator[Line]:
    """Yield what was not sent, not answered, or requested by the server without a recorded answer.

    `recorded` are the exchanges of the capture by row. A call that has no answer there is left out here.
    """
    if report.unsent:
        yield []
        yield from unsent_lines(report.unsent, width)
    late = [(row, "no answer in time") for row in report.late if recorded[row].response is not None]
    late += report.ended.items()
    if late:
        yield []
        yield from _listed("not answered", [(recorded[row].request, row, why) for row, why in late], width)
    if report.misses:
        yield []
        yield fitted([("requests by the server that were not recorded", "strong")], width)
        for miss in report.misses[:MAX_LISTED]:
            yield fitted([("  ", ""), (one_line(miss.sentence), "")], width)
        yield from _more(len(report.misses))


def unsent_lines(unsent: Iterable[UnsentMessage], width: int | None) -> Iterator[Line]:
    """Yield the messages that were not sent, each with the reason."""
    yield from _listed("not sent", [(left_out.message, left_out.row, left_out.why) for left_out in unsent], width)


def _listed(title: str, messages: list[tuple[Message, int, str]], width: int | None) -> Iterator[Line]:
    """Yield messages below a title, each with its row and the reason; nothing where there are none."""
    if messages:
        yield fitted([(title, "strong")], width)
    for message, row, why in messages[:MAX_LISTED]:
        yield fitted([("  ", ""), *_message_words(message), (f"  row {row}: ", "dim"), (one_line(why), "")], width)
    yield from _more(len(messages))


def _more(count: int) -> Iterator[Line]:
    if count > MAX_LISTED:
        yield [(f"  and {count - MAX_LISTED:,} more", "dim")]


def _message_words(message: Message) -> Line:
    if message.kind is Kind.MALFORMED:
        return [("not JSON-RPC", "warn")]
    words: Line = [(one_line(message.method or f"the {message.kind.value} of a server request"), "")]
    if message.target:
        words += [(" ", ""), (one_line(message.target, 80), "strong")]
    return words
