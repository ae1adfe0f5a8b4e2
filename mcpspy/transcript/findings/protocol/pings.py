"""Findings about `ping`, which the other side has to answer at once, whatever else it does.

Source: MCP specification, basic/utilities/ping of 2024-11-05 to 2025-11-25; 2026-07-28 has no ping.
"""

from collections.abc import Iterator
from typing import Final

from ....records import OTHER_SIDE
from ...mcp.methods import PING
from ...mcp.revisions import Era
from ...model import Exchange, Kind
from ..facts import CaptureFacts
from ..meanwhile import meanwhile_words
from ..rule import Hit, hit_in, transport_rule
from ..transport.server_exits import SOON_NS, abandoned_ns
from ..transport.stalls import unread_ns
from ..words import seconds

_BEGIN: Final = '· handshake 2025-11-25, server: tools\n→ tools/call 1 {"name":"report"}\n'

PING_UNANSWERED: Final = transport_rule(
    name="ping-unanswered",
    title="Ping not answered in time",
    what="A ping was unknown to the other side, or not answered when its sender gave up or left, a second later or more.",
    why="The sender takes the connection for dead: it ends the server, or drops the client, while a call is running.",
    blame="The receiver: a ping has to be answered at once, also while a call is running.",
    example=f"{_BEGIN}→ ping 2\n· 3.0 s later\n← result 1\n· the client closes stdin",
    clean=f"{_BEGIN}→ ping 2\n← result 2\n· 3.0 s later\n← result 1\n· the client closes stdin",
    advice="Answer ping outside of the code that runs calls: in the loop that reads messages, or in a thread of its own.",
)

RULES: Final = (PING_UNANSWERED,)


def find(facts: CaptureFacts) -> Iterator[Hit]:
    """Find pings that were not answered, or that the other side does not know."""
    for ping in facts.exchanges:
        if (
            ping.method != PING
            or ping.era is Era.MODERN
            or (facts.last_hole_ns is not None and facts.last_hole_ns >= ping.at_ns)
        ):
            continue
        response, receiver = ping.response, OTHER_SIDE[ping.sender]
        until_ns = abandoned_ns(facts, ping)
        if until_ns is not None:
            if unread_ns(facts, ping, until_ns) < SOON_NS:
                how = "gave up" if ping.given_up_ns is not None else "left"
                what = f"The {receiver} had not answered ping after {seconds(until_ns - ping.at_ns)}, when the {ping.sender} {how}."
                yield _hit(facts, ping, what, until_ns)
        elif response is not None and response.kind is Kind.ERROR and b"-32601" in response.raw:
            yield _hit(facts, ping, f"The {receiver} does not know ping, which every revision before 2026-07-28 has.", None)


def _hit(facts: CaptureFacts, ping: Exchange, what: str, until_ns: int | None) -> Hit:
    receiver = OTHER_SIDE[ping.sender]
    rest = "" if until_ns is None else meanwhile_words(facts, ping, until_ns)
    blame = f"The {receiver}: a ping has to be answered at once, also while a call is running."
    return hit_in(
        PING_UNANSWERED,
        ping.request,
        ping.row,
        f"{what}{rest}",
        culprit=receiver,
        blame=blame,
        group=what[:40],
    )
