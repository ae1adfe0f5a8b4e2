"""Hits of single modules of rules, before they are counted."""

from itertools import chain

from mcpspy.transcript.findings.facts import TranscriptFacts
from mcpspy.transcript.findings.finders import MODEL_FINDERS, FindingModule, finder, is_optional
from mcpspy.transcript.findings.llm.model_facts import ModelFacts
from mcpspy.transcript.findings.rule import Finding
from mcpspy.transcript.model import Transcript


def findings_of(module: FindingModule[TranscriptFacts], transcript: Transcript) -> list[Finding]:
    """Ask one module that reads all captures together."""
    return [hit.finding for hit in module.find(TranscriptFacts(transcript=transcript))]


def model_findings(transcript: Transcript, *, with_optional: bool = False) -> list[Finding]:
    """Ask the modules that read model calls; the optional ones too, if that is wanted."""
    names = [name for name in MODEL_FINDERS if with_optional or not is_optional(name)] if transcript.model_calls else []
    return [hit.finding for hit in chain.from_iterable(finder(name).find(ModelFacts(transcript)) for name in names)]
