"""The numbers and names that MCP reserves: error codes, keys of `_meta`, kinds of results; each with the revisions that have it.

Source: JSON-RPC 2.0, section 5.1; MCP specification, basic and schema of each revision. Refuses to judge: what an error is the
fault of is for findings to say.
"""

from typing import Final, Literal, NamedTuple, TypeAlias

from .revisions import FIRST_MODERN, LATEST, OLDEST, position


class ErrorCode(NamedTuple):
    """What an error code says, and in which revisions it says so."""

    name: str
    meaning: str
    first: str = OLDEST
    last: str = LATEST

    def is_in(self, revision: str) -> bool:
        """Whether `revision`, or the released one nearest to it, has it."""
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
    PARSE_ERROR: ErrorCode("ParseError", "the message is no JSON"),
    INVALID_REQUEST: ErrorCode("InvalidRequest", "the message is no valid request"),
    METHOD_NOT_FOUND: ErrorCode("MethodNotFound", "the method is not known, or not available"),
    INVALID_PARAMS: ErrorCode("InvalidParams", "the parameters are not as the method wants them"),
    INTERNAL_ERROR: ErrorCode("InternalError", "it went wrong inside"),
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
"""Codes that each implementation uses as it likes: -32019 to -32000."""

MODERN_CODES: Final = frozenset({HEADER_MISMATCH, MISSING_CAPABILITY, UNSUPPORTED_REVISION})
"""Codes that only a peer of the modern era sends: who gets one has not to fall back to `initialize`."""

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

MetaPlace: TypeAlias = Literal["request", "result", "any"]


class MetaKey(NamedTuple):
    """A key of `_meta`: where it stands, and in which revisions."""

    place: MetaPlace
    first: str = OLDEST
    last: str = LATEST
    required: bool = False
    deprecated: str = ""


_PREFIX: Final = "io.modelcontextprotocol/"

PROGRESS_TOKEN: Final = "progressToken"  # noqa: S105 - a name, no secret
PROTOCOL_VERSION: Final = f"{_PREFIX}protocolVersion"
CLIENT_CAPABILITIES: Final = f"{_PREFIX}clientCapabilities"
CLIENT_INFO: Final = f"{_PREFIX}clientInfo"
LOG_LEVEL: Final = f"{_PREFIX}logLevel"
SERVER_INFO: Final = f"{_PREFIX}serverInfo"
SUBSCRIPTION_ID: Final = f"{_PREFIX}subscriptionId"
RELATED_TASK: Final = f"{_PREFIX}related-task"
IMMEDIATE_RESPONSE: Final = f"{_PREFIX}model-immediate-response"

META_KEYS: Final[dict[str, MetaKey]] = {
    PROGRESS_TOKEN: MetaKey("request"),
    RELATED_TASK: MetaKey("any", _UNTIL_2025, _UNTIL_2025),
    IMMEDIATE_RESPONSE: MetaKey("result", _UNTIL_2025, _UNTIL_2025),
    PROTOCOL_VERSION: MetaKey("request", FIRST_MODERN, required=True),
    CLIENT_CAPABILITIES: MetaKey("request", FIRST_MODERN, required=True),
    CLIENT_INFO: MetaKey("request", FIRST_MODERN),
    LOG_LEVEL: MetaKey("request", FIRST_MODERN, deprecated=FIRST_MODERN),
    SERVER_INFO: MetaKey("result", FIRST_MODERN),
    SUBSCRIPTION_ID: MetaKey("any", FIRST_MODERN),
    "traceparent": MetaKey("any", FIRST_MODERN),
    "tracestate": MetaKey("any", FIRST_MODERN),
    "baggage": MetaKey("any", FIRST_MODERN),
}
"""The keys that MCP reserves; those of OpenTelemetry are the exception without a prefix."""

ENVELOPE: Final = (PROTOCOL_VERSION, CLIENT_CAPABILITIES, CLIENT_INFO, LOG_LEVEL)
"""What every request of the modern era repeats about its sender."""

COMPLETE: Final = "complete"
INPUT_REQUIRED: Final = "input_required"
TASK: Final = "task"
RESULT_TYPES: Final = (COMPLETE, INPUT_REQUIRED, TASK)
"""What `resultType` says from 2026-07-28 on; absent means complete. The last is of the tasks extension, and there may be others."""
