"""An HTTP server that speaks as walkthroughs of MCP have it that are read a lot, and no specification has it.

    dialects.py PORT [KEEP_ALIVE_S]

GET /sse announces its endpoint as JSON. What is POSTed to /messages is answered on that stream: with revisions that have dots, with
calls answered in parts, an end mark of another protocol, results without an id, and `ping` and `pong` as notifications.

GET /mcp/events announces nothing; what is POSTed to /mcp/request is answered on the stream that was opened last. It has prompts.

POST /mcp/tools/call is answered with text/plain, in lines of JSON that come one by one.

A stream that was silent for KEEP_ALIVE_S carries a comment, so that it stays open.

Any other path is answered with 404. On PORT 0 a free port is taken; either way it is the first line on standard output.
"""

import json
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import Empty, SimpleQueue
from typing import Any

SESSION = "szN2CtIyxmYqjDAAAAAF"
MARK = "[DONE]"
PROMPT = {
    "name": "code_review",
    "title": "Request Code Review",
    "description": "Asks for the quality of code, and how to improve it",
    "arguments": [{"name": "code", "description": "The code to review", "required": True}],
}
CODE = ("function", " calculate() {", " return 1+1;", "}")
WEATHER = ("北京的天气是", "28°C,晴天")


def text(words: str) -> dict[str, Any]:
    """Make a block of content."""
    return {"type": "text", "text": words}


def prompted(arguments: dict[str, str]) -> dict[str, Any]:
    """Fill in a prompt: the user's turn, and the beginning of the model's."""
    turn = {"role": "user", "content": text(f"Please review this Python code:\n{arguments['code']}")}
    return {"messages": [turn, {"role": "assistant", "content": text("Let me look at it line by line.")}]}


def answers(message: dict[str, Any]) -> Iterator[Any]:
    """Yield the answers to a message, in this order."""
    match message:
        case {"method": "initialize", "params": {"protocolVersion": revision}}:
            info = {"name": "dialects", "version": "1.0"}
            yield result(
                message, {"protocolVersion": revision, "capabilities": {"prompts": {}, "tools": {}}, "serverInfo": info}
            )
        case {"method": "tools/list"}:
            tool = {"name": "get_weather", "description": "获取天气信息", "inputSchema": {"type": "object"}}
            yield result(message, {"tools": [tool]})
        case {"method": "tools/call", "params": {"name": "generate_code"}}:
            for at, words in enumerate(CODE, 1):
                yield bare({"content": [text(words)], "isComplete": at == len(CODE)})
        case {"method": "tools/call", "params": {"name": "long_task"}}:
            yield bare({"progress": 30, "status": "processing"})
            yield bare({"progress": 60, "status": "processing"})
            yield bare({"progress": 100, "status": "completed", "result": "任务完成"})
        case {"method": "tools/call"}:
            for at, words in enumerate(WEATHER, 1):
                yield result(message, {"content": [text(words)], "isComplete": at == len(WEATHER)})
            yield {"result": {"progress": 100, "status": "completed"}}
            yield MARK
        case {"method": "prompts/list"}:
            yield result(message, {"prompts": [PROMPT]})
        case {"method": "prompts/get", "params": {"arguments": arguments}}:
            yield result(message, prompted(arguments))
        case {"method": "ping"}:
            yield {"jsonrpc": "2.0", "method": "pong"}


def result(message: dict[str, Any], parameters: dict[str, Any]) -> dict[str, Any]:
    """Make a result."""
    return {"jsonrpc": "2.0", "id": message["id"], "result": parameters}


def bare(result: dict[str, Any]) -> bytes:
    """Make an event with a bare result, and without a type."""
    return b"data: %b\n\n" % json.dumps({"result": result}, ensure_ascii=False, separators=(",", ":")).encode()


def data(message: Any) -> bytes:
    """Encode a message as a line, without its end."""
    return (message if isinstance(message, str) else json.dumps(message, ensure_ascii=False)).encode()


class Server(ThreadingHTTPServer):
    """State that connections share: for each path that receives POSTs, the messages to send on its stream."""

    daemon_threads = True

    def __init__(self, port: int, keep_alive_s: float | None) -> None:
        super().__init__(("127.0.0.1", port), Connection)
        self.keep_alive_s = keep_alive_s
        self.streams: dict[str, SimpleQueue[Any]] = {}


class Connection(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    wbufsize = -1  # head and body in one write
    server: Server

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""

    def reply(self, status: int, body: bytes = b"") -> None:
        """Answer with a body that is there."""
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()

    def begin(self, media_type: str) -> None:
        """Answer with a body that comes in chunks."""
        self.send_response(200)
        self.send_header("Content-Type", media_type)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.wfile.flush()

    def put(self, chunk: bytes) -> None:
        """Send a chunk; nothing is the end."""
        self.wfile.write(b"%x\r\n%b\r\n" % (len(chunk), chunk))
        self.wfile.flush()

    def do_GET(self) -> None:
        """Open a stream."""
        if self.path not in ("/sse", "/mcp/events"):
            self.reply(404)
            return
        queue: SimpleQueue[Any] = SimpleQueue()
        self.server.streams["/messages" if self.path == "/sse" else "/mcp/request"] = queue
        self.begin("text/event-stream")
        if self.path == "/sse":
            endpoint = {"uri": f"/messages?sessionId={SESSION}", "protocol": "ssE"}
            self.put(b"event: endpoint\ndata: %b\n\n" % data(endpoint))
        while True:
            try:
                answer = queue.get(timeout=self.server.keep_alive_s)
            except Empty:
                answer = b": keep-alive\n\n"
            self.put(answer if isinstance(answer, bytes) else b"event: message\ndata: %b\n\n" % data(answer))

    def do_POST(self) -> None:
        """Take a message."""
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        path = self.path.partition("?")[0]
        if path == "/mcp/tools/call":
            self.begin("text/plain; charset=utf-8")
            for answer in answers(message):
                self.put(data(answer) + b"\n")
            self.put(b"")
        elif path in self.server.streams:
            self.reply(202)
            for answer in answers(message):
                self.server.streams[path].put(answer)
        else:
            self.reply(404, b"nothing here")


def main() -> None:
    """Serve on the loopback, and print the port first."""
    server = Server(int(sys.argv[1]), float(sys.argv[2]) if len(sys.argv) > 2 else None)
    print(server.server_address[1], flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
