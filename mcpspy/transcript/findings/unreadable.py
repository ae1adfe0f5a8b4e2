"""Reasons why the side that asked may not have recognised an answer that reached it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..model import HTTP_REDIRECTS

if TYPE_CHECKING:
    from ..model import Exchange
    from .facts import CaptureFacts


def why_unreadable(facts: CaptureFacts, exchange: Exchange) -> str:
    """Return the clause that says what was wrong with an answer: `has the id "1" for 1`; empty if nothing was."""
    response = exchange.response
    if response is None:
        return ""
    if response.flaws:
        from .protocol.encoding import FLAW_WORDS, READ_ALL_THE_SAME  # few answers have a flaw

        for flaw in response.flaws:
            if flaw in FLAW_WORDS and flaw not in READ_ALL_THE_SAME:
                return FLAW_WORDS[flaw]
        if "by-order" in response.flaws:
            return "has no id"
    if response.id != exchange.request.id and response.id is not None:
        return f"has the id {response.id[:40]} for {(exchange.request.id or '')[:40]}"
    carrier = facts.capture.transaction_of(response.stream)
    return f"came with the status {carrier.status}" if carrier is not None and carrier.status >= HTTP_REDIRECTS else ""
