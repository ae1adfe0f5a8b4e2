"""One JSON-RPC message as a tap saw it: the noun that everything else of a transcript is made of.

Refuses to hold parsed JSON: a message keeps its bytes and reads them when asked. A struct, for the reason that `model` gives.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any

import msgspec

from .mcp.revisions import Era, era

if TYPE_CHECKING:
    from ..records import Side


class Kind(StrEnum):
    """What a payload is in JSON-RPC 2.0, or `malformed`: a payload that is none of it."""

    REQUEST = "request"
    NOTIFICATION = "notification"
    RESULT = "result"
    ERROR = "error"
    MALFORMED = "malformed"


class Message(msgspec.Struct, eq=False, gc=False):
    """One JSON-RPC message, or a malformed payload, with when, where and from whom.

    `raw` is the frame's bytes with their terminator; of a batch the member's bytes alone, of an event of SSE its data, and of an HTTP
    body that was compressed what it held. `id` is the raw token of the id,
    so that `7`, `"7"` and `7.0` differ and 30 digits stay exact; strings are spelled the shortest way. `target` is what a
    request is about: a tool's name, a resource's URI, a prompt's name. `token` is what notifications find their request by: the
    progress token that a request gives out or a progress notification names, the request id that a cancellation names.
    `flaws` names what was odd about bytes that could still be read: those of `wire.jsonrpc.Piece`, and `crlf`,
    `no-final-newline`, `damaged` (records were lost within or just before it). Of pairing they name `id-in-use` and `token-in-use`
    (a request with the id, or the progress token, of one that waits), `late-progress` (it came after the answer), and what could
    belong to several, and so belongs to none: `ambiguous-id` (an answer), `ambiguous-progress`, `ambiguous-stream` (an answer on one
    of several streams), `ambiguous-call` (a retry, or what names a task or an elicitation). `reason` says why a malformed one
    could not be read.
    """

    capture: int
    number: int
    stream: int
    sender: Side
    at_ns: int
    first_ns: int
    kind: Kind
    raw: bytes
    id: str | None = None
    method: str | None = None
    target: str | None = None
    flaws: tuple[str, ...] = ()
    reason: str = ""
    batch: bool = False
    is_error: bool = False
    """Whether this is a result with `isError: true`."""
    correlation_key: str | None = None
    unkept_bytes: int = 0
    """How many bytes it had, where past `--max-size` they were not kept and `raw` is empty."""
    result_type: str | None = None
    """What a result is instead of complete: `input_required`, `task`, `partial` (`isComplete: false`), or what an extension says."""
    revision: str | None = None
    """The revision of MCP that it is of, as it was spelled: what its `_meta` names, else that of what it answers or belongs to, else
    what was negotiated in its scope; None where nobody said any."""

    @property
    def era(self) -> Era | None:
        """The era of its revision; None where that is unknown."""
        return None if self.revision is None else era(self.revision)

    @property
    def size(self) -> int:
        """Bytes of the payload, kept or not: on stdio those on the wire."""
        return len(self.raw) + self.unkept_bytes

    @property
    def body(self) -> Any:
        """The payload, parsed with Python's `json` (integers exact); None for a malformed one. Parsed anew at each call."""
        from ..wire.jsonrpc import parse

        return None if self.kind is Kind.MALFORMED else parse(self.raw)

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
