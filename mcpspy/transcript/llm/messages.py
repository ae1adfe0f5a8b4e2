"""How Anthropic's messages spell a prompt and an answer, whole or in events.

Source: Anthropic's API reference, `POST /v1/messages` and its streaming. Refuses to raise, whatever comes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from .drafts import Flaws, TurnDraft, UseDraft, piece_of
from .json_values import argument_text, error_text, integer, items, members, size_bytes, string, value
from .model import Answer, Prompt, ToolOffer, ToolReturn, ToolUse, Turn, Usage
from .parts import joined, part_text, text_of
from .tags import offers_in, returns_in, uses_in, without_returns

_USES = {"tool_use", "server_tool_use", "mcp_tool_use"}
_THINKING = {"thinking", "redacted_thinking"}


def prompt(body: dict[str, Any]) -> Prompt:
    """The prompt in the body of a request. `system` is its first turn."""
    system = text_of(body.get("system"))
    turns = tuple(turn(one) for one in items(body.get("messages")))
    offers = (*(offer(one) for one in items(body.get("tools"))), *offers_in(system))
    return Prompt(
        model=string(body.get("model")),
        turns=(Turn(role="system", text=system), *turns) if system else turns,
        offers=offers,
        is_streamed=body.get("stream") is True,
    )


def turn(message: Any) -> Turn:
    """One member of `messages`. What a user's turn holds but tool returns is the user's word; one with these alone is the tools'."""
    one = members(message)
    role, content = string(one.get("role")), one.get("content")
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else [members(block) for block in items(content)]
    text = joined(_text(block) for block in blocks)
    uses = [use(block) for block in blocks if block.get("type") in _USES]
    if role == "assistant":
        uses += [found for found, _ in uses_in(text)]
    returns = [returned(block) for block in blocks if _is_return(block)]
    if role == "user" and (in_text := returns_in(text)):
        returns += in_text
        text = without_returns(text)
    if role == "user" and returns and not text:
        role = "tool"
    return Turn(role=role, text=text, thinking=_thinking(blocks), uses=tuple(uses), returns=tuple(returns))


def use(block: dict[str, Any]) -> ToolUse:
    """A block in which the model wants a tool called."""
    return ToolUse(
        id=string(block.get("id")),
        name=string(block.get("name")),
        arguments=argument_text(block.get("input", {})),
        is_hosted=block.get("type") != "tool_use",
    )


def returned(block: dict[str, Any]) -> ToolReturn:
    """A `tool_result`, or the result of a tool that the API runs itself."""
    content = block.get("content")
    inner = members(content)
    return ToolReturn(
        id=string(block.get("tool_use_id")),
        text=text_of([content] if inner else content),
        is_error=block.get("is_error") is True or string(inner.get("type")).endswith("_error"),
        is_hosted=block.get("type") != "tool_result",
    )


def offer(tool: Any) -> ToolOffer:
    """One member of `tools`. One with a type that is not `custom` is Anthropic's own; the client runs some of them."""
    one = members(tool)
    kind = string(one.get("type"))
    return ToolOffer(
        name=string(one.get("name")) or string(one.get("mcp_server_name")) or kind,
        description=string(one.get("description")),
        schema=one.get("input_schema"),
        bytes=size_bytes(tool),
        is_hosted=kind.startswith(("web_", "code_execution", "mcp_toolset", "tool_search")),
    )


def usage(of: Any, before: Usage) -> Usage:
    """`usage`, of which a later one says only what has changed. Here what was cached is part of the input."""
    one = members(of)
    read, written = integer(one.get("cache_read_input_tokens")), integer(one.get("cache_creation_input_tokens"))
    plain, output = integer(one.get("input_tokens")), integer(one.get("output_tokens"))
    thought = integer(members(one.get("output_tokens_details")).get("thinking_tokens"))
    return Usage(
        input_tokens=before.input_tokens if plain is None else plain + (read or 0) + (written or 0),
        output_tokens=before.output_tokens if output is None else output,
        cached_tokens=before.cached_tokens if read is None else read,
        reasoning_tokens=before.reasoning_tokens if thought is None else thought,
    )


def _is_return(block: dict[str, Any]) -> bool:
    return string(block.get("type")).endswith("tool_result")


def _text(block: dict[str, Any]) -> str:
    return "" if block.get("type") in _USES or block.get("type") in _THINKING or _is_return(block) else part_text(block)


def _thinking(blocks: Iterable[dict[str, Any]]) -> str:
    return joined(string(block.get("thinking")) for block in blocks)


class MessagesAssembler:
    """The answer to a prompt of messages: a whole body, or events that name what they are."""

    __slots__ = (
        "_deltas", "_draft", "_error", "_finish", "_flaws", "_is_whole", "_model", "_open", "_returns", "_usage", "id",
    )  # fmt: skip

    def __init__(self) -> None:
        self._draft = TurnDraft()
        self._open: dict[int | None, tuple[UseDraft, Any]] = {}
        """The uses that go on, by their places, and what each began with: its arguments, where no delta follows."""
        self._returns: list[ToolReturn] = []
        self.id = ""
        self._model = self._finish = self._error = ""
        self._usage = Usage()
        self._deltas = 0
        self._is_whole = False
        self._flaws = Flaws()

    def whole(self, body: Any, at_ns: int) -> None:
        """A body that came in one piece."""
        self._about(members(body))
        self._error = error_text(body)
        content = members(body).get("content")
        for index, block in enumerate(items(content)):
            self._began(index, members(block), at_ns)
            self._ended(index)
        self._draft.is_over = True
        self._is_whole = isinstance(content, list) or bool(self._error)
        if not self._is_whole:
            self._flaws.add("the body is no message")

    def refused(self, why: str) -> None:
        """The answer is an error of HTTP's."""
        self._error, self._is_whole = why, True

    def feed(self, named: str, data: bytes, at_ns: int) -> bool:
        """The next event, with its type. Whether it brought content."""
        if self._is_whole:
            self._flaws.add("more came after message_stop")
        self._deltas += 1
        said = value(data)
        if not isinstance(said, dict):
            self._flaws.add("the data of an event is no JSON object")
            return False
        match string(said.get("type")) or named:
            case "message_start":
                self._about(members(said.get("message")))
            case "content_block_start":
                return self._began(_index(said), members(said.get("content_block")), at_ns)
            case "content_block_delta":
                return self._delta(_index(said), members(said.get("delta")), at_ns)
            case "content_block_stop":
                self._ended(_index(said))
            case "message_delta":
                self._finish = string(members(said.get("delta")).get("stop_reason")) or self._finish
                self._usage = usage(said.get("usage"), self._usage)
            case "message_stop":
                self._is_whole = True
                for place in list(self._open):
                    self._ended(place)
            case "error":
                self._error = error_text(said) or "an error without a word"
            case "" | "message":
                self._flaws.add("an event has no type")
            case _:  # a ping, or what the API may add without a new version of it
                pass
        return False

    def close(self, *, is_cut: bool) -> None:
        """The stream ended."""
        self._draft.is_over = True
        if not self._is_whole and not is_cut and self._finish:
            self._is_whole = True
            self._flaws.add("the stream ended without message_stop")

    @property
    def answer(self) -> Answer:
        """As far as it came."""
        turn = self._draft.turn
        return Answer(
            id=self.id,
            model=self._model,
            turn=msgspec.structs.replace(turn, returns=tuple(self._returns)) if self._returns else turn,
            finish=self._finish,
            usage=self._usage,
            error=self._error,
            is_whole=self._is_whole,
            deltas=self._deltas,
            flaws=self._flaws.all,
        )

    def _about(self, message: dict[str, Any]) -> None:
        self.id = string(message.get("id")) or self.id
        self._model = string(message.get("model")) or self._model
        self._finish = string(message.get("stop_reason")) or self._finish
        self._usage = usage(message.get("usage"), self._usage)

    def _began(self, place: int | None, block: dict[str, Any], at_ns: int) -> bool:
        """A block of the answer begins; of a whole body it is all there."""
        draft, kind = self._draft, string(block.get("type"))
        if kind in _USES:
            if place in self._open:
                self._flaws.add(f"block {place} began twice")
            made = UseDraft(at_ns, id=string(block.get("id")), name=string(block.get("name")), is_hosted=kind != "tool_use")
            self._open[place] = draft.begin(len(draft.uses), made), block.get("input", {})
            return True
        if _is_return(block):
            self._returns.append(returned(block))
            return True
        if kind in _THINKING:
            return piece_of(draft.thinking, place, string(block.get("thinking")), at_ns)
        return piece_of(draft.texts, place, part_text(block), at_ns)

    def _ended(self, place: int | None) -> None:
        """A block of the answer is whole."""
        use, given = self._open.pop(place, (None, ""))
        if use is not None and not use.arguments.text:
            use.add(argument_text(given), use.at_ns)

    def _delta(self, place: int | None, delta: dict[str, Any], at_ns: int) -> bool:
        draft = self._draft
        match string(delta.get("type")):
            case "text_delta":
                return piece_of(draft.texts, place, string(delta.get("text")), at_ns)
            case "thinking_delta":
                return piece_of(draft.thinking, place, string(delta.get("thinking")), at_ns)
            case "input_json_delta":
                if place not in self._open:
                    self._flaws.add("a delta goes on with a tool use that none began")
                    self._open[place] = draft.begin(len(draft.uses), UseDraft(at_ns)), ""
                self._open[place][0].add(string(delta.get("partial_json")), at_ns)
                return True
            case "":
                self._flaws.add("a delta has no type")
        return False  # a signature, a citation, or what the API may add


def _index(said: dict[str, Any]) -> int | None:
    """The place of the block that an event is about."""
    return integer(said.get("index"))
