"""The rows of one hop by the rows of the other that they became: calls, streams without a call, and single messages.

Calls are joined by `hops`. The rest is joined here, between the two captures of a gateway: a GET or DELETE by its session, a
notification and a request of the server by their content, each with the next one of its kind.
"""

from __future__ import annotations

import json
from functools import cached_property
from typing import TYPE_CHECKING

from ...records import CLIENT
from ..http.transaction import Transaction
from ..mcp.methods import OPENINGS, PING
from ..model import Exchange, Numbered, UnpairedMessage

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

    from ..model import Transcript

_NEAR_NS = 60_000_000_000
"""A gateway passes a message on within a minute, or not at all."""


_OWN = (*OPENINGS, PING)
"""Methods that a gateway which is no reverse proxy answers itself."""


class Counterparts:
    """Rows of a transcript, by number, and what they became on the other hops."""

    def __init__(self, transcript: Transcript, pairs: Iterable[tuple[int, int]]) -> None:
        self._hops = transcript.hops
        self._rows = {row.row: row for row in transcript.rows if isinstance(row, Numbered)}
        self._joined: dict[int, list[Numbered]] = {}
        self._transparent: set[int] = set()
        for call in transcript.hops.values():
            if call.outer.method == "initialize":
                self._transparent |= {call.outer.capture, call.last.capture}
        for outer, inner in pairs:
            self._join(outer, inner)

    def row(self, number: int | None) -> Numbered | None:
        """Return the row with this number."""
        return None if number is None else self._rows.get(number)

    def of(self, row: Numbered) -> tuple[Numbered, ...]:
        """Return the rows that this one became, or was made of, on the other hop; empty if there is none."""
        call = self._hops.get(row.row)
        if call is None:
            return tuple(self._joined.get(row.row, ()))
        return call.inner if row.row == call.outer.row else (call.outer,)

    def is_transparent(self, capture: int) -> bool:
        """Tell whether the gateway beside this capture passes everything on, as a reverse proxy does."""
        return capture in self._transparent

    def is_sole_way(self, row: Numbered) -> bool:
        """Tell whether calls like this one go through the gateway to the tapped server, and to no other that nobody sees."""
        method = _method(row)
        return method in _OWN or self.is_transparent(row.capture) or (row.capture, method) not in self._elsewhere

    @cached_property
    def _elsewhere(self) -> set[tuple[int, str]]:
        """The captures and methods of calls that were answered although they reached no tapped server."""
        return {
            (row.capture, row.method)
            for row in self._rows.values()
            if isinstance(row, Exchange) and row.response is not None and row.row not in self._hops
        }

    def _join(self, outer: int, inner: int) -> None:
        """Join what is no call, one after the other."""
        waiting: dict[Hashable, list[Numbered]] = {}
        for row in self._rows.values():
            if row.capture not in (outer, inner) or (key := _key(row)) is None:
                continue
            begins = outer if _is_from_client(row) else inner
            if row.capture == begins:
                waiting.setdefault(key, []).append(row)
                continue
            firsts = [first for first in waiting.get(key, ()) if row.at_ns - first.at_ns <= _NEAR_NS]
            if firsts:
                waiting[key] = firsts[1:]
                self._joined.setdefault(firsts[0].row, []).append(row)
                self._joined.setdefault(row.row, []).append(firsts[0])


def _method(row: Numbered) -> str:
    return row.method if isinstance(row, Exchange) else ""


def _is_from_client(row: Numbered) -> bool:
    if isinstance(row, Exchange):
        return row.sender == CLIENT
    return not isinstance(row, UnpairedMessage) or row.message.sender == CLIENT


def _key(row: Numbered) -> Hashable:
    """Return a key that is equal for a row and what it becomes on the other hop; None for calls, which have been joined."""
    if isinstance(row, Transaction):
        return row.method, row.scope.session
    if isinstance(row, Exchange) and row.sender != CLIENT:
        return row.method, row.sender, json.dumps(row.request.params, sort_keys=True, default=repr)
    if isinstance(row, UnpairedMessage):
        message = row.message
        params = message.params if message.method else message.raw.strip()
        return message.method, message.sender, json.dumps(params, sort_keys=True, default=repr)
    return None
