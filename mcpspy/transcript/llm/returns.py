"""Which tool return answers which tool use: by the id that both name, by the turn that repeats the use, by order and content.

A machine like all stages: `feed` takes model calls in the order in which they began, `close` gives an errand for each use. Refuses
to look at what servers said: `by_content` is told.
"""

from __future__ import annotations

from collections import defaultdict, deque
from typing import TYPE_CHECKING, Final

from .fidelity import Told, told
from .json_values import value_key
from .tool_trip import Errand

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ..message import Message
    from ..model import Exchange
    from .call import ModelCall
    from .model import ToolReturn, ToolUse

MAX_LOOSE: Final = 32
"""So many returns of one prompt that nothing names are compared with results."""


class Returns:
    """Errands, and what of them prompts tell."""

    __slots__ = ("_errands", "_loose", "_of_answer", "_open", "_roots", "_seen")

    def __init__(self) -> None:
        self._errands: list[Errand] = []
        self._roots: dict[int, int] = {}
        """By the row of a model call that of the one which began its conversation."""
        self._of_answer: dict[int, list[Errand]] = {}
        """By the row of a model call the errands of its answer."""
        self._open: defaultdict[tuple[object, ...], deque[Errand]] = defaultdict(deque)
        """Errands without a return, by what a prompt may call them; with those that have one meanwhile."""
        self._seen: set[str] = set()
        """The ids of tool uses that are known already: what repeats them is not a new spelling of another."""
        self._loose: list[tuple[ModelCall, list[ToolReturn]]] = []
        """Returns that no use was found for, by their prompts."""

    def feed(self, model_call: ModelCall) -> None:
        """Take in the prompt of a model call and then its answer."""
        root = self._roots[model_call.row] = self._roots.get(model_call.before, model_call.row)
        before = self._of_answer.get(model_call.before, [])
        for one in before:
            one.next = one.next or model_call
        self._prompt(model_call, root, deque(before))
        answer = model_call.answer
        self._of_answer[model_call.row] = made = [
            Errand(use=use, by=model_call) for use in (answer.turn.uses if answer else ()) if not use.is_hosted
        ]
        for one in made:
            self._add(one, root)
        self._errands += made

    def close(self) -> list[Errand]:
        """All errands, in the order in which models made them."""
        return self._errands

    def by_content(self, result_of: Callable[[Exchange], Message | None]) -> None:
        """Join what is left: a return with the errand whose result it tells, and the only one that is left with the only errand."""
        for model_call, returns in self._loose:
            waiting = [one for one in self._of_answer.get(model_call.before, []) if one.returned is None][:MAX_LOOSE]
            left: list[ToolReturn] = []
            for one in returns[:MAX_LOOSE]:
                found = next((errand for errand in waiting if _tells(one, errand, result_of)), None)
                if found is None:
                    left.append(one)
                else:
                    waiting.remove(found)
                    self._return(found, one, model_call)
                    found.returned_by = "content"
            if len(left) == len(waiting) == 1:
                self._return(waiting[0], left[0], model_call)
                waiting[0].returned_by = "order"

    # Prompts

    def _prompt(self, model_call: ModelCall, root: int, waiting: deque[Errand]) -> None:
        """The returns among the turns that are new; `waiting` are the errands that it may tell of, in order."""
        named: dict[str, Errand] = {}
        loose: list[ToolReturn] = []
        for turn in model_call.prompt.turns[model_call.added :]:
            if turn.uses:
                waiting = self._repeated(turn.uses, root, named, model_call.at_ns) or waiting
            for one in turn.returns:
                if one.is_hosted:
                    continue
                errand = named.pop(one.id, None) or (self._named(root, one.id) if one.id else _in_order(waiting, one))
                if errand is None or errand.returned is not None:
                    loose.append(one)
                    continue
                self._return(errand, one, model_call)
                is_named = bool(one.id) and one.id == errand.use.id
                errand.returned_by = "id" if is_named else "name and arguments" if errand.repeated_id else "order"
        if loose:
            self._loose.append((model_call, loose))

    def _repeated(self, uses: Iterable[ToolUse], root: int, named: dict[str, Errand], at_ns: int) -> deque[Errand]:
        """The errands that an assistant's turn repeats: `named` by the ids that it gives them."""
        found: deque[Errand] = deque()
        for use in uses:
            errand = self._named(root, use.id) if use.id else None
            if errand is None and use.id not in self._seen:
                errand = self._like(root, use, at_ns)
            if errand is not None:
                found.append(errand)
                if use.id:
                    named[use.id] = errand
        return found

    def _named(self, root: int, id: str) -> Errand | None:
        """The last errand of this id that has no return: in this conversation, else in any."""
        for key in ((root, "id", id), ("id", id)):
            queue = self._open.get(key)
            while queue:
                if queue[-1].returned is None:
                    return queue[-1]
                queue.pop()
        return None

    def _like(self, root: int, use: ToolUse, at_ns: int) -> Errand | None:
        """The first errand of this name and these arguments that has no return, which a prompt calls by another id."""
        called = "use", use.name, value_key(use.arguments)
        for key in ((root, *called), called):
            queue = self._open.get(key)
            while queue and queue[0].use.at_ns <= at_ns:
                errand = queue.popleft()
                if errand.returned is None and not errand.repeated_id:
                    if use.id and use.id != errand.use.id:
                        errand.repeated_id = use.id
                        self._add_id(errand, root, use.id)
                    return errand
        return None

    def _add(self, errand: Errand, root: int) -> None:
        use = errand.use
        called = "use", use.name, value_key(use.arguments)
        self._open[(root, *called)].append(errand)
        self._open[called].append(errand)
        if use.id:
            self._add_id(errand, root, use.id)

    def _add_id(self, errand: Errand, root: int, id: str) -> None:
        self._seen.add(id)
        self._open[root, "id", id].append(errand)
        self._open["id", id].append(errand)

    def _return(self, errand: Errand, returned: ToolReturn, model_call: ModelCall) -> None:
        errand.returned, errand.returned_in = returned, model_call


def _in_order(waiting: deque[Errand], returned: ToolReturn) -> Errand | None:
    """The first that waits; where the return names a tool, the first of that."""
    for _ in range(len(waiting)):
        errand = waiting.popleft()
        if errand.returned is None and returned.name in ("", errand.use.name):
            return errand
        waiting.append(errand)
    return None


def _tells(returned: ToolReturn, errand: Errand, result_of: Callable[[Exchange], Message | None]) -> bool:
    result = None if errand.call is None else result_of(errand.call)
    return result is not None and told(returned.text, result) is Told.WHOLE
