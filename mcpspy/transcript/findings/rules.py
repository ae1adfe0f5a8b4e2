"""Where findings are found: the modules of this package, each with the rules that it follows.

A module has `RULES`, its rules, and `find(story)`, which yields what it found in one capture. docs/findings.md is made of the rules
(`views.rules_page`), in this order.
"""

from types import ModuleType
from typing import Final

from . import (
    answers,
    behaviour,
    capture,
    channel,
    cost,
    endings,
    errors,
    flaws,
    handshake,
    http,
    http_answers,
    http_endings,
    http_heads,
    inference_answers,
    inference_costs,
    inference_errands,
    inference_offers,
    inference_results,
    inference_schemas,
    lines,
    methods,
    modern,
    progress,
    resumption,
    rounds,
    schemas,
    sessions,
    shapes,
    smuggling,
    streams,
    tasks,
    timeouts,
    traps,
    trust,
)  # fmt: skip
from .rule import Rule

FINDERS: Final[tuple[ModuleType, ...]] = (
    # transport
    lines, flaws, traps, channel, endings, timeouts, http, http_endings, sessions, streams,
    # protocol
    answers, methods, handshake, progress, rounds, tasks, modern, errors, http_heads, http_answers, resumption,
    # behaviour
    behaviour,
    # trust
    smuggling,
    # capture
    capture,
)  # fmt: skip

MODEL_LEG_FINDERS: Final[tuple[ModuleType, ...]] = (channel, http, capture)
"""Those of them that look at a capture of a model's API, which speaks neither JSON-RPC nor MCP."""

MODEL_FINDERS: Final[tuple[ModuleType, ...]] = (inference_offers, inference_errands, inference_results, inference_answers)
"""Those that look at all captures together, where one of them is of a model: `inference`."""

ASKED: Final[tuple[ModuleType, ...]] = (schemas, shapes, cost, trust, inference_schemas, inference_costs)
"""Modules whose rules are followed only where somebody asks: `examine`."""

RULES: Final[dict[str, Rule]] = {rule.name: rule for finder in (*FINDERS, *MODEL_FINDERS, *ASKED) for rule in finder.RULES}
