"""Filters say which rows of a transcript to show: `method:tools/call tool:search* status:error not kind:progress "text"` is one.

A filter is held against each message with the facts of its exchange; a row matches if one of its messages does. Refuses regular
expressions: the work is linear in what is filtered. docs/filter.md explains the language.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from datetime import tzinfo
from functools import partial
from typing import TYPE_CHECKING, Final

from ..model import Exchange, Numbered, Row, Transcript, UnpairedMessage
from . import facts
from .facts import Subject
from .grammar import AllOf, AnyOf, Node, Not, Term, Text, parse, terms
from .keys import HINTS, KEYS, Test, checked
from .result import FilterResult

if TYPE_CHECKING:
    from ..message import Message

_CHECKS: Final = dict.fromkeys(KEYS, checked)


class Filter:
    """A filter that was read from text. `str` gives it back in its shortest spelling."""

    __slots__ = ("node",)

    def __init__(self, node: Node) -> None:
        self.node = node

    def __str__(self) -> str:
        return str(self.node)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Filter) and self.node == other.node

    def __hash__(self) -> int:
        return hash(self.node)

    @property
    def keys(self) -> set[str]:
        """The keys that it asks for."""
        return {one.key for one in terms(self.node) if isinstance(one, Term)}


def filter_of(expressions: Iterable[str]) -> Filter | None:
    """What all these expressions let through; None if there are none. Raises: FilterError: with the one that cannot be read."""
    nodes = [parse(one, _CHECKS, HINTS) for one in expressions]
    if not nodes:
        return None
    parts = [part for node in nodes for part in (node.parts if isinstance(node, AllOf) else (node,))]
    return Filter(parts[0] if len(parts) == 1 else AllOf(parts=tuple(parts)))


class FilterMatcher:
    """Says which rows a filter lets through. `zone` is the time zone of its times of day; None: the system's.

    Of findings it knows those that the transcript has when it is made; rows may come and change later.
    """

    __slots__ = ("_of_messages", "_of_notifications", "_subject", "_test")

    def __init__(self, wanted: Filter, transcript: Transcript, zone: tzinfo | None = None) -> None:
        self._subject = Subject(transcript.captures, _rules(transcript), zone)
        self._test = _test(wanted.node)
        leaves = list(terms(wanted.node))
        self._of_messages = any(isinstance(one, Text) or KEYS[one.key].of_message for one in leaves)
        self._of_notifications = self._of_messages or any(
            isinstance(one, Term) and KEYS[one.key].of_notification for one in leaves
        )

    def matches(self, row: Row) -> bool:
        """Whether to show this row."""
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
        """Whether an answer matches."""
        subject, test = self._subject, self._test
        if row.response is not None:
            subject.message = row.response
            if test(subject):
                return True
        return any(map(self._is_match, (*row.partials, *row.more_responses)))

    def _notifications(self, row: Exchange) -> bool:
        """Whether a notification that belongs to an exchange matches."""
        return any(map(self._is_match, row.notifications))

    def _is_match(self, message: Message) -> object:
        self._subject.message = message
        return self._test(self._subject)


def filter_rows(wanted: Filter, transcript: Transcript, rows: Sequence[Row], zone: tzinfo | None = None) -> FilterResult:
    """What of `rows`, rows of `transcript`, a filter lets through. `zone` is that of `FilterMatcher`."""
    matches = FilterMatcher(wanted, transcript, zone).matches
    found = [row for row in rows if matches(row)]
    matching, of = (sum(1 for row in some if isinstance(row, Numbered)) for some in (found, rows))
    return FilterResult(filter=wanted, rows=found, matching=matching, total=of)


def _rules(transcript: Transcript) -> dict[int, set[str]]:
    found: dict[int, set[str]] = {}
    for finding in transcript.findings:
        if finding.row is not None:
            found.setdefault(finding.row, set()).add(finding.rule)
    return found


def _test(node: Node) -> Test:
    """The test that a tree stands for: functions within each other, which cost less than walking the tree for each message."""
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
    """A test whether the payload has `text`, as it is or as JSON may spell it within a string."""
    shortest = json.dumps(text, ensure_ascii=False)[1:-1]
    escaped = json.dumps(text)[1:-1]
    spellings = dict.fromkeys((text, shortest, escaped, _upper_escapes(escaped), shortest.replace("/", "\\/")))
    needles = tuple(one.encode("utf-8", "surrogatepass") for one in spellings)
    if len(needles) == 1:
        (needle,) = needles
        return lambda subject: needle in facts.payload(subject)

    def test(subject: Subject) -> bool:
        payload = facts.payload(subject)
        return any(needle in payload for needle in needles)

    return test


def _upper_escapes(text: str) -> str:
    return _escapes(lambda found: "\\u" + found[0][2:].upper(), text)


_escapes = re.compile(r"\\u[0-9a-f]{4}").sub
