"""A stdio server without an SDK whose tools open, write and close handles of its own making, and that breaks after one sequence.

    python fragile.py [short] [crash|third|hang|start]

`crash`: a handle that was written to is closed for the second time: it is killed by a signal. `third`: the third `write` is answered
with -32603. `hang`: a `write` behind a `close` is never answered, nor is what follows. `start`: it ends before it answers. With
`short`, handles are numbers.
"""

import json
import os
import random
import signal
import sys
from typing import Any


class Fragile:
    """The handles, and what was done with each."""

    def __init__(self, words: list[str]) -> None:
        self.words = words
        self.done: dict[Any, list[str]] = {}
        self.writes = 0

    def answer(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        if method == "initialize":
            version = params.get("protocolVersion")
            return {
                "result": {
                    "protocolVersion": version,
                    "capabilities": {"tools": {}},
                    "serverInfo": {"name": "fragile", "version": "1"},
                }
            }
        if method != "tools/call":
            return {"result": {"tools": []} if method == "tools/list" else {}}
        return self.call(params["name"], params.get("arguments", {}))

    def call(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        if tool == "echo":
            return tool_result(str(arguments.get("text")))
        if tool == "open":
            handle: Any = random.randrange(10, 1000) if "short" in self.words else os.urandom(6).hex()
            self.done[handle] = []
            return tool_result(f"opened {handle}", {"handle": handle})
        handle = arguments.get("handle")
        if handle not in self.done:
            return tool_result(f"no handle {handle}", is_error=True)
        self.writes += tool == "write"
        if "third" in self.words and tool == "write" and self.writes == 3:
            return {"error": {"code": -32603, "message": "the third is one too many"}}
        before = self.done[handle]
        if "hang" in self.words and tool == "write" and "close" in before:
            sys.stdin.read()
            sys.exit()
        if "crash" in self.words and tool == "close" and "write" in before and "close" in before:
            os.kill(os.getpid(), signal.SIGSEGV)
        before.append(tool)
        return tool_result(f"{tool} done")


def tool_result(text: str, structured: Any = None, *, is_error: bool = False) -> dict[str, Any]:
    result: dict[str, Any] = {"content": [{"type": "text", "text": text}]}
    if structured is not None:
        result["structuredContent"] = structured
    if is_error:
        result["isError"] = True
    return {"result": result}


def main() -> None:
    fragile = Fragile(sys.argv[1:])
    if "start" in fragile.words:
        sys.exit("no licence")
    for line in sys.stdin:
        request = json.loads(line)
        if "id" in request:
            answer = fragile.answer(request["method"], request.get("params", {}))
            sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": request["id"], **answer}) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
