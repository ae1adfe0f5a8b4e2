"""Findings about patience: who gave up after how long, and whether an answer came after all."""

from collections.abc import Iterator
from typing import Final

from ....records import CLIENT
from ...model import Exchange
from ..facts import CaptureFacts
from ..rule import Family, Hit, Rule, Severity, hit_in
from ..words import call_name, seconds

TIMED_OUT: Final = Rule(
    name="timed-out",
    title="Request timed out",
    family=Family.TRANSPORT,
    severity=Severity.WARNING,
    what="A request was given up after a round time, as a timeout does: 5, 10, 30, 60, 120 or 300 seconds to a fraction.",
    why="The call fails with “Request timed out” (-32001 in the TypeScript SDK), and nobody says who was slow.",
    blame="Whoever was asked: it needed longer than the other side waits, unless that is too short.",
    example=(
        '· handshake 2025-11-25, server: tools\n→ tools/call 1 {"name":"report"}\n· 60.0 s later\n'
        '→ notifications/cancelled {"requestId":1,"reason":"Request timed out"}\n· 48.0 s later\n← result 1 {"content":[]}'
    ),
    clean=(
        '· handshake 2025-11-25, server: tools\n→ tools/call 1 {"name":"report"}\n· 33.3 s later\n'
        '→ notifications/cancelled {"requestId":1,"reason":"the user changed their mind"}'
    ),
    fix="Raise the client's timeout, or report progress if the client lets that prolong it; else make the call faster, or a task.",
)

RULES: Final = (TIMED_OUT,)

ROUND_S: Final = (5, 10, 15, 20, 30, 45, 60, 90, 120, 180, 240, 300, 600)
"""Timeouts that people set, and libraries have: the TypeScript SDK 60 s, Python's HTTP client 300 s."""

_EARLY_NS: Final = 20_000_000
_LATE_NS: Final = 250_000_000
"""So much later than the timeout a busy client may act on it. Its clock and ours begin at different instants: hence the other."""


def find(facts: CaptureFacts) -> Iterator[Hit]:
    """Requests given up after a round time."""
    for exchange in (one for one in facts.cancelled if not one.is_probe):
        gave_up_ns = exchange.left_ns if exchange.cancelled is None else exchange.cancelled.at_ns
        if gave_up_ns is None or (exchange.response is not None and exchange.response.at_ns <= gave_up_ns):
            continue
        waited_ns = gave_up_ns - exchange.at_ns
        limit_s = next((one for one in ROUND_S if -_EARLY_NS <= waited_ns - one * 1_000_000_000 <= _LATE_NS), None)
        if limit_s is not None:
            yield _timeout(exchange, waited_ns)


def _timeout(exchange: Exchange, waited_ns: int) -> Hit:
    asker = exchange.sender
    asked = "server" if asker == CLIENT else "client"
    late = exchange.response
    after = f", and answered after {seconds(late.at_ns - exchange.at_ns)}" if late is not None else ", and never answered"
    what = f"The {asker} gave up on {call_name(exchange)} after {seconds(waited_ns)}; the {asked} was still at it{after}."
    blame = f"The {asked} was slower than the {asker} waits: the limit of {seconds(waited_ns)} is the {asker}'s own."
    message = exchange.cancelled or exchange.request
    return hit_in(TIMED_OUT, message, exchange.row, what, culprit=asked, blame=blame, group=f"{call_name(exchange)}")
