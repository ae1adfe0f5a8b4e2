"""Signs that a request was given up by a timeout: the reason of its cancellation, and the time that it had waited."""

import re
from typing import Final

from ...lazy_pattern import lazy_pattern
from ...wire.json_spans import members
from ..model import Exchange, Message

ROUND_S: Final = (5, 10, 15, 20, 30, 45, 60, 90, 120, 180, 240, 300, 600)
"""Common timeouts: 60 s in the TypeScript SDK, 300 s in Python's HTTP client, and round numbers that people set."""

_EARLY_NS: Final = 20_000_000
_LATE_NS: Final = 250_000_000
"""Delay with which a busy client may act on its timeout. It may also seem early, since its clock starts at another instant."""

_MAX_REASON_BYTES: Final = 1_000
_names_person = lazy_pattern(
    rb"user|human|person(?!al)|operator|manual|by hand|button|press|click|ctrl[-+ ]?c\b|keyboard", re.IGNORECASE
)
_names_timeout = lazy_pattern(rb"time[sd]?[ _-]?out|-32001|deadline[ _-]?exceeded", re.IGNORECASE)


def is_timeout(exchange: Exchange, until_ns: int) -> bool:
    """Return whether a request that was given up timed out: its cancellation says so, or it waited as long as a common timeout.

    One whose reason speaks of a person was given up by that person, however long it had waited.
    """
    reason = b"" if exchange.cancelled is None else _reason(exchange.cancelled)
    if _names_timeout.search(reason):
        return True
    if _names_person.search(reason):
        return False
    waited_ns = until_ns - exchange.at_ns
    return any(-_EARLY_NS <= waited_ns - limit_s * 1_000_000_000 <= _LATE_NS for limit_s in ROUND_S)


def _reason(cancellation: Message) -> bytes:
    return bytes(members(members(cancellation.raw).get("params", b"")).get("reason", b""))[:_MAX_REASON_BYTES]
