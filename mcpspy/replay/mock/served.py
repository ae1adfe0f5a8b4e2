"""Replies that a mock of one server serves, out of the captures it was given.

Captures of a model API beside them are left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ...errors import AddressError, ReplayError
from ...transcript.model import Transcript
from .replies import RecordedReplies, read_replies

if TYPE_CHECKING:
    from ...transcript.http.transaction import Transaction

_REFUSED: Final = 400
_NO_ANSWERS: Final = (
    "the file that it was imported from has requests and none of their answers; record the server with mcpspy, or give a file "
    "that has both"
)


def served_replies(transcript: Transcript, address: str, *, over_http: bool) -> RecordedReplies:
    """Return the replies of the captures at `address`. With `over_http`, responses without a message are enough.

    Raises: AddressError: if they are of several servers. ReplayError: if there is nothing to serve.
    """
    captures = [capture for capture in transcript.captures if not capture.is_model]
    servers = list(dict.fromkeys((capture.header.label if capture.header else "") for capture in captures))
    if len(servers) > 1:
        raise AddressError(
            address,
            f"these are captures of {len(servers)} servers ({', '.join(servers)}), and a mock plays one; name those of one",
        )
    if transcript.captures and not captures:
        raise ReplayError(address, "it is of a model's API, which speaks HTTP alone; add --listen 127.0.0.1:0")
    replies = read_replies(transcript)
    if replies.missing_answers and not replies.has_answers and (captures[0].header and "imported" in captures[0].header.tapped):
        raise ReplayError(address, _NO_ANSWERS)
    if not replies.has_answers and not (over_http and _responses(transcript)):
        raise ReplayError(address, _why_nothing(transcript))
    return replies


def refused_statuses(transcript: Transcript) -> list[int]:
    """Return the HTTP statuses of the server's refusals, as of one that wants a login first; not those of a tap."""
    return [transaction.status for transaction in _responses(transcript) if transaction.status >= _REFUSED]


def _responses(transcript: Transcript) -> list[Transaction]:
    """List the transactions with a response of the server that says something; not those that a tap answered."""
    return [
        transaction
        for capture in transcript.captures
        for transaction in capture.transactions.values()
        if (response := transaction.response) is not None
        and not response.injected
        and (response.body_bytes or transaction.status >= _REFUSED)
    ]


def _why_nothing(transcript: Transcript) -> str:
    """Say why there is nothing to serve, and what to do."""
    statuses = refused_statuses(transcript)
    if statuses:
        counts = ", ".join(f"{status} ×{statuses.count(status)}" for status in dict.fromkeys(statuses))
        return f"its server refused everything over HTTP ({counts}), for which stdio has no words; --listen 127.0.0.1:0 serves that"
    if _responses(transcript):
        return "its server answered without messages over HTTP, for which stdio has no words; --listen 127.0.0.1:0 serves that"
    failure = next(filter(None, (capture.failed_start for capture in transcript.captures)), "")
    if failure:
        return f"its server could not be started ({failure}), so there is nothing to serve; mcpspy list names older recordings"
    if not any(capture.messages for capture in transcript.captures):
        return "it holds no messages, so there is nothing to serve; record what a client does, with mcpspy run or mcpspy proxy"
    return "it holds no messages from a server, so there is nothing to serve; mcpspy show says what happened"
