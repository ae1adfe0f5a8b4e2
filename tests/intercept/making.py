"""Intercepts and messages for tests."""

import json
from random import Random
from typing import Any

from mcpspy.intercept.decisions import Intercepts
from mcpspy.intercept.syntax import parse_intercept

ANSWER = b'{"content":[{"type":"text","text":"made up"}]}'


def no_file(name: str) -> bytes:
    return ANSWER


def intercepts(*texts: str, seed: int = 7, transport: str = "stdio") -> Intercepts:
    """Put these intercepts in force."""
    rules = [parse_intercept(text, no_file, transport) for text in texts]
    return Intercepts(rules, [Random(f"{seed} {at}") for at in range(len(rules))], seed)


def line(message: dict[str, Any]) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n"


def call(id: int | str = 1, tool: str = "search", **arguments: Any) -> bytes:
    return line({"id": id, "method": "tools/call", "params": {"name": tool, "arguments": arguments}})


def result(id: int | str = 1, text: str = "found") -> bytes:
    return line({"id": id, "result": {"content": [{"type": "text", "text": text}]}})
