"""What a server takes of a model's context: its tools' definitions in every conversation, and the results of their calls.

Bytes are those on the wire, tokens are estimated (`tokens`) on what clients hand to a model: of a tool its name, description and
input schema, of a result its text. Refuses to say what a picture or a sound costs: that each model decides.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from ...wire.json_spans import UNREADABLE, Slice, members
from ..model import Exchange, Kind, Message, Transcript
from ..offers.definitions import Definition, DefinitionKind, Offer, offers
from .tokens import estimated_tokens, weight

TOLD: Final = ("name", "description", "inputSchema")
"""What of a tool's definition a model is told."""

_HELD_BYTES: Final = 1 << 18
"""Texts are weighed together, so many bytes at once: a call for each of a million short ones would take longer than all the rest."""

_ALL_OF: Final = 4096
_EVERY: Final = 8
"""So many results of one tool are weighed, then every eighth: reading and weighing all would be half of what pairing takes."""


@dataclass(slots=True, eq=False, kw_only=True)
class ToolCost:
    """One tool, offered or called. `definition` is None for a tool that was called and not listed.

    `result_bytes` and `result_tokens` are of all its results together; `largest` is the exchange whose result has the most bytes.
    """

    name: str
    definition: Definition | None = None
    definition_bytes: int = 0
    definition_tokens: int = 0
    calls: int = 0
    result_bytes: int = 0
    result_tokens: int = 0
    largest: Exchange | None = None


@dataclass(slots=True, eq=False, kw_only=True)
class ServerCost:
    """One capture's server: its tools, those offered first and in its order, and its instructions. `offered` is all that it defined.

    `listed` says whether a list of tools was seen at all; where it was not, nothing is known of what the tools cost.
    """

    offered: Offer
    listed: bool
    instructions_bytes: int
    instructions_tokens: int
    tools: list[ToolCost] = field(default_factory=list)

    @property
    def capture(self) -> int:
        """The index of its capture, in `Transcript.captures`."""
        return self.offered.capture_info.index

    @property
    def server(self) -> str:
        """Its lane."""
        return self.offered.capture_info.server

    @property
    def definition_bytes(self) -> int:
        """Of all its tools."""
        return sum(one.definition_bytes for one in self.tools)

    @property
    def definition_tokens(self) -> int:
        """Of all its tools; the instructions come to that."""
        return sum(one.definition_tokens for one in self.tools)

    @property
    def calls(self) -> int:
        """Of all its tools."""
        return sum(one.calls for one in self.tools)

    @property
    def result_bytes(self) -> int:
        """Of all its tools."""
        return sum(one.result_bytes for one in self.tools)

    @property
    def result_tokens(self) -> int:
        """Of all its tools."""
        return sum(one.result_tokens for one in self.tools)

    @property
    def unused(self) -> list[ToolCost]:
        """Tools that are offered and were never called."""
        return [one for one in self.tools if one.definition is not None and not one.calls]


def costs(transcript: Transcript) -> list[ServerCost]:
    """One for each capture of `transcript`, in its order. Linear in what was listed and in the tools' results."""
    weighing = [_Weighing(one) for one in offers(transcript)]
    for row in transcript.rows:
        if isinstance(row, Exchange) and row.request.method == "tools/call":
            weighing[row.capture].feed(row)
    return [one.close() for one in weighing]


def result_text(response: Message) -> bytes:
    """What of a tool's result is text for the model: its text blocks and embedded texts; without any, its structured content."""
    try:
        found = _decode(response.raw).result
    except UNREADABLE:
        return _slow_text(response.body)
    texts = [one.text or (one.resource.text if one.resource else "") for one in found.content]
    return "\n".join(texts).encode("utf-8", "replace") if any(texts) else bytes(found.structured)


class _Resource(msgspec.Struct, gc=False):
    text: str = ""


class _Block(msgspec.Struct, gc=False):
    text: str = ""
    resource: _Resource | None = None


class _Result(msgspec.Struct, gc=False, rename={"structured": "structuredContent"}):
    content: list[_Block] = []
    structured: msgspec.Raw = msgspec.Raw(b"")


class _Response(msgspec.Struct, gc=False):
    result: _Result


_decode = msgspec.json.Decoder(_Response).decode


def _slow_text(body: Any) -> bytes:
    """The text blocks of a result that is not shaped as the specification has it."""
    result = body.get("result") if isinstance(body, dict) else None
    content = result.get("content") if isinstance(result, dict) else None
    blocks = [one for one in content if isinstance(one, dict)] if isinstance(content, list) else []
    texts = [one["text"] for one in blocks if isinstance(one.get("text"), str)]
    return "\n".join(texts).encode("utf-8", "replace")


def definition_text(raw: Slice) -> bytes:
    """What of a tool's definition the model is told, as JSON."""
    found = members(raw)
    return b"{" + b",".join(b'"%s":%s' % (name.encode(), bytes(found[name])) for name in TOLD if name in found) + b"}"


class _Weighing:
    """One capture's costs on their way. `feed` takes its tool calls, `close` gives what they come to."""

    __slots__ = ("_cost", "_held", "_tools")

    def __init__(self, offered: Offer) -> None:
        instructions = offered.definitions(DefinitionKind.INSTRUCTIONS)
        self._cost = ServerCost(
            offered=offered,
            listed=DefinitionKind.TOOL in offered.current,
            instructions_bytes=sum(len(one.raw) for one in instructions),
            instructions_tokens=sum(estimated_tokens(one.raw) for one in instructions),
        )
        self._tools = {one.name: _defined(one) for one in offered.definitions(DefinitionKind.TOOL)}
        self._held: dict[str, _Held] = {}

    def feed(self, exchange: Exchange) -> None:
        name = exchange.request.target or ""
        tool = self._tools.get(name)
        if tool is None:
            tool = self._tools[name] = ToolCost(name=name)
        tool.calls += 1
        response = exchange.response
        if response is None:
            return
        size = response.size
        tool.result_bytes += size
        if tool.largest is None or tool.largest.response is None or size > tool.largest.response.size:
            tool.largest = exchange
        if response.kind is Kind.RESULT:
            held = self._held.get(name)
            if held is None:
                held = self._held[name] = _Held()
            held.feed(response)

    def close(self) -> ServerCost:
        for name, held in self._held.items():
            self._tools[name].result_tokens = held.close()
        self._cost.tools = list(self._tools.values())
        return self._cost


class _Held:
    """Results of one tool that wait to be weighed. Of very many not all are; the rest is taken to be like them, byte for byte."""

    __slots__ = ("_bytes", "_count", "_held_bytes", "_texts", "_weighed_bytes", "_weight")

    def __init__(self) -> None:
        self._bytes = 0
        self._count = 0
        self._held_bytes = 0
        self._texts: list[bytes] = []
        self._weighed_bytes = 0
        self._weight = 0

    def feed(self, response: Message) -> None:
        size = len(response.raw)
        self._bytes += size
        self._count += 1
        if self._count > _ALL_OF and self._count % _EVERY:
            return
        text = result_text(response)
        self._weighed_bytes += size
        self._texts.append(text)
        self._held_bytes += len(text)
        if self._held_bytes >= _HELD_BYTES:
            self._weigh()

    def close(self) -> int:
        self._weigh()
        return -(-self._weight * self._bytes // ((self._weighed_bytes or 1) * 1000))

    def _weigh(self) -> None:
        self._weight += weight(b"".join(self._texts))
        self._texts.clear()
        self._held_bytes = 0


def _defined(one: Definition) -> ToolCost:
    return ToolCost(
        name=one.name,
        definition=one,
        definition_bytes=len(one.raw),
        definition_tokens=estimated_tokens(definition_text(one.raw)),
    )
