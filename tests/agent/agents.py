"""An agent that has the tools of `mcpspy mcp` and nothing else: the official client, in the test's process."""

import asyncio
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, NamedTuple

from mcp import Client
from mcp.shared.exceptions import MCPError

from mcpspy.agent.answers import Fence
from mcpspy.agent.server import AgentServer
from mcpspy.capture.store.folder import EXTENSION
from mcpspy.cli.web.agent_captures import StoredCaptures
from mcpspy.transcript.stats.tokens import estimated_tokens
from tests.conftest import ROOT
from tests.deadlines import DEADLINE_S

WORD = "0123456789abcdef"
CAPTURES = ROOT / "captures"
_FENCED = re.compile(rf"<captured-{WORD}>\n(.*?)\n?</captured-{WORD}>", re.DOTALL)


class Told(NamedTuple):
    """The answer to a call of a tool."""

    text: str
    content: dict[str, Any]
    is_error: bool

    @property
    def captured(self) -> str:
        """The captured text."""
        return "\n".join(_FENCED.findall(self.text))

    @property
    def ours(self) -> str:
        """The text around it, which mcpspy answers for."""
        return _FENCED.sub("", self.text)


class Agent:
    """A client of the server. It counts its calls, and the tokens of their answers."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.calls = 0
        self.tokens = 0

    async def call(self, tool: str, /, **arguments: Any) -> Told:
        """Call a tool."""
        result = await self.client.call_tool(tool, arguments)
        (block,) = result.content
        text: str = block.text  # type: ignore[union-attr]  # each answer is one text
        self.calls += 1
        self.tokens += estimated_tokens(text.encode())
        return Told(text, result.structured_content or {}, bool(result.is_error))

    async def resource(self, uri: str) -> Told:
        """Read a resource that does not exist, and return what is said of that."""
        try:
            await self.client.read_resource(uri)
        except MCPError as error:
            return Told(str(error), {}, is_error=True)
        raise AssertionError(uri)


def play(
    scene: Callable[[Agent], Awaitable[None]],
    *whats: str | Path,
    calls: bool = False,
    deadline_s: float = DEADLINE_S,
    **options: Any,
) -> None:
    """Play a scene with an agent whose server has the store, and these captures."""

    async def main() -> None:
        server = AgentServer(lambda: StoredCaptures(tuple(map(str, whats))), Fence(WORD), "0", calls=calls).server
        async with asyncio.timeout(deadline_s), Client(server, **options) as client:
            await scene(Agent(client))

    asyncio.run(main())


def call(named: str | Path, tool: str, /, **arguments: Any) -> Told:
    """Call one tool of a server with one capture."""
    told: list[Told] = []

    async def scene(agent: Agent) -> None:
        told.append(await agent.call(tool, **arguments))

    play(scene, *([named] if named else []))
    return told[0]


def capture(name: str) -> Path:
    """Return the path of one of the project's captures."""
    return CAPTURES / f"{name}{EXTENSION}"
