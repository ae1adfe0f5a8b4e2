"""Model calls as JSON objects: rows of `show --json`, tool round trips and agent runs. docs/json.md describes every field.

Texts are as they were captured; `whole` adds every turn of the prompt and of the answer.
"""

import json
from typing import Any, Final

from ...transcript.llm.agent_runs import AgentRun, agent_runs
from ...transcript.llm.model_call import ModelCall
from ...transcript.llm.prompt import Answer, Prompt, ToolOffer, ToolReturn, ToolUse, Turn, Usage
from ...transcript.llm.tool_trips import ToolTrip, tool_trips
from ...transcript.model import CaptureInfo, Transcript
from ..text.json_text import RawJson
from .transactions import transaction_object

ASKED_LETTERS: Final = 200
"""The letters of a user's text that an agent run holds; the row holds all of it."""


def model_call_object(row: ModelCall, capture: CaptureInfo, *, whole: bool = False) -> dict[str, Any]:
    """Return a model call as a row."""
    prompt, answer = row.prompt, row.answer
    members: dict[str, Any] = {
        "kind": "model_call",
        "row": row.row,
        "capture": row.capture,
        "at_ns": row.at_ns,
        "duration_ns": row.duration_ns,
        "until_first_ns": row.until_first_ns,
        "client": capture.client_of(row),
        "method": row.method,
        "target": row.target,
        "outcome": row.outcome.value,
        "before": row.before or None,
        "turns": len(prompt.turns),
        "added": row.added,
        "offers": len(prompt.offers),
        "request_bytes": len(row.payload),
        "answer": None if answer is None else _answer(answer, whole=whole),
    }
    if whole:
        members["prompt"] = _prompt(prompt)
    return {**members, "transactions": [transaction_object(row.transaction, capture)]}


def llm_objects(transcript: Transcript) -> dict[str, Any]:
    """Return the tool round trips and the agent runs of a transcript; empty where no model was recorded."""
    if not transcript.model_calls:
        return {}
    trips = tool_trips(transcript)
    return {
        "tool_trips": [tool_trip_object(trip) for trip in trips],
        "runs": [run_object(run) for run in agent_runs(transcript, trips)],
    }


def tool_trip_object(tool_trip: ToolTrip) -> dict[str, Any]:
    """Return a tool use with the rows that it was matched with."""
    returned = tool_trip.returned
    return {
        "row": tool_trip.used_in.row,
        "id": tool_trip.use.id or None,
        "tool": tool_trip.use.name,
        "call_row": None if tool_trip.call is None else tool_trip.call.row,
        "joined_by": tool_trip.joined_by or None,
        "candidates": tool_trip.candidates,
        "returned_row": None if tool_trip.returned_in is None else tool_trip.returned_in.row,
        "returned_by": tool_trip.returned_by or None,
        "returned_id": None if returned is None else returned.id or None,
        "is_error": None if returned is None else returned.is_error,
    }


def run_object(run: AgentRun) -> dict[str, Any]:
    """Return an agent run: the user's text, the rows of its model calls, and the time of model, server and client."""
    return {
        "asked": run.user_text[:ASKED_LETTERS],
        "rows": [call.row for call in run.calls],
        "at_ns": run.began_ns,
        "duration_ns": run.took_ns,
        "model_ns": run.model_ns,
        "server_ns": run.server_ns,
        "client_ns": run.client_ns,
        "uses": len(run.tool_trips),
        "whole": run.is_whole,
    }


def usage_object(usage: Usage) -> dict[str, Any]:
    """Return the tokens as the API counted them."""
    return {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cached_tokens": usage.cached_tokens,
        "reasoning_tokens": usage.reasoning_tokens,
    }


def _prompt(prompt: Prompt) -> dict[str, Any]:
    members: dict[str, Any] = {
        "turns": [_turn(turn) for turn in prompt.turns],
        "offers": [_offer(offer) for offer in prompt.offers],
        "is_streamed": prompt.is_streamed,
    }
    if prompt.continues:
        members["continues"] = prompt.continues
    if prompt.flaw:
        members["flaw"] = prompt.flaw
    return members


def _answer(answer: Answer, *, whole: bool) -> dict[str, Any]:
    members: dict[str, Any] = {
        "id": answer.id,
        "model": answer.model,
        "finish": answer.finish or None,
        "is_whole": answer.is_whole,
        "deltas": answer.deltas,
        "usage": usage_object(answer.usage),
        "uses": [_use(use) for use in answer.turn.uses],
    }
    if answer.error:
        members["error"] = answer.error
    if answer.flaws:
        members["flaws"] = list(answer.flaws)
    if whole:
        members["turn"] = _turn(answer.turn)
        members |= {"more": [_turn(turn) for turn in answer.more]} if answer.more else {}
    return members


def _turn(turn: Turn) -> dict[str, Any]:
    members: dict[str, Any] = {"role": turn.role, "text": turn.text}
    members |= {name: text for name in ("thinking", "refusal") if (text := getattr(turn, name))}
    if turn.uses:
        members["uses"] = [_use(use) for use in turn.uses]
    if turn.returns:
        members["returns"] = [_return(returned) for returned in turn.returns]
    return members


def _use(use: ToolUse) -> dict[str, Any]:
    members: dict[str, Any] = {"id": use.id or None, "name": use.name, "arguments": use.arguments}
    members |= {"at_ns": use.at_ns} if use.at_ns else {}
    return members | _marks(use)


def _return(returned: ToolReturn) -> dict[str, Any]:
    members: dict[str, Any] = {"id": returned.id or None, "text": returned.text, "is_error": returned.is_error}
    members |= {"name": returned.name} if returned.name else {}
    return members | _marks(returned)


def _offer(offer: ToolOffer) -> dict[str, Any]:
    members: dict[str, Any] = {"name": offer.name, "description": offer.description, "bytes": offer.bytes}
    try:
        members["schema"] = RawJson(json.dumps(offer.schema))  # as_json would recurse in Python, and fail on a deep schema
    except (ValueError, RecursionError):
        members["schema"] = None
    return members | _marks(offer)


def _marks(item: ToolUse | ToolReturn | ToolOffer) -> dict[str, bool]:
    return {name: True for name in ("from_text", "is_hosted") if getattr(item, name)}
