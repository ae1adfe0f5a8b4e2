"""A server over HTTP that speaks every dialect seen in the field, byte for byte the same each time.

    httpdialects.py PORT

POST /mcp is Streamable HTTP: a call of a tool in `SAYS` gets the tool's response, in which `%d` is the request's id; of a batch the
ids are `%d` in order. GET /sse is HTTP+SSE: there the events of the same tools go out
on the stream, compressed for a client that takes gzip. On PORT 0 a free port is taken; either way it is the first line on standard
output.
"""

import gzip
import json
import re
import sys
import zlib
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import SimpleQueue
from typing import Any, Final, NamedTuple

JSON: Final = "application/json"
EVENTS: Final = "text/event-stream"
ENDPOINT: Final = "/messages?sessionId=4f2c7d1e8a9b0c3d"

RESULT: Final = b'{"jsonrpc":"2.0","id":%d,"result":{"content":[]}}'
NULL: Final = b'{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}'
STREAM: Final = (
    b': hello\n\nevent: ping\ndata: \n\ndata: {"result":{"progress":30,"status":"processing"}}\n\n'
    b'event: message\nid:7\ndata: {"jsonrpc" : "2.0",\ndata:  "id":"%d", "result":{"content":[],"isComplete":false}}\n\n'
    b'data: {"jsonrpc":"2.0","id":%d,"result":{"content":[],"isComplete":true}}\n\nretry: 90\n\n'
    b'x-vendor: 1\ndata: {"jsonrpc":"2.0","method":"pong"}\n\ndata: [DONE]\n\n: bye\n\n'
)
PAGE: Final = "<!doctype html>\r\n<title>出错</title>\n\n<p>two\n  lines</p>\n".encode()


class Reply(NamedTuple):
    """A response: what is said, under which type, in which encoding."""

    media_type: str
    body: bytes
    status: int = 200
    encoding: str = ""


SAYS: Final[dict[str, Reply]] = {
    "initialize": Reply(
        "application/json; charset=utf-8",
        b'{"jsonrpc":"2.0","id":%d,"result":{"protocolVersion":"2025-03-26","capabilities":{"tools":{}},'
        b'"serverInfo":{"name":"dialects","version":"1"}}}',
    ),
    "charset": Reply("application/json;charset=UTF-8", b" \r\n" + RESULT + b" \n\n"),
    "other type": Reply("text/plain", RESULT + b"\r\n"),
    "no type": Reply("", RESULT),
    "spelled": Reply(JSON, b'{ "id" : "%d" ,\n "result" : {} }\n'),
    "gzip": Reply(JSON, RESULT + b"\n", encoding="gzip"),
    "null": Reply(JSON, NULL),
    "null as text": Reply(JSON, NULL.replace(b"null", b'"null"')),
    "other id": Reply(JSON, RESULT.replace(b"%d", b"99")),
    "no id": Reply(JSON, b'{"result":{"content":[]}}'),
    "text": Reply("text/plain; charset=utf-8", b"Something\nwent wrong.\r\n\r\n  Sorry\n"),
    "page": Reply("text/html", PAGE, 500),
    "refusal": Reply("text/plain", b"one\ntwo\n", 400),
    "null refusal": Reply("application/json; charset=utf-8", NULL + b"\n", 400),
    "nothing": Reply(JSON, b""),
    "lines": Reply("text/plain", b'{"result":{"progress":30}}\n\n' + RESULT + b"\n"),
    "lines by type": Reply("application/x-ndjson", b'{"jsonrpc":"2.0","method":"pong"}\r\n\r\n' + RESULT + b"\r\n"),
    "array": Reply(JSON, b"[ " + RESULT + b" ,\n 7 ]\n"),
    "stream": Reply("text/event-stream;charset=UTF-8", STREAM),
    "gzip stream": Reply(EVENTS, STREAM, encoding="gzip"),
    "deflate stream": Reply("text/event-stream; charset=utf-8", STREAM.replace(b"\n", b"\r\n"), encoding="deflate"),
    "null in a stream": Reply(EVENTS, b"data: " + NULL + b"\n\n"),
    "other id in a stream": Reply(EVENTS, b"data: " + RESULT.replace(b"%d", b"99") + b"\n\ndata: [DONE]\n\n"),
    "no answer in a stream": Reply(EVENTS, b"data: [DONE]\n\n"),
    "array in a stream": Reply(EVENTS, b"data: [ " + RESULT + b" ,\ndata:  7 ]\n\n"),
    "JSON as a stream": Reply(EVENTS, RESULT + b"\n"),
    "stream as JSON": Reply(JSON, b"data: " + RESULT + b"\n\n"),
    "refused stream": Reply(EVENTS, b"event: error\ndata: no\n\n", 429),
}
BATCH: Final = Reply("application/json; charset=utf-8", b"[ " + RESULT + b",\n  " + RESULT.replace(b":", b": ") + b"\t]\r\n")


def filled(body: bytes, *ids: int) -> bytes:
    """Put the ids of requests into a body, the last one as often as it takes."""
    values = list(ids)
    return re.sub(b"%d", lambda _: b"%d" % (values.pop(0) if len(values) > 1 else values[0]), body)


def reply_to(message: Any) -> Reply:
    """Return the response to what a client posted."""
    if isinstance(message, list):
        return BATCH._replace(body=filled(BATCH.body, *(request["id"] for request in message)))
    if "id" not in message:
        return Reply(JSON, b"", 202)
    reply = SAYS[message["method"] if message["method"] == "initialize" else message["params"]["name"]]
    return reply._replace(body=filled(reply.body, message["id"]))


def events_of(reply: Reply) -> bytes:
    """Return a response as HTTP+SSE has it on its stream; nothing for what HTTP refuses."""
    if reply.status != 200:
        return b""
    if reply.media_type.startswith(EVENTS):
        return reply.body if reply.body.endswith((b"\n\n", b"\r\n\r\n")) else reply.body + b"\n"
    lines = reply.body.rstrip(b"\r\n").replace(b"\r", b"").split(b"\n")
    return b"".join(b"data: %b\n" % line for line in lines) + b"\n"


class Server(ThreadingHTTPServer):
    """A server that remembers the stream that was opened last."""

    daemon_threads = True

    def __init__(self, port: int) -> None:
        super().__init__(("127.0.0.1", port), Connection)
        self.stream: SimpleQueue[bytes] = SimpleQueue()


class Connection(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    wbufsize = -1  # head and body in one write
    server: Server

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""

    def reply(self, reply: Reply, *, is_chunked: bool) -> None:
        """Answer."""
        body = reply.body
        if reply.encoding:
            body = gzip.compress(body) if reply.encoding == "gzip" else zlib.compress(body)
        self.send_response(reply.status)
        fields = {"Content-Type": reply.media_type, "Content-Encoding": reply.encoding}
        for name, value in fields.items():
            if value:
                self.send_header(name, value)
        self.send_header(*(("Transfer-Encoding", "chunked") if is_chunked else ("Content-Length", str(len(body)))))
        self.end_headers()
        self.wfile.write(b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body) if is_chunked else body)
        self.wfile.flush()

    def do_GET(self) -> None:
        """Open a stream."""
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream; charset=utf-8")
        is_compressed = self.headers["Accept-Encoding"] == "gzip"
        if is_compressed:
            self.send_header("Content-Encoding", "gzip")
        self.end_headers()
        queue = self.server.stream = SimpleQueue()
        queue.put(b"event: endpoint\r\ndata: %b\r\n\r\n" % ENDPOINT.encode())
        packer = zlib.compressobj(wbits=31)
        while True:
            events = queue.get()
            self.wfile.write(packer.compress(events) + packer.flush(zlib.Z_SYNC_FLUSH) if is_compressed else events)
            self.wfile.flush()

    def do_POST(self) -> None:
        """Take a message."""
        reply = reply_to(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        if self.path == "/mcp":
            self.reply(reply, is_chunked=reply.media_type.startswith(EVENTS) and bool(reply.body))
            return
        self.reply(Reply("text/plain", b"Accepted\n", 202), is_chunked=False)
        self.server.stream.put(events_of(reply))


def main() -> None:
    """Serve on the loopback, and print the port first."""
    server = Server(int(sys.argv[1]))
    print(server.server_address[1], flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
