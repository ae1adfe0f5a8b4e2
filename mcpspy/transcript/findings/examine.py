"""Everything that can be found, for `mcpspy check`: what stands under every timeline, and what only those want who ask.

Refuses to read a baseline's files.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import chain

from ..baseline import Baseline
from ..finding import Finding
from ..model import Transcript
from .cost import cost_findings
from .found import Found
from .schemas import schema_findings
from .shapes import shape_findings
from .trust import trust_findings


def examined(transcript: Transcript, baselines: Mapping[str, Baseline] | None = None) -> list[Finding]:
    """All findings of `transcript`, in the order of time, also those that have to be asked for.

    These are what servers promise and keep, what they cost, and how they differ from `baselines`, by label.

    None instead of baselines: nothing is compared.
    """
    promised = chain(schema_findings(transcript), shape_findings(transcript))
    more = counted(chain(promised, cost_findings(transcript), trust_findings(transcript, baselines)))
    return sorted([*transcript.findings, *more], key=lambda one: one.at_ns)


def counted(found: Iterable[Found]) -> list[Finding]:
    """Findings of one rule, capture and group made one, which counts them and points at the first."""
    first: dict[tuple[object, ...], Finding] = {}
    for number, (_, one, group) in enumerate(found):
        key = (one.capture, one.rule, one.culprit, group or number)
        known = first.get(key)
        first[key] = one if known is None else replace(known, count=known.count + 1)
    return list(first.values())
