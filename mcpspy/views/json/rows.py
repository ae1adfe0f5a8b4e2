"""A transcript as JSON: the document of `show --json`, and the objects of `show -f --json`.

docs/json.md describes every field. Without payloads but where rows were asked for by their numbers.
"""

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from ...records import Record
from ...transcript.calls.call import Call, Task
from ...transcript.filter.result import FilterResult, findings_about
from ...transcript.findings.rule import Finding
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
    Outcome,
    Row,
    Transcript,
    UnpairedMessage,
)
from ...transcript.phases import Lifecycle, lifecycles
from ...transcript.stats.outcomes import outcomes
from ..text.json_text import SCHEMA, as_json, payload
from ..timeline.phrases import PROGRESS
from .llm import llm_objects, model_call_object
from .messages import id_text, message_object
from .transactions import transaction_object

_NO_FACTS = {"at_ns", "number", "extra"}


def transcript_json(
    transcript: Transcript,
    rows: list[Row],
    *,
    live: bool,
    whole: bool = False,
    found: FilterResult | None = None,
    since_wall_ns: int | None = None,
) -> Iterator[str]:
    """The text of one object, in pieces: one line per row. `whole` puts the messages with all they say into the rows.

    `since_wall_ns` is the moment, as Unix time, since when all of `transcript` was alive, if it was asked for like that.
    """
    captures = [
        capture_object(one) | course_object(course)
        for one, course in zip(transcript.captures, lifecycles(transcript), strict=True)
    ]
    quoted = log_matches(transcript.rows)
    head = {"schema": SCHEMA, "captures": captures, "summary": summary_object(transcript, live=live)}
    if since_wall_ns is not None:
        head["since_wall_ns"] = since_wall_ns
    if found is not None:
        head["filter"] = {"expression": str(found.filter), "matching": found.matching, "of": found.total}
    yield as_json(head)[:-1] + ',"rows":['
    between = "\n"
    for row in rows:
        made = row_object(row, transcript.captures, whole=whole)
        if isinstance(row, Log):
            made |= quote_object(quoted.get((row.capture, row.number)))
        yield between + as_json(made)
        between = ",\n"
    told = transcript.findings if found is None else findings_about(found, transcript.findings)
    findings = ",\n".join(as_json(finding_object(one)) for one in told)
    joined = "".join(f',\n"{name}":{as_json(value)}' for name, value in llm_objects(transcript).items())
    yield f'],\n"findings":[{findings}]{joined}}}\n'


def state_line(row: Row, captures: list[CaptureInfo]) -> str:
    """One change of state, as a line: a row as it is now, with the capture it belongs to."""
    capture = captures[row.capture]
    of = {
        "capture_id": capture.header.capture_id if capture.header else "",
        "client": capture.client_of(row),
        "server": capture.server,
    }
    return as_json({"schema": SCHEMA, **of, **row_object(row, captures)})


def capture_object(capture: CaptureInfo) -> dict[str, Any]:
    """A capture: who recorded what, when, and whether all of it is there."""
    header = capture.header
    made: dict[str, Any] = {
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
        made["exit"] = {"code": capture.exit.code, "signal": capture.exit.signal, "error": capture.exit.error or None}
    return made


def summary_object(transcript: Transcript, *, live: bool) -> dict[str, Any]:
    """The summary in numbers."""
    found = outcomes(transcript)
    counts = {outcome.value.replace(" ", "_"): found[outcome] for outcome in Outcome}
    complete = all(one.complete for one in transcript.captures)
    models = {"model_calls": len(transcript.model_calls)} if any(one.is_model for one in transcript.captures) else {}
    return {
        "calls": found.total(),
        **counts,
        **models,
        "findings": len(transcript.findings),
        "complete": complete,
        "live": live,
    }


def row_object(row: Row, captures: list[CaptureInfo], *, whole: bool = False) -> dict[str, Any]:
    """One row. `whole` puts in its messages with all they say."""
    match row:
        case Exchange():
            capture = captures[row.capture]
            return _exchange(row, capture, whole=whole) | call_object(row, capture) | _transactions(row, captures)
        case UnpairedMessage():
            made = _message(row.message, captures[row.capture], row.message.method or "", whole=whole)
            if row.message.kind is Kind.MALFORMED:
                made |= payload(row.message.raw)
            where = {"row": row.row, "capture": row.capture, "at_ns": row.at_ns}
            call = call_object(row, captures[row.capture])
            return {"kind": "unpaired", **where, "message": made, **call, **_transactions(row, captures)}
        case Transaction():
            where = {"row": row.row, "capture": row.capture, "at_ns": row.at_ns}
            return {"kind": "transaction", **where, "duration_ns": row.duration_ns, **transaction_object(row)}
        case ModelCall():
            return model_call_object(row, captures[row.capture], whole=whole)
        case Log():
            text = payload(row.raw.removesuffix(b"\n"))
            return {"kind": "stderr", "capture": row.capture, "at_ns": row.at_ns, "record": row.number, **text}
        case ChannelEvent():
            facts = _facts(row.record)
            return {"kind": "event", "capture": row.capture, "at_ns": row.at_ns, "record": row.record.number, **facts}


def _transactions(row: Exchange | UnpairedMessage, captures: list[CaptureInfo]) -> dict[str, Any]:
    """Over HTTP: what carried a row, and who says so."""
    capture = captures[row.capture]
    if not capture.transactions:
        return {}
    return {"client": capture.client_of(row), "transactions": [transaction_object(one) for one in capture.transactions_of(row)]}


def _exchange(row: Exchange, capture: CaptureInfo, *, whole: bool) -> dict[str, Any]:
    made: dict[str, Any] = {
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
    if row.response is not None and row.response.result_type is not None:
        made["result_type"] = row.response.result_type
    made |= _failure(row)
    made["progress"] = row.progress
    made["request"] = _message(row.request, capture, row.method, whole=whole)
    made["response"] = None if row.response is None else _message(row.response, capture, row.method, whole=whole)
    notifications = row.notifications if whole else [one for one in row.notifications if one.method != PROGRESS]
    made["notifications"] = [_message(one, capture, row.method, whole=whole) for one in notifications]
    if row.partials:
        made["partials"] = [_message(one, capture, row.method, whole=whole) for one in row.partials]
    if row.more_responses:
        made["more_responses"] = [_message(one, capture, row.method, whole=whole) for one in row.more_responses]
    return made


def _failure(row: Exchange) -> dict[str, Any]:
    """What the error or the failed tool says."""
    if row.response is None:
        return {}
    if row.response.kind is Kind.ERROR:
        error = row.response.error
        return (
            {"error": {name: error[name] for name in ("code", "message") if name in error}} if isinstance(error, dict) else {}
        )
    if row.response.is_error:
        content = row.response.result.get("content") if isinstance(row.response.result, dict) else None
        texts = [one.get("text") for one in content if isinstance(one, dict)] if isinstance(content, list) else []
        return {"error": {"message": next((one for one in texts if isinstance(one, str)), None)}}
    return {}


def _message(message: Message, capture: CaptureInfo, method: str, *, whole: bool) -> dict[str, Any]:
    """A message of an exchange of `method`."""
    if whole:
        about = content_facts(message, method)
        return message_object(message, capture) | ({"about": about} if about else {})
    made: dict[str, Any] = {
        "record": message.number,
        "at_ns": message.at_ns,
        "first_ns": message.first_ns,
        "bytes": message.size,
    }
    if message.kind not in (Kind.REQUEST, Kind.RESULT, Kind.ERROR):
        made |= {"kind": message.kind.value, "from": message.sender, "method": message.method, "revision": message.revision}
    if message.flaws:
        made["flaws"] = message.flaws
    return made


def _facts(record: Record) -> dict[str, Any]:
    """What a record says, under the names of its fields; bytes as text or base64."""
    facts: dict[str, Any] = {"event": type(record).__name__.lower()}
    fields = {name: getattr(record, name) for name in type(record).__slots__}
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
    """The member `call` of a row; nothing for one that is an exchange and no more."""
    call = capture.calls.get(row.row)
    if call is None:
        return {}
    made: dict[str, Any] = {"row": call.row}
    if isinstance(row, Exchange):
        made["part"] = call.part(row).value
        if count := call.count(row):
            made["number"] = count
    else:
        made["part"] = "notification"
    return {"call": {**made, **_whole_call(call)} if row is call.first else made}


def _whole_call(call: Call) -> dict[str, Any]:
    made: dict[str, Any] = {
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
        made["task"] = _task(call.task)
    if call.elicitations:
        made["elicitations"] = {"asked": call.elicitations, "completed": call.completed_elicitations}
    return made


def _task(task: Task) -> dict[str, Any]:
    made: dict[str, Any] = {"id": task.id, "status": task.status or None, "ttl_ms": task.ttl_ms}
    made["poll_interval_ms"] = task.poll_interval_ms
    return made | ({"cancelled": True} if task.cancelled else {})


def course_object(course: Lifecycle) -> dict[str, Any]:
    """Members for a capture: empty where no tap started the server."""
    start_up = course.start_up
    if start_up is None:
        return {}
    phases = [
        {
            "phase": one.name.value,
            "at_ns": one.begin_ns,
            "end_ns": one.end_ns,
            "duration_ns": one.duration_ns,
            "requests": one.exchanges,
        }
        for one in course.phases
    ]
    return {"start_up": {**asdict(start_up), "took_ns": start_up.took_ns}, "phases": phases}


def quote_object(quote: LogMatch | None) -> dict[str, Any]:
    """Members for a line of stderr: empty where it quotes nothing."""
    if quote is None:
        return {}
    message = quote.message
    said = {
        "row": quote.row,
        "record": message.number,
        "kind": message.kind.value,
        "from": message.sender,
        "gap_ns": quote.gap_ns,
    }
    return {"log_matches": said}


def finding_object(finding: Finding) -> dict[str, Any]:
    """A finding, with all it says."""
    return {
        "rule": finding.rule,
        "severity": finding.severity.value,
        "capture": finding.capture,
        "record": finding.number,
        "row": finding.row,
        "at_ns": finding.at_ns,
        "count": finding.count,
        "what": finding.what,
        "culprit": finding.culprit,
        "blame": finding.blame,
        "advice": finding.advice,
    }
