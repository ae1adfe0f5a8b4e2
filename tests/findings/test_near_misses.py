"""Near misses, which are no faults; and faults in places that the examples do not show."""

import json

import pytest

from mcpspy.transcript.findings.run import all_findings
from mcpspy.transcript.model import UnpairedMessage
from mcpspy.transcript.transcribe import transcribe
from mcpspy.views.timeline.phrases import unpaired_phrase
from tests.findings.account import records

INITIALIZE = '→ initialize 0 {"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"client","version":"1"}}\n'
HELLO = '← result 0 {"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"server","version":"1"}}\n'
SESSION = "· HTTP\n· handshake 2025-11-25, server: tools\n"
TOOLS = '→ POST /mcp\n  tools/list 1\n← 200 OK\n  result 1 {"tools":[]}\n'
CALL = '· handshake 2025-11-25, server: tools\n→ tools/call 1 {"name":"slow"}\n'
GIVE_UP = '→ notifications/cancelled {"requestId":1}\n'
TASK = '← result 1 {"task":{"taskId":"t","status":"working","ttl":60000}}\n'
LISTEN = '· revision 2026-07-28\n→ subscriptions/listen 1 {"notifications":{"toolsListChanged":true}}\n'
GET = "→ GET /mcp\n  Accept: text/event-stream\n"
SSE = "← 200 OK\n  Content-Type: text/event-stream\n"
NO_SESSION = '{"jsonrpc":"2.0","id":"server-error","error":{"code":-32600,"message":"Bad Request: Missing session ID"}}'
STREAM = "· HTTP\n· handshake 2025-11-25\n→ GET /mcp\n  Accept: text/event-stream\n"

COUNTING = '→ POST /mcp\n  tools/call 1 {"name":"count","_meta":{"progressToken":"t"}}\n'
STEPS = "".join(f'← data: notifications/progress {{"progressToken":"t","progress":{at}}}\n' for at in (1, 2, 3))
COUNTED = '← data: result 1 {"content":[]}\n· the server closes the stream\n'
LINES = STEPS.replace("data: ", "")
WAITS = '· handshake 2025-11-25, server: tools\n→ tools/call 1 {"name":"count","_meta":{"progressToken":"t"}}\n'

SHORT = '· handshake 2025-11-25, server: tools\n→ tools/call 1 {"name":"%s"}\n← result 1 {"content":[{"type":"text","text":"%s"}]%s}'

LONG = "⟪x×70000⟫"
HANDSHAKE = "· handshake 2025-11-25, server: tools\n"
PAGE = '← result %d {"tools":[{"name":"%s","inputSchema":{"type":"object"}}],"nextCursor":"%s"}\n'
NEXT = '→ tools/list %d {"cursor":"%s"}\n'
PAGES = "→ tools/list 1\n" + PAGE % (1, "a", "2") + NEXT % (2, "2") + PAGE % (2, "b", "3")
LISTENING = "→ GET /events\n  Accept: text/event-stream\n← 200 OK\n  Content-Type: text/event-stream\n"

WELL = {
    "a signal to a whole group of processes, which the server gets first": (
        "· handshake 2025-11-25\n· the server exits by SIGTERM\n· 0.1 s later\n· the client sends SIGTERM"
    ),
    "a session that refuses a method with 404, as servers of later revisions do": (
        f"{SESSION}→ POST /mcp\n  tools/peek 1\n← 404 Not Found\n  error 1 -32601 Method not found\n{TOOLS.replace('1', '2')}"
    ),
    "a call of a tool that only reads, sent again": (
        '· handshake 2025-11-25, server: tools\n→ tools/list 1\n← result 1 {"tools":[{"name":"a","inputSchema":{"type":"object"},'
        '"annotations":{"readOnlyHint":true}}]}\n→ tools/call 2 {"name":"a"}\n· 2.0 s later\n→ tools/call 3 {"name":"a"}\n'
        "← result 2\n← result 3"
    ),
    "a call sent again after it was cancelled": (
        CALL + "· 2.0 s later\n" + GIVE_UP + '→ tools/call 2 {"name":"slow"}\n← result 2'
    ),
    "a second call of a tool with other arguments": (
        CALL + '· 2.0 s later\n→ tools/call 2 {"name":"slow","arguments":{"x":1}}\n← result 2\n← result 1'
    ),
    "a file about errors that is read": (
        CALL + '← result 1 {"content":[{"type":"text","text":"12:00 Traceback (most recent call last):\\n  File \\"a\\", line 1"}]}'
    ),
    "a log that is read, and is only an error": SHORT % ("tail_log", "Error: connect ECONNREFUSED 127.0.0.1:6379", ""),
    "a text about an error that was asked for": SHORT % ("explain", "Error: the file does not exist.", ""),
    "an error that is marked": SHORT % ("get", "Error: connect ECONNREFUSED 127.0.0.1:6379", ',"isError":true'),
    "a number that is called an error": SHORT % ("fit", "Standard error: 0.12", ""),
    "no error": SHORT % ("validate", "No error: the document is valid", ""),
    "a long text that begins with an error": SHORT % ("get", f"Error: a chapter about errors. {'So it goes. ' * 40}", ""),
    "an object that has no error": SHORT % ("get", '{\\"error\\":null,\\"rows\\":[]}', ""),
    "a file with wrong letters that was asked for by them": (
        '· handshake 2025-11-25, server: tools\n→ tools/call 1 {"name":"grep","arguments":{"text":"RÃ©sumÃ©"}}\n'
        '← result 1 {"content":[{"type":"text","text":"RÃ©sumÃ©.docx, Résumé.docx"}]}'
    ),
    "a task that is unknown after its time to live": (
        '· handshake 2025-11-25, server: tools tasks.requests.tools.call\n→ tools/call 1 {"name":"a","task":{"ttl":1000}}\n'
        '← result 1 {"task":{"taskId":"t","status":"working","ttl":1000}}\n· 2.0 s later\n'
        '→ tasks/get 2 {"taskId":"t"}\n← error 2 -32602 Task not found'
    ),
    "null in data, where it is a value": (
        '→ tools/call 1 {"name":"a"}\n← result 1 {"content":[],"structuredContent":{"nextCursor":null}}'
    ),
    "equal ids in two sessions": f"{SESSION}{TOOLS}· session none\n· handshake 2025-11-25 again as 77aa, server: tools\n{TOOLS}",
    "equal ids of both sides": f"{HANDSHAKE}→ ping 1\n← ping 1\n→ result 1\n← result 1",
    "a request that is sent again after a login": (
        f"{SESSION}→ POST /mcp\n  tools/list 1\n← 401 Unauthorized\n"
        f"→ POST /mcp\n  Authorization: Bearer redacted-aa\n  tools/list 1\n← 200 OK\n  result 1 {{\"tools\":[]}}"
    ),
    "pages that are fetched twice": f"{HANDSHAKE}{PAGES}" + PAGES.replace("list 1", "list 3").replace("result 1", "result 3")
    .replace("list 2", "list 4").replace("result 2", "result 4"),
    "a page that is asked for twice": f"{HANDSHAKE}{PAGES}{NEXT % (3, '2')}{PAGE % (3, 'b', '3')}",
    "pages without anything": f"{HANDSHAKE}{PAGES}".replace('{"name":"a","inputSchema":{"type":"object"}}', "").replace(
        '{"name":"b","inputSchema":{"type":"object"}}', ""
    ),
    "a long line after which the client goes on": (
        f'{HANDSHAKE}→ tools/call 1 {{"name":"a"}}\n← result 1 {{"content":[{{"type":"text","text":"{LONG}"}}]}}\n'
        "→ ping 2\n← result 2"
    ),
    "a client that leaves some time after a long line": (
        f'{HANDSHAKE}→ ping 2\n→ tools/call 1 {{"name":"a"}}\n← result 1 {{"content":[{{"type":"text","text":"{LONG}"}}]}}\n'
        "← result 2\n· 2.0 s later"
    ),
    "a client that had what it wanted, after a long line": (
        f'{HANDSHAKE}→ tools/call 1 {{"name":"a"}}\n← result 1 {{"content":[{{"type":"text","text":"{LONG}"}}]}}\n'
    ),
    "a few requests of which the beginning may not be there": "→ tools/list 1\n← result 1\n→ prompts/list 2\n← result 2",
    "requests in a session that began before the capture": "".join(
        f"→ POST /mcp\n  {method}/list {at}\n← 200 OK\n  result {at}\n"
        for at, method in enumerate(("tools", "prompts", "resources"))
    ),
    "progress that begins at once and goes on at once": f"{WAITS}{LINES}← result 1",
    "progress that came by itself before more of it came together": (
        f'{WAITS}· 3.0 s later\n{LINES.replace(":1}", ":0.5}", 1).splitlines()[0]}\n· 3.0 s later\n{LINES}← result 1'
    ),
    "progress of a call that goes on after it": f"{WAITS}· 3.0 s later\n{LINES}· 3.0 s later\n← result 1",
    "an answer after a client that did not wait": (
        "→ tools/list 1\n· the client closes stdin\n· 0.5 s later\n← result 1\n· the server exits 0"
    ),
    "a stream whose head is late while nobody else asks": f"{SESSION}{GET}· 10.0 s later\n· the client leaves",
    "a stream that ends and a client that leaves soon after": (
        f"{SESSION}{GET}{SSE}· 9.0 s later\n· the server closes the stream\n· 3.0 s later\n{TOOLS}"
    ),
    "a stream that is refused when it is opened again": (
        f"{SESSION}{GET}{SSE}· 9.0 s later\n· the server closes the stream\n{GET}← 405 Method Not Allowed\n· 9.0 s later\n{TOOLS}"
    ),
    "a server that a signal ends while its stdin is open": (
        "· handshake 2025-11-25\n· 9.0 s later\n· the client sends SIGTERM\n· the server exits by SIGTERM"
    ),
    "a handshake that succeeds after a refusal": (
        f"{INITIALIZE}← error 0 -32602 Unsupported protocol version\n{INITIALIZE.replace('2025-11-25', '2025-06-18')}"
        f"{HELLO.replace('2025-11-25', '2025-06-18')}→ notifications/initialized"
    ),
    "an initialize refused by a server of the modern era, to whom the client then speaks": (
        f"{INITIALIZE}← error 0 -32022 the initialize handshake is not accepted\n· revision 2026-07-28\n→ tools/list 1\n"
        '← result 1 {"resultType":"complete","tools":[],"ttlMs":0,"cacheScope":"private"}'
    ),
    "a server with resources and without templates": (
        "· handshake 2025-11-25, server: resources\n→ resources/templates/list 1\n← error 1 -32601 Method not found"
    ),
    "a record that a declared method refuses for another reason": (
        '· handshake 2025-11-25, server: resources\n→ resources/read 1 {"uri":"x:y"}\n← error 1 -32002 Resource not found'
    ),
    "a request given up before the round time": f"{CALL}· 59.0 s later\n{GIVE_UP}",
    "a request given up long after the round time": f"{CALL}· 61.0 s later\n{GIVE_UP}",
    "a user who changed their mind": f"{CALL}· 3.0 s later\n{GIVE_UP[:-2]},\"reason\":\"not needed any more\"}}\n",
    "a subscription that its client ends": (
        f'{LISTEN}← notifications/subscriptions/acknowledged {{}}\n· 60.0 s later\n{GIVE_UP}'
    ),
    "a question to a person who took too long": (
        "· handshake 2025-11-25, client: elicitation\n← elicitation/create 1 {\"message\":\"Who?\",\"requestedSchema\":"
        "{\"type\":\"object\",\"properties\":{}}}\n· 60.0 s later\n"
        '← notifications/cancelled {"requestId":1,"reason":"timed out"}'
    ),
    "a call that waited for the client's own answer": (
        '· handshake 2025-11-25, client: roots, server: tools\n→ tools/call 1 {"name":"slow"}\n← roots/list 1\n'
        f"· 60.0 s later\n{GIVE_UP}→ result 1 {{\"roots\":[]}}"
    ),
    "an answer that crossed its cancellation": f"{CALL}← result 1\n{GIVE_UP}",
    "a probe of the modern era before initialize": (
        f'· revision 2026-07-28\n→ server/discover 9\n← error 9 -32601 Method not found\n· revision none\n{INITIALIZE}{HELLO}'
        "→ notifications/initialized\n→ tools/list 1\n← result 1"
    ),
    "a probe of the modern era that an older server refuses with a session, as the Python SDK 1.x does": (
        "· HTTP\n· revision 2026-07-28\n→ POST /mcp\n  Mcp-Method: server/discover\n  server/discover 9\n← 400 Bad Request\n"
        f"  Mcp-Session-Id: 5f2c\n  {NO_SESSION}\n"
        "· revision none\n· handshake 2025-11-25, server: tools"
    ),
    "a call of the modern era without a probe that an older server refuses with a session": (
        "· HTTP\n· revision 2026-07-28\n→ POST /mcp\n  Mcp-Method: tools/list\n  tools/list 1\n← 400 Bad Request\n"
        f"  Mcp-Session-Id: 5f2c\n  {NO_SESSION}"
    ),
    "initialize once more, after it failed": (
        f"{INITIALIZE}← error 0 -32603 Not yet\n{INITIALIZE}{HELLO}→ notifications/initialized"
    ),
    "a ping before initialize is answered": f"{INITIALIZE}→ ping 1\n← result 1\n{HELLO}→ notifications/initialized",
    "a client that only says hello": f"{INITIALIZE}{HELLO}",
    "a ping of the server before the handshake is over": f"{INITIALIZE}{HELLO}← ping 1\n→ result 1\n→ notifications/initialized",
    "a method of somebody's own": "· handshake 2025-11-25\n→ acme/paint 1\n← result 1\n← notifications/acme/dried",
    "a handshake without capabilities, which declares nothing and denies nothing": (
        f'{INITIALIZE}← result 0 {{"protocolVersion":"2025-11-25"}}\n→ notifications/initialized\n→ prompts/list 1\n← result 1'
    ),
    "messages of which no revision is known": "→ tools/list 1\n← result 1\n← elicitation/create 1\n→ result 1",
    "progress that starts at nothing": (
        '→ tools/call 1 {"name":"a","_meta":{"progressToken":1}}\n← notifications/progress {"progressToken":1,"progress":0}\n'
        '← notifications/progress {"progressToken":1,"progress":0.5}\n← result 1'
    ),
    "a session that the client ended": (
        f"{SESSION}{TOOLS}→ DELETE /mcp\n← 200 OK\n→ GET /mcp\n← 404 Not Found"
    ),
    "a 404 to a session that nobody gave out": "· HTTP\n· session 77aa\n→ POST /mcp\n  tools/list 1\n← 404 Not Found",
    "a 404 just before the capture ends": f"{SESSION}{TOOLS}→ GET /mcp\n← 404 Not Found",
    "a stream whose head comes at once and whose events late": (
        f"{STREAM}← 200 OK\n  Content-Type: text/event-stream\n· 30.0 s later\n← : ping\n· the client closes the stream"
    ),
    "a stream whose client asked for nothing and left at once": (
        "→ GET /sse\n  Accept: text/event-stream\n← 200 OK\n  Content-Type: text/event-stream\n· the client closes the stream"
    ),
    "metadata of a resource at another path of the server": (
        "→ GET /.well-known/oauth-protected-resource\n← 200 OK\n  Content-Type: application/json\n"
        '  {"resource":"http://127.0.0.1:3001/","authorization_servers":["http://localhost:9"]}'
    ),
    "an answer of one event that took its time": (
        '→ POST /mcp\n  tools/call 1 {"name":"a"}\n· 30.0 s later\n← 200 OK\n  data: result 1\n· the server closes the stream'
    ),
    "a stream that the server ends in good order": (
        f"{STREAM}← 200 OK\n  Content-Type: text/event-stream\n· 60.0 s later\n· the server closes the stream"
    ),
    "processes that a signal is about to end": (
        "· handshake 2025-11-25\n· the client sends SIGTERM\n· the server exits by SIGTERM, leaving node"
    ),
    "an integer as large as a double holds": "→ tools/call 9007199254740991 {\"name\":\"a\"}\n← result 9007199254740991",
    "the same name in two objects": '→ tools/call 1 {"name":"a","arguments":{"name":"b"}}\n← result 1',
    "the same call again while the first is under way": "\n".join(
        [f'→ tools/call {at} {{"name":"a"}}' for at in range(4)] + [f"← result {at}" for at in range(4)]
    ),
    "the same call again with other arguments": "\n".join(
        f'→ tools/call {at} {{"name":"a","arguments":{{"at":{at}}}}}\n← result {at}' for at in range(5)
    ),
    "an error that a server of both eras gives who comes with the wrong one": (
        f"{INITIALIZE}← error 0 -32022 Unsupported protocol version"
    ),
    "a retry with the input of all rounds so far": (
        '· revision 2026-07-28, client: roots\n→ tools/call 1 {"name":"f"}\n← result 1 {"resultType":"input_required",'
        '"inputRequests":{"a":{"method":"roots/list"}},"requestState":"1"}\n'
        '→ tools/call 2 {"name":"f","requestState":"1","inputResponses":{"a":{"roots":[]}}}\n← result 2 {"resultType":'
        '"input_required","inputRequests":{"b":{"method":"roots/list"}},"requestState":"2"}\n'
        '→ tools/call 3 {"name":"f","requestState":"2","inputResponses":{"a":{"roots":[]},"b":{"roots":[]}}}\n'
        '← result 3 {"resultType":"complete","content":[]}'
    ),
    "a stream that goes on after what came last, twice": (
        f"{SESSION}{GET}{SSE}  id: 1\n  data:\n· the client closes the stream\n{GET}  Last-Event-ID: 1\n{SSE}"
        f"  id: 1\n  data:\n· the client closes the stream\n{GET}  Last-Event-ID: 1\n{SSE}  id: 2\n  data:"
    ),
    "event ids that begin anew in each session": "".join(
        f"· session none\n· handshake 2025-11-25 again as {name}, server: tools.listChanged\n{GET}{SSE}  id: 1\n"
        "  data: notifications/tools/list_changed\n· the client closes the stream\n"
        for name in ("5f2c", "77aa")
    ).replace("· session none", "· HTTP", 1),
    "a task that is asked for once more after its end": (
        '· handshake 2025-11-25, server: tools tasks.requests.tools.call\n→ tools/call 1 {"name":"a","task":{}}\n'
        f'{TASK}→ tasks/get 2 {{"taskId":"t"}}\n→ tasks/get 3 {{"taskId":"t"}}\n'
        '← result 3 {"taskId":"t","status":"completed","ttl":1}\n← result 2 {"taskId":"t","status":"working","ttl":1}'
    ),
    "a log message for who gave a level, on stdio": (
        '· revision 2026-07-28\n→ tools/call 1 {"name":"a","_meta":{"io.modelcontextprotocol/logLevel":"info"}}\n'
        '← notifications/message {"level":"info","data":"x"}\n← result 1 {"resultType":"complete","content":[]}'
    ),
    "a field that says in Base64 what the body says": (
        "· revision 2026-07-28\n→ POST /mcp\n  Mcp-Method: tools/call\n  Mcp-Name: =?base64?Y2Fmw6k=?=\n"
        '  tools/call 1 {"name":"café"}\n← 200 OK\n  result 1 {"resultType":"complete","content":[]}'
    ),
    "a 401 before a login": (
        "→ POST /mcp\n  tools/list 1\n← 401 Unauthorized\n→ GET /.well-known/oauth-protected-resource\n← 404 Not Found\n"
        '→ POST /mcp\n  Authorization: Bearer redacted-aa\n  tools/list 2\n← 200 OK\n  result 2 {"tools":[]}'
    ),
    "an initialize that is refused, and a client that goes on over HTTP+SSE": (
        f"→ POST /sse\n  {INITIALIZE[2:]}← 404 Not Found\n  Content-Type: text/plain\n  Not Found\n"
        "→ GET /sse\n  Accept: text/event-stream\n← 200 OK\n  event: endpoint\n  data: /messages?s=1\n"
        f"→ POST /messages?s=1\n  {INITIALIZE[2:]}← 202 Accepted\n← #2 data: {HELLO[2:]}"
        "→ POST /messages?s=1\n  notifications/initialized\n← 202 Accepted"
    ),
    "GET and DELETE at a server that has neither": (
        f"{SESSION}{GET}← 405 Method Not Allowed\n{TOOLS}→ DELETE /mcp\n← 405 Method Not Allowed"
    ),
    "a refusal of a notification, with an error that has an id of its own": (
        f"{SESSION}→ POST /mcp\n  notifications/acme/dried\n← 400 Bad Request\n"
        '  {"jsonrpc":"2.0","id":"server-error","error":{"code":-32600,"message":"Bad Request"}}'
    ),
}  # fmt: skip

ALICE = '· HTTP\n· handshake 2025-11-25 again as a11c, server: tools\n→ POST /mcp\n  tools/call 7 {"name":"inbox"}\n· session none\n'
BOB = "· handshake 2025-11-25 again as b0b, server: tools\n→ POST /mcp\n  "

FOR = '{"_meta":{"io.modelcontextprotocol/subscriptionId":%s}}'

REVISED = "· revision 2026-07-28\n"
MODERN = f"{REVISED}→ POST /mcp\n  Mcp-Method: tools/list\n"
LOG_IN = (
    '{"resultType":"input_required","inputRequests":{"q":{"method":"elicitation/create","params":'
    '{"mode":"url","message":"Log in","url":"https://example.com"}}}}'
)
GOOD = '{"resultType":"complete","tools":[],"ttlMs":0,"cacheScope":"public"}'

FAULTS = {
    "a server that a signal ended long before its client's": (
        "· handshake 2025-11-25\n· the server exits by SIGTERM\n· 0.3 s later\n· the client sends SIGTERM",
        "server-died",
    ),
    "an argument in letters that the server misread, written with escapes": (
        (
            '· handshake 2025-11-25, server: tools\n→ tools/call 1 {"name":"open","arguments":{"a":[{"b":"na\\u00efve"}]}}\n'
            '← result 1 {"content":[{"type":"text","text":"no naÃ¯ve"}]}'
        ),
        "misread-text",
    ),
    "a database that cannot be reached": (
        SHORT % ("hget", "Error getting field 'a': Error 111 connecting to 127.0.0.1:6379. Connection refused.", ""),
        "unmarked-failure",
    ),
    "a program that is not there": (
        SHORT % ("scene", "Scene Error: Could not connect. Make sure that it runs.", ',"isError":false'),
        "unmarked-failure",
    ),
    "voices that cannot be listed": (
        SHORT % ("voices", "Failed to list voices: Request failed: NewConnectionError(host='api')", ""),
        "unmarked-failure",
    ),
    "an object that is only an error": (
        SHORT % ("get", '{\\n  \\"error\\": \\"No document is open\\"\\n}', ""),
        "unmarked-failure",
    ),
    "an exception of Node in a result": (
        CALL + '← result 1 {"content":[{"type":"text","text":"TypeError: x is not a function\\n    at run (/srv/a.js:3:7)"}]}',
        "unmarked-failure",
    ),
    "an id that the server gives out again": (
        f"{HANDSHAKE}← ping 1\n→ result 1\n← ping 1\n→ result 1",
        "id-reused",
    ),
    "cursors that lead in a circle": (f"{HANDSHAKE}{PAGES}{NEXT % (3, '3')}{PAGE % (3, 'c', '2')}", "endless-pages"),
    "pages that are all the same": (f"{HANDSHAKE}{PAGES}".replace('"b"', '"a"'), "endless-pages"),
    "requests of several kinds without a handshake": (
        "→ tools/list 1\n← result 1\n→ prompts/list 2\n← result 2\n→ resources/list 3\n← result 3",
        "missing-initialize",
    ),
    "a stream without an endpoint that answers POSTs": (
        f"{LISTENING}→ POST /request\n  tools/list 1\n← 202 Accepted\n← #1 data: result 1",
        "missing-endpoint",
    ),
    "progress in a burst, though keep-alives come": (
        f"{SESSION}{COUNTING}{SSE}· 2.0 s later\n← : ping\n· 2.0 s later\n← : ping\n· 2.0 s later\n{STEPS}{COUNTED}",
        "progress-in-burst",
    ),
    "progress in a burst without keep-alives": (
        f"{SESSION}{COUNTING}{SSE}· 3.0 s later\n{STEPS}{COUNTED}",
        "progress-in-burst",
    ),
    "progress in bursts, as a buffer of some size makes them": (
        f"{WAITS}· 3.0 s later\n{LINES}· 3.0 s later\n" + LINES.replace('progress":', 'progress":1') + "← result 1",
        "progress-in-burst",
    ),
    "a stream whose head does not come": (
        f"{SESSION}{GET}{TOOLS}".replace(
            TOOLS, '→ POST /mcp\n  tools/list 1\n← #4 200 OK\n  result 1 {"tools":[]}\n· 9.0 s later\n'
        ),
        "late-head",
    ),
    "a server that a signal ends at last": (
        "· handshake 2025-11-25\n· the client closes stdin\n· 2.0 s later\n· the client sends SIGTERM\n· the server exits by SIGTERM",
        "end-of-input-ignored",
    ),
    "a handshake that is refused twice": (
        f"{INITIALIZE}← error 0 -32000 no backend\n{INITIALIZE.replace('initialize 0', 'initialize 1')}← error 1 -32000 no backend",
        "refused-handshake",
    ),
    "a level of the log that is declared and not served": (
        '· handshake 2025-11-25, server: logging\n→ logging/setLevel 1 {"level":"info"}\n← error 1 -32601 Method not found',
        "declared-not-served",
    ),
    "a session that a client names in the modern era": (
        f"{MODERN}  Mcp-Session-Id: 5f2c\n  tools/list 1\n← 200 OK\n  result 1 {GOOD}",
        "session-in-modern-era",
    ),
    "a revision in the head that the body does not name": (
        f"{MODERN.replace(REVISED, '')}  MCP-Protocol-Version: 2026-07-28\n  tools/list 1\n← 400 Bad Request\n  error 1 -32020 no",
        "missing-envelope",
    ),
    "a request without a revision after one with it, on stdio": (
        f"· revision 2026-07-28\n→ tools/list 1\n← result 1 {GOOD}\n· revision none\n→ tools/list 2\n← error 2 -32602 no",
        "missing-envelope",
    ),
    "a list of tasks under a revision that has none": (
        "· revision 2026-07-28\n→ tasks/list 1\n← error 1 -32601 no",
        "method-not-in-revision",
    ),
    "the result of a task under a revision that has none": (
        '· revision 2026-07-28\n→ tasks/result 1 {"taskId":"t"}\n← error 1 -32601 no',
        "method-not-in-revision",
    ),
    "a URL for a client that knows forms alone": (
        f'· revision 2026-07-28, client: elicitation.form\n→ tools/call 1 {{"name":"a"}}\n← result 1 {LOG_IN}',
        "undeclared-input",
    ),
    "a change for a subscription with another id": (
        f"{LISTEN}← notifications/tools/list_changed {FOR % 2}",
        "unsubscribed-notification",
    ),
    "a change that a subscription does not ask for": (
        f"{LISTEN}← notifications/prompts/list_changed {FOR % 1}",
        "unsubscribed-notification",
    ),
    "a request given up a moment after the round time": (f"{CALL}· 60.1 s later\n{GIVE_UP}", "timed-out"),
    "progress that nobody asked for, over HTTP": (
        (
            f'{SESSION}→ POST /mcp\n  tools/call 1 {{"name":"a"}}\n← 200 OK\n'
            '  data: notifications/progress {"progressToken":5,"progress":1}\n← data: result 1\n· the server closes the stream'
        ),
        "unknown-progress-token",
    ),
    "ping as a notification, where no revision is known": ("→ ping\n← pong", "wrong-kind"),
    "a request that only servers make, where no revision is known": ("→ roots/list 1\n← error 1 -32601 no", "wrong-direction"),
    "a session that is gone, and a client that tries and tries": (
        f"{SESSION}{TOOLS}→ GET /mcp\n← 404 Not Found\n→ GET /mcp\n← 404 Not Found",
        "session-unknown",
    ),
    "a revision with dots, of the server": (
        f"{INITIALIZE}{HELLO.replace('2025-11-25', '2024.11.05')}→ notifications/initialized",
        "unknown-revision",
    ),
    "a log message of a server that declares no logging": (
        '· handshake 2025-06-18\n← notifications/message {"level":"info","data":"x"}',
        "undeclared-capability",
    ),
    "an empty list of prompts from a server that declares none": (
        '· handshake 2025-06-18, server: tools\n→ prompts/list 1\n← result 1 {"prompts":[]}',
        "undeclared-capability",
    ),
    "a tool of a server that declares none, which fails": (
        '· handshake 2025-06-18, server: logging\n→ tools/call 1 {"name":"x"}\n← result 1 {"content":[],"isError":true}',
        "undeclared-capability",
    ),
    "resource templates of a server that declares none": (
        (
            "· handshake 2025-06-18, server: tools\n→ resources/templates/list 1\n← result 1 "
            '{"resourceTemplates":[{"uriTemplate":"x://{y}","name":"x"}]}'
        ),
        "served-not-declared",
    ),
    "a change of the tools, of which the server said that it would not tell": (
        "· handshake 2025-06-18, server: tools\n← notifications/tools/list_changed",
        "undeclared-capability",
    ),
    "elicitation under a revision that has none": (
        "· handshake 2024-11-05, client: elicitation\n← elicitation/create 1\n→ error 1 -32601 no",
        "method-not-in-revision",
    ),
    "ping under a revision that has it no longer": (
        "· revision 2026-07-28\n→ ping 1\n← error 1 -32601 no",
        "method-not-in-revision",
    ),
    "another revision in the field than in the handshake": (
        f"{SESSION}→ POST /mcp\n  MCP-Protocol-Version: 2025-06-18\n  tools/list 1\n← 200 OK\n  result 1".replace(
            "→ POST /mcp\n  MCP", "· session none\n→ POST /mcp\n  Mcp-Session-Id: 5f2c\n  MCP"
        ),
        "header-contradicts",
    ),
}


def of_rule(account: str, rule: str) -> list[str]:
    """Give what `rule` finds in an account; other rules may find something too."""
    return [finding.what for finding in transcribe(records(account)).findings if finding.rule == rule]


def test_an_exception_with_its_stack_is_one_finding() -> None:
    account = SHORT % ("get", "Error: no row\\n    at run (/srv/a.js:3:7)", "")
    assert [finding.rule for finding in all_findings(transcribe(records(account)))] == ["unmarked-failure"]


def test_a_log_message_on_stdio_that_nobody_asked_for_is_found() -> None:
    account = '· revision 2026-07-28\n→ tools/call 1 {"name":"a"}\n← notifications/message {"level":"info","data":"x"}\n'
    assert len(of_rule(account, "unasked-log")) == 1


@pytest.mark.parametrize("missing", ["resultType", "ttlMs", "cacheScope"])
def test_a_result_without_what_its_revision_requires_is_not_as_specified(missing: str) -> None:
    result = json.dumps({name: value for name, value in json.loads(GOOD).items() if name != missing})
    findings = all_findings(transcribe(records(f"{REVISED}→ tools/list 1\n← result 1 {result}")))
    assert [(finding.rule, missing in finding.what) for finding in findings] == [("not-as-specified", True)]


def rules_in(account: str) -> set[str]:
    return {finding.rule for finding in transcribe(records(account)).findings}


@pytest.mark.parametrize("account", WELL.values(), ids=list(WELL))
def test_what_is_nearly_a_fault_is_none(account: str) -> None:
    assert {finding.rule for finding in transcribe(records(account)).findings if finding.severity != "note"} == set()


@pytest.mark.parametrize(("account", "rule"), FAULTS.values(), ids=list(FAULTS))
def test_a_fault_is_one_wherever_it_is(account: str, rule: str) -> None:
    assert rules_in(account) == {rule}


@pytest.mark.parametrize("account", ["missing-initialized", "unknown-progress-token", "cancelled-unknown-request"])
def test_where_records_are_missing_nobody_is_blamed_for_what_was_not_seen(account: str) -> None:
    from mcpspy.transcript.findings.registry import RULES

    gap = "· No space left on device: 3 frames, 600 bytes\n"
    assert account not in rules_in(gap + RULES[account].example)


TIMED_OUT = '→ notifications/cancelled {"requestId":1,"reason":"Request timed out"}\n'
EARLIER = '· handshake 2025-11-25, server: tools\n→ ping 9\n→ tools/call 1 {"name":"slow"}\n'

GIVEN_UP = {
    "a server that is silent": (f"{CALL}· 2.2 s later\n{TIMED_OUT}", "nothing else."),
    "a server that answers what comes later": (
        f"{CALL}· 1.0 s later\n→ ping 2\n← result 2\n· 1.2 s later\n{TIMED_OUT}",
        "the later ping (row 4).",
    ),
    "a server that answers only what came earlier": (
        f"{EARLIER}← result 9\n→ ping 2\n· 2.2 s later\n{TIMED_OUT}",
        "1 earlier request.",
    ),
}


@pytest.mark.parametrize(("account", "answered"), GIVEN_UP.values(), ids=list(GIVEN_UP))
def test_a_timeout_says_what_the_server_answered_meanwhile(account: str, answered: str) -> None:
    (finding,) = (finding for finding in transcribe(records(account)).findings if finding.rule == "timed-out")
    assert (finding.severity, finding.culprit) == ("warning", "server")
    assert finding.what == (
        f"The client gave up on tools/call slow after 2.2 s; the server never answered. Meanwhile the server answered {answered}"
    )


def test_a_call_that_timed_out_while_the_server_waited_for_the_client_is_the_clients_fault() -> None:
    account = WELL["a call that waited for the client's own answer"]
    (finding,) = (finding for finding in transcribe(records(account)).findings if finding.rule == "timed-out")
    assert (finding.severity, finding.culprit) == ("note", "client")
    assert finding.what.endswith("Meanwhile the server waited for the client to answer roots/list (row 4).")


def test_a_client_that_never_answers_what_its_call_needs_is_warned() -> None:
    account = WELL["a call that waited for the client's own answer"].partition("→ result 1")[0]
    (finding,) = (finding for finding in transcribe(records(account)).findings if finding.rule == "timed-out")
    assert (finding.severity, finding.culprit) == ("warning", "client")


def test_an_initialize_that_is_cancelled_soon_is_the_clients_fault_and_after_a_timeout_the_servers() -> None:
    accounts = (f"! loading\n{INITIALIZE}· {after} s later\n{GIVE_UP.replace('1', '0')}" for after in ("3.0", "60.0"))
    findings = [transcribe(records(account)).findings for account in accounts]
    assert [[finding.culprit for finding in of_account] for of_account in findings] == [["client"], ["server"]]
    assert findings[0][0].what == (
        "The server had not answered initialize for 3.0 s when the client cancelled it. "
        "The last line that it had written: “loading”"
    )


def test_an_unanswered_request_says_who_left_first_and_what_else_was_answered() -> None:
    account = f"{CALL}· 6.0 s later\n→ ping 2\n← result 2\n→ ping 3\n← result 3\n· the client closes stdin"
    (finding,) = transcribe(records(account)).findings
    assert (finding.severity, finding.culprit) == ("error", "server")
    assert finding.what == (
        "The server never answered tools/call slow: the client left first, after 6.0 s. "
        "Meanwhile the server answered 2 other requests, among them the later ping (row 4)."
    )


def test_one_of_two_answers_to_one_client_is_that_of_another_client_with_the_same_id() -> None:
    account = f'{ALICE}{BOB}tools/call 7 {{"name":"clock"}}\n← 200 OK\n  data: result 7\n\n  data: result 7 {{"content":[]}}\n'
    assert rules_in(f"{account}· the server closes the stream\n← #3 202 Accepted") == {"misdelivered-answer"}


def test_a_request_that_got_the_answer_of_another_is_told_of_by_that_answer_alone() -> None:
    account = f"{ALICE}{BOB}tools/call 9\n← 200 OK\n  result 7"
    assert rules_in(account) == {"misdelivered-answer"}


def test_a_request_whose_answer_went_elsewhere_did_not_time_out() -> None:
    account = f"{ALICE}{BOB}tools/call 9\n← 200 OK\n  data: result 7\n\n  data: result 9\n· the server closes the stream\n"
    cancelled = '· session a11c\n· 59.9 s later\n→ POST /mcp\n  notifications/cancelled {"requestId":7}\n← 202 Accepted'
    assert rules_in(account + cancelled) == {"misdelivered-answer"}


def test_the_row_of_a_misdelivered_answer_says_whose_it_is() -> None:
    account = f"{ALICE}{BOB}tools/call 9\n← 200 OK\n  data: result 7\n\n  data: result 9\n· the server closes the stream\n"
    transcript = transcribe(records(account))
    (unpaired,) = [row for row in transcript.rows if isinstance(row, UnpairedMessage) and row.message.id == "7"]
    (finding,) = [finding for finding in transcript.findings if finding.rule == "misdelivered-answer"]
    assert unpaired_phrase(unpaired, transcript.captures[0]).word == f"answer to row {unpaired.candidates[0]}, misdelivered"
    assert f"in row {unpaired.candidates[0]} (" in finding.what


def test_an_answer_that_every_client_gets_is_misdelivered() -> None:
    answer = 'result 7 {"content":[]}'
    account = f"{ALICE}← 200 OK\n  {answer}\n{BOB}tools/list 8\n← 200 OK\n  data: {answer}\n\n  data: result 8\n"
    assert rules_in(f"{account}· the server closes the stream") == {"misdelivered-answer"}


def test_an_answer_with_an_id_that_another_session_used_up_is_unpaired() -> None:
    account = f"{ALICE}← 200 OK\n  result 7\n{BOB}tools/list 8\n← 200 OK\n  data: result 7 {{}}\n\n  data: result 8\n"
    (what,) = of_rule(
        f"{account}· the server closes the stream".replace("result 7 {}", 'result 7 {"a":1}'), "unpaired-response"
    )
    assert what == "A result has the id 7, which no request had in the same session."


def test_a_session_that_the_client_stops_sending_is_missing_whatever_session_the_refusal_names() -> None:
    refusal = '{"jsonrpc":"2.0","id":"server-error","error":{"code":-32600,"message":"no"}}'
    refusal = f"← 400 Bad Request\n  Mcp-Session-Id: 77aa\n  {refusal}"
    account = f"{SESSION}{TOOLS}· session none\n→ POST /mcp\n  MCP-Protocol-Version: 2025-11-25\n  tools/list 2\n{refusal}"
    assert rules_in(account) == {"session-missing"}


@pytest.mark.parametrize(("ended", "culprit"), [("", "server"), ("· the server closes the stream\n", "client")])
def test_a_refusal_at_an_announced_endpoint_is_the_servers_while_its_stream_is_open(ended: str, culprit: str) -> None:
    stream = "→ GET /sse\n  Accept: text/event-stream\n← 200 OK\n  event: endpoint\n  data: /messages?s=1\n"
    account = f"{stream}{ended}→ POST /messages?s=1\n  tools/list 1\n← 404 Not Found\n  Could not find session"
    findings = transcribe(records(account)).findings
    assert [(finding.rule, finding.culprit) for finding in findings if finding.rule == "wrong-endpoint"] == [
        ("wrong-endpoint", culprit)
    ]


def test_a_refused_origin_is_named_even_where_the_refusal_is_json_rpc() -> None:
    refusal = '{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Invalid Origin"}}'
    account = f"→ POST /mcp\n  Origin: https://app.example\n  tools/list 1\n← 403 Forbidden\n  {refusal}"
    (finding,) = transcribe(records(account)).findings
    assert (finding.rule, finding.culprit) == ("host-refused", "server")
    assert "the origin “https://app.example”" in finding.advice


AGAIN = '→ POST /mcp\n  tools/list 2\n← 200 OK\n  result 2 {"tools":[]}'


@pytest.mark.parametrize(("waited", "rules"), [("20.0", {"early-retry"}), ("30.0", set())])
@pytest.mark.parametrize("date", ["  Date: Wed, 18 Nov 2026 10:00:00 GMT\n", ""], ids=["with its date", "without a date"])
def test_a_client_has_to_wait_until_the_date_that_retry_after_names(waited: str, rules: set[str], date: str) -> None:
    refusal = f"← 429 Too Many Requests\n{date}  Retry-After: Wed, 18 Nov 2026 10:00:30 GMT\n"
    assert rules_in(f"→ POST /mcp\n  tools/list 1\n{refusal}· {waited} s later\n{AGAIN}") == rules


def test_a_scope_that_a_token_lacks_is_named() -> None:
    refusal = "← 403 Forbidden\n  WWW-Authenticate: Bearer scope=files:write, error=insufficient_scope\n"
    (what,) = of_rule(f"→ POST /mcp\n  Authorization: Bearer redacted-aa\n  tools/list 1\n{refusal}", "insufficient-scope")
    assert what.endswith("the server wants the scope “files:write”.")


def test_progress_that_waited_for_a_reader_was_not_bursts() -> None:
    stalled = f"{WAITS}· stdout stalls: 65536 bytes waiting\n· 3.0 s later\n· stdout flows again after 3.0 s\n{LINES}← result 1"
    assert "progress-in-burst" not in rules_in(stalled)


@pytest.mark.parametrize(("open_s", "culprit"), [("0.1", "server"), ("9.0", "client")])
def test_a_server_that_ends_its_stream_at_once_is_to_blame_for_it(open_s: str, culprit: str) -> None:
    account = f"{SESSION}{GET}{SSE}· {open_s} s later\n· the server closes the stream\n· 9.0 s later\n{TOOLS}"
    (finding,) = transcribe(records(account)).findings
    assert (finding.rule, finding.culprit) == ("stream-not-reopened", culprit)


UNKNOWN = "← error 2 -32602 Unknown tool: a"


@pytest.mark.parametrize(
    ("between", "answer", "rules"),
    [
        ("· 1.0 s later\n", UNKNOWN, ["stale-tool-list"]),
        ("· 1.0 s later\n", "← result 2", []),
        ("· 1.0 s later\n", "← error 2 -32603 Disk full", []),
        ("", UNKNOWN, []),
        ('· 1.0 s later\n→ tools/list 3\n← result 3 {"tools":[]}\n', UNKNOWN, []),
    ],
    ids=["gone", "still there", "failed otherwise", "crossed", "listed anew"],
)
def test_a_call_from_a_list_that_the_server_took_back(between: str, answer: str, rules: list[str]) -> None:
    listed = '→ tools/list 1\n← result 1 {"tools":[{"name":"a","inputSchema":{"type":"object"}}]}\n'
    account = (
        f"{HANDSHAKE.replace('tools', 'tools.listChanged')}{listed}← notifications/tools/list_changed\n{between}"
        f'→ tools/call 2 {{"name":"a"}}\n{answer}'
    )
    findings = all_findings(transcribe(records(account)), rules={"stale-tool-list", "unknown-tool"})
    assert [finding.rule for finding in findings] == rules


def tools_listed(identifier: int, *names: str, cursor: str = "", following: str = "") -> str:
    tools = ",".join(f'{{"name":"{name}","inputSchema":{{"type":"object"}}}}' for name in names)
    params = f' {{"cursor":"{cursor}"}}' if cursor else ""
    more = f',"nextCursor":"{following}"' if following else ""
    return f'→ tools/list {identifier}{params}\n← result {identifier} {{"tools":[{tools}]{more}}}\n'


GONE_CALL = '→ tools/call 2 {"name":"a"}\n'
FIRST_LIST = tools_listed(1, "a", "b")


@pytest.mark.parametrize(
    ("account", "rules"),
    [
        (f"{FIRST_LIST}{tools_listed(3, 'b')}· 1.0 s later\n{GONE_CALL}{UNKNOWN}", ["stale-tool-list"]),
        (
            f"{FIRST_LIST}← notifications/tools/list_changed\n{tools_listed(3, 'b')}· 1.0 s later\n{GONE_CALL}{UNKNOWN}",
            ["stale-tool-list"],
        ),
        (
            f"{FIRST_LIST}{tools_listed(3, 'b', following='x')}{tools_listed(4, 'c', cursor='x')}· 1.0 s later\n{GONE_CALL}{UNKNOWN}",
            ["stale-tool-list"],
        ),
        (f"{FIRST_LIST}{tools_listed(3, 'b')}· 1.0 s later\n{GONE_CALL}← result 2", []),
        (f"{FIRST_LIST}{tools_listed(3, 'b')}· 1.0 s later\n{GONE_CALL}← error 2 -32603 Disk full", []),
        (f"{FIRST_LIST}{tools_listed(3, 'b')}{GONE_CALL}{UNKNOWN}", []),
        (f"{FIRST_LIST}{tools_listed(3, 'b')}{tools_listed(4, 'a', 'b')}· 1.0 s later\n{GONE_CALL}{UNKNOWN}", []),
        (f"{FIRST_LIST}{tools_listed(3, 'b', following='x')}· 1.0 s later\n{GONE_CALL}{UNKNOWN}", []),
        (
            f"{FIRST_LIST}{tools_listed(3, 'b', following='x')}{tools_listed(4, 'a', cursor='x')}· 1.0 s later\n{GONE_CALL}{UNKNOWN}",
            [],
        ),
        (f"{FIRST_LIST}{tools_listed(3, 'c', cursor='y')}· 1.0 s later\n{GONE_CALL}{UNKNOWN}", []),
    ],
    ids=[
        "gone", "gone with notice", "gone from all pages", "still answered", "failed otherwise", "crossed", "back again",
        "list not fetched to its end", "on the second page", "a page of an older list",
    ],
)  # fmt: skip
def test_a_call_of_a_tool_that_the_new_list_no_longer_has(account: str, rules: list[str]) -> None:
    findings = all_findings(
        transcribe(records(f"{HANDSHAKE.replace('tools', 'tools.listChanged')}{account}")),
        rules={"stale-tool-list", "unknown-tool"},
    )
    assert [finding.rule for finding in findings] == rules
    assert {finding.culprit for finding in findings} <= {"client"}


@pytest.mark.parametrize(
    ("notice", "severity"),
    [("", "warning"), ("← notifications/prompts/list_changed\n", "note"), ("← notifications/tools/list_changed\n", "warning")],
    ids=["unannounced", "announced", "another list announced"],
)
def test_a_definition_that_changes_is_a_note_if_the_server_announced_it(notice: str, severity: str) -> None:
    text = "Reviews each change, line by line, and reads it."
    listed = '→ prompts/list %d\n← result %d {"prompts":[{"name":"review","description":"%s"}]}\n'
    account = (
        "· handshake 2025-11-25, server: prompts.listChanged tools.listChanged\n"
        f"{listed % (1, 1, text)}{notice}{listed % (2, 2, text.replace('reads', 'sends'))}"
    )
    (finding,) = all_findings(transcribe(records(account)), rules={"offer-redefined"})
    assert finding.severity == severity
    assert "e by line, and reads it.” became “…" in finding.what
    assert "and sends it.”" in finding.what


def test_a_timeout_of_milliseconds_is_the_callers() -> None:
    account = f'{CALL}· 0.005 s later\n{GIVE_UP.strip()[:-1]},"reason":"timed out"}}\n'
    (finding,) = transcribe(records(account)).findings
    assert (finding.rule, finding.severity, finding.culprit) == ("timed-out", "note", "client")
    assert "after 6 ms" in finding.what


def test_tools_whose_schemas_are_lost_are_one_finding() -> None:
    tools = json.dumps([{"name": name, "inputSchema": {"$schema": "x"}} for name in "abcdefg"])
    account = f'· handshake 2025-11-25, server: tools\n→ tools/list 1\n← result 1 {{"tools":{tools}}}'
    (finding,) = all_findings(transcribe(records(account)), rules={"tool-schema-invalid"})
    assert finding.what == "Listed without an inputSchema of the type object: a, b, c, d, e and 2 more."


@pytest.mark.parametrize(
    ("line", "culprit"),
    [
        ("Error: TRACKER_API_KEY environment variable is not set", "configuration"),
        ("ValueError: missing required environment variable DATABASE_URL", "configuration"),
        ("KeyError: 'GITHUB_TOKEN'", "configuration"),
        ("KeyError: 'name'", "server"),
        ("RuntimeError: the index is empty", "server"),
    ],
)
def test_a_server_that_ends_for_want_of_a_setting_is_misconfigured(line: str, culprit: str) -> None:
    (finding,) = transcribe(records(f"→ tools/list 1\n! {line}\n· the server exits 1")).findings
    assert (finding.rule, finding.culprit) == ("server-died", culprit)


def test_a_cancellation_that_names_the_id_in_another_type_is_the_callers_fault() -> None:
    account = CALL + "· 2.0 s later\n" + GIVE_UP.replace("1}", '"1"}') + "· 2.0 s later\n← result 1"
    (finding,) = [finding for finding in transcribe(records(account)).findings if finding.rule == "id-type-mismatch"]
    assert (finding.culprit, finding.blame) == ("client", "The client: both messages are its own.")
