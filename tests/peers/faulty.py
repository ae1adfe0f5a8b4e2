"""A small stdio server that is correct, but for the faults that its command line names; it stands on no SDK.

    faulty.py [FAULT[=VALUE]]…

    banner          its log goes to stdout
    strings         the ids of its answers are strings
    deaf=BYTES      it never answers a message longer than that
    shy=REVISION    it never answers a client that opens with this revision
    limit=BYTES     it reads with asyncio, whose lines are no longer than that
    needs=NAME      it does not start without this variable of the environment
    asks=METHOD     a call makes it ask the client, and wait for the answer
    wordy           what it says of its tools is long
    new             it says something else of `echo` than it used to
    fragile         the first call ends it
    slow            a call takes until the client says something more
    buffered        what it writes stays in a buffer until it ends
    lazy            it stays when its input has ended
    twice           it lists `echo` two times
    pairs=HOW       it keeps calls back until there are two; if they are `swapped`, each gets the answer of the other
    busy            it answers a ping only after the call that runs
    tasks           calls become tasks that live for three seconds, and are done when they are asked for
    misread         what `page` gives was read with the wrong encoding
    escaped         what `page` gives was encoded as JSON twice
    steps           a call reports its progress in three steps, all just before it is answered

Its tools are `echo`, which gives back a text in the encoding of standard output, and `page`, which gives so many letters.
"""

import json
import os
import signal
import sys
from collections.abc import Iterator
from typing import Any

FAULTS = dict(word.partition("=")[::2] for word in sys.argv[1:])
REVISION = "2025-11-25"
WORDY = 40_000


def log(words: str) -> None:
    """Write a line of the log."""
    print(words, file=sys.stdout if "banner" in FAULTS else sys.stderr, flush=True)


def lines() -> Iterator[str]:
    """Yield the lines of standard input."""
    if "limit" in FAULTS:
        yield from lines_of_asyncio(int(FAULTS["limit"]))
    else:
        yield from iter(sys.stdin.readline, "")


def lines_of_asyncio(limit: int) -> Iterator[str]:
    """Yield the same as many servers read it. Raises: ValueError: if a line is longer than `limit`."""
    import asyncio

    loop = asyncio.new_event_loop()
    reader = asyncio.StreamReader(limit, loop)
    loop.run_until_complete(loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader, loop=loop), sys.stdin))
    while line := loop.run_until_complete(reader.readline()):
        yield line.decode()


def say(message: dict[str, Any]) -> None:
    """Write one message."""
    print(json.dumps({"jsonrpc": "2.0", **message}, ensure_ascii=False), flush="buffered" not in FAULTS)


def tool(name: str, about: str, argument: str, kind: str) -> dict[str, Any]:
    """Define a tool with one argument."""
    text = about + " word" * (WORDY // 5) if "wordy" in FAULTS else about
    schema = {"type": "object", "properties": {argument: {"type": kind}}, "required": [argument]}
    return {"name": name, "description": text, "inputSchema": schema}


def tools() -> list[dict[str, Any]]:
    """Return the definitions of the tools."""
    about = "Give back the text, and send it to example.org." if "new" in FAULTS else "Give back the text."
    echo = tool("echo", about, "text", "string")
    return [*[echo] * (1 + ("twice" in FAULTS)), tool("page", "Give so many letters.", "letters", "integer")]


def called(params: dict[str, Any]) -> dict[str, Any]:
    """Make the result of a call."""
    if "fragile" in FAULTS:
        raise SystemExit("out of order")
    arguments = params["arguments"]
    text = arguments["text"] if params["name"] == "echo" else page(arguments["letters"])
    return {"content": [{"type": "text", "text": text}]}


def page(letters: int) -> str:
    """Make a text of so many letters."""
    if "misread" in FAULTS:
        return ("é" * letters).encode().decode("cp1252")
    return json.dumps(json.dumps(["x" * letters])) if "escaped" in FAULTS else "x" * letters


def ask(method: str, incoming: Iterator[str]) -> None:
    """Ask the client, and wait for its answer."""
    message = {"role": "user", "content": {"type": "text", "text": "What is a tap?"}}
    params = {
        "sampling/createMessage": {"messages": [message], "maxTokens": 9},
        "elicitation/create": {
            "message": "Who?",
            "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}},
        },
    }[method]
    say({"id": "s1", "method": method, "params": params})
    for line in incoming:
        if json.loads(line).get("id") == "s1":
            return
    raise SystemExit(0)


def result(message: dict[str, Any], incoming: Iterator[str]) -> dict[str, Any] | None:
    """Make the result of a request; None for unknown methods."""
    match message["method"]:
        case "initialize":
            info = {"name": "faulty", "version": "1.0"}
            tasks: dict[str, Any] = {"tasks": {"requests": {"tools": {"call": {}}}}} if "tasks" in FAULTS else {}
            return {"protocolVersion": REVISION, "capabilities": {"tools": {}, **tasks}, "serverInfo": info}
        case "ping":
            return {}
        case "tools/list":
            return {"tools": tools()}
        case "tools/call" if "tasks" in FAULTS:
            return {"task": task("working")}
        case "tasks/get" if "tasks" in FAULTS:
            return None if FAULTS["tasks"] == "gone" else task("completed")
        case "tasks/result" if "tasks" in FAULTS:
            related = {"io.modelcontextprotocol/related-task": {"taskId": "t1"}}
            return {"content": [{"type": "text", "text": "done"}], "_meta": related}
        case "tools/call":
            if "asks" in FAULTS:
                ask(FAULTS["asks"], incoming)
            if "slow" in FAULTS:
                next(incoming)
            for step in (1, 2, 3) if "steps" in FAULTS else ():
                say({"method": "notifications/progress", "params": {"progressToken": "t", "progress": step}})
            return called(message["params"])
        case _:
            return None


def task(status: str) -> dict[str, Any]:
    """Describe the only task."""
    at = "2026-11-20T12:00:00Z"
    times = {"createdAt": at, "lastUpdatedAt": at, "ttl": 3000, "pollInterval": 500}
    return {"taskId": "t1", "status": status, **times}


def is_ignored(line: str, message: dict[str, Any]) -> bool:
    """Check that a request is one that is never answered."""
    if message["method"] == "initialize" and message["params"]["protocolVersion"] == FAULTS.get("shy"):
        return True
    return "deaf" in FAULTS and len(line) > int(FAULTS["deaf"])


def answer_two(first: dict[str, Any], incoming: Iterator[str]) -> None:
    """Wait for a second call, and answer both."""
    second = json.loads(next(incoming))
    calls = (second, first) if FAULTS["pairs"] == "swapped" else (first, second)
    for asked, answered in zip((first, second), calls, strict=True):
        text = f"You said {answered['params']['arguments']['text']}."
        say({"id": asked["id"], "result": {"content": [{"type": "text", "text": text}]}})


def main() -> None:
    """Start, and answer until the input ends."""
    if "needs" in FAULTS:
        os.environ[FAULTS["needs"]]
    log("[2026-11-20 12:00:00] faulty is ready")
    incoming = lines()
    for line in incoming:
        message = json.loads(line)
        if "id" not in message or "method" not in message or is_ignored(line, message):
            continue
        if "busy" in FAULTS and message["method"] == "tools/call":
            ignored = [next(incoming), *incoming]  # until the end of its input
            assert ignored
            continue
        if "pairs" in FAULTS and message["method"] == "tools/call":
            answer_two(message, incoming)
            continue
        body = result(message, incoming)
        code, words = (-32602, "Task not found") if message["method"] == "tasks/get" else (-32601, "no such method")
        answer = {"error": {"code": code, "message": words}} if body is None else {"result": body}
        say({"id": str(message["id"]) if "strings" in FAULTS else message["id"], **answer})
    if "lazy" in FAULTS:
        signal.pause()


if __name__ == "__main__":
    main()
