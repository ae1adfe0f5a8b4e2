"""The culprits of findings where both sides of a gateway were tapped: hits in, hits out, for all rules in one way.

    client ──[capture A]── gateway ──[capture B]── server

A rule looks at one capture. In A it takes the gateway for the server, in B for the client. Here the two hops are compared:

- a fault of the server's side in A stays the server's only if B shows it too, and one of the client's side in B only if A does; then
  it is reported once, with the rows of both hops;
- else the gateway made it: it kept, changed, delayed or cut what it should have passed on;
- where the evidence in A decides nothing, only such a difference makes it the gateway's.

What B does not cover, because it began later or lacks records, proves nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec.structs import replace

from ...records import CLIENT, SERVER
from ..hops import hop_name, hop_pairs, stream_pairs
from ..model import Exchange, Numbered, Outcome
from .gateway_differences import LostSession, changed_answer, lost_session, made_by_gateway, passed_on, undelivered
from .hop_counterparts import Counterparts
from .rule import AGENT, Hit, Severity

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ..model import Transcript

_UNCLEAR: Final = "unclear"
_GATEWAY: Final = "gateway"
_CLIENTS: Final = {CLIENT, AGENT}
"""Culprits whose faults a gateway can only pass on: a client, and the model behind it."""
_ADVICE: Final = "Look at the settings and the log of the gateway; mcpspy diff of the two captures shows what it changes."
_SESSION_ADVICE: Final = "Let the gateway pass Mcp-Session-Id on, in requests and in responses."
_OF_SILENCE: Final = ("timed-out", "given-up", "unanswered-request")
_REPEATED: Final = "repeated-by-gateway"
_OF_COPIES: Final = frozenset({"id-in-use", "id-reused", "repeated-call", "resent-call", _REPEATED})
"""Rules that find, behind a gateway, the copy of a request that the gateway repeated."""
_OF_HANDSHAKE: Final = frozenset({"missing-initialize", "missing-initialized"})
"""Rules about what a session lacks: that a request in it failed alike on both hops says nothing about them."""
_SESSION_MISSING: Final = "session-missing"
_OF_SESSIONS: Final = frozenset({"session-unknown", _SESSION_MISSING, "http-error"})
"""Rules that find the refusals of requests whose session a gateway left out, on either of its hops."""
_SEVEREST: Final = (Severity.ERROR, Severity.WARNING, Severity.NOTE)
_FAILED: Final = (Outcome.PENDING, Outcome.CANCELLED, Outcome.UNANSWERED, Outcome.ERROR, Outcome.HTTP_ERROR, Outcome.REDIRECTED)


class _Place(NamedTuple):
    """A hit with the capture that it is counted in, and the row on each other hop that its row became; None if it became none."""

    counted: int
    hit: Hit
    row: Numbered | None
    others: tuple[Numbered, ...]


def settled(transcript: Transcript, hits: Iterable[tuple[int, Hit]]) -> Iterator[tuple[int, Hit]]:
    """Yield the hits with the culprits that both hops show, those on both hops once."""
    pairs = hop_pairs(transcript)
    pairs |= stream_pairs(transcript, pairs)
    if not pairs:
        yield from hits
        return
    yield from _Hops(transcript, pairs, hits).settled()


class _Hops:
    """The hits of all captures by the row, or the capture, that they are about."""

    def __init__(self, transcript: Transcript, pairs: set[tuple[int, int]], hits: Iterable[tuple[int, Hit]]) -> None:
        self._transcript = transcript
        self._pairs = pairs
        self._names = [hop_name(transcript, info.index) for info in transcript.captures]
        self._counterparts = Counterparts(transcript, pairs)
        self._places = [self._place(counted, hit) for counted, hit in hits]
        self._by_fault: dict[tuple[str, int, int], list[_Place]] = {}
        for place in self._places:
            self._by_fault.setdefault(self._key(place.hit, place.row), []).append(place)
        self._withheld = self._withheld_questions()
        self._copies = {place.hit.finding.row: place.hit for place in self._places if place.hit.finding.rule == _REPEATED}
        self._sessions = self._lost_sessions()
        self._merged: set[int] = set()
        """The identities of hits that another one speaks for."""

    def settled(self) -> Iterator[tuple[int, Hit]]:
        """Yield the hits that remain."""
        self._merge_refusals()
        for place in self._places:
            if id(place.hit) not in self._merged and not self._waited_for_withheld(place) and not self._is_of_copy(place.hit):
                yield place.counted, self._judged(place)

    def _lost_sessions(self) -> dict[int, LostSession]:
        """Return the sessions that gateways left out, by the capture whose requests then lack them."""
        lost = {}
        for outer, inner in self._pairs:
            calls = (
                call for call in self._transcript.hops.values() if (call.outer.capture, call.last.capture) == (outer, inner)
            )
            session = lost_session(calls)
            if session is not None:
                lost[inner if session.is_of_requests else outer] = session
        return lost

    def _lost_session(self, place: _Place) -> LostSession | None:
        """Return the session that the gateway left out of a request, if the hit says that the request lacks it."""
        finding = place.hit.finding
        session = self._sessions.get(finding.capture) if finding.rule == _SESSION_MISSING else None
        if session is None or finding.row is None or not session.rows or finding.row in session.rows:
            return session
        return None if place.others else session

    def _merge_refusals(self) -> None:
        """Let the hits that say that a gateway left a session out speak for the refusals that this had, on both of its hops."""
        speaking = [place for place in self._places if self._lost_session(place) is not None]
        hops = {index for pair in self._pairs for index in pair if any(place.counted in pair for place in speaking)}
        records = {(place.counted, place.hit.finding.number) for place in speaking}
        rows = {row.row for place in speaking if place.row is not None for row in (place.row, *place.others)}
        of_session = {id(place) for place in speaking}
        for place in self._places if speaking else ():
            finding = place.hit.finding
            if finding.capture not in hops or finding.rule not in _OF_SESSIONS or id(place) in of_session:
                continue
            is_early = finding.row is None and finding.rule != "http-error"  # about a notification
            if is_early or finding.row in rows or (finding.capture, finding.number) in records:
                self._merged.add(id(place.hit))

    def _is_of_copy(self, hit: Hit) -> bool:
        """Tell whether a hit is about a request that the gateway repeated; the last hit that says so speaks for all."""
        finding = hit.finding
        return finding.rule in _OF_COPIES and finding.row in self._copies and self._copies[finding.row] is not hit

    def _waited_for_withheld(self, place: _Place) -> bool:
        """Tell whether a hit is about a call that waited for a request of the server which the gateway did not pass on.

        The hit about that request speaks for it.
        """
        row = place.row
        if not isinstance(row, Exchange) or row.sender != CLIENT or row.response is not None:
            return False
        inners = [other for other in (row, *place.others) if isinstance(other, Exchange)]
        return place.hit.finding.rule in _OF_SILENCE and any(
            question.capture == call.capture and call.at_ns <= question.at_ns <= (call.given_up_ns or question.at_ns)
            for question in self._withheld
            for call in inners
        )

    def _withheld_questions(self) -> list[Exchange]:
        """Return the requests of servers that have a hit, behind a gateway whose other side shows none, or shows the answer."""
        behind = {inner for _, inner in self._pairs}
        return [
            place.row
            for place in self._places
            if isinstance(place.row, Exchange) and place.row.sender == SERVER and place.row.capture in behind
            if _is_answered(place.others) and place.hit.finding.rule in _OF_SILENCE and place.hit.finding.culprit == CLIENT
        ]

    def _place(self, counted: int, hit: Hit) -> _Place:
        row = self._counterparts.row(hit.finding.row)
        return _Place(counted, hit, row, () if row is None else self._counterparts.of(row))

    def _key(self, hit: Hit, row: Numbered | None) -> tuple[str, int, int]:
        return hit.finding.rule, hit.finding.capture, 0 if row is None else row.row

    def _judged(self, place: _Place) -> Hit:
        """Decide about one hit."""
        finding = place.hit.finding
        session = self._lost_session(place)
        if session is not None:
            rows = tuple(sorted({*finding.rows, *(row.row for row in place.others)}))
            hit = place.hit._replace(finding=replace(finding, severity=Severity.ERROR, rows=rows))
            return _with(hit, _GATEWAY, f"The gateway: {session.reason}.", _SESSION_ADVICE)
        inner = [pair[1] for pair in self._pairs if pair[0] == finding.capture]
        outer = [pair[0] for pair in self._pairs if pair[1] == finding.capture]
        if inner and finding.culprit in (SERVER, _UNCLEAR):
            return self._from_far_side(place, inner, keeps=False)
        if outer and finding.culprit in _CLIENTS:
            return self._from_far_side(place, outer, keeps=False)
        if inner and finding.culprit in _CLIENTS:
            return self._from_far_side(place, inner, keeps=True)
        if outer and finding.culprit in (SERVER, _UNCLEAR):
            return self._from_far_side(place, outer, keeps=True)
        return place.hit

    def _from_far_side(self, place: _Place, others: list[int], *, keeps: bool) -> Hit:
        """Judge a hit by the `others`, the captures of the other hop. On the culprit's own hop it `keeps` its culprit."""
        twins = [twin for twin in self._twins(place, others) if id(twin.hit) not in self._merged]
        if twins:
            self._merged.update(id(twin.hit) for twin in twins)
            return self._seen_twice(place if keeps else twins[0], twins[0] if keeps else place)
        if not all(self._covers(other, place.hit.finding.at_ns) for other in others):
            return place.hit
        return self._undelivered(place, others) if keeps else self._blamed(place, others)

    def _undelivered(self, place: _Place, others: list[int]) -> Hit:
        """Blame the gateway for a client that left because an answer did not come through."""
        reason = "" if place.row is None else undelivered(place.row, self._other(place), self._server(others))
        if not reason or place.hit.finding.capture not in {outer for outer, _ in self._pairs}:
            return place.hit
        return _with(_at_least_warning(place.hit), _GATEWAY, f"The gateway: {reason}.", _ADVICE)

    def _other(self, place: _Place) -> Numbered | None:
        return place.others[-1] if place.others else None

    def _server(self, others: list[int]) -> str:
        return self._transcript.captures[others[0]].server if len(others) == 1 else "the server"

    def _twins(self, place: _Place, others: list[int]) -> Iterator[_Place]:
        """Yield the hits on the other hop that are about the same fault."""
        finding = place.hit.finding
        rows = [(row.capture, row.row) for row in place.others] if place.others else [(other, 0) for other in others]
        for capture, row in rows:
            for twin in self._by_fault.get((finding.rule, capture, row), ()):
                if capture in others and _agree(twin.hit.finding.culprit, finding.culprit):
                    yield twin

    def _seen_twice(self, near: _Place, far: _Place) -> Hit:
        """Return the hit on the culprit's own hop, with the rows of both."""
        finding, other = near.hit.finding, far.hit.finding
        rows = tuple(sorted({*finding.rows, *other.rows}))
        outer = other if (other.capture, finding.capture) in self._pairs else finding
        inner = finding if outer is other else other
        first = self._names[outer.capture]
        hop = f"{first} ↔ {self._transcript.captures[inner.capture].server}" if outer is not inner else first
        return near.hit._replace(finding=replace(finding, rows=rows, hop=hop))

    def _covers(self, capture: int, at_ns: int) -> bool:
        info = self._transcript.captures[capture]
        return info.shift_ns <= at_ns and not info.gaps and not info.damages

    def _blamed(self, place: _Place, others: list[int]) -> Hit:
        """Blame the gateway for a fault that only this hop shows."""
        finding, row = place.hit.finding, place.row
        other = self._other(place)
        is_outer = any(pair[0] == finding.capture for pair in self._pairs)
        reason = self._outer_reason(place, others, other) if is_outer else "" if row is None else made_by_gateway(other, row)
        failed_alike = finding.rule not in _OF_HANDSHAKE and _failed_alike(row, other)
        if not reason and (finding.culprit == _UNCLEAR or failed_alike):
            return place.hit
        if row is not None and other is None and is_outer and not self._counterparts.is_sole_way(row):
            return _with(place.hit, _UNCLEAR, "Unclear: the gateway, or another server behind it that was not tapped.")
        where = "" if other is None else f" (row {other.row})"
        blame = f"The gateway: {reason or f'what is on its other side does not show this{where}'}."
        hit = _at_least_warning(place.hit) if reason and finding.rule in _OF_SILENCE else place.hit
        return _with(hit, _GATEWAY, blame, _ADVICE)

    def _outer_reason(self, place: _Place, others: list[int], other: Numbered | None) -> str:
        """Say how the client was served otherwise than the gateway was. What decides nothing is decided by delivery alone."""
        server = self._server(others)
        if place.row is None:
            return ""
        is_transparent = self._counterparts.is_transparent(place.hit.finding.capture)
        reason = passed_on(place.row, other, server, is_transparent=is_transparent)
        return reason or ("" if place.hit.finding.culprit == _UNCLEAR else changed_answer(place.row, other, server))


def _agree(culprit: str, other: str) -> bool:
    return culprit == other or _UNCLEAR in (culprit, other) or {culprit, other} == _CLIENTS


def _is_answered(others: Iterable[Numbered]) -> bool:
    """Tell whether a request was answered on the other side of the gateway, or was never made there."""
    return all(isinstance(other, Exchange) and other.response is not None for other in others)


def _failed_alike(row: Numbered | None, other: Numbered | None) -> bool:
    """Tell whether a call failed in one way on both hops, so that the gateway only passed it on."""
    if not isinstance(row, Exchange) or not isinstance(other, Exchange):
        return False
    outcomes = {row.outcome, other.outcome}
    if outcomes <= {Outcome.PENDING, Outcome.CANCELLED, Outcome.UNANSWERED}:
        return True
    return len(outcomes) == 1 and row.outcome in _FAILED


def _with(hit: Hit, culprit: str, blame: str, advice: str = "") -> Hit:
    finding = hit.finding
    what = _as_undelivered(finding.what) if culprit == _GATEWAY else finding.what
    return hit._replace(finding=replace(finding, what=what, culprit=culprit, blame=blame, advice=advice or finding.advice))


def _as_undelivered(what: str) -> str:
    """Say of an answer that a gateway kept that it never came, not that it was never given."""
    for asked, other in ((SERVER, CLIENT), (CLIENT, SERVER)):
        never = f"The {asked} never answered "
        if what.startswith(never):
            return f"The {other} never got the answer to {what.removeprefix(never)}"
        what = what.replace(f"; the {asked} never answered", f"; no answer reached the {other}")
    return what


def _at_least_warning(hit: Hit) -> Hit:
    severity = min(hit.finding.severity, Severity.WARNING, key=_SEVEREST.index)
    return hit._replace(finding=replace(hit.finding, severity=severity))
