"""What was found when a recording was driven less and less of: the smallest sequence with which something still happened.

Refuses to be shown: `views.shrunk` does that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..transcript.mcp.methods import OPENINGS
from .client.plan import INITIALIZED, Send

if TYPE_CHECKING:
    from ..transcript.model import Exchange, Message, Transcript
    from .client.driver import Report
    from .client.plan import Plan
    from .condition import Happened


@dataclass(frozen=True, slots=True, kw_only=True)
class Shrunk:
    """The smallest sequence. `sends` are what is left of the `of` messages that the recording has behind its handshake.

    `live` are the live exchanges by recorded rows. `is_minimal` says that without any one of it, it did not happen; `runs` how
    many servers that took, `unresolved` how many of them said nothing. `path` is the capture of the run.
    """

    until: str
    happened: Happened
    sends: tuple[Send, ...]
    live: dict[int, Exchange]
    of: int
    runs: int
    unresolved: int
    is_minimal: bool
    path: str


def beyond_the_handshake(plan: Plan) -> tuple[Send, ...]:
    """What a plan sends besides the messages by which every session begins."""
    return tuple(send for send in plan.sends if not is_handshake(send.message))


def is_handshake(message: Message) -> bool:
    """Whether a session begins with it."""
    return message.method in OPENINGS or message.method == INITIALIZED


def live_rows(live: Transcript, report: Report) -> dict[int, Exchange]:
    """The client's live exchanges by the recorded rows that they are of."""
    rows = {id: row for row, id in report.sent.items()}
    return {rows[id]: one for one in live.exchanges if (id := one.request.id or "") in rows and one.sender == "client"}


def has_begun(plan: Plan, live: dict[int, Exchange]) -> bool:
    """Whether the server answered the handshake, as far as the recorded one did."""
    asked = [one for one in plan.requests if one.method in OPENINGS and one.response is not None]
    return all(one.row in live and live[one.row].response is not None for one in asked)
