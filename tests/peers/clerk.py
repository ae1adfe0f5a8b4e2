"""A client without an SDK that greets three people, and behaves as it is told when something goes wrong.

    clerk.py BEHAVIOUR COMMAND…      or URL, of Streamable HTTP

`patient` waits for each answer and takes an error for one; `strict` ends with status 1 after an error; `all-at-once` sends its calls
together. After 0.4 s without an answer `hurried` makes the next call, `cancelling` too, after a cancellation, `leaving` closes its
server, `dying` ends at once, and `repeating` sends the call again, as it does after an error. `stopping` makes no further call after
an error or the end of its server, and ends well. `restarting` starts its server again, or begins another session, and repeats the
call; `moving-on` does so too, but makes the next call.
`same` is patient, and greets the same person three times.
"""

from __future__ import annotations

import http.client
import json
import os
import select
import subprocess
import sys
from typing import Any
from urllib.parse import urlsplit

GREETING = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "clerk", "version": "1"}}
NAMES = ("Ada", "Ben", "Cy")
PATIENCE_S = 0.4
FIELDS = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}

Message = dict[str, Any]
Reply = Message | str
"""An answer, or `late`, or `gone` if nothing can be sent any more."""


class Pipe:
    """A server that this starts, on stdio."""

    def __init__(self, words: list[str]) -> None:
        process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert process.stdin is not None
        assert process.stdout is not None
        self.process, self.stdin, self.stdout = process, process.stdin, process.stdout
        self.data = b""
        self.heard: dict[Any, Message] = {}

    def say(self, message: Message) -> bool:
        try:
            self.stdin.write(json.dumps(message).encode() + b"\n")
            self.stdin.flush()
        except OSError:
            return False
        return True

    def hear(self, id: int, wait_s: float | None) -> Reply:
        while id not in self.heard:
            line, end, rest = self.data.partition(b"\n")
            if end:
                self.data = rest
                try:
                    message = json.loads(line)
                except ValueError:
                    continue
                if "method" not in message:
                    self.heard[message.get("id")] = message
                continue
            if not select.select([self.stdout], [], [], wait_s)[0]:
                return "late"
            data = os.read(self.stdout.fileno(), 1 << 16)
            if not data:
                return "gone"
            self.data += data
        return self.heard[id]

    def ask(self, message: Message, wait_s: float | None) -> Reply:
        return self.hear(message["id"], wait_s) if self.say(message) else "gone"

    def close(self) -> None:
        try:
            self.stdin.close()
        except OSError:
            pass  # it has ended
        self.process.wait()


class Session:
    """A server at a URL."""

    def __init__(self, url: str) -> None:
        self.url = urlsplit(url)
        self.id = ""

    def post(self, message: Message, wait_s: float | None) -> Reply:
        connection = http.client.HTTPConnection(self.url.hostname or "", self.url.port, timeout=wait_s)
        try:
            session = {"Mcp-Session-Id": self.id} if self.id else {}
            connection.request("POST", self.url.path, json.dumps(message), {**FIELDS, **session})
            response = connection.getresponse()
            self.id = response.headers.get("Mcp-Session-Id", self.id)
            body = response.read()
        except TimeoutError:
            return "late"
        except (OSError, http.client.HTTPException):
            return "gone"
        finally:
            connection.close()
        if response.status >= 300:
            return {"error": {"code": response.status}}
        lines = [line.removeprefix(b"data: ") for line in body.splitlines() if line.startswith((b"data: ", b"{"))]
        return next((json.loads(line) for line in lines if b'"id"' in line), {"error": {"code": 0}})

    def say(self, message: Message) -> bool:
        self.post(message, 5)
        return True

    def ask(self, message: Message, wait_s: float | None) -> Reply:
        return self.post(message, wait_s)

    def hear(self, id: int, wait_s: float | None) -> Reply:
        raise NotImplementedError(f"{id}: each answer comes with its request")

    def close(self) -> None:
        """Leave: there is nothing to end."""


def opened(words: list[str]) -> Pipe | Session:
    server = Session(words[0]) if words[0].startswith("http") else Pipe(words)
    server.ask({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": GREETING}, None)
    server.say({"jsonrpc": "2.0", "method": "notifications/initialized"})
    return server


def greeting(id: int, name: str) -> Message:
    return {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "greet", "arguments": {"name": name}}}


def main(behaviour: str, *words: str) -> None:
    """Greet, and end with status 0, or with 1 as a `strict` client."""
    server = opened(list(words))
    if behaviour == "all-at-once":
        for id, name in enumerate(NAMES, 1):
            server.say(greeting(id, name))
        for id in range(1, len(NAMES) + 1):
            server.hear(id, None)
        server.close()
        return
    wait_s = PATIENCE_S if behaviour in ("hurried", "cancelling", "leaving", "dying", "repeating") else None
    id = 0
    for name in NAMES[:1] * 3 if behaviour == "same" else NAMES:
        id += 1
        reply = server.ask(greeting(id, name), wait_s)
        is_bad = isinstance(reply, str) or "error" in reply
        if reply == "late" and behaviour == "cancelling":
            server.say({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}})
        elif reply == "late" and behaviour == "leaving":
            break
        elif reply == "late" and behaviour == "dying":
            os._exit(0)
        elif is_bad and behaviour == "strict":
            sys.exit(1)
        elif is_bad and behaviour == "stopping":
            break
        elif is_bad and behaviour in ("restarting", "moving-on"):
            server.close()
            server = opened(list(words))
        if is_bad and behaviour in ("repeating", "restarting"):
            id += 1
            server.ask(greeting(id, name), wait_s)
    server.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
