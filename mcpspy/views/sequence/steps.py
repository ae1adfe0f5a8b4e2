"""Rows as steps of a sequence diagram: arrows between lanes, and notes at lanes.

Progress is drawn once per exchange. Grouping, folding and cutting happen in `fragments`, `repeats` and `layout`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from ...records import CLIENT, Close, Exit
from ...transcript.http.transaction import (
    DONE_EVENT,
    NO_ENDPOINT,
    OTHER_EVENT,
    Closing,
    KeepAlives,
    ScopeKind,
    Stream,
    Transaction,
)
from ...transcript.mcp.methods import INITIALIZE
from ...transcript.model import (
    CaptureInfo,
    ChannelEvent,
    Exchange,
    Kind,
    Log,
    Message,
    ModelCall,
    Outcome,
    Row,
    Transcript,
    UnpairedMessage,
)
from ..text.escape import one_line
from ..text.units import counted, duration
from ..timeline.calls import part_phrase
from ..timeline.details import Detail, params_words
from ..timeline.payloads import lines
from ..timeline.phrases import (
    PROGRESS,
    Phrase,
    event_phrase,
    log_text,
    notification_phrase,
    outcome_phrase,
    raw_phrase,
    status_words,
    unpaired_phrase,
)
from ..timeline.transaction import ended_words, status_note, transaction_phrase
from .diagram import Arrow, ArrowKind, Aside
from .folding import Drawable, RepeatedExchange, RepeatedNotification
from .lanes import DiagramLanes

if TYPE_CHECKING:
    from ...transcript.llm.agent_runs import AgentRun
    from .model_calls import ModelSteps

ACCEPTED: Final = 202
"""The status of a POST whose message is answered elsewhere or needs no answer."""

TIMED_OUT: Final = 504

LAST_WORDS_LETTERS: Final = 100

Drawn = Arrow | Aside
Numbered = tuple[int, Drawn]
"""A step with the number of its record, which orders steps of the same time."""


class Steps:
    """Converter of rows to steps. `with_http` adds the HTTP requests and statuses that carried the messages.

    `with_keep_alives` adds to these what came on their streams only to keep them open, which differs from recording to recording.
    """

    __slots__ = ("_captures", "_detail", "_has_keep_alives", "_is_http_told", "_lanes", "_last_words", "_models", "_streams")

    def __init__(
        self, transcript: Transcript, lanes: DiagramLanes, detail: Detail, *, with_http: bool, with_keep_alives: bool = True
    ) -> None:
        self._captures = transcript.captures
        self._lanes = lanes
        self._detail = detail
        self._is_http_told = with_http
        self._has_keep_alives = with_http and with_keep_alives
        self._streams: set[tuple[int, int]] = set()
        """The transactions, by capture and number, whose streams are drawn."""
        self._models: ModelSteps | None = None
        if any(capture.is_model for capture in transcript.captures):
            from .model_calls import ModelSteps  # and all that understands models, which other pictures do not wait for

            self._models = ModelSteps(transcript, lanes, detail)
        self._last_words: dict[int, Log] = {}
        """The last line on stderr so far, by capture."""

    def feed(self, row: Drawable) -> Iterator[Numbered]:
        """Yield the steps of the next row."""
        match row:
            case RepeatedExchange():
                yield from self._repeated(row)
            case RepeatedNotification():
                yield row.last.message.number, self._news(row)
            case Exchange():
                yield from self._exchange(row)
            case UnpairedMessage():
                yield row.message.number, self._unpaired(row)
                yield from self._carried(row.message, row)
                yield from self._refused(row)
            case Transaction():
                yield from self._transaction(row)
            case ModelCall():
                yield from self._model_call(row)
            case Log():
                self._last_words[row.capture] = row
            case ChannelEvent():
                yield from self._event(row)

    @property
    def runs(self) -> Sequence[AgentRun]:
        """The agent runs, if a model API was recorded."""
        return () if self._models is None else self._models.runs

    def _model_call(self, row: ModelCall) -> Iterator[Numbered]:
        request = row.transaction.request
        number = 0 if request is None else request.record
        for step in () if self._models is None else self._models.feed(row):
            yield (number if step.at_ns == row.at_ns else _last_number(row.transaction)), step

    # Exchanges

    def _repeated(self, row: RepeatedExchange) -> Iterator[Numbered]:
        first, last = row.first, row.last
        numbers = f"{first.row}" if first is last else f"{first.row}–{last.row}"
        words = one_line(f"{numbers} {last.method} {last.target or ''}".rstrip()) + f" ×{row.times}"
        phrase = self._phrase(last)
        if row.words:
            phrase = phrase._replace(detail=row.words)
        yield first.request.number, self._request(first, words)
        if last.response is not None:
            response = self._response(last, last.response, f"{numbers} {_sentence(phrase)}", phrase.style)
            yield last.response.number, replace(response, row=first.row)  # the row of its request, so that the two can fold

    def _exchange(self, row: Exchange) -> Iterator[Numbered]:
        request, response = row.request, row.response
        yield request.number, self._request(row, one_line(f"{row.row} {row.method} {row.target or ''}"))
        if row.sender == CLIENT:
            yield from self._carried(request, row)
            if row.transaction is not None:
                yield from self._beside(row.transaction, row)
        yield from self._notifications(row)
        if row.partials:
            last, times = row.partials[-1], f" ×{len(row.partials)}" if len(row.partials) > 1 else ""
            yield last.number, self._arrow(last, ArrowKind.RESPONSE, f"{row.row} partial result{times}", row.row, "warn")
        phrase = self._phrase(row)
        if response is not None:
            took = "" if row.duration_ns is None else f" · {duration(row.duration_ns)}"
            note = status_note(row, self._captures[row.capture])
            phrase = phrase._replace(word=phrase.word + took + (f" · {note}" if note else ""))
            yield response.number, self._response(row, response, f"{row.row} {_sentence(phrase)}", phrase.style)
            if row.sender != CLIENT:
                yield from self._carried(response, row)
            yield from self._session(row, response)
        else:
            yield from self._end_without_message(row, phrase)
        for message in row.more_responses:
            yield message.number, self._arrow(message, ArrowKind.RESPONSE, f"{row.row} answered again", row.row, "warn")

    def _phrase(self, row: Exchange) -> Phrase:
        phrase = outcome_phrase(row, self._detail)
        call = self._captures[row.capture].calls.get(row.row)
        return phrase if call is None else part_phrase(phrase, row, call)

    def _request(self, row: Exchange, words: str) -> Arrow:
        start, end = self._ends(row, row.sender)
        worker = self._lanes.server(row) if row.sender == CLIENT else end
        words += f" {payload}" if (payload := self._params(row.request)) else ""
        return Arrow(
            at_ns=row.at_ns, start=start, end=end, kind=ArrowKind.REQUEST, text=words, row=row.row,
            opens=worker, details=self._payload(row.request), stops=_stops(row.transaction),
        )  # fmt: skip

    def _response(self, row: Exchange, response: Message, words: str, style: str) -> Arrow:
        start, end = self._ends(response, response.sender)
        worker = self._lanes.server(row) if row.sender == CLIENT else self._lanes.client(row)
        return Arrow(
            at_ns=response.at_ns, start=start, end=end, kind=ArrowKind.RESPONSE, text=words,
            style=style, row=row.row, closes=worker, details=self._payload(response),
        )  # fmt: skip

    def _params(self, message: Message) -> str:
        """Return the params of a message for its line, if the diagram shows them there."""
        return "" if self._detail is Detail.NAMES else params_words(message)

    def _payload(self, message: Message) -> tuple[str, ...]:
        """Return the payload of a message for the lines below it, if the diagram shows it."""
        return lines(message) if self._detail is Detail.FULL else ()

    def _end_without_message(self, row: Exchange, phrase: Phrase) -> Iterator[Numbered]:
        """Yield what ended a request without a response: a status, a closed stream or the end of the capture."""
        asks, answers = self._ends(row, row.sender)
        carried = row.transaction
        match row.outcome:
            case Outcome.HTTP_ERROR | Outcome.REDIRECTED | Outcome.PROBE if (
                carried is not None and carried.response is not None
            ):
                yield self._status(carried, carried.response, row, phrase.style, closes=answers)
            case Outcome.CANCELLED if row.cancelled is None and row.left_ns is not None:
                text = f"{row.row} {_sentence(phrase)}"
                number = row.request.number if carried is None else _last_number(carried)
                yield number, Arrow(
                    at_ns=row.left_ns, start=asks, end=answers, kind=ArrowKind.CANCELLATION, text=text, style=phrase.style,
                    row=row.row, closes=answers,
                )  # fmt: skip
            case Outcome.UNANSWERED | Outcome.UNKNOWN | Outcome.PROBE if row.cancelled is None:
                number, at_ns, words = self._missing(row)
                text = f"{row.row} {_sentence(phrase._replace(detail=words))}"
                yield number, Arrow(
                    at_ns=at_ns, start=answers, end=asks, kind=ArrowKind.LOST, text=text, style=phrase.style, row=row.row,
                    closes=answers,
                )  # fmt: skip
            case Outcome.PENDING:
                yield row.request.number, self._pending(row, answers, phrase)

    def _missing(self, row: Exchange) -> tuple[int, int, str]:
        """Find where the response is missing: the record that ended the wait, its time, and what came instead."""
        carried = row.transaction
        if carried is None or carried.ended_ns is None or carried.scope.kind is ScopeKind.STREAM:
            return row.request.number, self._last_ns(row), ""
        if carried.response is None:
            return _last_number(carried), carried.ended_ns, transaction_phrase(carried).detail
        if carried.is_stream and carried.scope.kind is ScopeKind.SESSION:
            return row.request.number, self._last_ns(row), ""  # another stream could still have brought it
        words = ended_words(carried) if carried.is_stream else status_words(carried)
        return _last_number(carried), carried.ended_ns, words

    def _pending(self, row: Exchange | Transaction, at: str, phrase: Phrase) -> Aside:
        return Aside(
            at_ns=self._last_ns(row), at=at, text=f"{row.row} {phrase.word}", style=phrase.style, row=row.row, closes=at
        )

    def _notifications(self, row: Exchange) -> Iterator[Numbered]:
        progress = [message for message in row.notifications if message.method == PROGRESS]
        for message in row.notifications:
            if message is row.cancelled:
                phrase = notification_phrase([message])
                text = f"{row.row} cancelled" + (f": {phrase.detail}" if phrase.detail else "")
                start, end = self._ends(message, message.sender)
                yield message.number, Arrow(
                    at_ns=message.at_ns, start=start, end=end, kind=ArrowKind.CANCELLATION, text=text, style="warn", row=row.row,
                    closes="" if row.response is not None else self._ends(row, row.sender)[1],
                )  # fmt: skip
            elif message.method != PROGRESS:
                text = f"{row.row} {_sentence(notification_phrase([message]))}"
                yield message.number, self._arrow(message, ArrowKind.NOTIFICATION, text, row.row)
        if progress:
            text = f"{row.row} {_sentence(notification_phrase(progress))}"
            yield progress[-1].number, self._arrow(progress[-1], ArrowKind.NOTIFICATION, text, row.row)

    # What belongs to no exchange

    def _news(self, row: RepeatedNotification) -> Arrow:
        phrase = notification_phrase([row.last.message])
        text = f"{row.first.row}–{row.last.row} {_sentence(phrase._replace(word=f'{phrase.word} ×{row.times}'))}"
        return self._arrow(row.last.message, ArrowKind.NOTIFICATION, text, row.last.row, phrase.style)

    def _unpaired(self, row: UnpairedMessage) -> Drawn:
        message = row.message
        phrase = unpaired_phrase(row, self._captures[row.capture])
        text = f"{row.row} {_sentence(phrase)}"
        if message.kind is Kind.MALFORMED:
            sender, _ = self._ends(row, message.sender)
            return Aside(at_ns=message.at_ns, at=sender, text=text, style=phrase.style, row=row.row)
        answers = message.kind in (Kind.RESULT, Kind.ERROR)
        return self._arrow(message, ArrowKind.RESPONSE if answers else ArrowKind.NOTIFICATION, text, row.row, phrase.style)

    def _event(self, row: ChannelEvent) -> Iterator[Numbered]:
        phrase = None if _is_plain_close(row) else event_phrase(row.record, self._captures[row.capture])
        if phrase is None:
            return
        text = _sentence(phrase)
        if isinstance(row.record, Exit) and (row.record.code or row.record.signal) and row.capture in self._last_words:
            text += f", last words: {one_line(log_text(self._last_words[row.capture].raw), LAST_WORDS_LETTERS)}"
        yield row.record.number, Aside(at_ns=row.at_ns, at=self._lanes.server(row), text=text, style=phrase.style)

    # HTTP

    def _session(self, row: Exchange, response: Message) -> Iterator[Numbered]:
        """Yield a note about the session that a response opened."""
        scope = None if row.transaction is None else row.transaction.scope
        if row.method == INITIALIZE and scope is not None and scope.kind is ScopeKind.SESSION:
            text = f"session {one_line(scope.session)} opened"
            yield response.number, Aside(at_ns=response.at_ns, at=self._lanes.server(row), text=text, style="dim", row=row.row)

    def _endpoint(self, row: Transaction, stream: Stream, server: str, client: str) -> Iterator[Numbered]:
        """Yield the event that says where to POST on HTTP+SSE, or a note that there was none."""
        if stream.endpoint is not None:
            event = stream.endpoint
            yield event.number, self._news_on(row, event.at_ns, f"endpoint {one_line(event.target)}", server, client, "dim")
        for anomaly in row.anomalies:
            if anomaly.name == NO_ENDPOINT:
                text = f"{row.row} no endpoint announced, POSTs go to {raw_phrase(anomaly.data)}"
                yield anomaly.number, Aside(at_ns=anomaly.at_ns, at=server, text=text, style="warn", row=row.row)

    def _beside(self, carrier: Transaction, row: Exchange | Transaction) -> Iterator[Numbered]:
        """Yield what a stream carried beside messages, once: keep-alives, end marks, events of other types."""
        response = carrier.response
        key = carrier.capture, carrier.number
        if response is None or not self._is_http_told or key in self._streams:
            return
        self._streams.add(key)
        client, server = self._ends(row, CLIENT)
        server = self._lanes.stream(carrier) or server
        for run in response.keep_alives if self._has_keep_alives else ():
            yield run.number, self._news_on(row, run.last_ns, _keep_alive_words(run), server, client, "dim")
        for anomaly in carrier.anomalies:
            if anomaly.name in (DONE_EVENT, OTHER_EVENT):
                words = f"event {raw_phrase(anomaly.data)}"
                style = "warn" if anomaly.name == DONE_EVENT else "dim"
                yield anomaly.number, self._news_on(row, anomaly.at_ns, words, server, client, style)

    def _news_on(self, row: Exchange | Transaction, at_ns: int, words: str, server: str, client: str, style: str) -> Arrow:
        return Arrow(
            at_ns=at_ns,
            start=server,
            end=client,
            kind=ArrowKind.NOTIFICATION,
            text=f"{row.row} {words}",
            style=style,
            row=row.row,
        )

    def _carried(self, message: Message, row: Exchange | UnpairedMessage) -> Iterator[Numbered]:
        """Yield the `202` to a POST whose message is answered elsewhere or needs no answer."""
        source = self._captures[row.capture]
        carried = source.transaction_of(message.stream) if self._is_http_told else None
        if carried is None or carried.response is None or carried.status != ACCEPTED or message.sender != CLIENT:
            return
        client, server = self._ends(row, CLIENT)
        response = carried.response
        text = f"{row.row} {status_words(carried)}"
        yield (
            response.record,
            Arrow(at_ns=response.at_ns, start=server, end=client, kind=ArrowKind.RESPONSE, text=text, style="dim", row=row.row),
        )

    def _refused(self, row: UnpairedMessage) -> Iterator[Numbered]:
        """Yield the status of a POST whose message needs no answer, if the status is an error."""
        source = self._captures[row.capture]
        carried = source.transaction_of(row.message.stream)
        if carried is not None and carried.response is not None and status_note(row, source):
            yield self._status(carried, carried.response, row, "warn")

    def _status(
        self, carried: Transaction, response: Stream, row: Exchange | UnpairedMessage, style: str, closes: str = ""
    ) -> Numbered:
        """Draw a status that was the whole response. It is drawn after the request, even if it came before the request ended."""
        client, server = self._ends(row, CLIENT)
        message = row.message if isinstance(row, UnpairedMessage) else row.request
        text = f"{row.row} {status_words(carried)}{' by mcpspy' if response.injected else ''}"
        arrow = Arrow(
            at_ns=max(response.at_ns, message.at_ns), start=server, end=client, kind=ArrowKind.RESPONSE, text=text, style=style,
            row=row.row, closes=closes, injected=response.injected,
        )  # fmt: skip
        return max(response.record, message.number), arrow

    def _transaction(self, row: Transaction) -> Iterator[Numbered]:
        """Draw a request without a message, and its status or the side that gave up."""
        client, server = self._ends(row, CLIENT)
        stream = self._lanes.stream(row)
        server = stream or server
        number = 0 if row.request is None else row.request.record
        words = one_line(f"{row.row} {row.method} {row.target}")
        yield (
            number,
            Arrow(
                at_ns=row.at_ns,
                start=client,
                end=server,
                kind=ArrowKind.REQUEST,
                text=words,
                row=row.row,
                opens=stream,
                stops=_stops(row),
            ),
        )
        phrase = transaction_phrase(row, closed=self._captures[row.capture].closed)
        response = row.response
        if response is not None:
            is_long = row.method == "GET" and row.is_stream
            text = f"{row.row} {f'{row.status}: connected' if is_long else _sentence(phrase)}"
            yield response.record, Arrow(
                at_ns=response.at_ns, start=server, end=client, kind=ArrowKind.RESPONSE, text=text, style=phrase.style,
                row=row.row, injected=response.injected,
            )  # fmt: skip
            yield from self._endpoint(row, response, server, client)
            yield from self._beside(row, row)
            if is_long and response.close is not None:
                yield response.close.number, self._disconnected(row, response, response.close, client, server)
        elif row.ended_ns is None:
            yield number, self._pending(row, server, phrase)
        else:
            is_left = row.ended_by == CLIENT
            start, end = (client, server) if is_left else (server, client)
            kind = ArrowKind.CANCELLATION if is_left else ArrowKind.LOST
            text = f"{row.row} {_sentence(phrase)}"
            arrow = Arrow(at_ns=row.ended_ns, start=start, end=end, kind=kind, text=text, style=phrase.style, row=row.row)
            yield _last_number(row), arrow

    def _disconnected(self, row: Transaction, response: Stream, close: Closing, client: str, server: str) -> Arrow:
        """Draw the end of a long stream: the side that ended it, and what the stream carried."""
        again = f", {len(row.redelivered)} redelivered" if row.redelivered else ""
        is_left = row.ended_by == CLIENT
        is_well = is_left or close.how == "eof"
        start, end = (client, server) if is_left else (server, client)
        kind = ArrowKind.CANCELLATION if is_left else ArrowKind.RESPONSE if is_well else ArrowKind.LOST
        return Arrow(
            at_ns=row.ended_ns or response.at_ns, start=start, end=end, kind=kind, style="dim" if is_well else "warn", row=row.row,
            text=f"{row.row} {ended_words(row)} after {counted(response.events, 'event')}{again}",
            closes=self._lanes.stream(row),
        )  # fmt: skip

    # What they have in common

    def _arrow(self, message: Message, kind: ArrowKind, text: str, row: int, style: str = "") -> Arrow:
        start, end = self._ends(message, message.sender)
        details = () if message.method == PROGRESS else self._payload(message)
        return Arrow(at_ns=message.at_ns, start=start, end=end, kind=kind, text=text, style=style, row=row, details=details)

    def _ends(self, about: Row | Message, sender: str) -> tuple[str, str]:
        return self._lanes.ends(about, sender)

    def _last_ns(self, row: Exchange | Transaction) -> int:
        source: CaptureInfo = self._captures[row.capture]
        return max(row.at_ns, source.last_ns + source.shift_ns)


def _keep_alive_words(run: KeepAlives) -> str:
    """Count keep-alives, and say how far they were apart."""
    if run.count == 1:
        return "keep-alive"
    return f"keep-alive ×{run.count}, every {duration((run.last_ns - run.first_ns) // (run.count - 1))}"


def _stops(transaction: Transaction | None) -> bool:
    """Return whether mcpspy did not forward a request: it refused it or could not reach the server. A timeout was forwarded."""
    response = None if transaction is None else transaction.response
    return response is not None and response.injected and response.head.status != TIMED_OUT


def _last_number(transaction: Transaction) -> int:
    """Return the number of the last known record of a transaction: a head, a close or a note."""
    numbers = [stream.record for stream in transaction.streams]
    numbers += [stream.close.number for stream in transaction.streams if stream.close is not None]
    return max([*numbers, *(note.number for note in transaction.notes)], default=0)


def _sentence(phrase: Phrase) -> str:
    return f"{phrase.word}: {phrase.detail}" if phrase.detail else phrase.word


def _is_plain_close(row: ChannelEvent) -> bool:
    """Return whether a stream ended normally. The exit of the process says it better."""
    return isinstance(row.record, Close) and row.record.how == "eof"
