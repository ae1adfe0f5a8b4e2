"""Hits of single modules of rules, before they are counted."""

from itertools import chain

from mcpspy.transcript.findings.facts import TranscriptFacts
from mcpspy.transcript.findings.llm.model_facts import ModelFacts
from mcpspy.transcript.findings.registry import MODEL_FINDERS, FindingModule, is_optional
from mcpspy.transcript.findings.rule import Finding
from mcpspy.transcript.model import Transcript


def findings_of(finder: FindingModule[TranscriptFacts], transcript: Transcript) -> list[Finding]:
    """Ask one module that reads all captures together."""
    return [hit.finding for hit in finder.find(TranscriptFacts(transcript=transcript))]


def model_findings(transcript: Transcript, *, with_optional: bool = False) -> list[Finding]:
    """Ask the modules that read model calls; the optional ones too, if that is wanted."""
    finders = [finder for finder in MODEL_FINDERS if with_optional or not is_optional(finder)] if transcript.model_calls else []
    return [hit.finding for hit in chain.from_iterable(finder.find(ModelFacts(transcript)) for finder in finders)]
