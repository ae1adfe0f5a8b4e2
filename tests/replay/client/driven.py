"""A driver's machine played by hand: recordings are dialogues, what the live server says is fed, and the clock is a number."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from mcpspy.records import SERVER
from mcpspy.replay.client.answering import RecordedAnswers
from mcpspy.replay.client.player import PlanPlayer, PlayedMessage
from mcpspy.replay.client.read_plan import read_plans
from mcpspy.replay.mock.matching import RequestMatcher
from tests.replay.client.drives import message_of
from tests.transcript.dialogue import MS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.transcript.dialogue import Dialogue
    from tests.transcript.traffic import Traffic


class Driven:
    """The only client of a recording, driven. `due`, `hears` and `ends` return what is sent, parsed; what is left is `left 7`."""

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
        self.driving = PlanPlayer(self.plan, answering, **manner)
        self.now_ns = 0
        self.bytes: list[bytes] = []
        """All that was sent."""

    @property
    def report(self) -> Any:
        return self.driving.report

    @property
    def is_over(self) -> bool:
        return self.driving.is_over

    @property
    def next_ms(self) -> float | None:
        """When it is to be asked again."""
        return None if self.driving.next_ns is None else self.driving.next_ns / MS

    def due(self, at_ms: float | None = None) -> list[Any]:
        if at_ms is not None:
            self.now_ns = int(at_ms * MS)
        return self._sent(self.driving.due(self.now_ns))

    def hears(self, *messages: Any) -> list[Any]:
        return [one for message in messages for one in self._sent(self.driving.feed(message_of(message), self.now_ns))]

    def ends(self, id: str, why: str = "404 Not Found") -> list[Any]:
        return self._sent(self.driving.end(id, why, self.now_ns))

    def _sent(self, sent: list[PlayedMessage]) -> list[Any]:
        self.bytes += [one.data for one in sent if one.data]
        return [json.loads(one.data) if one.data else f"left {one.abandons}" for one in sent]
