"""Tool round trips: each tool use of a model, the `tools/call` that it became, and the tool return by which the model got a result.

    model's answer    use       forecast {"city":"Paris"}, id c1                   use
    to the server     call      tools/call get.forecast {"city": "Paris"}          joined_by "name and arguments"
    from the server   result    "Sunny, 21 °C"
    next prompt       return    tool result for c1: "Sunny, 21 °C"                 returned_by "id"

A call has no id in common with its use, so that it is found by time, name and arguments, in this order:

    1. the same arguments, and a name that is like the tool's (`tool_names`), the surest likeness first
    2. such a name alone: the client changed the arguments
    3. the same arguments alone: the client has names of its own

A call belongs to one use. If several calls fit, the use is joined with the first, and `candidates` counts them. A return is
found by its id; without one, by the turn that repeats the use, by the order of uses, and at last by its content. All indexes
are dictionaries or sorted by time, and few candidates are considered for each use, so that this takes time in proportion to
the traffic.

The fidelity of a return is how much of the result the client reported to the model. Clients wrap results, put lines around
them, join their blocks and rewrite JSON: a return with the same content counts as whole. Whether a change is an improvement
is not judged; a client may well shorten a long result.
"""

import json
from bisect import bisect_left
from collections import defaultdict, deque
from collections.abc import Hashable, Iterable, Iterator
from enum import StrEnum
from typing import Any, Final, Literal, TypeAlias

import msgspec

from ...lazy_pattern import lazy_pattern
from ...records import CLIENT
from ...wire.json_spans import members
from ..model import Exchange, Kind, Message, Transcript
from ..stats.context import result_text
from .json_values import read_arguments, read_json, value_key
from .model_call import ModelCall
from .prompt import ToolReturn, ToolUse
from .tool_names import SURE, Likeness, Tool, tool_names

JoinedBy: TypeAlias = Literal["name and arguments", "name", "arguments", ""]
ReturnedBy: TypeAlias = Literal["id", "name and arguments", "content", "order", ""]

MAX_UNMATCHED: Final = 32
"""Number of returns of one prompt without a use that are compared with results."""

MAX_CANDIDATES: Final = 16
"""Number of calls that are considered for one tool use; more would not make it more ambiguous."""

_NO_ARGUMENTS: Final = value_key("")

MIN_SHARED_LETTERS: Final = 16
"""A text that was cut shares at least this many letters with the beginning of the result, unless no more of it is left."""

_MARKS: Final = " \t\r\n.…[("
"""Characters between the beginning of a result and a note that it was cut."""


MAX_JSON_STARTS: Final = 20
"""The number of brackets at which JSON may begin in a return; more of them are not looked at."""

_json_start = lazy_pattern(r"[{\[]")
_DECODER: Final = json.JSONDecoder()


class ToolTrip(msgspec.Struct, eq=False, kw_only=True):
    """A tool use, its call and its return. Outside `transcript/` nothing assigns to it."""

    use: ToolUse
    used_in: ModelCall
    """The model call whose answer holds the use."""
    call: Exchange | None = None
    """The `tools/call` that it became, the first of them if it took several rounds; None if none was recorded."""
    joined_by: JoinedBy = ""
    """The members that use and call have in common: with `name` alone the arguments differ, with `arguments` alone the name does."""
    candidates: int = 0
    """Number of calls that fit equally well: with 2 or more it is unknown which of them is the use's."""
    returned: ToolReturn | None = None
    """The tool return."""
    returned_in: ModelCall | None = None
    """The model call whose prompt first holds the return."""
    returned_by: ReturnedBy = ""
    """The way in which the return was found; not by the id, if ids are missing or do not match."""
    next: ModelCall | None = None
    """The next model call of the conversation, whether it holds the return or not; None if there is none."""
    repeated_id: str = ""
    """The id under which that call repeats the use, if it differs."""

    @property
    def until_ns(self) -> int | None:
        """Time by which the client had the result, since the conversation went on; None if it did not."""
        model_call = self.returned_in or self.next
        return None if model_call is None else model_call.at_ns


def tool_trips(transcript: Transcript) -> list[ToolTrip]:
    """Return a tool round trip for each tool use in an answer, in the order of the uses. Empty without a capture of a model API."""
    model_calls = transcript.model_calls
    if not model_calls:
        return []
    returns = _Returns()
    for model_call in model_calls:
        returns.feed(model_call)
    trips = returns.tool_trips
    if trips:
        _join_calls(transcript, trips)
        returns.join_by_content(transcript)
    return trips


def tool_calls(transcript: Transcript) -> list[Exchange]:
    """Return the calls of tools by clients, in order; of a call of several rounds the first."""
    later = {exchange.row for call in transcript.calls for exchange in call.rounds[1:]}
    return [
        row
        for row in transcript.rows
        if isinstance(row, Exchange) and row.request.method == "tools/call" and row.sender == CLIENT and row.row not in later
    ]


def result_of(transcript: Transcript, exchange: Exchange) -> Message | None:
    """Return the response to a tool call, however many rounds or polls it took; None if there is none yet."""
    call = transcript.call_of(exchange)
    if call is None:
        return exchange.response
    return None if call.answered_by is None else call.answered_by.response


def arguments_of(exchange: Exchange) -> str:
    """Return the arguments of a tool call, as JSON."""
    arguments = members(members(exchange.request.raw).get("params", b"")).get("arguments", b"")
    return bytes(arguments).decode("utf-8", "replace")


# Uses and calls


def _join_calls(transcript: Transcript, trips: list[ToolTrip]) -> None:
    """Join uses with calls, the surest ways first, and within each way in the order of the uses."""
    calls = tool_calls(transcript)
    if not calls:
        return
    join = _Join(transcript, calls)
    in_order = sorted(trips, key=lambda trip: trip.use.at_ns or trip.used_in.at_ns)
    keys = {id(trip): value_key(trip.use.arguments) for trip in in_order}
    for likeness in Likeness:
        for trip in in_order:
            if trip.call is None:
                join.by_name_and_arguments(trip, likeness, keys[id(trip)])
    for likeness in Likeness:
        for trip in in_order:
            if trip.call is None:
                join.by_name(trip, likeness)
    for trip in in_order:
        if trip.call is None:
            join.by_arguments(trip, keys[id(trip)])


class _Queue:
    """Calls with one key. `free` leads from each call towards the next one that is not taken (union-find with path halving)."""

    __slots__ = ("calls", "free", "times")

    def __init__(self) -> None:
        self.calls: list[Exchange] = []
        self.times: list[int] = []
        self.free: list[int] = []

    def add(self, call: Exchange) -> None:
        self.free.append(len(self.calls))
        self.calls.append(call)
        self.times.append(call.at_ns)

    def first_free(self, at: int, taken: set[int]) -> int:
        """Return the first index from `at` on that is not taken; the number of calls if there is none."""
        free, calls = self.free, self.calls
        while at < len(calls):
            if free[at] == at:
                if calls[at].row not in taken:
                    return at
                free[at] = at + 1
            elif free[at] < len(calls):
                free[at] = free[free[at]]
            at = free[at]
        return len(calls)


class _CallsByKey:
    """Calls by key, which is any value that a use and a call can share. They are added in the order of time."""

    __slots__ = ("_queues", "taken")

    def __init__(self) -> None:
        self._queues: dict[Hashable, _Queue] = {}
        self.taken: set[int] = set()
        """Rows of the calls that were joined with a tool use."""

    def add(self, key: Hashable, call: Exchange) -> None:
        """Add a call under a key; it must not be earlier than the last one of that key."""
        queue = self._queues.get(key)
        if queue is None:
            queue = self._queues[key] = _Queue()
        queue.add(call)

    def fitting(self, key: Hashable, since_ns: int, until_ns: int | None) -> list[Exchange]:
        """Return the first calls with this key in a span of time that are not taken."""
        queue = self._queues.get(key)
        if queue is None:
            return []
        calls: list[Exchange] = []
        at = queue.first_free(bisect_left(queue.times, since_ns), self.taken)
        while at < len(queue.calls) and len(calls) < MAX_CANDIDATES and (until_ns is None or queue.times[at] <= until_ns):
            calls.append(queue.calls[at])
            at = queue.first_free(at + 1, self.taken)
        return calls


class _Join:
    """The calls of a transcript by tool and arguments, and the tools that a name can mean."""

    __slots__ = ("_by_key", "_names", "_transcript")

    def __init__(self, transcript: Transcript, calls: list[Exchange]) -> None:
        self._transcript = transcript
        self._names = tool_names(transcript, calls)
        self._by_key = _CallsByKey()
        for call in sorted(calls, key=lambda call: call.at_ns):
            tool, arguments = Tool(call.capture, call.target or ""), value_key(arguments_of(call))
            for key in ((tool, arguments), tool, arguments):
                self._by_key.add(key, call)

    def by_name_and_arguments(self, trip: ToolTrip, likeness: Likeness, arguments: bytes) -> None:
        """Join a use with a call of the same arguments and of a name of this likeness."""
        tools = self._names.candidates(trip.use.name).get(likeness, ())
        self._choose(trip, [(tool, arguments) for tool in tools], "name and arguments")

    def by_name(self, trip: ToolTrip, likeness: Likeness) -> None:
        """Join a use with a call of other arguments; if the name is not sure, only with a single call."""
        tools = self._names.candidates(trip.use.name).get(likeness, ())
        self._choose(trip, tools, "name", only=likeness not in SURE)

    def by_arguments(self, trip: ToolTrip, arguments: bytes) -> None:
        """Join a use with a call of the same arguments, if it has any and no server has a tool of a similar name."""
        if arguments != _NO_ARGUMENTS and not self._names.candidates(trip.use.name):
            self._choose(trip, [arguments], "arguments", only=True)

    def _choose(self, trip: ToolTrip, keys: Iterable[Hashable], joined_by: JoinedBy, *, only: bool = False) -> None:
        """Join a use with one of the calls that fit; with `only`, if a single call fits and is certain."""
        since_ns, until_ns = trip.use.at_ns or trip.used_in.at_ns, trip.until_ns
        fitting = [call for key in keys for call in self._by_key.fitting(key, since_ns, until_ns)]
        if not fitting or (only and not _is_certain(trip, fitting, joined_by)):
            return
        best = fitting if len(fitting) == 1 else self._best(trip, fitting)
        trip.call, trip.candidates, trip.joined_by = min(best, key=lambda call: call.at_ns), len(best), joined_by
        self._by_key.taken.add(trip.call.row)

    def _best(self, trip: ToolTrip, fitting: list[Exchange]) -> list[Exchange]:
        """Keep the calls that share most arguments, then those with the returned result; one if all results are equal."""
        shared = {call.row: _shared_members(trip.use.arguments, arguments_of(call)) for call in fitting}
        most = max(shared.values())
        best = [call for call in fitting if shared[call.row] == most]
        results = {call.row: result_of(self._transcript, call) for call in best}
        if trip.returned is not None and len(best) > 1:
            text = trip.returned.text
            best = [call for call in best if _is_result(text, results[call.row])] or best
        texts = {tuple(texts_of(result)) if (result := results[call.row]) is not None else None for call in best}
        return best if len(texts) > 1 else best[:1]


def _is_certain(trip: ToolTrip, fitting: list[Exchange], joined_by: JoinedBy) -> bool:
    """Return True if a single call fits; one that fits by its name alone has to share an argument too."""
    if len(fitting) > 1:
        return False
    return joined_by != "name" or _shared_members(trip.use.arguments, arguments_of(fitting[0])) > 0


def _shared_members(use_arguments: str, call_arguments: str) -> int:
    """Count the members that two objects of arguments have in common."""
    ours, theirs = read_arguments(use_arguments)[1], read_arguments(call_arguments)[1]
    if not isinstance(ours, dict) or not isinstance(theirs, dict):
        return 0
    return sum(1 for name, value in ours.items() if name in theirs and theirs[name] == value)


def _is_result(text: str, result: Message | None) -> bool:
    """Return True if the text of a return holds the whole of a result."""
    return result is not None and fidelity(text, result) is Fidelity.WHOLE


# Uses and returns


class _Returns:
    """Tool round trips with their returns, fed the model calls in the order in which they began."""

    __slots__ = ("_known_ids", "_of_answer", "_open", "_roots", "_unmatched", "tool_trips")

    def __init__(self) -> None:
        self.tool_trips: list[ToolTrip] = []
        """All tool round trips, in the order of the uses."""
        self._roots: dict[int, int] = {}
        """By the row of a model call: the row of the first one of its conversation."""
        self._of_answer: dict[int, list[ToolTrip]] = {}
        """By the row of a model call: the tool round trips of its answer."""
        self._open: defaultdict[tuple[object, ...], deque[ToolTrip]] = defaultdict(deque)
        """Tool round trips without a return, by each key under which a prompt may name them. Some may have got one since."""
        self._known_ids: set[str] = set()
        """The ids of all uses so far: a turn that names one of these does not give a new id to another use."""
        self._unmatched: list[tuple[ModelCall, list[ToolReturn]]] = []
        """Returns without a use, by their prompts."""

    def feed(self, model_call: ModelCall) -> None:
        """Take in the prompt of a model call and then its answer."""
        root = self._roots[model_call.row] = self._roots.get(model_call.before, model_call.row)
        before = self._of_answer.get(model_call.before, [])
        for trip in before:
            trip.next = trip.next or model_call
        self._read_prompt(model_call, root, deque(before))
        answer = model_call.answer
        uses = answer.turn.uses if answer else ()
        trips = self._of_answer[model_call.row] = [ToolTrip(use=use, used_in=model_call) for use in uses if not use.is_hosted]
        for trip in trips:
            self._add(trip, root)
        self.tool_trips += trips

    def join_by_content(self, transcript: Transcript) -> None:
        """Join each unmatched return with the use whose result it holds; if one use and one return are left, those two."""
        for model_call, returns in self._unmatched:
            waiting = [trip for trip in self._of_answer.get(model_call.before, []) if trip.returned is None][:MAX_UNMATCHED]
            left: list[ToolReturn] = []
            for tool_return in returns[:MAX_UNMATCHED]:
                trip = next((trip for trip in waiting if _holds_result(tool_return, trip, transcript)), None)
                if trip is None:
                    left.append(tool_return)
                else:
                    waiting.remove(trip)
                    _set_return(trip, tool_return, model_call, "content")
            if len(left) == len(waiting) == 1:
                _set_return(waiting[0], left[0], model_call, "order")

    def _read_prompt(self, model_call: ModelCall, root: int, waiting: deque[ToolTrip]) -> None:
        """Join the returns in the new turns of a prompt; `waiting` are the uses that they may answer, in order."""
        named: dict[str, ToolTrip] = {}
        unmatched: list[ToolReturn] = []
        for turn in model_call.prompt.turns[model_call.added :]:
            if turn.uses:
                waiting = self._repeated(turn.uses, root, named, model_call.at_ns) or waiting
            for tool_return in turn.returns:
                if tool_return.is_hosted:
                    continue
                id = tool_return.id
                trip = named.pop(id, None) or (self._with_id(root, id) if id else _next_in_order(waiting, tool_return))
                if trip is None or trip.returned is not None:
                    unmatched.append(tool_return)
                    continue
                is_named = bool(id) and id == trip.use.id
                _set_return(
                    trip, tool_return, model_call, "id" if is_named else "name and arguments" if trip.repeated_id else "order"
                )
        if unmatched:
            self._unmatched.append((model_call, unmatched))

    def _repeated(self, uses: Iterable[ToolUse], root: int, named: dict[str, ToolTrip], at_ns: int) -> deque[ToolTrip]:
        """Find the uses that an assistant's turn repeats, and add them to `named` by the ids that it gives them."""
        trips: deque[ToolTrip] = deque()
        for use in uses:
            trip = self._with_id(root, use.id) if use.id else None
            if trip is None and use.id not in self._known_ids:
                trip = self._with_arguments(root, use, at_ns)
            if trip is not None:
                trips.append(trip)
                if use.id:
                    named[use.id] = trip
        return trips

    def _with_id(self, root: int, id: str) -> ToolTrip | None:
        """Find the last tool round trip of this id without a return: in this conversation, else in any."""
        for key in ((root, "id", id), ("id", id)):
            queue = self._open.get(key)
            while queue:
                if queue[-1].returned is None:
                    return queue[-1]
                queue.pop()
        return None

    def _with_arguments(self, root: int, use: ToolUse, at_ns: int) -> ToolTrip | None:
        """Find the first tool round trip of this name and these arguments without a return; the prompt gives it another id."""
        key_of_use = _key(use)
        for key in ((root, *key_of_use), key_of_use):
            queue = self._open.get(key)
            while queue and queue[0].use.at_ns <= at_ns:
                trip = queue.popleft()
                if trip.returned is None and not trip.repeated_id:
                    if use.id and use.id != trip.use.id:
                        trip.repeated_id = use.id
                        self._add_id(trip, root, use.id)
                    return trip
        return None

    def _add(self, trip: ToolTrip, root: int) -> None:
        key_of_use = _key(trip.use)
        self._open[(root, *key_of_use)].append(trip)
        self._open[key_of_use].append(trip)
        if trip.use.id:
            self._add_id(trip, root, trip.use.id)

    def _add_id(self, trip: ToolTrip, root: int, id: str) -> None:
        self._known_ids.add(id)
        self._open[root, "id", id].append(trip)
        self._open["id", id].append(trip)


def _key(use: ToolUse) -> tuple[object, ...]:
    return "use", use.name, value_key(use.arguments)


def _set_return(trip: ToolTrip, tool_return: ToolReturn, model_call: ModelCall, returned_by: ReturnedBy) -> None:
    trip.returned, trip.returned_in, trip.returned_by = tool_return, model_call, returned_by


def _next_in_order(waiting: deque[ToolTrip], tool_return: ToolReturn) -> ToolTrip | None:
    """Take the first use that waits; if the return names a tool, the first use of that."""
    for _ in range(len(waiting)):
        trip = waiting.popleft()
        if trip.returned is None and tool_return.name in ("", trip.use.name):
            return trip
        waiting.append(trip)
    return None


def _holds_result(tool_return: ToolReturn, trip: ToolTrip, transcript: Transcript) -> bool:
    return trip.call is not None and _is_result(tool_return.text, result_of(transcript, trip.call))


class Fidelity(StrEnum):
    """Degrees of fidelity: the part of a result that a tool return holds."""

    WHOLE = "whole"
    CUT = "cut"
    """It begins as the result does, and ends earlier."""
    CHANGED = "changed"
    NOTHING = "nothing"
    """The return is empty, and the result is not."""


def fidelity(text: str, result: Message) -> Fidelity:
    """Compare the `text` of a tool return with a result or an error."""
    texts = texts_of(result)
    bare = text.strip()
    if all(_holds(bare, part) for part in texts) or _is_same_json(bare, texts, result):
        return Fidelity.WHOLE
    if not bare:
        return Fidelity.NOTHING
    return Fidelity.CUT if _is_cut(bare, texts) else Fidelity.CHANGED


def texts_of(result: Message) -> list[str]:
    """Return the texts of a result, which are those of its blocks, or the message of an error; none of them is empty."""
    if result.kind is Kind.ERROR:
        error = result.error
        message = error.get("message") if isinstance(error, dict) else None
        return [message.strip()] if isinstance(message, str) and message.strip() else []
    value = result.result
    content = value.get("content") if isinstance(value, dict) else None
    texts = [text.strip() for block in content if (text := _text(block))] if isinstance(content, list) else []
    if not texts:
        texts = [result_text(result).decode("utf-8", "replace").strip()]
    return [text for text in texts if text]


def text_sizes(text: str, result: Message) -> tuple[int, int]:
    """Measure the text of a return, and that of the result, in bytes."""
    return len(text.encode("utf-8", "replace")), sum(len(part.encode("utf-8", "replace")) for part in texts_of(result))


def _text(block: Any) -> str:
    if not isinstance(block, dict):
        return ""
    resource = block.get("resource")
    text = block.get("text", resource.get("text") if isinstance(resource, dict) else None)
    return text if isinstance(text, str) else ""


def _holds(text: str, part: str) -> bool:
    """Return True if `part` is in `text`, as it is or as a JSON string."""
    if part in text:
        return True
    return any(json.dumps(part, ensure_ascii=is_escaped)[1:-1] in text for is_escaped in (False, True))


def _is_same_json(text: str, texts: list[str], result: Message) -> bool:
    """Return True if `text` holds the result by value: the JSON of its only text or its structured content, or its texts in JSON."""
    value = result.result
    structured = value.get("structuredContent") if isinstance(value, dict) else None
    keys = {value_key(_json(structured))} if structured is not None else set()
    if len(texts) == 1 and texts[0][:1] in ("{", "[") and read_json(texts[0])[0]:
        keys.add(value_key(texts[0]))
    for found in _json_values(text):
        parts = [found, *(found.values() if isinstance(found, dict) else ())]
        if any(isinstance(part, dict | list) and value_key(_json(part)) in keys for part in parts):
            return True
        strings = list(_strings(found))
        if texts and all(any(part in string for string in strings) for part in texts):
            return True
    return False


def _json_values(text: str) -> Iterator[Any]:
    """Yield the objects and arrays in a text, between lines, marks or words that a client puts around them."""
    start = 0
    for _ in range(MAX_JSON_STARTS):
        match = _json_start.search(text, start)
        if match is None:
            return
        try:
            value, start = _DECODER.raw_decode(text, match.start())
        except (ValueError, RecursionError):
            start = match.end()
        else:
            yield value


def _strings(value: Any) -> Iterator[str]:
    """Yield the strings in a JSON value, at any depth."""
    waiting = [value]
    while waiting:
        part = waiting.pop()
        if isinstance(part, str):
            yield part
        elif isinstance(part, dict | list):
            waiting += part.values() if isinstance(part, dict) else part


def _json(value: Any) -> str:
    try:
        return json.dumps(value)
    except (ValueError, RecursionError):
        return ""


def _is_cut(text: str, texts: list[str]) -> bool:
    """Return True if `text` begins as the result does, or holds one of its several blocks."""
    if len(texts) > 1 and any(_holds(text, part) for part in texts if len(part) >= MIN_SHARED_LETTERS):
        return True
    whole = "\n".join(texts)
    shared = _shared_letters(text, whole)
    return shared >= MIN_SHARED_LETTERS or (shared > 0 and shared == len(text.rstrip(_MARKS)))


def _shared_letters(text: str, whole: str) -> int:
    """Return the length of the longest beginning of `whole` that is in `text`, by bisection."""
    low, high = 0, min(len(text), len(whole))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if whole[:middle] in text else (low, middle - 1)
    return low
