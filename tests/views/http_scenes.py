"""HTTP scenes for the tests of views: one with a bit of everything, and one in which every string is hostile."""

import gzip

from mcpspy.records import Open
from tests.transcript.dialogue import make_header, notification, request, result
from tests.transcript.traffic import Traffic, initialize, modern
from tests.views.scenes import WALL_NS, call, failed, progress

SESSION = "redacted-8eecc9a3d0d7"


def http_scene() -> Traffic:
    """Make HTTP+SSE, a session with a server request, a modern client, OAuth metadata, a redirect, rejections, a dead upstream."""
    traffic = Traffic(header=make_header(label="everything", wall_ns=WALL_NS))
    _oauth(traffic)
    _http_sse(traffic)
    _session(traffic)
    traffic.post(modern(1, "server/discover", client="inspector")).answer(404, {**_error(-32601), "id": 1})
    traffic.post(modern(2, "tools/call", client="inspector", name="slow"), session="").stream().close("client", "broken")
    traffic.post(request(1), "/mcp/").answer(307, Location="/mcp")
    traffic.get("/", Host="evil.example").answer(421, b"mcpspy: evil.example is not this tap\n", injected=True, by="mcpspy")
    gone = b"mcpspy: http://127.0.0.1:3001 cannot be reached: Connection refused\n"
    traffic.post(request(2)).answer(502, gone, injected=True, by="mcpspy", Content_Type="text/plain")
    traffic.get("/late").leave()
    return traffic.ends()


def _oauth(traffic: Traffic) -> None:
    challenge = 'Bearer resource_metadata="http://127.0.0.1:3001/.well-known/oauth-protected-resource"'
    traffic.post(initialize()).answer(401, {"error": "invalid_token"}, WWW_Authenticate=challenge)
    metadata = gzip.compress(b'{"resource": "http://127.0.0.1:3001/mcp"}', mtime=0)
    traffic.get("/.well-known/oauth-protected-resource").answer(
        200, metadata, Content_Type="application/json", Content_Encoding="gzip"
    )


def _http_sse(traffic: Traffic) -> None:
    """Make the traffic of a published walkthrough: chunks of 81 bytes, and one event in many chunks."""
    stream = traffic.get("/sse").stream()
    forwarded = b"event: endpoint\r\ndata: http://127.0.0.1:7777/messages/?session_id=redacted-0432c9b7d128\r\n\r\n"
    uri = "http://127.0.0.1:3001/messages/?session_id=redacted-0432c9b7d128"
    stream.event(uri, kind="endpoint", chunks=(81,), forwarded=forwarded)
    target = "/messages/?session_id=redacted-0432c9b7d128"
    traffic.post(initialize(0, "qwen-agent"), target).answer(202, b"Accepted", Content_Type="text/plain")
    stream.event(result(0, {"protocolVersion": "2024-11-05"}), kind="message")
    traffic.post(call(1, "fetch", url="https://blog.example/"), target).answer(202, b"Accepted", Content_Type="text/plain")
    stream.raw(b": ping - 2026-11-18 11:06:41\r\n\r\n", chunks=(33,))
    page = {"content": [{"type": "text", "text": "<html>" + "慕雪の寒舎 " * 300 + "</html>"}], "isError": False}
    stream.event(result(1, page), kind="message", chunks=(4096, 4096, 61))
    stream.close("client", "reset")


def _session(traffic: Traffic) -> None:
    traffic.post(initialize(0, "claude-code")).answer(200, result(0), Mcp_Session_Id=SESSION)
    traffic.post(notification(), session=SESSION).answer(202)
    traffic.get(session=SESSION).answer(405, Allow="POST, DELETE")
    slow = traffic.post(call(1, "greet", token=1), session=SESSION).stream().event("", id="7_0")
    slow.event(progress(1, 1, "asking"), id="7_1").event(request("q", "elicitation/create"), id="7_2").close("server")
    traffic.post(result("q", {"action": "accept"}), session=SESSION).answer(202)
    resumed = traffic.get(session=SESSION, Last_Event_ID="7_1").stream().raw(b"retry: 500\n\n")
    resumed.event(request("q", "elicitation/create"), id="7_2").event(result(1, {"content": []}), id="7_3").close("server")
    traffic.post(call(2, "read_file", path="/nowhere"), session=SESSION).answer(200, failed(2, "ENOENT"))
    traffic.call("DELETE", fields={"Mcp_Session_Id": SESSION}).answer(200)


def _error(code: int) -> dict[str, object]:
    return {"jsonrpc": "2.0", "error": {"code": code, "message": "Method not found"}}


def hostile_traffic(text: str) -> Traffic:
    """Put `text` into every field of HTTP that a peer can fill."""
    traffic = Traffic(header=make_header(label=text, wall_ns=WALL_NS), url=f"http://{text}/")
    raw = text.encode("utf-8", "surrogatepass")
    field = raw.replace(b"\r", b" ").replace(b"\n", b" ")
    lines = b"X-%b: %b\r\nMcp-Session-Id: %b\r\nContent-Type: %b\r\n\r\n" % (field, field, field, field)
    body = b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"clientInfo":{"name":"x"}}}'
    for method in (b"POST", field):
        asking = traffic.call("POST", whole=False)
        first = traffic.records[-1]
        assert isinstance(first, Open)
        first.head = method + b" /" + field + b" HTTP/1.1\r\n" + lines
        first.forwarded = b"GET " + field + b"\r\nY: " + field + b"\r\n\r\n"
        first.redacted = ((0, len(field), text), (len(first.head) - 5, 9, text))
        traffic.frame(asking.request, body if method == b"POST" else raw)
        traffic.close(asking.request, text, text)
        traffic.open(asking, "response", b"HTTP/1.1 " + field + b"\r\n" + lines)
        asking.note(text, text)
        asking.response = traffic.open(
            asking, "response", b"HTTP/1.1 404 " + field + b"\r\n" + lines, "sse", injected=method != b"POST"
        )
        for name in (b"data", b"event: endpoint\ndata", b"id: " + field + b"\nevent", b"", field):
            asking.raw(name + b": " + field + b"\n\n", chunks=(5, 1), forwarded=b"data: " + raw + b"\n\n")
        asking.raw(raw, redacted=((0, 1, text),)).close(text, text)
    traffic.call("GET").note("left", text)
    return traffic
