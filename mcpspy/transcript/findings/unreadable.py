"""Reasons why the side that asked may not have recognised an answer that reached it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..model import HTTP_REDIRECTS

if TYPE_CHECKING:
    from ..model import Exchange
    from .facts import CaptureFacts

_FLAWS: Final = {
    "no-jsonrpc": 'has no "jsonrpc": "2.0"',
    "jsonrpc-version": 'has another "jsonrpc" than "2.0"',
    "fractional-id": "has an id that is no integer",
    "ambiguous": "has members of two kinds of message",
    "bom": "begins with a byte order mark",
    "invalid-utf-8": "is not valid UTF-8",
    "nan": "has NaN or an infinity as a number",
    "lone-surrogate": "has half of a surrogate pair",
    "no-final-newline": "has no line feed at its end",
    "by-order": "has no id",
}
"""Flaws with which strict readers drop a message, by their names."""


def why_unreadable(facts: CaptureFacts, exchange: Exchange) -> str:
    """Return the clause that says what was wrong with an answer: `has the id "1" for 1`; empty if nothing was."""
    response = exchange.response
    if response is None:
        return ""
    for flaw in response.flaws:
        if flaw in _FLAWS:
            return _FLAWS[flaw]
    if response.id != exchange.request.id and response.id is not None:
        return f"has the id {response.id[:40]} for {(exchange.request.id or '')[:40]}"
    carrier = facts.capture.transaction_of(response.stream)
    return f"came with the status {carrier.status}" if carrier is not None and carrier.status >= HTTP_REDIRECTS else ""
