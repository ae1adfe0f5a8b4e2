"""Anthropic's messages: the body of a request to a prompt, the body or the events of a response to an answer.

Source: Anthropic's API reference, `POST /v1/messages` and its streaming. Input never raises.
"""

from collections.abc import Iterable
from typing import Any

import msgspec

from .drafts import AnswerDraft, TurnDraft, UseDraft, add_piece, joined, part_text, text_of
from .json_values import argument_text, error_text, integer, items, json_value, members, size_bytes, string
from .prompt import Answer, Prompt, ToolOffer, ToolReturn, ToolUse, Turn, Usage
from .tags import offers_in, returns_in, uses_in, without_returns

_USES = {"tool_use", "server_tool_use", "mcp_tool_use"}
_THINKING = {"thinking", "redacted_thinking"}


def prompt(body: dict[str, Any]) -> Prompt:
    """Read the prompt in the body of a request. `system` is its first turn."""
    system = text_of(body.get("system"))
    turns = tuple(turn(message) for message in items(body.get("messages")))
    offers = (*(offer(tool) for tool in items(body.get("tools"))), *offers_in(system))
    return Prompt(
        model=string(body.get("model")),
        turns=(Turn(role="system", text=system), *turns) if system else turns,
        offers=offers,
        is_streamed=body.get("stream") is True,
    )


def turn(message: Any) -> Turn:
    """Read one member of `messages`. A user's turn that holds tool returns and nothing else has the role `tool`."""
    fields = members(message)
    role, content = string(fields.get("role")), fields.get("content")
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else [members(block) for block in items(content)]
    text = joined(_text(block) for block in blocks)
    uses = [use(block) for block in blocks if block.get("type") in _USES]
    if role == "assistant":
        uses += [use for use, _ in uses_in(text)]
    returns = [tool_return(block) for block in blocks if _is_return(block)]
    if role == "user" and (in_text := returns_in(text)):
        returns += in_text
        text = without_returns(text)
    if role == "user" and returns and not text:
        role = "tool"
    return Turn(role=role, text=text, thinking=_thinking(blocks), uses=tuple(uses), returns=tuple(returns))


def use(block: dict[str, Any]) -> ToolUse:
    """Read a block in which the model wants a tool called."""
    return ToolUse(
        id=string(block.get("id")),
        name=string(block.get("name")),
        arguments=argument_text(block.get("input", {})),
        is_hosted=block.get("type") != "tool_use",
    )


def tool_return(block: dict[str, Any]) -> ToolReturn:
    """Read a `tool_result`, or the result of a tool that the API runs itself."""
    content = block.get("content")
    inner = members(content)
    return ToolReturn(
        id=string(block.get("tool_use_id")),
        text=text_of([content] if inner else content),
        is_error=block.get("is_error") is True or string(inner.get("type")).endswith("_error"),
        is_hosted=block.get("type") != "tool_result",
    )


def offer(tool: Any) -> ToolOffer:
    """Read one member of `tools`. A type other than `custom` marks a tool of Anthropic's own; the client runs some of those."""
    fields = members(tool)
    kind = string(fields.get("type"))
    return ToolOffer(
        name=string(fields.get("name")) or string(fields.get("mcp_server_name")) or kind,
        description=string(fields.get("description")),
        schema=fields.get("input_schema"),
        bytes=size_bytes(tool),
        is_hosted=kind.startswith(("web_", "code_execution", "mcp_toolset", "tool_search")),
    )


def usage(value: Any, before: Usage) -> Usage:
    """Read a `usage`; a later one holds only the numbers that changed. The input includes the cached tokens here."""
    fields = members(value)
    read, written = integer(fields.get("cache_read_input_tokens")), integer(fields.get("cache_creation_input_tokens"))
    uncached, output = integer(fields.get("input_tokens")), integer(fields.get("output_tokens"))
    thinking = integer(members(fields.get("output_tokens_details")).get("thinking_tokens"))
    return Usage(
        input_tokens=before.input_tokens if uncached is None else uncached + (read or 0) + (written or 0),
        output_tokens=before.output_tokens if output is None else output,
        cached_tokens=before.cached_tokens if read is None else read,
        reasoning_tokens=before.reasoning_tokens if thinking is None else thinking,
    )


def _is_return(block: dict[str, Any]) -> bool:
    return string(block.get("type")).endswith("tool_result")


def _text(block: dict[str, Any]) -> str:
    return "" if block.get("type") in _USES or block.get("type") in _THINKING or _is_return(block) else part_text(block)


def _thinking(blocks: Iterable[dict[str, Any]]) -> str:
    return joined(string(block.get("thinking")) for block in blocks)


class MessagesAssembler:
    """The answer to a prompt of messages: fed a whole body, or events with types."""

    __slots__ = ("draft", "_open", "_returns", "_turn")

    def __init__(self) -> None:
        self.draft = AnswerDraft()
        self._turn = TurnDraft()
        self._open: dict[int | None, tuple[UseDraft, Any]] = {}
        """The uses that go on, by the index of their block, with the arguments that they began with, if no delta follows."""
        self._returns: list[ToolReturn] = []

    def feed_body(self, body: Any, at_ns: int) -> None:
        """Take in a body that is not a stream."""
        draft = self.draft
        self._read_answer(members(body))
        draft.error = error_text(body)
        content = members(body).get("content")
        for index, block in enumerate(items(content)):
            self._begin_block(index, members(block), at_ns)
            self._end_block(index)
        self._turn.is_over = True
        draft.is_whole = isinstance(content, list) or bool(draft.error)
        if not draft.is_whole:
            draft.add_flaw("the body is not a message")

    def feed(self, event_type: str, data: bytes, at_ns: int) -> bool:
        """Take in an event. Returns True if it brought content."""
        draft = self.draft
        if draft.is_whole:
            draft.add_flaw("events followed message_stop")
        draft.deltas += 1
        event = json_value(data)
        if not isinstance(event, dict):
            draft.add_flaw("the data of an event is not a JSON object")
            return False
        match string(event.get("type")) or event_type:
            case "message_start":
                self._read_answer(members(event.get("message")))
            case "content_block_start":
                return self._begin_block(_index(event), members(event.get("content_block")), at_ns)
            case "content_block_delta":
                return self._read_delta(_index(event), members(event.get("delta")), at_ns)
            case "content_block_stop":
                self._end_block(_index(event))
            case "message_delta":
                draft.finish = string(members(event.get("delta")).get("stop_reason")) or draft.finish
                draft.usage = usage(event.get("usage"), draft.usage)
            case "message_stop":
                draft.is_whole = True
                for index in list(self._open):
                    self._end_block(index)
            case "error":
                draft.error = error_text(event) or "an error without a message"
            case "" | "message":
                draft.add_flaw("an event has no type")
            case _:  # a ping, or a type that the API may add without a new version
                pass
        return False

    def close(self, *, is_cut: bool) -> None:
        """End the stream; `is_cut`: before its framing ended."""
        self._turn.is_over = True
        if not self.draft.is_whole and not is_cut and self.draft.finish:
            self.draft.is_whole = True
            self.draft.add_flaw("the stream ended without message_stop")

    @property
    def answer(self) -> Answer:
        """The answer, as far as it was received."""
        turn = self._turn.turn
        return self.draft.answer(msgspec.structs.replace(turn, returns=tuple(self._returns)) if self._returns else turn)

    def _read_answer(self, message: dict[str, Any]) -> None:
        """Read the members of a message that are about the answer as a whole."""
        draft = self.draft
        draft.id = string(message.get("id")) or draft.id
        draft.model = string(message.get("model")) or draft.model
        draft.finish = string(message.get("stop_reason")) or draft.finish
        draft.usage = usage(message.get("usage"), draft.usage)

    def _begin_block(self, index: int | None, block: dict[str, Any], at_ns: int) -> bool:
        """Begin a block of the answer; in a whole body the block is complete. Returns True if it brought content."""
        turn_draft, kind = self._turn, string(block.get("type"))
        if kind in _USES:
            if index in self._open:
                self.draft.add_flaw(f"block {index} began twice")
            use_draft = UseDraft(
                at_ns, id=string(block.get("id")), name=string(block.get("name")), is_hosted=kind != "tool_use"
            )
            self._open[index] = turn_draft.begin(len(turn_draft.uses), use_draft), block.get("input", {})
            return True
        if _is_return(block):
            self._returns.append(tool_return(block))
            return True
        if kind in _THINKING:
            return add_piece(turn_draft.thinking, index, string(block.get("thinking")), at_ns)
        return add_piece(turn_draft.texts, index, part_text(block), at_ns)

    def _end_block(self, index: int | None) -> None:
        use_draft, arguments = self._open.pop(index, (None, ""))
        if use_draft is not None and not use_draft.arguments.text:
            use_draft.add(argument_text(arguments), use_draft.at_ns)

    def _read_delta(self, index: int | None, delta: dict[str, Any], at_ns: int) -> bool:
        """Add a delta to its block. Returns True if it brought content."""
        turn_draft = self._turn
        match string(delta.get("type")):
            case "text_delta":
                return add_piece(turn_draft.texts, index, string(delta.get("text")), at_ns)
            case "thinking_delta":
                return add_piece(turn_draft.thinking, index, string(delta.get("thinking")), at_ns)
            case "input_json_delta":
                if index not in self._open:
                    self.draft.add_flaw("a delta continues a tool use that never began")
                    self._open[index] = turn_draft.begin(len(turn_draft.uses), UseDraft(at_ns)), ""
                self._open[index][0].add(string(delta.get("partial_json")), at_ns)
                return True
            case "":
                self.draft.add_flaw("a delta has no type")
        return False  # a signature, a citation, or a type that the API may add


def _index(event: dict[str, Any]) -> int | None:
    """Return the index of the block that an event is about."""
    return integer(event.get("index"))
