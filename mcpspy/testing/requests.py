"""Requests of the code under test, read from the captures that mocks and taps made: calls, misses, and what was not requested."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ..capture.file.reader import read
from ..records import CLIENT, Note
from ..replay.mock.matching import RequestMatcher, client_sequences
from ..replay.mock.miss import Miss, request_name
from ..transcript.mcp.methods import OPENINGS
from ..transcript.model import ChannelEvent, Exchange, Outcome, Transcript
from ..transcript.transcribe import transcribe

CLIENT_ERRORS = range(400, 500)
"""Statuses with which a server refuses a request (RFC 9110, section 15.5)."""

_CLIENTS_OWN = OPENINGS | {"ping"}
"""Requests that a client's library makes by itself, in one version or another: a test does not miss them."""


def read_transcript(paths: Iterable[Path]) -> Transcript:
    """Read the captures as far as they are written, findings included."""
    return transcribe(*map(read, paths))


def calls(transcript: Transcript) -> list[Exchange]:
    """List the requests of clients, in order."""
    return [exchange for exchange in transcript.exchanges if exchange.sender == CLIENT]


def tool_calls(transcript: Transcript) -> list[tuple[str, dict[str, Any]]]:
    """List the tools that were called, in order, with their arguments; of a call with several rounds, those of the first."""
    tools = []
    for exchange in calls(transcript):
        call = transcript.call_of(exchange)
        if exchange.method == "tools/call" and (call is None or call.row == exchange.row):
            params = exchange.request.params
            arguments = params.get("arguments") if isinstance(params, dict) else None
            tools.append((exchange.target or "", arguments if isinstance(arguments, dict) else {}))
    return tools


def has_refusals(transcript: Transcript) -> bool:
    """Return whether a server refused a request over HTTP, as one that wants a login does: a mock that listens can play that."""
    return any(
        transaction.status in CLIENT_ERRORS for capture in transcript.captures for transaction in capture.transactions.values()
    )


def misses(transcript: Transcript, matcher: RequestMatcher) -> list[Miss]:
    """List the requests that were never recorded. The mock's own notes name them; the matcher explains each once more.

    A probe is no miss: with it the client finds out what the recorded server speaks, and goes on.
    """
    explained = _matched(transcript, matcher).misses
    notes = [row.record.text for row in transcript.rows if isinstance(row, ChannelEvent) and _is_miss(row)]  # type: ignore[union-attr]  # a Note
    requests = calls(transcript)
    missed = [_miss_of_note(text, explained, requests) for text in notes]
    probes = {id(exchange.request) for exchange in requests if exchange.outcome is Outcome.PROBE}
    return [miss for miss in missed if id(miss.request) not in probes]


def unplayed(
    transcript: Transcript, recorded: Sequence[Exchange], matcher: RequestMatcher, *, plays_nearest: bool
) -> list[Exchange]:
    """List the recorded exchanges that were not played, but for requests that clients make by themselves."""
    matched = _matched(transcript, matcher)
    nearest = {miss.nearest.row for miss in matched.misses if miss.nearest is not None} if plays_nearest else set()
    rows = matched.rows | nearest
    return [exchange for exchange in recorded if exchange.row not in rows and exchange.method not in _CLIENTS_OWN]


class _MatchedRequests(NamedTuple):
    """Rows of the recorded exchanges that were played, and the misses."""

    rows: frozenset[int]
    misses: tuple[Miss, ...]


def _matched(live: Transcript, matcher: RequestMatcher) -> _MatchedRequests:
    """Match the requests of live clients once more. A client of stdio is the first of its mock; those of HTTP are counted."""
    rows: set[int] = set()
    missed: list[Miss] = []
    counts: dict[int, int] = {}
    for sequence in client_sequences(live.exchanges):
        capture = sequence[0].capture
        cursor = matcher.cursor(counts.get(capture, 0))
        counts[capture] = counts.get(capture, 0) + 1
        for exchange in sequence:
            match = cursor.match(exchange.request)
            if isinstance(match, Miss):
                missed.append(match)
            else:
                rows.add(match.row)
    return _MatchedRequests(frozenset(rows), tuple(missed))


def _is_miss(row: ChannelEvent) -> bool:
    return isinstance(row.record, Note) and row.record.topic == "miss"


def _miss_of_note(text: str, explained: Sequence[Miss], requests: Sequence[Exchange]) -> Miss:
    """Return the explained miss that a mock's note is about; if there is none, one that has the note's sentence only."""
    for miss in explained:
        if text.startswith(miss.sentence):
            return miss
    for exchange in requests:
        name = request_name(exchange.request)
        if text.startswith(name):
            return Miss(request=exchange.request, reason=text.removeprefix(name).lstrip())
    return Miss(request=requests[-1].request, reason=text)
