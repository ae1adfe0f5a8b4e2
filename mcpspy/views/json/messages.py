"""Messages as JSON objects: the lines of `export jsonl`, and the messages of a row that is shown in full.

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
"""The member that holds the content of a message of this kind."""

_NO_JSON = {"invalid-utf-8", "nan"}
"""Flaws of payloads that official SDKs can read, but that are not JSON."""


def message_lines(transcript: Transcript, rows: list[Row]) -> Iterator[str]:
    """Yield a line for each message of `rows`, and for each model call, by time."""
    items: list[tuple[Message | ModelCall, int]] = [(row, row.row) for row in rows if isinstance(row, ModelCall)]
    items += [(message, row.row) for row in rows if isinstance(row, Exchange | UnpairedMessage) for message in messages_of(row)]
    items.sort(key=lambda pair: (pair[0].at_ns, pair[0].capture, pair[0].number))
    for item, row in items:
        capture = transcript.captures[item.capture]
        if isinstance(item, ModelCall):
            yield as_json({"schema": SCHEMA, "server": capture.server, **model_call_object(item, capture, whole=True)})
            continue
        lane = {"capture": item.capture, "client": capture.client_of(item), "server": capture.server}
        yield as_json({"schema": SCHEMA, **lane, "row": row, **message_object(item, capture)})


def message_object(message: Message, capture: CaptureInfo) -> dict[str, Any]:
    """Return a message with its content."""
    facts: dict[str, Any] = {
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
        facts["transaction"] = transaction.number
    if message.id is not None:
        facts["id"] = id_text(message)
    if message.method is not None:
        facts["method"] = message.method
    if message.target is not None:
        facts["target"] = message.target
    if message.revision is not None:
        facts["revision"] = message.revision
    if message.flaws:
        facts["flaws"] = message.flaws
    if message.batch:
        facts["batch"] = True
    if message.reason:
        facts["reason"] = message.reason
    facts.update(_content(message))
    return facts


def id_text(message: Message) -> RawJson | str | None:
    """Return the id of a message as it was spelled."""
    return message.id if message.id is None or _NO_JSON.intersection(message.flaws) else RawJson(message.id)


def _content(message: Message) -> dict[str, Any]:
    if message.kind is Kind.MALFORMED or _NO_JSON.intersection(message.flaws):
        return payload(message.raw)
    name = CONTENTS[message.kind]
    content = members(message.raw.removeprefix(b"\xef\xbb\xbf")).get(name)
    return {} if content is None else {name: RawJson(decoded(bytes(content)))}
