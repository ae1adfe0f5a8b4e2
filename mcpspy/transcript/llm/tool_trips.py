"""Tool uses joined with what became of them: `tools/call` by time, name and arguments, tool returns by id, arguments, content, order.

A use that could be several calls is joined with the first, and says how many there were. Every index is a dictionary or sorted by
time, and few candidates are looked at each time, so that this takes time in proportion to what was said. Refuses to judge.
"""

from __future__ import annotations

from collections import defaultdict, deque
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import msgspec

from ...records import CLIENT
from ...wire.json_spans import members
from ..model import Exchange
from .calls_by_key import CallsByKey
from .fidelity import Fidelity, fidelity, texts_of
from .json_values import read_arguments, value_key
from .tool_names import Likeness, Tool, tool_names

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable

    from ..model import Message, Transcript
    from .call import ModelCall
    from .model import ToolReturn, ToolUse

JoinedBy: TypeAlias = Literal["name and arguments", "name", "arguments", ""]
ReturnedBy: TypeAlias = Literal["id", "name and arguments", "content", "order", ""]


class ToolTrip(msgspec.Struct, eq=False, kw_only=True):
    """A tool use and what became of it. Outside `transcript/` nobody assigns to it."""

    use: ToolUse
    by: ModelCall
    """The model call whose answer holds the use."""
    call: Exchange | None = None
    """The `tools/call` that it became, the first of them where it took several rounds; None if none was seen."""
    joined_by: JoinedBy = ""
    """What the two have in common; `name` alone says that the arguments differ, `arguments` that the name does."""
    candidates: int = 0
    """How many calls it could be, none of them surer than the others: 2 or more say that nobody knows."""
    returned: ToolReturn | None = None
    """What the model was told that came of it."""
    returned_in: ModelCall | None = None
    """The model call whose prompt tells it first."""
    returned_by: ReturnedBy = ""
    """How that was found; by anything but the id, where ids are missing or do not match."""
    next: ModelCall | None = None
    """The model call that goes on with the conversation, whether it tells of this or not; None if none does."""
    repeated_id: str = ""
    """The id under which that one repeats the use, where it is another one."""

    @property
    def until_ns(self) -> int | None:
        """When the client must have been done with it: as the conversation went on; None while it does not."""
        model_call = self.returned_in or self.next
        return None if model_call is None else model_call.at_ns


_SURE: Final = (Likeness.SAME, Likeness.SPELLED, Likeness.OF_SERVER)
"""What a name has to be like, for the name alone to be enough."""

_NO_ARGUMENTS: Final = value_key("")


def tool_trips(transcript: Transcript) -> list[ToolTrip]:
    """One for each tool use in an answer, in the order in which models made them. Empty where no model was recorded."""
    model_calls = transcript.model_calls
    if not model_calls:
        return []
    returns = Returns()
    for one in model_calls:
        returns.feed(one)
    found = returns.close()
    if found:
        _join_calls(transcript, found)
        returns.by_content(lambda call: result_of(transcript, call))
    return found


def tool_calls(transcript: Transcript) -> list[Exchange]:
    """What clients called, in order; of a call of several rounds the first."""
    calls = transcript.calls
    later = {one.row for call in calls for one in call.rounds[1:]}
    return [
        row
        for row in transcript.rows
        if isinstance(row, Exchange) and row.request.method == "tools/call" and row.sender == CLIENT and row.row not in later
    ]


def result_of(transcript: Transcript, exchange: Exchange) -> Message | None:
    """The answer to a tool call, however many rounds or polls it took; None where there is none yet."""
    call = transcript.call_of(exchange)
    if call is None:
        return exchange.response
    return None if call.answered_by is None else call.answered_by.response


def arguments_of(exchange: Exchange) -> str:
    """The arguments of a tool call, as JSON."""
    said = members(members(exchange.request.raw).get("params", b"")).get("arguments", b"")
    return bytes(said).decode("utf-8", "replace")


def _join_calls(transcript: Transcript, found: list[ToolTrip]) -> None:
    """Join tool round trips with calls: by name and arguments first, and by the surest names first."""
    calls = tool_calls(transcript)
    if not calls:
        return
    join = _Join(transcript, calls)
    in_order = sorted(found, key=lambda one: one.use.at_ns or one.by.at_ns)
    keys = {id(one): value_key(one.use.arguments) for one in in_order}
    for likeness in Likeness:
        for one in in_order:
            if one.call is None:
                join.exactly(one, likeness, keys[id(one)])
    for likeness in Likeness:
        for one in in_order:
            if one.call is None:
                join.by_name(one, likeness)
    for one in in_order:
        if one.call is None:
            join.by_arguments(one, keys[id(one)])


class _Join:
    """The calls of a transcript, and which tools a name may mean."""

    __slots__ = ("_by_key", "_names", "_transcript")

    def __init__(self, transcript: Transcript, calls: list[Exchange]) -> None:
        self._transcript = transcript
        self._names = tool_names(transcript, calls)
        self._by_key = CallsByKey()
        for call in sorted(calls, key=lambda one: one.at_ns):
            tool, arguments = Tool(call.capture, call.target or ""), value_key(arguments_of(call))
            for key in ((tool, arguments), tool, arguments):
                self._by_key.add(key, call)

    def exactly(self, tool_trip: ToolTrip, likeness: Likeness, arguments: bytes) -> None:
        """By a name that is so like, and the arguments."""
        tools = self._names.meant(tool_trip.use.name).get(likeness, ())
        self._choose(tool_trip, [(tool, arguments) for tool in tools], "name and arguments")

    def by_name(self, tool_trip: ToolTrip, likeness: Likeness) -> None:
        """By the name alone: then the arguments were changed on the way. A name that is less sure has to fit one call only."""
        tools = self._names.meant(tool_trip.use.name).get(likeness, ())
        self._choose(tool_trip, tools, "name", only=likeness not in _SURE)

    def by_arguments(self, tool_trip: ToolTrip, arguments: bytes) -> None:
        """By the arguments alone, if there are any and no server has a tool of such a name: then the client has its own names."""
        if arguments != _NO_ARGUMENTS and not self._names.meant(tool_trip.use.name):
            self._choose(tool_trip, [arguments], "arguments", only=True)

    def _choose(self, tool_trip: ToolTrip, keys: Iterable[Hashable], joined_by: JoinedBy, *, only: bool = False) -> None:
        since_ns, until_ns = tool_trip.use.at_ns or tool_trip.by.at_ns, tool_trip.until_ns
        fitting = [call for key in keys for call in self._by_key.fitting(key, since_ns, until_ns)]
        if not fitting or (only and not _is_certain(tool_trip, fitting, joined_by)):
            return
        best = fitting if len(fitting) == 1 else self._best(tool_trip, fitting)
        tool_trip.call, tool_trip.candidates, tool_trip.joined_by = min(best, key=lambda one: one.at_ns), len(best), joined_by
        self._by_key.taken.add(tool_trip.call.row)

    def _best(self, tool_trip: ToolTrip, fitting: list[Exchange]) -> list[Exchange]:
        """Those with whose arguments, and then with whose results, what is known agrees best; one where all say the same."""
        shared = {one.row: _shared(tool_trip.use.arguments, arguments_of(one)) for one in fitting}
        most = max(shared.values())
        best = [one for one in fitting if shared[one.row] == most]
        results = {one.row: result_of(self._transcript, one) for one in best}
        if tool_trip.returned is not None and len(best) > 1:
            text = tool_trip.returned.text
            telling = [
                one for one in best if (result := results[one.row]) is not None and fidelity(text, result) is Fidelity.WHOLE
            ]
            best = telling or best
        texts = {tuple(texts_of(result)) if (result := results[one.row]) is not None else None for one in best}
        return best if len(texts) > 1 else best[:1]


def _is_certain(tool_trip: ToolTrip, fitting: list[Exchange], joined_by: JoinedBy) -> bool:
    """Whether one call alone fits, and by a name that is not sure, one that has something else in common."""
    if len(fitting) > 1:
        return False
    return joined_by != "name" or _shared(tool_trip.use.arguments, arguments_of(fitting[0])) > 0


def _shared(asked: str, called: str) -> int:
    """How many members two objects of arguments have in common."""
    one, other = read_arguments(asked)[1], read_arguments(called)[1]
    if not isinstance(one, dict) or not isinstance(other, dict):
        return 0
    return sum(1 for name, value in one.items() if name in other and other[name] == value)


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
    return result is not None and fidelity(returned.text, result) is Fidelity.WHOLE
