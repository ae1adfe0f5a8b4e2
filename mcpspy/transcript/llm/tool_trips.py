"""Tool uses joined with what became of them: `tools/call` by time, name and arguments, tool returns by id, arguments, content, order.

A use that could be several calls is joined with the first, and says how many there were. Every index is a dictionary or sorted by
time, and few candidates are looked at each time, so that this takes time in proportion to what was said. Refuses to judge.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ...records import CLIENT
from ...wire.json_slices import members
from ..model import Exchange
from .calls_by_key import CallsByKey
from .fidelity import Told, texts_of, told
from .json_values import read_arguments, value_key
from .returns import Returns
from .tool_names import Likeness, Tool, tool_names
from .tool_trip import ToolTrip

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

    from ..model import Message, Transcript
    from .tool_trip import JoinedBy

__all__ = ["ToolTrip", "tool_trips"]

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
    return None if call.answered is None else call.answered.response


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
            telling = [one for one in best if (result := results[one.row]) is not None and told(text, result) is Told.WHOLE]
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
