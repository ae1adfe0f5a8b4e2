"""Facts that findings about models need, gathered in one pass over the model calls: tool round trips, offers, recorded tools.

Where a leg was not recorded nobody is blamed for what is not seen on it: `servers` are the captures that can tell.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ....wire.json_spans import members, string
from ...llm.model import offer_text
from ...llm.tool_names import Likeness, Tool, tool_names
from ...llm.tool_trips import result_of, tool_calls, tool_trips
from ...offers.definitions import DefinitionKind, offers
from ...offers.definitions import Offer as Defined

if TYPE_CHECKING:
    from ...llm.call import ModelCall
    from ...llm.model import ToolOffer
    from ...llm.tool_trips import ToolTrip
    from ...message import Message
    from ...model import CaptureInfo, Transcript
    from ...offers.definitions import Definition

_SURE: Final = (Likeness.SAME, Likeness.SPELLED, Likeness.OF_SERVER)


class Offered:
    """A tool as prompts offer it: the same name, description and schema. `first` is the first model call that does."""

    __slots__ = ("count", "first", "offer")

    def __init__(self, offer: ToolOffer, first: ModelCall) -> None:
        self.offer = offer
        self.first = first
        self.count = 0
        """How many prompts offer it."""

    @property
    def text(self) -> bytes:
        """What the model is told of it, as JSON."""
        return offer_text(self.offer)


class ModelFacts:
    """The model's leg of a transcript, and how it meets the servers."""

    __slots__ = (
        "calls",
        "defined",
        "tool_trips",
        "named",
        "names",
        "offered",
        "offers_of",
        "servers",
        "strangers",
        "transcript",
        "whole",
        "_joined",
        "_surely",
    )

    def __init__(self, transcript: Transcript) -> None:
        self.transcript = transcript
        self.calls: list[ModelCall] = transcript.model_calls
        self.tool_trips: list[ToolTrip] = tool_trips(transcript)
        self.whole = {one.row for one in self.calls if (answer := one.answer) is not None and answer.is_whole}
        """The rows of calls whose answers came to their end: what others want done, no client has to do."""
        self.servers: list[CaptureInfo] = [one for one in transcript.captures if not one.is_model and one.messages]
        """The captures of servers."""
        self.defined: list[Defined] = [one for one in offers(transcript) if not one.capture_info.is_model]
        calls = tool_calls(transcript)
        self.names = tool_names(transcript, calls)
        driven = {one.call.capture for one in self.tool_trips if one.call is not None}
        self.strangers = {one.capture for one in calls} - driven
        """The captures of servers that were called, and never for a tool use: by clients whose model was not recorded."""
        self.offered: dict[tuple[str, str, int], Offered] = {}
        """Tools that prompts offer; those that the API's own side runs are not among them."""
        self.offers_of: dict[int, list[Offered]] = {}
        """The same for each prompt that offers any, by the row of its call."""
        self.named: dict[int, dict[str, Offered]] = {}
        """The same by their names."""
        for call in self.calls:
            self._offers(call)
        self._joined: dict[str, set[Tool]] = {}
        for one in self.tool_trips:
            if one.call is not None:
                self._joined.setdefault(one.use.name, set()).add(Tool(one.call.capture, one.call.target or ""))
        meant = [self.names.candidates(name) for name in {one.offer.name for one in self.offered.values()}]
        self._surely = {tool for one in meant for likeness in _SURE for tool in one.get(likeness, ())}
        """Tools that some prompt offers under a name that is surely theirs."""

    def _offers(self, call: ModelCall) -> None:
        found: list[Offered] = []
        for offer in call.prompt.offers:
            if offer.is_hosted:
                continue
            key = offer.name, offer.description, offer.bytes
            known = self.offered.get(key)
            if known is None:
                known = self.offered[key] = Offered(offer, call)
            known.count += 1
            found.append(known)
        if found:
            self.offers_of[call.row] = found
            self.named[call.row] = {one.offer.name: one for one in found}

    def result(self, tool_trip: ToolTrip) -> Message | None:
        """The result of a tool round trip's call; None where there is none."""
        return None if tool_trip.call is None else result_of(self.transcript, tool_trip.call)

    def tool(self, capture: int, name: str) -> Tool:
        """The tool of this name of a server."""
        return Tool(capture, name)

    def tools(self, name: str, description: str = "") -> list[Tool]:
        """The tools of recorded servers that an offered name stands for; empty where it may as well be the client's own.

        A name that merely has a tool's name in it does so if calls were made of it, or if the descriptions agree and no other name
        is surely the tool's: else it is of a server that was not recorded, as two of the same program have the same tools.
        """
        joined = self._joined.get(name)
        if joined:
            return list(joined)
        meant = self.names.candidates(name)
        for likeness, tools in meant.items():
            if likeness in _SURE:
                return tools
            others = [one for one in tools if one not in self._surely] if description else []
            described = [one for one in others if self._description(one) == description.strip()]
            if described:
                return described
        return []

    def _description(self, tool: Tool) -> str | None:
        definition = self.definition(tool)
        said = None if definition is None else string(members(definition.raw).get("description", b""))
        return None if said is None else said.strip()

    def definition(self, tool: Tool) -> Definition | None:
        """What the server says of a tool; None where it does not list it."""
        return next(
            (
                one.current.get(DefinitionKind.TOOL, {}).get(tool.name)
                for one in self.defined
                if one.capture_info.index == tool.capture
            ),
            None,
        )

    def saw(self, capture: int, at_ns: int) -> bool:
        """Whether a server's capture would show a call at this time: it had begun, and nothing of it was lost."""
        source = self.transcript.captures[capture]
        return source.shift_ns <= at_ns and not (source.gaps or source.damages)

    def is_over(self, tool_trip: ToolTrip) -> bool:
        """Whether the client has had its time for a tool round trip: the conversation went on, or no capture grows any more."""
        return tool_trip.until_ns is not None or all(one.closed for one in self.transcript.captures)
