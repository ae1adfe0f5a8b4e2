"""How OpenAI's responses spell a prompt and an answer, whole or in events.

Source: OpenAI's API reference, `POST /responses` and its streaming events. Refuses to raise, whatever comes.
"""

from __future__ import annotations

from typing import Any, Final

from .drafts import Flaws, TurnDraft, UseDraft, piece_of
from .json_values import argument_text, error_text, integer, items, json_text, members, size_bytes, string, value
from .model import Answer, Prompt, ToolOffer, ToolReturn, ToolUse, Turn, Usage
from .parts import joined, text_of
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
_CALLED: Final = {"computer_use_preview": "computer"}
"""What the uses of a tool without a name are called, where that is not what its offer is."""
_OFFERED_TO_CLIENTS: Final = {"function", "custom", "computer_use_preview", "computer", "local_shell", "shell", "apply_patch"}


def prompt(body: dict[str, Any]) -> Prompt:
    """The prompt in the body of a request. `instructions` are its first turn."""
    said, given = string(body.get("instructions")), body.get("input")
    turns = [Turn(role="system", text=said)] if said else []
    turns += [Turn(role="user", text=given)] if isinstance(given, str) else [turn(one) for one in items(given)]
    in_text = [one for made in turns if made.role in ("system", "developer") for one in offers_in(made.text)]
    return Prompt(
        model=string(body.get("model")),
        turns=tuple(turns),
        offers=(*(offer(one) for tool in items(body.get("tools")) for one in _each(tool)), *in_text),
        is_streamed=body.get("stream") is True,
        continues=string(body.get("previous_response_id")),
    )


def turn(item: Any) -> Turn:
    """One item of `input`, each of which is a turn: a message, a use, a return, what the model thought."""
    one = members(item)
    kind = string(one.get("type"))
    if kind.endswith("_output"):
        return Turn(role="tool", returns=(_returned(one),))
    if _is_use(kind):
        return Turn(role="assistant", uses=(use(one),), returns=_hosted_returns(one))
    if kind == "reasoning":
        return Turn(role="assistant", thinking=_thinking(one))
    text = text_of(one.get("content"))
    if not kind or kind == "message":
        role = string(one.get("role"))
        uses = tuple(found for found, _ in uses_in(text)) if role == "assistant" else ()
        return Turn(role=role, text=text, refusal=_refusal(one), uses=uses)
    return Turn(role=string(one.get("role")) or "user", text=text or f"[{kind} {string(one.get('id'))}]".replace(" ]", "]"))


def use(item: dict[str, Any]) -> ToolUse:
    """An item in which the model wants a tool called, or the API has called one itself."""
    kind = string(item.get("type"))
    return ToolUse(
        id=string(item.get("call_id")) or string(item.get("id")),
        name=string(item.get("name")) or kind.removesuffix("_call"),
        arguments=_arguments(item),
        is_hosted=kind not in _CLIENT_RUNS,
    )


def offer(tool: Any) -> ToolOffer:
    """One member of `tools`."""
    one = members(tool)
    kind = string(one.get("type"))
    return ToolOffer(
        name=string(one.get("name")) or string(one.get("server_label")) or _CALLED.get(kind, kind),
        description=string(one.get("description")),
        schema=one.get("parameters"),
        bytes=size_bytes(tool),
        is_hosted=kind not in _OFFERED_TO_CLIENTS,
    )


def _each(tool: Any) -> list[Any]:
    """The tools that a member of `tools` stands for: those of a namespace are called by their own names."""
    within = items(members(tool).get("tools")) if members(tool).get("type") == "namespace" else []
    return within or [tool]


def usage(of: Any) -> Usage:
    """`usage` of an answer."""
    one = members(of)
    return Usage(
        input_tokens=integer(one.get("input_tokens")),
        output_tokens=integer(one.get("output_tokens")),
        cached_tokens=integer(members(one.get("input_tokens_details")).get("cached_tokens")),
        reasoning_tokens=integer(members(one.get("output_tokens_details")).get("reasoning_tokens")),
    )


def _is_use(kind: str) -> bool:
    return kind.endswith("_call")


def _arguments(item: dict[str, Any]) -> str:
    """What a use says of itself: a function has arguments, a custom tool input, others an action, a query, some code."""
    found = (
        item[name] for name in ("arguments", "input", "action", "operation", "queries", "code") if item.get(name) is not None
    )
    return argument_text(next(found, None))


def _returned(item: dict[str, Any]) -> ToolReturn:
    """What came of a use: a text, its parts, a picture of a screen; what is none of these, as of a shell, as JSON."""
    output = item.get("output")
    parts = [output] if isinstance(output, dict) else output
    is_content = isinstance(parts, str) or (isinstance(parts, list) and all(members(one).get("type") for one in parts))
    text = text_of(parts) if is_content else json_text(output)
    return ToolReturn(id=string(item.get("call_id")), text=text, name=string(item.get("name")))


def _hosted_returns(item: dict[str, Any]) -> tuple[ToolReturn, ...]:
    """What came of a tool that the API called itself, which it says in the same item."""
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
    """The answer to a prompt of responses: a whole body, or events that name what they are.

    What deltas brought counts; what an item or the whole response at the end repeats fills in only what no delta said.
    """

    __slots__ = (
        "_deltas",
        "_draft",
        "_error",
        "_finish",
        "_flaws",
        "_is_whole",
        "_model",
        "_returns",
        "_thought",
        "_usage",
        "id",
    )

    def __init__(self) -> None:
        self._draft = TurnDraft()
        self._returns: dict[str, ToolReturn] = {}
        self._thought: set[int | None] = set()
        """The items of which deltas brought what the model thought."""
        self.id = ""
        self._model = self._finish = self._error = ""
        self._usage = Usage()
        self._deltas = 0
        self._is_whole = False
        self._flaws = Flaws()

    def whole(self, body: Any, at_ns: int) -> None:
        """A body that came in one piece."""
        self._about(members(body), at_ns)
        self._draft.is_over = True
        self._is_whole = isinstance(members(body).get("output"), list) or bool(self._error)
        if not self._is_whole:
            self._flaws.add("the body is no response")

    def refused(self, why: str) -> None:
        """The answer is an error of HTTP's."""
        self._error, self._is_whole = why, True

    def feed(self, named: str, data: bytes, at_ns: int) -> bool:
        """The next event, with its type. Whether it brought content."""
        self._deltas += 1
        if data.strip() == DONE:  # some compatible servers end with it
            return False
        if self._is_whole:
            self._flaws.add("more came after the end of the response")
        said = value(data)
        if not isinstance(said, dict):
            self._flaws.add("the data of an event is no JSON object")
            return False
        kind = string(said.get("type")) or named
        if kind.endswith(".delta"):
            return self._delta(kind, said, at_ns)
        if kind in ("response.output_item.added", "response.output_item.done"):
            return self._item(
                integer(said.get("output_index")), members(said.get("item")), at_ns, is_done=kind.endswith("done")
            )
        if kind == "error":
            error = said.get("error") or {"type": said.get("code"), "message": said.get("message")}
            self._error = error_text({"error": error}) or "an error without a word"
        elif "response" in said:
            self._about(members(said["response"]), at_ns)
            self._is_whole = self._is_whole or kind in _ENDS
        elif kind in ("", "message"):
            self._flaws.add("an event has no type")
        return False

    def close(self, *, is_cut: bool) -> None:
        """The stream ended."""
        self._draft.is_over = True

    @property
    def answer(self) -> Answer:
        """As far as it came."""
        made = self._draft.turn
        turn = Turn(
            role=made.role,
            text=made.text,
            thinking=made.thinking,
            refusal=made.refusal,
            uses=made.uses,
            returns=tuple(self._returns.values()),
        )
        return Answer(
            id=self.id,
            model=self._model,
            turn=turn,
            finish=self._finish,
            usage=self._usage,
            error=self._error,
            is_whole=self._is_whole,
            deltas=self._deltas,
            flaws=self._flaws.all,
        )

    def _about(self, response: dict[str, Any], at_ns: int) -> None:
        """What the response says of itself. The word for its end is `status`, and why it is incomplete."""
        self.id = string(response.get("id")) or self.id
        self._model = string(response.get("model")) or self._model
        status = string(response.get("status"))
        reason = string(members(response.get("incomplete_details")).get("reason"))
        self._finish = reason or (status if status not in ("in_progress", "queued") else "") or self._finish
        self._error = error_text(response) or self._error
        if isinstance(response.get("usage"), dict):
            self._usage = usage(response["usage"])
        for index, item in enumerate(items(response.get("output"))):
            self._item(index, members(item), at_ns, is_done=True)

    def _delta(self, kind: str, said: dict[str, Any], at_ns: int) -> bool:
        draft, index, piece = self._draft, integer(said.get("output_index")), string(said.get("delta"))
        match kind:
            case "response.output_text.delta":
                return piece_of(draft.texts, (index, integer(said.get("content_index"))), piece, at_ns)
            case "response.refusal.delta":
                return draft.refusal.add(piece, at_ns)
            case "response.reasoning_text.delta" | "response.reasoning_summary_text.delta":
                self._thought.add(index)
                part = integer(said.get("summary_index")), integer(said.get("content_index"))
                return piece_of(draft.thinking, (index, part), piece, at_ns)
        if not kind.endswith(("_arguments.delta", "_input.delta", "_code.delta")):
            return bool(piece)
        found = draft.uses.get(index)
        if found is None:
            self._flaws.add("a delta goes on with a tool use that none began")
            found = draft.begin(index, UseDraft(at_ns, id=string(said.get("item_id"))))
        found.add(piece, at_ns)
        return True

    def _item(self, index: int | None, item: dict[str, Any], at_ns: int, *, is_done: bool) -> bool:
        """An item of the answer: begun, or whole."""
        draft, kind = self._draft, string(item.get("type"))
        if kind == "message":
            if not is_done:
                return False
            brought = False
            for at, part in enumerate(items(item.get("content"))):
                if (index, at) not in draft.texts:
                    brought |= piece_of(draft.texts, (index, at), text_of([part]), at_ns)
            if not draft.refusal.text:
                brought |= draft.refusal.add(_refusal(item), at_ns)
            return brought
        if kind == "reasoning":
            return index not in self._thought and piece_of(draft.thinking, (index, None), _thinking(item), at_ns)
        return self._use(index, item, at_ns, is_done=is_done) if _is_use(kind) else False

    def _use(self, index: int | None, item: dict[str, Any], at_ns: int, *, is_done: bool) -> bool:
        said, draft = use(item), self._draft
        found = draft.uses.get(index)
        is_new = found is None
        if found is None:
            found = draft.begin(index, UseDraft(at_ns))
        found.call(id=said.id, name=said.name, is_hosted=said.is_hosted)
        if is_done and not found.arguments.text:
            found.add(said.arguments, at_ns)
        for one in _hosted_returns(item) if is_done and said.is_hosted else ():
            self._returns[one.id] = one
        return is_new
