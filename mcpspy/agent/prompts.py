"""The prompts of `mcpspy mcp`: requests of a user to an agent, which name the tools to use."""

from typing import Final, NamedTuple


class AgentPrompt(NamedTuple):
    """A prompt: its title, and its text."""

    title: str
    text: str


PROMPTS: Final = {
    "find_out_why_it_hangs": AgentPrompt(
        "Find out why a call hangs",
        "A call of an MCP server hangs. Find out why with the tools of mcpspy: look for pending calls with timeline and the filter "
        "status:pending, read the findings, and see the row in full with the server's stderr meanwhile. Say whether client or server "
        "is to blame, with the numbers of the rows that show it, and what to change.",
    ),
    "write_a_bug_report": AgentPrompt(
        "Write a bug report",
        "Write a bug report about the newest recording of mcpspy. Read the findings, and the rows that they name. Give the versions "
        "of client and server, the steps as the requests that were sent, what was expected by the MCP specification, and what was "
        "answered instead, quoting rows by number. Include no secret, and nothing that the rows do not show.",
    ),
}
