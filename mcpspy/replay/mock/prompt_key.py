"""What makes two prompts to a model's API the same: what of a body counts, and by what a prompt is known among others like it.

Stands in the place of `question.Asking` for the model's leg. Refuses to judge what was answered.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ..compare.difference import path_of
from ..compare.ignore import pruned
from ..json.canonical import canonical, embedded
from ..json.walk import traits
from .match_key import Strictness

if TYPE_CHECKING:
    from ..compare.ignore import Ignore, Step

OF_THE_CLIENT: Final = frozenset({"metadata", "prompt_cache_key", "safety_identifier", "seed", "user"})
"""Members of a body that name who asks, or this run, and say nothing of what is asked."""

_ID_OF_USE: Final = frozenset({"tool_call_id", "tool_use_id", "call_id"})
"""Members that name a tool use."""

_USES: Final = frozenset({"function_call", "custom_tool_call", "tool_use"})
"""Types of items and blocks that are a tool use, and have its id."""

_OF_ONE_ITEM: Final = frozenset({"reasoning", "message", *_USES})
"""Types of items of responses whose `id` is a name that nothing else is asked by."""

_TURNS: Final = ("messages", "input")


class PromptRules:
    """The rules by which prompts are the same.

    By default strictness ids of tool uses count by where they stand and not by their names, since some clients make up their own;
    arguments that the model wrote as text count as the JSON that they are, and tools in whatever order they are offered: clients
    ask several servers for theirs at once.
    """

    __slots__ = ("_ignore", "strictness")

    what: Final = "this prompt"
    counts_target: Final = True
    """Whether what a question is about, here the model, is part of what counts."""

    def __init__(self, strictness: Strictness, ignore: Ignore) -> None:
        self.strictness = strictness
        self._ignore = ignore

    def less(self) -> PromptRules:
        """The same rules, by default strictness."""
        return PromptRules(Strictness.DEFAULT, self._ignore)

    def counted(self, method: str, params: Any) -> Any:
        """What of a body counts."""
        if self.strictness is not Strictness.STRICT and isinstance(params, dict):
            names: dict[str, str] = {}
            params = {name: one for name, one in params.items() if name not in OF_THE_CLIENT}
            for name in _TURNS:
                if isinstance(turns := params.get(name), list):
                    params[name] = [_turn(turn, names) for turn in turns]
            if isinstance(offers := params.get("tools"), list):
                params["tools"] = sorted(offers, key=_name_of_offer)
        return pruned(params, self._ignore)

    def traits(self, counted: Any) -> frozenset[str]:
        """What a prompt is known by: its turns, each in its place, the words of the last one, and what it is asked with."""
        if not isinstance(counted, dict):
            return traits(counted)
        turns = next((one for name in _TURNS if isinstance(one := counted.get(name), list)), [])
        rest = {name: one for name, one in counted.items() if name not in _TURNS}
        known = {f"{at} {canonical(turn)}" for at, turn in enumerate(turns)}
        return frozenset(known) | traits(turns[-1] if turns else counted.get("input")) | traits(rest)

    def leave_out(self, steps: tuple[Step, ...]) -> str:
        """The ignore rule that leaves this place out; of turns this one alone, since others stand for others."""
        return path_of(steps)


def _name_of_offer(offer: Any) -> str:
    """By what tools are put in order."""
    inner = offer.get("function", offer) if isinstance(offer, dict) else offer
    return str(inner.get("name")) if isinstance(inner, dict) else canonical(offer)


def _turn(turn: Any, names: dict[str, str]) -> Any:
    """A turn, or an item, with ids by their place; `names` are those of the turns before."""
    if not isinstance(turn, dict):
        return turn
    made = _item(turn, names)
    if isinstance(uses := turn.get("tool_calls"), list):
        made["tool_calls"] = [_call(use, names) for use in uses]
    if isinstance(blocks := turn.get("content"), list):
        made["content"] = [_item(block, names) if isinstance(block, dict) else block for block in blocks]
    return made


def _item(item: dict[str, Any], names: dict[str, str]) -> dict[str, Any]:
    """An item, or a block, with the ids in it by their place."""
    made = {name: _named(one, names) if name in _ID_OF_USE else one for name, one in item.items()}
    kind = item.get("type")
    if "id" in made and kind in _OF_ONE_ITEM:
        if "call_id" in made or kind not in _USES:
            del made["id"]
        else:
            made["id"] = _named(made["id"], names)
    return _with_json(made)


def _call(use: Any, names: dict[str, str]) -> Any:
    """A tool use of chat completions."""
    if not isinstance(use, dict):
        return use
    made = {name: _named(one, names) if name == "id" else one for name, one in use.items()}
    if isinstance(function := use.get("function"), dict):
        made["function"] = _with_json(function)
    return made


def _with_json(use: dict[str, Any]) -> dict[str, Any]:
    """The same with arguments as the value that their text spells."""
    text = use.get("arguments")
    held = embedded(text) if isinstance(text, str) else None
    return use if held is None else {**use, "arguments": held}


def _named(name: Any, names: dict[str, str]) -> Any:
    return names.setdefault(name, f"tool use {len(names) + 1}") if isinstance(name, str) else name
