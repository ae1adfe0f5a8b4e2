"""An agent without a model finds planted faults with the tools alone: in at most 5 calls and 6,000 tokens each.

It knows no fault: it reads the findings, then the first row that the worst finding names. docs/mcp.md has the table.
"""

import re
from typing import NamedTuple

import pytest

from tests.agent.agents import Agent, play
from tests.conftest import ROOT

MAX_CALLS = 5
MAX_TOKENS = 6_000
TOLERANCE = 0.1
"""The share by which the tokens may differ from those on the page: times and dates are in them."""


class Diagnosis(NamedTuple):
    """The conclusion of an agent: the rule, the culprit and the rows of the worst finding; empty if there is none."""

    rule: str = ""
    culprit: str = ""
    rows: tuple[int, ...] = ()


async def diagnose(agent: Agent) -> Diagnosis:
    """Find the worst fault, and look at a row that shows it."""
    told = await agent.call("findings")
    serious = [finding for finding in told.content["findings"] if finding["severity"] != "note"]
    if not serious:
        return Diagnosis()
    finding = serious[0]
    if finding["rows"]:
        assert not (await agent.call("row", what=f"@:{finding['rows'][0]}")).is_error
    return Diagnosis(finding["rule"], finding["culprit"], tuple(finding["rows"]))


FAULTS = {
    "stdout-noise": "server",
    "unanswered-request": "server",
    "server-died": "server",
    "swapped-answers": "server",
    "schema-refused": "server",
    "session-unknown": "client",
    "arguments-invalid": "agent",
    "unknown-tool": "agent",
    "token-refused": "configuration",
    "wrong-endpoint": "configuration",
}
"""Rules of examples, and the culprits that their authors planted."""

PAGE = (ROOT / "docs" / "mcp.md").read_text()


def documented(rule: str) -> tuple[str, int, int]:
    """Return the culprit of a fault, the calls and the tokens that the page has."""
    (row,) = re.findall(rf"^\| `{rule}` \| (\w+) \| (\d+) \| (\d+) \|$", PAGE, re.MULTILINE)
    return row[0], int(row[1]), int(row[2])


@pytest.mark.parametrize("rule", FAULTS)
def test_an_agent_finds_a_planted_fault_and_its_culprit(rule: str) -> None:
    async def scene(agent: Agent) -> None:
        diagnosis = await diagnose(agent)
        assert (diagnosis.rule, diagnosis.culprit) == (rule, FAULTS[rule])
        assert agent.calls <= MAX_CALLS
        assert agent.tokens <= MAX_TOKENS
        culprit, calls, tokens = documented(rule)
        assert (culprit, calls) == (diagnosis.culprit, agent.calls)
        assert abs(agent.tokens - tokens) <= TOLERANCE * tokens

    play(scene, ROOT / "tests" / "findings" / f"{rule}.mcpspy")


@pytest.mark.parametrize("rule", FAULTS)
def test_an_agent_accuses_nobody_where_there_is_no_fault(rule: str) -> None:
    async def scene(agent: Agent) -> None:
        assert await diagnose(agent) == Diagnosis()

    play(scene, ROOT / "tests" / "findings" / f"{rule}.clean.mcpspy")
