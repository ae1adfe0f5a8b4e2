"""A transcript as JSON: the document of `show --json`, the objects of `show -f --json`, and the lines of `export jsonl`.

docs/json.md describes every field. Payloads are included only for rows that were selected by their numbers.
"""

from collections.abc import Iterator
from typing import Any

from msgspec.structs import asdict

from ...records import Record
from ...replay.compare.gateway import hop_changes
from ...transcript.calls.call import Call, Task
from ...transcript.filter.result import FilterResult, findings_about
from ...transcript.findings.rule import Finding, Unchecked
from ...transcript.findings.run import unchecked
from ...transcript.http.transaction import Transaction
from ...transcript.log_matches import LogMatch, log_matches
from ...transcript.mcp.content import content_facts
from ...transcript.model import (
    CaptureInfo,
    ChannelEvent,
    Exchange,
    Kind,
    Log,
    Message,
    ModelCall,
    Row,
    Transcript,
    UnpairedMessage,
)
from ...transcript.outcome import outcome_counts
from ...transcript.phases import Lifecycle, lifecycles
from ...transcript.stats.outcomes import outcomes
from ...wire.json_spans import members
from ..text.escape import decoded
from ..text.json_text import SCHEMA, RawJson, as_json, payload
from ..timeline.exchange import messages_of
from ..timeline.phrases import PROGRESS
from ..timeline.transaction import carrying_frame, packet_of
from .llm import llm_objects, model_call_object
from .transactions import transaction_object

CONTENTS = {Kind.REQUEST: "params", Kind.NOTIFICATION: "params", Kind.RESULT: "result", Kind.ERROR: "error"}
"""The member that holds the content of a message of this kind."""

_NO_JSON = {"invalid-utf-8", "nan"}
"""Flaws of payloads that official SDKs can read, but that are not JSON."""

_NO_FACTS = {"at_ns", "number", "extra"}


def transcript_json(
    transcript: Transcript,
    rows: list[Row],
    *,
    live: bool,
    whole: bool = False,
    filtered: FilterResult | None = None,
    since_wall_ns: int | None = None,
) -> Iterator[str]:
    """Yield the text of one object, in pieces: one line per row. `whole` puts the messages with their content into the rows.

    `since_wall_ns` is the Unix time at which the transcript was cut with `--since`, if it was.
    """
    captures = [
        capture_object(capture) | lifecycle_object(lifecycle)
        for capture, lifecycle in zip(transcript.captures, lifecycles(transcript), strict=True)
    ]
    matches = log_matches(transcript.rows)
    head = {"schema": SCHEMA, "captures": captures, "summary": summary_object(transcript, live=live)}
    if since_wall_ns is not None:
        head["since_wall_ns"] = since_wall_ns
    if filtered is not None:
        head["filter"] = {"expression": str(filtered.filter), "matching": filtered.matching, "of": filtered.total}
    yield as_json(head)[:-1] + ',"rows":['
    between = "\n"
    for row in rows:
        members = row_object(row, transcript.captures, whole=whole) | hops_object(transcript, row)
        if isinstance(row, Log):
            members |= log_match_object(matches.get((row.capture, row.number)))
        yield between + as_json(members)
        between = ",\n"
    shown = transcript.findings if filtered is None else findings_about(filtered, transcript.findings)
    findings = ",\n".join(as_json(finding_object(finding)) for finding in shown)
    of_models = "".join(f',\n"{name}":{as_json(value)}' for name, value in llm_objects(transcript).items())
    yield f'],\n"findings":[{findings}]{of_models}}}\n'


def state_line(row: Row, captures: list[CaptureInfo]) -> str:
    """Return a row as it is now, as a line, with the capture it belongs to."""
    capture = captures[row.capture]
    of = {
        "capture_id": capture.header.capture_id if capture.header else "",
        "client": capture.client_of(row),
        "server": capture.server,
    }
    return as_json({"schema": SCHEMA, **of, **row_object(row, captures)})


def capture_object(capture: CaptureInfo) -> dict[str, Any]:
    """Return a capture: its client and server, its time, and whether it is complete."""
    header = capture.header
    members: dict[str, Any] = {
        "capture": capture.index,
        "id": header.capture_id if header else None,
        "label": header.label if header else None,
        "client": capture.client,
        "clients": capture.clients,
        "server": capture.server,
        "wall_ns": header.wall_ns if header else None,
        "shift_ns": capture.shift_ns,
        "tapped": header.tapped if header else None,
        "messages": capture.messages,
        "complete": capture.complete,
        "gaps": capture.gaps,
        "damages": capture.damages,
        "unkept": capture.unkept,
    }
    if capture.exit is not None:
        members["exit"] = {"code": capture.exit.code, "signal": capture.exit.signal, "error": capture.exit.error or None}
    return members


def summary_object(transcript: Transcript, *, live: bool) -> dict[str, Any]:
    """Return the summary in numbers."""
    of_outcomes = outcomes(transcript)
    counts = outcome_counts(of_outcomes)
    complete = all(capture.complete for capture in transcript.captures)
    models = {"model_calls": len(transcript.model_calls)} if any(capture.is_model for capture in transcript.captures) else {}
    return {
        "calls": of_outcomes.total(),
        **counts,
        **models,
        "findings": len(transcript.findings),
        "unchecked": list(map(unchecked_object, unchecked(transcript))),
        "complete": complete,
        "live": live,
    }


def unchecked_object(unchecked: Unchecked) -> dict[str, Any]:
    """Return rules that did not look at everything."""
    return {"rules": list(unchecked.rules), "ran": unchecked.did_run, "reason": unchecked.reason}


def row_object(row: Row, captures: list[CaptureInfo], *, whole: bool = False) -> dict[str, Any]:
    """Return one row. `whole` puts in its messages with their content."""
    match row:
        case Exchange():
            capture = captures[row.capture]
            return _exchange(row, capture, whole=whole) | call_object(row, capture) | _transactions(row, captures)
        case UnpairedMessage():
            message = _message(row.message, captures[row.capture], row.message.method or "", whole=whole)
            if row.message.kind is Kind.MALFORMED:
                message |= payload(row.message.raw)
            where: dict[str, Any] = {"row": row.row, "capture": row.capture, "at_ns": row.at_ns}
            where |= {"candidates": row.candidates} if row.candidates else {}
            call = call_object(row, captures[row.capture])
            return {"kind": "unpaired", **where, "message": message, **call, **_transactions(row, captures)}
        case Transaction():
            where = {"row": row.row, "capture": row.capture, "at_ns": row.at_ns}
            return {
                "kind": "transaction",
                **where,
                "duration_ns": row.duration_ns,
                **transaction_object(row, captures[row.capture]),
            }
        case ModelCall():
            return model_call_object(row, captures[row.capture], whole=whole)
        case Log():
            text = payload(row.raw.removesuffix(b"\n"))
            return {"kind": "stderr", "capture": row.capture, "at_ns": row.at_ns, "record": row.number, **text}
        case ChannelEvent():
            facts = _facts(row.record)
            return {"kind": "event", "capture": row.capture, "at_ns": row.at_ns, "record": row.record.number, **facts}


def _transactions(row: Exchange | UnpairedMessage, captures: list[CaptureInfo]) -> dict[str, Any]:
    """Return the HTTP transactions that carried a row, and its client; empty for stdio."""
    capture = captures[row.capture]
    if not capture.transactions:
        return {}
    carrying = [transaction_object(transaction, capture) for transaction in capture.transactions_of(row)]
    return {"client": capture.client_of(row), "transactions": carrying}


def _exchange(row: Exchange, capture: CaptureInfo, *, whole: bool) -> dict[str, Any]:
    members: dict[str, Any] = {
        "kind": "exchange",
        "row": row.row,
        "capture": row.capture,
        "at_ns": row.at_ns,
        "duration_ns": row.duration_ns,
        "from": row.sender,
        "id": id_text(row.request),
        "method": row.method,
        "target": row.target,
        "revision": row.revision,
        "outcome": row.outcome.value,
    }
    if row.given_up_ns is not None:
        members["given_up_ns"] = row.given_up_ns
    if row.response is not None and row.response.result_type is not None:
        members["result_type"] = row.response.result_type
    members |= failure_object(row)
    members["progress"] = row.progress
    members["request"] = _message(row.request, capture, row.method, whole=whole)
    members["response"] = None if row.response is None else _message(row.response, capture, row.method, whole=whole)
    notifications = row.notifications if whole else [message for message in row.notifications if message.method != PROGRESS]
    members["notifications"] = [_message(message, capture, row.method, whole=whole) for message in notifications]
    if row.partials:
        members["partials"] = [_message(message, capture, row.method, whole=whole) for message in row.partials]
    if row.more_responses:
        members["more_responses"] = [_message(message, capture, row.method, whole=whole) for message in row.more_responses]
    return members


def failure_object(row: Exchange) -> dict[str, Any]:
    """Return the message of an error or of a failed tool."""
    if row.response is None:
        return {}
    if row.response.kind is Kind.ERROR:
        error = row.response.error
        return (
            {"error": {name: error[name] for name in ("code", "message") if name in error}} if isinstance(error, dict) else {}
        )
    if row.response.is_error:
        content = row.response.result.get("content") if isinstance(row.response.result, dict) else None
        texts = [block.get("text") for block in content if isinstance(block, dict)] if isinstance(content, list) else []
        return {"error": {"message": next((text for text in texts if isinstance(text, str)), None)}}
    return {}


def _message(message: Message, capture: CaptureInfo, method: str, *, whole: bool) -> dict[str, Any]:
    """Return a message of an exchange of `method`."""
    if whole:
        about = content_facts(message, method)
        return message_object(message, capture) | ({"about": about} if about else {})
    members: dict[str, Any] = {
        "record": message.number,
        "at_ns": message.at_ns,
        "first_ns": message.first_ns,
        "bytes": message.size,
    }
    if message.kind not in (Kind.REQUEST, Kind.RESULT, Kind.ERROR):
        members |= {"kind": message.kind.value, "from": message.sender, "method": message.method, "revision": message.revision}
    if message.flaws:
        members["flaws"] = message.flaws
    return members


def _facts(record: Record) -> dict[str, Any]:
    """Return the fields of a record, with bytes as text or base64."""
    facts: dict[str, Any] = {"event": type(record).__name__.lower()}
    fields = {name: getattr(record, name) for name in type(record).__slots__}  # type: ignore[union-attr]  # each kind has them
    rare = fields.pop("rare", {})
    for name, value in (fields | rare).items():
        if name in _NO_FACTS or value is None or value is False or value in (b"", "", (), {}):
            continue
        if isinstance(value, bytes):
            facts |= payload(value) if name == "data" else {name: payload(value)}
        else:
            facts[name] = value
    return facts


def call_object(row: Exchange | UnpairedMessage, capture: CaptureInfo) -> dict[str, Any]:
    """Return the member `call` of a row: all facts on the row that began the call, the row's part in it on the others.

    So a call of a thousand polls is described once. Empty where the call is this one exchange.
    """
    call = capture.calls.get(row.row)
    if call is None:
        return {}
    members: dict[str, Any] = {"row": call.row}
    if isinstance(row, Exchange):
        members["part"] = call.part(row).value
        if count := call.count(row):
            members["number"] = count
    else:
        members["part"] = "notification"
    return {"call": {**members, **_whole_call(call)} if row is call.first else members}


def _whole_call(call: Call) -> dict[str, Any]:
    members: dict[str, Any] = {
        "outcome": call.outcome.value,
        "duration_ns": call.duration_ns,
        "wire_ns": call.wire_ns,
        "rounds": len(call.rounds),
        "polls": len(call.polls),
        "notifications": len(call.notifications),
        "needs_input": call.needs_input,
        "last_row": max(call.exchanges[-1].row, call.notifications[-1].row if call.notifications else 0),
    }
    if call.task is not None:
        members["task"] = _task(call.task)
    if call.elicitations:
        members["elicitations"] = {"asked": call.elicitations, "completed": call.completed_elicitations}
    return members


def _task(task: Task) -> dict[str, Any]:
    members: dict[str, Any] = {"id": task.id, "status": task.status or None, "ttl_ms": task.ttl_ms}
    members["poll_interval_ms"] = task.poll_interval_ms
    return members | ({"cancelled": True} if task.cancelled else {})


def lifecycle_object(lifecycle: Lifecycle) -> dict[str, Any]:
    """Return start-up and phases for a capture; empty where it has none."""
    start_up = lifecycle.start_up
    phases = [
        {
            "phase": phase.name.value,
            "at_ns": phase.begin_ns,
            "end_ns": phase.end_ns,
            "duration_ns": phase.duration_ns,
            "requests": phase.exchanges,
        }
        for phase in lifecycle.phases
    ]
    started = {"start_up": {**asdict(start_up), "took_ns": start_up.duration_ns}} if start_up else {}
    return {**started, "phases": phases} if phases else {}


def log_match_object(match: LogMatch | None) -> dict[str, Any]:
    """Return the member `log_matches` for a line of stderr; empty where the line quotes no message."""
    if match is None:
        return {}
    message = match.message
    quoted = {
        "row": match.row,
        "record": message.number,
        "kind": message.kind.value,
        "from": message.sender,
        "gap_ns": match.gap_ns,
    }
    return {"log_matches": quoted}


def hops_object(transcript: Transcript, row: Row) -> dict[str, Any]:
    """Return the hops of a call that a gateway forwarded; of a call that a gateway made, the row that it was made for."""
    call = transcript.hops.get(row.row) if isinstance(row, Exchange) else None
    if call is None:
        return {}
    if call.outer is not row:
        return {"forwarded_for": call.outer.row}
    changes = hop_changes(call)
    hops = {
        "rows": [exchange.row for exchange in call.inner],
        "server_ns": call.server_ns,
        "gateway_ns": call.gateway_ns,
        "changed_params": [difference.path for difference in changes.params.listed],
        "changed_answer": [difference.path for difference in changes.answer.listed],
        "dropped": dict(changes.dropped),
    }
    return {"hops": hops}


def finding_object(finding: Finding) -> dict[str, Any]:
    """Return a finding with its texts."""
    return {
        "rule": finding.rule,
        "severity": finding.severity.value,
        "capture": finding.capture,
        "record": finding.number,
        "row": finding.row,
        "at_ns": finding.at_ns,
        "count": finding.count,
        "rows": list(finding.rows),
        "hop": finding.hop or None,
        "what": finding.what,
        "culprit": finding.culprit,
        "blame": finding.blame,
        "advice": finding.advice,
    }


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
    """Return a message with its content: the text that was on the wire, with numbers, escapes and duplicate keys as they were."""
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
        frame = carrying_frame(transaction, message)
        if frame is not None and (packet := packet_of(frame)) is not None:
            facts["packet"] = packet
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
