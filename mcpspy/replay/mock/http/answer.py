"""What a mock that listens asks of a recording, and what it is told: HTTP's side of replay, in values.

Refuses what belongs to one run: fields of one connection, dates, cookies and session ids are never played.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

from ....transcript.http.head import SESSION

if TYPE_CHECKING:
    from ....transcript.http.head import Head
    from ....transcript.message import Message

Transport: TypeAlias = Literal["streamable", "sse"]
Fields: TypeAlias = tuple[tuple[str, str], ...]


class MockAddress(NamedTuple):
    """As what the live client knows the mock: `http://127.0.0.1:49152`, and the path at which it asks in MCP."""

    origin: str
    path: str


class HttpRequest(NamedTuple):
    """A live HTTP request: its `target` is path and query, its `message` the first JSON-RPC message of a POST."""

    method: str
    target: str
    live: MockAddress
    is_authorized: bool = False
    """Whether it has an Authorization field, whatever that says."""
    message: Message | None = None


class HttpAnswer(NamedTuple):
    """A response, but for Content-Length. `ends_session` says that the session it is about is no more."""

    status: int
    reason: str = ""
    fields: Fields = ()
    body: bytes = b""
    ends_session: bool = False


class AnswerShape(NamedTuple):
    """How the answer to an exchange went out: as a stream of events or as JSON, and with which fields besides those of its body."""

    status: int = 200
    is_stream: bool = False
    fields: Fields = ()
    ends_session: bool = False


class EventStyle(NamedTuple):
    """How a server writes its events. With `ids` a broken stream can be resumed; `primes`: the first is empty but for its id."""

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

_is_name = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+").fullmatch
_is_value = re.compile(r"[\t\x20-\x7e\x80-\U0010ffff]*").fullmatch


def playable_fields(head: Head) -> Fields:
    """The fields of a recorded response that mean something to another client, in their order. What is no field is left out."""
    own = {name.strip().lower() for name in head.get("connection").split(",")} | _OF_ONE_RUN
    return tuple(
        (name, value) for name, value in head.fields if name.lower() not in own and _is_name(name) and _is_value(value)
    )


def without_type(fields: Fields) -> Fields:
    """The same for a body that is made anew."""
    return tuple(one for one in fields if one[0].lower() != "content-type")
