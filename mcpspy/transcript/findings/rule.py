"""What a rule is: one kind of finding, with all that docs/findings.md says of it. The rules stand with the code that follows them."""

from dataclasses import dataclass
from enum import StrEnum

from ..finding import Severity


class Family(StrEnum):
    """What a rule is about."""

    TRANSPORT = "transport"
    """Whether what one side writes reaches the other, whole and in time: lines, streams, processes, HTTP."""
    PROTOCOL = "protocol"
    """Whether the messages are what JSON-RPC and the revision of MCP in force let them be."""
    BEHAVIOUR = "behaviour"
    """What is allowed, and slow or wasteful all the same."""
    COST = "cost"
    """What tools and results take of a model's context."""
    TRUST = "trust"
    """What a server tells the model that it should not, or told it otherwise before."""
    MODEL = "model"
    """What a model is offered, what it wants done, and what it is told: between its API and the servers."""
    CAPTURE = "capture"
    """What the recording lacks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One kind of finding. Its name is stable: people silence rules by name.

    `severity` is the usual one; a finding may be milder where it does no harm. `blame` says whose fault it is and how that is known;
    a finding may say so in words of its own.

    `example` has a line for each thing that happens, in order, in the language of tests/findings/telling.py: `→` is from the client,
    `←` from the server, `⇒` to a model's API, `⇐` from it, `·` anything else. `clean` is the same without the fault. Both are played
    by the tests.
    """

    name: str
    family: Family
    severity: Severity
    what: str
    why: str
    blame: str
    example: str
    fix: str
    clean: str = ""
