"""Batches of a live client: the answers to one batch go out together, in one array, when the last is due.

Source: JSON-RPC 2.0, section 6; in MCP only revision 2025-03-26 has batches.
"""

from __future__ import annotations

from collections.abc import Iterable

from .scheduled_send import ReplyState, ScheduledSend


class _Batch:
    """One batch: the requests that wait for their answers, and the answers so far."""

    __slots__ = ("answers", "waiting")

    def __init__(self, waiting: set[ReplyState]) -> None:
        self.waiting = waiting
        self.answers: list[bytes] = []

    @property
    def line(self) -> bytes:
        """The answers as one line; empty if there are none."""
        return b"[" + b",".join(self.answers) + b"]\n" if self.answers else b""


class Batches:
    """The batches that are not answered yet."""

    __slots__ = ("_of",)

    def __init__(self) -> None:
        self._of: dict[ReplyState, _Batch] = {}

    def __bool__(self) -> bool:
        return bool(self._of)

    def add(self, requests: Iterable[ReplyState]) -> None:
        """Add the requests of one batch that will be answered."""
        batch = _Batch(set(requests))
        self._of.update(dict.fromkeys(batch.waiting, batch))

    def line(self, send: ScheduledSend) -> bytes:
        """Return the line for a send that is due: its own, or, for the last answer to a batch, the whole batch."""
        batch = self._of.get(send.state) if send.answers else None
        if batch is None:
            return send.data
        batch.answers.append(send.data.rstrip(b"\r\n"))
        return self._finish(batch, send.state)

    def cancelled(self) -> list[bytes]:
        """Return the lines of batches that wait for nothing any more, since the client has cancelled the rest."""
        states = [state for state in self._of if state.is_over]
        return [line for state in states if (line := self._finish(self._of[state], state))]

    def _finish(self, batch: _Batch, state: ReplyState) -> bytes:
        """Remove a request from its batch; return the line if it was the last."""
        del self._of[state]
        batch.waiting.discard(state)
        return b"" if batch.waiting else batch.line
