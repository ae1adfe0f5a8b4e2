"""Batches of a live client's requests: the answers to one go out together, in one array, once none is missing.

Source: JSON-RPC 2.0, section 6; of MCP only revision 2025-03-26 has batches. Refuses to say when an answer is due.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
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
        """The answers as one line; none if there are none."""
        return b"[" + b",".join(self.answers) + b"]\n" if self.answers else b""


class Batches:
    """Those that are not answered yet."""

    __slots__ = ("_of",)

    def __init__(self) -> None:
        self._of: dict[ReplyState, _Batch] = {}

    def __bool__(self) -> bool:
        return bool(self._of)

    def add(self, members: Iterable[ReplyState]) -> None:
        """Requests that came in one batch, and will be answered."""
        batch = _Batch(set(members))
        self._of.update(dict.fromkeys(batch.waiting, batch))

    def line(self, cue: ScheduledSend) -> bytes:
        """What to say for a cue that is due: its line, and of an answer within a batch the whole batch if it is the last."""
        batch = self._of.get(cue.state) if cue.answers else None
        if batch is None:
            return cue.data
        batch.answers.append(cue.data.rstrip(b"\r\n"))
        return self._done(batch, cue.state)

    def given_up(self) -> list[bytes]:
        """The batches that wait for nothing any more since the client has given the rest of them up."""
        return [line for one, batch in list(self._of.items()) if one.is_over and (line := self._done(batch, one))]

    def _done(self, batch: _Batch, playing: ReplyState) -> bytes:
        del self._of[playing]
        batch.waiting.discard(playing)
        return b"" if batch.waiting else batch.line
