"""A stdio server on no SDK, with a few tools and as many faults as its command line names; it says what it reads in a file.

    tickets.py [LOG] [FAULT…]

    greet name=…      a greeting
    draw              gives out a ticket, another one in each process
    redeem ticket=…   fails for any ticket but that
    drop table=…      says in its annotations that it destroys
    ask               asks its client for its roots, and says how many there are
    wait              answers nothing

FAULT is `rude` (another greeting), `dies` (it ends with status 3 when it is asked for a ticket), `mute` (it answers nothing at all),
`idle` (it answers no greeting), `absent` (it ends at once with status 1) or `curious` (it asks for a sampling with each greeting).
"""

import json
import os
import sys
from typing import Any

LOG, *FAULTS = [*sys.argv[1:], ""]
TICKET = os.urandom(16).hex()
TOOLS = [
    {"name": "greet", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}},
    {"name": "drop", "inputSchema": {"type": "object"}, "annotations": {"destructiveHint": True}},
    *({"name": name, "inputSchema": {"type": "object"}} for name in ("draw", "redeem", "ask", "wait")),
]


GREETING = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "tickets", "version": "1"}}


def say(message: dict[str, Any]) -> None:
    sys.stdout.buffer.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
    sys.stdout.buffer.flush()


def heard() -> dict[str, Any]:
    """Read the next message; end the process if there is none."""
    line = sys.stdin.buffer.readline()
    if not line:
        sys.exit(0)
    if LOG:
        with open(LOG, "ab") as log:
            log.write(line)
    message: dict[str, Any] = json.loads(line)
    return message


def client_answer(method: str) -> dict[str, Any]:
    """Send the client a request, and wait for its answer."""
    say({"id": "ours", "method": method, "params": {}})
    while True:
        message = heard()
        if message.get("id") == "ours":
            return message


def text(words: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": words}]}


def called(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    match name:
        case "greet":
            if "curious" in FAULTS:
                client_answer("sampling/createMessage")
            return text(f"{'What' if 'rude' in FAULTS else 'Hello'}, {arguments.get('name')}")
        case "draw":
            if "dies" in FAULTS:
                sys.stderr.write("out of tickets\n")
                sys.exit(3)
            return text(f"Your ticket is {TICKET}.")
        case "redeem":
            return text("Enjoy!") if arguments.get("ticket") == TICKET else {**text("No such ticket."), "isError": True}
        case "ask":
            return text(f"{len(client_answer('roots/list')['result']['roots'])} roots")
        case _:
            return text("done")


def main() -> None:
    if "absent" in FAULTS:
        sys.exit(1)
    while True:
        message = heard()
        params = message.get("params", {})
        is_idle = params.get("name") == "wait" or ("idle" in FAULTS and params.get("name") == "greet")
        if "id" not in message or "mute" in FAULTS or is_idle:
            continue
        result: dict[str, Any]
        match message["method"]:
            case "initialize":
                result = GREETING
            case "tools/list":
                result = {"tools": TOOLS}
            case _:
                result = called(params["name"], params.get("arguments", {}))
        say({"id": message["id"], "result": result})


if __name__ == "__main__":
    main()
