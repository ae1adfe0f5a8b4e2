"""A sequence diagram before anyone draws it: who takes part, and what goes between them in the order in which it went.

One layout for all printers (`mermaid`, `ladder`). Progress is told once per call. Refuses to know how an arrow is spelled.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from ..records import CLIENT, Close
from ..transcript.model import Event, Exchange, Kind, Message, Outcome, Row, Source, Stray, Transcript
from ..transcript.transaction import ScopeKind, Stream, Transaction
from .phrases import (
    PROGRESS,
    Phrase,
    event_phrase,
    notification_phrase,
    one_line,
    outcome_phrase,
    status_words,
    stray_phrase,
)
from .transaction import ended_words, status_note, transaction_phrase
from .units import duration


class ArrowKind(StrEnum):
    """What an arrow stands for; each printer has one spelling for each."""

    REQUEST = "request"
    RESPONSE = "response"
    NOTIFICATION = "notification"
    CANCELLATION = "cancellation"
    LOST = "lost"
    """The response that never came."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Participant:
    """A lane: `id` is ours and fixed, `name` is what it is called, as captured."""

    id: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrow:
    """A message from one participant to another, by their ids. `text` is one safe line; `style` is how good the news is."""

    at_ns: int
    start: str
    end: str
    kind: ArrowKind
    text: str
    style: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Aside:
    """Something that happened at one participant. `text` is one safe line."""

    at_ns: int
    at: str
    text: str
    style: str = ""


Step: TypeAlias = Arrow | Aside


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagram:
    """Participants, clients first, and steps by time."""

    participants: list[Participant]
    steps: list[Step]


def diagram(transcript: Transcript, rows: list[Row]) -> Diagram:
    """The diagram of `rows`; whoever takes part in none of them is left out."""
    lanes = transcript.lanes
    ids = {
        (role, lane.name): f"{role}{number}"
        for role in ("client", "server")
        for number, lane in enumerate((one for one in lanes if one.role == role), 1)
    }
    layout = _Layout(transcript.sources, ids)
    steps: list[tuple[int, int, int, Step]] = []
    for row in rows:
        for number, step in layout.steps(row):
            steps.append((step.at_ns, row.capture, number, step))
    steps.sort(key=lambda one: one[:3])
    used = {(role, name) for row in rows for role, name in layout.lanes(row)}
    participants = [
        Participant(id=ids[lane.role, lane.name], name=lane.name) for lane in lanes if (lane.role, lane.name) in used
    ]
    return Diagram(participants=participants, steps=[step for *_, step in steps])


class _Layout:
    """Steps from rows, each with the number of its record, which orders what came at one instant."""

    __slots__ = ("_ids", "_sources")

    def __init__(self, sources: list[Source], ids: dict[tuple[str, str], str]) -> None:
        self._sources = sources
        self._ids = ids

    def lanes(self, row: Row) -> list[tuple[str, str]]:
        source = self._sources[row.capture]
        return [("client", source.client_of(row)), ("server", source.server)]

    def steps(self, row: Row) -> Iterator[tuple[int, Step]]:
        match row:
            case Exchange():
                yield from self._exchange(row)
            case Stray():
                yield row.message.number, self._stray(row)
                yield from self._refused(row)
            case Transaction():
                yield from self._transaction(row)
            case Event():
                phrase = None if _is_plain_close(row) else event_phrase(row.record, self._sources[row.capture])
                if phrase is not None:
                    at = self._ids["server", self._sources[row.capture].server]
                    yield row.record.number, Aside(at_ns=row.at_ns, at=at, text=_sentence(phrase), style=phrase.style)

    def _exchange(self, row: Exchange) -> Iterator[tuple[int, Step]]:
        request, response = row.request, row.response
        words = one_line(f"{row.row} {row.method} {row.target or ''}")
        yield request.number, self._arrow(request, ArrowKind.REQUEST, words)
        yield from self._notifications(row)
        for message in row.partials:
            yield message.number, self._arrow(message, ArrowKind.RESPONSE, f"{row.row} partial result", "warn")
        phrase = outcome_phrase(row)
        if response is not None:
            took = "" if row.duration_ns is None else f" · {duration(row.duration_ns)}"
            note = status_note(row, self._sources[row.capture])
            phrase = phrase._replace(word=phrase.word + took + (f" · {note}" if note else ""))
            yield response.number, self._arrow(response, ArrowKind.RESPONSE, f"{row.row} {_sentence(phrase)}", phrase.style)
        else:
            yield from self._end_without_message(row, phrase)
        for message in row.more_responses:
            yield message.number, self._arrow(message, ArrowKind.RESPONSE, f"{row.row} answered again", "warn")

    def _end_without_message(self, row: Exchange, phrase: Phrase) -> Iterator[tuple[int, Step]]:
        """What ended a request that no message answered: a status, a stream that was closed, the capture's end; or nothing yet."""
        asks, answers = self._ends(row, row.sender)
        carried = row.transaction
        match row.outcome:
            case Outcome.HTTP_ERROR | Outcome.REDIRECTED | Outcome.PROBE if (
                carried is not None and carried.response is not None
            ):
                yield self._status(carried, carried.response, row, phrase.style)
            case Outcome.CANCELLED if row.cancelled is None and row.left_ns is not None:
                kind, text = ArrowKind.CANCELLATION, f"{row.row} {_sentence(phrase)}"
                number = row.request.number if carried is None else _last_number(carried)
                yield number, Arrow(at_ns=row.left_ns, start=asks, end=answers, kind=kind, text=text, style=phrase.style)
            case Outcome.UNANSWERED | Outcome.PROBE if row.cancelled is None:
                number, at_ns, words = self._missing(row)
                text, kind = f"{row.row} {_sentence(phrase._replace(detail=words))}", ArrowKind.LOST
                yield number, Arrow(at_ns=at_ns, start=answers, end=asks, kind=kind, text=text, style=phrase.style)
            case Outcome.PENDING:
                yield row.request.number, self._pending(row, answers, phrase)

    def _missing(self, row: Exchange) -> tuple[int, int, str]:
        """Where an answer should have been: the record that ended its wait, when, and what came instead."""
        carried = row.transaction
        if carried is None or carried.ended_ns is None or carried.scope.kind is ScopeKind.STREAM:
            return row.request.number, self._last_ns(row), ""
        if carried.response is None:
            return _last_number(carried), carried.ended_ns, transaction_phrase(carried).detail
        if carried.is_stream and carried.scope.kind is ScopeKind.SESSION:
            return row.request.number, self._last_ns(row), ""  # another stream could still have brought it
        words = ended_words(carried.response) if carried.is_stream else status_words(carried)
        return _last_number(carried), carried.ended_ns, words

    def _pending(self, row: Exchange | Transaction, at: str, phrase: Phrase) -> Aside:
        return Aside(at_ns=self._last_ns(row), at=at, text=f"{row.row} {phrase.word}", style=phrase.style)

    def _status(self, carried: Transaction, response: Stream, row: Exchange | Stray, style: str) -> tuple[int, Step]:
        """The status that was all of an answer."""
        client, server = self._ends(row, CLIENT)
        text, kind = f"{row.row} {status_words(carried)}", ArrowKind.RESPONSE
        arrow = Arrow(at_ns=response.at_ns, start=server, end=client, kind=kind, text=text, style=style)
        return response.opened.number, arrow

    def _refused(self, row: Stray) -> Iterator[tuple[int, Step]]:
        """The status that a message got which wants no answer, where it is one that should be told."""
        source = self._sources[row.capture]
        carried = source.transaction_of(row.message.stream)
        if carried is not None and carried.response is not None and status_note(row, source):
            yield self._status(carried, carried.response, row, "warn")

    def _last_ns(self, row: Exchange | Transaction) -> int:
        source = self._sources[row.capture]
        return max(row.at_ns, source.last_ns + source.shift_ns)

    def _notifications(self, row: Exchange) -> Iterator[tuple[int, Step]]:
        progress = [one for one in row.notifications if one.method == PROGRESS]
        for message in row.notifications:
            if message is row.cancelled:
                phrase = notification_phrase([message])
                text = f"{row.row} cancelled" + (f": {phrase.detail}" if phrase.detail else "")
                yield message.number, self._arrow(message, ArrowKind.CANCELLATION, text, "warn")
            elif message.method != PROGRESS:
                text = f"{row.row} {_sentence(notification_phrase([message]))}"
                yield message.number, self._arrow(message, ArrowKind.NOTIFICATION, text)
        if progress:
            text = f"{row.row} {_sentence(notification_phrase(progress))}"
            yield progress[-1].number, self._arrow(progress[-1], ArrowKind.NOTIFICATION, text)

    def _stray(self, row: Stray) -> Step:
        message = row.message
        phrase = stray_phrase(row, self._sources[row.capture])
        text = f"{row.row} {_sentence(phrase)}"
        if message.kind is Kind.MALFORMED:
            sender, _ = self._ends(row, message.sender)
            return Aside(at_ns=message.at_ns, at=sender, text=text, style=phrase.style)
        answers = message.kind in (Kind.RESULT, Kind.ERROR)
        return self._arrow(message, ArrowKind.RESPONSE if answers else ArrowKind.NOTIFICATION, text, phrase.style)

    def _arrow(self, message: Message, kind: ArrowKind, text: str, style: str = "") -> Arrow:
        start, end = self._ends(message, message.sender)
        return Arrow(at_ns=message.at_ns, start=start, end=end, kind=kind, text=text, style=style)

    def _transaction(self, row: Transaction) -> Iterator[tuple[int, Step]]:
        """A request that carries no message, and its status, or who would not wait for one."""
        client, server = self._ends(row, CLIENT)
        number = 0 if row.request is None else row.request.opened.number
        words = one_line(f"{row.row} {row.method} {row.target}")
        yield number, Arrow(at_ns=row.at_ns, start=client, end=server, kind=ArrowKind.REQUEST, text=words)
        phrase, response = transaction_phrase(row), row.response
        text = f"{row.row} {_sentence(phrase)}"
        if response is not None:
            at_ns, kind = response.at_ns, ArrowKind.RESPONSE
            arrow = Arrow(at_ns=at_ns, start=server, end=client, kind=kind, text=text, style=phrase.style)
            yield response.opened.number, arrow
        elif row.ended_ns is None:
            yield number, self._pending(row, server, phrase)
        elif row.left_by == CLIENT:
            kind = ArrowKind.CANCELLATION
            arrow = Arrow(at_ns=row.ended_ns, start=client, end=server, kind=kind, text=text, style=phrase.style)
            yield _last_number(row), arrow
        else:
            arrow = Arrow(at_ns=row.ended_ns, start=server, end=client, kind=ArrowKind.LOST, text=text, style=phrase.style)
            yield _last_number(row), arrow

    def _ends(self, about: Row | Message, sender: str) -> tuple[str, str]:
        """The ids of the sender and of the other side."""
        source = self._sources[about.capture]
        client, server = self._ids["client", source.client_of(about)], self._ids["server", source.server]
        return (client, server) if sender == CLIENT else (server, client)


def _last_number(transaction: Transaction) -> int:
    """The last record of a transaction that is known by its number: of its heads, its closes and its notes."""
    streams = [one for one in (transaction.request, *transaction.interim, transaction.response) if one is not None]
    numbers = [one.opened.number for one in streams] + [one.close.number for one in streams if one.close is not None]
    return max([*numbers, *(note.number for note in transaction.notes)], default=0)


def _sentence(phrase: Phrase) -> str:
    return f"{phrase.word}: {phrase.detail}" if phrase.detail else phrase.word


def _is_plain_close(row: Event) -> bool:
    """Whether a stream just ended, as it should: the exit says it better."""
    return isinstance(row.record, Close) and row.record.how == "eof"
