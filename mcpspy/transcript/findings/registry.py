"""Where findings are found: the modules of this package, each with the rules that it follows.

A module has `RULES`, its rules, and `find(story)`, which yields what it found in one capture. docs/findings.md is made of the rules
(`views.rules_page`), in this order.
"""

from types import ModuleType
from typing import Final

from . import capture, cost, trust
from . import invisible_text as smuggling
from .llm import answers as inference_answers
from .llm import costs as inference_costs
from .llm import offers as inference_offers
from .llm import results as inference_results
from .llm import schemas as inference_schemas
from .llm import tool_uses as inference_tool_trips
from .protocol import answers, behaviour, errors, handshake, methods, modern, progress, rounds, schemas, tasks, timeouts
from .protocol import encoding as flaws
from .protocol import json_traps as traps
from .protocol import types as shapes
from .rule import Rule
from .transport import disconnects as http_endings
from .transport import headers as http_heads
from .transport import lines, resumption, sessions, streams
from .transport import responses as http_answers
from .transport import server_exits as endings
from .transport import stalls as channel
from .transport import statuses as http

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

MODEL_FINDERS: Final[tuple[ModuleType, ...]] = (inference_offers, inference_tool_trips, inference_results, inference_answers)
"""Those that look at all captures together, where one of them is of a model: `inference`."""

ASKED: Final[tuple[ModuleType, ...]] = (schemas, shapes, cost, trust, inference_schemas, inference_costs)
"""Modules whose rules are followed only where somebody asks: `examine`."""

RULES: Final[dict[str, Rule]] = {rule.name: rule for finder in (*FINDERS, *MODEL_FINDERS, *ASKED) for rule in finder.RULES}
