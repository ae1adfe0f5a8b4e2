"""Everything that can be found, for `mcpspy check`: what stands under every timeline, and what only those want who ask.

Refuses to read a baseline's files.
"""

from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import replace
from itertools import chain

from ..finding import Finding
from ..model import Transcript
from ..offers.baseline import Baseline
from . import cost, trust
from .build import Found
from .llm import costs as inference_costs
from .llm import schemas as inference_schemas
from .llm.run import asked_model_findings
from .protocol import schemas
from .protocol import types as shapes


def examined(
    transcript: Transcript,
    baselines: Mapping[str, Baseline] | None = None,
    rules: Container[str] | None = None,
    wanted: Callable[[Finding], bool] | None = None,
) -> list[Finding]:
    """All findings of `transcript`, in the order of time, also those that have to be asked for.

    These are what servers promise and keep, what they cost, and how they differ from `baselines`, by label.

    None instead of baselines: nothing is compared. Of `rules` only these are followed; None: all. `wanted` is as for `findings`.
    """
    parts = (
        (schemas.RULES, schemas.schema_findings(transcript)),
        (shapes.RULES, shapes.shape_findings(transcript)),
        (cost.RULES, cost.cost_findings(transcript)),
        (trust.RULES, trust.trust_findings(transcript, baselines)),
        ((*inference_schemas.RULES, *inference_costs.RULES), asked_model_findings(transcript)),
    )
    asked = [found for some, found in parts if rules is None or any(rule.name in rules for rule in some)]
    known = transcript.findings if rules is None else [one for one in transcript.findings if one.rule in rules]
    told = (one for one in chain.from_iterable(asked) if wanted is None or wanted(one.finding))
    more = [one for one in counted(told) if rules is None or one.rule in rules]
    return sorted([*known, *more], key=lambda one: one.at_ns)


def counted(found: Iterable[Found]) -> list[Finding]:
    """Findings of one rule, capture and group made one, which counts them and points at the first."""
    first: dict[tuple[object, ...], Finding] = {}
    for number, (_, one, group) in enumerate(found):
        key = (one.capture, one.rule, one.culprit, group or number)
        known = first.get(key)
        first[key] = one if known is None else replace(known, count=known.count + 1)
    return list(first.values())
