"""Spelling of a model's answer in three APIs: chat completions and responses (OpenAI), messages (Anthropic), whole and in deltas.

A `ModelAnswer` comes in; what comes out is the JSON of a body, or the events of a stream: a name (empty where the API
has none) and JSON, or bare words such as `[DONE]`. It knows nothing of HTTP, and stands on the standard library alone.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]
Event = tuple[str, Any]
DONE: Event = ("", "[DONE]")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelAnswer:
    """One answer: text, thinking, tools wanted (`id`, `name`, `arguments` as JSON text) and what it cost.

    `pieces` are so many letters per delta. `ask` is the prompt, parsed, some of which responses repeat.
    """

    number: int
    id: str
    model: str
    created: int
    text: str = ""
    thinking: str = ""
    uses: Sequence[Json] = ()
    pieces: int = 8
    finish: str = ""
    usage: Json = field(default_factory=dict)
    ask: Json = field(default_factory=dict)

    def count(self, name: str) -> int:
        """Return the number of tokens: `input`, `output`, `cached` or `reasoning`."""
        return int(self.usage.get(name, 0))


def cut(text: str, pieces: int) -> Iterator[str]:
    """Cut the text into deltas. A pair of surrogates may be cut in half."""
    return (text[at : at + pieces] for at in range(0, len(text), pieces))


# chat completions


def chat_usage(reply: ModelAnswer) -> Json:
    """Count tokens as chat completions do: cached ones are part of the input."""
    prompted, answered = reply.count("input"), reply.count("output")
    return {
        "prompt_tokens": prompted,
        "completion_tokens": answered,
        "total_tokens": prompted + answered,
        "prompt_tokens_details": {"cached_tokens": reply.count("cached"), "audio_tokens": 0},
        "completion_tokens_details": {
            "reasoning_tokens": reply.count("reasoning"),
            "audio_tokens": 0,
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
    }


def chat_finish(reply: ModelAnswer) -> str:
    """Return the reason why the answer ended."""
    return reply.finish or ("tool_calls" if reply.uses else "stop")


def chat_use(use: Json) -> Json:
    """Write a tool use of the model."""
    return {"id": use["id"], "type": "function", "function": {"name": use["name"], "arguments": use["arguments"]}}


def chat_body(reply: ModelAnswer) -> Json:
    """Write an answer in one piece."""
    turn: Json = {"role": "assistant", "content": reply.text or None, "refusal": None, "annotations": []}
    if reply.uses:
        turn["tool_calls"] = [chat_use(use) for use in reply.uses]
    choice = {"index": 0, "message": turn, "logprobs": None, "finish_reason": chat_finish(reply)}
    return {**chat_head(reply, "chat.completion"), "choices": [choice], "usage": chat_usage(reply), **CHAT_TAIL}


CHAT_TAIL = {"service_tier": "default", "system_fingerprint": "fp_7a53abb7a2"}


def chat_head(reply: ModelAnswer, kind: str) -> Json:
    """Return the members that a body and each of its deltas begin with."""
    return {"id": reply.id, "object": kind, "created": reply.created, "model": reply.model}


def chat_deltas(reply: ModelAnswer) -> Iterator[Json]:
    """Yield the answer in deltas."""
    yield {"role": "assistant", "content": None if reply.uses and not reply.text else "", "refusal": None}
    for text in cut(reply.text, reply.pieces):
        yield {"content": text}
    for index, use in enumerate(reply.uses):
        head = chat_use({**use, "arguments": ""})
        yield {"tool_calls": [{"index": index, **head}]}
        for text in cut(use["arguments"], reply.pieces):
            yield {"tool_calls": [{"index": index, "function": {"arguments": text}}]}


def chat_events(reply: ModelAnswer) -> Iterator[Event]:
    """Yield an answer in deltas; the tokens are counted only if the request asks for it."""
    counted = bool((reply.ask.get("stream_options") or {}).get("include_usage"))
    head = {**chat_head(reply, "chat.completion.chunk"), **CHAT_TAIL}
    tail: Json = {"usage": None} if counted else {}
    for delta in chat_deltas(reply):
        yield "", {**head, "choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": None}], **tail}
    last = {"index": 0, "delta": {}, "logprobs": None, "finish_reason": chat_finish(reply)}
    yield "", {**head, "choices": [last], **tail}
    if counted:
        yield "", {**head, "choices": [], "usage": chat_usage(reply)}
    yield DONE


# responses


def response_items(reply: ModelAnswer) -> list[Json]:
    """List the items of the output."""
    items: list[Json] = []
    if reply.thinking:
        summary = [{"type": "summary_text", "text": reply.thinking}]
        items.append({"id": f"rs_{reply.number:04}", "type": "reasoning", "summary": summary})
    if reply.text:
        items.append(response_message(f"msg_{reply.number:04}", "completed", [response_part(reply.text)]))
    for index, use in enumerate(reply.uses):
        items.append(response_use(f"fc_{reply.number:04}{index}", "completed", use))
    return items


def response_message(name: str, status: str, parts: list[Json]) -> Json:
    """Write an item of text."""
    return {"id": name, "type": "message", "status": status, "content": parts, "role": "assistant"}


def response_part(text: str) -> Json:
    """Write a part of an item of text."""
    return {"type": "output_text", "annotations": [], "logprobs": [], "text": text}


def response_use(name: str, status: str, use: Json) -> Json:
    """Write an item with a tool use, with what the story adds to it; the client's answer names its `call_id`."""
    return {
        "id": name,
        "type": "function_call",
        "status": status,
        "arguments": use["arguments"],
        "call_id": use["id"],
        "name": use["name"],
        **use.get("item", {}),
    }


def response_usage(reply: ModelAnswer) -> Json:
    """Count tokens as responses do: cached ones are part of the input."""
    prompted, answered = reply.count("input"), reply.count("output")
    return {
        "input_tokens": prompted,
        "input_tokens_details": {"cached_tokens": reply.count("cached"), "cache_write_tokens": 0},
        "output_tokens": answered,
        "output_tokens_details": {"reasoning_tokens": reply.count("reasoning")},
        "total_tokens": prompted + answered,
    }


def response(reply: ModelAnswer, status: str, output: list[Json], usage: Json | None) -> Json:
    """Write a response in its present state; it repeats the parameters of the request."""
    ask = reply.ask
    return {
        "id": reply.id,
        "object": "response",
        "created_at": reply.created,
        "status": status,
        "background": False,
        "error": None,
        "incomplete_details": None,
        "instructions": ask.get("instructions"),
        "max_output_tokens": ask.get("max_output_tokens"),
        "model": reply.model,
        "output": output,
        "parallel_tool_calls": ask.get("parallel_tool_calls", True),
        "previous_response_id": ask.get("previous_response_id"),
        "reasoning": {"effort": None, "summary": None},
        "store": ask.get("store", True),
        "temperature": ask.get("temperature", 1.0),
        "text": {"format": {"type": "text"}},
        "tool_choice": ask.get("tool_choice", "auto"),
        "tools": ask.get("tools", []),
        "top_p": ask.get("top_p", 1.0),
        "truncation": "disabled",
        "usage": usage,
        "user": ask.get("user"),
        "metadata": ask.get("metadata") or {},
    }


def response_body(reply: ModelAnswer) -> Json:
    """Write an answer in one piece."""
    return response(reply, "completed", response_items(reply), response_usage(reply))


def response_events(reply: ModelAnswer) -> Iterator[Event]:
    """Yield an answer in deltas: each event has its type twice and a number; there is no `[DONE]`."""
    for number, data in enumerate(response_deltas(reply)):
        yield data["type"], {"type": data["type"], "sequence_number": number, **data}


def response_deltas(reply: ModelAnswer) -> Iterator[Json]:
    """Yield the events of an answer, from the first to the last."""
    for kind in ("created", "in_progress"):
        yield {"type": f"response.{kind}", "response": response(reply, "in_progress", [], None)}
    for index, item in enumerate(response_items(reply)):
        at = {"item_id": item["id"], "output_index": index}
        status = {"status": "in_progress"} if "status" in item else {}
        yield {
            "type": "response.output_item.added",
            "output_index": index,
            "item": {**item, **EMPTY.get(item["type"], {}), **status},
        }
        if item["type"] in PARTS:
            yield from PARTS[item["type"]](reply, item, at)
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
    yield {"type": "response.completed", "response": response_body(reply)}


EMPTY: dict[str, Json] = {"reasoning": {"summary": []}, "message": {"content": []}, "function_call": {"arguments": ""}}


def response_reasoning(reply: ModelAnswer, item: Json, at: Json) -> Iterator[Json]:
    """Yield the deltas of an item of reasoning."""
    at, kind = {**at, "summary_index": 0}, "response.reasoning_summary"
    yield {"type": f"{kind}_part.added", **at, "part": {"type": "summary_text", "text": ""}}
    for text in cut(reply.thinking, reply.pieces):
        yield {"type": f"{kind}_text.delta", **at, "delta": text}
    yield {"type": f"{kind}_text.done", **at, "text": reply.thinking}
    yield {"type": f"{kind}_part.done", **at, "part": item["summary"][0]}


def response_text(reply: ModelAnswer, item: Json, at: Json) -> Iterator[Json]:
    """Yield the deltas of an item of text."""
    at = {**at, "content_index": 0}
    yield {"type": "response.content_part.added", **at, "part": response_part("")}
    for text in cut(reply.text, reply.pieces):
        yield {"type": "response.output_text.delta", **at, "delta": text, "logprobs": []}
    yield {"type": "response.output_text.done", **at, "text": reply.text, "logprobs": []}
    yield {"type": "response.content_part.done", **at, "part": item["content"][0]}


def response_arguments(reply: ModelAnswer, item: Json, at: Json) -> Iterator[Json]:
    """Yield the deltas of an item with a tool use."""
    for text in cut(item["arguments"], reply.pieces):
        yield {"type": "response.function_call_arguments.delta", **at, "delta": text}
    yield {"type": "response.function_call_arguments.done", **at, "arguments": item["arguments"], "name": item["name"]}


PARTS = {"reasoning": response_reasoning, "message": response_text, "function_call": response_arguments}


# messages


def message_usage(reply: ModelAnswer) -> Json:
    """Count tokens as messages do: those read from the cache are not part of the input."""
    cached = reply.count("cached")
    return {
        "input_tokens": reply.count("input") - cached,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": cached,
        "output_tokens": reply.count("output"),
        "service_tier": "standard",
    }


def message_finish(reply: ModelAnswer) -> str:
    """Return the reason why the answer ended."""
    return reply.finish or ("tool_use" if reply.uses else "end_turn")


def message_blocks(reply: ModelAnswer) -> list[Json]:
    """List the blocks of the content; the arguments of a tool are JSON here, not text."""
    blocks: list[Json] = []
    if reply.thinking:
        blocks.append({"type": "thinking", "thinking": reply.thinking, "signature": "c2lnbmVk"})
    if reply.text:
        blocks.append({"type": "text", "text": reply.text})
    return blocks + [
        {"type": "tool_use", "id": use["id"], "name": use["name"], "input": json.loads(use["arguments"])} for use in reply.uses
    ]


def message(reply: ModelAnswer, blocks: list[Json], finish: str | None, usage: Json) -> Json:
    """Write a message in its present state."""
    head = {"id": reply.id, "type": "message", "role": "assistant", "model": reply.model}
    return {**head, "content": blocks, "stop_reason": finish, "stop_sequence": None, "usage": usage}


def message_body(reply: ModelAnswer) -> Json:
    """Write an answer in one piece."""
    return message(reply, message_blocks(reply), message_finish(reply), message_usage(reply))


def message_events(reply: ModelAnswer) -> Iterator[Event]:
    """Yield an answer in deltas; a `ping` follows the first block's beginning, as the API sends it."""
    for data in message_deltas(reply):
        yield data["type"], data


def message_deltas(reply: ModelAnswer) -> Iterator[Json]:
    """Yield the events of an answer, from the first to the last."""
    yield {"type": "message_start", "message": message(reply, [], None, {**message_usage(reply), "output_tokens": 1})}
    written = [use["arguments"] for use in reply.uses]
    for index, block in enumerate(message_blocks(reply)):
        yield {"type": "content_block_start", "index": index, "content_block": {**block, **BEGUN[block["type"]]}}
        if not index:
            yield {"type": "ping"}
        arguments = written.pop(0) if block["type"] == "tool_use" else ""
        for delta in block_deltas(block, arguments, reply.pieces):
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    usage = {"output_tokens": reply.count("output")}
    yield {"type": "message_delta", "delta": {"stop_reason": message_finish(reply), "stop_sequence": None}, "usage": usage}
    yield {"type": "message_stop"}


BEGUN: dict[str, Json] = {"thinking": {"thinking": "", "signature": ""}, "text": {"text": ""}, "tool_use": {"input": {}}}


def block_deltas(block: Json, arguments: str, pieces: int) -> Iterator[Json]:
    """Yield the deltas of a block."""
    if block["type"] == "tool_use":
        yield {"type": "input_json_delta", "partial_json": ""}
        yield from ({"type": "input_json_delta", "partial_json": text} for text in cut(arguments, pieces))
        return
    kind = block["type"]
    yield from ({"type": f"{kind}_delta", kind: text} for text in cut(block[kind], pieces))
    if kind == "thinking":
        yield {"type": "signature_delta", "signature": block["signature"]}
