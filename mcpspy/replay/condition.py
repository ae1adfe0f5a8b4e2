"""What `--until` waits for: something that happens, or does not, when a recording is driven against a live server.

    error, error:-32602    the server answers with a JSON-RPC error, with this code
    crash                  the server's process ends by itself, is killed, or leaves with a status that is not 0; a URL is gone
    timeout                a request is not answered within --timeout
    rule:NAME              a finding of `mcpspy check`
    status:500, status:5xx an HTTP response with this status
    "text"                 the server says it
    EXPR                   any other filter: a row matches

Refuses to run anything.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from ..errors import FilterError, ReplayError, RuleError
from ..records import CLIENT, SERVER, Close, Exit, Note
from ..transcript.filter.filter import FilterMatcher, filter_of
from ..transcript.filter.grammar import Filter, Text
from ..transcript.findings.registry import selected_rules
from ..transcript.findings.run import all_findings, findings
from ..transcript.model import ChannelEvent, Exchange, Kind, Numbered, Outcome, Transcript, UnpairedMessage

if TYPE_CHECKING:
    from ..transcript.findings.rule import Finding
    from .client.player import Report

CRASH: Final = "crash"
TIMEOUT: Final = "timeout"

WORDS: Final = 'error, error:CODE, crash, timeout, rule:NAME, status:5xx, "text", or a filter (mcpspy help filter)'
"""All that can be waited for."""

_error = re.compile(r"error(?::(-?\d{1,9}))?").fullmatch
_status = re.compile(r"status:([1-5](?:\d\d|xx))").fullmatch
_rule = re.compile(r"rule:([\w*?,-]+)").fullmatch


class Occurrence(NamedTuple):
    """That it happened: what, for people and not safe to be shown, and in which live row, None where it is in none."""

    what: str
    row: int | None = None


Test: TypeAlias = "Callable[[Transcript, Report], Occurrence | None]"


class Condition:
    """One of them. `held` says whether it happened in what was driven: a transcript without findings, and what became of the plan."""

    __slots__ = ("_test", "is_timeout", "written")

    def __init__(self, written: str, test: Test, *, is_timeout: bool = False) -> None:
        self.written = written
        self._test = test
        self.is_timeout = is_timeout

    def held(self, live: Transcript, report: Report) -> Occurrence | None:
        """What happened, if it did."""
        return self._test(live, report)


def condition_of(written: str) -> Condition:
    """The condition that a text says. Raises: ReplayError: for what is none."""
    text = written.strip()
    if text == CRASH:
        return Condition(text, _crash)
    if text == TIMEOUT:
        return Condition(text, _late, is_timeout=True)
    if error := _error(text):
        return Condition(text, _error_test(None if error[1] is None else int(error[1])))
    if status := _status(text):
        return Condition(text, _filter_test(_filter(f"http:{status[1]}", text), text))
    if rule := _rule(text):
        return Condition(text, _rule_test(_rules(rule[1], text)))
    return Condition(text, _filter_test(_filter(text, text), text))


def _rules(names: str, written: str) -> frozenset[str]:
    try:
        return frozenset(selected_rules((names,)))
    except RuleError as error:
        raise ReplayError(f"--until {written}", str(error).removesuffix(".")) from error


def _filter(text: str, written: str) -> Filter:
    try:
        found = filter_of((text,))
    except FilterError as error:
        told = f"{error.reason}. {error.advice}".rstrip(". ")
        raise ReplayError(f"--until {written}", f"{told}. It takes {WORDS}") from error
    assert found is not None
    if isinstance(found.node, Text):
        found = filter_of(("sender:server", text)) or found
    return found


# --- What each looks at ---


def _crash(live: Transcript, report: Report) -> Occurrence | None:
    """The server's process ended before its input did, or by a signal or with a status that nobody asked for."""
    for index, source in enumerate(live.captures):
        if source.transactions and report.lost:
            return Occurrence(f"the server is gone: {report.lost}", _pending(live, index))
        left = escalated = False
        for record in (row.record for row in live.rows if isinstance(row, ChannelEvent) and row.capture == index):
            match record:
                case Close(stream=0, by="client"):
                    left = True
                case Note(topic="escalation" | "signal"):
                    escalated = True
                case Exit() as end if not end.error and not escalated and (not left or end.signal or end.code):
                    return Occurrence(_ending(end, left=left), _pending(live, index))
                case _:
                    pass
    return None


def _ending(end: Exit, *, left: bool) -> str:
    how = f"was killed by {end.signal}" if end.signal else f"exited with {end.code}"
    return f"the server {how}{' after its input had ended' if left else ''}"


def _pending(live: Transcript, capture: int) -> int | None:
    """The client's first request that was left without an answer."""
    waits = (Outcome.PENDING, Outcome.UNANSWERED)
    return next((row.row for row in _asked(live) if row.capture == capture and row.outcome in waits), None)


def _late(live: Transcript, report: Report) -> Occurrence | None:
    """A request that waited as long as it may; it is among those without an answer."""
    if not report.late:
        return None
    id = report.sent.get(report.late[0])
    row = next((one.row for one in _asked(live) if one.request.id == id), None)
    return Occurrence("a request was not answered in time", row)


def _error_test(code: int | None) -> Test:
    def test(live: Transcript, _: Report) -> Occurrence | None:
        for row, error in _errors(live):
            told = error.get("code") if isinstance(error, dict) else None
            if code is None or (told == code and not isinstance(told, bool)):
                message = error.get("message") if isinstance(error, dict) else None
                return Occurrence(f"error {told}: {message}", row)
        return None

    return test


def _errors(live: Transcript) -> Iterator[tuple[int, object]]:
    """The JSON-RPC errors that the server answered with, those that answer nothing too."""
    for row in live.rows:
        if isinstance(row, Exchange) and row.sender == CLIENT and row.outcome is not Outcome.PROBE:
            answers = (*row.more_responses, row.response)
        elif isinstance(row, UnpairedMessage) and row.message.sender == SERVER:
            answers = (row.message,)
        else:
            continue
        yield from ((row.row, one.error) for one in answers if one is not None and one.kind is Kind.ERROR)


def _rule_test(rules: frozenset[str]) -> Test:
    def test(live: Transcript, _: Report) -> Occurrence | None:
        found = next((one for one in _found(live) if one.rule in rules), None)
        return None if found is None else Occurrence(f"{found.rule}: {found.what}", found.row)

    return test


def _filter_test(wanted: Filter, written: str) -> Test:
    def test(live: Transcript, _: Report) -> Occurrence | None:
        if "rule" in wanted.keys:
            live.findings = _found(live)
        matches = FilterMatcher(wanted, live).matches
        row = next((one for one in live.rows if isinstance(one, Numbered) and matches(one)), None)
        return None if row is None else Occurrence(f"row {row.row} of the capture matches {written}", row.row)

    return test


def _found(live: Transcript) -> list[Finding]:
    """All that `mcpspy check` would find."""
    live.findings = findings(live)
    return all_findings(live)


def _asked(live: Transcript) -> Iterator[Exchange]:
    return (row for row in live.exchanges if row.sender == CLIENT)
