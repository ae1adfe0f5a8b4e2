"""HTTP transactions as JSON objects: the facts that stand in rows, and `show --http --json`, which has heads and frames too.

docs/json.md describes every field.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ...records import Frame, Note
from ...transcript.http.transaction import Stream, Transaction
from ...transcript.model import CaptureInfo, Transcript
from ...wire.sse import parse
from ..text.json_text import SCHEMA, as_json, payload


def transaction_object(transaction: Transaction) -> dict[str, Any]:
    """What is known of a transaction beside its heads and its frames."""
    scope = transaction.scope
    made: dict[str, Any] = {
        "transaction": transaction.number,
        "connection": transaction.connection,
        "method": transaction.method,
        "target": transaction.target,
        "status": transaction.status or None,
        "scope": scope.kind.value,
    }
    if scope.session:
        made["session"] = scope.session
    if scope.unknown_since:
        made["session_unknown"] = scope.unknown_since
    if scope.replaces is not None:
        made["session_before"] = scope.replaces.session
    if scope.stream:
        made["stream"] = scope.stream
    if transaction.redelivered:
        made["redelivered"] = transaction.redelivered
    if transaction.notes:
        made["notes"] = [_note(one) for one in transaction.notes]
    for name, stream in (("request", transaction.request), ("response", transaction.response)):
        made[f"http_{name}"] = None if stream is None else stream_object(stream)
    return made


def stream_object(stream: Stream) -> dict[str, Any]:
    """One direction of a transaction: when what came, and how it ended."""
    made: dict[str, Any] = {
        "record": stream.opened.number,
        "at_ns": stream.at_ns,
        "first_ns": stream.first_ns,
        "last_ns": stream.last_ns,
        "bytes": stream.body_bytes,
        "framing": stream.opened.framing,
    }
    counts = {"chunks": stream.chunks, "events": stream.events, "comments": stream.comments}
    made |= {name: count for name, count in counts.items() if count}
    if stream.injected:
        made["injected"] = True
    close = stream.close
    made["close"] = None if close is None else {"at_ns": stream.closed_ns, "by": close.by, "how": close.how, **close.extra}
    return made


def http_lines(transcript: Transcript, transactions: Iterable[tuple[Transaction, list[int]]]) -> Iterator[str]:
    """A line for each transaction, with the rows that it carried and all that was on the wire."""
    for transaction, rows in transactions:
        yield as_json({"schema": SCHEMA, **_on_wire(transaction, transcript.captures[transaction.capture], rows, {})})


def wire_state(transaction: Transaction, capture: CaptureInfo, rows: list[int], told: Mapping[int, int]) -> str:
    """A transaction as it is now, as a line; of its streams, by their numbers, `told` frames were told before and are left out."""
    capture_id = capture.header.capture_id if capture.header else ""
    return as_json({"schema": SCHEMA, "capture_id": capture_id, **_on_wire(transaction, capture, rows, told)})


def _on_wire(transaction: Transaction, capture: CaptureInfo, rows: list[int], told: Mapping[int, int]) -> dict[str, Any]:
    lane = {"capture": transaction.capture, "client": capture.client_of(transaction), "server": capture.server}
    made = {**lane, "rows": rows, **transaction_object(transaction)}
    interim = [_wire(one, capture, set(), told) for one in transaction.interim]
    if interim:
        made["interim"] = interim
    redelivered = set(transaction.redelivered)
    for name, stream in (("http_request", transaction.request), ("http_response", transaction.response)):
        made[name] = None if stream is None else _wire(stream, capture, redelivered, told)
    return made


def _wire(stream: Stream, capture: CaptureInfo, redelivered: set[int], told: Mapping[int, int]) -> dict[str, Any]:
    """A stream with its head and its frames."""
    opened = stream.opened
    begin = told.get(opened.stream, 0)
    made = stream_object(stream)
    made["head"] = payload(opened.head)
    made["fields"] = [list(field) for field in stream.head.fields]
    if opened.forwarded is not None:
        made["forwarded"] = payload(opened.forwarded)
    if opened.redacted:
        made["redacted"] = opened.redacted
    is_events = opened.framing == "sse"
    made["frames"] = [
        _frame(frame, capture, is_events=is_events, is_first=at == 0, redelivered=frame.number in redelivered)
        for at, frame in enumerate(stream.kept[begin:], begin)
    ]
    return made


def _frame(frame: Frame, capture: CaptureInfo, *, is_events: bool, is_first: bool, redelivered: bool) -> dict[str, Any]:
    shift_ns = capture.shift_ns
    made: dict[str, Any] = {"record": frame.number, "at_ns": frame.at_ns + shift_ns, "first_ns": frame.first_ns + shift_ns}
    made |= {"bytes": frame.length, **payload(frame.data)}
    if frame.part:
        made["part"] = True
    for name in ("chunks", "redacted"):
        value = getattr(frame, name)
        if value:
            made[name] = value
    if frame.sha256:
        made["sha256"] = frame.sha256
    if frame.forwarded is not None:
        made["forwarded"] = payload(frame.forwarded)
    if redelivered:
        made["redelivered"] = True
    if is_events and not frame.part:
        event = parse(frame.data, is_first=is_first)
        made["event"] = {
            "type": event.type,
            "id": event.id,
            "retry_ms": event.retry_ms,
            "data": None if event.data is None else payload(event.data),
            "comments": [one.decode("utf-8", "replace") for one in event.comments],
        }
    return made


def _note(note: Note) -> dict[str, Any]:
    return {"record": note.number, "topic": note.topic, "text": note.text}
