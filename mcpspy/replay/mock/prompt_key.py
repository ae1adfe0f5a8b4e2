"""Match rules for prompts to a model's API: which part of a body is compared, and by which traits prompts are similar.

Used in place of `match_key.RequestRules` for model API traffic. Looks at prompts alone, never at their answers.
"""

from __future__ import annotations

from typing import Any, Final

from ...json_path import Step
from ..compare.difference import path_of
from ..compare.ignore import Ignore, without_ignored
from ..json_values import canonical, embedded_json, traits
from .match_key import Strictness

OF_THE_CLIENT: Final = frozenset({"metadata", "prompt_cache_key", "safety_identifier", "seed", "user"})
"""Members of a body that name the client or this run, and are no part of the prompt."""

_TOOL_USE_ID_MEMBERS: Final = frozenset({"tool_call_id", "tool_use_id", "call_id"})
"""Members that hold the id of a tool use."""

_TOOL_USE_TYPES: Final = frozenset({"function_call", "custom_tool_call", "tool_use"})
"""Types of the items and blocks that are a tool use, and have its id."""

_TYPES_WITH_OWN_ID: Final = frozenset({"reasoning", "message", *_TOOL_USE_TYPES})
"""Types of the items of responses whose `id` nothing else refers to."""

_TURNS: Final = ("messages", "input")


class PromptRules:
    """The match rules for prompts.

    With default strictness, the ids of tool uses are compared by their position, since some clients make up their own. Arguments
    that the model wrote as text are compared as the JSON that they are. Tools are compared in any order, since clients ask several
    servers for theirs at once.
    """

    __slots__ = ("_ignore", "strictness")

    subject: Final = "this prompt"
    counts_target: Final = True
    """The target is the model."""

    def __init__(self, strictness: Strictness, ignore: Ignore) -> None:
        self.strictness = strictness
        self._ignore = ignore

    def relaxed(self) -> PromptRules:
        """Return the same rules with default strictness."""
        return PromptRules(Strictness.DEFAULT, self._ignore)

    def counted(self, method: str, params: Any) -> Any:
        """Return the part of a body that is compared."""
        if self.strictness is not Strictness.STRICT and isinstance(params, dict):
            ids: dict[str, str] = {}
            params = {name: value for name, value in params.items() if name not in OF_THE_CLIENT}
            for name in _TURNS:
                if isinstance(turns := params.get(name), list):
                    params[name] = [_turn(turn, ids) for turn in turns]
            if isinstance(tools := params.get("tools"), list):
                params["tools"] = sorted(tools, key=_tool_name)
        return without_ignored(params, self._ignore)

    def traits(self, counted: Any) -> frozenset[str]:
        """Return the traits of a prompt: each turn at its place, the words of the last turn, and the other members of the body."""
        if not isinstance(counted, dict):
            return traits(counted)
        turns = next((value for name in _TURNS if isinstance(value := counted.get(name), list)), [])
        rest = {name: value for name, value in counted.items() if name not in _TURNS}
        of_turns = {f"{at} {canonical(turn)}" for at, turn in enumerate(turns)}
        return frozenset(of_turns) | traits(turns[-1] if turns else counted.get("input")) | traits(rest)

    def ignore_rule(self, steps: tuple[Step, ...]) -> str:
        """Return the ignore rule that leaves this JSON path out; of turns only this one, since each turn says something else."""
        return path_of(steps)


def _tool_name(tool: Any) -> str:
    """Return the name by which tools are sorted."""
    inner = tool.get("function", tool) if isinstance(tool, dict) else tool
    return str(inner.get("name")) if isinstance(inner, dict) else canonical(tool)


def _turn(turn: Any, ids: dict[str, str]) -> Any:
    """Replace the ids in a turn, or an item, by their position; `ids` are those of the turns before."""
    if not isinstance(turn, dict):
        return turn
    replaced = _item(turn, ids)
    if isinstance(uses := turn.get("tool_calls"), list):
        replaced["tool_calls"] = [_tool_call(use, ids) for use in uses]
    if isinstance(blocks := turn.get("content"), list):
        replaced["content"] = [_item(block, ids) if isinstance(block, dict) else block for block in blocks]
    return replaced


def _item(item: dict[str, Any], ids: dict[str, str]) -> dict[str, Any]:
    """Replace the ids in an item, or a block, by their position."""
    replaced = {name: _position(value, ids) if name in _TOOL_USE_ID_MEMBERS else value for name, value in item.items()}
    kind = item.get("type")
    if "id" in replaced and kind in _TYPES_WITH_OWN_ID:
        if "call_id" in replaced or kind not in _TOOL_USE_TYPES:
            del replaced["id"]
        else:
            replaced["id"] = _position(replaced["id"], ids)
    return _with_json(replaced)


def _tool_call(use: Any, ids: dict[str, str]) -> Any:
    """Replace the id of a tool use of chat completions by its position."""
    if not isinstance(use, dict):
        return use
    replaced = {name: _position(value, ids) if name == "id" else value for name, value in use.items()}
    if isinstance(function := use.get("function"), dict):
        replaced["function"] = _with_json(function)
    return replaced


def _with_json(use: dict[str, Any]) -> dict[str, Any]:
    """Replace arguments that are a text by the JSON value in it."""
    text = use.get("arguments")
    value = embedded_json(text) if isinstance(text, str) else None
    return use if value is None else {**use, "arguments": value}


def _position(id: Any, ids: dict[str, str]) -> Any:
    return ids.setdefault(id, f"tool use {len(ids) + 1}") if isinstance(id, str) else id
