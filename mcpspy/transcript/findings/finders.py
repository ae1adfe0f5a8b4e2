"""The modules that find, by name, and when each is asked: imported when it is first asked, because to import all takes 40 ms.

To add findings, write a module and add it to the table of the facts that it reads. The module has

- `RULES`, its rules;
- `find(facts)`, which yields a `Hit` for each finding.
"""

from __future__ import annotations

from importlib import import_module
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from ..mcp.revisions import Era, era
from ..model import HTTP_ERRORS
from .facts import SUBSCRIPTION_FILTERS

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterator

    from ..model import Transcript
    from .facts import CaptureFacts
    from .rule import Hit, Rule

Facts = TypeVar("Facts", contravariant=True)  # noqa: PLC0105 - read as the type of `facts`


class FindingModule(Protocol[Facts]):
    """A module of rules, by the facts that it reads."""

    @property
    def RULES(self) -> tuple[Rule, ...]: ...  # noqa: N802 - a constant of a module

    def find(self, facts: Facts, /) -> Iterator[Hit]: ...


CAPTURE_FINDERS: Final = (
    "transport.lines", "protocol.encoding", "protocol.json_traps", "transport.stalls", "transport.server_exits",
    "transport.waiting", "protocol.timeouts", "transport.statuses", "transport.redirects", "transport.placeholders",
    "transport.refusals", "transport.bodies", "transport.browsers", "transport.deliveries", "transport.disconnects",
    "transport.sessions", "transport.streams", "transport.bursts", "transport.limits", "transport.broken_off", "transport.copies",
    "protocol.answers", "protocol.pings", "protocol.method_support", "protocol.handshake", "protocol.unserved",
    "protocol.progress",
    "protocol.rounds", "protocol.state", "protocol.swaps",
    "protocol.tasks", "protocol.modern", "protocol.errors", "transport.headers",
    "transport.responses", "transport.resumption", "protocol.contents", "protocol.forms", "protocol.session_rules",
    "payloads.texts", "payloads.placeholder_arguments", "payloads.tool_offers", "protocol.secret_forms",
    "sequences.contradictions", "sequences.resources", "sequences.changes",
    "protocol.behaviour", "protocol.repeats", "sequences.loops", "sequences.invented_ids", "sequences.blocking",
    "sequences.relisting",
    "invisible_text",
    "capture",
)  # fmt: skip
"""Modules that read one capture at a time, as `CaptureFacts`. docs/findings/ lists their rules in this order."""

TRANSCRIPT_FINDERS: Final = ("protocol.schemas", "protocol.types", "cost", "trust", "credentials")
"""Modules that read all captures together, as `TranscriptFacts`."""

HOP_FINDERS: Final = ("gateway_changes", "transport.gateway_calls")
"""Modules that read all captures together, and are asked only where a gateway was tapped on both sides."""

MODEL_FINDERS: Final = ("llm.offers", "llm.tool_uses", "llm.results", "llm.model_answers", "llm.arguments", "llm.costs")
"""Modules that read the model calls of all captures, as `ModelFacts`, and are asked only where there are any."""

_OPTIONAL: Final = frozenset({
    "protocol.contents", "protocol.forms", "payloads.tool_offers", "protocol.schemas", "protocol.types", "cost", "trust",
    "credentials",
    "sequences.contradictions", "sequences.resources", "sequences.changes", "sequences.loops", "sequences.invented_ids",
    "sequences.blocking", "sequences.relisting", "llm.arguments", "llm.costs",
})  # fmt: skip
"""Modules that parse payloads. In a large transcript only `mcpspy check` and the like ask them."""

MAX_MESSAGES: Final = 10_000
"""A transcript with more messages is large: to ask the optional modules would make `show` wait (docs/check.md)."""

_ON_COMMAND_LINE: Final = ("protocol.types", "credentials")
"""Modules that views ask only if they were told what a credential is, as the command line does: the official types take 0.4 s to
import if a message is unusual, and programs that open captures would wait for them.
"""

LEFT_ELSEWHERE: Final = ("not-as-specified", "credential-shown")
"""The names of their rules."""

LEFT_TO_CHECK: Final = (
    "content-mislabelled", "form-answer-invalid", "tool-name-refused", "schema-refused", "many-tools",
    "text-contradicts", "other-resource", "update-missing", "change-storm", "unasked-update", "calls-in-circles",
    "same-failure", "invented-id", "blocked-by-call", "listed-again", "arguments-invalid", "structured-content-invalid",
    "tool-schema-invalid", "unknown-tool", "stale-tool-list", "not-as-specified", "costly-tools", "unused-tools",
    "large-result", "tool-added", "tool-changed", "tool-removed", "offer-changed", "not-accepted", "not-compared",
    "tool-redefined", "offer-redefined", "shared-tool-name", "credential-shown", "use-invalid", "unused-offers",
)  # fmt: skip
"""The names of the rules of optional modules; a test compares."""

_HTTP_ONLY: Final = frozenset({
    "transport.statuses", "transport.redirects", "transport.refusals", "transport.bodies", "transport.browsers",
    "transport.disconnects", "transport.sessions", "transport.streams", "transport.responses", "transport.resumption",
    "transport.copies",
})  # fmt: skip
"""Modules that find nothing in a capture without HTTP transactions."""

_FEW_CALLS: Final = 5
_FEW_FAILURES: Final = 4
_FEW_LISTS: Final = 4
_FEW_EXCHANGES: Final = 1000
_LONG_LINE: Final = 64 << 10


def _ended_unusually(facts: CaptureFacts) -> bool:
    """Return whether a server's process ended otherwise than with its client's leave, or was never used."""
    if facts.exit is None:
        return False
    record = facts.exit[1]
    is_plain = record.code == 0 and not (record.error or record.signal or record.descendants)
    return not is_plain or facts.signalled_ns is not None or not facts.capture.messages


def _is_long(facts: CaptureFacts) -> bool:
    """Return whether a capture has so many exchanges that to look at them takes longer than to import a module."""
    return len(facts.exchanges) > _FEW_EXCHANGES


def _has_calls_at_once(facts: CaptureFacts) -> bool:
    """Return whether a call began while the one before it ran."""
    return _is_long(facts) or any(
        first.response is not None and second.at_ns < first.response.at_ns for first, second in pairwise(facts.calls)
    )


def _came_together(facts: CaptureFacts) -> bool:
    """Return whether an exchange has several notifications, or the first request on stdio no answer while the client was there."""
    if _is_long(facts) or any(len(exchange.notifications) > 1 for exchange in facts.with_notifications):
        return True
    first = next(iter(facts.exchanges), None)
    if first is None or facts.left_ns is None or facts.capture.transactions:
        return False
    return first.response is None or first.response.at_ns > facts.left_ns


def _has_long_line(facts: CaptureFacts) -> bool:
    """Return whether a client on stdio left, and had a line that some clients do not take."""
    if facts.left_ns is None or facts.capture.transactions:
        return False
    answers = (exchange.response for exchange in facts.exchanges)
    return _is_long(facts) or any(answer is not None and answer.size > _LONG_LINE for answer in answers)


def _has_modern_request(facts: CaptureFacts) -> bool:
    return any(revision is not None and era(revision) is Era.MODERN for _, _, revision, _ in facts.requests)


def _has_status(facts: CaptureFacts, least: int) -> bool:
    """Return whether a response over HTTP has this status or a higher one."""
    return any(transaction.status >= least for transaction in facts.capture.transactions.values())


_NEEDS: Final[dict[str, Callable[[CaptureFacts], object]]] = {
    "protocol.pings": lambda facts: facts.has_request("ping"),
    "protocol.secret_forms": lambda facts: facts.unfinished or facts.has_request("elicitation/create"),
    "payloads.placeholder_arguments": lambda facts: facts.errors or facts.tool_errors,
    "capture": lambda facts: facts.gaps or facts.damages or facts.end is None,
    "transport.lines": lambda facts: facts.malformed,
    "transport.server_exits": lambda facts: facts.unanswered or _ended_unusually(facts),
    "transport.deliveries": lambda facts: facts.capture.transactions,
    "transport.broken_off": lambda facts: facts.malformed or facts.stopped_reading_ns is not None,
    "transport.bursts": _came_together,
    "transport.limits": _has_long_line,
    "transport.placeholders": lambda facts: facts.capture.transactions or any("{" in argument for argument in facts.argv),
    "transport.headers": lambda facts: facts.capture.transactions or _has_modern_request(facts),
    "transport.refusals": lambda facts: _has_status(facts, HTTP_ERRORS),
    "transport.disconnects": lambda facts: facts.unanswered,
    "transport.resumption": lambda facts: any(other.anomalies for other in facts.capture.transactions.values()),
    "protocol.answers": lambda facts: (
        facts.respelled_ids
        or facts.cancelled
        or facts.with_notifications
        or facts.repeated_answers
        or facts.partial_answers
        or facts.flawed
        or facts.unmatched_responses
        or facts.by_order
    ),
    "protocol.modern": lambda facts: facts.errors or facts.opt_in_notifications or facts.capture.transactions,
    "protocol.swaps": _has_calls_at_once,
    "transport.stalls": lambda facts: facts.stalls or facts.partials,
    "transport.waiting": lambda facts: facts.waiting,
    "protocol.encoding": lambda facts: facts.flawed,
    "protocol.contents": lambda facts: facts.calls or facts.has_request("prompts/get") or facts.has_request("resources/read"),
    "protocol.errors": lambda facts: facts.errors,
    "protocol.forms": lambda facts: facts.joined_calls or facts.has_request("elicitation/create"),
    "protocol.progress": lambda facts: facts.with_notifications or facts.unmatched_notifications,
    "protocol.repeats": lambda facts: facts.cancelled,
    "protocol.rounds": lambda facts: facts.unfinished or facts.joined_calls,
    "protocol.timeouts": lambda facts: facts.cancelled,
    "payloads.tool_offers": lambda facts: facts.listings,
    "sequences.blocking": lambda facts: len(facts.exchanges) > 1,
    "sequences.changes": lambda facts: any(method in SUBSCRIPTION_FILTERS for method, *_ in facts.notifications),
    "sequences.contradictions": lambda facts: facts.calls,
    "sequences.invented_ids": lambda facts: facts.errors or facts.tool_errors,
    "sequences.loops": lambda facts: (
        len(facts.calls) > _FEW_CALLS or len(facts.errors) + len(facts.tool_errors) > _FEW_FAILURES
    ),
    "sequences.relisting": lambda facts: len(facts.listings) > _FEW_LISTS,
    "sequences.resources": lambda facts: facts.has_request("resources/read") or facts.has_request("resources/subscribe"),
    "invisible_text": lambda facts: facts.listings,
}
"""Modules that find nothing in a capture without this."""

_OF_MODEL_API: Final = frozenset({"transport.stalls", "transport.statuses", "capture"})
"""Modules that also read captures of a model API, which contain neither JSON-RPC nor MCP."""


def is_optional(name: str) -> bool:
    """Return whether the findings of a module have to be asked for if a transcript is large."""
    return name in _OPTIONAL


def left_modules(transcript: Transcript) -> Container[str]:
    """Return the modules that views leave to `mcpspy check`."""
    return _OPTIONAL if is_large(transcript) else () if _is_told(transcript) else _ON_COMMAND_LINE


def left_rules(transcript: Transcript) -> tuple[str, ...]:
    """Return the names of the rules that views leave to `mcpspy check`."""
    return LEFT_TO_CHECK if is_large(transcript) else () if _is_told(transcript) else LEFT_ELSEWHERE


def _is_told(transcript: Transcript) -> bool:
    return transcript.credentials is not None


def is_large(transcript: Transcript) -> bool:
    """Return whether a transcript has too many messages and model calls for the optional modules."""
    return sum(info.messages for info in transcript.captures) + len(transcript.model_calls) > MAX_MESSAGES


def concerns(name: str, facts: CaptureFacts) -> bool:
    """Return whether a module can find anything in a capture with these facts."""
    capture = facts.capture
    if name in _NEEDS and not _NEEDS[name](facts):
        return False
    return (not capture.is_model or name in _OF_MODEL_API) and (bool(capture.transactions) or name not in _HTTP_ONLY)


_imported: Final[dict[str, FindingModule[Any]]] = {}


def finder(name: str) -> FindingModule[Any]:
    """Import a module that finds."""
    module = _imported.get(name)
    if module is None:
        module = _imported[name] = import_module(f"mcpspy.transcript.findings.{name}")
    return module


def imported_rules() -> Iterator[Rule]:
    """Yield the rules of the modules imported so far. A finding that a module made in this process has its rule among them."""
    for module in _imported.values():
        yield from module.RULES
