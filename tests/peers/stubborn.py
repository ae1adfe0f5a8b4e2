"""A stdio server that will not go: it ignores SIGTERM, SIGINT and SIGHUP, and lives on after its standard input has ended.

    stubborn.py [--grandchild] [--life SECONDS] LOGFILE

LOGFILE gets one line per event, `TIME PID WORDS`: `start`, `SIG 15`, `EOF`, `alive` once a second after EOF. With
`--grandchild` a child process that ignores the same signals holds the same pipes; its pid is in the line `grandchild PID`.
Both end by themselves LIFE seconds after they started, 30 unless told: a test that fails leaves nothing behind for long.
"""

import argparse
import json
import os
import signal
import sys
import time
from typing import IO, Any

IGNORED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
INITIALIZED = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "stubborn", "version": "1"},
}


class Log:
    """Lines with time and pid, each written at once: the writer may be killed at any moment."""

    def __init__(self, file: IO[str]) -> None:
        self._file = file

    def __call__(self, *words: object) -> None:
        """Write one line."""
        self._file.write(f"{time.time():.2f} {os.getpid()} {' '.join(map(str, words))}\n")


def refuse_to_go(log: Log, life_s: int) -> None:
    """Log the signals that ask for an end, and end by SIGALRM instead."""
    for number in IGNORED:
        signal.signal(number, lambda got, _frame: log("SIG", got))
    signal.signal(signal.SIGALRM, lambda _got, _frame: os._exit(0))
    signal.alarm(life_s)


def spawn_grandchild(log: Log, life_s: int) -> None:
    """Start a process that holds our pipes and does nothing else."""
    pid = os.fork()
    if pid:
        log("grandchild", pid)
        return
    refuse_to_go(log, life_s)
    log("start")
    while True:
        signal.pause()


def answer(message: dict[str, Any]) -> dict[str, Any] | None:
    """Make the answer to a request; None for a notification."""
    if "id" not in message:
        return None
    match message.get("method"):
        case "initialize":
            outcome: dict[str, Any] = {"result": INITIALIZED}
        case "tools/list":
            outcome = {"result": {"tools": []}}
        case _:
            outcome = {"error": {"code": -32601, "message": "nope"}}
    return {"jsonrpc": "2.0", "id": message["id"], **outcome}


def serve(log: Log) -> None:
    """Answer until standard input ends, then stay."""
    for line in sys.stdin:
        reply = answer(json.loads(line))
        if reply is not None:
            print(json.dumps(reply), flush=True)
    log("EOF")
    while True:
        time.sleep(1)
        log("alive")


def main() -> None:
    """Read the command line and be stubborn."""
    parser = argparse.ArgumentParser(description="A stdio MCP server that will not go.")
    parser.add_argument("logfile")
    parser.add_argument("--grandchild", action="store_true", help="also leave a process that holds the pipes")
    parser.add_argument("--life", type=int, default=30, metavar="SECONDS", help="end by itself after this long")
    options = parser.parse_args()
    with open(options.logfile, "a", buffering=1, encoding="utf-8") as file:
        log = Log(file)
        refuse_to_go(log, options.life)
        if options.grandchild:
            spawn_grandchild(log, options.life)
        log("start")
        serve(log)


if __name__ == "__main__":
    main()
