"""What of captures a mock of a server serves: its answers, and over HTTP what it refused too.

Captures of a model's leg beside them are left out. Refuses to read captures.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ...errors import AddressError, ReplayError
from .replies import RecordedReplies, read_replies

if TYPE_CHECKING:
    from ...transcript.model import Transcript

_REFUSED: Final = 400


def served_replies(transcript: Transcript, what: str, *, over_http: bool) -> RecordedReplies:
    """The scenes of the captures that people call `what`; `over_http` those without an answer too, if HTTP refused something.

    Raises: AddressError: if they are of several servers. ReplayError: if there is nothing to serve.
    """
    spoken = [source for source in transcript.captures if not source.is_model]
    servers = list(dict.fromkeys((source.header.label if source.header else "") for source in spoken))
    if len(servers) > 1:
        raise AddressError(
            what,
            f"these are captures of {len(servers)} servers ({', '.join(servers)}), and a mock plays one; name those of one",
        )
    if transcript.captures and not spoken:
        raise ReplayError(what, "it is of a model's API, which speaks HTTP alone; add --listen 127.0.0.1:0")
    found = read_replies(transcript)
    if not found.has_answers and not (over_http and refused_statuses(transcript)):
        raise ReplayError(what, _nothing(transcript))
    return found


def refused_statuses(transcript: Transcript) -> list[int]:
    """The HTTP statuses by which the server refused what it was asked, as it does who wants a login first; none of a tap's own."""
    every = (one for source in transcript.captures for one in source.transactions.values())
    return [one.status for one in every if one.status >= _REFUSED and one.response is not None and not one.response.injected]


def _nothing(transcript: Transcript) -> str:
    """Why there is nothing to serve, and what to do."""
    statuses = refused_statuses(transcript)
    if statuses:
        told = ", ".join(f"{status} ×{statuses.count(status)}" for status in dict.fromkeys(statuses))
        return (
            f"its server refused everything over HTTP ({told}), for which stdio has no words; --listen 127.0.0.1:0 serves that"
        )
    if not any(source.messages for source in transcript.captures):
        return "it holds no messages, so there is nothing to serve; record what a client does, with mcpspy run or mcpspy proxy"
    return "it holds no messages from a server, so there is nothing to serve; mcpspy show says what happened"
