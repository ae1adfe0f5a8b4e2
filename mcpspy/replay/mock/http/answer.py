"""Values that a mock over HTTP exchanges with a capture: the live request, the recorded answer, and how it goes out.

Only what may be played to another client is in them: no fields of one connection, no dates, cookies or session ids.
"""

from __future__ import annotations

from typing import Final, Literal, NamedTuple, TypeAlias

from ....lazy_pattern import lazy_pattern
from ....transcript.http.head import SESSION, Head
from ....transcript.message import Message

Transport: TypeAlias = Literal["streamable", "sse"]
Fields: TypeAlias = tuple[tuple[str, str], ...]


class MockAddress(NamedTuple):
    """The address of the mock as the live client knows it: `http://127.0.0.1:49152`, and the path of its MCP endpoint."""

    origin: str
    path: str


class HttpRequest(NamedTuple):
    """A live HTTP request: its `target` is path and query, its `message` the first JSON-RPC message of a POST."""

    method: str
    target: str
    live: MockAddress
    is_authorized: bool = False
    """True if it has an Authorization field, whatever its value."""
    message: Message | None = None


class HttpAnswer(NamedTuple):
    """A response without its Content-Length. `ends_session` says that its session is over."""

    status: int
    reason: str = ""
    fields: Fields = ()
    body: bytes = b""
    ends_session: bool = False


JSON_FIELDS: Final[Fields] = (("Content-Type", "application/json"),)
STREAM_FIELDS: Final[Fields] = (("Content-Type", "text/event-stream"), ("Cache-Control", "no-cache, no-transform"))
"""The fields of a response that nobody recorded."""


class AnswerShape(NamedTuple):
    """The form in which an answer goes out: as a stream of events or as a body, and with which fields.

    `requests` is the number of requests that the recorded response answered together.
    """

    status: int = 200
    is_stream: bool = False
    fields: Fields = JSON_FIELDS
    ends_session: bool = False
    requests: int = 1

    def as_stream(self) -> AnswerShape:
        """Return the form for a stream of events, whose type is not that of a recorded body."""
        return self if self.is_stream else self._replace(is_stream=True, fields=_of_stream(self.fields))


class EventStyle(NamedTuple):
    """The form of a server's events. With `ids` a broken stream can be resumed; `primes`: the first is empty but for its id."""

    ids: bool = False
    primes: bool = False
    retry_ms: int | None = None
    is_crlf: bool = False
    names_type: bool = True


_OF_ONE_RUN: Final = frozenset(
    {
        "connection", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade", "alt-svc",
        "strict-transport-security", "content-length", "content-encoding", "content-md5", "digest", "etag", "date", "age", "expires",
        "last-modified", "set-cookie", SESSION,
    }
)  # fmt: skip
"""Fields about one connection (RFC 9110, section 7.6.1), the bytes of one body, one moment or one session."""

_is_name = lazy_pattern(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_is_value = lazy_pattern(r"[\t\x20-\x7e\x80-\U0010ffff]*")


def playable_fields(head: Head) -> Fields:
    """Keep the fields of a recorded response that mean something to another client, in their order. Malformed ones are left out."""
    left_out = {name.strip().lower() for name in head.get("connection").split(",")} | _OF_ONE_RUN
    return tuple(
        (name, value)
        for name, value in head.fields
        if name.lower() not in left_out and _is_name.fullmatch(name) and _is_value.fullmatch(value)
    )


def _of_stream(fields: Fields) -> Fields:
    names = {name.lower() for name, _ in STREAM_FIELDS}
    return (*STREAM_FIELDS, *(field for field in fields if field[0].lower() not in names))
