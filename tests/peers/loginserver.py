"""Streamable HTTP with a login, without an SDK: a server whose challenge and documents are those of its command line.

    loginserver.py SHAPE

SHAPE is JSON. `challenge` is the value of WWW-Authenticate in a 401; without it there is none. `documents` maps paths of the server
to JSON, or to where they redirect to; `elsewhere` does the same for an authorization server on another port. With `iss` the
redirect that ends a login names this issuer. With `accepts` the `resource` of a login at the server has to be this, but for a slash
at its end (RFC 8707). SERVER and ELSEWHERE in them become the two addresses. Otherwise both servers agree to everything, at any path
that ends in /register, /authorize or /token. The port of the server is the first line on standard output; then follows a line for
each request.
"""

import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

SHAPE: dict[str, Any] = json.loads(sys.argv[1])
RESULTS = {
    "initialize": {
        "protocolVersion": "2025-06-18",
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "login", "version": "1"},
    },
    "tools/list": {"tools": [{"name": "whoami", "inputSchema": {"type": "object"}}]},
    "tools/call": {"content": [{"type": "text", "text": "me"}]},
}
CREATED = 201
NOT_FOUND = 404


class Handler(BaseHTTPRequestHandler):
    """Both servers."""

    protocol_version = "HTTP/1.1"

    def answer(self, status: int, content: object = None, **fields: str) -> None:
        """Answer with JSON, or with nothing."""
        body = b"" if content is None else json.dumps(content).encode()
        self.send_response(status)
        for name, value in {**({"Content-Type": "application/json"} if body else {}), **fields}.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        print(f"GET {self.path}", flush=True)
        if url.path.endswith("/authorize"):
            query = parse_qs(url.query)
            back = {
                **({"code": "code-1"} if self.accepts(query) else {"error": "invalid_target"}),
                "state": query["state"][0],
                **({"iss": addressed(SHAPE["iss"])} if SHAPE.get("iss") else {}),
            }
            self.answer(302, Location=f"{query['redirect_uri'][0]}?{urlencode(back)}")
            return
        documents = SHAPE.get("elsewhere" if self.server is elsewhere else "documents", {})
        document = documents.get(url.path)
        if isinstance(document, str):
            self.answer(307, Location=addressed(document))
        else:
            self.answer(200 if document else NOT_FOUND, addressed(document) if document else None)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"] or 0))
        path = urlsplit(self.path).path
        print(f"POST {self.path}", flush=True)
        if path.endswith("/register"):
            self.answer(CREATED, {**json.loads(body), "client_id": "client-1", "token_endpoint_auth_method": "none"})
        elif path.endswith("/token") and not self.accepts(parse_qs(body.decode())):
            self.answer(400, {"error": "invalid_target"})
        elif path.endswith("/token"):
            self.answer(200, {"access_token": "good", "token_type": "Bearer", "expires_in": 3600})
        elif self.headers["Authorization"] != "Bearer good":
            challenge = SHAPE.get("challenge")
            self.answer(401, **({"WWW_Authenticate": addressed(challenge)} if challenge else {}))
        else:
            message = json.loads(body)
            if "id" not in message:
                self.answer(202)
            elif (result := RESULTS.get(message["method"])) is None:
                self.answer(200, {"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32601, "message": "no"}})
            else:
                self.answer(200, {"jsonrpc": "2.0", "id": message["id"], "result": result})

    def accepts(self, parameters: dict[str, list[str]]) -> bool:
        """Return whether this server gives tokens for what these parameters name."""
        accepted = addressed(SHAPE.get("accepts", ""))
        if not accepted or self.server is elsewhere:
            return True
        return all(resource.rstrip("/") == accepted for resource in parameters.get("resource", []))

    def do_DELETE(self) -> None:
        self.answer(200)

    def log_message(self, *_: object) -> None:
        """Log nothing."""


class Server(ThreadingHTTPServer):
    """A server that says nothing of clients that leave."""

    def handle_error(self, *_: object) -> None:
        """Say nothing."""


def addressed(template: Any) -> Any:
    """Put the two addresses into a text, or into the texts of a document."""
    if isinstance(template, str):
        return template.replace("SERVER", f"http://127.0.0.1:{server.server_port}").replace(
            "ELSEWHERE", f"http://127.0.0.1:{elsewhere.server_port}"
        )
    return json.loads(addressed(json.dumps(template)))


server = Server(("127.0.0.1", 0), Handler)
elsewhere = Server(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
threading.Thread(target=elsewhere.serve_forever, daemon=True).start()
server.serve_forever()
