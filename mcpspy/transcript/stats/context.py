"""Offers and tool calls to the cost of a server in a model's context: definitions in every conversation, results in some.

Bytes are those on the wire. Tokens are estimated (`tokens`) on what clients hand to a model: a tool's name, description and input
schema, and the text of a result. Pictures and sounds count nothing, because each model counts them in its own way.
"""

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from ...wire.json_spans import UNREADABLE, Slice, members
from ..definitions import Definition, DefinitionKind, Offer, offers
from ..message import RESULT
from ..model import Exchange, Message, Row, Transcript
from .tokens import estimated_tokens, weight

MODEL_READS: Final = ("name", "description", "inputSchema")
"""The members of a tool's definition that clients hand to a model."""

_HELD_BYTES: Final = 1 << 18
"""The size of texts that are weighed at once: to weigh each of a million short ones would take longer than all the rest."""

_ALL_OF: Final = 4096
_EVERY: Final = 8
"""All of the first 4096 results of one tool are weighed, then every eighth: to weigh all takes half as long as to pair them."""


class ToolCost(msgspec.Struct, eq=False, kw_only=True):
    """The cost of one tool, offered or called. `definition` is None for a tool that was called and not listed.

    `result_bytes` and `result_tokens` are sums over its results; `largest` is the exchange with the largest result.
    """

    name: str
    definition: Definition | None = None
    definition_bytes: int = 0
    definition_tokens: int = 0
    calls: int = 0
    result_bytes: int = 0
    result_tokens: int = 0
    largest: Exchange | None = None
    largest_bytes: int = 0


class ServerCost(msgspec.Struct, eq=False, kw_only=True):
    """The cost of one capture's server. `tools` has the tools of its offer, in its order, then other tools that were called.

    `listed` says whether a list of tools was recorded; without one the cost of the tools is unknown.
    """

    offer: Offer
    listed: bool
    instructions_bytes: int
    instructions_tokens: int
    tools: list[ToolCost] = []

    @property
    def capture(self) -> int:
        """The index of its capture, in `Transcript.captures`."""
        return self.offer.capture_info.index

    @property
    def server(self) -> str:
        """Its lane."""
        return self.offer.capture_info.server

    @property
    def definition_bytes(self) -> int:
        """The size of all its tools' definitions."""
        return sum(tool.definition_bytes for tool in self.tools)

    @property
    def definition_tokens(self) -> int:
        """The tokens of all its tools' definitions, without the instructions."""
        return sum(tool.definition_tokens for tool in self.tools)

    @property
    def calls(self) -> int:
        """The number of calls of all its tools."""
        return sum(tool.calls for tool in self.tools)

    @property
    def result_bytes(self) -> int:
        """The size of all results."""
        return sum(tool.result_bytes for tool in self.tools)

    @property
    def result_tokens(self) -> int:
        """The tokens of all results."""
        return sum(tool.result_tokens for tool in self.tools)

    @property
    def unused(self) -> list[ToolCost]:
        """The tools that are offered and were never called."""
        return [tool for tool in self.tools if tool.definition is not None and not tool.calls]


def costs(transcript: Transcript) -> list[ServerCost]:
    """Return the cost of each capture's server, in the order of captures. Linear in the lists and in the tools' results."""
    results = CallCosts()
    results.feed(transcript.rows)
    return results.costs(offers(transcript))


class CallCosts:
    """The costs of the calls of each capture's tools: `feed` takes the rows of a transcript, some at a time.

    `known` are the tools that were called in the first capture, if somebody has counted them.
    """

    def __init__(self, known: Iterable[ToolCost] = ()) -> None:
        self._tools: dict[tuple[int, str], ToolCost] = {(0, tool.name): tool for tool in known}
        self._results: dict[tuple[int, str], _Results] = {}

    def feed(self, rows: Iterable[Row]) -> None:
        """Take in the calls among some rows."""
        for row in rows:
            if isinstance(row, Exchange) and row.request.method == "tools/call":
                self._call(row)

    def costs(self, all_offers: list[Offer]) -> list[ServerCost]:
        """Return the cost of each server, of which this is the offer."""
        for key, results in self._results.items():
            self._tools[key].result_tokens = results.close()
        return [_server_cost(offer, self._tools) for offer in all_offers]

    def _call(self, exchange: Exchange) -> int:
        """Take in a call. Return the size of its result."""
        key = exchange.request.capture, exchange.request.target or ""
        tool = self._tools.get(key)
        if tool is None:
            tool = self._tools[key] = ToolCost(name=key[1])
        tool.calls += 1
        response = exchange.response
        if response is None:
            return 0
        size = response.size
        tool.result_bytes += size
        if tool.largest is None or size > tool.largest_bytes:
            tool.largest, tool.largest_bytes = exchange, size
        if response.kind is RESULT:
            results = self._results.get(key)
            if results is None:
                results = self._results[key] = _Results()
            results.feed(response, size)
        return size


def result_text(response: Message) -> bytes:
    """Return the text that a model reads of a tool's result: its text blocks and embedded texts, or else its structured content."""
    try:
        result = _decode(response.raw).result
    except UNREADABLE:
        return _slow_text(response.body)
    texts = [block.text or (block.resource.text if block.resource else "") for block in result.content]
    return "\n".join(texts).encode("utf-8", "replace") if any(texts) else bytes(result.structured)


class _Resource(msgspec.Struct, gc=False):
    text: str = ""


class _ContentBlock(msgspec.Struct, gc=False):
    text: str = ""
    resource: _Resource | None = None


class _Result(msgspec.Struct, gc=False, rename={"structured": "structuredContent"}):
    content: list[_ContentBlock] = []
    structured: msgspec.Raw = msgspec.Raw(b"")


class _Response(msgspec.Struct, gc=False):
    result: _Result


_decode = msgspec.json.Decoder(_Response).decode


def _slow_text(body: Any) -> bytes:
    """Return the text blocks of a result of another shape than the specification wants."""
    result = body.get("result") if isinstance(body, dict) else None
    content = result.get("content") if isinstance(result, dict) else None
    blocks = [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []
    texts = [block["text"] for block in blocks if isinstance(block.get("text"), str)]
    return "\n".join(texts).encode("utf-8", "replace")


def definition_text(raw: Slice) -> bytes:
    """Return the part of a tool's definition that a model reads, as JSON."""
    parts = members(raw)
    return b"{" + b",".join(b'"%s":%s' % (name.encode(), bytes(parts[name])) for name in MODEL_READS if name in parts) + b"}"


def _server_cost(offer: Offer, called: dict[tuple[int, str], ToolCost]) -> ServerCost:
    """Join what a server offers with the costs of its calls."""
    instructions = offer.definitions(DefinitionKind.INSTRUCTIONS)
    cost = ServerCost(
        offer=offer,
        listed=DefinitionKind.TOOL in offer.current,
        instructions_bytes=sum(len(definition.raw) for definition in instructions),
        instructions_tokens=sum(estimated_tokens(definition.raw) for definition in instructions),
    )
    index = offer.capture_info.index
    tools = {definition.name: definition for definition in offer.definitions(DefinitionKind.TOOL)}
    for name, definition in tools.items():
        tool = called.get((index, name)) or ToolCost(name=name)
        tool.definition = definition
        tool.definition_bytes = len(definition.raw)
        tool.definition_tokens = estimated_tokens(definition_text(definition.raw))
        cost.tools.append(tool)
    cost.tools += [tool for (capture, name), tool in called.items() if capture == index and name not in tools]
    return cost


class _Results:
    """The results of one tool. Only a sample of very many is weighed; the others count by their bytes as the sample does."""

    __slots__ = ("_bytes", "_count", "_held_bytes", "_texts", "_weighed_bytes", "_weight")

    def __init__(self) -> None:
        self._bytes = 0
        self._count = 0
        self._held_bytes = 0
        self._texts: list[bytes] = []
        self._weighed_bytes = 0
        self._weight = 0

    def feed(self, response: Message, size: int) -> None:
        size -= response.unkept_bytes
        self._bytes += size
        self._count += 1
        if self._count <= _ALL_OF or not self._count % _EVERY:
            self._take(response, size)

    def _take(self, response: Message, size: int) -> None:
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
