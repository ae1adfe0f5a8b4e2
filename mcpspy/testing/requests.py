"""What the code under test asked of a mock, from the captures that the mock made: calls, misses, what was left over."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..capture.file.reader import read
from ..records import CLIENT, Note
from ..replay.mock.miss import Miss, request_name
from ..replay.mock.played import played
from ..transcript.mcp.methods import OPENINGS
from ..transcript.model import ChannelEvent, Exchange, Outcome, Transcript
from ..transcript.transcribe import transcribe

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from ..replay.mock.matching import RequestMatcher

CLIENT_ERRORS = range(400, 500)
"""Statuses by which a server refuses what it was asked; RFC 9110, section 15.5."""

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


def refuses(transcript: Transcript) -> bool:
    """Whether a server refused something over HTTP, as it does who wants a login first: a mock that listens can play that."""
    return any(one.status in CLIENT_ERRORS for source in transcript.captures for one in source.transactions.values())


def misses(transcript: Transcript, matcher: RequestMatcher) -> list[Miss]:
    """What was asked and never recorded. The mock's own notes say that it was; the matcher says once more why.

    A probe is none: the client finds out that way what the recorded server speaks, and goes on.
    """
    known = played(transcript, matcher).misses
    notes = [row.record.text for row in transcript.rows if isinstance(row, ChannelEvent) and _is_miss(row)]  # type: ignore[union-attr]  # a Note
    asked = calls(transcript)
    found = [next((one for one in known if text.startswith(one.sentence)), None) or _spelled_out(text, asked) for text in notes]
    probes = {id(one.request) for one in asked if one.outcome is Outcome.PROBE}
    return [one for one in found if id(one.request) not in probes]


def left_over(
    transcript: Transcript, recorded: Sequence[Exchange], matcher: RequestMatcher, *, plays_nearest: bool
) -> list[Exchange]:
    """The recorded exchanges that were not played; what clients ask by themselves is not counted."""
    given = played(transcript, matcher)
    nearest = {one.nearest.row for one in given.misses if one.nearest is not None} if plays_nearest else set()
    rows = given.rows | nearest
    return [one for one in recorded if one.row not in rows and one.method not in _OF_CLIENTS]


def _is_miss(row: ChannelEvent) -> bool:
    return isinstance(row.record, Note) and row.record.topic == "miss"


def _spelled_out(text: str, asked: Sequence[Exchange]) -> Miss:
    """A miss of which the mock's sentence is all that is known."""
    for one in asked:
        if text.startswith(request_name(one.request)):
            return Miss(request=one.request, reason=text.removeprefix(request_name(one.request)).lstrip())
    return Miss(request=asked[-1].request, reason=text)
