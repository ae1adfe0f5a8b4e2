"""Messages: JSON-RPC messages as a tap saw them. Everything else in a transcript is made of them.

A message keeps its bytes, or leaves them in a file, and parses them on request; no parsed JSON is held. A struct, for the reasons
that `model` gives.
"""

from collections.abc import Iterable
from enum import StrEnum
from typing import Any, Final, Protocol

import msgspec

from ..records import Side
from ..wire.sse import parse
from .mcp.revisions import Era, era


class Kind(StrEnum):
    """The kind of a payload in JSON-RPC 2.0; `malformed` if it is not a message."""

    REQUEST = "request"
    NOTIFICATION = "notification"
    RESULT = "result"
    ERROR = "error"
    MALFORMED = "malformed"


REQUEST: Final = Kind.REQUEST
NOTIFICATION: Final = Kind.NOTIFICATION
RESULT: Final = Kind.RESULT
ERROR: Final = Kind.ERROR
MALFORMED: Final = Kind.MALFORMED
"""The kinds for what looks at each message: a name takes 0.01 µs, a member of an enumeration 0.07 (CPython 3.11)."""

SEALED: Final = "compressed with"
"""The beginning of the reason for a body that cannot be read because a library is not installed."""


class FrameSource(Protocol):
    """The file of a capture, which stays open."""

    def data(self, number: int, place: tuple[int, int], /) -> bytes:
        """Read the data of a frame from its line: offset and length. Raises: CaptureError: if it is not what it was."""


class Place(msgspec.Struct, eq=False, gc=False):
    """The place of a message in the file of its capture: its line, or that of the event whose data it is, by offset and length."""

    file: FrameSource
    line: tuple[int, int]
    is_event: bool = False
    size: int = 0
    """The size of the payload, once it is left there."""

    def data(self, number: int) -> bytes:
        """Read the payload of the message with this record. Raises: CaptureError: if the capture was changed since."""
        data = self.file.data(number, self.line)
        return parse(data).data or b"" if self.is_event else data


class Message(msgspec.Struct, eq=False, gc=False, array_like=True):
    """One JSON-RPC message, or a malformed payload, with its sender, its stream and its time.

    `raw` is the frame's bytes with their terminator; for a member of a batch its bytes alone, for an SSE event its data, for a
    compressed HTTP body its decoded bytes. `id` is the id key: the id exactly as it was spelled, so that `7`, `"7"` and `7.0`
    differ and 30 digits stay exact; only strings are spelled in their shortest form. `target` is what a request is about: a
    tool's name, a resource's URI, a prompt's name. `correlation_key` is the key by which notifications find their request,
    spelled as ids are: the progress token that a request gives out or a progress notification names, or the request id that a
    cancellation names.

    `flaws` names anomalies of a message that could still be read. Those of bytes are the flaws of `wire.jsonrpc.Piece`, that of the
    framing (`flaw_of`: `crlf`, `no-final-newline`), and `damaged` (records are missing within or just before it). Those of pairing
    are `id-in-use` and `token-in-use` (a request whose id, or progress token, a waiting request has), `late-progress` (after the
    answer), and for messages that could belong to several requests, and so belong to none: `ambiguous-id` (an answer),
    `ambiguous-progress`, `ambiguous-stream` (an answer on one of several streams), `ambiguous-call` (a retry, or a message that
    names a task or an elicitation). `reason` says why a malformed payload could not be read.
    """

    capture: int
    number: int
    stream: int
    sender: Side
    at_ns: int
    first_ns: int
    kind: Kind
    payload: bytes
    """Its bytes, as long as they are not left in a file: see `raw`."""
    id: str | None = None
    method: str | None = None
    target: str | None = None
    flaws: tuple[str, ...] = ()
    reason: str = ""
    batch: bytes = b""
    """The payload of the batch that it is a member of; empty if it is in none."""
    is_error: bool = False
    """True if this is a result with `isError: true`."""
    correlation_key: str | None = None
    unkept_bytes: int = 0
    """The size of a payload larger than `--max-size`, which was not kept: then `raw` is empty. Else 0."""
    result_type: str | None = None
    """The type of a result that is not complete: `input_required`, `task`, `partial` (`isComplete: false`), or that of an
    extension.
    """
    revision: str | None = None
    """Its revision of MCP, as it was spelled: the one that its `_meta` names, else that of the request it belongs to, else the
    one that was negotiated in its scope. None if nobody named any.
    """

    place: Place | None = None
    """The place where a long payload can be left; None: it is kept."""

    @property
    def raw(self) -> bytes:
        """The bytes. Raises: CaptureError: if they are read from a capture that was changed since."""
        place = self.place
        return self.payload if place is None or not place.size else place.data(self.number)

    @raw.setter
    def raw(self, raw: bytes) -> None:
        self.payload, self.place = raw, None

    def leave(self) -> None:
        """Leave the bytes in the capture's file, if they have a place there; they are read when somebody looks."""
        if self.place is not None and self.payload:
            self.place.size, self.payload = len(self.payload), b""

    @property
    def era(self) -> Era | None:
        """The era of its revision; None if that is unknown."""
        return None if self.revision is None else era(self.revision)

    @property
    def size(self) -> int:
        """The size of the payload in bytes, kept or not; on stdio with its terminator."""
        return len(self.payload) + self.unkept_bytes + (0 if self.place is None else self.place.size)

    @property
    def body(self) -> Any:
        """The payload, parsed with Python's `json` (integers exact); None for a malformed one. Parsed anew at each call."""
        from ..wire.jsonrpc import parse as parse_json

        return None if self.kind is Kind.MALFORMED else parse_json(self.raw)

    @property
    def params(self) -> Any:
        """`params` of a request or notification, parsed; None if absent."""
        return self._member("params")

    @property
    def result(self) -> Any:
        """`result` of a result, parsed; None if absent."""
        return self._member("result")

    @property
    def error(self) -> Any:
        """`error` of an error, parsed; None if absent."""
        return self._member("error")

    def _member(self, name: str) -> Any:
        body = self.body
        return body.get(name) if isinstance(body, dict) else None


MARK: Final = "intercepted"
"""The beginning of the flaws of messages on which an intercept acted, as in `intercepted: delay 3 s`."""

NOT_PASSED_ON: Final = f"{MARK}: not passed on"
"""The flaw of a request that the other side never received."""

NOT_REORDERED: Final = "reorder, no other answer came"
"""The action of an intercept that held an answer for another one, which did not come."""

CALL_OF_MCPSPY: Final = "mcpspy call"
"""The text of an intercept record in front of a message to or from `mcpspy call`, which the client neither sent nor received."""

TO_MCPSPY: Final = "mcpspy"
"""The receiver of what the server answered to `mcpspy call`, in an intercept record."""

UNREAD: Final = "its answer may be missing in the file"
"""The flaw of a request without an answer in an imported file that does not have everything that came later."""

CALLED: Final = f"{MARK}: {CALL_OF_MCPSPY}"
"""The flaw of these messages."""


def mark_words(messages: Iterable[Message]) -> str:
    """Say what intercepts did with messages: `intercepted: delay 3 s`; empty if there were none."""
    marks = [
        flaw.removeprefix(MARK).removeprefix(": ") for message in messages for flaw in message.flaws if flaw.startswith(MARK)
    ]
    if CALL_OF_MCPSPY in marks:
        return f"by {CALL_OF_MCPSPY}"
    return f"{MARK}: {', '.join(dict.fromkeys(marks))}" if marks else ""
