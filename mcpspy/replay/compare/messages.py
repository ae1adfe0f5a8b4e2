"""Comparison of messages in no exchange: what the server sent that is no answer to a known request, and no message at all.

Each is a row, compared by its content, never by its time or its id. Progress and cancellations of no exchange are left out: they
come by chance. So are comments and other events that only keep a stream alive.
Numbers in lines that are no messages, and in log messages, are left out: they are mostly times. Of notifications, log lines and
noise only the presence counts, since their number depends on how long a client stays.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from ...lazy_pattern import lazy_pattern
from ...records import SERVER, Frame
from ...transcript.envelope import message_of
from ...transcript.http.transaction import DONE_EVENT, OTHER_EVENT, ScopeKind
from ...transcript.mcp.methods import CANCELLED, PROGRESS
from ...transcript.model import HTTP_REDIRECTS, CaptureInfo, Kind, Transcript, UnpairedMessage
from ...wire.jsonrpc import malformed
from ..json_values import canonical, read
from .ignore import Ignore, without_ignored

LOG: Final = "notifications/message"

MessageKey: TypeAlias = tuple[str, str]
"""The kind of a message, or the name of an event without one, and the content."""

_digits = lazy_pattern(r"\d+")


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageChange:
    """A message of the server in no exchange that only one side has; `row` is the first, `count` the number of the same."""

    how: Literal["added", "removed"]
    row: UnpairedMessage
    count: int = 1


def message_changes(
    before: Sequence[UnpairedMessage], after: Sequence[UnpairedMessage], rules: Ignore, *, with_noise: bool
) -> list[MessageChange]:
    """Compare the unpaired messages of one server. Without `with_noise` what is no message is left out, and so are events."""
    old, new = _by_key(before, rules, with_noise=with_noise), _by_key(after, rules, with_noise=with_noise)
    changes: list[MessageChange] = []
    for key in {**old, **new}:
        rows, others = old.get(key, []), new.get(key, [])
        more = len(others) - len(rows)
        if not more or (rows and others and key[0] not in (Kind.RESULT, Kind.ERROR, DONE_EVENT)):
            continue
        if more > 0:
            changes.append(MessageChange(how="added", row=others[-more], count=more))
        else:
            changes.append(MessageChange(how="removed", row=rows[more], count=-more))
    return changes


def compared_messages(capture: CaptureInfo, rows: Sequence[UnpairedMessage]) -> list[UnpairedMessage]:
    """Return the messages of the server that are compared: not what HTTP answered by itself, nor progress and cancellations."""
    return [row for row in rows if row.message.sender == SERVER and row.message.raw and not _is_left_out(capture, row)]


def event_rows(transcript: Transcript, capture: CaptureInfo) -> list[UnpairedMessage]:
    """Return the events without a message of a capture, as malformed messages in the row of their transaction."""
    info = CaptureInfo(capture.index)
    rows: dict[int, int] = {}
    events = [
        (transaction, anomaly)
        for transaction in capture.transactions.values()
        for anomaly in transaction.anomalies
        if anomaly.name in (DONE_EVENT, OTHER_EVENT)
    ]
    if events:
        exchanges = (exchange for exchange in transcript.exchanges if exchange.capture == capture.index)
        rows = {exchange.transaction.number: exchange.row for exchange in exchanges if exchange.transaction is not None}
    made: list[UnpairedMessage] = []
    for transaction, anomaly in events:
        stream = 0 if transaction.response is None else transaction.response.number
        frame = Frame(stream, anomaly.at_ns, anomaly.at_ns, anomaly.data, number=anomaly.number)
        message = message_of(info, SERVER, frame, malformed(anomaly.data, anomaly.name))
        made.append(UnpairedMessage(transaction.row or rows.get(transaction.number, 0), message))
    return made


def are_of_one_transport(before: CaptureInfo, after: CaptureInfo) -> bool:
    """Return whether both captures are of stdio, of Streamable HTTP, or of HTTP+SSE: else what is no message cannot be equal."""
    return transports(before) == transports(after)


def transports(capture: CaptureInfo) -> set[bool]:
    """Return the transports of a capture: True for HTTP+SSE, False for Streamable HTTP, nothing for stdio."""
    return {transaction.scope.kind is ScopeKind.STREAM for transaction in capture.transactions.values()}


def _is_left_out(capture: CaptureInfo, row: UnpairedMessage) -> bool:
    transaction = capture.transaction_of(row.message.stream)
    is_of_http = transaction is not None and transaction.status >= HTTP_REDIRECTS
    return is_of_http or row.message.method in (PROGRESS, CANCELLED)


def _by_key(rows: Sequence[UnpairedMessage], rules: Ignore, *, with_noise: bool) -> dict[MessageKey, list[UnpairedMessage]]:
    by_key: dict[MessageKey, list[UnpairedMessage]] = {}
    for row in rows:
        if with_noise or row.message.kind is not Kind.MALFORMED:
            by_key.setdefault(content_key(row, rules), []).append(row)
    return by_key


def content_key(row: UnpairedMessage, rules: Ignore) -> MessageKey:
    """Return what makes a message equal to another: its content, without its id and what `rules` leave out."""
    message = row.message
    if message.kind is Kind.MALFORMED:
        name = message.reason if message.reason in (DONE_EVENT, OTHER_EVENT) else message.kind
        return name, _digits.sub("0", message.raw.decode("utf-8", "replace").strip())
    value: Any = read(message.raw)
    if isinstance(value, dict):
        value = {name: member for name, member in value.items() if name != "jsonrpc"}
        if "id" in value:  # the live id is another one, of the same type
            value["id"] = type(value["id"]).__name__
    text = canonical(without_ignored(value, rules))
    return message.kind, _digits.sub("0", text) if message.method == LOG else text
