"""Chat completions: the body of a request to a prompt, the body or the deltas of a response to an answer.

Source: OpenAI's API reference, `POST /chat/completions`; and what compatible servers send: `reasoning_content`, no indexes, one
index for all, arguments that are objects. Input never raises.
"""

from typing import Any, Final

from .drafts import AnswerDraft, TurnDraft, UseDraft, add_piece, text_of
from .json_values import argument_text, error_text, integer, items, json_value, members, size_bytes, string
from .prompt import Answer, Prompt, ToolOffer, ToolReturn, ToolUse, Turn, Usage
from .tags import offers_in, returns_in, uses_in, without_returns

DONE: Final = b"[DONE]"
_LEGACY: Final = "function"
"""The key of a `function_call`, which has no index and no id."""


def prompt(body: dict[str, Any]) -> Prompt:
    """Read the prompt in the body of a request."""
    turns = tuple(turn(message) for message in items(body.get("messages")))
    offers = [offer(tool) for tool in (*items(body.get("tools")), *items(body.get("functions")))]
    in_text = [tool for turn in turns if turn.role in ("system", "developer") for tool in offers_in(turn.text)]
    return Prompt(
        model=string(body.get("model")), turns=turns, offers=(*offers, *in_text), is_streamed=body.get("stream") is True
    )


def turn(message: Any) -> Turn:
    """Read one member of `messages`."""
    fields = members(message)
    role, text = string(fields.get("role")), text_of(fields.get("content"))
    if role in ("tool", "function"):
        name = string(fields.get("name"))
        return Turn(role="tool", returns=(ToolReturn(id=string(fields.get("tool_call_id")), text=text, name=name),))
    if role == "user" and (returns := returns_in(text)):
        rest = without_returns(text)
        return Turn(role="user" if rest else "tool", text=rest, returns=returns)
    uses = [use(call) for call in items(fields.get("tool_calls"))]
    if legacy := members(fields.get("function_call")):
        uses.append(use({"function": legacy}))
    if role == "assistant":
        uses += [use for use, _ in uses_in(text)]
    return Turn(role=role, text=text, thinking=_thinking(fields), refusal=_refusal(fields), uses=tuple(uses))


def use(call: Any) -> ToolUse:
    """Read one member of `tool_calls`."""
    return ToolUse(id=string(members(call).get("id")), name=_name(call), arguments=_arguments(call))


def offer(tool: Any) -> ToolOffer:
    """Read one member of `tools`, or of the older `functions`, which has no envelope."""
    fields = members(tool)
    inner = _inner(fields) or fields
    name, description = string(inner.get("name")) or string(fields.get("type")), string(inner.get("description"))
    return ToolOffer(name=name, description=description, schema=inner.get("parameters"), bytes=size_bytes(tool))


def usage(value: Any) -> Usage:
    """Read the `usage` of an answer."""
    fields = members(value)
    input_details, output_details = (
        members(fields.get("prompt_tokens_details")),
        members(fields.get("completion_tokens_details")),
    )
    return Usage(
        input_tokens=integer(fields.get("prompt_tokens")),
        output_tokens=integer(fields.get("completion_tokens")),
        cached_tokens=integer(input_details.get("cached_tokens", fields.get("prompt_cache_hit_tokens"))),
        reasoning_tokens=integer(output_details.get("reasoning_tokens")),
    )


def _inner(call: Any) -> dict[str, Any]:
    """Open the envelope of a tool call or an offer, which names the kind of tool."""
    return members(members(call).get("function")) or members(members(call).get("custom"))


def _name(call: Any) -> str:
    return string(_inner(call).get("name"))


def _arguments(call: Any) -> str:
    """Return the arguments of a tool call; a custom tool has `input`, which is not JSON."""
    inner = _inner(call)
    return argument_text(inner.get("arguments", inner.get("input")))


def _thinking(message: dict[str, Any]) -> str:
    return string(message.get("reasoning_content")) or string(message.get("reasoning"))


def _refusal(message: dict[str, Any]) -> str:
    parts = (string(members(part).get("refusal")) for part in items(message.get("content")))
    return string(message.get("refusal")) or "".join(parts)


class ChatAssembler:
    """The answer to a chat completion: fed a whole body, or events whose data are chunks."""

    __slots__ = ("_choices", "draft", "_first", "_is_over")

    def __init__(self) -> None:
        self.draft = AnswerDraft()
        self._choices: dict[int, TurnDraft] = {}
        self._first = 0
        """The least index of them: the end of this choice is the end of the answer."""
        self._is_over = False

    def feed_body(self, body: Any, at_ns: int) -> None:
        """Take in a body that is not a stream."""
        self._read_answer(body)
        for choice in items(members(body).get("choices")):
            self._read_choice(choice, members(members(choice).get("message")), at_ns, is_delta=False)
        self.draft.is_whole = bool(self._choices) or bool(self.draft.error)
        if not self.draft.is_whole:
            self.draft.add_flaw("the body is not a chat completion")

    def feed(self, event_type: str, data: bytes, at_ns: int) -> bool:
        """Take in an event; chat completions give them no type. Returns True if it brought content."""
        draft = self.draft
        if draft.is_whole:
            draft.add_flaw("events followed [DONE]")
        draft.deltas += 1
        if data.strip() == DONE:
            draft.is_whole = True
            return False
        chunk = json_value(data)
        if not isinstance(chunk, dict):
            draft.add_flaw("the data of an event is not a JSON object")
            return False
        self._read_answer(chunk)
        has_content = False
        for choice in items(chunk.get("choices")):
            has_content |= self._read_choice(choice, members(members(choice).get("delta")), at_ns, is_delta=True)
        return has_content

    def close(self, *, is_cut: bool) -> None:
        """End the stream; `is_cut`: before its framing ended. Some servers end it without [DONE]."""
        self._is_over = True
        if not self.draft.is_whole and not is_cut and self.draft.finish:
            self.draft.is_whole = True
            self.draft.add_flaw("the stream ended without [DONE]")

    @property
    def answer(self) -> Answer:
        """The answer, as far as it was received."""
        drafts = [self._choices[index] for index in sorted(self._choices)]
        for draft in drafts:
            draft.is_over = self._is_over or self.draft.is_whole
        turns = [draft.turn for draft in drafts] or [Turn(role="assistant")]
        return self.draft.answer(turns[0], tuple(turns[1:]))

    def _read_answer(self, body: Any) -> None:
        """Read the members of a chunk that are about the answer as a whole."""
        draft, fields = self.draft, members(body)
        draft.id = draft.id or string(fields.get("id"))
        draft.model = draft.model or string(fields.get("model"))
        draft.error = draft.error or error_text(fields)
        if isinstance(fields.get("usage"), dict):
            draft.usage = usage(fields["usage"])

    def _read_choice(self, choice: Any, message: dict[str, Any], at_ns: int, *, is_delta: bool) -> bool:
        """Read a choice and its message, or its delta. Returns True if it brought content."""
        index = integer(members(choice).get("index")) or 0
        turn_draft = self._choices.get(index)
        if turn_draft is None:
            self._first = index if not self._choices else min(index, self._first)
            turn_draft = self._choices[index] = TurnDraft()
        has_content = add_piece(turn_draft.thinking, 0, _thinking(message), at_ns)
        has_content |= add_piece(turn_draft.texts, 0, text_of(message.get("content")), at_ns)
        has_content |= turn_draft.refusal.add(_refusal(message), at_ns)
        for call in items(message.get("tool_calls")):
            self._read_call(turn_draft, members(call), at_ns, is_delta=is_delta)
            has_content = True
        if legacy := members(message.get("function_call")):
            use_draft = turn_draft.uses.get(_LEGACY) or turn_draft.begin(_LEGACY, UseDraft(at_ns))
            _add_to_use(use_draft, {"function": legacy}, at_ns)
            has_content = True
        if index == self._first:
            self.draft.finish = string(members(choice).get("finish_reason")) or self.draft.finish
        return has_content

    def _read_call(self, turn_draft: TurnDraft, call: dict[str, Any], at_ns: int, *, is_delta: bool) -> None:
        """Add a piece to the tool use of its index, else of its id, else to the last one."""
        id, index = string(call.get("id")), integer(call.get("index")) if is_delta else len(turn_draft.uses)
        if index is None:
            self.draft.add_flaw("a tool call has no index")
            use_draft = turn_draft.by_id.get(id) if id else turn_draft.last
        else:
            use_draft = turn_draft.uses.get(index)
            if use_draft is not None and id and use_draft.id and use_draft.id != id:
                self.draft.add_flaw(f"index {index} has several tool calls")
                use_draft, index = turn_draft.by_id.get(id), None
        if use_draft is None:
            use_draft = turn_draft.begin(("no index", len(turn_draft.uses)) if index is None else index, UseDraft(at_ns))
            if not id and not _name(call):
                self.draft.add_flaw("a delta continues a tool call that never began")
        if id and not use_draft.id:
            use_draft.identify(id=id, name="")
            turn_draft.by_id[id] = use_draft
        _add_to_use(use_draft, call, at_ns)


def _add_to_use(use_draft: UseDraft, call: dict[str, Any], at_ns: int) -> None:
    name = _name(call)
    if name and name != use_draft.name:  # some repeat it with each delta, some cut it
        use_draft.identify(id="", name=use_draft.name + name)
    use_draft.add(_arguments(call), at_ns)
