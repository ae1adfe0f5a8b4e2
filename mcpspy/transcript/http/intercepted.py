"""Frames of HTTP on which an intercept acted: decoded as the receiver saw them, and marked. The counterpart of `intercepts`."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from ...records import Frame, Intercept
from ..exchange import Exchange
from ..intercepts import BY_MCPSPY, MAX_LOOKED_AT, NO_ANSWER
from ..message import CALL_OF_MCPSPY, CALLED, ERROR, MARK, NOT_PASSED_ON, REQUEST, RESULT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..model import CaptureInfo, Row
    from .correlate import OpenTransaction
    from .decode import StreamDecoder, Unit


class InterceptedUnits:
    """The deeds of intercepts on the next frame, and the answers that did not come through.

    `flaws` mark the messages of the last frame, and `acts` are what was done to it. If it `is_call`, it is to or from `mcpspy call`.
    """

    __slots__ = ("_info", "_lost", "_pending", "acts", "flaws", "is_call")

    def __init__(self, info: CaptureInfo) -> None:
        self._info = info
        self._pending: list[Intercept] = []
        self._lost: list[str | None] = []
        self.acts: list[Intercept] = []
        self.flaws: list[str] = []
        self.is_call = False

    def add(self, record: Intercept) -> None:
        """Take in what was done to the next frame."""
        if self._info.intercepted_ns is None:
            self._info.intercepted_ns = record.at_ns
        self._pending.append(record)

    def units(self, frame: Frame, decoder: StreamDecoder) -> Sequence[Unit]:
        """Return what a frame completed, as the receiver saw it.

        A request that nobody received is kept, for its sender waits for the answer; of others there is only the intercept.
        """
        self.acts, self.flaws, self.is_call = [], [BY_MCPSPY] if frame.injected else [], False
        if frame.part or not self._pending:
            return decoder.feed(frame)
        if self._pending[-1].text == CALL_OF_MCPSPY:
            self._pending, self.flaws, self.is_call = [], [CALLED], True
            return decoder.feed(frame)
        self.acts, self._pending = self._pending, []
        self.flaws += [f"{MARK}: {record.action}" for record in self.acts]
        units = decoder.feed(frame)
        received = units
        forwarded = frame.forwarded
        if forwarded == b"":
            self.flaws.append(NOT_PASSED_ON)
            received = [
                unit._replace(messages=[message for message in unit.messages if message.kind is REQUEST]) for unit in units
            ]
        elif forwarded:
            decoder.forget()
            received = decoder.feed(Frame(frame.stream, frame.at_ns, frame.first_ns, forwarded, number=frame.number))
        ids = {message.id for unit in received for message in unit.messages}
        answers = (message for unit in units for message in unit.messages if message.kind in (RESULT, ERROR))
        self._lost = [answer.id for answer in answers if answer.id not in ids]
        return [unit._replace(anomaly="") for unit in received]

    def mark_requests(self, opened: OpenTransaction, rows: Sequence[Row]) -> list[Row]:
        """Mark the requests whose answers did not come through, and return their rows."""
        lost, self._lost = self._lost, []
        flaws = [NO_ANSWER if flaw == NOT_PASSED_ON else flaw for flaw in self.flaws]
        scope = opened.transaction.scope
        marked: list[Row] = []
        for id in lost:
            for row in islice(reversed(rows), MAX_LOOKED_AT):
                if not isinstance(row, Exchange) or row.request.id != id or row.transaction is None:
                    continue
                if row.transaction.scope is scope or row.transaction is opened.transaction:
                    row.request.flaws = (*row.request.flaws, *flaws)
                    marked.append(row)
                    break
        return marked
