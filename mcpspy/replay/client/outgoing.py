"""Outgoing messages: recorded messages of a client as they are sent to a live server, and what sending them may change.

They keep the recorded bytes, except for the values that belong to a session. A message with a pseudonym is withheld, since its
original value is unknown. What a call may change is what the server says of its tools. Source of the latter: MCP specification,
server/tools (ToolAnnotations, from 2025-03-26 on).
"""

from __future__ import annotations

from binascii import a2b_base64
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from ...lazy_pattern import lazy_pattern
from ...records import CLIENT, PSEUDONYM_PATTERN, Frame
from ...transcript.definitions import DefinitionKind, offers
from ...transcript.envelope import message_of
from ...transcript.model import CaptureInfo, Exchange, Message, Transcript
from ...wire.edits import ValueEdit, with_values
from ...wire.jsonrpc import cut
from ..json_values import read
from .correlate.model import CorrelatedValue, Correlations
from .plan import Plan, Send

ID: Final = ("id",)
PROGRESS_TOKEN: Final = ("params", "_meta", "progressToken")
TOKEN_OF_PROGRESS: Final = ("params", "progressToken")
CANCELLED_ID: Final = ("params", "requestId")

CALL: Final = "tools/call"

_pseudonym = lazy_pattern(PSEUDONYM_PATTERN.encode() + rb"(?![0-9a-f])")
_in_base64 = lazy_pattern(rb"(?:cmVkYWN0ZWQt|JlZGFjdGVkL[A-Za-z]|yZWRhY3RlZC[0-9])[A-Za-z0-9]{16}")
_BEFORE: Final = {b"c": b"", b"J": b"AH", b"y": b"AAB"}
"""A pseudonym in base64, as in some shared captures: by its first letter, what comes before it in its group of four."""


def outgoing(recorded: Message, edits: Sequence[ValueEdit] = ()) -> bytes:
    """Return a recorded message as it is sent: its bytes without line ends around them, with these edits."""
    return with_values(recorded.raw.strip(b"\r\n"), edits)


def value_edit(steps: tuple[str, ...], value: str) -> ValueEdit:
    """Return the edit that puts an id, or a progress token, at its place."""
    return ValueEdit(steps, value.encode("utf-8", "surrogatepass"))


def live_message(data: bytes, at_ns: int = 0) -> Message:
    """Read what is sent as a message."""
    return message_of(CaptureInfo(0), CLIENT, Frame(0, at_ns, at_ns, data), cut(data)[0])


def pseudonym(data: bytes) -> str:
    """Return the first pseudonym in what would be sent, also within a text in base64; empty if there is none."""
    texts = (a2b_base64(_BEFORE[match[0][:1]] + match[0] + b"==") for match in _in_base64.finditer(data))
    match = next(filter(None, map(_pseudonym.search, (data, *texts))), None)
    return match[0].decode() if match else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedMessage:
    """One message of the client with this number, from 0. `effect` is that of a request; `refused` says why it would be withheld."""

    client: int
    send: Send
    data: bytes
    effect: Effect | None = None
    correlated: tuple[CorrelatedValue, ...] = ()
    refused: str = ""


def planned_messages(
    plans: Iterable[Plan], effects: Effects, correlations: Correlations, edits: Mapping[int, Sequence[ValueEdit]]
) -> list[PlannedMessage]:
    """List all messages that would be sent, in order, with the recorded values in place of the live ones."""
    planned: list[PlannedMessage] = []
    for client, plan in enumerate(plans):
        for send in plan.sends:
            data = with_values(outgoing(send.message), edits.get(send.row, ()))
            correlated = correlations.values(send.message)
            name = pseudonym(data)
            is_replaced = any(name in str(value.value) for value in correlated)
            planned.append(
                PlannedMessage(
                    client=client,
                    send=send,
                    data=data,
                    effect=None if send.exchange is None else effects.of(send.exchange),
                    correlated=correlated,
                    refused=f"it holds a value that was redacted: {name}" if name and not is_replaced else "",
                )
            )
    return planned


class Effect(StrEnum):
    """The effect that sending a request again may have."""

    NONE = "none"
    """It is no call of a tool."""
    READS = "reads"
    """`readOnlyHint: true`."""
    CHANGES = "changes"
    """The tool may change something; the server does not say that it only reads."""
    DESTROYS = "destroys"
    """`destructiveHint: true`."""


class Effects:
    """The effects of the tools of each capture."""

    __slots__ = ("_tools",)

    def __init__(self, transcript: Transcript) -> None:
        self._tools: dict[tuple[int, str], Effect] = {}
        for offer in offers(transcript):
            for tool in offer.definitions(DefinitionKind.TOOL):
                self._tools[offer.capture_info.index, tool.name] = _effect(read(tool.raw))

    def of(self, request: Exchange) -> Effect:
        """Return the effect of a request."""
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
