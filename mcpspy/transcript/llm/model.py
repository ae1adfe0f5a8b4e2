"""What a language model was asked and what it said: prompts, answers, turns, offers, tool uses. The nouns of the model's leg.

One set of nouns for three APIs: chat completions and responses (OpenAI), messages (Anthropic). Refuses to know how each spells them
(`chat`, `responses`, `messages`), when it passed (`model_call`), and what became of a tool use at an MCP server (`tool_trips`).
"""

from __future__ import annotations

import json
from typing import Any, Literal, TypeAlias

import msgspec

Api: TypeAlias = Literal["chat", "responses", "messages"]


class ToolUse(msgspec.Struct, frozen=True, kw_only=True):
    """A tool that the model wants called: `tool_calls` of chat completions, `function_call` of responses, `tool_use` of messages.

    `arguments` is the JSON text as the model wrote it, put together from deltas; it need not be valid.
    """

    id: str = ""
    """Empty where the API gave none."""
    name: str = ""
    arguments: str = ""
    at_ns: int = 0
    """When the last byte of it was read, on the transcript's clock; 0 for one that a prompt repeats."""
    from_text: bool = False
    """Whether it stood in the answer's text, as `<tool_call>{…}</tool_call>`, and not in a field of the API."""
    is_hosted: bool = False
    """Whether the API's own side runs it (a web search, an MCP server that it calls itself): no client is to call it."""


class ToolReturn(msgspec.Struct, frozen=True, kw_only=True):
    """What the client tells the model that came of a tool use: `role: tool`, `function_call_output`, `tool_result`."""

    id: str = ""
    """The id of the tool use that it answers; empty if it names none."""
    text: str = ""
    """Its text parts, joined by line feeds."""
    is_error: bool = False
    """As the API says it; chat completions have no word for it."""
    name: str = ""
    """The tool's name, where it is said."""
    from_text: bool = False
    """Whether it stood in the text of a turn, as `<tool_response>…</tool_response>`."""
    is_hosted: bool = False
    """Whether the API's own side ran it."""


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    """One message of a prompt, or of the answer: who speaks, the text, what tools are wanted, what they returned."""

    role: str
    """`system`, `developer`, `user`, `assistant` or `tool`; another word as it came."""
    text: str = ""
    """Its text parts, joined by line feeds. What is no text (an image, a file) is named: `[image/png, 1,234 bytes]`."""
    thinking: str = ""
    """What the model told of its reasoning, where the API gives it."""
    refusal: str = ""
    """What the model says instead of an answer, where the API keeps that apart."""
    uses: tuple[ToolUse, ...] = ()
    returns: tuple[ToolReturn, ...] = ()


class ToolOffer(msgspec.Struct, frozen=True, kw_only=True):
    """A tool that the prompt offers to the model."""

    name: str
    description: str = ""
    schema: Any = None
    """The JSON schema of its arguments, parsed; None where there is none."""
    bytes: int = 0
    """How long its definition is, as compact JSON in UTF-8."""
    from_text: bool = False
    """Whether it stood in the text of a turn, within `<tools>…</tools>`."""
    is_hosted: bool = False
    """Whether the API's own side would run it."""


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens as the API counted them; None where it did not say. `input_tokens` include those that were cached."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    """Of the input, those that were read from a cache."""
    reasoning_tokens: int | None = None
    """Of the output, those that were spent on reasoning."""


class Prompt(msgspec.Struct, frozen=True, kw_only=True):
    """What a model was asked: the whole conversation so far, as the client sent it."""

    model: str = ""
    turns: tuple[Turn, ...] = ()
    offers: tuple[ToolOffer, ...] = ()
    is_streamed: bool = False
    continues: str = ""
    """The id of the answer that this prompt continues without repeating it (`previous_response_id`)."""
    flaw: str = ""
    """Why the body could not be read, as a sentence; empty if it could."""


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What the model said, as far as it came."""

    id: str = ""
    model: str = ""
    """The model that answered, as it names itself."""
    turn: Turn = Turn(role="assistant")
    more: tuple[Turn, ...] = ()
    """The other choices, where several were asked for."""
    finish: str = ""
    """Why it ended, in the API's own word: `stop`, `tool_calls`, `end_turn`, `tool_use`, `length`, …; empty if it did not say."""
    usage: Usage = Usage()
    error: str = ""
    """What the API said went wrong: `rate_limit_error: Too many requests`."""
    is_whole: bool = False
    """Whether its end was read: a body of JSON, `[DONE]`, `message_stop`, `response.completed`."""
    deltas: int = 0
    """Events of its stream; 0 for plain JSON."""
    flaws: tuple[str, ...] = ()
    """What was wrong with its stream, a sentence each: an index that no delta opened, an event that is no JSON."""


def offer_text(offer: ToolOffer) -> bytes:
    """What a model is told of a tool, as JSON."""
    said = {"name": offer.name, "description": offer.description, "parameters": offer.schema}
    try:
        return json.dumps(said, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
    except (ValueError, RecursionError):
        return offer.description.encode("utf-8", "replace")
