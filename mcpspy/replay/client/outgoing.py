"""What goes out to a live server for what a recorded client sent: the recorded bytes, but for the values that belong to a session.

A message that holds a pseudonym never goes out: nobody here knows what was redacted. Refuses to write anything else anew.
"""

from __future__ import annotations

import re
from binascii import a2b_base64
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from ...records import CLIENT, Frame
from ...transcript.decode import message_of
from ...transcript.model import CaptureInfo
from ...transcript.offers.definitions import DefinitionKind, offers
from ...wire.edits import ValueEdit, with_values
from ...wire.jsonrpc import cut
from ...wire.lines import one_line
from ..json.canonical import read

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ...transcript.model import Exchange, Message, Transcript
    from .correlate.model import CorrelatedValue, Correlations
    from .plan import Plan, Send


ID: Final = ("id",)
TOKEN: Final = ("params", "_meta", "progressToken")
TOLD_TOKEN: Final = ("params", "progressToken")
CANCELLED_ID: Final = ("params", "requestId")

_pseudonym = re.compile(rb"redacted-[0-9a-f]{12}(?![0-9a-f])").search
_in_base64 = re.compile(rb"(?:cmVkYWN0ZWQt|JlZGFjdGVkL[A-Za-z]|yZWRhY3RlZC[0-9])[A-Za-z0-9]{16}").finditer
_BEFORE: Final = {b"c": b"", b"J": b"AH", b"y": b"AAB"}
"""The same in base64, as shared captures hold some, and what its group begins with where it is the first, second or third of one."""


def outgoing(recorded: Message, edits: Sequence[ValueEdit] = ()) -> bytes:
    """A recorded message of the client's as it goes out: one line without its end, with these values exchanged."""
    return with_values(one_line(recorded.raw).rstrip(b"\r\n"), edits)


def value_edit(steps: tuple[str, ...], value: str) -> ValueEdit:
    """The edit that puts the token of an id, or of progress, in its place."""
    return ValueEdit(steps, value.encode("utf-8", "surrogatepass"))


def live_message(data: bytes, at_ns: int = 0) -> Message:
    """What goes out, read as a message."""
    return message_of(CaptureInfo(0), CLIENT, Frame(0, at_ns, at_ns, data), cut(data)[0])


def pseudonym(data: bytes) -> str:
    """The first pseudonym that stands in what would go out, also within a text in base64; empty if there is none."""
    texts = (a2b_base64(_BEFORE[one[0][:1]] + one[0] + b"==") for one in _in_base64(data))
    found = next(filter(None, map(_pseudonym, (data, *texts))), None)
    return found[0].decode() if found else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedMessage:
    """One message of the how many-th client, from 0. `effect` is that of a request; `refused` says why it would be held back."""

    client: int
    send: Send
    data: bytes
    effect: Effect | None = None
    carried: tuple[CorrelatedValue, ...] = ()
    refused: str = ""


def planned_messages(
    plans: Iterable[Plan], effects: Effects, correlations: Correlations, edits: Mapping[int, Sequence[ValueEdit]]
) -> list[PlannedMessage]:
    """All that would be sent, in order."""
    found: list[PlannedMessage] = []
    for client, plan in enumerate(plans):
        for send in plan.sends:
            data = with_values(outgoing(send.message), edits.get(send.row, ()))
            carried = correlations.values(send.message)
            name = pseudonym(data)
            is_given = any(name in str(one.value) for one in carried)
            found.append(
                PlannedMessage(
                    client=client,
                    send=send,
                    data=data,
                    effect=None if send.exchange is None else effects.of(send.exchange),
                    carried=carried,
                    refused=f"it holds a value that was redacted: {name}" if name and not is_given else "",
                )
            )
    return found


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
            for tool in offer.definitions(DefinitionKind.TOOL):
                self._tools[offer.capture_info.index, tool.name] = _effect(read(tool.raw))

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
