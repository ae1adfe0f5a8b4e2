"""How chat completions spell a prompt and an answer, whole or in deltas.

Source: OpenAI's API reference, `POST /chat/completions`; and what compatible servers write: `reasoning_content`, no indexes, one
index for all, arguments that are objects. Refuses to raise, whatever comes.
"""

from __future__ import annotations

from typing import Any, Final

from .drafts import Flaws, TurnDraft, UseDraft, piece_of
from .json_values import argument_text, error_text, integer, items, members, size_bytes, string, value
from .model import Answer, Prompt, ToolOffer, ToolReturn, ToolUse, Turn, Usage
from .parts import text_of
from .tags import offers_in, returns_in, uses_in, without_returns

DONE: Final = b"[DONE]"
_LEGACY: Final = "function"
"""The place of a `function_call`, which has no index and no id."""


def prompt(body: dict[str, Any]) -> Prompt:
    """The prompt in the body of a request."""
    turns = tuple(turn(one) for one in items(body.get("messages")))
    offers = [offer(one) for one in (*items(body.get("tools")), *items(body.get("functions")))]
    in_text = [one for said in turns if said.role in ("system", "developer") for one in offers_in(said.text)]
    return Prompt(
        model=string(body.get("model")), turns=turns, offers=(*offers, *in_text), is_streamed=body.get("stream") is True
    )


def turn(message: Any) -> Turn:
    """One member of `messages`."""
    one = members(message)
    role, text = string(one.get("role")), text_of(one.get("content"))
    if role in ("tool", "function"):
        name = string(one.get("name"))
        return Turn(role="tool", returns=(ToolReturn(id=string(one.get("tool_call_id")), text=text, name=name),))
    if role == "user" and (returns := returns_in(text)):
        rest = without_returns(text)
        return Turn(role="user" if rest else "tool", text=rest, returns=returns)
    uses = [use(call) for call in items(one.get("tool_calls"))]
    if legacy := members(one.get("function_call")):
        uses.append(use({"function": legacy}))
    if role == "assistant":
        uses += [found for found, _ in uses_in(text)]
    thinking = string(one.get("reasoning_content")) or string(one.get("reasoning"))
    return Turn(role=role, text=text, thinking=thinking, refusal=_refusal(one), uses=tuple(uses))


def use(call: Any) -> ToolUse:
    """One member of `tool_calls`; a custom tool has `input`, which is no JSON."""
    one = members(call)
    inner = members(one.get("function")) or members(one.get("custom"))
    arguments = inner.get("arguments", inner.get("input"))
    return ToolUse(id=string(one.get("id")), name=string(inner.get("name")), arguments=argument_text(arguments))


def offer(tool: Any) -> ToolOffer:
    """One member of `tools`, or of the older `functions`, which has no envelope."""
    one = members(tool)
    inner = members(one.get("function")) or members(one.get("custom")) or one
    name, description = string(inner.get("name")) or string(one.get("type")), string(inner.get("description"))
    return ToolOffer(name=name, description=description, schema=inner.get("parameters"), bytes=size_bytes(tool))


def usage(of: Any) -> Usage:
    """`usage` of an answer."""
    one = members(of)
    read, written = members(one.get("prompt_tokens_details")), members(one.get("completion_tokens_details"))
    return Usage(
        input_tokens=integer(one.get("prompt_tokens")),
        output_tokens=integer(one.get("completion_tokens")),
        cached_tokens=integer(read.get("cached_tokens", one.get("prompt_cache_hit_tokens"))),
        reasoning_tokens=integer(written.get("reasoning_tokens")),
    )


def _refusal(message: dict[str, Any]) -> str:
    parts = (string(members(part).get("refusal")) for part in items(message.get("content")))
    return string(message.get("refusal")) or "".join(parts)


class ChatAssembler:
    """The answer to a prompt of chat completions: a whole body, or events whose data are chunks."""

    __slots__ = (
        "_choices",
        "_deltas",
        "_error",
        "_finish",
        "_first",
        "_flaws",
        "_is_over",
        "_is_whole",
        "_model",
        "_usage",
        "id",
    )

    def __init__(self) -> None:
        self._choices: dict[int, TurnDraft] = {}
        self._first = 0
        """The least index of them, whose end is the answer's."""
        self.id = self._model = self._finish = self._error = ""
        self._usage = Usage()
        self._deltas = 0
        self._is_whole = self._is_over = False
        self._flaws = Flaws()

    def whole(self, body: Any, at_ns: int) -> None:
        """A body that came in one piece."""
        self._about(body)
        for choice in items(members(body).get("choices")):
            self._choice(choice, members(members(choice).get("message")), at_ns, is_delta=False)
        self._is_whole = bool(self._choices) or bool(self._error)
        if not self._is_whole:
            self._flaws.add("the body is no chat completion")

    def refused(self, why: str) -> None:
        """The answer is an error of HTTP's."""
        self._error, self._is_whole = why, True

    def feed(self, named: str, data: bytes, at_ns: int) -> bool:
        """The next event, which has no type. Whether it brought content."""
        if self._is_whole:
            self._flaws.add("more came after [DONE]")
        self._deltas += 1
        if data.strip() == DONE:
            self._is_whole = True
            return False
        chunk = value(data)
        if not isinstance(chunk, dict):
            self._flaws.add("the data of an event is no JSON object")
            return False
        self._about(chunk)
        brought = False
        for choice in items(chunk.get("choices")):
            brought |= self._choice(choice, members(members(choice).get("delta")), at_ns, is_delta=True)
        return brought

    def close(self, *, is_cut: bool) -> None:
        """The stream ended; `is_cut`: before its framing said so. Some servers end it without [DONE]."""
        self._is_over = True
        if not self._is_whole and not is_cut and self._finish:
            self._is_whole = True
            self._flaws.add("the stream ended without [DONE]")

    @property
    def answer(self) -> Answer:
        """As far as it came."""
        drafts = [self._choices[index] for index in sorted(self._choices)]
        for draft in drafts:
            draft.is_over = self._is_over or self._is_whole
        turns = [draft.turn for draft in drafts] or [Turn(role="assistant")]
        return Answer(
            id=self.id,
            model=self._model,
            turn=turns[0],
            more=tuple(turns[1:]),
            finish=self._finish,
            usage=self._usage,
            error=self._error,
            is_whole=self._is_whole,
            deltas=self._deltas,
            flaws=self._flaws.all,
        )

    def _about(self, body: Any) -> None:
        """What a chunk says of the answer as a whole."""
        one = members(body)
        self.id = self.id or string(one.get("id"))
        self._model = self._model or string(one.get("model"))
        self._error = self._error or error_text(one)
        if isinstance(one.get("usage"), dict):
            self._usage = usage(one["usage"])

    def _choice(self, choice: Any, said: dict[str, Any], at_ns: int, *, is_delta: bool) -> bool:
        index = integer(members(choice).get("index")) or 0
        draft = self._choices.get(index)
        if draft is None:
            self._first = index if not self._choices else min(index, self._first)
            draft = self._choices[index] = TurnDraft()
        thought = string(said.get("reasoning_content")) or string(said.get("reasoning"))
        brought = piece_of(draft.thinking, 0, thought, at_ns)
        brought |= piece_of(draft.texts, 0, text_of(said.get("content")), at_ns)
        brought |= draft.refusal.add(_refusal(said), at_ns)
        for call in items(said.get("tool_calls")):
            self._call(draft, members(call), at_ns, is_delta=is_delta)
            brought = True
        if legacy := members(said.get("function_call")):
            self._piece(draft.uses.get(_LEGACY) or draft.begin(_LEGACY, UseDraft(at_ns)), {"function": legacy}, at_ns)
            brought = True
        if index == self._first:
            self._finish = string(members(choice).get("finish_reason")) or self._finish
        return brought

    def _call(self, draft: TurnDraft, call: dict[str, Any], at_ns: int, *, is_delta: bool) -> None:
        """A piece of a tool use: its index says of which; else its id, else it goes on with the last one."""
        id, index = string(call.get("id")), integer(call.get("index")) if is_delta else len(draft.uses)
        if index is None:
            self._flaws.add("a tool call has no index")
            found = draft.by_id.get(id) if id else draft.last
        else:
            found = draft.uses.get(index)
            if found is not None and id and found.id and found.id != id:
                self._flaws.add(f"index {index} has several tool calls")
                found, index = draft.by_id.get(id), None
        if found is None:
            found = draft.begin(("no index", len(draft.uses)) if index is None else index, UseDraft(at_ns))
            if not id and not _name(call):
                self._flaws.add("a delta goes on with a tool call that none began")
        if id and not found.id:
            found.call(id=id, name="")
            draft.by_id[id] = found
        self._piece(found, call, at_ns)

    def _piece(self, draft: UseDraft, call: dict[str, Any], at_ns: int) -> None:
        name = _name(call)
        if name and name != draft.name:  # some repeat it with each delta, some cut it
            draft.call(id="", name=draft.name + name)
        inner = members(call.get("function")) or members(call.get("custom"))
        draft.add(argument_text(inner.get("arguments", inner.get("input"))), at_ns)


def _name(call: dict[str, Any]) -> str:
    inner = members(call.get("function")) or members(call.get("custom"))
    return string(inner.get("name"))
