"""The numbers of `show --stats --json`: one object, whose fields docs/json.md describes."""

from dataclasses import asdict
from typing import Any

from ...transcript.llm.statistics import ModelNumbers, ToolNumbers, leg_numbers
from ...transcript.model import Numbered, Outcome, Row, Transcript
from ...transcript.stats.cost import ServerCost
from ...transcript.stats.statistics import CallNumbers, Latency, ServerNumbers, numbers
from ..text.json_text import SCHEMA, as_json
from .llm import run_object
from .rows import capture_object, course_object, summary_object


def statistics_json(transcript: Transcript, rows: list[Row] | None = None, *, live: bool) -> str:
    """The text of the object, one server per line; `rows` are those to be counted, all where that is None."""
    head = as_json({"schema": SCHEMA, "summary": summary_object(transcript, live=live)})[:-1]
    servers = ",\n".join(as_json(_server(one)) for one in numbers(transcript, rows) if not one.capture_info.is_model)
    return f'{head},"servers":[\n{servers}]{_leg(transcript, rows)}}}\n'


def _leg(transcript: Transcript, rows: list[Row] | None) -> str:
    """What a model's leg adds: nothing where there is none."""
    if not transcript.model_calls:
        return ""
    chosen = None if rows is None else {one.row for one in rows if isinstance(one, Numbered)}
    found = leg_numbers(transcript, chosen)
    lists = {
        "models": [_model(one) for one in found.models],
        "tools": [_tool(one) for one in found.tools],
        "runs": [run_object(one) for one in found.runs],
    }
    return "".join(f',\n"{name}":{as_json(value)}' for name, value in lists.items())


def _model(one: ModelNumbers) -> dict[str, Any]:
    made = asdict(one)
    del made["outcomes"]
    counts = {outcome.value.replace(" ", "_"): one.outcomes.get(outcome, 0) for outcome in Outcome}
    return {"count": one.calls, "failed": one.failed, **counts, **made}


def _tool(one: ToolNumbers) -> dict[str, Any]:
    made = asdict(one)
    return {"tool": made.pop("name"), **made}


def _server(one: ServerNumbers) -> dict[str, Any]:
    made = capture_object(one.capture_info)
    del made["messages"]
    made |= {
        **course_object(one.lifecycle),
        "calls": [_calls(calls) for calls in one.calls],
        "requests": [_calls(calls) for calls in one.requests],
        "notifications": [
            {"from": told.sender, "method": told.method, "count": told.count, "bytes": told.bytes} for told in one.notifications
        ],
        "by_client": [
            {"client": each.name, "count": each.calls, "failed": each.failed, "latency": _latency(each.latency)}
            for each in one.clients
        ],
        "messages": one.messages,
        "client_bytes": one.sent_bytes["client"],
        "server_bytes": one.sent_bytes["server"],
        "unmatched": one.unmatched,
        "malformed": one.malformed,
        "stderr_lines": one.log_lines,
        "stderr_bytes": one.log_bytes,
        "context": _context(one.cost),
    }
    if one.http is not None:
        made["http"] = {**asdict(one.http), "statuses": {str(status): count for status, count in one.http.statuses.items()}}
    return made


def _calls(one: CallNumbers) -> dict[str, Any]:
    made: dict[str, Any] = {"method": one.method}
    if one.target is not None:
        made["target"] = one.target
    made |= {
        "count": one.count,
        "failed": one.failed,
        **{outcome.value.replace(" ", "_"): one.outcomes.get(outcome, 0) for outcome in Outcome},
        "codes": one.codes,
        "latency": _latency(one.latency),
        "exchanges": one.exchanges,
        "wire": _latency(one.wire),
        "request_bytes": one.request_bytes,
        "response_bytes": one.response_bytes,
        "progress": one.progress,
        "more_responses": one.repeated,
    }
    if one.tokens is not None:
        made["tokens"] = one.tokens
    if one.parts:
        made["targets"] = [_calls(part) for part in one.parts]
    return made


def _latency(took: Latency | None) -> dict[str, int] | None:
    return None if took is None else asdict(took)


def _context(cost: ServerCost) -> dict[str, Any]:
    """What the server takes of a model's context."""
    return {
        "listed": cost.listed,
        "definition_bytes": cost.definition_bytes,
        "definition_tokens": cost.definition_tokens,
        "instructions_bytes": cost.instructions_bytes,
        "instructions_tokens": cost.instructions_tokens,
        "result_bytes": cost.result_bytes,
        "result_tokens": cost.result_tokens,
        "tools": [
            {
                "tool": tool.name,
                "listed": tool.definition is not None,
                "definition_bytes": tool.definition_bytes,
                "definition_tokens": tool.definition_tokens,
                "count": tool.calls,
                "result_bytes": tool.result_bytes,
                "result_tokens": tool.result_tokens,
                "largest_row": tool.largest.row if tool.largest else None,
            }
            for tool in cost.tools
        ],
    }
