"""A client on the official Python SDK that calls `add` of pyserver.py without a pause, until its standard input ends.

    steadyclient.py MODE CALLERS COMMAND…

So many callers call at once, each with numbers of its own. MODE is the SDK's: `auto` or `legacy`. It prints `ready` after the first
call, and at the end one line of JSON: `calls`, `wrong` (what was no sum, or an error), and `longest_s`, what the slowest call took.
The server gets this program's whole environment.
"""

import prepared  # noqa: F401 - saves the imports that follow

import asyncio
import json
import os
import sys
import time
from itertools import count

from mcp import Client
from mcp.client.stdio import StdioServerParameters


class Tally:
    """The counts of all callers."""

    def __init__(self) -> None:
        self.calls = 0
        self.longest_s = 0.0
        self.wrong: list[str] = []


async def call(client: Client, caller: int, tally: Tally, stopped: asyncio.Event) -> None:
    """Call again and again."""
    for number in count():
        if stopped.is_set():
            return
        began_s = time.monotonic()
        try:
            result = await client.call_tool("add", {"a": caller, "b": number})
            text = getattr(result.content[0], "text", "")
            if text != str(caller + number):
                tally.wrong.append(text)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is counted
            tally.wrong.append(f"{type(error).__name__}: {error}")
        tally.calls += 1
        tally.longest_s = max(tally.longest_s, time.monotonic() - began_s)


async def main(mode: str, callers: str, *command: str) -> None:
    """Call until the standard input ends."""
    stopped, tally = asyncio.Event(), Tally()
    server = StdioServerParameters(command=command[0], args=list(command[1:]), env=dict(os.environ))
    async with Client(server, mode=mode) as client:
        await client.list_tools()
        await client.call_tool("add", {"a": 1, "b": 1})
        print("ready", flush=True)
        loop = asyncio.get_running_loop()
        loop.run_in_executor(None, lambda: (sys.stdin.read(), loop.call_soon_threadsafe(stopped.set)))
        await asyncio.gather(*(call(client, caller, tally, stopped) for caller in range(int(callers))))
    print(json.dumps({"calls": tally.calls, "wrong": tally.wrong, "longest_s": tally.longest_s}))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
