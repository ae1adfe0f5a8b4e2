"""The timeline: rows of a transcript in, lines out. An exchange is one line, with its notifications indented below.

A machine like all stages, so that live and offline are one path: `feed` takes a row that will not change any more, `pause`
releases the lines that were withheld for folding, `close` ends it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import tzinfo
from functools import lru_cache
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ...records import Spawn
from ...transcript.calls.call import CallPart
from ...transcript.correlator import BY_ORDER
from ...transcript.exchange import ForwardedCall
from ...transcript.http.transaction import Transaction
from ...transcript.log_matches import LineKey, LogMatch, log_matches
from ...transcript.mcp.methods import INITIALIZE
from ...transcript.model import (
    HTTP_ERRORS,
    ChannelEvent,
    Exchange,
    Log,
    Message,
    ModelCall,
    Numbered,
    Outcome,
    Row,
    Transcript,
    UnpairedMessage,
)
from ...transcript.phases import StartUp, lifecycles
from ...transcript.waiting import waited_ns
from ..text.cells import cells, cut, wrapped
from ..text.columns import GAP, Columns, Lanes, columns, widest_words
from ..text.escape import one_line, safe_text
from ..text.line import Line, fitted, line_cells
from ..text.units import counted
from .calls import PollFolder, with_call
from .details import Detail, has_room, params_words, row_detail
from .findings import finding_lines
from .logs import log_line, log_match_line
from .ordering import Order, in_order, result_tokens
from .phrases import PROGRESS, Phrase, event_phrase, notification_phrase, outcome_phrase, unpaired_phrase
from .summary import capture_lines, start_up_words, summary
from .transaction import body_bytes, status_note, transaction_phrase

if TYPE_CHECKING:
    from ...transcript.filter.result import FilterResult

FOLD_HEAD = 3
FOLD_TAIL = 2
"""The number of lines shown at the beginning and at the end of a long run of stderr."""

DETAIL_LINES = 3
"""The most lines of its own that an error message gets if it does not fit after its outcome."""

MEASURED_ROWS = 2_000
"""Of how many rows, evenly distributed, params are measured for the width of their column: of a long session not of all."""

EXPECTED_WORDS_CELLS = 36
"""The least room for calls of which some are not known yet."""

MIN_PARAMS_CELLS = 8
"""Cells in the column of calls below which params are left out."""

MAX_NOTIFICATIONS = 200
"""The most lines of notifications shown below one exchange; more are counted."""


_name = lru_cache(maxsize=4096)(one_line)
"""Methods and targets on one safe line; few are many."""


class Timeline:
    """Lines of rows. `detail` is the amount that they show. `stderr` shows the server's stderr, `fold` folds long runs of it.

    `flagged` are the numbers of rows with findings, `log_matches` the messages that lines of stderr quote, `start_ups` the
    start-ups of servers by their captures, `hops` the forwarded calls by their rows: the gateway's own calls are shown below those
    that they were made for. A row is fed once, when it has ended.
    """

    __slots__ = (
        "_flagged",
        "_folded",
        "_held",
        "_hops",
        "_polls",
        "_log_matches",
        "_run",
        "_start_ups",
        "_stderr",
        "columns",
        "detail",
        "fold",
        "lanes",
    )

    def __init__(
        self,
        columns: Columns,
        lanes: Lanes,
        *,
        detail: Detail = Detail.NAMES,
        stderr: bool = True,
        fold: bool = True,
        flagged: frozenset[int] = frozenset(),
        log_matches: Mapping[LineKey, LogMatch] | None = None,
        start_ups: Mapping[int, StartUp] | None = None,
        hops: Mapping[int, ForwardedCall] | None = None,
    ) -> None:
        self.columns = columns
        self.detail = detail
        self.lanes = lanes
        self.fold = fold
        self._flagged = flagged
        self._log_matches = log_matches or {}
        self._start_ups = start_ups or {}
        self._hops = hops or {}
        self._stderr = stderr
        self._run: tuple[int, int] | None = None  # the current capture with stderr, and the number of its lines
        self._folded = 0
        self._held: list[Log] = []
        self._polls = PollFolder()

    def feed(self, row: Row) -> list[Line]:
        """Return the lines of a row, after the withheld lines of a run that it ends."""
        if isinstance(row, Log):
            return self._log(row) if self._stderr else []
        lines = self.pause()
        match row:
            case Exchange():
                self._exchange(row, lines)
            case UnpairedMessage():
                self._unpaired(row, lines)
            case Transaction():
                self._transaction(row, lines)
            case ModelCall():
                self._model_call(row, lines)
            case ChannelEvent():
                self._event(row, lines)
        return lines

    def pause(self) -> list[Line]:
        """Release the withheld lines of a run of stderr: `… 40 more lines`, and its last lines."""
        lines: list[Line] = []
        if self._folded:
            self._folded += len(self._held) - FOLD_TAIL
            self._held = self._held[-FOLD_TAIL:]
            lines.append(self._below(self._held[0].at_ns, [(f"… {counted(self._folded, 'more line')} of stderr", "dim")]))
        lines += [self._log_line(log) for log in self._held]
        self._held = []
        self._folded = 0
        self._run = None
        return lines

    def pending(self, row: Exchange | ModelCall, now_ns: int) -> Line:
        """Return the line of a call that has no answer yet, with its waiting time and its last progress."""
        took_ns = max(0, now_ns - row.at_ns)
        if isinstance(row, ModelCall):
            from .model_call import model_phrase

            line = self._call_line(row, row.transaction, took_ns)
            return fitted([*line, (model_phrase(row).detail or "pending", "wait")], self.columns.width)
        request = row.request
        line = self._left(row, row.at_ns, id=request.id or "", took_ns=took_ns, size_bytes=request.size)
        line.append((" → " if row.sender == "client" else " ← ", ""))
        line += self._words(_name(row.method), _name(row.target or ""), self._params(request))
        progress = [message for message in row.notifications if message.method == PROGRESS]
        words = notification_phrase(progress[-1:]).detail if progress else ""
        call = self.lanes.captures[row.capture].calls.get(row.row)
        if call is not None and call.task is not None and not words:
            words = f"task {one_line(call.task.status)}"
        return fitted([*line, (words or "pending", "wait")], self.columns.width)

    def close(self) -> list[Line]:
        """Release all withheld lines and polls."""
        lines = self.pause()
        for run in self._polls.close():
            self._one_exchange(run.last, lines, run.before)
        return lines

    # The kinds of rows

    def _exchange(self, row: Exchange, lines: list[Line]) -> None:
        """Append the lines of an exchange, unless it is a poll without news, or a gateway's call for another."""
        forwarded = self._hops.get(row.row)
        if forwarded is not None and forwarded.outer is not row:
            return
        call = self.lanes.captures[row.capture].calls.get(row.row)
        if call is None or not self.fold:
            self._one_exchange(row, lines)
        elif not self._polls.feed(row, call, flagged=row.row in self._flagged):
            run = self._polls.take(call)
            is_poll = call.part(row) is CallPart.POLL
            if run is not None and not is_poll:
                self._one_exchange(run.last, lines, run.before)
            self._one_exchange(row, lines, run.before + 1 if run is not None and is_poll else 0)

    def _one_exchange(self, row: Exchange, lines: list[Line], held: int = 0) -> None:
        """Append the lines of an exchange; `held` polls of its task came before it and were not shown."""
        request, response = row.request, row.response
        size = request.size + (response.size if response else 0)
        there, back = ("→ ", "← ") if row.sender == "client" else ("← ", "→ ")
        capture = self.lanes.captures[row.capture]
        waited = waited_ns(row, capture) if row.duration_ns is None else None
        if self.columns.counts_tokens:
            size = result_tokens(row) or 0
        line = self._left(row, row.at_ns, id=request.id or "", took_ns=row.duration_ns, size_bytes=size, waited_ns=waited)
        line.append((" " + there, ""))
        is_roomy = has_room(self.columns.width)
        line += self._words(_name(row.method), _name(row.target or ""), self._params(request) if is_roomy else "")
        detail = self.detail if is_roomy else Detail.NAMES
        phrase = with_call(self._with_status(outcome_phrase(row, detail), row), row, capture, held)
        lines += self._with_phrase(line, phrase, row.row, below=row.outcome is not Outcome.OK or row.row in capture.calls)
        if self.detail is not Detail.NAMES:
            self._details(row, lines, is_roomy=is_roomy)
        if row.notifications:
            self._notifications(row.notifications, lines)
        if row.partials:
            self._partials(row, back, lines)
        if row.response is not None and BY_ORDER in row.response.flaws:
            came = "a notification in place of a result" if row.response.method else "a result without an id"
            lines.append(self._below(row.response.at_ns, [(f"{back}{came}, paired by order", "warn")]))
        if row.more_responses:
            text = f"{back}answered again ×{len(row.more_responses)}"
            lines.append(self._below(row.more_responses[-1].at_ns, [(text, "warn")]))
        if row.row in self._hops:
            from .hops import hop_lines

            call = self._hops[row.row]
            lines += [self._below(call.last.at_ns, line) for line in hop_lines(call, self.lanes.captures)]

    def _params(self, message: Message) -> str:
        """Return the params of a message, where rows show them."""
        return "" if self.detail is Detail.NAMES else params_words(message)

    def _details(self, row: Exchange, lines: list[Line], *, is_roomy: bool) -> None:
        """Append what the line of an exchange has no room for: on a narrow screen params and result, with `full` the payloads."""
        there, back = ("→ ", "← ") if row.sender == "client" else ("← ", "→ ")
        if self.detail is Detail.FULL:
            from .payloads import lines as payload_lines

            for arrow, message in ((there, row.request), (back, row.response)):
                texts = () if message is None else payload_lines(message)
                lines += [self._beneath(text, arrow if at == 0 else "  ") for at, text in enumerate(texts)]
        elif not is_roomy:
            answer = outcome_phrase(row, self.detail).detail if row.outcome is Outcome.OK else ""
            lines += [
                self._beneath(text, arrow) for arrow, text in ((there, self._params(row.request)), (back, answer)) if text
            ]

    def _beneath(self, text: str, mark: str) -> Line:
        """Return a line of details, below the words of its row."""
        width = self.columns.width
        indent = self.columns.left if width is None else min(self.columns.left, max(2, width // 2))
        return fitted([(" " * indent + mark, "dim"), (text, "dim")], width)

    def _partials(self, row: Exchange, back: str, lines: list[Line]) -> None:
        count = f" ×{len(row.partials)}" if len(row.partials) > 1 else ""
        lines.append(self._below(row.partials[-1].at_ns, [(f"{back}partial result{count}", "warn")]))

    def _unpaired(self, row: UnpairedMessage, lines: list[Line]) -> None:
        message = row.message
        line = self._left(row, message.at_ns, id=message.id or "", size_bytes=message.size)
        line.append((" → " if message.sender == "client" else " ← ", "dim"))
        capture = self.lanes.captures[row.capture]
        phrase = with_call(self._with_status(unpaired_phrase(row, capture), row), row, capture)
        lines += self._with_phrase(line, phrase, row.row)

    def _transaction(self, row: Transaction, lines: list[Line]) -> None:
        line = self._call_line(row, row, row.duration_ns, "dim")
        is_plain = 0 < row.status < HTTP_ERRORS and not row.is_stream
        phrase = transaction_phrase(row, closed=self.lanes.captures[row.capture].closed)
        lines += self._with_phrase(line, phrase, row.row, below=not is_plain)

    def _model_call(self, row: ModelCall, lines: list[Line]) -> None:
        from .model_call import SAID_LETTERS, model_phrase

        line = self._call_line(row, row.transaction, row.duration_ns)
        letters = SAID_LETTERS if self.columns.width is None else max(SAID_LETTERS // 2, self.columns.width // 3)
        lines += self._with_phrase(line, model_phrase(row, letters), row.row, below=row.outcome is not Outcome.OK)

    def _call_line(self, row: Transaction | ModelCall, transaction: Transaction, took_ns: int | None, style: str = "") -> Line:
        line = self._left(row, row.at_ns, took_ns=took_ns, size_bytes=body_bytes(transaction))
        return [*line, (" → ", style), *self._words(one_line(row.method), one_line(row.target))]

    def _with_status(self, phrase: Phrase, row: Exchange | UnpairedMessage) -> Phrase:
        """Append to `phrase` the HTTP status, where it is worth showing."""
        capture = self.lanes.captures[row.capture]
        note = status_note(row, capture) if capture.transactions else ""
        if isinstance(row, Exchange) and row.method == INITIALIZE and row.transaction and row.transaction.scope.replaces:
            note = "replaces an unknown session"
        if not note:
            return phrase
        is_shown = phrase.word in ("http error", "redirected") or (
            isinstance(row, Exchange) and row.outcome is Outcome.PROBE and row.response is None
        )
        if is_shown:
            return phrase
        return phrase._replace(detail=f"{phrase.detail} ({note})" if phrase.detail else note)

    def _event(self, row: ChannelEvent, lines: list[Line]) -> None:
        phrase = event_phrase(row.record, self.lanes.captures[row.capture])
        if phrase is not None:
            if isinstance(row.record, Spawn) and not row.record.extra and row.capture in self._start_ups:
                words = ", ".join([phrase.detail, *start_up_words(self._start_ups[row.capture])])
                phrase = phrase._replace(detail=words)
            lines += self._with_phrase([*self._left(row, row.at_ns), (" · ", "dim")], phrase)

    def left_out(self, row: ChannelEvent, words: str) -> Line:
        """Return a line for an event of which a timeline says nothing."""
        return fitted([*self._left(row, row.at_ns), (" · ", "dim"), (words, "dim")], self.columns.width)

    def _notifications(self, notifications: Sequence[Message], lines: list[Line]) -> None:
        """Append one line for each notification, by time; all progress is one line, at the time of the last."""
        progress = [message for message in notifications if message.method == PROGRESS]
        entries = [[message] for message in notifications if message.method != PROGRESS] + ([progress] if progress else [])
        entries.sort(key=lambda entry: entry[-1].at_ns)
        for messages in entries[:MAX_NOTIFICATIONS]:
            phrase = notification_phrase(messages)
            arrow = "→ " if messages[-1].sender == "client" else "← "
            words = phrase._replace(style=phrase.style or "dim").line("dim")
            lines.append(self._below(messages[-1].at_ns, [(arrow, "dim"), *words]))
        more = len(entries) - MAX_NOTIFICATIONS
        if more > 0:
            lines.append(self._below(entries[-1][-1].at_ns, [(f"… {counted(more, 'more notification')}", "dim")]))

    def _log(self, row: Log) -> list[Line]:
        capture, count = self._run or (row.capture, 0)
        lines = [] if capture == row.capture else self.pause()
        count = count + 1 if capture == row.capture else 1
        self._run = row.capture, count
        if count <= FOLD_HEAD or not self.fold:
            return [*lines, self._log_line(row)]
        self._held.append(row)
        if len(self._held) > FOLD_TAIL + 1:
            self._held.pop(0)
            self._folded += 1
        return lines

    def _log_line(self, row: Log) -> Line:
        width = self.columns.width
        line = [*self._left(row, row.at_ns), (" stderr ", "dim")]
        match = self._log_matches.get((row.capture, row.number))
        room = None if width is None else width - line_cells(line)
        return fitted([*line, *(log_line(row.raw, room) if match is None else log_match_line(row.raw, match, room))], width)

    # The parts of a line

    def _left(
        self,
        row: Row | None,
        at_ns: int,
        *,
        id: str = "",
        took_ns: int | None = None,
        size_bytes: int | None = None,
        waited_ns: int | None = None,
    ) -> Line:
        """Return the numbers and the lane, which are blank where `row` is None."""
        lane, style = self.lanes.of(row) if self.columns.lane and row is not None else ("", "")
        number = row.row if isinstance(row, Numbered) else None
        return self.columns.left_part(
            row=number,
            id=safe_text(id),
            at_ns=at_ns,
            took_ns=took_ns,
            size_bytes=size_bytes,
            lane=lane,
            lane_style=style,
            waited_ns=waited_ns,
        )

    def _below(self, at_ns: int, pieces: Line) -> Line:
        """Return a line that belongs to the row above: its time, and the words indented."""
        return fitted([*self._left(None, at_ns), ("   ", ""), *pieces], self.columns.width)

    def _with_phrase(self, line: Line, phrase: Phrase, row: int | None = None, *, below: bool = False) -> list[Line]:
        """Append the phrase to `line`; `below` gives a detail that does not fit lines of its own."""
        width = self.columns.width
        line.append((phrase.word, phrase.style))
        if row in self._flagged:
            line.append((" ⚑", "warn"))
        detail = phrase.detail
        if not detail:
            return [fitted(line, width)]
        style = phrase.style if phrase.style == "bad" else ("dim" if below else "")
        if not below or width is None or line_cells(line) + 2 + cells(detail) <= width:
            return [fitted([*line, (": " + detail, style)], width)]
        indent = min(self.columns.left + 2, max(2, width // 2))
        parts = wrapped(detail, width - indent, DETAIL_LINES)
        return [fitted(line, width), *(fitted([(" " * indent, ""), (part, style)], width) for part in parts)]

    def _words(self, method: str, target: str, params: str = "") -> Line:
        """Return method, target and params in their column. On a screen the last are cut first; on a pipe all are complete."""
        room = self.columns.words
        is_screen = self.columns.width is not None
        if is_screen:
            method = cut(method, room)
        room -= cells(method)
        if target and is_screen:
            target = cut(target, room - 1)
        if target:
            room -= cells(target) + 1
        line: Line = [(method + " ", ""), (target, "strong")] if target else [(method, "")]
        if params and (not is_screen or room > MIN_PARAMS_CELLS):
            params = cut(params, room - 1) if is_screen else params
            room -= cells(params) + 1
            line.append((" " + params, ""))
        line.append((" " * room + GAP, ""))
        return line


def timeline(
    transcript: Transcript,
    *,
    width: int | None = None,
    stderr: bool = True,
    rows: tuple[int, int] | None = None,
    live: bool = False,
    zone: tzinfo | None = None,
    filtered: FilterResult | None = None,
    since: str = "",
    detail: Detail | None = None,
    order: Order | None = None,
) -> Iterator[Line]:
    """Yield the complete timeline: summary, captures, column titles, rows, findings. `width` in cells; None means unbounded.

    `rows` are the numbers of the first and the last row to show, with all that came between them; nothing is folded then.
    `live` says that a tap still records. `zone` is the time zone of the captures' beginnings (None: the system's). With
    `filtered`, only the rows that match a filter are shown, and only findings about them. `since` is as for `summary`. `detail` is
    the amount that rows show; None: as much as the width has room for. With `order`, rows are sorted, and those without the figure
    are left out.
    """
    yield from summary(transcript, live=live, width=width, since=since)
    for line in capture_lines(transcript, zone, width=width, since=since):
        yield fitted(line, width)
    if filtered is not None:
        from ..text.filter_lines import filter_line

        yield fitted([("  ", ""), *filter_line(filtered)], width)
    chosen = rows_between(transcript.rows, rows) if filtered is None else filtered.rows
    if order is not None:
        chosen = in_order(chosen, transcript.captures, order)
    if not chosen:
        return
    detail, fold = row_detail(width, detail), rows is None and filtered is None
    machine = timeline_machine(transcript, chosen, width, detail, order, stderr=stderr, fold=fold)
    yield []
    yield fitted(machine.columns.header(), width)
    for row in chosen:
        yield from machine.feed(row)
    yield from machine.close()
    if rows is None:
        yield from _findings(transcript, filtered, width)


def _findings(transcript: Transcript, filtered: FilterResult | None, width: int | None) -> Iterator[Line]:
    """Yield the findings about the rows that are shown, after an empty line."""
    if filtered is not None:
        from ...transcript.filter.result import findings_about

        transcript = Transcript(transcript.captures, transcript.rows, findings_about(filtered, transcript.findings))
    if transcript.findings:
        yield []
        yield from (fitted(line, width) for line in finding_lines(transcript, width=width))


def timeline_machine(
    transcript: Transcript, rows: list[Row], width: int | None, detail: Detail, order: Order | None, *, stderr: bool, fold: bool
) -> Timeline:
    """Make the machine that draws these rows, which are some or all of the transcript's."""
    lanes = Lanes(transcript.captures)
    shape = timeline_columns(rows, lanes, width, detail)
    return Timeline(
        replace(shape, counts_tokens=order is Order.TOKENS),
        lanes,
        detail=detail,
        stderr=stderr,
        fold=fold and order is None,
        flagged=frozenset(row for finding in transcript.findings for row in finding.rows),
        log_matches=log_matches(transcript.rows) if stderr else {},
        start_ups=_start_ups(transcript),
        hops=_shown_hops(transcript, rows),
    )


def _shown_hops(transcript: Transcript, rows: Sequence[Row]) -> dict[int, ForwardedCall]:
    if not transcript.hops:
        return {}
    from .hops import shown_hops  # compares them, which most sessions have no need of

    return shown_hops(transcript, rows)


def _start_ups(transcript: Transcript) -> dict[int, StartUp]:
    """Return the start-ups of servers by their captures."""
    times = enumerate(lifecycle.start_up for lifecycle in lifecycles(transcript))
    return {index: start_up for index, start_up in times if start_up is not None}


def rows_between(rows: list[Row], chosen: tuple[int, int] | None) -> list[Row]:
    """Return the rows whose numbers are within `chosen`, and what came between them; all rows where that is None."""
    if chosen is None:
        return rows
    first, last = chosen
    inside = [at for at, row in enumerate(rows) if isinstance(row, Numbered) and first <= row.row <= last]
    if not inside:
        return []
    between = rows[inside[0] : inside[-1] + 1]
    return [row for row in between if not isinstance(row, Numbered) or first <= row.row <= last]


def timeline_columns(
    rows: list[Row], lanes: Lanes, width: int | None, detail: Detail = Detail.NAMES, *, share: float = 1.0
) -> Columns:
    """Return columns as wide as these rows need, which are this share of all rows: the numbers of the others will be larger."""
    with_params = detail is not Detail.NAMES and has_room(width)
    last_row, last_ns, longest_id, longest_words = row_widths(rows, widest_words(width), with_params=with_params)
    if share < 1:
        longest_id = max(longest_id, len(str(int(last_row / share))))
        longest_words = max(longest_words, EXPECTED_WORDS_CELLS)
    return columns(
        width=width,
        last_row=int(last_row / share),
        last_ns=int(last_ns / share),
        longest_id=longest_id,
        lanes=lanes.names,
        lane_role=lanes.role,
        longest_words=longest_words,
        with_params=with_params,
    )


def row_widths(rows: Sequence[Row], widest: int, *, with_params: bool) -> tuple[int, int, int, int]:
    """Return the last row, the last time, the length of the longest id, and the cells of the longest call, up to `widest`."""
    last_row = last_ns = longest_id = longest_words = 0
    step = 1 + len(rows) // MEASURED_ROWS
    for at, row in enumerate(rows):
        last_ns = max(last_ns, row.at_ns)
        if isinstance(row, Exchange):
            last_row = max(last_row, row.row)
            longest_id = max(longest_id, len(row.request.id or ""))
            words = row.request.method or ""
            if row.request.target:
                words = f"{words} {row.request.target}"
            taken = len(words) if words.isascii() else cells(one_line(words))
            if with_params and at % step == 0 and longest_words < widest and (params := params_words(row.request)):
                taken += 1 + cells(params)
            longest_words = max(longest_words, taken)
        elif isinstance(row, UnpairedMessage):
            last_row = max(last_row, row.row)
            longest_id = max(longest_id, len(row.message.id or ""))
        elif isinstance(row, Transaction | ModelCall):
            last_row = max(last_row, row.row)
            longest_words = max(longest_words, cells(one_line(f"{row.method} {row.target}")))
    return last_row, last_ns, longest_id, longest_words
