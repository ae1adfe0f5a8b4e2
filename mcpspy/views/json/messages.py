"""Messages as JSON objects: what `export jsonl` prints, one per line, and what stands in a row that was asked for whole.

`params`, `result` and `error` are the text that was on the wire: numbers, escapes and duplicate keys as they were. docs/json.md
describes every field.
"""

from collections.abc import Iterator
from typing import Any

from ...transcript.model import CaptureInfo, Exchange, Kind, Message, ModelCall, Row, Transcript, UnpairedMessage
from ...wire.json_spans import members
from ..text.escape import decoded
from ..text.json_text import SCHEMA, RawJson, as_json, payload
from ..timeline.exchange import messages_of
from .llm import model_call_object

CONTENTS = {Kind.REQUEST: "params", Kind.NOTIFICATION: "params", Kind.RESULT: "result", Kind.ERROR: "error"}
"""The member that holds what a message of this kind says."""

_NO_JSON = {"invalid-utf-8", "nan"}
"""Flaws of payloads that official SDKs can read, but that are not JSON."""


def message_lines(transcript: Transcript, rows: list[Row]) -> Iterator[str]:
    """A line for each message of `rows`, and for each model call, by time."""
    found: list[tuple[Message | ModelCall, int]] = [(row, row.row) for row in rows if isinstance(row, ModelCall)]
    found += [(message, row.row) for row in rows if isinstance(row, Exchange | UnpairedMessage) for message in messages_of(row)]
    found.sort(key=lambda one: (one[0].at_ns, one[0].capture, one[0].number))
    for one, row in found:
        capture = transcript.captures[one.capture]
        if isinstance(one, ModelCall):
            yield as_json({"schema": SCHEMA, "server": capture.server, **model_call_object(one, capture, whole=True)})
            continue
        lane = {"capture": one.capture, "client": capture.client_of(one), "server": capture.server}
        yield as_json({"schema": SCHEMA, **lane, "row": row, **message_object(one, capture)})


def message_object(message: Message, capture: CaptureInfo) -> dict[str, Any]:
    """A message with all it says."""
    made: dict[str, Any] = {
        "record": message.number,
        "at_ns": message.at_ns,
        "first_ns": message.first_ns,
        "wall_ns": None if capture.header is None else capture.header.wall_ns + message.at_ns - capture.shift_ns,
        "from": message.sender,
        "kind": message.kind.value,
        "bytes": message.size,
    }
    transaction = capture.transaction_of(message.stream)
    if transaction is not None:
        made["transaction"] = transaction.number
    if message.id is not None:
        made["id"] = id_text(message)
    if message.method is not None:
        made["method"] = message.method
    if message.target is not None:
        made["target"] = message.target
    if message.revision is not None:
        made["revision"] = message.revision
    if message.flaws:
        made["flaws"] = message.flaws
    if message.batch:
        made["batch"] = True
    if message.reason:
        made["reason"] = message.reason
    made.update(_content(message))
    return made


def id_text(message: Message) -> RawJson | str | None:
    """The id of a message as it was spelled."""
    return message.id if message.id is None or _NO_JSON.intersection(message.flaws) else RawJson(message.id)


def _content(message: Message) -> dict[str, Any]:
    if message.kind is Kind.MALFORMED or _NO_JSON.intersection(message.flaws):
        return payload(message.raw)
    name = CONTENTS[message.kind]
    found = members(message.raw.removeprefix(b"\xef\xbb\xbf")).get(name)
    return {} if found is None else {name: RawJson(decoded(bytes(found)))}
