"""A replay, one call, and the smallest sequence that makes a condition true, as lines; the sequence as JSON too."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from shlex import quote
from typing import TYPE_CHECKING, Any, Final

from ...replay.client.outgoing import Effect, Effects, PlannedMessage
from ...replay.client.plan import Plan, Send, UnsentMessage
from ...replay.client.player import Report
from ...replay.compare.difference import rule_for
from ...replay.mock.miss import request_name
from ...replay.shrink import ShrinkResult
from ...transcript.model import Exchange, Kind, Message, Outcome
from ...wire.json_spans import members
from ..text.escape import one_line, safe_text
from ..text.hint import command_lines
from ..text.json_text import SCHEMA, as_json
from ..text.line import Line, Piece, fitted
from ..text.pretty import pretty
from ..text.units import counted, duration
from ..timeline.phrases import outcome_phrase
from ..timeline.summary import headline
from .comparison import difference_lines

if TYPE_CHECKING:
    from ...replay.compare.compare import CallChange, Comparison

MAX_LISTED: Final = 20
MAX_NAMES: Final = 8

_WORDS: Final[dict[Effect, Piece]] = {
    Effect.NONE: ("", ""),
    Effect.READS: ("read-only", "dim"),
    Effect.CHANGES: ("may change something", "warn"),
    Effect.DESTROYS: ("destructive", "bad"),
}

_PARTS: Final = ("result", "error")

PARAMS_LETTERS: Final = 60

MAX_SENDS: Final = 50


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
    for send in shrunk.sends[:MAX_SENDS]:
        yield fitted(_send_line(send, shrunk), width)
    if len(shrunk.sends) > MAX_SENDS:
        yield [(f"     and {len(shrunk.sends) - MAX_SENDS:,} more", "dim")]


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
