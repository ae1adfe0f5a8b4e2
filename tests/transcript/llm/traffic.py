"""Traffic of a model API, call by call, as the records of a tap."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from mcpspy.records import Header
from tests.transcript.traffic import Traffic

if TYPE_CHECKING:
    from mcpspy.transcript.model import ModelCall
    from tests.transcript.traffic import Call

CHAT = "/v1/chat/completions"
MESSAGES = "/v1/messages"
RESPONSES = "/v1/responses"


class ModelTraffic(Traffic):
    """Traffic of a model API. Each record comes 1 ms after the one before."""

    def __init__(self, label: str = "gpt") -> None:
        super().__init__(label, url="http://127.0.0.1:3001/v1")
        (header,) = self.records
        assert isinstance(header, Header)
        header.tapped["leg"] = "model"

    def ask(self, *turns: str, path: str = CHAT, model: str = "m", **more: Any) -> Call:
        """Send a prompt of turns `role: text`."""
        messages = [{"role": role, "content": text} for role, _, text in (turn.partition(": ") for turn in turns)]
        return self.post({"model": model, "messages": messages, **more}, path)

    @property
    def calls_made(self) -> list[ModelCall]:
        return self.transcript.model_calls

    @property
    def made(self) -> ModelCall:
        """The only model call."""
        (call,) = self.calls_made
        return call


def completion(text: str = "", **more: Any) -> dict[str, Any]:
    """Make the body of an answer of chat completions."""
    message = {"role": "assistant", "content": text, **more}
    return {"id": "c1", "model": "m-1", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}


def delta(text: str, finish: str | None = None) -> dict[str, Any]:
    """Make the data of an event with a piece of such an answer."""
    return {"id": "c1", "model": "m-1", "choices": [{"index": 0, "delta": {"content": text}, "finish_reason": finish}]}


def sse(*data: Any) -> bytes:
    """Make a stream of events."""
    return b"".join(b"data: %b\n\n" % (event if isinstance(event, bytes) else json.dumps(event).encode()) for event in data)
