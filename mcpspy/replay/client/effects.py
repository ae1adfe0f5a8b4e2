"""What a recorded server said of its tools that matters before they are called again: whether they read alone, or destroy.

Annotations are what a server says of itself, and nothing is made of what it does not say. Source: MCP specification, server/tools
(ToolAnnotations, from 2025-03-26 on).
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from ...transcript.offers.definitions import Part, offers
from ..json.canonical import read

if TYPE_CHECKING:
    from ...transcript.model import Exchange, Transcript

CALL = "tools/call"


class Effect(StrEnum):
    """What sending a request again may do."""

    NONE = "none"
    """It is no call of a tool."""
    READS = "reads"
    """`readOnlyHint: true`."""
    CHANGES = "changes"
    """The tool may change something; nobody says that it does not."""
    DESTROYS = "destroys"
    """`destructiveHint: true`."""


class Effects:
    """The effects of the tools of each capture."""

    __slots__ = ("_tools",)

    def __init__(self, transcript: Transcript) -> None:
        self._tools: dict[tuple[int, str], Effect] = {}
        for offer in offers(transcript):
            for tool in offer.definitions(Part.TOOL):
                self._tools[offer.source.index, tool.name] = _effect(read(tool.raw))

    def of(self, request: Exchange) -> Effect:
        """What this request may do."""
        if request.method != CALL:
            return Effect.NONE
        return self._tools.get((request.capture, request.target or ""), Effect.CHANGES)


def _effect(tool: object) -> Effect:
    annotations = tool.get("annotations") if isinstance(tool, dict) else None
    if not isinstance(annotations, dict):
        return Effect.CHANGES
    if annotations.get("readOnlyHint") is True:
        return Effect.READS
    return Effect.DESTROYS if annotations.get("destructiveHint") is True else Effect.CHANGES
