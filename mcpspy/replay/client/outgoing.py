"""What goes out to a live server for what a recorded client sent: the recorded bytes, but for the values that belong to a session.

A message that holds a pseudonym never goes out: nobody here knows what was redacted. Refuses to write anything else anew.
"""

from __future__ import annotations

import re
from binascii import a2b_base64
from typing import TYPE_CHECKING, Final

from ...records import CLIENT, Frame
from ...transcript.decode import message_of
from ...transcript.model import CaptureInfo
from ...wire.edits import ValueEdit, with_values
from ...wire.jsonrpc import cut
from ..mock.templates import one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...transcript.model import Message

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


def exchanged(steps: tuple[str, ...], value: str) -> ValueEdit:
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
