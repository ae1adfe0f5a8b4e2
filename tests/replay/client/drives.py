"""A recording driven by hand: the live answers are given row by row, and what would be said next is read as JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from mcpspy.records import CLIENT, Frame
from mcpspy.replay.client.correlate.reader import read_correlations
from mcpspy.replay.client.correlate.run import CorrelationRun
from mcpspy.transcript.decode import Decoder
from mcpspy.transcript.message import Message
from mcpspy.transcript.model import CaptureInfo, Exchange, UnpairedMessage
from mcpspy.wire.edits import with_values

if TYPE_CHECKING:
    from tests.transcript.dialogue import Dialogue


class Drive:
    """`hears` takes a live message of the server's for a recorded row, `says` gives what the client says in a row now."""

    def __init__(self, recorded: Dialogue, *handles: str) -> None:
        self.transcript = recorded.transcript
        self.correlations = read_correlations(self.transcript, handles)
        self.run = CorrelationRun(self.correlations)

    def hears(self, row: int, message: Any) -> Drive:
        self.run.feed(row, message_of(message))
        return self

    def says(self, row: int) -> Any:
        """The client's message of this row, with what is carried."""
        return json.loads(self.says_bytes(row))

    def says_bytes(self, row: int) -> bytes:
        message = self.client_message(row)
        return with_values(message.raw, self.run.fill(message))

    def client_message(self, row: int) -> Message:
        found = self.transcript.row(row)
        if isinstance(found, UnpairedMessage):
            return found.message
        assert isinstance(found, Exchange)
        message = found.request if found.sender == CLIENT else found.response
        assert message is not None
        return message

    @property
    def missing(self) -> list[str]:
        return [str(one) for one in self.run.missing]


def message_of(value: Any) -> Message:
    """A message of the server's."""
    line = value if isinstance(value, bytes) else json.dumps(value).encode() + b"\n"
    (message,) = Decoder(CaptureInfo(0)).feed(Frame(1, 0, 0, line))
    assert isinstance(message, Message)
    return message
