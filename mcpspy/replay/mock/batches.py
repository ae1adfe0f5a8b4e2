"""Batches of a live client and of a recorded server: what one frame has to hold goes out together, when the last part is due.

The answers to a live batch go out in one array. If they were recorded in answer to one batch, they go out as they did: in the same
arrays, with the bytes between their members, or one by one.
Source: JSON-RPC 2.0, section 6; in MCP only revision 2025-03-26 has batches.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from ...wire.json_spans import WHITESPACE
from .replies import RecordedBatch
from .scheduled_send import ReplyState, ScheduledSend, UnendedLine

if TYPE_CHECKING:
    from .pass_through import PassThrough
    from .script import Script


class _Batch:
    """One batch: the requests that wait for their answers, and what is due of each recorded batch; of none what is joined."""

    __slots__ = ("due", "is_recorded", "rows", "waiting")

    def __init__(self, states: Iterable[ReplyState], *, is_alone: bool = False) -> None:
        self.waiting = set(states)
        exchanges = [state.reply.exchange for state in self.waiting]
        requests = {id(exchange.request.batch) if exchange.request.batch else 0 for exchange in exchanges if exchange}
        self.rows = {exchange.row for exchange in exchanges if exchange}
        self.is_recorded = is_alone or (None not in exchanges and len(requests) == 1 and 0 not in requests)
        """True if these requests, and maybe others, were recorded in one batch, or if it is one request outside a batch."""
        self.due: dict[RecordedBatch | None, list[ScheduledSend]] = {}


class Batches:
    """The batches that are not answered yet. With `joins` the answers to one that was not recorded go out in one array."""

    __slots__ = ("_joins", "_of")

    def __init__(self, *, joins: bool = True) -> None:
        self._joins = joins
        self._of: dict[ReplyState, _Batch] = {}

    def add(self, requests: Iterable[ReplyState]) -> bool:
        """Add the requests of one batch that will be answered. Return whether they were recorded so."""
        batch = _Batch(requests)
        if batch.is_recorded or self._joins:
            self._of.update(dict.fromkeys(batch.waiting, batch))
        return batch.is_recorded

    def line(self, send: ScheduledSend) -> bytes:
        """Return the bytes for a send that is due: its own, those of a whole batch, or nothing if it waits for others."""
        recorded = None if send.step is None else send.step.batch
        batch = self._of.get(send.state)
        if batch is None:
            if recorded is None or not _is_answer_to_one(send):
                return send.data
            batch = self._of[send.state] = _Batch((send.state,), is_alone=True)
        if send.answers:
            del self._of[send.state]
            batch.waiting.discard(send.state)
        if batch.is_recorded and recorded is not None and recorded.rows <= batch.rows:
            due = batch.due.setdefault(recorded, [])
            due.append(send)
            return _whole(recorded, batch.due.pop(recorded)) if len(due) == len(recorded.steps) else b""
        if batch.is_recorded or not send.answers:
            return send.data
        batch.due.setdefault(None, []).append(send)
        return b"" if batch.waiting else _array(batch)

    def cancelled(self) -> list[bytes]:
        """Return the lines of batches that wait for nothing any more, since the client has cancelled the rest."""
        over = [(state, batch) for state, batch in self._of.items() if state.is_over]
        for state, batch in over:
            del self._of[state]
            batch.waiting.discard(state)
        return [
            line for batch in {id(batch): batch for _, batch in over}.values() if not batch.waiting and (line := _array(batch))
        ]


def batch_member(script: Script | PassThrough, id: str, sends: Sequence[ScheduledSend]) -> ReplyState | None:
    """Return the reply to a request of a live batch, from what follows it; None if it will not be answered."""
    reply = next((send.state for send in sends if send.answers), None)
    return reply or script.open_request(id)


def refilled(payload: bytes, sends: Iterable[ScheduledSend]) -> bytes:
    """Return a recorded payload of one or several messages, with the live bytes of these in their places."""
    from ...transcript.http.payloads import body_pieces  # stdio without batches need not wait for it

    live: dict[bytes, list[bytes]] = {}
    for send in sends:
        if send.step is not None:
            live.setdefault(send.step.message.raw.strip(WHITESPACE), []).append(send.data.strip(WHITESPACE))
    parts: list[bytes] = []
    at = 0
    for piece in body_pieces(payload, is_json=True, answers=True):
        raw = piece.raw.strip(WHITESPACE)
        begin = payload.index(raw, at)
        parts += [payload[at:begin], live[raw].pop(0) if live.get(raw) else raw]
        at = begin + len(raw)
    return b"".join([*parts, payload[at:]])


def _is_answer_to_one(send: ScheduledSend) -> bool:
    """Return whether the recorded client sent this request alone, so that the server itself decided to answer in a batch."""
    exchange = send.state.reply.exchange
    return exchange is not None and not exchange.request.batch


def _whole(recorded: RecordedBatch, sends: Sequence[ScheduledSend]) -> bytes:
    data = refilled(recorded.payload, sends)
    return UnendedLine(data) if any(isinstance(send.data, UnendedLine) for send in sends) else data


def _array(batch: _Batch) -> bytes:
    """Return what is due as one line; empty if nothing is."""
    answers = [send.data.strip(WHITESPACE) for sends in batch.due.values() for send in sends]
    return b"[" + b",".join(answers) + b"]\n" if answers else b""
