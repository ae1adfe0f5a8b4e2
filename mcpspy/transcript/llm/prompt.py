"""Data model of model API traffic: prompts, answers, turns, tool offers, tool uses and tool returns.

One set of types for three APIs: chat completions and responses (OpenAI), messages (Anthropic). How each API spells them is in `chat`,
`responses` and `messages`, a call with its times in `call`, and the path of a tool use to an MCP server in `tool_trips`.
"""

import json
from typing import Any, Literal, TypeAlias

import msgspec

Api: TypeAlias = Literal["chat", "responses", "messages"]


class ToolUse(msgspec.Struct, frozen=True, kw_only=True):
    """A tool that the model asks for: `tool_calls` of chat completions, `function_call` of responses, `tool_use` of messages.

    `arguments` is the JSON text as the model wrote it, put together from deltas; it need not be valid.
    """

    id: str = ""
    """Empty where the API gave none."""
    name: str = ""
    arguments: str = ""
    at_ns: int = 0
    """Time at which its last byte was read, on the transcript's clock; 0 for a use that a prompt repeats."""
    from_text: bool = False
    """True if it was written in the answer's text, as `<tool_call>{…}</tool_call>`, and not in a field of the API."""
    is_hosted: bool = False
    """True if the API itself runs it (a web search, an MCP server that it calls itself), so that no client has to."""


class ToolReturn(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a tool use as the client reports it to the model: `role: tool`, `function_call_output`, `tool_result`."""

    id: str = ""
    """The id of the tool use that it answers; empty if it names none."""
    text: str = ""
    """Its text parts, joined by line feeds."""
    is_error: bool = False
    """As the API marks it; chat completions cannot mark errors."""
    name: str = ""
    """The tool's name, where the API gives it."""
    from_text: bool = False
    """True if it was written in the text of a turn, as `<tool_response>…</tool_response>`."""
    is_hosted: bool = False
    """True if the API itself ran the tool."""


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    """One message of a prompt, or of the answer: its role, its text, the tools that it uses and the results that it returns."""

    role: str
    """`system`, `developer`, `user`, `assistant` or `tool`; any other word unchanged."""
    text: str = ""
    """Its text parts, joined by line feeds. Other parts (an image, a file) are named: `[image/png, 1,234 bytes]`."""
    thinking: str = ""
    """The model's reasoning, where the API gives it."""
    refusal: str = ""
    """The model's refusal to answer, where the API keeps that apart."""
    uses: tuple[ToolUse, ...] = ()
    returns: tuple[ToolReturn, ...] = ()


class ToolOffer(msgspec.Struct, frozen=True, kw_only=True):
    """A tool that the prompt offers to the model."""

    name: str
    description: str = ""
    schema: Any = None
    """The JSON schema of its arguments, parsed; None if there is none."""
    bytes: int = 0
    """Length of its definition, as compact JSON in UTF-8."""
    from_text: bool = False
    """True if it was written in the text of a turn, within `<tools>…</tools>`."""
    is_hosted: bool = False
    """True if the API itself would run it."""


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens as the API counted them; None where it gave no number. `input_tokens` include cached ones."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    """Input tokens that were read from a cache."""
    reasoning_tokens: int | None = None
    """Output tokens that were spent on reasoning."""


class Prompt(msgspec.Struct, frozen=True, kw_only=True):
    """A request to a model: the whole conversation so far, as the client sent it."""

    model: str = ""
    turns: tuple[Turn, ...] = ()
    offers: tuple[ToolOffer, ...] = ()
    is_streamed: bool = False
    continues: str = ""
    """The id of the answer that this prompt continues without repeating it (`previous_response_id`)."""
    flaw: str = ""
    """The reason why the body could not be read, as a sentence; empty if it could."""


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """A model's answer, as far as it was received."""

    id: str = ""
    model: str = ""
    """The model that answered, as the API names it."""
    turn: Turn = Turn(role="assistant")
    more: tuple[Turn, ...] = ()
    """The other choices, where the prompt asked for several."""
    finish: str = ""
    """The reason why it ended, in the API's own word (`stop`, `tool_calls`, `end_turn`, `tool_use`, `length`, …); empty if none."""
    usage: Usage = Usage()
    error: str = ""
    """The error that the API reported: `rate_limit_error: Too many requests`."""
    is_whole: bool = False
    """True if its end was read: a body of JSON, `[DONE]`, `message_stop`, `response.completed`."""
    deltas: int = 0
    """Number of events in its stream; 0 for plain JSON."""
    flaws: tuple[str, ...] = ()
    """Errors in its stream, a sentence each: an index that no delta opened, an event that is not JSON."""


def offer_text(offer: ToolOffer) -> bytes:
    """Write a tool offer as compact JSON, to estimate its tokens: each API puts it to the model in its own words."""
    definition = {"name": offer.name, "description": offer.description, "parameters": offer.schema}
    try:
        return json.dumps(definition, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
    except (ValueError, RecursionError):
        return offer.description.encode("utf-8", "replace")
