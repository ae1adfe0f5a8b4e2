"""Facts that an imported capture does not have, because its source had none of them; and the rules that need them.

The header of such a capture says of each fact whether it is `exact`, `reconstructed` or `missing` (docs/capture.md). What is missing
proves nothing: rules that need it find nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from ..records import OTHER_SIDE, Close, Exit, Gap
from .exchange import Exchange, UnpairedMessage
from .message import UNREAD
from .model import ChannelEvent

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Sequence

    from ..records import Header, Side
    from .findings.rule import Finding, Unchecked
    from .model import CaptureInfo, Row

TIMES: Final = "times"

_WAITS: Final = (
    "blocked-by-call", "cancellation-ignored", "carried-out-twice", "change-storm", "given-up", "late-answers", "late-cancellation",
    "ping-unanswered", "polling-storm", "resent-call", "slow-call", "slow-start", "task-expired", "task-lost", "timed-out",
    "unused-start",
)  # fmt: skip
_MOMENTS: Final = (
    "body-waits", "events-in-burst", "half-line", "idle-stream-cut", "keep-alive-stopped", "late-head", "progress-in-burst",
    "reader-stalled",
)  # fmt: skip
BEFORE: Final = (
    "accepted-request", "cancelled-unknown-request", "changed-cursor", "early-request", "early-server-request", "missing-initialize",
    "missing-initialized", "session-missing", "unasked-input", "unknown-progress-token", "unpaired-response", "wrong-endpoint",
)  # fmt: skip
_ELSEWHERE: Final = (
    *BEFORE, "cancellation-ignored", "declared-not-served", "input-not-given", "misdelivered-answer",
    "missing-endpoint", "not-redelivered", "pages-unread", "ping-unanswered", "served-not-declared", "stale-tool-list",
    "stream-not-reopened", "task-lost", "undeclared-capability", "unanswered-request", "unheard-answer", "update-missing",
    "unused-offers", "unused-tools",
)  # fmt: skip
_ENDINGS: Final = ("descendants-left", "end-of-input-ignored", "server-not-started")
_SPELLING: Final = ("blank-line", "byte-order-mark", "crlf", "invalid-utf-8", "no-final-newline")

NEEDED: Final[dict[str, tuple[str, ...]]] = {
    TIMES: _WAITS,
    "beginning": BEFORE,
    "ends": ("answer-broken-off", "end-of-input-ignored", "late-answers", "line-over-limit", "unfinished-event"),
    "noise": ("stdout-noise",),
    "process": (*_ENDINGS, "server-died", "unused-start"),
    "heads": ("missing-header", "session-missing"),
}
"""Rules by a fact without which they find nothing."""

NEEDED_EXACTLY: Final[dict[str, tuple[str, ...]]] = {
    TIMES: _MOMENTS,
    "bytes": _SPELLING,
    "senders": ("missing-initialize", "missing-initialized", "wrong-direction"),
    "process": _ENDINGS,
}
"""Rules by a fact that has to be as it was on the wire."""

UNANSWERED: Final = "unanswered-request"


def imported_facts(header: Header | None) -> Mapping[str, Any]:
    """Return the facts of an imported capture, by name; empty for a capture that a tap recorded."""
    imported = header.tapped.get("imported") if header is not None else None
    facts = imported.get("facts") if isinstance(imported, dict) else None
    return facts if isinstance(facts, dict) else {}


def lacks(info: CaptureInfo, fact: str) -> bool:
    """Return whether an imported capture does not have this fact."""
    return imported_facts(info.header).get(fact) == "missing"


def unproven_rules(info: CaptureInfo) -> dict[str, str]:
    """Return the rules that find nothing in a capture, each with the fact that it needs; none for a capture of a tap."""
    facts = imported_facts(info.header)
    if not facts:
        return {}
    lacking = {rule: fact for fact, rules in NEEDED.items() if facts.get(fact) == "missing" for rule in rules}
    inexact = {rule: fact for fact, rules in NEEDED_EXACTLY.items() if facts.get(fact) != "exact" for rule in rules}
    return lacking | inexact


def mark_unread(rows: Iterable[Row], info: CaptureInfo, holes: Mapping[Side, int], damaged_ns: int) -> list[Row]:
    """Mark the requests that may have been answered by what a capture lacks, and return them. HTTP tells when answers were over.

    `holes` has the number of the last record by which messages of a side are missing, `damaged_ns` the time of the last damage.
    """
    marked: list[Row] = []
    is_deaf = bool(info.transactions) and all(transaction.response is None for transaction in info.transactions.values())
    for row in rows:
        if not isinstance(row, Exchange) or row.capture != info.index or row.response is not None or not row.over:
            continue
        if row.transaction is not None and not imported_facts(info.header):
            continue
        request = row.request
        is_before = request.number < holes.get(OTHER_SIDE[request.sender], 0) or request.at_ns <= damaged_ns
        if is_before and UNREAD not in request.flaws:
            request.flaws = (*request.flaws, UNREAD)
            if is_deaf:
                row.left_ns = None  # no answer is in the file, so nobody knows that the client left without one
            marked.append(row)
    return marked


class Proof:
    """Findings of one capture that its source bears out: in a capture of a tap all of them."""

    __slots__ = ("_info", "_last", "_rows", "_unproven")

    def __init__(self, info: CaptureInfo, rows: Sequence[Row]) -> None:
        self._info = info
        self._rows = rows
        self._unproven = unproven_rules(info)
        self._last: int | None = None

    def holds(self, finding: Finding) -> bool:
        """Return whether a finding counts. An answer that never came proves nothing if the source may just stop there."""
        if finding.rule in self._unproven or (self._info.gaps and self._may_be_in_a_gap(finding)):
            return False
        return finding.rule != UNANSWERED or not self._may_just_stop() or finding.number < self._last_number()

    def _may_be_in_a_gap(self, finding: Finding) -> bool:
        """Return whether what a finding misses may be where an imported file has a gap: before it, or anywhere after it."""
        if not imported_facts(self._info.header) or finding.rule not in _ELSEWHERE:
            return False
        return finding.rule in BEFORE or finding.number < self._last_gap()

    def _may_just_stop(self) -> bool:
        """Return whether the source may stop within the session: it tells no ends, or tells them only as far as it goes."""
        header = self._info.header
        if not imported_facts(header) or header is None:
            return False
        return lacks(self._info, "ends") or header.tapped.get("transport") == "stdio"

    def _last_number(self) -> int:
        """Return the number of the last record with a message, or with the end of a stream or of the process."""
        if self._last is None:
            self._last = max((_number(row) for row in self._rows if row.capture == self._info.index), default=0)
        return self._last

    def _last_gap(self) -> int:
        """Return the number of the last gap."""
        events = (row for row in self._rows if isinstance(row, ChannelEvent) and row.capture == self._info.index)
        return max((row.record.number for row in events if isinstance(row.record, Gap)), default=0)


def _number(row: Row) -> int:
    if isinstance(row, Exchange):
        return max(message.number for message in row.messages)
    if isinstance(row, UnpairedMessage):
        return row.message.number
    return row.record.number if isinstance(row, ChannelEvent) and isinstance(row.record, Close | Exit) else 0


def unchecked_facts(captures: Sequence[CaptureInfo], asked: Container[str] | None) -> Iterator[Unchecked]:
    """Yield the rules, of those that are `asked` for (None: of all), that did not run on imported captures."""
    from .findings.rule import Unchecked  # with dataclasses, for which views that show no findings need not wait

    by_fact: dict[str, set[str]] = {}
    for info in captures:
        for rule, fact in unproven_rules(info).items():
            if asked is None or rule in asked:
                by_fact.setdefault(fact, set()).add(rule)
    for fact, rules in by_fact.items():
        yield Unchecked(rules=tuple(sorted(rules)), reason=ABSENT + _REASONS[fact], did_run=False)


ABSENT: Final = "an imported file does not have "

_REASONS: Final = {
    TIMES: "the times of the wire",
    "beginning": "the beginning of the session",
    "ends": "the ends of streams",
    "bytes": "the bytes of the wire",
    "noise": "what is no message",
    "process": "the server's process",
    "heads": "the heads of HTTP",
    "senders": "the senders of all messages",
}
