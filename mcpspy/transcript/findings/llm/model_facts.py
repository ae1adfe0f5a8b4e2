"""Facts for findings about models, gathered in one pass over the model calls: tool round trips, offered tools, tools of servers.

`servers` are the captures of MCP servers: without them nobody is blamed for calls that are not seen.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from ....wire.json_spans import members, string
from ...definitions import DefinitionKind, Offer, offers
from ...llm.prompt import offer_text
from ...llm.tool_names import PREFIX, SURE, Tool, bare_name, tool_names
from ...llm.tool_trips import arguments_of, result_of, tool_calls, tool_trips

if TYPE_CHECKING:
    from ...llm.model_call import ModelCall
    from ...llm.prompt import ToolOffer
    from ...llm.tool_trips import ToolTrip
    from ...message import Message
    from ...model import CaptureInfo, Exchange, Transcript


class OfferedTool(msgspec.Struct, eq=False):
    """A tool that prompts offer under one name, description and schema. `first` is the first model call with it."""

    offer: ToolOffer
    first: ModelCall
    count: int = 0
    """Number of prompts that offer it."""
    captures: set[int] = msgspec.field(default_factory=set)
    """The captures of those prompts."""

    @property
    def text(self) -> bytes:
        """Its definition, as JSON."""
        return offer_text(self.offer)


class ModelFacts:
    """Facts of the captures of model APIs of a transcript, and of their relation to the captures of servers."""

    __slots__ = (
        "_called", "_sure_tools", "by_name", "calls", "names", "offered", "offers_of", "server_offers", "servers", "tool_trips",
        "transcript", "undriven", "whole",
    )  # fmt: skip

    def __init__(self, transcript: Transcript) -> None:
        self.transcript = transcript
        self.calls: list[ModelCall] = transcript.model_calls
        self.tool_trips: list[ToolTrip] = tool_trips(transcript)
        self.whole = {call.row for call in self.calls if (answer := call.answer) is not None and answer.is_whole}
        """Rows of the calls with a complete answer; a client need not act on any other."""
        self.servers: list[CaptureInfo] = [
            capture for capture in transcript.captures if not capture.is_model and capture.messages
        ]
        self.server_offers: list[Offer] = [offer for offer in offers(transcript) if not offer.capture_info.is_model]
        """Tools that the servers list."""
        calls = tool_calls(transcript)
        self.names = tool_names(transcript, calls)
        driven = {trip.call.capture for trip in self.tool_trips if trip.call is not None}
        self.undriven = {call.capture for call in calls} - driven
        """Captures of servers whose calls come from no tool use: their client's model was not recorded."""
        self.offered: dict[tuple[str, str, int], OfferedTool] = {}
        """The tools that prompts offer, without those that the API itself runs, by name, description and size."""
        self.offers_of: dict[int, list[OfferedTool]] = {}
        """By the row of a model call: the tools that its prompt offers, if any."""
        self.by_name: dict[int, dict[str, OfferedTool]] = {}
        """By the row of a model call: the same, by their names."""
        for call in self.calls:
            self._read_offers(call)
        self._called: dict[str, set[Tool]] = {}
        """By the name of a use: the tools that were called for it."""
        for trip in self.tool_trips:
            if trip.call is not None:
                self._called.setdefault(trip.use.name, set()).add(Tool(trip.call.capture, trip.call.target or ""))
        candidates = [self.names.candidates(name) for name in {offered.offer.name for offered in self.offered.values()}]
        self._sure_tools = {tool for tools in candidates for likeness in SURE for tool in tools.get(likeness, ())}
        """The tools that some prompt offers under a name that is surely theirs."""

    def _read_offers(self, call: ModelCall) -> None:
        tools: list[OfferedTool] = []
        for offer in call.prompt.offers:
            if offer.is_hosted:
                continue
            key = offer.name, offer.description, offer.bytes
            offered = self.offered.get(key)
            if offered is None:
                offered = self.offered[key] = OfferedTool(offer, call)
            offered.count += 1
            offered.captures.add(call.capture)
            tools.append(offered)
        if tools:
            self.offers_of[call.row] = tools
            self.by_name[call.row] = {offered.offer.name: offered for offered in tools}

    def result(self, tool_trip: ToolTrip) -> Message | None:
        """Return the result of a tool round trip's call; None if there is none."""
        return None if tool_trip.call is None else result_of(self.transcript, tool_trip.call)

    def arguments(self, call: Exchange) -> str:
        """Return the arguments of a tool call, as JSON."""
        return arguments_of(call)

    def tool(self, capture: int, name: str) -> Tool:
        """Make the key of a server's tool."""
        return Tool(capture, name)

    def tools(self, name: str, description: str = "") -> list[Tool]:
        """Return the tools of recorded servers that an offered name means; empty if it may as well be the client's own.

        A name that merely contains a tool's name means that tool only if it was called for such a use, or if the descriptions agree
        and no other name is surely the tool's. Otherwise it may be of an unrecorded server of the same program, with the same tools.
        """
        called = self._called.get(name)
        if called:
            return list(called)
        for likeness, tools in self.names.candidates(name).items():
            if likeness in SURE:
                return tools
            others = [tool for tool in tools if tool not in self._sure_tools] if description else []
            described = [tool for tool in others if self._description(tool) == description.strip()]
            if described:
                return described
        return []

    def _description(self, tool: Tool) -> str | None:
        """Return a server's description of a tool; None if the server does not list it."""
        of_server = (offer for offer in self.server_offers if offer.capture_info.index == tool.capture)
        definition = next((offer.current.get(DefinitionKind.TOOL, {}).get(tool.name) for offer in of_server), None)
        text = None if definition is None else string(members(definition.raw).get("description", b""))
        return None if text is None else text.strip()

    def names_of(self, capture: int | None = None) -> set[str]:
        """Return the names of one server, or of all of them, as lower-case words."""
        return self.names.servers(capture)

    def is_of_a_server(self, name: str) -> bool:
        """Return whether a tool's name says that it is a server's, recorded or not."""
        bare = bare_name(name)
        return name.startswith(PREFIX) or any(bare.startswith(f"{server}_") for server in self.names_of())

    def saw(self, capture: int, at_ns: int) -> bool:
        """Return whether a server's capture would have a call at this time: it had begun, and has lost nothing."""
        info = self.transcript.captures[capture]
        return info.shift_ns <= at_ns and not (info.gaps or info.damages)

    def models_beside(self, server: int) -> set[int]:
        """Collect the captures of model APIs that overlap in time with a server's: the others are of another agent."""
        first_ns, last_ns = self._span_ns(server)
        spans = {call.capture: self._span_ns(call.capture) for call in self.calls}
        return {model for model, span in spans.items() if span[0] <= last_ns and first_ns <= span[1]}

    def _span_ns(self, capture: int) -> tuple[int, int]:
        info = self.transcript.captures[capture]
        return info.shift_ns, info.shift_ns + info.last_ns

    def is_over(self, tool_trip: ToolTrip) -> bool:
        """Return whether a client can call no more: the conversation went on, or no capture grows any more."""
        return tool_trip.until_ns is not None or all(capture.closed for capture in self.transcript.captures)
