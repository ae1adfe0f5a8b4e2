"""A script played by hand: captures are dialogues, and the messages of a live client are fed one by one."""

from __future__ import annotations

import json
from copy import copy
from typing import TYPE_CHECKING, Any, Protocol, Self

from mcpspy.records import Frame
from mcpspy.replay.mock.match_key import Strictness
from mcpspy.replay.mock.matching import RequestMatcher, Reuse
from mcpspy.replay.mock.replies import read_replies
from mcpspy.replay.mock.script import ERROR, MissPolicy, Script
from mcpspy.transcript.decoder import Decoder
from mcpspy.transcript.message import Message
from mcpspy.transcript.model import CaptureInfo
from mcpspy.transcript.transcribe import transcribe

if TYPE_CHECKING:
    from mcpspy.records import Record
    from mcpspy.replay.mock.scheduled_send import ScheduledSend


class Recorded(Protocol):
    """Anything with records: a dialogue, traffic."""

    @property
    def records(self) -> list[Record]:
        """The records of one capture."""


class Play:
    """The script of a capture. `sends` returns what is scheduled, `lines` its bytes, `messages` the parsed lines."""

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
        """Return the same capture, played to another client with this number."""
        other = copy(self)
        other._begin(number)
        return other

    def sends(self, line: Any) -> list[ScheduledSend]:
        data = line if isinstance(line, bytes) else json.dumps(line).encode() + b"\n"
        messages = [item for item in self._decoder.feed(Frame(0, 0, 0, data)) if isinstance(item, Message)]
        return [send for message in messages for send in self.script.feed(message)]

    def lines(self, line: Any) -> list[bytes]:
        return [send.data for send in self.sends(line) if self.script.is_due(send) and send.data]

    def messages(self, line: Any) -> list[Any]:
        return [json.loads(item) for item in self.lines(line)]
