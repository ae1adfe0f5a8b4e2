"""OpenAI's responses: the body of a request to a prompt, the body or the events of a response to an answer.

Source: OpenAI's API reference, `POST /responses` and its streaming events. Input never raises.
"""

from typing import Any, Final

import msgspec

from .drafts import AnswerDraft, TurnDraft, UseDraft, add_piece, joined, text_of
from .json_values import argument_text, error_text, integer, items, json_text, json_value, members, size_bytes, string
from .prompt import Answer, Prompt, ToolOffer, ToolReturn, ToolUse, Turn, Usage
from .tags import offers_in, uses_in

DONE: Final = b"[DONE]"
_CLIENT_RUNS: Final = {
    "function_call",
    "custom_tool_call",
    "computer_call",
    "local_shell_call",
    "shell_call",
    "apply_patch_call",
}
_ENDS: Final = {"response.completed", "response.incomplete", "response.failed"}
_NAMES_IN_USES: Final = {"computer_use_preview": "computer"}
"""By the type of an offer without a name: the name that its uses have, where that differs."""
_MORE_OFFERS: Final = {"additional_tools", "tool_search_output"}
"""Items of `input` that offer tools, which `tools` does not repeat."""
_DEFAULT_NAMESPACE: Final = "functions"
"""The namespace whose tools are called by their bare names."""
_OFFERED_TO_CLIENTS: Final = {"function", "custom", "computer_use_preview", "computer", "local_shell", "shell", "apply_patch"}


def prompt(body: dict[str, Any]) -> Prompt:
    """Read the prompt in the body of a request. `instructions` are its first turn."""
    instructions, content = string(body.get("instructions")), body.get("input")
    turns = [Turn(role="system", text=instructions)] if instructions else []
    turns += [Turn(role="user", text=content)] if isinstance(content, str) else [turn(item) for item in items(content)]
    in_text = [tool for turn in turns if turn.role in ("system", "developer") for tool in offers_in(turn.text)]
    offers = [offer(tool) for member in items(body.get("tools")) for tool in _tools(member)]
    more = {tool.name: tool for item in items(content) for tool in _more_offers(members(item))}
    for tool in offers:
        more.pop(tool.name, None)
    return Prompt(
        model=string(body.get("model")),
        turns=tuple(turns),
        offers=(*offers, *more.values(), *in_text),
        is_streamed=body.get("stream") is True,
        continues=string(body.get("previous_response_id")),
    )


def turn(item: Any) -> Turn:
    """Read one item of `input`, each of which is a turn: a message, a use, a return, or reasoning."""
    fields = members(item)
    kind = string(fields.get("type"))
    if kind.endswith("_output"):
        return Turn(role="tool", returns=(_tool_return(fields),))
    if _is_use(kind):
        return Turn(role="assistant", uses=(use(fields),), returns=_hosted_returns(fields))
    if kind == "reasoning":
        return Turn(role="assistant", thinking=_thinking(fields))
    role, text = string(fields.get("role")), text_of(fields.get("content"))
    if not kind or kind == "message":
        uses = tuple(use for use, _ in uses_in(text)) if role == "assistant" else ()
        return Turn(role=role, text=text, refusal=_refusal(fields), uses=uses)
    return Turn(role=role or "user", text=text or f"[{kind} {string(fields.get('id'))}]".replace(" ]", "]"))


def use(item: dict[str, Any]) -> ToolUse:
    """Read an item in which the model wants a tool called, or the API has called one itself."""
    kind = string(item.get("type"))
    return ToolUse(
        id=string(item.get("call_id")) or string(item.get("id")),
        name=_qualified(item.get("namespace"), item.get("name")) or kind.removesuffix("_call"),
        arguments=_arguments(item),
        is_hosted=kind not in _CLIENT_RUNS and not _is_run_by_client(item),
    )


def offer(tool: Any) -> ToolOffer:
    """Read one member of `tools`."""
    fields = members(tool)
    kind = string(fields.get("type"))
    return ToolOffer(
        name=string(fields.get("name")) or string(fields.get("server_label")) or _NAMES_IN_USES.get(kind, kind),
        description=string(fields.get("description")),
        schema=fields.get("parameters"),
        bytes=size_bytes(tool),
        is_hosted=kind not in _OFFERED_TO_CLIENTS and not _is_run_by_client(fields),
    )


def _more_offers(item: dict[str, Any]) -> list[ToolOffer]:
    """Read the tools that an item of `input` offers, such as those that a search found; each search may find the same."""
    tools = items(item.get("tools")) if string(item.get("type")) in _MORE_OFFERS else []
    return [offer(tool) for member in tools for tool in _tools(member)]


def _tools(member: Any) -> list[Any]:
    """Return the tools within a member of `tools`: those of a namespace, by their names within it, else itself."""
    fields = members(member)
    within = [members(tool) for tool in items(fields.get("tools"))] if fields.get("type") == "namespace" else []
    return [{**tool, "name": _qualified(fields.get("name"), tool.get("name"))} for tool in within] or [member]


def _qualified(namespace: Any, name: Any) -> str:
    """Write a tool's name within its namespace: two namespaces may have tools of one name."""
    space, bare = string(namespace), string(name)
    return f"{space}.{bare}" if space and bare and space != _DEFAULT_NAMESPACE else bare


def _is_run_by_client(fields: dict[str, Any]) -> bool:
    """Return whether an offer or a use says that the client runs it, as it may a `tool_search`."""
    return fields.get("execution") == "client"


def usage(value: Any) -> Usage:
    """Read the `usage` of an answer."""
    fields = members(value)
    return Usage(
        input_tokens=integer(fields.get("input_tokens")),
        output_tokens=integer(fields.get("output_tokens")),
        cached_tokens=integer(members(fields.get("input_tokens_details")).get("cached_tokens")),
        reasoning_tokens=integer(members(fields.get("output_tokens_details")).get("reasoning_tokens")),
    )


def _is_use(kind: str) -> bool:
    return kind.endswith("_call")


def _arguments(item: dict[str, Any]) -> str:
    """Return the arguments of a use: a function has arguments, a custom tool input, others an action, queries or code."""
    values = (
        item[name] for name in ("arguments", "input", "action", "operation", "queries", "code") if item.get(name) is not None
    )
    return argument_text(next(values, None))


def _tool_return(item: dict[str, Any]) -> ToolReturn:
    """Read a tool return: a text, its parts or a screenshot; any other output, such as that of a shell, as JSON."""
    output = item.get("output")
    if loaded := _more_offers(item):
        output = ", ".join(tool.name for tool in loaded)
    parts = [output] if isinstance(output, dict) else output
    is_content = isinstance(parts, str) or (isinstance(parts, list) and all(members(part).get("type") for part in parts))
    text = text_of(parts) if is_content else json_text(output)
    return ToolReturn(id=string(item.get("call_id")), text=text, name=string(item.get("name")))


def _hosted_returns(item: dict[str, Any]) -> tuple[ToolReturn, ...]:
    """Read the result of a tool that the API called itself, which is in the same item as the use."""
    error, output = item.get("error"), item.get("output")
    if not error and not isinstance(output, str):
        return ()
    text = output if isinstance(output, str) and not error else argument_text(error)
    return (ToolReturn(id=string(item.get("id")), text=text, is_error=bool(error), is_hosted=True),)


def _thinking(item: dict[str, Any]) -> str:
    return joined((text_of(item.get("summary")), text_of(item.get("content"))))


def _refusal(item: dict[str, Any]) -> str:
    return "".join(string(members(part).get("refusal")) for part in items(item.get("content")))


class ResponsesAssembler:
    """The answer to a prompt of responses: fed a whole body, or events with types.

    Deltas win: an item or the whole response at the end, which repeat them, fill in only what no delta brought.
    """

    __slots__ = ("draft", "_returns", "_thought", "_turn")

    def __init__(self) -> None:
        self.draft = AnswerDraft()
        self._turn = TurnDraft()
        self._returns: dict[str, ToolReturn] = {}
        self._thought: set[int | None] = set()
        """The indexes of the items whose reasoning came in deltas."""

    def feed_body(self, body: Any, at_ns: int) -> None:
        """Take in a body that is not a stream."""
        draft = self.draft
        self._read_answer(members(body), at_ns)
        self._turn.is_over = True
        draft.is_whole = isinstance(members(body).get("output"), list) or bool(draft.error)
        if not draft.is_whole:
            draft.add_flaw("the body is not a response")

    def feed(self, event_type: str, data: bytes, at_ns: int) -> bool:
        """Take in an event. Returns True if it brought content."""
        draft = self.draft
        draft.deltas += 1
        if data.strip() == DONE:  # some compatible servers end with it
            return False
        if draft.is_whole:
            draft.add_flaw("events followed the end of the response")
        event = json_value(data)
        if not isinstance(event, dict):
            draft.add_flaw("the data of an event is not a JSON object")
            return False
        kind = string(event.get("type")) or event_type
        if kind.endswith(".delta"):
            return self._read_delta(kind, event, at_ns)
        if kind in ("response.output_item.added", "response.output_item.done"):
            index, item = integer(event.get("output_index")), members(event.get("item"))
            return self._read_item(index, item, at_ns, is_done=kind.endswith("done"))
        if kind == "error":
            error = event.get("error") or {"type": event.get("code"), "message": event.get("message")}
            draft.error = error_text({"error": error}) or "an error without a message"
        elif "response" in event:
            self._read_answer(members(event["response"]), at_ns)
            draft.is_whole = draft.is_whole or kind in _ENDS
        elif kind in ("", "message"):
            draft.add_flaw("an event has no type")
        return False

    def close(self, *, is_cut: bool) -> None:
        """End the stream. Only an event can make the answer whole, so that `is_cut` changes nothing here."""
        self._turn.is_over = True

    @property
    def answer(self) -> Answer:
        """The answer, as far as it was received."""
        return self.draft.answer(msgspec.structs.replace(self._turn.turn, returns=tuple(self._returns.values())))

    def _read_answer(self, response: dict[str, Any], at_ns: int) -> None:
        """Read a response: its members, and the items of its output. Its `status` is the reason for its end, if it gives no other."""
        draft = self.draft
        draft.id = string(response.get("id")) or draft.id
        draft.model = string(response.get("model")) or draft.model
        status = string(response.get("status"))
        reason = string(members(response.get("incomplete_details")).get("reason"))
        draft.finish = reason or (status if status not in ("in_progress", "queued") else "") or draft.finish
        draft.error = error_text(response) or draft.error
        if isinstance(response.get("usage"), dict):
            draft.usage = usage(response["usage"])
        for index, item in enumerate(items(response.get("output"))):
            self._read_item(index, members(item), at_ns, is_done=True)

    def _read_delta(self, kind: str, event: dict[str, Any], at_ns: int) -> bool:
        """Add a delta to its item. Returns True if it brought content."""
        turn_draft, index, piece = self._turn, integer(event.get("output_index")), string(event.get("delta"))
        match kind:
            case "response.output_text.delta":
                return add_piece(turn_draft.texts, (index, integer(event.get("content_index"))), piece, at_ns)
            case "response.refusal.delta":
                return turn_draft.refusal.add(piece, at_ns)
            case "response.reasoning_text.delta" | "response.reasoning_summary_text.delta":
                self._thought.add(index)
                part = integer(event.get("summary_index")), integer(event.get("content_index"))
                return add_piece(turn_draft.thinking, (index, part), piece, at_ns)
        if not kind.endswith(("_arguments.delta", "_input.delta", "_code.delta")):
            return bool(piece)
        use_draft = turn_draft.uses.get(index)
        if use_draft is None:
            self.draft.add_flaw("a delta continues a tool use that never began")
            use_draft = turn_draft.begin(index, UseDraft(at_ns, id=string(event.get("item_id"))))
        use_draft.add(piece, at_ns)
        return True

    def _read_item(self, index: int | None, item: dict[str, Any], at_ns: int, *, is_done: bool) -> bool:
        """Read an item of the answer, which has begun or is done. Returns True if it brought content."""
        turn_draft, kind = self._turn, string(item.get("type"))
        if kind == "message":
            if not is_done:
                return False
            has_content = False
            for at, part in enumerate(items(item.get("content"))):
                if (index, at) not in turn_draft.texts:
                    has_content |= add_piece(turn_draft.texts, (index, at), text_of([part]), at_ns)
            if not turn_draft.refusal.text:
                has_content |= turn_draft.refusal.add(_refusal(item), at_ns)
            return has_content
        if kind == "reasoning":
            return index not in self._thought and add_piece(turn_draft.thinking, (index, None), _thinking(item), at_ns)
        return self._read_use(index, item, at_ns, is_done=is_done) if _is_use(kind) else False

    def _read_use(self, index: int | None, item: dict[str, Any], at_ns: int, *, is_done: bool) -> bool:
        tool_use, turn_draft = use(item), self._turn
        use_draft = turn_draft.uses.get(index)
        is_new = use_draft is None
        if use_draft is None:
            use_draft = turn_draft.begin(index, UseDraft(at_ns))
        use_draft.identify(id=tool_use.id, name=tool_use.name, is_hosted=tool_use.is_hosted)
        if is_done and not use_draft.arguments.text:
            use_draft.add(tool_use.arguments, at_ns)
        for tool_return in _hosted_returns(item) if is_done and tool_use.is_hosted else ():
            self._returns[tool_return.id] = tool_return
        return is_new
