"""An MCP client on the official Python SDK, which does the given steps and prints the result of each.

    stepclient.py MODE STEPS COMMAND…
    stepclient.py MODE STEPS URL

A URL that ends in /sse is one of HTTP+SSE, any other one of Streamable HTTP. MODE is the SDK's: `auto` finds the
newest era that both speak, `legacy` opens with `initialize`. STEPS is a JSON array:

    {"list": "tools"}                     or resources, prompts
    {"read": URI}
    {"prompt": NAME, "arguments": {…}}
    {"call": NAME, "arguments": {…}}      with "progress": true it asks for progress, with "timeout_s": S it gives up after
                                          so long, with "large": {ARGUMENT: N} that argument is a text of N letters
    {"together": [STEP, …]}               at the same time
    {"known": [NAME, …]}                  take these tools for listed: else the SDK lists all after the first call of one, to
                                          check results

Every step prints one JSON line, and so does every progress notification. What the server asks (sampling, elicitation, roots) gets
the same answer each time. The server gets this program's whole environment.
"""

import prepared  # noqa: F401 - saves the imports that follow

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import mcp_types
from mcp import Client
from mcp.client import ClientRequestContext
from mcp.client.sse import sse_client
from mcp.client.stdio import StdioServerParameters
from pydantic import FileUrl

ANSWERS: dict[str, str | int | float | bool | list[str] | None] = {"name": "Ada", "check": True, "integer": 7}
SELF = mcp_types.Implementation(name="stepclient", version="1.0")
TIMEOUT_S = 60.0
"""For HTTP+SSE, whose client gives up a connection after 5 s: not enough on a busy machine."""
SAMPLED = "A tap sees what both sides say."


async def sample(context: ClientRequestContext, params: mcp_types.CreateMessageRequestParams) -> mcp_types.CreateMessageResult:
    """Play the model."""
    text = mcp_types.TextContent(text=SAMPLED)
    return mcp_types.CreateMessageResult(role="assistant", content=text, model="no-model", stop_reason="endTurn")


async def elicit(context: ClientRequestContext, params: mcp_types.ElicitRequestParams) -> mcp_types.ElicitResult:
    """Play the user: accept, and fill in what ANSWERS knows of the form."""
    fields = getattr(params, "requested_schema", {}).get("properties", {})
    return mcp_types.ElicitResult(action="accept", content={name: ANSWERS[name] for name in fields if name in ANSWERS})


async def roots(context: ClientRequestContext) -> mcp_types.ListRootsResult:
    """Name the one root, the folder `files` of our working directory."""
    files = Path.cwd() / "files"
    return mcp_types.ListRootsResult(roots=[mcp_types.Root(uri=FileUrl(files.as_uri()), name=files.name)])


async def report(progress: float, total: float | None, message: str | None) -> None:
    """Print one progress notification."""
    say({"progress": progress, "total": total, "message": message})


def say(fact: dict[str, Any]) -> None:
    """Print one line."""
    print(json.dumps(fact, ensure_ascii=False), flush=True)


async def ask(client: Client, step: dict[str, Any]) -> Any:
    """Do one step. Returns the SDK's result."""
    match step:
        case {"list": what}:
            return await getattr(client, f"list_{what}")()
        case {"read": uri}:
            return await client.read_resource(uri)
        case {"prompt": name}:
            return await client.get_prompt(name, step.get("arguments"))
        case {"call": name}:
            large = {argument: "x" * letters for argument, letters in step.get("large", {}).items()}
            return await client.call_tool(
                name,
                {**step.get("arguments", {}), **large},
                read_timeout_seconds=step.get("timeout_s"),
                progress_callback=report if step.get("progress") else None,
            )
        case _:
            raise ValueError(f"no such step: {step}")


async def do(client: Client, step: dict[str, Any]) -> list[dict[str, Any]]:
    """Do one step, or several together. Returns what came of each, in the order asked."""
    if "together" in step:
        return [fact for facts in await asyncio.gather(*(do(client, part) for part in step["together"])) for fact in facts]
    if "known" in step:
        client.session._tool_output_schemas.update(dict.fromkeys(step["known"]))
        return []
    try:
        result = await ask(client, step)
    except Exception as error:  # noqa: BLE001 - whatever the SDK raises is what is printed
        return [{"step": step, "raised": type(error).__name__, "text": str(error)}]
    return [{"step": step, "result": result.model_dump(mode="json", by_alias=True, exclude_none=True)}]


def server(command: str, *arguments: str) -> Any:
    """Turn a command or a URL into the SDK's kind of server."""
    if not command.startswith("http://"):
        return StdioServerParameters(command=command, args=list(arguments), env=dict(os.environ))
    return sse_client(command, timeout=TIMEOUT_S) if command.endswith("/sse") else command


async def main(mode: str, steps: str, *target: str) -> None:
    """Connect, do the steps, disconnect."""
    client = Client(
        server(*target),
        mode=mode,
        client_info=SELF,
        sampling_callback=sample,
        elicitation_callback=elicit,
        list_roots_callback=roots,
    )
    async with client:
        say({"version": client.protocol_version, "server": client.server_info.name if client.server_info else None})
        for step in json.loads(steps):
            for fact in await do(client, step):
                say(fact)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
