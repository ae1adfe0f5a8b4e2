"""HTTP transactions as JSON objects: the facts in rows, and the objects of `show --http --json`, which have heads and frames too.

docs/json.md describes every field.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ...records import Frame, Note
from ...transcript.http.transaction import Stream, Transaction
from ...transcript.model import CaptureInfo, Row, Transcript
from ...wire.sse import parse
from ..text.json_text import SCHEMA, as_json, payload
from ..timeline.http_wire import OngoingTransaction, OngoingTransactions
from ..timeline.transaction import packet_of


def transaction_object(transaction: Transaction, capture: CaptureInfo) -> dict[str, Any]:
    """Return the facts about a transaction, without heads and frames."""
    scope = transaction.scope
    members: dict[str, Any] = {
        "transaction": transaction.number,
        "connection": transaction.connection,
        "client_port": capture.client_ports.get(transaction.connection),
        "method": transaction.method,
        "target": transaction.target,
        "status": transaction.status or None,
        "scope": scope.kind.value,
    }
    if scope.session:
        members["session"] = scope.session
    if scope.unknown_since:
        members["session_unknown"] = scope.unknown_since
    if scope.replaces is not None:
        members["session_before"] = scope.replaces.session
    if scope.stream:
        members["stream"] = scope.stream
    if transaction.redelivered:
        members["redelivered"] = transaction.redelivered
    if transaction.notes:
        members["notes"] = [_note(note) for note in transaction.notes]
    for name, stream in (("request", transaction.request), ("response", transaction.response)):
        members[f"http_{name}"] = None if stream is None else stream_object(stream)
    close = transaction.response.close if transaction.response is not None else None
    if close is not None and transaction.ended_by != close.by:  # the client had left before
        members["http_response"]["close"] = {"at_ns": transaction.ended_ns, "by": transaction.ended_by, "how": "broken"}
    return members


def stream_object(stream: Stream) -> dict[str, Any]:
    """Return one direction of a transaction: its times, its counts, and how it ended."""
    members: dict[str, Any] = {
        "record": stream.record,
        "at_ns": stream.at_ns,
        "first_ns": stream.first_ns,
        "last_ns": stream.last_ns,
        "bytes": stream.body_bytes,
        "framing": stream.framing,
    }
    counts = {"chunks": stream.chunks, "events": stream.events, "comments": stream.comments}
    members |= {name: count for name, count in counts.items() if count}
    if stream.injected:
        members["injected"] = True
    close = stream.close
    members["close"] = None if close is None else {"at_ns": stream.closed_ns, "by": close.by, "how": close.how, **close.extra}
    return members


def http_lines(transcript: Transcript, transactions: Iterable[tuple[Transaction, list[int]]]) -> Iterator[str]:
    """Yield a line for each transaction, with the rows it carried and everything that was on the wire."""
    for transaction, rows in transactions:
        yield as_json({"schema": SCHEMA, **_on_wire(transaction, transcript.captures[transaction.capture], rows, {})})


def wire_state(transaction: Transaction, capture: CaptureInfo, rows: list[int], shown_frames: Mapping[int, int]) -> str:
    """Return a transaction as it is now, as a line. `shown_frames` are the frames of each stream that are left out, by stream."""
    capture_id = capture.header.capture_id if capture.header else ""
    return as_json({"schema": SCHEMA, "capture_id": capture_id, **_on_wire(transaction, capture, rows, shown_frames)})


class LiveWireJson:
    """HTTP as it comes, as JSON: an object for each transaction that changed, with the frames that are new."""

    __slots__ = ("_states", "_transactions")

    def __init__(self, *, only_rows: bool = False) -> None:
        self._transactions = OngoingTransactions(only_rows=only_rows)
        self._states: dict[OngoingTransaction, tuple[dict[int, int], tuple[object, ...]]] = {}

    def row(self, row: Row) -> None:
        """Take a row that is new or has changed."""
        self._transactions.row(row)

    def feed(self, captures: Sequence[CaptureInfo]) -> list[str]:
        """Return a line for each transaction that has changed since the last call."""
        lines: list[str] = []
        for going in self._transactions.feed(captures):
            transaction = going.transaction
            frames = {stream.number: len(stream.kept) for stream in going.streams}
            closes = [stream.close is None for stream in going.streams]
            state = frames, (closes, transaction.left_by, len(transaction.notes), going.rows)
            before = self._states.get(going)
            if state != before:
                shown_frames = before[0] if before is not None else {}
                lines.append(wire_state(transaction, going.capture, going.rows, shown_frames))
                self._states[going] = state
            if going.over:
                del self._states[going]
        return lines


def _on_wire(
    transaction: Transaction, capture: CaptureInfo, rows: list[int], shown_frames: Mapping[int, int]
) -> dict[str, Any]:
    lane = {"capture": transaction.capture, "client": capture.client_of(transaction), "server": capture.server}
    members = {**lane, "rows": rows, **transaction_object(transaction, capture)}
    interim = [_wire(stream, capture, set(), shown_frames) for stream in transaction.interim]
    if interim:
        members["interim"] = interim
    redelivered = set(transaction.redelivered)
    for name, stream in (("http_request", transaction.request), ("http_response", transaction.response)):
        members[name] = None if stream is None else _wire(stream, capture, redelivered, shown_frames)
    return members


def _wire(stream: Stream, capture: CaptureInfo, redelivered: set[int], shown_frames: Mapping[int, int]) -> dict[str, Any]:
    """Return a stream with its head and its frames."""
    begin = shown_frames.get(stream.number, 0)
    members = stream_object(stream)
    members["head"] = payload(stream.raw_head)
    members["fields"] = [list(field) for field in stream.head.fields]
    if stream.forwarded is not None:
        members["forwarded"] = payload(stream.forwarded)
    if stream.redacted:
        members["redacted"] = stream.redacted
    is_events = stream.framing == "sse"
    members["frames"] = [
        _frame(frame, capture, is_events=is_events, is_first=at == 0, redelivered=frame.number in redelivered)
        for at, frame in enumerate(stream.kept[begin:], begin)
    ]
    return members


def _frame(frame: Frame, capture: CaptureInfo, *, is_events: bool, is_first: bool, redelivered: bool) -> dict[str, Any]:
    shift_ns = capture.shift_ns
    members: dict[str, Any] = {"record": frame.number, "at_ns": frame.at_ns + shift_ns, "first_ns": frame.first_ns + shift_ns}
    members |= {"bytes": frame.length, **payload(frame.data)}
    if frame.part:
        members["part"] = True
    for name in ("chunks", "redacted"):
        value = getattr(frame, name)
        if value:
            members[name] = value
    if (packet := packet_of(frame)) is not None:
        members["packet"] = packet
    if frame.sha256:
        members["sha256"] = frame.sha256
    if frame.forwarded is not None:
        members["forwarded"] = payload(frame.forwarded)
    if redelivered:
        members["redelivered"] = True
    if is_events and not frame.part:
        event = parse(frame.data, is_first=is_first)
        members["event"] = {
            "type": event.type,
            "id": event.id,
            "retry_ms": event.retry_ms,
            "data": None if event.data is None else payload(event.data),
            "comments": [comment.decode("utf-8", "replace") for comment in event.comments],
        }
    return members


def _note(note: Note) -> dict[str, Any]:
    return {"record": note.number, "topic": note.topic, "text": note.text}
