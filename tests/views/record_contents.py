"""Records tests/views/contents.mcpspy again: all features of server-everything, requested by a small client.

    python -m tests.views.record_contents

Prompts and their arguments, resources as text and as bytes, an image, links, a form and its answer, sampling, completion, logs, a
task. The server comes from npm (`make npm`); its whole environment is PATH, HOME and LANG.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from threading import Timer
from typing import Any

HERE = Path(__file__).parent
CAPTURE = HERE / "contents.mcpspy"
SERVERS = HERE.parents[1] / "build" / "npm" / "node_modules" / ".bin"
MAX_S = 60
PATIENCE_S = 2
"""So long the official SDKs wait after they closed stdin."""

CAPABILITIES = {"roots": {"listChanged": True}, "sampling": {}, "elicitation": {"form": {}, "url": {}}}
CLIENT = {"name": "contents", "version": "1.0"}
PROMPT = {"type": "ref/prompt", "name": "completable-prompt"}

ASKED: tuple[tuple[str, dict[str, Any]], ...] = (
    ("initialize", {"protocolVersion": "2025-11-25", "capabilities": CAPABILITIES, "clientInfo": CLIENT}),
    ("prompts/list", {}),
    ("prompts/get", {"name": "args-prompt", "arguments": {"city": "Zürich", "state": "ZH"}}),
    ("prompts/get", {"name": "resource-prompt", "arguments": {"resourceType": "Text", "resourceId": "1"}}),
    ("resources/list", {}),
    ("resources/templates/list", {}),
    ("resources/read", {"uri": "demo://resource/dynamic/text/1"}),
    ("resources/read", {"uri": "demo://resource/dynamic/blob/2"}),
    ("tools/call", {"name": "get-tiny-image", "arguments": {}}),
    ("tools/call", {"name": "get-resource-links", "arguments": {"count": 2}}),
    ("tools/call", {"name": "get-resource-reference", "arguments": {"resourceType": "Blob", "resourceId": 1}}),
    ("tools/call", {"name": "get-structured-content", "arguments": {"location": "Chicago"}}),
    ("completion/complete", {"ref": PROMPT, "argument": {"name": "department", "value": "E"}}),
    ("logging/setLevel", {"level": "debug"}),
    ("resources/subscribe", {"uri": "demo://resource/dynamic/text/1"}),
    ("tools/call", {"name": "trigger-sampling-request", "arguments": {"prompt": "Hello", "maxTokens": 20}}),
    ("tools/call", {"name": "trigger-elicitation-request", "arguments": {}}),
    ("tools/call", {"name": "simulate-research-query", "arguments": {"topic": "taps"}, "task": {"ttl": 60_000}}),
    ("tasks/list", {}),
    ("tools/call", {"name": "no-such-tool", "arguments": {}}),
)

ANSWERS: dict[str, dict[str, Any]] = {
    "roots/list": {"roots": [{"uri": "file:///tmp/files", "name": "files"}]},
    "sampling/createMessage": {"role": "assistant", "content": {"type": "text", "text": "Hello."}, "model": "no-model"},
    "elicitation/create": {"action": "decline"},
    "ping": {},
}


def converse(server: "subprocess.Popen[bytes]") -> None:
    """Send the requests one by one, and answer the server's requests in between."""
    assert server.stdin is not None
    assert server.stdout is not None

    def send(message: dict[str, Any]) -> None:
        assert server.stdin is not None
        server.stdin.write(json.dumps({"jsonrpc": "2.0", **message}, ensure_ascii=False).encode() + b"\n")
        server.stdin.flush()

    for id, (method, params) in enumerate(ASKED):
        send({"id": id, "method": method, "params": params})
        for line in server.stdout:
            message = json.loads(line)
            if "method" in message and "id" in message:
                send({"id": message["id"], "result": ANSWERS[message["method"]]})
            elif message.get("id") == id:
                break
        if method == "initialize":
            send({"method": "notifications/initialized"})
    for line in server.stdout:  # it asks for the roots a third of a second after the handshake, and works at the task for 4 s
        message = json.loads(line)
        if message.get("method") == "roots/list":
            send({"id": message["id"], "result": ANSWERS["roots/list"]})
        elif message.get("params", {}).get("status") == "completed":
            break


def main() -> None:
    CAPTURE.unlink(missing_ok=True)
    path = f"{SERVERS}:{os.environ['PATH']}"
    environment = {"PATH": path, "HOME": "/tmp", "LANG": "C.UTF-8"}
    command = [sys.executable, "-m", "mcpspy", "run", "--quiet", "--label", "everything", "--capture", str(CAPTURE), "--"]
    with subprocess.Popen(
        [*command, "mcp-server-everything", "stdio"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment,
        cwd="/tmp",
    ) as server:
        late = Timer(MAX_S, server.terminate)
        late.start()
        converse(server)
        assert server.stdin is not None
        server.stdin.close()
        late.cancel()
        try:
            server.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:  # a server with a subscription does not end by itself
            server.terminate()


if __name__ == "__main__":
    main()
