"""Near misses, which are no faults; and faults in places that the examples do not show."""

import json

import pytest

from mcpspy.transcript.findings.run import all_findings
from mcpspy.transcript.transcribe import transcribe
from tests.findings.account import records

INITIALIZE = '→ initialize 0 {"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"client","version":"1"}}\n'
HELLO = '← result 0 {"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"server","version":"1"}}\n'
SESSION = "· HTTP\n· handshake 2025-11-25, server: tools\n"
TOOLS = '→ POST /mcp\n  tools/list 1\n← 200 OK\n  result 1 {"tools":[]}\n'
CALL = '· handshake 2025-11-25, server: tools\n→ tools/call 1 {"name":"slow"}\n'
GIVE_UP = '→ notifications/cancelled {"requestId":1}\n'
TASK = '← result 1 {"task":{"taskId":"t","status":"working","ttl":60000}}\n'
GET = "→ GET /mcp\n  Accept: text/event-stream\n"
SSE = "← 200 OK\n  Content-Type: text/event-stream\n"
STREAM = "· HTTP\n· handshake 2025-11-25\n→ GET /mcp\n  Accept: text/event-stream\n"

WELL = {
    "a request given up before the round time": f"{CALL}· 59.0 s later\n{GIVE_UP}",
    "a request given up long after the round time": f"{CALL}· 61.0 s later\n{GIVE_UP}",
    "an answer that crossed its cancellation": f"{CALL}← result 1\n{GIVE_UP}",
    "a probe of the modern era before initialize": (
        f'· revision 2026-07-28\n→ server/discover 9\n← error 9 -32601 Method not found\n· revision none\n{INITIALIZE}{HELLO}'
        "→ notifications/initialized\n→ tools/list 1\n← result 1"
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
}  # fmt: skip

LISTEN = '· revision 2026-07-28\n→ subscriptions/listen 1 {"notifications":{"toolsListChanged":true}}\n'
FOR = '{"_meta":{"io.modelcontextprotocol/subscriptionId":%s}}'

REVISED = "· revision 2026-07-28\n"
MODERN = f"{REVISED}→ POST /mcp\n  Mcp-Method: tools/list\n"
LOG_IN = (
    '{"resultType":"input_required","inputRequests":{"q":{"method":"elicitation/create","params":'
    '{"mode":"url","message":"Log in","url":"https://example.com"}}}}'
)
GOOD = '{"resultType":"complete","tools":[],"ttlMs":0,"cacheScope":"public"}'

FAULTS = {
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
    assert {finding.rule for finding in transcribe(records(account)).findings if finding.severity != "info"} == set()


@pytest.mark.parametrize(("account", "rule"), FAULTS.values(), ids=list(FAULTS))
def test_a_fault_is_one_wherever_it_is(account: str, rule: str) -> None:
    assert rules_in(account) == {rule}


@pytest.mark.parametrize("account", ["missing-initialized", "unknown-progress-token", "cancelled-unknown-request"])
def test_where_records_are_missing_nobody_is_blamed_for_what_was_not_seen(account: str) -> None:
    from mcpspy.transcript.findings.registry import RULES

    gap = "· No space left on device: 3 frames, 600 bytes\n"
    assert account not in rules_in(gap + RULES[account].example)
