"""A script played by hand: recordings are dialogues, and what a live client says is fed message by message."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from mcpspy.records import Frame
from mcpspy.replay.exact import Exact
from mcpspy.replay.scenes import scenes
from mcpspy.replay.script import Cue, Script
from mcpspy.transcript.decode import Decoder
from mcpspy.transcript.message import Message
from mcpspy.transcript.model import Source
from mcpspy.transcript.transcribe import transcribe

if TYPE_CHECKING:
    from mcpspy.replay.exact import Reuse
    from tests.transcript.dialogue import Dialogue
    from tests.transcript.traffic import Traffic


class Play:
    """The script of a recording. Each method returns what is to be said; `lines` of them are their bytes, `told` the parsed ones."""

    def __init__(self, recorded: Dialogue | Traffic, reuse: Reuse = "last") -> None:
        found = scenes(transcribe(recorded.records))
        self.script = Script(found, Exact(found.exchanges, reuse))
        self._decoder = Decoder(Source(0))

    def cues(self, line: Any) -> list[Cue]:
        data = line if isinstance(line, bytes) else json.dumps(line).encode() + b"\n"
        messages = [one for one in self._decoder.feed(Frame(0, 0, 0, data)) if isinstance(one, Message)]
        return [cue for message in messages for cue in self.script.feed(message)]

    def lines(self, line: Any) -> list[bytes]:
        return [cue.data for cue in self.cues(line) if self.script.is_due(cue)]

    def told(self, line: Any) -> list[Any]:
        return [json.loads(one) for one in self.lines(line)]
