"""Findings about requests that were given up: by a timeout, or for a reason that nobody states."""

import re
from collections.abc import Iterator
from typing import Final

from ....records import OTHER_SIDE
from ....wire.json_spans import members
from ...mcp.methods import INITIALIZE
from ...model import Exchange, Message
from ..facts import CaptureFacts
from ..meanwhile import FOR_PEOPLE, awaited, meanwhile_words
from ..rule import Hit, Severity, hit_in, transport_rule
from ..transport.stalls import unread_ns
from ..words import call_name, seconds

_CALL: Final = '· handshake 2025-11-25, server: tools\n→ tools/call 1 {"name":"report"}\n'

TIMED_OUT: Final = transport_rule(
    name="timed-out",
    title="Request timed out",
    what=(
        "A request was given up with a reason that names a timeout (“Request timed out”, -32001), "
        "or after the time of a common one (5, 10, 30, 60, 120, 300 s, …)."
    ),
    why="The call fails with “Request timed out” (-32001 in the TypeScript SDK), which does not say which side was slow.",
    blame="The answering side: it took longer than the other side waits.",
    example=(
        f"{_CALL}· 60.0 s later\n"
        '→ notifications/cancelled {"requestId":1,"reason":"Request timed out"}\n· 48.0 s later\n← result 1 {"content":[]}'
    ),
    clean=f'{_CALL}· 33.3 s later\n← result 1 {{"content":[]}}',
    advice="Raise the client's timeout, report progress if that extends it, or make the call faster or a task.",
)

GIVEN_UP: Final = transport_rule(
    name="given-up",
    title="Request given up",
    severity=Severity.NOTE,
    what="A request was given up before it was answered, and nothing shows that a timeout was the reason.",
    why="The caller has no result: a user changed their mind, or a client ran out of patience.",
    blame="Unclear: to cancel is allowed, and a cancelled request needs no answer.",
    example=f'{_CALL}· 3.0 s later\n→ notifications/cancelled {{"requestId":1}}',
    clean=f'{_CALL}· 3.0 s later\n← result 1 {{"content":[]}}',
    advice="If nobody cancelled it on purpose, look for a timeout in the client, and for what the server did meanwhile.",
)

RULES: Final = (TIMED_OUT, GIVEN_UP)

ROUND_S: Final = (5, 10, 15, 20, 30, 45, 60, 90, 120, 180, 240, 300, 600)
"""Common timeouts: 60 s in the TypeScript SDK, 300 s in Python's HTTP client, and round numbers that people set."""

_EARLY_NS: Final = 20_000_000
_LATE_NS: Final = 250_000_000
"""Delay with which a busy client may act on its timeout. It may also seem early, since its clock starts at another instant."""

_LONG_UNREAD_NS: Final = 1_000_000_000

_SHORT_NS: Final = 1_000_000_000
"""A timeout below this is too short for a call that does some work: the side that set it is to blame."""

_MAX_REASON_BYTES: Final = 1_000
_names_timeout = re.compile(rb"time[sd]?[ _-]?out|-32001|deadline[ _-]?exceeded", re.IGNORECASE).search


def find(facts: CaptureFacts) -> Iterator[Hit]:
    """Find requests that were given up."""
    misdelivered = facts.misdelivered.rows
    for exchange in facts.cancelled:
        until_ns = exchange.given_up_ns
        if until_ns is None or exchange.is_probe or (exchange.method == INITIALIZE and exchange.cancelled is not None):
            continue  # `progress` has the rule about a cancelled initialize
        if facts.last_hole_ns is not None and facts.last_hole_ns >= exchange.at_ns:
            continue  # the answer may be missing
        if exchange.row in misdelivered:
            continue  # it was answered, to somebody else
        yield _given_up(facts, exchange, until_ns)


def is_timeout(exchange: Exchange, until_ns: int) -> bool:
    """Return whether a request that was given up timed out: its cancellation says so, or it waited as long as a common timeout."""
    if exchange.cancelled is not None and _names_timeout(_reason(exchange.cancelled)):
        return True
    waited_ns = until_ns - exchange.at_ns
    return any(-_EARLY_NS <= waited_ns - limit_s * 1_000_000_000 <= _LATE_NS for limit_s in ROUND_S)


def _reason(cancellation: Message) -> bytes:
    return bytes(members(members(cancellation.raw).get("params", b"")).get("reason", b""))[:_MAX_REASON_BYTES]


def _given_up(facts: CaptureFacts, exchange: Exchange, until_ns: int) -> Hit:
    requester, responder = exchange.sender, OTHER_SIDE[exchange.sender]
    late, waited = exchange.response, seconds(until_ns - exchange.at_ns)
    reply = "never answered" if late is None else f"answered after {seconds(late.at_ns - exchange.at_ns)}"
    question = awaited(facts, exchange, until_ns)
    if question is None:
        rest = meanwhile_words(facts, exchange, until_ns)
    else:
        rest = f" Meanwhile the {responder} waited for the {requester} to answer {call_name(question)} (row {question.row})."
    what = f"The {requester} gave up on {call_name(exchange)} after {waited}; the {responder} {reply}.{rest}"
    rule, culprit, severity, blame = GIVEN_UP, "unclear", None, ""
    if is_timeout(exchange, until_ns):
        rule, culprit = TIMED_OUT, responder
        blame = f"The {responder}: it was slower than the {waited} that the {requester} waits."
        if question is not None:
            culprit, severity = requester, Severity.NOTE
            blame = f"The {requester}: it did not answer what the {responder} asked it meanwhile."
        elif (unread := unread_ns(facts, exchange, until_ns)) > _LONG_UNREAD_NS:
            culprit, severity = requester, Severity.NOTE
            blame = f"The {requester}: it did not read for {seconds(unread)} meanwhile, so that no answer could reach it."
        elif until_ns - exchange.at_ns < _SHORT_NS:
            culprit, severity = requester, Severity.NOTE
            blame = f"The {requester}: it waits for {waited} only, which many a call takes."
        elif exchange.method in FOR_PEOPLE:
            culprit, severity = "unclear", Severity.NOTE
            blame = f"Unclear: the {responder} asked a person, who may take their time."
    message = exchange.cancelled or exchange.request
    group = call_name(exchange)
    return hit_in(rule, message, exchange.row, what, culprit=culprit, severity=severity, blame=blame, group=group)
