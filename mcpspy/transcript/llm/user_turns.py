"""When a user spoke, which nobody records: before the prompt, and before what the client looked up for it.

Some clients ask for the servers' tools once they are connected, others when they are asked something. A user takes longer than a
program: the longest silence before a prompt is taken for the user's. Refuses to look beyond the handshake, an answer or a call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...records import CLIENT
from ..model import Exchange, ModelCall, UnpairedMessage
from ..phases import ANY_TIME, DISCOVERY, INITIALIZED

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ..model import Row, Transcript


def spoken(transcript: Transcript, prompts_ns: Sequence[int]) -> list[int]:
    """For each of these prompts, which are in order, when the user is taken to have spoken, on the transcript's clock.

    That is right before the first list that was asked for after the longest silence, else when the prompt came.
    """
    found: list[int] = []
    rows = iter(transcript.rows)
    row = next(rows, None)
    quiet = _Quiet()
    for prompt_ns in prompts_ns:
        while row is not None and row.at_ns < prompt_ns:
            quiet.feed(row)
            row = next(rows, None)
        found.append(quiet.longest_before(prompt_ns))
    return found


class _Quiet:
    """What was asked for since something happened that no user had to wait for. `lists` are spans, in nanoseconds."""

    __slots__ = ("_lists", "_since_ns")

    def __init__(self) -> None:
        self._since_ns: int | None = None
        self._lists: list[tuple[int, int]] = []

    def feed(self, row: Row) -> None:
        """Take in what came before the prompt."""
        match row:
            case Exchange() if row.sender != CLIENT or row.method in ANY_TIME:
                pass
            case Exchange() if row.method in DISCOVERY:
                self._lists.append((row.at_ns, row.at_ns + (row.duration_ns or 0)))
            case Exchange():
                self._begin(row.at_ns + (row.duration_ns or 0))
            case ModelCall():
                self._begin(row.at_ns if row.ended_ns is None else row.ended_ns)
            case UnpairedMessage() if row.message.method == INITIALIZED:
                self._begin(row.at_ns)
            case _:
                pass

    def longest_before(self, prompt_ns: int) -> int:
        """The end of the longest silence before a prompt."""
        if self._since_ns is None:
            return prompt_ns
        since_ns, longest_ns, spoken_ns = self._since_ns, -1, prompt_ns
        for begin_ns, end_ns in (*self._lists, (prompt_ns, prompt_ns)):
            if begin_ns - since_ns > longest_ns:
                longest_ns, spoken_ns = begin_ns - since_ns, begin_ns
            since_ns = max(since_ns, end_ns)
        return spoken_ns if spoken_ns == prompt_ns else spoken_ns - 1

    def _begin(self, at_ns: int) -> None:
        self._since_ns = at_ns if self._since_ns is None else max(at_ns, self._since_ns)
        self._lists = _after(self._lists, self._since_ns)


def _after(lists: Iterable[tuple[int, int]], since_ns: int) -> list[tuple[int, int]]:
    return [one for one in lists if one[0] >= since_ns]
