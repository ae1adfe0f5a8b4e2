"""A script played by hand: recordings are dialogues, and what a live client says is fed message by message."""

from __future__ import annotations

import json
from copy import copy
from typing import TYPE_CHECKING, Any, Protocol, Self

from mcpspy.records import Frame
from mcpspy.replay.mock.match_key import Strictness
from mcpspy.replay.mock.matching import RequestMatcher, Reuse
from mcpspy.replay.mock.on_miss import ERROR, MissPolicy
from mcpspy.replay.mock.replies import read_replies
from mcpspy.replay.mock.script import Script
from mcpspy.transcript.decode import Decoder
from mcpspy.transcript.message import Message
from mcpspy.transcript.model import CaptureInfo
from mcpspy.transcript.transcribe import transcribe

if TYPE_CHECKING:
    from mcpspy.records import Record
    from mcpspy.replay.mock.scheduled_send import ScheduledSend


class Recorded(Protocol):
    """Whatever has records: a dialogue, traffic."""

    @property
    def records(self) -> list[Record]:
        """Those of one capture."""


class Play:
    """The script of a recording. Each method returns what is to be said; `lines` of them are their bytes, `told` the parsed ones."""

    def __init__(
        self,
        recorded: Recorded,
        reuse: str = "last",
        match: str = "default",
        on_miss: MissPolicy = ERROR,
        wall_ns: int = 0,
    ) -> None:
        self.replies = read_replies(transcribe(recorded.records))
        self.matcher = RequestMatcher(self.replies.exchanges, reuse=Reuse(reuse), strictness=Strictness(match))
        self._on_miss, self._wall_ns = on_miss, wall_ns
        self._begin()

    def _begin(self, number: int = 0) -> None:
        self.script = Script(self.replies, self.matcher.cursor(number), self._on_miss, wall_ns=self._wall_ns)
        self._decoder = Decoder(CaptureInfo(0))

    def another(self, number: int = 0) -> Self:
        """The same recording, played to another client, the how many-th it is."""
        other = copy(self)
        other._begin(number)
        return other

    def cues(self, line: Any) -> list[ScheduledSend]:
        data = line if isinstance(line, bytes) else json.dumps(line).encode() + b"\n"
        messages = [one for one in self._decoder.feed(Frame(0, 0, 0, data)) if isinstance(one, Message)]
        return [cue for message in messages for cue in self.script.feed(message)]

    def lines(self, line: Any) -> list[bytes]:
        return [cue.data for cue in self.cues(line) if self.script.is_due(cue) and cue.data]

    def told(self, line: Any) -> list[Any]:
        return [json.loads(one) for one in self.lines(line)]
