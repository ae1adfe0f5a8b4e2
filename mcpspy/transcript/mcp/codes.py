"""Tables of the numbers and names that MCP reserves: error codes, keys of `_meta`, types of results, with their revisions.

Source: JSON-RPC 2.0, section 5.1; MCP specification, basic and schema of each revision.
"""

from typing import Final, NamedTuple

from .revisions import FIRST_MODERN, LATEST, OLDEST, position


class ErrorCode(NamedTuple):
    """The name and the meaning of an error code, and the revisions that have it."""

    name: str
    meaning: str
    first: str = OLDEST
    last: str = LATEST

    def is_in(self, revision: str) -> bool:
        """Return whether `revision` has it, or the released revision nearest to that one."""
        return position(self.first) <= position(revision) <= position(self.last)


_UNTIL_2025: Final = "2025-11-25"

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603
RESOURCE_NOT_FOUND: Final = -32002
HEADER_MISMATCH: Final = -32020
MISSING_CAPABILITY: Final = -32021
UNSUPPORTED_REVISION: Final = -32022
URL_ELICITATION_REQUIRED: Final = -32042
REQUEST_CANCELLED: Final = -32800

ERROR_CODES: Final[dict[int, ErrorCode]] = {
    PARSE_ERROR: ErrorCode("ParseError", "the message is not JSON"),
    INVALID_REQUEST: ErrorCode("InvalidRequest", "the message is not a valid request"),
    METHOD_NOT_FOUND: ErrorCode("MethodNotFound", "the method is unknown or not available"),
    INVALID_PARAMS: ErrorCode("InvalidParams", "the parameters are not valid for the method"),
    INTERNAL_ERROR: ErrorCode("InternalError", "an error within the receiver"),
    RESOURCE_NOT_FOUND: ErrorCode("ResourceNotFound", "there is no such resource", last=_UNTIL_2025),
    HEADER_MISMATCH: ErrorCode("HeaderMismatch", "HTTP header fields are missing, or contradict the body", FIRST_MODERN),
    MISSING_CAPABILITY: ErrorCode(
        "MissingRequiredClientCapability", "the server needs a capability that the request does not declare", FIRST_MODERN
    ),
    UNSUPPORTED_REVISION: ErrorCode("UnsupportedProtocolVersion", "the server does not speak this revision", FIRST_MODERN),
    URL_ELICITATION_REQUIRED: ErrorCode(
        "UrlElicitationRequired", "the user has to visit a URL first", _UNTIL_2025, _UNTIL_2025
    ),
}
"""The codes that JSON-RPC and MCP define."""

IMPLEMENTATION_CODES: Final = range(-32019, -31999)
"""Codes that each implementation may use as it likes: -32019 to -32000."""

MODERN_CODES: Final = frozenset({HEADER_MISMATCH, MISSING_CAPABILITY, UNSUPPORTED_REVISION})
"""Codes that only a peer of the modern era sends: a client that gets one need not fall back to `initialize`."""

HTTP_STATUSES: Final[dict[int, int]] = {
    PARSE_ERROR: 400,
    INVALID_REQUEST: 400,
    INVALID_PARAMS: 400,
    METHOD_NOT_FOUND: 404,
    HEADER_MISMATCH: 400,
    MISSING_CAPABILITY: 400,
    UNSUPPORTED_REVISION: 400,
}
"""The HTTP status with which a server answers an error from 2026-07-28 on; 200 for all others (transports/streamable-http)."""

_PREFIX: Final = "io.modelcontextprotocol/"

PROGRESS_TOKEN: Final = "progressToken"  # noqa: S105 - a name, no secret
PROTOCOL_VERSION: Final = f"{_PREFIX}protocolVersion"
CLIENT_CAPABILITIES: Final = f"{_PREFIX}clientCapabilities"
CLIENT_INFO: Final = f"{_PREFIX}clientInfo"
LOG_LEVEL: Final = f"{_PREFIX}logLevel"
SERVER_INFO: Final = f"{_PREFIX}serverInfo"
SUBSCRIPTION_ID: Final = f"{_PREFIX}subscriptionId"
RELATED_TASK: Final = f"{_PREFIX}related-task"

COMPLETE: Final = "complete"
INPUT_REQUIRED: Final = "input_required"
TASK: Final = "task"
"""Values of `resultType`, from 2026-07-28 on. Absent means complete; `task` belongs to an extension, and others may add more.
Tasks of 2025-11-25 are recognized by their shape.
"""
