"""Data for filters on the page: the keys of the language, and the facts about each row and its messages that filters compare.

The script `03-filter.js` reads this data; change the two together. Facts are captured text, which the page compares and never shows.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from ...transcript.filter import facts
from ...transcript.filter.facts import Subject
from ...transcript.filter.filter import rules_by_row
from ...transcript.filter.keys import ARROWS, HINTS, KEYS, STATUS_WORDS, AmountTests, Key, TextTests
from ...transcript.message import Kind, Message
from ...transcript.model import ChannelEvent, Exchange, Log, ModelCall, Row, Transcript, UnpairedMessage
from ..text.escape import decoded
from ..timeline.exchange import messages_of

_SECOND_NS: Final = 1_000_000_000

_OWN: Final = ("id", "token")
"""The keys whose values differ in each row; those of other keys are shared by many."""

_OTHERS: Final = {"status": facts.statuses, "dir": facts.directions, "sender": facts.senders}
"""The facts of keys that read their values in a way of their own."""

_TEXTS: Final = _OTHERS | {name: key.test.of for name, key in KEYS.items() if isinstance(key.test, TextTests)}
_OF_ROWS: Final = {
    name: of for name, of in _TEXTS.items() if not KEYS[name].of_message and not KEYS[name].of_notification and name not in _OWN
}
_OF_MESSAGES: Final = {name: of for name, of in _TEXTS.items() if name not in _OF_ROWS and name not in _OWN}


def filter_keys() -> dict[str, Any]:
    """Return what the page has to know to read a filter: the keys in their order, and the words that others use for them."""
    return {"keys": {name: _key(key) for name, key in KEYS.items()}, "hints": HINTS, "arrows": ARROWS}


def _key(key: Key) -> dict[str, Any]:
    described: dict[str, Any] = {"operators": key.operators, "example": key.example}
    if key.of_message or key.of_notification:
        described["ofMessages"] = True
    match key.test:
        case TextTests(vocabulary=vocabulary, closed=True):
            return described | {"form": "words", "words": vocabulary}
        case TextTests():
            return described | {"form": "texts"}
        case AmountTests(units=units, example=example, at_least=at_least):
            return described | {"form": "amount", "units": units, "range": example, "orMore": at_least is not None}
    forms = {"status": "status", "dir": "side", "sender": "side", "http": "http", "after": "time", "before": "time"}
    return described | {"form": forms[key.name]} | ({"words": STATUS_WORDS} if key.name == "status" else {})


def _known(texts: Iterable[str | None]) -> tuple[str, ...]:
    known = (text for text in texts if text is not None)
    return tuple(sorted(known) if isinstance(texts, set) else known)


class FilterFacts:
    """The facts of the rows of a transcript. `shapes` has each combination of texts once; rows and messages have its position."""

    def __init__(self, transcript: Transcript) -> None:
        self._subject = Subject(transcript.captures, rules_by_row(transcript), None)
        self._shapes: dict[tuple[Any, ...], int] = {}
        self._positions: dict[Any, int] = {}
        """The positions of shapes by what their texts depend on, because to collect them takes ten times as long."""

    def data(self, rows: Iterable[Row]) -> dict[str, Any]:
        """Return the facts of these rows, and the Unix time at which the clock begins, in seconds and nanoseconds."""
        facts_of_rows = [self._row(row) for row in rows]
        begin_ns = self._subject.begin_ns
        return {
            "begin": None if begin_ns is None else divmod(begin_ns, _SECOND_NS),
            "shapes": [dict(shape) for shape in self._shapes],
            "rows": facts_of_rows,
        }

    def _row(self, row: Row) -> list[Any]:
        """Return the position of its texts, its ids, its messages, and where there are any, other facts."""
        subject = self._subject
        subject.row, subject.message = row, None
        subject.exchange = row if isinstance(row, Exchange) else None
        messages: Sequence[Message] = messages_of(row) if isinstance(row, Exchange | UnpairedMessage) else ()
        if isinstance(row, Exchange):
            subject.message = row.request
        elif messages:
            subject.message = messages[0]
        made = [self._row_shape(row), facts.ids(subject)]
        others = self._others(row)
        made.append([self._message(message, row) for message in messages] or [[self._shape(_OF_MESSAGES), 0, None]])
        return [*made, others] if others else made

    def _message(self, message: Message, row: Row) -> list[Any]:
        subject = self._subject
        subject.message = message
        made = [self._message_shape(message, row), message.at_ns - row.at_ns, message.size]
        tokens = facts.tokens(subject)
        return [*made, tokens] if tokens else made

    def _row_shape(self, row: Row) -> int:
        """Return the position of the texts of a row; of a plain exchange by what they depend on."""
        subject = self._subject
        if not isinstance(row, Exchange) or facts.call_of(subject) or row.row in subject.rules:
            return self._shape(_OF_ROWS)
        request, response = row.request, row.response
        if response is None or response.kind is Kind.ERROR:
            return self._shape(_OF_ROWS)
        client = subject.capture_info.client_of(row)
        key = row.capture, client, row.outcome, response.result_type, request.method, request.target, request.sender
        return self._known_shape(key, _OF_ROWS)

    def _message_shape(self, message: Message, row: Row) -> int:
        """Return the position of the texts of a message; of one of a plain exchange by what they depend on."""
        subject = self._subject
        if not isinstance(row, Exchange) or facts.call_of(subject):
            return self._shape(_OF_MESSAGES)
        request = row.request
        carried = tuple(
            (carrier.status, carrier.method, carrier.target, carrier.scope) for carrier in facts.transactions(subject)
        )
        spoken = message.kind, message.method, message.target, message.sender, message.revision, message.flaws
        key = row.capture, message is request, request.method, request.target, *spoken, *carried
        return self._known_shape(key, _OF_MESSAGES)

    def _known_shape(self, key: tuple[Any, ...], of: dict[str, facts.Texts]) -> int:
        position = self._positions.get(key)
        if position is None:
            position = self._positions[key] = self._shape(of)
        return position

    def _shape(self, of: dict[str, facts.Texts]) -> int:
        """Return the position of the texts of the subject."""
        subject = self._subject
        texts: list[tuple[str, Any]] = [(name, _known(fact(subject))) for name, fact in of.items()]
        if of is _OF_MESSAGES:
            texts.append(("http", tuple((each.status, each.method, each.target) for each in facts.transactions(subject))))
        shape = tuple(pair for pair in texts if pair[1])
        return self._shapes.setdefault(shape, len(self._shapes))

    def _others(self, row: Row) -> dict[str, Any]:
        """Return the facts that few rows have."""
        subject, others = self._subject, dict[str, Any]()
        call = facts.call_of(subject)
        if call is not None:
            others |= {"call": call.row, "total": call.duration_ns}
        if isinstance(row, Exchange) and row.progress:
            others["progress"] = row.progress
        if isinstance(row, Log | ChannelEvent) and (text := decoded(facts.payload(subject))):
            others["text"] = text
        if isinstance(row, ModelCall):
            others["answer"] = decoded(facts.answer_text(row.answer))
        return others
