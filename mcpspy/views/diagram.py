"""A sequence diagram before anyone draws it: who takes part, and what goes between them in the order in which it went.

One layout for all printers (`mermaid`, `ladder`). Progress is told once per call. Refuses to know how an arrow is spelled.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from ..records import CLIENT, Close
from ..transcript.model import Event, Exchange, Kind, Message, Outcome, Row, Source, Stray, Transcript
from ..transcript.transaction import Transaction
from .phrases import (
    PROGRESS,
    Phrase,
    event_phrase,
    notification_phrase,
    one_line,
    outcome_phrase,
    stray_phrase,
)
from .transaction import transaction_phrase
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
        phrase = outcome_phrase(row)
        if response is not None:
            took = "" if row.duration_ns is None else f" · {duration(row.duration_ns)}"
            text = f"{row.row} {_sentence(phrase._replace(word=phrase.word + took))}"
            yield response.number, self._arrow(response, ArrowKind.RESPONSE, text, phrase.style)
        elif row.outcome is Outcome.UNANSWERED:
            yield self._lost(row, phrase)
        elif row.outcome is Outcome.PENDING:
            _, answers = self._ends(row, row.sender)
            last_ns = self._last_ns(row)
            yield request.number, Aside(at_ns=last_ns, at=answers, text=f"{row.row} pending", style=phrase.style)
        for message in row.more_responses:
            yield message.number, self._arrow(message, ArrowKind.RESPONSE, f"{row.row} answered again", "warn")

    def _lost(self, row: Exchange, phrase: Phrase) -> tuple[int, Step]:
        asks, answers = self._ends(row, row.sender)
        text = f"{row.row} {phrase.word}"
        kind = ArrowKind.LOST
        arrow = Arrow(at_ns=self._last_ns(row), start=answers, end=asks, kind=kind, text=text, style=phrase.style)
        return row.request.number, arrow

    def _last_ns(self, row: Exchange) -> int:
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
        """A request that carries no message, and its status."""
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

    def _ends(self, about: Row | Message, sender: str) -> tuple[str, str]:
        """The ids of the sender and of the other side."""
        source = self._sources[about.capture]
        client, server = self._ids["client", source.client_of(about)], self._ids["server", source.server]
        return (client, server) if sender == CLIENT else (server, client)


def _sentence(phrase: Phrase) -> str:
    return f"{phrase.word}: {phrase.detail}" if phrase.detail else phrase.word


def _is_plain_close(row: Event) -> bool:
    """Whether a stream just ended, as it should: the exit says it better."""
    return isinstance(row.record, Close) and row.record.how == "eof"
