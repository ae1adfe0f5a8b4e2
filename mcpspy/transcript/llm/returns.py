"""Which tool return answers which tool use: by the id that both name, by the turn that repeats the use, by order and content.

`feed` takes model calls in the order in which they began, `close` gives a tool round trip for each use. Refuses
to look at what servers said: `by_content` is told.
"""

from __future__ import annotations

from collections import defaultdict, deque
from typing import TYPE_CHECKING, Final

from .fidelity import Told, told
from .json_values import value_key
from .tool_trip import ToolTrip

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ..message import Message
    from ..model import Exchange
    from .call import ModelCall
    from .model import ToolReturn, ToolUse

MAX_LOOSE: Final = 32
"""So many returns of one prompt that nothing names are compared with results."""


class Returns:
    """ToolTrips, and what of them prompts tell."""

    __slots__ = ("_tool_trips", "_loose", "_of_answer", "_open", "_roots", "_seen")

    def __init__(self) -> None:
        self._tool_trips: list[ToolTrip] = []
        self._roots: dict[int, int] = {}
        """By the row of a model call that of the one which began its conversation."""
        self._of_answer: dict[int, list[ToolTrip]] = {}
        """By the row of a model call the tool round trips of its answer."""
        self._open: defaultdict[tuple[object, ...], deque[ToolTrip]] = defaultdict(deque)
        """ToolTrips without a return, by what a prompt may call them; with those that have one meanwhile."""
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
            ToolTrip(use=use, by=model_call) for use in (answer.turn.uses if answer else ()) if not use.is_hosted
        ]
        for one in made:
            self._add(one, root)
        self._tool_trips += made

    def close(self) -> list[ToolTrip]:
        """All tool round trips, in the order in which models made them."""
        return self._tool_trips

    def by_content(self, result_of: Callable[[Exchange], Message | None]) -> None:
        """Join what is left: a return with the tool round trip whose result it holds, then the only return with the only trip."""
        for model_call, returns in self._loose:
            waiting = [one for one in self._of_answer.get(model_call.before, []) if one.returned is None][:MAX_LOOSE]
            left: list[ToolReturn] = []
            for one in returns[:MAX_LOOSE]:
                found = next((tool_trip for tool_trip in waiting if _tells(one, tool_trip, result_of)), None)
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

    def _prompt(self, model_call: ModelCall, root: int, waiting: deque[ToolTrip]) -> None:
        """The returns among the turns that are new; `waiting` are the tool round trips that it may tell of, in order."""
        named: dict[str, ToolTrip] = {}
        loose: list[ToolReturn] = []
        for turn in model_call.prompt.turns[model_call.added :]:
            if turn.uses:
                waiting = self._repeated(turn.uses, root, named, model_call.at_ns) or waiting
            for one in turn.returns:
                if one.is_hosted:
                    continue
                tool_trip = named.pop(one.id, None) or (self._named(root, one.id) if one.id else _in_order(waiting, one))
                if tool_trip is None or tool_trip.returned is not None:
                    loose.append(one)
                    continue
                self._return(tool_trip, one, model_call)
                is_named = bool(one.id) and one.id == tool_trip.use.id
                tool_trip.returned_by = "id" if is_named else "name and arguments" if tool_trip.repeated_id else "order"
        if loose:
            self._loose.append((model_call, loose))

    def _repeated(self, uses: Iterable[ToolUse], root: int, named: dict[str, ToolTrip], at_ns: int) -> deque[ToolTrip]:
        """The tool round trips that an assistant's turn repeats: `named` by the ids that it gives them."""
        found: deque[ToolTrip] = deque()
        for use in uses:
            tool_trip = self._named(root, use.id) if use.id else None
            if tool_trip is None and use.id not in self._seen:
                tool_trip = self._like(root, use, at_ns)
            if tool_trip is not None:
                found.append(tool_trip)
                if use.id:
                    named[use.id] = tool_trip
        return found

    def _named(self, root: int, id: str) -> ToolTrip | None:
        """The last tool round trip of this id that has no return: in this conversation, else in any."""
        for key in ((root, "id", id), ("id", id)):
            queue = self._open.get(key)
            while queue:
                if queue[-1].returned is None:
                    return queue[-1]
                queue.pop()
        return None

    def _like(self, root: int, use: ToolUse, at_ns: int) -> ToolTrip | None:
        """The first tool round trip of this name and these arguments that has no return, which a prompt calls by another id."""
        called = "use", use.name, value_key(use.arguments)
        for key in ((root, *called), called):
            queue = self._open.get(key)
            while queue and queue[0].use.at_ns <= at_ns:
                tool_trip = queue.popleft()
                if tool_trip.returned is None and not tool_trip.repeated_id:
                    if use.id and use.id != tool_trip.use.id:
                        tool_trip.repeated_id = use.id
                        self._add_id(tool_trip, root, use.id)
                    return tool_trip
        return None

    def _add(self, tool_trip: ToolTrip, root: int) -> None:
        use = tool_trip.use
        called = "use", use.name, value_key(use.arguments)
        self._open[(root, *called)].append(tool_trip)
        self._open[called].append(tool_trip)
        if use.id:
            self._add_id(tool_trip, root, use.id)

    def _add_id(self, tool_trip: ToolTrip, root: int, id: str) -> None:
        self._seen.add(id)
        self._open[root, "id", id].append(tool_trip)
        self._open["id", id].append(tool_trip)

    def _return(self, tool_trip: ToolTrip, returned: ToolReturn, model_call: ModelCall) -> None:
        tool_trip.returned, tool_trip.returned_in = returned, model_call


def _in_order(waiting: deque[ToolTrip], returned: ToolReturn) -> ToolTrip | None:
    """The first that waits; where the return names a tool, the first of that."""
    for _ in range(len(waiting)):
        tool_trip = waiting.popleft()
        if tool_trip.returned is None and returned.name in ("", tool_trip.use.name):
            return tool_trip
        waiting.append(tool_trip)
    return None


def _tells(returned: ToolReturn, tool_trip: ToolTrip, result_of: Callable[[Exchange], Message | None]) -> bool:
    result = None if tool_trip.call is None else result_of(tool_trip.call)
    return result is not None and told(returned.text, result) is Told.WHOLE
