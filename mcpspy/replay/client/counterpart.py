"""Counterparts of a replay: the recorded and the live transcript, reduced to the rows that can be compared.

What was not sent is not missing, and neither is what the server did not come to ask. `compare` compares them.
"""

import json
import re
from bisect import bisect_right
from collections.abc import Callable, Container, Iterable, Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

from ...json_path import Step
from ...lazy_pattern import lazy_pattern
from ...records import CLIENT, PSEUDONYM_PREFIX
from ...transcript.model import HTTP_REDIRECTS, Exchange, Kind, Message, Outcome, Row, Transcript, UnpairedMessage
from ...wire.edits import ValueEdit, with_values
from ...wire.json_spans import span_at
from ..compare.compare import ComparedSide
from ..compare.ignore import NOTHING
from ..compare.messages import content_key
from ..json_values import mask_of, read, value_at, with_stand_ins
from .plan import Plan
from .player import Report


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayedPlan:
    """One plan that was played. `selected` are the rows that a user selected, None for all.

    `restore` puts the recorded values in place of the correlated live ones, in a live payload that belongs to a recorded row.
    """

    plan: Plan
    report: Report
    selected: frozenset[int] | None = None
    restore: Callable[[int, bytes], bytes] | None = None


PATIENCE_NS: Final = 100_000_000
"""Longest time after an answer at which a message still belongs to it: a replay goes on at once."""


def compared_sides(before: Transcript, after: Transcript, played: PlayedPlan) -> tuple[ComparedSide, ComparedSide]:
    """Return the two sides of the comparison of a capture with its replay. Without findings, which are about one run each."""
    report = played.report
    after = _without_sent_again(after)
    recorded_rows = {id: row for row, id in report.sent.items()}
    pairs = _pairs(after, recorded_rows, report.server_requests)
    if played.restore is not None:
        _restore(pairs, after, played.restore)
    recorded = {exchange.row: exchange for exchange in before.exchanges}
    exchanges = [(live, recorded[row]) for live, row in pairs if row in recorded]
    restore_regenerated(exchanges)
    restore_pseudonyms(exchanges)
    unknown = _rows_with_unknown_answer(before) | (report.stopped or set())
    played_rows = {row for _, row in pairs} - unknown
    if played.selected is not None:
        rows = frozenset(played.selected & played_rows)
        live_rows = frozenset(live.row for live, row in pairs if row in rows)
        return (
            ComparedSide(transcript=_without_findings(before), rows=rows),
            ComparedSide(transcript=_without_findings(after), rows=live_rows),
        )
    unknown_live = {live.row for live, row in pairs if row in unknown}
    rows_after = [row for row in after.rows if not isinstance(row, Exchange) or row.row not in unknown_live]
    whole_before, whole_after = _only_played(before, played, played_rows, unknown), rows_after
    if unknown or report.lost or {exchange.row for exchange in before.exchanges if exchange.sender == CLIENT} - played_rows:
        whole_before, whole_after = _in_exchanges(whole_before), _in_exchanges(whole_after)
    else:
        whole_before = _while_waiting(before, whole_before, whole_after)
    return (
        ComparedSide(transcript=Transcript(captures=before.captures, rows=whole_before)),
        ComparedSide(transcript=Transcript(captures=after.captures, rows=whole_after)),
    )


def _in_exchanges(rows: list[Row]) -> list[Row]:
    """Leave out unpaired messages, where nobody knows what the server would have sent after what was not played."""
    return [row for row in rows if not isinstance(row, UnpairedMessage)]


def _while_waiting(before: Transcript, rows: list[Row], live: list[Row]) -> list[Row]:
    """Leave out notifications of the server for which a replay does not wait: those that came while the client did nothing.

    Those that came all the same are kept, or they would be more than were recorded.
    """
    came = {content_key(row, NOTHING) for row in live if isinstance(row, UnpairedMessage)}
    spans = sorted(
        (exchange.at_ns, exchange.at_ns + (exchange.duration_ns or 0) + PATIENCE_NS) for exchange in before.exchanges
    )
    begins = [begin for begin, _ in spans]
    ends = list(accumulate((end for _, end in spans), max))

    def is_awaited(row: Row) -> bool:
        if not isinstance(row, UnpairedMessage) or row.message.kind is not Kind.NOTIFICATION or row.candidates:
            return True  # a `pong` with its `ping` is no notification that the server may send at any time
        at = bisect_right(begins, row.at_ns)
        return (at > 0 and row.at_ns <= ends[at - 1]) or content_key(row, NOTHING) in came

    return [row for row in rows if is_awaited(row)]


def _without_findings(transcript: Transcript) -> Transcript:
    return Transcript(captures=transcript.captures, rows=transcript.rows)


def _pairs(after: Transcript, recorded_rows: dict[str, int], server_requests: dict[str, int]) -> list[tuple[Exchange, int]]:
    """Pair the live exchanges with the recorded rows that they belong to."""
    pairs: list[tuple[Exchange, int]] = []
    for exchange in after.exchanges:
        row = (recorded_rows if exchange.sender == CLIENT else server_requests).get(exchange.request.id or "")
        if row is not None:
            pairs.append((exchange, row))
    return pairs


def _without_sent_again(after: Transcript) -> Transcript:
    """Leave out requests that HTTP redirected or refused and that are there once more, with the same id."""
    last = {exchange.request.id: exchange.row for exchange in after.exchanges if exchange.sender == CLIENT}

    def is_sent_again(row: Exchange) -> bool:
        status = 0 if row.transaction is None or row.response is not None else row.transaction.status
        return status >= HTTP_REDIRECTS and row.sender == CLIENT and last[row.request.id] != row.row

    rows = [row for row in after.rows if not isinstance(row, Exchange) or not is_sent_again(row)]
    return Transcript(captures=after.captures, rows=rows)


def _restore(pairs: list[tuple[Exchange, int]], after: Transcript, restore: Callable[[int, bytes], bytes]) -> None:
    for live in after.rows:
        if isinstance(live, UnpairedMessage) and live.message.kind is not Kind.MALFORMED:
            live.message.raw = restore(0, live.message.raw)
    for exchange, row in pairs:
        for message in (exchange.request, exchange.response):
            if message is not None and message.raw:
                message.raw = restore(row, message.raw)


def _rows_with_unknown_answer(before: Transcript) -> set[int]:
    """Find the requests whose answers may have come, but are missing because the capture breaks off or has gaps."""
    return {
        exchange.row
        for exchange in before.exchanges
        if exchange.response is None
        and exchange.outcome in (Outcome.PENDING, Outcome.UNANSWERED, Outcome.UNKNOWN)
        and not before.captures[exchange.capture].complete
    }


def _only_played(before: Transcript, played: PlayedPlan, played_rows: Container[int], unknown: Container[int]) -> list[Row]:
    """Leave out what was not played: requests that were not sent, and what the server asked after them."""
    report = played.report
    left_out = {unsent.row for unsent in played.plan.left_out}
    unsent_ns = [unsent.message.at_ns for unsent in report.unsent if unsent.row not in left_out]
    until_ns = min(unsent_ns, default=None)

    def is_kept(row: Exchange) -> bool:
        if row.row not in played.plan.rows or row.row in unknown:
            return False
        if row.sender == CLIENT:
            return row.row in played_rows
        return until_ns is None or row.at_ns < until_ns or row.row in played_rows

    return [row for row in before.rows if not isinstance(row, Exchange) or is_kept(row)]


# --- Regenerated values: values of a live server that differ at each run, replaced by the recorded ones ---
#
# By the specification these are task ids, cursors, `requestState` and elicitation ids: they are replaced wherever the server uses
# them, in texts too. A redacted value is replaced where the live value fits around its pseudonym. Values that only look generated
# are the job of `correlate`.


MIN_LETTERS: Final = 6
"""Shorter values occur in texts by chance."""

MAX_ELICITATIONS: Final = 8

MAX_OTHERS: Final = 50
"""The most values that are not words and are searched for; words are looked up, however many there are."""

_word = lazy_pattern(rb"[A-Za-z0-9_-]{6,}")

_IN_REQUESTS: Final[tuple[tuple[Step, ...], ...]] = (("params", "elicitationId"), ("params", "taskId"))
_IN_ANSWERS: Final[tuple[tuple[Step, ...], ...]] = (
    ("result", "taskId"),
    ("result", "task", "taskId"),
    ("result", "nextCursor"),
    ("result", "requestState"),
    *(("error", "data", "elicitations", at, "elicitationId") for at in range(MAX_ELICITATIONS)),
)
_NAMES: Final = lazy_pattern(rb'"(?:elicitationId|taskId|nextCursor|requestState)"')
_PSEUDONYM_START: Final = PSEUDONYM_PREFIX.encode()


def restore_regenerated(pairs: Iterable[tuple[Exchange, Exchange]]) -> None:
    """Replace generated values in live messages: `pairs` are live exchanges, each with its recorded one."""
    exchanges = list(pairs)
    recorded_values: dict[bytes, bytes] = {}
    for live, recorded in exchanges:
        both = ((live.request, recorded.request, _IN_REQUESTS), (live.response, recorded.response, _IN_ANSWERS))
        for now, then, paths in both:
            if now is not None and then is not None and _NAMES.search(now.raw) and _NAMES.search(then.raw):
                recorded_values.update(_different_texts(now.raw, then.raw, paths))
    if recorded_values:
        others = [value for value in recorded_values if not _word.fullmatch(value)]
        alternatives = [*map(re.escape, sorted(others[:MAX_OTHERS], key=len, reverse=True)), _word.pattern]
        values = re.compile(b"|".join(alternatives))
        for message in _messages(live for live, _ in exchanges):
            message.raw = values.sub(lambda match: recorded_values.get(match[0], match[0]), message.raw)


def _different_texts(now: bytes, then: bytes, paths: Iterable[tuple[Step, ...]]) -> Iterator[tuple[bytes, bytes]]:
    """Yield the live and the recorded text, as spelled in JSON, at each path where they differ."""
    for path in paths:
        live_span, recorded_span = span_at(now, path), span_at(then, path)
        if live_span is None or recorded_span is None:
            continue
        live, recorded = now[slice(*live_span)], then[slice(*recorded_span)]
        if live != recorded and _is_long_text(live) and _is_long_text(recorded):
            yield live[1:-1], recorded[1:-1]


def _is_long_text(value: bytes) -> bool:
    try:
        return value[:1] == b'"' and len(json.loads(value)) >= MIN_LETTERS
    except ValueError:
        return False


def _messages(exchanges: Iterable[Exchange]) -> Iterator[Message]:
    for exchange in exchanges:
        yield exchange.request
        if exchange.response is not None:
            yield exchange.response


def restore_pseudonyms(pairs: Iterable[tuple[Exchange, Exchange]]) -> None:
    """Put the recorded pseudonyms into live messages where the live values fit: `pairs` are live and recorded exchanges."""
    for live, recorded in pairs:
        for now, then in ((live.request, recorded.request), (live.response, recorded.response)):
            if now is not None and then is not None and _PSEUDONYM_START in then.raw:
                _put_pseudonyms(now, then)


def _put_pseudonyms(now: Message, then: Message) -> None:
    live, recorded = read(now.raw), read(then.raw)
    fitting = [text.steps for text in mask_of(recorded) if with_stand_ins(live, (text,)) is not None]
    edits = [ValueEdit(steps, json.dumps(value_at(recorded, steps)).encode()) for steps in fitting]
    now.raw = with_values(now.raw, edits)
