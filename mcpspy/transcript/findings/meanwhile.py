"""Words about the time while a request waited: what else the other side answered, and whether it waited for an answer itself."""

import re
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from operator import attrgetter, itemgetter
from typing import Final

from ...lazy_pattern import lazy_pattern
from ...records import CLIENT, OTHER_SIDE, SERVER, Side
from ..absent_facts import imported_facts
from ..log_lines import error_line, unwrapped
from ..model import Exchange, Kind, Log, UnpairedMessage
from .answer_index import AnswerIndex
from .facts import AnswerKey, CaptureFacts, scope_key
from .timeout_signs import is_timeout
from .words import call_name, quoted

FOR_PEOPLE: Final = {"elicitation/create"}
"""Requests that a client shows to a person, who may take their time or leave."""

_is_busy = lazy_pattern(
    rb"still running|already (?:running|in progress|being)|in progress|\bbusy\b|\blocked\b|not finished", re.IGNORECASE
)
_AFTER_NS: Final = 500_000_000
_NO_TIME_NS: Final = 250_000_000
_TOO_LONG_NS: Final = 30_000_000_000
_HELD_UP_NS: Final = 1_000_000_000
_SEARCHED: Final = 1000
"""So many of the last lines on stderr are sorted into those about this request and those about others."""
_LOGGED_AFTER_NS: Final = 50_000_000
"""A line that is read up to this time after an answer was written with it: stdout and stderr are two pipes."""
_LOOKED_AT: Final = 20
"""So many of the last lines on stderr are searched for a complaint."""
_LINE_LETTERS: Final = 200
_is_out_of_reach = lazy_pattern(
    rb"ECONNREFUSED|ETIMEDOUT|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|connection refused|connect call failed|name resolution|"
    rb"connection error|connection attempts failed|unreachable|"
    rb"(?:could ?n[o']t|cannot|can't|failed to|unable to) (?:\w+ ){0,2}connect|max retries exceeded",
    re.IGNORECASE,
)


def meanwhile_words(facts: CaptureFacts, exchange: Exchange, until_ns: int) -> str:
    """Say what else the side that was asked answered until then, as a sentence after another one."""
    index = _index(facts, exchange.sender, exchange)
    count = index.answers(exchange.at_ns, until_ns)
    later = index.later(exchange.at_ns, until_ns, exchange.row)
    beginning = f" Meanwhile the {OTHER_SIDE[exchange.sender]} answered"
    if later is None:
        return (
            f"{beginning} {_requests(count, 'earlier') if count else f'nothing else{_keep_alives(facts, exchange, until_ns)}'}."
        )
    name = f"the later {call_name(later)} (row {later.row})"
    return f"{beginning} {name}." if count == 1 else f"{beginning} {_requests(count, 'other')}, among them {name}."


def _keep_alives(facts: CaptureFacts, exchange: Exchange, until_ns: int) -> str:
    """Say that keep-alives came meanwhile on the stream on which the answer is due: they show that the sender was there."""
    transaction = exchange.transaction
    if transaction is None or exchange.sender != CLIENT:
        return ""
    carrier = facts.capture.transactions.get(transaction.scope.stream, transaction)
    rows = () if carrier.response is None else carrier.response.keep_alives
    first, last = (bisect_right(rows, at_ns, key=attrgetter("last_ns")) for at_ns in (exchange.at_ns, until_ns))
    came = sum(row.count for row in rows[first:last])
    return f", and sent {came} keep-alive{'' if came == 1 else 's'} on its stream" if came else ""


def _requests(count: int, which: str) -> str:
    return f"{count:,} {which} request{'' if count == 1 else 's'}"


def usual_ns(facts: CaptureFacts, exchange: Exchange, until_ns: int) -> int:
    """Return how long another request with this method waited for its answer, if that is longer than this one waited until then.

    0 if none did; if the other side answered a later request meanwhile, which it did not leave to wait; and after half a minute.
    """
    index = _index(facts, exchange.sender, exchange)
    longest_ns = index.longest_ns(exchange.method)
    is_longer = until_ns - exchange.at_ns < min(longest_ns, _TOO_LONG_NS)
    return longest_ns if is_longer and index.later(exchange.at_ns, until_ns, exchange.row) is None else 0


def awaited(facts: CaptureFacts, exchange: Exchange, until_ns: int) -> Exchange | None:
    """Return the request that the side that was asked had made meanwhile and waited for at that time; None if there is none.

    An answer that came just before, as one that says “Connection closed”, left it no time to go on. Over HTTP the request comes on
    the stream of the one that it is about, or on the server's stream.
    """
    index = _index(facts, OTHER_SIDE[exchange.sender], exchange)
    request = index.last_waiting(exchange.at_ns, until_ns) or index.last_waiting(exchange.at_ns, until_ns - _NO_TIME_NS)
    if request is None or (request.given_up_ns is not None and request.given_up_ns <= until_ns):
        return None
    if request.transaction is None or request.transaction is exchange.transaction:
        return request
    return None if request.transaction.method == "POST" else request


def written_words(facts: CaptureFacts, until_ns: int) -> str:
    """Quote the last line that the server had written by then, on stderr or in the place of a message.

    An imported file may not have its stderr, and proves nothing without it.
    """
    if facts.written is None:
        facts.written = list(_written(facts))
    at = bisect_right(facts.written, until_ns, key=itemgetter(0))
    if at:
        return f" The last line that it had written: {quoted(facts.written[at - 1][1])}"
    return "" if imported_facts(facts.capture.header) else " It had written nothing."


def _written(facts: CaptureFacts) -> Iterator[tuple[int, bytes]]:
    """Yield what the server had written last, with the time from which on it was the last."""
    written = b""
    for row in facts.rows:
        if isinstance(row, Log) and row.capture == facts.capture.index and row.raw.strip():
            written = unwrapped((written, row.raw) if written else (row.raw,))[-1]
            yield row.at_ns, written
        elif isinstance(row, UnpairedMessage) and row.capture == facts.capture.index and row.message.sender == SERVER:
            written = row.message.raw
            if written:
                yield row.at_ns, written


def requests_ns(facts: CaptureFacts, sender: Side) -> Sequence[int]:
    """Return the times of all requests of one side, in order."""
    if not facts.asked_ns:
        times: dict[Side, array[int]] = {CLIENT: array("q"), SERVER: array("q")}
        for exchange in facts.exchanges:
            times[exchange.sender].append(exchange.at_ns)
        facts.asked_ns = times
    return facts.asked_ns[sender]


def logged_while(facts: CaptureFacts, exchange: Exchange, until_ns: int) -> bytes:
    """Return the line that tells most of those that the server wrote to stderr while a request waited for it; empty if none did.

    That is the last exception or complaint, or else the last line. Lines that came while a later request waited are likely to be
    about that one: they count only if there are no others.
    """
    if exchange.transaction is not None or exchange.sender != CLIENT:
        return b""
    if facts.logs is None:
        facts.logs = [row for row in facts.rows if isinstance(row, Log) and row.capture == facts.capture.index]
    logs, at = facts.logs, attrgetter("at_ns")
    first, last = bisect_left(logs, exchange.at_ns, key=at), bisect_right(logs, until_ns, key=at)
    index = _index(facts, CLIENT, exchange)
    written = [row for row in logs[max(first, last - _SEARCHED) : last] if row.raw.strip()]
    own = [row for row in written if not index.is_of_another(row.at_ns, exchange.row, _LOGGED_AFTER_NS)]
    lines = unwrapped(row.raw for row in (own or written)[-_LOOKED_AT:])
    return error_line(lines) or (lines[-1] if lines else b"")


def log_words(line: bytes) -> str:
    """Quote a line of stderr as a sentence after another one; empty if there is none."""
    return f" It wrote to stderr meanwhile: {quoted(line, _LINE_LETTERS)}" if line else ""


def log_advice(line: bytes) -> str:
    """Say what to do if a line complains that something cannot be reached; empty if it does not."""
    if not _is_out_of_reach.search(line):
        return ""
    return "Make what the server tries to reach available to it; and let a call that fails or takes long be answered with an error."


def next_answered(facts: CaptureFacts, exchange: Exchange, since_ns: int) -> Exchange | None:
    """Return the request after this time that the side that was asked answered first; None if it answered none."""
    index = _index(facts, exchange.sender, exchange)
    later = index.later(since_ns, facts.capture.last_ns + facts.capture.shift_ns)
    return None if later is None or later.response is None else later


def held_up(facts: CaptureFacts, exchange: Exchange) -> Exchange | None:
    """Return the request that waited a second or more for a cancelled one to be over, or was refused meanwhile; None if none did.

    It was sent after the cancellation, and answered just after the answer that nobody wanted any more; nothing was before it. Or it
    failed before that answer, and says that something still runs. Of a request that timed out it is known already that it was slow.
    A cancellation that spells the id otherwise is none to the other side.
    """
    cancelled, late = exchange.cancelled, exchange.response
    if cancelled is None or late is None or cancelled.sender != exchange.sender or is_timeout(exchange, cancelled.at_ns):
        return None
    if cancelled.correlation_key not in (None, exchange.request.id):
        return None
    later = next_answered(facts, exchange, cancelled.at_ns)
    if later is None or later.response is None or scope_key(later.transaction) != scope_key(exchange.transaction):
        return None
    if later.response.at_ns < late.at_ns:
        is_refused = b"rror" in later.response.raw and _is_busy.search(later.response.raw)
        return later if is_refused and late.kind is Kind.RESULT and late.at_ns - cancelled.at_ns >= _HELD_UP_NS else None
    is_after = 0 <= later.response.at_ns - late.at_ns <= _AFTER_NS
    return later if is_after and late.at_ns - later.at_ns >= _HELD_UP_NS else None


def _index(facts: CaptureFacts, sender: Side, exchange: Exchange) -> AnswerIndex:
    """Return the requests of one side. All indexes of a capture are made at the first question."""
    if not facts.answers:
        by_key: dict[AnswerKey, list[Exchange]] = {}
        for row in facts.exchanges:
            by_key.setdefault(_key(row.sender, row), []).append(row)
        facts.answers = {key: AnswerIndex(requests) for key, requests in by_key.items()}
    return facts.answers.get(_key(sender, exchange)) or AnswerIndex()


def _key(sender: Side, exchange: Exchange) -> AnswerKey:
    return sender, 0 if sender == CLIENT else scope_key(exchange.transaction)
