"""A plan played by hand: captures are dialogues, the messages of the live server are fed, and the clock is a number."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from mcpspy.records import SERVER
from mcpspy.replay.client.player import PlanPlayer, PlayedMessage, RecordedAnswers
from mcpspy.replay.client.read_plan import read_plans
from mcpspy.replay.mock.matching import RequestMatcher
from tests.replay.client.correlated_client import message_of
from tests.transcript.dialogue import MS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.transcript.dialogue import Dialogue
    from tests.transcript.traffic import Traffic


class Player:
    """The player of a capture with one client. `due`, `hears` and `ends` return what is sent, parsed; `left 7` is a closed stream."""

    def __init__(
        self, recorded: Dialogue | Traffic, *, rows: Iterable[int] | None = None, carries: bool = False, **manner: Any
    ) -> None:
        self.transcript = recorded.transcript
        (self.plan,) = read_plans(self.transcript)
        if rows is not None:
            self.plan = self.plan.only(rows)
        if carries:
            from mcpspy.replay.client.correlate.reader import read_correlations
            from mcpspy.replay.client.correlate.run import CorrelationRun

            manner["live_values"] = CorrelationRun(read_correlations(self.transcript))
        answering = RecordedAnswers(RequestMatcher(self.transcript.exchanges, side=SERVER).cursor())
        self.player = PlanPlayer(self.plan, answering, **manner)
        self.now_ns = 0
        self.bytes: list[bytes] = []
        """Everything that was sent."""

    @property
    def report(self) -> Any:
        return self.player.report

    @property
    def is_over(self) -> bool:
        return self.player.is_over

    @property
    def next_ms(self) -> float | None:
        """The time of the next call of `due`."""
        return None if self.player.next_ns is None else self.player.next_ns / MS

    def due(self, at_ms: float | None = None) -> list[Any]:
        if at_ms is not None:
            self.now_ns = int(at_ms * MS)
        return self._sent(self.player.due(self.now_ns))

    def hears(self, *messages: Any) -> list[Any]:
        return [item for message in messages for item in self._sent(self.player.feed(message_of(message), self.now_ns))]

    def ends(self, id: str, why: str = "404 Not Found") -> list[Any]:
        return self._sent(self.player.end(id, why, self.now_ns))

    def _sent(self, sent: list[PlayedMessage]) -> list[Any]:
        self.bytes += [message.data for message in sent if message.data]
        return [json.loads(message.data) if message.data else f"left {message.abandons}" for message in sent]
