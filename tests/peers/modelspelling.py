"""How three APIs spell what a model says: chat completions and responses (OpenAI), messages (Anthropic), whole and in deltas.

What was said comes in as `Said`; what comes out is the JSON of a body, or the events of a stream: a name (empty where the API
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
class Said:
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
        """How many tokens there were: `input`, `output`, `cached` or `reasoning`."""
        return int(self.usage.get(name, 0))


def cut(text: str, pieces: int) -> Iterator[str]:
    """The text in deltas. Each is a whole text, unless it holds surrogates: those are cut where they stand."""
    return (text[at : at + pieces] for at in range(0, len(text), pieces))


# chat completions


def chat_usage(said: Said) -> Json:
    """Tokens as chat completions count them: cached ones are among the input."""
    asked, answered = said.count("input"), said.count("output")
    return {
        "prompt_tokens": asked,
        "completion_tokens": answered,
        "total_tokens": asked + answered,
        "prompt_tokens_details": {"cached_tokens": said.count("cached"), "audio_tokens": 0},
        "completion_tokens_details": {
            "reasoning_tokens": said.count("reasoning"),
            "audio_tokens": 0,
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
    }


def chat_finish(said: Said) -> str:
    """Why it ended."""
    return said.finish or ("tool_calls" if said.uses else "stop")


def chat_use(use: Json) -> Json:
    """A tool that the model wants."""
    return {"id": use["id"], "type": "function", "function": {"name": use["name"], "arguments": use["arguments"]}}


def chat_body(said: Said) -> Json:
    """An answer in one piece."""
    turn: Json = {"role": "assistant", "content": said.text or None, "refusal": None, "annotations": []}
    if said.uses:
        turn["tool_calls"] = [chat_use(use) for use in said.uses]
    choice = {"index": 0, "message": turn, "logprobs": None, "finish_reason": chat_finish(said)}
    return {**chat_head(said, "chat.completion"), "choices": [choice], "usage": chat_usage(said), **CHAT_TAIL}


CHAT_TAIL = {"service_tier": "default", "system_fingerprint": "fp_7a53abb7a2"}


def chat_head(said: Said, kind: str) -> Json:
    """What a body and each of its deltas begin with."""
    return {"id": said.id, "object": kind, "created": said.created, "model": said.model}


def chat_deltas(said: Said) -> Iterator[Json]:
    """What the model says, in deltas."""
    yield {"role": "assistant", "content": None if said.uses and not said.text else "", "refusal": None}
    for text in cut(said.text, said.pieces):
        yield {"content": text}
    for index, use in enumerate(said.uses):
        head = chat_use({**use, "arguments": ""})
        yield {"tool_calls": [{"index": index, **head}]}
        for text in cut(use["arguments"], said.pieces):
            yield {"tool_calls": [{"index": index, "function": {"arguments": text}}]}


def chat_events(said: Said) -> Iterator[Event]:
    """An answer in deltas; the tokens are counted only for who asked."""
    counted = bool((said.ask.get("stream_options") or {}).get("include_usage"))
    head = {**chat_head(said, "chat.completion.chunk"), **CHAT_TAIL}
    tail: Json = {"usage": None} if counted else {}
    for delta in chat_deltas(said):
        yield "", {**head, "choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": None}], **tail}
    last = {"index": 0, "delta": {}, "logprobs": None, "finish_reason": chat_finish(said)}
    yield "", {**head, "choices": [last], **tail}
    if counted:
        yield "", {**head, "choices": [], "usage": chat_usage(said)}
    yield DONE


# responses


def response_items(said: Said) -> list[Json]:
    """The output, item by item."""
    items: list[Json] = []
    if said.thinking:
        summary = [{"type": "summary_text", "text": said.thinking}]
        items.append({"id": f"rs_{said.number:04}", "type": "reasoning", "summary": summary})
    if said.text:
        items.append(response_message(f"msg_{said.number:04}", "completed", [response_part(said.text)]))
    for index, use in enumerate(said.uses):
        items.append(response_use(f"fc_{said.number:04}{index}", "completed", use))
    return items


def response_message(name: str, status: str, parts: list[Json]) -> Json:
    """An item of text."""
    return {"id": name, "type": "message", "status": status, "content": parts, "role": "assistant"}


def response_part(text: str) -> Json:
    """A part of an item of text."""
    return {"type": "output_text", "annotations": [], "logprobs": [], "text": text}


def response_use(name: str, status: str, use: Json) -> Json:
    """An item that wants a tool; `call_id` is what the client answers by."""
    return {
        "id": name,
        "type": "function_call",
        "status": status,
        "arguments": use["arguments"],
        "call_id": use["id"],
        "name": use["name"],
    }


def response_usage(said: Said) -> Json:
    """Tokens as responses count them: cached ones are among the input."""
    asked, answered = said.count("input"), said.count("output")
    return {
        "input_tokens": asked,
        "input_tokens_details": {"cached_tokens": said.count("cached"), "cache_write_tokens": 0},
        "output_tokens": answered,
        "output_tokens_details": {"reasoning_tokens": said.count("reasoning")},
        "total_tokens": asked + answered,
    }


def response(said: Said, status: str, output: list[Json], usage: Json | None) -> Json:
    """A response as it stands; it repeats what it was asked with."""
    ask = said.ask
    return {
        "id": said.id,
        "object": "response",
        "created_at": said.created,
        "status": status,
        "background": False,
        "error": None,
        "incomplete_details": None,
        "instructions": ask.get("instructions"),
        "max_output_tokens": ask.get("max_output_tokens"),
        "model": said.model,
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


def response_body(said: Said) -> Json:
    """An answer in one piece."""
    return response(said, "completed", response_items(said), response_usage(said))


def response_events(said: Said) -> Iterator[Event]:
    """An answer in deltas: each event has its type twice and a number; there is no `[DONE]`."""
    for number, data in enumerate(response_deltas(said)):
        yield data["type"], {"type": data["type"], "sequence_number": number, **data}


def response_deltas(said: Said) -> Iterator[Json]:
    """What happens, from the beginning to the end."""
    for kind in ("created", "in_progress"):
        yield {"type": f"response.{kind}", "response": response(said, "in_progress", [], None)}
    for index, item in enumerate(response_items(said)):
        at = {"item_id": item["id"], "output_index": index}
        status = {"status": "in_progress"} if "status" in item else {}
        yield {"type": "response.output_item.added", "output_index": index, "item": {**item, **EMPTY[item["type"]], **status}}
        yield from PARTS[item["type"]](said, item, at)
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
    yield {"type": "response.completed", "response": response_body(said)}


EMPTY: dict[str, Json] = {"reasoning": {"summary": []}, "message": {"content": []}, "function_call": {"arguments": ""}}


def response_reasoning(said: Said, item: Json, at: Json) -> Iterator[Json]:
    """The deltas of an item of reasoning."""
    at, kind = {**at, "summary_index": 0}, "response.reasoning_summary"
    yield {"type": f"{kind}_part.added", **at, "part": {"type": "summary_text", "text": ""}}
    for text in cut(said.thinking, said.pieces):
        yield {"type": f"{kind}_text.delta", **at, "delta": text}
    yield {"type": f"{kind}_text.done", **at, "text": said.thinking}
    yield {"type": f"{kind}_part.done", **at, "part": item["summary"][0]}


def response_text(said: Said, item: Json, at: Json) -> Iterator[Json]:
    """The deltas of an item of text."""
    at = {**at, "content_index": 0}
    yield {"type": "response.content_part.added", **at, "part": response_part("")}
    for text in cut(said.text, said.pieces):
        yield {"type": "response.output_text.delta", **at, "delta": text, "logprobs": []}
    yield {"type": "response.output_text.done", **at, "text": said.text, "logprobs": []}
    yield {"type": "response.content_part.done", **at, "part": item["content"][0]}


def response_arguments(said: Said, item: Json, at: Json) -> Iterator[Json]:
    """The deltas of an item that wants a tool."""
    for text in cut(item["arguments"], said.pieces):
        yield {"type": "response.function_call_arguments.delta", **at, "delta": text}
    yield {"type": "response.function_call_arguments.done", **at, "arguments": item["arguments"], "name": item["name"]}


PARTS = {"reasoning": response_reasoning, "message": response_text, "function_call": response_arguments}


# messages


def message_usage(said: Said) -> Json:
    """Tokens as messages count them: those read from the cache stand beside the input."""
    cached = said.count("cached")
    return {
        "input_tokens": said.count("input") - cached,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": cached,
        "output_tokens": said.count("output"),
        "service_tier": "standard",
    }


def message_finish(said: Said) -> str:
    """Why it ended."""
    return said.finish or ("tool_use" if said.uses else "end_turn")


def message_blocks(said: Said) -> list[Json]:
    """The content, block by block; what a tool is given is JSON here, and no text."""
    blocks: list[Json] = []
    if said.thinking:
        blocks.append({"type": "thinking", "thinking": said.thinking, "signature": "c2lnbmVk"})
    if said.text:
        blocks.append({"type": "text", "text": said.text})
    return blocks + [
        {"type": "tool_use", "id": use["id"], "name": use["name"], "input": json.loads(use["arguments"])} for use in said.uses
    ]


def message(said: Said, blocks: list[Json], finish: str | None, usage: Json) -> Json:
    """A message as it stands."""
    head = {"id": said.id, "type": "message", "role": "assistant", "model": said.model}
    return {**head, "content": blocks, "stop_reason": finish, "stop_sequence": None, "usage": usage}


def message_body(said: Said) -> Json:
    """An answer in one piece."""
    return message(said, message_blocks(said), message_finish(said), message_usage(said))


def message_events(said: Said) -> Iterator[Event]:
    """An answer in deltas; a `ping` follows the first block's beginning, as the API sends it."""
    for data in message_deltas(said):
        yield data["type"], data


def message_deltas(said: Said) -> Iterator[Json]:
    """What happens, from the beginning to the end."""
    yield {"type": "message_start", "message": message(said, [], None, {**message_usage(said), "output_tokens": 1})}
    written = [use["arguments"] for use in said.uses]
    for index, block in enumerate(message_blocks(said)):
        yield {"type": "content_block_start", "index": index, "content_block": {**block, **BEGUN[block["type"]]}}
        if not index:
            yield {"type": "ping"}
        arguments = written.pop(0) if block["type"] == "tool_use" else ""
        for delta in block_deltas(block, arguments, said.pieces):
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    usage = {"output_tokens": said.count("output")}
    yield {"type": "message_delta", "delta": {"stop_reason": message_finish(said), "stop_sequence": None}, "usage": usage}
    yield {"type": "message_stop"}


BEGUN: dict[str, Json] = {"thinking": {"thinking": "", "signature": ""}, "text": {"text": ""}, "tool_use": {"input": {}}}


def block_deltas(block: Json, arguments: str, pieces: int) -> Iterator[Json]:
    """The deltas of a block."""
    if block["type"] == "tool_use":
        yield {"type": "input_json_delta", "partial_json": ""}
        yield from ({"type": "input_json_delta", "partial_json": text} for text in cut(arguments, pieces))
        return
    kind = block["type"]
    yield from ({"type": f"{kind}_delta", kind: text} for text in cut(block[kind], pieces))
    if kind == "thinking":
        yield {"type": "signature_delta", "signature": block["signature"]}
