"""Findings about timeouts: requests that were given up after a round number of seconds."""

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
    what="A request was given up after a round number of seconds (5, 10, 30, 60, 120, 300, …), as a timeout does.",
    why="The call fails with “Request timed out” (-32001 in the TypeScript SDK), which does not say which side was slow.",
    blame="The answering side: it took longer than the other side waits.",
    example=(
        '· handshake 2025-11-25, server: tools\n→ tools/call 1 {"name":"report"}\n· 60.0 s later\n'
        '→ notifications/cancelled {"requestId":1,"reason":"Request timed out"}\n· 48.0 s later\n← result 1 {"content":[]}'
    ),
    clean=(
        '· handshake 2025-11-25, server: tools\n→ tools/call 1 {"name":"report"}\n· 33.3 s later\n'
        '→ notifications/cancelled {"requestId":1,"reason":"the user changed their mind"}'
    ),
    fix="Raise the client's timeout, report progress if that extends it, or make the call faster or a task.",
)

RULES: Final = (TIMED_OUT,)

ROUND_S: Final = (5, 10, 15, 20, 30, 45, 60, 90, 120, 180, 240, 300, 600)
"""Common timeouts: 60 s in the TypeScript SDK, 300 s in Python's HTTP client, and round numbers that people set."""

_EARLY_NS: Final = 20_000_000
_LATE_NS: Final = 250_000_000
"""Delay with which a busy client may act on its timeout. It may also seem early, since its clock starts at another instant."""


def find(facts: CaptureFacts) -> Iterator[Hit]:
    """Find requests that were given up after a round number of seconds."""
    for exchange in (cancelled for cancelled in facts.cancelled if not cancelled.is_probe):
        gave_up_ns = exchange.left_ns if exchange.cancelled is None else exchange.cancelled.at_ns
        if gave_up_ns is None or (exchange.response is not None and exchange.response.at_ns <= gave_up_ns):
            continue
        waited_ns = gave_up_ns - exchange.at_ns
        limit_s = next(
            (timeout_s for timeout_s in ROUND_S if -_EARLY_NS <= waited_ns - timeout_s * 1_000_000_000 <= _LATE_NS), None
        )
        if limit_s is not None:
            yield _timeout(exchange, waited_ns)


def _timeout(exchange: Exchange, waited_ns: int) -> Hit:
    requester = exchange.sender
    responder = "server" if requester == CLIENT else "client"
    late = exchange.response
    reply = "never answered" if late is None else f"answered after {seconds(late.at_ns - exchange.at_ns)}"
    what = f"The {requester} gave up on {call_name(exchange)} after {seconds(waited_ns)}; the {responder} {reply}."
    blame = f"The {responder}: it was slower than the {seconds(waited_ns)} that the {requester} waits."
    message = exchange.cancelled or exchange.request
    return hit_in(TIMED_OUT, message, exchange.row, what, culprit=responder, blame=blame, group=f"{call_name(exchange)}")
