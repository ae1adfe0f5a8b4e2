"""Findings of a transcript: `findings` for every view, `all_findings` for `mcpspy check`, which leaves out none.

Where records are missing, nobody is blamed for what is not seen: there the rules about responses find nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from ..absent_facts import BEFORE, Proof, imported_facts, unchecked_facts
from ..hops import hop_name, hop_pairs, stream_pairs
from ..mcp.methods import DISCOVER
from .facts import TranscriptFacts, capture_facts
from .finders import (
    CAPTURE_FINDERS,
    HOP_FINDERS,
    MODEL_FINDERS,
    TRANSCRIPT_FINDERS,
    concerns,
    finder,
    left_modules,
    left_rules,
)
from .gateway_signs import GatewaySigns

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Iterator, Mapping

    from ..definitions import Baseline
    from ..model import Transcript
    from .facts import CaptureFacts
    from .rule import Finding, Hit, Unchecked

_ALL_CAPTURES = -1

_FOLLOWING: Final = frozenset({
    "ambiguous-stream", "duplicate-response", "event-id-again", "id-in-use", "id-reused", "method-not-in-revision",
    "misdelivered-answer", "missing-initialize", "progress-not-increasing", "resent-call", "second-initialize",
    "token-in-use",
})  # fmt: skip
"""Rules that compare a message with those before it, some of which may be missing in a damaged capture."""

_FOLLOWED: Final = frozenset({"insufficient-scope", "pages-unread", "refused-handshake", "session-unknown"})
"""Rules about what did not come after a message, or not in time."""

LEFT_REASON: Final = "only mcpspy check runs them"

COMPARING = "trust"
"""The module that finds more if there are baselines."""


def findings(transcript: Transcript, wanted: Callable[[Finding], bool] | None = None) -> list[Finding]:
    """Find what need not be asked for, in the order of time: everything, or what is quickly found (`finders`).

    Equal hits are one finding, which points at the first and counts all. Only what is `wanted` counts; None: all.
    """
    credentials = transcript.credentials
    facts = TranscriptFacts(transcript=transcript)
    left = left_modules(transcript)
    hits = _hits(facts, lambda name: name not in left)
    found = _with_hops(transcript, _counted(_settled(transcript, hits), wanted))
    transcript.limits.update(facts.limits)
    return found if credentials is None else credentials.masked(found)


def all_findings(
    transcript: Transcript,
    baselines: Mapping[str, Baseline] | None = None,
    rules: Container[str] | None = None,
    wanted: Callable[[Finding], bool] | None = None,
    limits: dict[Unchecked, None] | None = None,
) -> list[Finding]:
    """Add the findings that have to be asked for to those that `transcript` has, in the order of time.

    `baselines` are what servers are compared with, by label; None: with nothing. Only findings of `rules` are given, None: of all.
    `wanted` is as for `findings`. `limits` takes the limits that were reached.
    """
    left = left_modules(transcript)

    def is_asked(name: str) -> bool:
        is_new = name in left or (name == COMPARING and baselines is not None)
        return is_new and (rules is None or any(rule.name in rules for rule in finder(name).RULES))

    credentials = transcript.credentials
    facts = TranscriptFacts(transcript=transcript, baselines=baselines, limits={} if limits is None else limits)
    again = {rule.name for rule in finder(COMPARING).RULES} if is_asked(COMPARING) else ()
    found = [finding for finding in transcript.findings if finding.rule not in again]
    both = [*found, *_with_hops(transcript, _counted(_settled(transcript, _hits(facts, is_asked)), wanted))]
    facts.limits.update(
        (limit, None)
        for limit in transcript.limits
        if rules is None or not limit.rules or any(name in rules for name in limit.rules)
    )
    asked = sorted((finding for finding in both if rules is None or finding.rule in rules), key=lambda finding: finding.at_ns)
    return asked if credentials is None else credentials.masked(asked)


def unchecked(transcript: Transcript) -> list[Unchecked]:
    """Return what the findings of a transcript leave out: rules that were left to `mcpspy check`, limits, what was not recorded."""
    left = left_rules(transcript)
    others = [*transcript.limits, *unrecorded(transcript)]
    if not left:
        return others
    from .rule import Unchecked

    return [Unchecked(rules=left, reason=LEFT_REASON, did_run=False), *others]


def unrecorded(transcript: Transcript, rules: Container[str] | None = None) -> Iterator[Unchecked]:
    """Yield what rules, of these or of all, did not look at because it was not recorded."""
    unkept = sum(info.unkept for info in transcript.captures)
    if unkept:
        from .rule import Unchecked

        yield Unchecked(rules=(), reason=f"the payloads of {unkept:,} frame{'s' * (unkept > 1)} were not recorded")
    yield from unchecked_facts(transcript.captures, rules)


def _hits(facts: TranscriptFacts, is_asked: Callable[[str], bool]) -> Iterator[tuple[int, Hit]]:
    """Ask the modules in the order of their tables. Each hit comes with the capture that it is counted in."""
    names = [name for name in CAPTURE_FINDERS if is_asked(name)]
    pairs = hop_pairs(facts.transcript)
    # Where both sides of a gateway were tapped, its far side decides.
    decided = {outer for outer, _ in pairs | stream_pairs(facts.transcript, pairs)}
    for capture in capture_facts(facts.transcript) if names else ():
        signs, proof = GatewaySigns(capture), Proof(capture.capture, facts.transcript.rows)
        for name in names:
            if concerns(name, capture):
                hits = finder(name).find(capture)
                for hit in hits if capture.capture.index in decided else signs.doubted(hits):
                    if proof.holds(hit.finding) and not _may_be_missing(hit.finding, capture):
                        yield hit.finding.capture, hit
        facts.transcript.limits.update(capture.limits)
    of_several = HOP_FINDERS if facts.transcript.hops else ()
    proofs = [Proof(info, facts.transcript.rows) for info in facts.transcript.captures]
    for of_all in filter(is_asked, (*of_several, *TRANSCRIPT_FINDERS)):
        for hit in finder(of_all).find(facts):
            if proofs[hit.finding.capture].holds(hit.finding):
                yield hit.finding.capture, hit
    if facts.transcript.model_calls:
        for hit in _model_hits(facts, [name for name in MODEL_FINDERS if is_asked(name)]):
            yield _ALL_CAPTURES, hit


def _may_be_missing(finding: Finding, facts: CaptureFacts) -> bool:
    """Return whether a tap's capture may lack what would refute a finding: at its beginning, or where it is damaged."""
    has_begun = facts.starts_ns or facts.initializes or facts.capture.transactions or facts.has_request(DISCOVER)
    if finding.rule in BEFORE and not has_begun and not imported_facts(facts.capture.header):
        return True
    if facts.first_hole_ns is None or facts.last_hole_ns is None:
        return False
    follows = finding.at_ns >= facts.first_hole_ns and finding.rule in _FOLLOWING
    return follows or (finding.at_ns <= facts.last_hole_ns and finding.rule in _FOLLOWED)


def _model_hits(facts: TranscriptFacts, names: list[str]) -> Iterator[Hit]:
    from .llm.model_facts import ModelFacts  # what reads prompts is imported only where there are some

    if names:
        model_facts = ModelFacts(facts.transcript)
        for name in names:
            yield from finder(name).find(model_facts)


def _settled(transcript: Transcript, hits: Iterator[tuple[int, Hit]]) -> Iterator[tuple[int, Hit]]:
    """Settle who is to blame where several captures may show both sides of a gateway."""
    if any(info.restarted or info.intercepted_ns is not None for info in transcript.captures):
        from ..intercepts import unblamed

        hits = unblamed(transcript, hits)
    if len(transcript.captures) < 2:
        return hits
    from .hop_culprits import settled

    return settled(transcript, hits)


def _with_hops(transcript: Transcript, found: list[Finding]) -> list[Finding]:
    """Add to findings the hops that they were found on."""
    if not transcript.hops:
        return found
    names = [hop_name(transcript, info.index) for info in transcript.captures]
    return [replace(finding, hop=finding.hop or names[finding.capture]) for finding in found]


class _EqualHits:
    """Hits that are one finding: the first, how often it was met, and the rows of all."""

    __slots__ = ("count", "first", "rows")

    def __init__(self, first: Finding) -> None:
        self.first = first
        self.count = 0
        self.rows: dict[int, None] = {}

    def add(self, finding: Finding) -> None:
        self.count += finding.count
        self.rows.update(dict.fromkeys(finding.rows))

    def finding(self) -> Finding:
        return replace(self.first, count=self.count, rows=tuple(self.rows))


def _words(finding: Finding) -> str:
    """Return the group of a hit that has none: its words, after a line end, which no other group begins with."""
    return f"\n{finding.severity} {finding.what}"


def _counted(hits: Iterable[tuple[int, Hit]], wanted: Callable[[Finding], bool] | None) -> list[Finding]:
    """Make hits of one capture, rule, culprit and group (without one: of equal words) one finding, and sort by time."""
    counted: dict[tuple[int, str, str, str], _EqualHits] = {}
    for capture, (finding, group) in hits:
        if wanted is None or wanted(finding):
            key = (capture, finding.rule, finding.culprit, group or _words(finding))
            counted.setdefault(key, _EqualHits(finding)).add(finding)
    return sorted((equal.finding() for equal in counted.values()), key=lambda finding: finding.at_ns)
