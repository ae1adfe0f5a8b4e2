"""What the code under test asked of a mock, from the captures that the mock made: calls, misses, what was left over."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..capture.reader import read
from ..records import CLIENT, Note
from ..replay.miss import Miss, named
from ..replay.played import played
from ..transcript.mcp_methods import OPENINGS
from ..transcript.model import Event, Exchange, Transcript
from ..transcript.transcribe import transcribe

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from ..replay.matching import Matcher
    from ..transcript.model import Message

_OF_CLIENTS = OPENINGS | {"ping"}
"""What a client's library asks by itself, in this version of it or in another: nobody misses it."""


def transcript_of(paths: Iterable[Path]) -> Transcript:
    """What the captures say by now, findings included."""
    return transcribe(*map(read, paths))


def calls(transcript: Transcript) -> list[Exchange]:
    """What clients asked, in order."""
    return [one for one in transcript.exchanges if one.sender == CLIENT]


def tool_calls(transcript: Transcript) -> list[tuple[str, dict[str, Any]]]:
    """The tools that were called, in order, with their arguments; of a call that went several rounds, the first."""
    found = []
    for one in calls(transcript):
        call = transcript.call_of(one)
        if one.method == "tools/call" and (call is None or call.row == one.row):
            params = one.request.params
            arguments = params.get("arguments") if isinstance(params, dict) else None
            found.append((one.target or "", arguments if isinstance(arguments, dict) else {}))
    return found


def misses(transcript: Transcript, matcher: Matcher) -> list[Miss]:
    """What was asked and never recorded. The mock's own notes say that it was; the matcher says once more why."""
    known = played(transcript, matcher).misses
    notes = [row.record.text for row in transcript.rows if isinstance(row, Event) and _is_miss(row)]  # type: ignore[union-attr]  # a Note
    requests = [one.request for one in calls(transcript)]
    return [
        next((one for one in known if text.startswith(one.sentence)), None) or _spelled_out(text, requests) for text in notes
    ]


def left_over(transcript: Transcript, recorded: Sequence[Exchange], matcher: Matcher) -> list[Exchange]:
    """The recorded exchanges that were not asked for; what clients ask by themselves is not counted."""
    rows = played(transcript, matcher).rows
    return [one for one in recorded if one.row not in rows and one.method not in _OF_CLIENTS]


def _is_miss(row: Event) -> bool:
    return isinstance(row.record, Note) and row.record.topic == "miss"


def _spelled_out(text: str, requests: Sequence[Message]) -> Miss:
    """A miss of which the mock's sentence is all that is known."""
    for request in requests:
        if text.startswith(named(request)):
            return Miss(request=request, reason=text.removeprefix(named(request)).lstrip())
    return Miss(request=requests[-1], reason=text)
