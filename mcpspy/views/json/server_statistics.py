"""The numbers of `show --stats --json`: one object, whose fields docs/json.md describes."""

from dataclasses import asdict
from typing import Any

from ...transcript.llm.usage import ModelNumbers, ToolNumbers, leg_numbers
from ...transcript.model import Numbered, Row, Transcript
from ...transcript.outcome import outcome_counts
from ...transcript.stats.context import ServerCost
from ...transcript.stats.statistics import CallNumbers, Latency, ServerNumbers, numbers, totals
from ..text.json_text import SCHEMA, as_json, with_lines
from .llm import run_object
from .rows import capture_object, lifecycle_object, summary_object


def statistics_json(transcript: Transcript, rows: list[Row] | None = None, *, live: bool) -> str:
    """Return the text of the object, one server per line. `rows` are the rows to count; None counts all."""
    all_servers = numbers(transcript, rows)
    total = totals(all_servers)
    head = {
        "schema": SCHEMA,
        "summary": summary_object(transcript, live=live),
        "totals": asdict(total) | {"latency": _latency(total.latency)},
    }
    servers = [_server(server) for server in all_servers if not server.capture_info.is_model]
    return with_lines(head, "servers", servers, _leg(transcript, rows))


def _leg(transcript: Transcript, rows: list[Row] | None) -> str:
    """Return the members about model API traffic; empty where there is none."""
    if not transcript.model_calls:
        return ""
    chosen = None if rows is None else {row.row for row in rows if isinstance(row, Numbered)}
    statistics = leg_numbers(transcript, chosen)
    lists = {
        "models": [_model(model) for model in statistics.models],
        "tools": [_tool(tool) for tool in statistics.tools],
        "runs": [run_object(run) for run in statistics.runs],
    }
    return "".join(f',\n"{name}":{as_json(value)}' for name, value in lists.items())


def _model(model: ModelNumbers) -> dict[str, Any]:
    members = asdict(model)
    del members["outcomes"]
    counts = outcome_counts(model.outcomes)
    return {"count": model.calls, "failed": model.failed, **counts, **members}


def _tool(tool: ToolNumbers) -> dict[str, Any]:
    members = asdict(tool)
    return {"tool": members.pop("name"), **members}


def _server(server: ServerNumbers) -> dict[str, Any]:
    members = capture_object(server.capture_info)
    del members["messages"]
    members |= {
        **lifecycle_object(server.lifecycle),
        "calls": [_calls(calls) for calls in server.calls],
        "requests": [_calls(calls) for calls in server.requests],
        "notifications": [
            {"from": each.sender, "method": each.method, "count": each.count, "bytes": each.bytes}
            for each in server.notifications
        ],
        "by_client": [
            {"client": client.name, "count": client.calls, "failed": client.failed, "latency": _latency(client.latency)}
            for client in server.clients
        ],
        "messages": server.messages,
        "client_bytes": server.sent_bytes["client"],
        "server_bytes": server.sent_bytes["server"],
        "unmatched": server.unmatched,
        "malformed": server.malformed,
        "stderr_lines": server.log_lines,
        "stderr_bytes": server.log_bytes,
        "context": _context(server.cost),
    }
    if server.forwarded is not None:
        members["forwarded"] = {
            "gateway": server.forwarded.gateway,
            "calls": server.forwarded.calls,
            "server": _latency(server.forwarded.server),
            "in_gateway": _latency(server.forwarded.in_gateway),
        }
    if server.http is not None:
        members["http"] = {
            **asdict(server.http),
            "statuses": {str(status): count for status, count in server.http.statuses.items()},
        }
    return members


def _calls(calls: CallNumbers) -> dict[str, Any]:
    members: dict[str, Any] = {"method": calls.method}
    if calls.target is not None:
        members["target"] = calls.target
    members |= {
        "count": calls.count,
        "failed": calls.failed,
        **outcome_counts(calls.outcomes),
        "codes": calls.codes,
        "latency": _latency(calls.latency),
        "exchanges": calls.exchanges,
        "wire": _latency(calls.exchange_latency),
        "request_bytes": calls.request_bytes,
        "response_bytes": calls.response_bytes,
        "progress": calls.progress,
        "more_responses": calls.more_responses,
    }
    if calls.tokens is not None:
        members["tokens"] = calls.tokens
    if calls.by_target:
        members["targets"] = [_calls(part) for part in calls.by_target]
    return members


def _latency(took: Latency | None) -> dict[str, int] | None:
    return None if took is None else asdict(took)


def _context(cost: ServerCost) -> dict[str, Any]:
    """Return the server's share of a model's context."""
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
