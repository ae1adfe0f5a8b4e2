"""A small HTTP server that is correct, but for the faults that its command line names; it stands on no SDK.

    faultyhttp.py PORT [FAULT[=VALUE]]…

    accepted        it answers calls with 202 Accepted, and no more
    late=MS         the head of the stream of GET /mcp is sent with the first keep-alive, so long after it was asked for
    reset=MS        that stream breaks off so long after its third keep-alive
    brief           that stream ends after its third keep-alive
    headless        the head of that stream does not come
    mute            the stream of GET /sse announces no endpoint
    shared          every stream of GET /sse announces the same endpoint, and whatever is POSTed is answered on the newest
    resource=URL    it lets nobody in without a token, and says that it is the resource at this URL; `own`: at its own
    moved           it redirects POST /mcp with 301 to /mcp/, and takes no GET there
    unended         the event with the result of a call has no blank line after it
    resumed=WHAT    it closes the stream of a call at once; on the one that resumes it comes the `answer`, or `nothing`
    renamed         the event with the result of a call is named result
    plain           it says that results are compressed with gzip, and does not compress them
    bound           it refuses whatever proof of possession it is shown
    refuses=WHY     it refuses POSTs without the token `good`, for a reason of the table REFUSALS; `limit`: the first call alone
    vague           it answers 400 to a session that it does not know
    swapped         what is POSTed to the endpoint of one stream of HTTP+SSE is answered on another

POST /mcp is Streamable HTTP with sessions, which are in memory: they end with it. `count` answers with as many events as it is told,
0.35 s apart, with a keep-alive after each. GET /mcp gives keep-alives, 0.05 s apart. GET /sse is HTTP+SSE. On PORT 0 a free port is
taken; either way it is the first line on standard output.
"""

import json
import sys
import time
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import SimpleQueue
from typing import Any
from uuid import uuid4

FAULTS = dict(word.partition("=")[::2] for word in sys.argv[2:])
REVISION = "2025-11-25"
PAUSE_S = 0.35
BEAT_S = 0.05
METADATA = "/.well-known/oauth-protected-resource"
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


BEARER = 'Bearer error="%s", scope="files:read files:write"'
REFUSALS: dict[str, tuple[int, bytes, dict[str, str]]] = {
    "gateway": (502, b"<html><center>nginx</center></html>", {"Content_Type": "text/html", "Server": "nginx"}),
    "host": (421, b"Invalid Host header", {}),
    "path": (404, b"Not Found", {}),
    "token": (401, b"", {"WWW_Authenticate": BEARER % "invalid_token"}),
    "scope": (403, b"", {"WWW_Authenticate": BEARER % "insufficient_scope"}),
    "limit": (429, b"Slow down", {}),
}


def result(message: dict[str, Any]) -> dict[str, Any]:
    """Make the result of a request."""
    match message["method"]:
        case "initialize":
            info = {"name": "faultyhttp", "version": "1.0"}
            return {"protocolVersion": REVISION, "capabilities": {"tools": {}}, "serverInfo": info}
        case "tools/list":
            return {"tools": [{"name": "count", "description": "Count.", "inputSchema": SCHEMA}]}
        case "tools/call":
            return {"content": [{"type": "text", "text": str(message["params"]["arguments"]["n"])}]}
        case _:
            return {}


def answer(message: dict[str, Any]) -> bytes:
    """Make the response to a request, as JSON."""
    return json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result(message)}).encode()


def event(data: bytes, name: str = "message") -> bytes:
    """Make one event of SSE."""
    return b"event: %b\ndata: %b\n\n" % (name.encode(), data)


class Server(ThreadingHTTPServer):
    """State that all connections share: the sessions of Streamable HTTP, and the streams of HTTP+SSE by their sessions."""

    daemon_threads = True

    def __init__(self, port: int) -> None:
        super().__init__(("127.0.0.1", port), Connection)
        self.sessions: set[str] = set()
        self.owed = b""
        self.is_limited = FAULTS.get("refuses") == "limit"
        self.streams: dict[str, SimpleQueue[bytes]] = {}


class Connection(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1  # head and body in one write
    server: Server

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""

    def reply(self, status: int, body: bytes = b"", **fields: str) -> None:
        """Answer with a body that is there."""
        self.send_response(status)
        for name, value in fields.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()

    def begin(self, *, flush: bool = True) -> None:
        """Answer with a stream of events."""
        self.close_connection = True
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.send_header("Connection", "close")
        self.end_headers()
        if flush:
            self.wfile.flush()

    def put(self, data: bytes) -> None:
        """Send what stands on a stream next; nothing is its end."""
        self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))
        self.wfile.flush()

    def do_GET(self) -> None:
        """Open a stream, or say who we are."""
        if self.path.startswith(METADATA):
            own = f"http://{self.headers['Host']}/mcp"
            resource = own if FAULTS["resource"] == "own" else FAULTS["resource"]
            metadata = {"resource": resource, "authorization_servers": ["https://login.example"]}
            self.reply(200, json.dumps(metadata).encode(), Content_Type="application/json")
        elif self.path == "/sse":
            self.old_stream()
        elif self.path == "/mcp":
            self.stream()
        else:
            self.reply(404)

    def stream(self) -> None:
        """Serve a stream of keep-alives, or of what an earlier call is still owed."""
        if "Last-Event-ID" in self.headers:
            self.begin()
            self.put(b": ping\n\n")
            if FAULTS["resumed"] == "answer":
                self.put(b"id: 2\n" + event(self.server.owed))
                self.put(b"")
            else:
                self.connection.recv(1)
            return
        if "headless" in FAULTS:
            self.connection.recv(1)
            return
        self.begin(flush="late" not in FAULTS)
        time.sleep(int(FAULTS.get("late", 0)) / 1000)
        for _ in range(3):
            self.put(b": ping\n\n")
            time.sleep(BEAT_S)
        if "reset" in FAULTS:
            time.sleep(int(FAULTS["reset"]) / 1000)
        elif "brief" in FAULTS:
            self.put(b"")
        else:
            self.connection.recv(1)

    def old_stream(self) -> None:
        """Serve the stream of HTTP+SSE: its endpoint, then answers as they are made."""
        session = "all" if "shared" in FAULTS else uuid4().hex
        queue = self.server.streams[session] = SimpleQueue()
        self.begin()
        if "mute" not in FAULTS:
            self.put(event(f"/messages?session_id={session}".encode(), "endpoint"))
        while data := queue.get():
            self.put(event(data))

    def do_POST(self) -> None:
        """Take a message."""
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path.startswith("/messages"):
            self.reply(202, b"Accepted")
            if "id" in message:
                session = self.path.partition("=")[2]
                others = [name for name in self.server.streams if name != session] if "swapped" in FAULTS else []
                self.server.streams[(others or [session])[0]].put(answer(message))
        elif self.is_refused(message):
            status, body, fields = REFUSALS[FAULTS["refuses"]]
            at = formatdate(time.time() + 30, usegmt=True)
            self.reply(status, body, **fields, **({"Retry_After": at} if FAULTS["refuses"] == "limit" else {}))
        elif "resource" in FAULTS or ("bound" in FAULTS and "DPoP" in self.headers):
            url = f"http://{self.headers['Host']}{METADATA}/mcp"
            self.reply(401, WWW_Authenticate=f'Bearer resource_metadata="{url}"')
        else:
            self.streamable(message)

    def is_refused(self, message: dict[str, Any]) -> bool:
        """Tell whether the fault `refuses` refuses a message."""
        if FAULTS.get("refuses") != "limit":
            return "refuses" in FAULTS and self.headers.get("Authorization") != "Bearer good"
        is_first = self.server.is_limited and message["method"] == "tools/list"
        self.server.is_limited &= not is_first
        return is_first

    def streamable(self, message: dict[str, Any]) -> None:
        """Answer a message of Streamable HTTP."""
        session = self.headers.get("Mcp-Session-Id", "")
        if "moved" in FAULTS and self.path == "/mcp":
            self.reply(301, Location="/mcp/")
        elif message["method"] == "initialize":
            session = uuid4().hex
            self.server.sessions.add(session)
            self.reply(200, answer(message), Content_Type="application/json", Mcp_Session_Id=session)
        elif session not in self.server.sessions:
            if session and "vague" in FAULTS:
                self.reply(400, b"Bad Request: No valid session ID provided")
            else:
                self.reply(404 if session else 400)
        elif "id" not in message or (message["method"] == "tools/call" and "accepted" in FAULTS):
            self.reply(202)
        elif message["method"] == "tools/call":
            self.count(message)
        else:
            encoding = {"Content_Encoding": "gzip"} if "plain" in FAULTS else {}
            self.reply(200, answer(message), Content_Type="application/json", **encoding)

    def count(self, message: dict[str, Any]) -> None:
        """Answer with progress, keep-alives and, at last, a result."""
        self.begin()
        if "resumed" in FAULTS:
            self.server.owed = answer(message)
            self.put(b"id: 1\nretry: 500\ndata:\n\n")
            self.put(b"")
            return
        token = message["params"]["_meta"]["progressToken"]
        for step in range(message["params"]["arguments"]["n"]):
            time.sleep(PAUSE_S)
            progress = {"method": "notifications/progress", "params": {"progressToken": token, "progress": step + 1}}
            self.put(event(json.dumps({"jsonrpc": "2.0", **progress}).encode()))
            self.put(b": ping\n\n")
        last = event(answer(message), "result" if "renamed" in FAULTS else "message")
        self.put(last[:-1] if "unended" in FAULTS else last)
        self.put(b"")


def main() -> None:
    """Serve on the loopback, and print the port first."""
    server = Server(int(sys.argv[1]))
    print(server.server_address[1], flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
