"""Findings about lines that are longer than a reader takes, after which the client left.

asyncio's StreamReader and Go's bufio.Scanner fail on a line of more than 64 KiB, unless they are given another limit; the
TypeScript SDK closes its transport at 10 MiB.
"""

from collections.abc import Iterator
from typing import Final

from ....records import CLIENT
from ...model import Exchange, Message
from ..facts import CaptureFacts
from ..rule import Hit, Severity, hit_in, transport_rule
from ..words import call_name, seconds
from .server_exits import OPEN_ENDED

LINE_OVER_LIMIT: Final = transport_rule(
    name="line-over-limit",
    title="Client left after a very long line",
    what="The client left within a second after a line that is longer than a usual limit of readers: 64 KiB, or 10 MiB.",
    why="asyncio's reader raises LimitOverrunError, Go's Scanner “token too long”; the reading task ends, and the client with it.",
    blame="The client: its other requests were pending when it left, and it asked for nothing more after that line.",
    example=(
        '· handshake 2025-11-25, server: tools\n→ tools/call 1 {"name":"slow"}\n→ tools/call 2 {"name":"page"}\n'
        '← result 2 {"content":[{"type":"text","text":"⟪x×70000⟫"}]}\n· the client closes stdin\n← result 1\n· the server exits 0'
    ),
    clean=(
        '· handshake 2025-11-25, server: tools\n→ tools/call 2 {"name":"page"}\n'
        '← result 2 {"content":[{"type":"text","text":"⟪x×70000⟫"}]}\n→ tools/call 3 {"name":"page"}\n← result 3'
    ),
    advice="Raise the limit of the client's reader (asyncio: limit=…; Go: Scanner.Buffer), or have the server answer in pages.",
)

RULES: Final = (LINE_OVER_LIMIT,)

_LIMITS: Final = (
    (10 << 20, "10 MiB, the limit of the TypeScript SDK"),
    (64 << 10, "64 KiB, the limit of asyncio and of Go's Scanner"),
)
_SOON_NS: Final = 1_000_000_000


def find(facts: CaptureFacts) -> Iterator[Hit]:
    """Find a long line as the last that a client on stdio took.

    Without pending requests it is a note, and only if the client stopped reading at once, as a program that fails does.
    """
    left_ns = facts.left_ns
    if left_ns is None or facts.capture.transactions or facts.first_hole_ns is not None:
        return
    since_ns = left_ns - _SOON_NS
    long = [
        (exchange, exchange.response)
        for exchange in facts.exchanges
        if exchange.response is not None and since_ns <= exchange.response.at_ns <= left_ns and _limit(exchange.response)
    ]
    if not long or long[-1][0].sender != CLIENT:
        return
    exchange, line = long[-1]
    if any(_sent_ns(other) > line.at_ns for other in facts.exchanges):
        return
    pending = next((other for other in facts.exchanges if _is_pending(other, left_ns)), None)
    what = (
        f"The client left {seconds(left_ns - line.at_ns)} after it was sent the result of {call_name(exchange)}, a line of "
        f"{line.size:,} bytes, which is more than {_limit(line)}"
    )
    if pending is not None:
        what = f"{what}; {call_name(pending)} (row {pending.row}) was pending."
        yield hit_in(LINE_OVER_LIMIT, line, exchange.row, what, culprit=CLIENT)
        return
    if facts.stopped_reading_ns is None or facts.stopped_reading_ns - line.at_ns > _SOON_NS or facts.signalled_ns is not None:
        return
    blame = "The client, if it failed; it may also have had what it wanted."
    advice = f"If it did not mean to leave, look for LimitOverrunError or the like in its log. {LINE_OVER_LIMIT.advice}"
    yield hit_in(
        LINE_OVER_LIMIT, line, exchange.row, f"{what}.", culprit=CLIENT, severity=Severity.NOTE, blame=blame, advice=advice
    )


def _limit(line: Message) -> str:
    """Name the highest limit that a line exceeds; empty if it exceeds none."""
    return next((name for limit, name in _LIMITS if line.size > limit), "")


def _is_pending(exchange: Exchange, at_ns: int) -> bool:
    """Return whether the client waited for an answer at a time, and had not given up."""
    if exchange.sender != CLIENT or exchange.method in OPEN_ENDED or exchange.cancelled is not None:
        return False
    return exchange.at_ns <= at_ns and (exchange.response is None or exchange.response.at_ns > at_ns)


def _sent_ns(exchange: Exchange) -> int:
    """Return when the client last sent something about an exchange."""
    if exchange.sender == CLIENT:
        return exchange.at_ns if exchange.cancelled is None else exchange.cancelled.at_ns
    return 0 if exchange.response is None else exchange.response.at_ns
