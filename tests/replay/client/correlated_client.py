"""Correlated values tried by hand: live answers are fed row by row, and the next message is read as JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from mcpspy.records import CLIENT, Frame
from mcpspy.replay.client.correlate.reader import read_correlations
from mcpspy.replay.client.correlate.run import CorrelationRun
from mcpspy.transcript.decoder import Decoder
from mcpspy.transcript.message import Message
from mcpspy.transcript.model import CaptureInfo, Exchange, UnpairedMessage
from mcpspy.wire.edits import with_values

if TYPE_CHECKING:
    from tests.transcript.dialogue import Dialogue


class CorrelatedClient:
    """A recorded client: `hears` takes a live message for a recorded row, `says` returns the client's message of a row now."""

    def __init__(self, recorded: Dialogue, *handles: str) -> None:
        self.transcript = recorded.transcript
        self.correlations = read_correlations(self.transcript, handles)
        self.run = CorrelationRun(self.correlations)

    def hears(self, row: int, message: Any) -> CorrelatedClient:
        self.run.feed(row, message_of(message))
        return self

    def says(self, row: int) -> Any:
        """Return the client's message of this row, with the live values."""
        return json.loads(self.says_bytes(row))

    def says_bytes(self, row: int) -> bytes:
        message = self.client_message(row)
        return with_values(message.raw, self.run.fill(message))

    def client_message(self, row: int) -> Message:
        row_found = self.transcript.row(row)
        if isinstance(row_found, UnpairedMessage):
            return row_found.message
        assert isinstance(row_found, Exchange)
        message = row_found.request if row_found.sender == CLIENT else row_found.response
        assert message is not None
        return message

    @property
    def missing(self) -> list[str]:
        return [str(missing) for missing in self.run.missing]


def message_of(value: Any) -> Message:
    """Return a message of the server."""
    line = value if isinstance(value, bytes) else json.dumps(value).encode() + b"\n"
    (message,) = Decoder(CaptureInfo(0)).feed(Frame(1, 0, 0, line))
    assert isinstance(message, Message)
    return message
