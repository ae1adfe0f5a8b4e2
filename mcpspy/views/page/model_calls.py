"""Details of a model call for the page: its prompt and answer as messages, and its description by `show`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ...records import CLIENT, SERVER
from ..json.llm import model_call_object
from ..text.json_text import as_json, payload
from ..text.line import plain
from ..timeline.model_call import model_call_lines

if TYPE_CHECKING:
    from ...transcript.llm.tool_trips import ToolTrip
    from ...transcript.model import CaptureInfo, ModelCall, Transcript

MAX_DESCRIPTION_LINES = 1_000


def description_of_call(row: ModelCall, transcript: Transcript, tool_trips: Iterable[ToolTrip]) -> list[str]:
    """Describe a model call as `show` does, without heading and HTTP: turns folded by role, and the target of each tool use."""
    lines = [plain(line) for line in model_call_lines(transcript, row, tool_trips)]
    blank = next((at for at, line in enumerate(lines) if not line), 0)
    last = len(lines) - 1 - next((at for at, line in enumerate(reversed(lines)) if not line), 0)
    return lines[1:blank] + lines[blank:last][:MAX_DESCRIPTION_LINES]


def messages_of_call(row: ModelCall, capture: CaptureInfo) -> list[dict[str, Any]]:
    """Build the prompt as it was sent, and the answer as it was assembled."""
    made = [prompt_of_call(row)]
    answer = model_call_object(row, capture, whole=True)["answer"]
    response = row.transaction.response
    if answer is not None and response is not None:
        made.append(
            _message(SERVER, "answer", row.ended_ns or response.at_ns, response.opened.number, as_json(answer).encode())
        )
    return made


def prompt_of_call(row: ModelCall) -> dict[str, Any]:
    """Return the prompt as it was sent."""
    return _message(CLIENT, "prompt", row.at_ns, row.number, row.payload)


def _message(sender: str, kind: str, at_ns: int, number: int, raw: bytes) -> dict[str, Any]:
    return {"from": sender, "kind": kind, "at": at_ns, "record": number, "bytes": len(raw), **payload(raw)}
