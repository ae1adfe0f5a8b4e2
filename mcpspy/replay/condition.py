"""Conditions of `--until`: something that happens, or does not, when a capture is replayed to a live server.

error, error:-32602    the server answers with a JSON-RPC error, with this code
crash                  the server's process ends by itself, is killed, or exits with a status that is not 0; a URL is gone
timeout                a request is not answered within --timeout
rule:NAME              a finding of `mcpspy check`
status:500, status:5xx an HTTP response with this status
"text"                 the server sends this text
EXPR                   any other filter: a row matches
"""

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple, TypeAlias

from ..errors import FilterError, ReplayError, RuleError
from ..lazy_pattern import lazy_pattern
from ..records import CLIENT, SERVER, Close, Exit, Note
from ..transcript.filter.filter import FilterMatcher, filter_of
from ..transcript.filter.grammar import Filter, Text
from ..transcript.findings.registry import selected_rules
from ..transcript.findings.rule import Finding
from ..transcript.findings.run import all_findings, findings
from ..transcript.model import ChannelEvent, Exchange, Kind, Numbered, Outcome, Transcript, UnpairedMessage
from .client.player import Report

CRASH: Final = "crash"
TIMEOUT: Final = "timeout"

WORDS: Final = 'error, error:CODE, crash, timeout, rule:NAME, status:5xx, "text", or a filter (mcpspy help filter)'
"""All conditions, for a message."""

_error = lazy_pattern(r"error(?::(-?\d{1,9}))?")
_status = lazy_pattern(r"status:([1-5](?:\d\d|xx))")
_rule = lazy_pattern(r"rule:([\w*?,-]+)")


class Occurrence(NamedTuple):
    """An occurrence in words for people, not escaped, and its live row; None if it is in no row."""

    what: str
    row: int | None = None


Test: TypeAlias = "Callable[[Transcript, Report], Occurrence | None]"


class Condition:
    """One condition, tested against a replay: a transcript without findings, and the report of the plan."""

    __slots__ = ("_test", "is_timeout", "written")

    def __init__(self, written: str, test: Test, *, is_timeout: bool = False) -> None:
        self.written = written
        self._test = test
        self.is_timeout = is_timeout

    def occurrence(self, live: Transcript, report: Report) -> Occurrence | None:
        """Return what happened, if it did."""
        return self._test(live, report)


def condition_of(written: str) -> Condition:
    """Parse a condition. Raises: ReplayError: if it is none."""
    text = written.strip()
    if text == CRASH:
        return Condition(text, _crash)
    if text == TIMEOUT:
        return Condition(text, _late_request, is_timeout=True)
    if error := _error.fullmatch(text):
        return Condition(text, _error_test(None if error[1] is None else int(error[1])))
    if status := _status.fullmatch(text):
        return Condition(text, _filter_test(_filter(f"http:{status[1]}", text), text))
    if rule := _rule.fullmatch(text):
        return Condition(text, _rule_test(_rules(rule[1], text)))
    return Condition(text, _filter_test(_filter(text, text), text))


def _rules(names: str, written: str) -> frozenset[str]:
    try:
        return frozenset(selected_rules((names,)))
    except RuleError as error:
        raise ReplayError(f"--until {written}", str(error).removesuffix(".")) from error


def _filter(text: str, written: str) -> Filter:
    try:
        parsed = filter_of((text,))
    except FilterError as error:
        reason = f"{error.reason}. {error.advice}".rstrip(". ")
        raise ReplayError(f"--until {written}", f"{reason}. It takes {WORDS}") from error
    assert parsed is not None
    if isinstance(parsed.node, Text):
        parsed = filter_of(("sender:server", text)) or parsed
    return parsed


# --- The tests ---


def _crash(live: Transcript, report: Report) -> Occurrence | None:
    """Test whether a server's process ended before its input did, or by a signal or with a status without being stopped."""
    for index, capture in enumerate(live.captures):
        if capture.transactions and report.lost:
            return Occurrence(f"the server is gone: {report.lost}", _pending(live, index))
        is_closed = is_stopped = False
        for record in (row.record for row in live.rows if isinstance(row, ChannelEvent) and row.capture == index):
            match record:
                case Close(stream=0, by="client"):
                    is_closed = True
                case Note(topic="escalation" | "signal"):
                    is_stopped = True
                case Exit() as end if not end.error and not is_stopped and (not is_closed or end.signal or end.code):
                    return Occurrence(_ending(end, is_closed=is_closed), _pending(live, index))
                case _:
                    pass
    return None


def _ending(end: Exit, *, is_closed: bool) -> str:
    how = f"was killed by {end.signal}" if end.signal else f"exited with {end.code}"
    return f"the server {how}{' after its input had ended' if is_closed else ''}"


def _pending(live: Transcript, capture: int) -> int | None:
    """Find the client's first request without an answer."""
    waiting = (Outcome.PENDING, Outcome.UNANSWERED)
    return next((row.row for row in _requests(live) if row.capture == capture and row.outcome in waiting), None)


def _late_request(live: Transcript, report: Report) -> Occurrence | None:
    """Test whether a request was not answered in time."""
    if not report.late:
        return None
    id = report.sent.get(report.late[0])
    row = next((row.row for row in _requests(live) if row.request.id == id), None)
    return Occurrence("a request was not answered in time", row)


def _error_test(code: int | None) -> Test:
    def test(live: Transcript, _: Report) -> Occurrence | None:
        for row, error in _errors(live):
            live_code = error.get("code") if isinstance(error, dict) else None
            if code is None or (live_code == code and not isinstance(live_code, bool)):
                message = error.get("message") if isinstance(error, dict) else None
                return Occurrence(f"error {live_code}: {message}", row)
        return None

    return test


def _errors(live: Transcript) -> Iterator[tuple[int, object]]:
    """Yield the JSON-RPC errors of the server with their rows, also those that answer nothing."""
    for row in live.rows:
        if isinstance(row, Exchange) and row.sender == CLIENT and row.outcome is not Outcome.PROBE:
            answers = (*row.more_responses, row.response)
        elif isinstance(row, UnpairedMessage) and row.message.sender == SERVER:
            answers = (row.message,)
        else:
            continue
        yield from ((row.row, answer.error) for answer in answers if answer is not None and answer.kind is Kind.ERROR)


def _rule_test(rules: frozenset[str]) -> Test:
    def test(live: Transcript, _: Report) -> Occurrence | None:
        finding = next((finding for finding in _all_findings(live) if finding.rule in rules), None)
        return None if finding is None else Occurrence(f"{finding.rule}: {finding.what}", finding.row)

    return test


def _filter_test(wanted: Filter, written: str) -> Test:
    def test(live: Transcript, _: Report) -> Occurrence | None:
        if "rule" in wanted.keys:
            live.findings = _all_findings(live)
        matches = FilterMatcher(wanted, live).matches
        row = next((row for row in live.rows if isinstance(row, Numbered) and matches(row)), None)
        return None if row is None else Occurrence(f"row {row.row} of the capture matches {written}", row.row)

    return test


def _all_findings(live: Transcript) -> list[Finding]:
    """Return all findings of `mcpspy check`."""
    live.findings = findings(live)
    return all_findings(live)


def _requests(live: Transcript) -> Iterator[Exchange]:
    return (row for row in live.exchanges if row.sender == CLIENT)
