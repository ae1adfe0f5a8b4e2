"""Rows to the rows that a filter lets through: `method:tools/call tool:search* status:error not kind:progress "text"`.

Each message is compared with the filter, together with the facts of its exchange; a row matches if one of its messages does.
There are no regular expressions, so that the work is linear in the bytes. docs/filter.md explains the language.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import tzinfo
from functools import partial
from typing import Final

from ...lazy_pattern import lazy_pattern
from ..message import Message
from ..model import CaptureInfo, Exchange, Numbered, Row, Transcript, UnpairedMessage
from . import facts
from .facts import Subject
from .grammar import AllOf, AnyOf, Filter, Node, Not, Term, Text, parse, terms
from .keys import HINTS, KEYS, Test, checked
from .result import FilterResult

_CHECKS: Final = dict.fromkeys(KEYS, checked)


def filter_of(expressions: Iterable[str]) -> Filter | None:
    """Return a filter for what matches all of these expressions; None if there are none.

    Raises: FilterError: for the first expression that cannot be read.
    """
    nodes = [parse(expression, _CHECKS, HINTS) for expression in expressions]
    if not nodes:
        return None
    parts = [part for node in nodes for part in (node.parts if isinstance(node, AllOf) else (node,))]
    return Filter(parts[0] if len(parts) == 1 else AllOf(parts=tuple(parts)))


class FilterMatcher:
    """The test of a filter on rows. `zone` is the time zone of its times of day; None: the system's.

    It knows the findings that the transcript has when it is made; rows may come and change later.
    """

    __slots__ = ("_of_messages", "_of_notifications", "_subject", "_test")

    def __init__(self, chosen: Filter, transcript: Transcript, zone: tzinfo | None = None) -> None:
        self._subject = Subject(transcript.captures, rules_by_row(transcript), zone)
        self._test = _test(chosen.node)
        leaves = list(terms(chosen.node))
        self._of_messages = any(isinstance(leaf, Text) or KEYS[leaf.key].of_message for leaf in leaves)
        self._of_notifications = self._of_messages or any(
            isinstance(leaf, Term) and KEYS[leaf.key].of_notification for leaf in leaves
        )

    def matches(self, row: Row) -> bool:
        """Return whether the filter lets this row through."""
        subject, test = self._subject, self._test
        subject.row = row
        if isinstance(row, Exchange):
            subject.exchange = row
            subject.message = row.request
            if test(subject):
                return True
            return (self._of_messages and self._answers(row)) or (self._of_notifications and self._notifications(row))
        subject.exchange = None
        subject.message = row.message if isinstance(row, UnpairedMessage) else None
        return bool(test(subject))

    def _answers(self, row: Exchange) -> bool:
        """Return whether an answer matches."""
        subject, test = self._subject, self._test
        if row.response is not None:
            subject.message = row.response
            if test(subject):
                return True
        return any(map(self._is_match, (*row.partials, *row.more_responses)))

    def _notifications(self, row: Exchange) -> bool:
        """Return whether a notification of an exchange matches."""
        return any(map(self._is_match, row.notifications))

    def _is_match(self, message: Message) -> object:
        self._subject.message = message
        return self._test(self._subject)


class MessageMatcher:
    """The test of a filter on single messages as they pass, with the facts that their exchanges have by then."""

    __slots__ = ("_subject", "_test")

    def __init__(self, chosen: Filter, capture: CaptureInfo) -> None:
        self._subject = Subject([capture], {}, None)
        self._test = _test(chosen.node)

    def matches(self, message: Message, exchange: Exchange | None) -> bool:
        """Return whether the filter lets this message through."""
        subject = self._subject
        subject.message, subject.exchange = message, exchange
        subject.row = UnpairedMessage(0, message) if exchange is None else exchange
        return bool(self._test(subject))


def filter_rows(chosen: Filter, transcript: Transcript, rows: Sequence[Row], zone: tzinfo | None = None) -> FilterResult:
    """Return the rows of `transcript` among `rows` that a filter lets through. `zone` is as in `FilterMatcher`."""
    matches = FilterMatcher(chosen, transcript, zone).matches
    passing = [row for row in rows if matches(row)]
    matching = sum(1 for row in passing if isinstance(row, Numbered))
    total = sum(1 for row in rows if isinstance(row, Numbered))
    return FilterResult(filter=chosen, rows=passing, matching=matching, total=total)


def tested(chosen: Filter, transcript: Transcript) -> Iterator[Row | None]:
    """Test row after row, for those who cannot wait for the last. Yields each row that matches, and None for each other one."""
    matches = FilterMatcher(chosen, transcript).matches
    for row in transcript.rows:
        yield row if matches(row) else None


def rules_by_row(transcript: Transcript) -> dict[int, set[str]]:
    """Return the rules of the findings that point at each row, by its number."""
    rules: dict[int, set[str]] = {}
    for finding in transcript.findings:
        for row in finding.rows:
            rules.setdefault(row, set()).add(finding.rule)
    return rules


def _test(node: Node) -> Test:
    """Return the test for a tree: nested functions, which cost less than a walk over the tree for each message."""
    match node:
        case Term():
            return checked(node)
        case Text(text=text):
            return _contains(text)
        case Not(part=part):
            test = _test(part)
            return lambda subject: not test(subject)
        case AllOf(parts=parts):
            return partial(_all, tuple(map(_test, parts)))
        case AnyOf(parts=parts):
            return partial(_any, tuple(map(_test, parts)))


def _all(tests: tuple[Test, ...], subject: Subject) -> bool:
    for test in tests:  # noqa: SIM110 - `all` makes a generator, which costs more than the loop
        if not test(subject):
            return False
    return True


def _any(tests: tuple[Test, ...], subject: Subject) -> bool:
    for test in tests:  # noqa: SIM110 - as above
        if test(subject):
            return True
    return False


def _contains(text: str) -> Test:
    """Return a test for `text` in the payload."""
    needles = _spellings(text)
    if len(needles) == 1:
        (needle,) = needles
        return lambda subject: needle in facts.payload(subject)

    def test(subject: Subject) -> bool:
        payload = facts.payload(subject)
        return any(needle in payload for needle in needles)

    return test


def _spellings(text: str) -> tuple[bytes, ...]:
    """Return a text as it is and as JSON may spell it within a string."""
    shortest = json.dumps(text, ensure_ascii=False)[1:-1]
    escaped = json.dumps(text)[1:-1]
    spellings = dict.fromkeys((text, shortest, escaped, _upper_escapes(escaped), shortest.replace("/", "\\/")))
    return tuple(spelling.encode("utf-8", "surrogatepass") for spelling in spellings)


def _upper_escapes(text: str) -> str:
    return _escapes.sub(lambda escape: "\\u" + escape[0][2:].upper(), text)


_escapes = lazy_pattern(r"\\u[0-9a-f]{4}")
