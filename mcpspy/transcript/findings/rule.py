"""The classes of findings: `Rule`, a kind of finding; `Finding`; and `Hit`, a finding that is not yet counted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, TypeAlias, TypedDict, Unpack

import msgspec
from msgspec.structs import replace

from ...lazy_pattern import lazy_pattern

if TYPE_CHECKING:
    from ..message import Message

AGENT: Final = "agent"
"""The culprit of what a model decides: which tool is called, with which arguments, and how often."""

CONFIGURATION: Final = "configuration"
"""The culprit of what the client's entry for a server says: its command, its URL, its credentials and its environment."""

_role = lazy_pattern(r"^The (?:sender|receiver|reader|writer):")


class Severity(StrEnum):
    """The severity of a finding."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


WORST_FIRST: Final = (Severity.ERROR, Severity.WARNING, Severity.NOTE)


def is_at_least(severity: Severity, limit: Severity) -> bool:
    """Return whether a severity is as bad as the limit, or worse."""
    return WORST_FIRST.index(severity) <= WORST_FIRST.index(limit)


class Family(StrEnum):
    """The subject of a rule."""

    TRANSPORT = "transport"
    """Losses and delays between what one side writes and what the other reads: lines, streams, processes, HTTP."""
    PROTOCOL = "protocol"
    """Messages that violate JSON-RPC or the revision of MCP in force."""
    BEHAVIOUR = "behaviour"
    """Traffic that is allowed, but slow or wasteful."""
    COST = "cost"
    """Tokens of a model's context that tools and results take."""
    TRUST = "trust"
    """Things that a server hides from the user, shows but should not, or has changed since somebody accepted it."""
    MODEL = "model"
    """Traffic between a model and the servers: the tools that its prompts offer, the tools that it uses, and their results."""
    CAPTURE = "capture"
    """Records that a capture lacks."""


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of finding. Its name is stable: people silence rules by name.

    `severity` is the usual one; a finding may be milder where it does no harm. `blame` says whose fault it is and how that is known.
    It begins with a side (`The server:`), or with `The sender:`, `The receiver:`, `The reader:` or `The writer:`, where a finding
    names the side instead. A finding may also give a sentence of its own.

    `example` has a line for each thing that happens, in order, in the language of tests/findings/account.py: `→` is from the client,
    `←` from the server, `⇒` to a model's API, `⇐` from it, `·` anything else. `clean` is the same without the fault. The tests play
    both.
    """

    name: str
    title: str
    """A few words that name the fault, without a full stop."""
    family: Family
    severity: Severity = Severity.WARNING
    what: str
    why: str
    blame: str
    example: str
    advice: str
    clean: str = ""


transport_rule = partial(Rule, family=Family.TRANSPORT)
protocol_rule = partial(Rule, family=Family.PROTOCOL)
behaviour_rule = partial(Rule, family=Family.BEHAVIOUR)
cost_rule = partial(Rule, family=Family.COST)
trust_rule = partial(Rule, family=Family.TRUST)
model_rule = partial(Rule, family=Family.MODEL)
capture_rule = partial(Rule, family=Family.CAPTURE)

HANDSHAKE: Final = "· handshake 2025-11-25, server: tools\n"
"""The beginning of examples."""

CLEAN_POST: Final = (
    '→ POST /mcp\n  {"jsonrpc":"2.0","id":1,"method":"tools/list"}\n← 200 OK\n  {"jsonrpc":"2.0","id":1,"result":{"tools":[]}}'
)
"""The twin of examples in which a POST was refused or answered wrongly."""


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """Something in a capture that somebody should look at. `rule` is the name of its rule; `culprit` is who is to blame, `blame` why.

    Captured text in its sentences is as it was captured, so a view has to escape it.
    """

    rule: str
    severity: Severity
    capture: int
    number: int
    """The record it points at."""
    row: int | None
    """The row it points at, if it is about one."""
    at_ns: int
    """The time of its first occurrence, on the transcript's clock."""
    what: str
    """One sentence on what happened."""
    culprit: str
    """`client`, `server`, `agent`, `gateway`, `configuration`, `model`, `api`, `mcpspy`, `disk` or `file`; `unclear` where the wire
    does not say.
    """
    blame: str
    """One sentence on whose fault it is, and how that is known."""
    advice: str
    """One sentence on what to do."""
    count: int = 1
    """The number of its occurrences; it points at the first."""
    rows: tuple[int, ...] = ()
    """All rows that it is about, each once, in the order in which it was met there; `row` is the first."""
    hop: str = ""
    """The hop that it was found on, as in `claude ↔ gateway`; empty without a gateway."""


def worded(finding: Finding, what: str, blame: str, advice: str) -> Finding:
    """Return a finding in other words."""
    return replace(finding, what=what, blame=blame, advice=advice)


def counted_together(first: Finding, other: Finding) -> Finding:
    """Return the first of two equal findings with the count of both."""
    return replace(first, count=first.count + other.count)


class Unchecked(msgspec.Struct, frozen=True, kw_only=True):
    """Rules that did not look at everything, by their names, and the `reason`. No names: all rules about messages.

    `did_run` tells rules that looked at a part from those that did not run at all.
    """

    rules: tuple[str, ...]
    reason: str
    did_run: bool = True


class Hit(NamedTuple):
    """A finding that a module of rules yields. Hits of one rule and culprit with an equal `group` become one finding.

    So do hits without a group that say the same.
    """

    finding: Finding
    group: str = ""


class HitDetails(TypedDict, total=False):
    """The part of a hit that may be left out: words and a severity of its own, its group, and how often it was met."""

    blame: str
    advice: str
    severity: Severity | None
    group: str
    count: int


def hit(
    rule: Rule,
    *,
    at_ns: int,
    capture: int,
    number: int,
    row: int | None,
    what: str,
    culprit: str,
    blame: str = "",
    advice: str = "",
    severity: Severity | None = None,
    group: str = "",
    count: int = 1,
) -> Hit:
    """Make a finding of `rule`; severity, blame and advice are the rule's where they are left out."""
    finding = Finding(
        rule=rule.name,
        severity=severity or rule.severity,
        capture=capture,
        number=number,
        row=row,
        at_ns=at_ns,
        what=what,
        culprit=culprit,
        blame=blame or _blame(rule, culprit),
        advice=advice or rule.advice,
        count=count,
        rows=() if row is None else (row,),
    )
    return Hit(finding, group)


def hit_in(rule: Rule, message: Message, row: int, what: str, *, culprit: str = "", **details: Unpack[HitDetails]) -> Hit:
    """Make a finding of `rule` about a message; the culprit is its sender, unless another is named."""
    return hit(
        rule,
        at_ns=message.at_ns,
        capture=message.capture,
        number=message.number,
        row=row,
        what=what,
        culprit=culprit or message.sender,
        **details,
    )


def _blame(rule: Rule, culprit: str) -> str:
    """Give the rule's sentence, with `The server:` or `The client:` where it can only say `The sender:` or the like."""
    return _role.sub(f"The {culprit}:", rule.blame) if culprit in ("client", "server") else rule.blame


Credential: TypeAlias = tuple[int, int, str, bytes]
"""A credential in a text: where it begins and ends, its kind, and its value."""


class FindsCredentials(Protocol):
    """A search for credentials in texts, which also masks what it found where findings quote it."""

    def __call__(self, data: bytes, /) -> Iterable[Credential]: ...

    def may_show(self, texts: Sequence[bytes], /) -> bool: ...

    def masked(self, findings: list[Finding], /) -> list[Finding]: ...
