"""A bridge from stdio to an MCP server over Streamable HTTP, which is correct but for the fault that its command line names.

    bridge.py URL [FAULT]

    noise       it writes a line of its own to stdout before each answer
    swallows    it passes calls of tools on, and leaves their answers out
    respells    it makes strings of the ids of answers
    sessionless it does not name the session in requests

Each line of stdin is POSTed, and what is answered is written to stdout, a message a line. It stands on no SDK.
"""

import json
import sys
from urllib.error import HTTPError
from urllib.request import Request, urlopen

SESSION = "Mcp-Session-Id"


def messages(content_type: str, body: bytes) -> list[dict[str, object]]:
    """Read the messages of a response: one in JSON, or those of a stream of events."""
    if content_type.startswith("text/event-stream"):
        lines = (line for line in body.split(b"\n") if line.startswith(b"data: "))
        return [json.loads(line[len(b"data: ") :]) for line in lines]
    return [json.loads(body)] if body.strip() else []


def main(url: str, fault: str = "") -> None:
    """Pass messages on until stdin ends."""
    fields = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    for line in sys.stdin.buffer:
        asked = json.loads(line)
        try:
            with urlopen(Request(url, line.strip(), fields)) as response:
                answers = messages(response.headers.get("Content-Type", ""), response.read())
                session = response.headers.get(SESSION)
        except HTTPError as error:
            failure = {"code": -32000, "message": f"HTTP {error.code}"}
            answers = [{"jsonrpc": "2.0", "id": asked["id"], "error": failure}] if "id" in asked else []
            session = None
        if asked["method"] == "initialize" and fault != "sessionless":
            fields |= {"MCP-Protocol-Version": asked["params"]["protocolVersion"], **({SESSION: session} if session else {})}
        if fault == "noise":
            print("POST", url, flush=True)
        for answer in answers if asked["method"] != "tools/call" or fault != "swallows" else ():
            if fault == "respells" and "id" in answer:
                answer["id"] = str(answer["id"])
            print(json.dumps(answer), flush=True)


main(*sys.argv[1:])
