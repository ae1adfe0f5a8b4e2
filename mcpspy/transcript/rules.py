"""The rules that findings follow, as data: what each finds, why that is bad, what to do.

docs/findings.md is made of them (`views.rules_page`). A rule is added here and gets its function in `findings`. Names are
stable: people silence rules by name.
"""

import re
from dataclasses import dataclass
from typing import Final

from .model import Severity


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One kind of finding. `severity` is the usual one; a finding may be milder where it does no harm.

    `example` has a line for each thing that happens, in order: `→` is from the client, `←` from the server, `·` anything else.
    """

    name: str
    severity: Severity
    what: str
    why: str
    example: str
    fix: str


_RULES: Final = (
    Rule(
        name="stdout-noise",
        severity=Severity.WARNING,
        what="The server writes something to stdout that is no JSON-RPC message.",
        why="On stdio, stdout belongs to the protocol. Some clients log such lines and go on, others close the connection.",
        example="← Weather server running on stdio",
        fix="Send logs, banners and debug prints to stderr.",
    ),
    Rule(
        name="malformed-message",
        severity=Severity.ERROR,
        what="A line that begins like a message is none: broken JSON, several values, or an object without a method or a result.",
        why="Official SDKs drop such a line without an answer, so that a request in it waits forever.",
        example='← {"jsonrpc":"2.0","id":1,"result":{"tools":[}}',
        fix="Write each message as one JSON object on one line, in one write, ending in a line feed.",
    ),
    Rule(
        name="blank-line",
        severity=Severity.INFO,
        what="An empty line between messages.",
        why="Readers skip it, or log a parse error.",
        example=('← {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}\n←'),
        fix="End each message with exactly one line feed.",
    ),
    Rule(
        name="flawed-message",
        severity=Severity.WARNING,
        what="A message that could be read, but not as the specification has it.",
        why="Some readers drop it, others take it: it works with one client and not with the next.",
        example=('→ {"id":1,"method":"tools/list"}\n← {"jsonrpc":"2.0","id":1,"result":{"tools":[]}}'),
        fix="See the finding; it names the flaw.",
    ),
    Rule(
        name="unanswered-request",
        severity=Severity.ERROR,
        what="A request that was never answered and not cancelled.",
        why="Who asked waits until a timeout of its own.",
        example=('→ {"jsonrpc":"2.0","id":1,"method":"tools/list"}\n· the client closed stdin, 30 s later'),
        fix="Answer every request, with an error if need be.",
    ),
    Rule(
        name="unpaired-response",
        severity=Severity.WARNING,
        what="A response to a request that was never made.",
        why="Readers drop it; the request it was meant for stays unanswered.",
        example='← {"jsonrpc":"2.0","id":7,"result":{}}',
        fix="Answer with the id of the request, exactly as it came.",
    ),
    Rule(
        name="duplicate-response",
        severity=Severity.WARNING,
        what="A request that was answered more than once.",
        why="Readers take the first answer and drop the others; JSON-RPC has no partial results.",
        example=(
            '→ {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"count"}}\n'
            '← {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"1"}]}}\n'
            '← {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"2"}]}}'
        ),
        fix="Answer once; report what comes before the result as progress notifications.",
    ),
    Rule(
        name="id-type-mismatch",
        severity=Severity.WARNING,
        what='A response whose id is spelled otherwise than the request\'s: "7" for 7, 7.0 for 7.',
        why="Ids are equal only if type and value are. Official SDKs are lenient with some spellings, other clients wait forever.",
        example=('→ {"jsonrpc":"2.0","id":7,"method":"tools/list"}\n← {"jsonrpc":"2.0","id":"7","result":{"tools":[]}}'),
        fix="Send the id back as it came, without converting it.",
    ),
    Rule(
        name="server-died",
        severity=Severity.ERROR,
        what="The server's process ended while the client was there, with calls pending or with a failure.",
        why="The pending calls stay unanswered, and the client has no server any more.",
        example=('→ {"jsonrpc":"2.0","id":1,"method":"tools/list"}\n· the server exited 1'),
        fix="Read the server's last lines on stderr; run its command by itself.",
    ),
    Rule(
        name="server-not-started",
        severity=Severity.ERROR,
        what="The server's command could not be started.",
        why="The client sees a server that is gone at once.",
        example="· mcpspy: uvx: command not found",
        fix="Check the command, its path and its permissions: clients start servers with a PATH of their own.",
    ),
    Rule(
        name="reader-stalled",
        severity=Severity.WARNING,
        what="One side stopped reading for more than a second while the other was writing.",
        why="Who writes is blocked, and with it often everything else it does.",
        example="· stdin: 65,536 bytes have waited for 1 s",
        fix="Read and handle messages in different tasks, so that a long call does not stop the reading.",
    ),
    Rule(
        name="half-line",
        severity=Severity.WARNING,
        what="The beginning of a line, or of an event of SSE, came, and for more than five seconds not its end.",
        why="A message is not read before its line feed, an event not before its empty line: to the reader it has not come.",
        example='← {"jsonrpc":"2.0","id":1,"result":{"tools":[]}}   (without its line feed)',
        fix="Write the end with the message, and flush.",
    ),
    Rule(
        name="upstream-failed",
        severity=Severity.ERROR,
        what="mcpspy could not reach the server, or got no answer from it, and told the client so with 502 or 504.",
        why="The client sees an HTTP error that the server did not send.",
        example=("→ POST /mcp\n← 502 Bad Gateway   (by mcpspy)"),
        fix="See whether the server runs, and whether its URL is right.",
    ),
    Rule(
        name="request-refused",
        severity=Severity.WARNING,
        what="mcpspy refused a request before it reached the server: it names another host or origin, or is no sound HTTP.",
        why="The server never saw it. Without the check any web page could reach a server that trusts this machine.",
        example=("→ POST /mcp\n  Host: evil.example\n← 421 Misdirected Request   (by mcpspy)"),
        fix="Give the client the URL that mcpspy printed; see --allowed-host for others.",
    ),
    Rule(
        name="accepted-request",
        severity=Severity.ERROR,
        what="The server answered a request with 202 Accepted, which is for notifications, and nothing more came.",
        why="The client waits until a timeout of its own: after 202 it expects no answer.",
        example=('→ POST /mcp\n  {"jsonrpc":"2.0","id":1,"method":"tools/list"}\n← 202 Accepted'),
        fix="Answer a request with JSON or with a stream of events.",
    ),
    Rule(
        name="status-contradicts",
        severity=Severity.WARNING,
        what="A result came with an HTTP status of 400 or more.",
        why="Clients look at the status first, and take the call for failed.",
        example=(
            "→ POST /mcp\n"
            '  {"jsonrpc":"2.0","id":1,"method":"tools/list"}\n'
            "← 500 Internal Server Error\n"
            '  {"jsonrpc":"2.0","id":1,"result":{"tools":[]}}'
        ),
        fix="Answer with 200 what went well.",
    ),
    Rule(
        name="header-contradicts",
        severity=Severity.ERROR,
        what="A header field says something else than the message in the body: Mcp-Method, Mcp-Name or MCP-Protocol-Version.",
        why="Servers of the revision 2026-07-28 refuse such a request with the error -32020.",
        example=(
            "→ POST /mcp\n"
            "  Mcp-Method: tools/list\n"
            '  {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"forecast"}}'
        ),
        fix="Make the fields from the message that is sent.",
    ),
    Rule(
        name="foreign-endpoint",
        severity=Severity.ERROR,
        what="The endpoint event of HTTP+SSE names another origin than the URL of the stream.",
        why="SDK clients refuse it, and the Python one then waits forever: localhost and 127.0.0.1 are two origins.",
        example=("→ GET http://127.0.0.1:3001/sse\n← event: endpoint\n  data: http://localhost:3001/messages?session_id=5f2c"),
        fix="Announce a path without scheme and host: /messages?session_id=….",
    ),
    Rule(
        name="endpoint-dialect",
        severity=Severity.ERROR,
        what="The endpoint event of HTTP+SSE holds JSON where a URI should stand alone.",
        why="SDK clients take all of it for the URI, and POST to nowhere.",
        example=('→ GET /sse\n← event: endpoint\n  data: {"uri":"/messages?session_id=5f2c"}'),
        fix="Send the URI alone as the data of the event.",
    ),
    Rule(
        name="ambiguous-stream",
        severity=Severity.WARNING,
        what="Several streams are open, and what is POSTed could be answered on any: they announced no endpoint, or the same one.",
        why="Ids of two clients are equal more often than not; an answer may be taken for another client's.",
        example=('→ GET /sse\n→ GET /sse\n→ POST /messages\n  {"jsonrpc":"2.0","id":1,"method":"tools/list"}'),
        fix="Announce an endpoint of its own on each stream, with a session in its query.",
    ),
    Rule(
        name="done-event",
        severity=Severity.INFO,
        what="An event with [DONE], the end mark of chat completions.",
        why="It is no JSON; strict clients log an error.",
        example=('← data: {"jsonrpc":"2.0","id":1,"result":{}}\n← data: [DONE]'),
        fix="End the stream, and send nothing.",
    ),
    Rule(
        name="dpop-proof",
        severity=Severity.WARNING,
        what="The client proves that it holds a key, by DPoP, for the URL that it knows: mcpspy's.",
        why="The server checks the proof against its own URL and refuses it. A reverse proxy cannot mend that.",
        example=("→ POST /mcp\n  DPoP: eyJ0eXAiOiJkcG9wK2p3dCJ9…"),
        fix="Turn DPoP off to debug, or give the server a token: --header 'Authorization: Bearer …'.",
    ),
    Rule(
        name="capture-incomplete",
        severity=Severity.INFO,
        what="The capture has no end: mcpspy was killed, or is still recording.",
        why="What came after its last record is unknown; nothing before it is missing.",
        example="· the last line of the capture is no end record",
        fix="Nothing, unless it keeps happening: clients kill servers that do not end in time.",
    ),
    Rule(
        name="capture-damaged",
        severity=Severity.WARNING,
        what="Lines of the capture could not be read, or are missing.",
        why="Messages may be missing here, so that findings about answers are left out.",
        example="· line 7 of the capture does not match its CRC",
        fix="mcpspy verify says what was lost, and --repair copies what is sound.",
    ),
    Rule(
        name="capture-edited",
        severity=Severity.INFO,
        what="Lines of the capture have no checksum: somebody edited them.",
        why="What they say is not what was recorded.",
        example="· line 7 of the capture has no CRC",
        fix="Nothing, if that was you.",
    ),
    Rule(
        name="recording-gap",
        severity=Severity.WARNING,
        what="Recording failed for a while; traffic went on unrecorded.",
        why="Messages are missing here, so that findings about answers are left out.",
        example="· No space left on device: 120 frames, 96 kB",
        fix="Make room on the disk, or keep captures elsewhere: MCPSPY_HOME, or --capture FILE.",
    ),
)

RULES: Final = {rule.name: rule for rule in _RULES}


NOISE: Final = (
    (re.compile(rb"\[dotenv@"), "the banner of dotenv"),
    (re.compile(rb"npm (warn|notice|error|info)|> \S+@\S+ |added \d+ packages", re.IGNORECASE), "npm"),
    (
        re.compile(rb"(Installed|Resolved|Prepared|Audited) \d+ packages?|Requirement already|Collecting \S"),
        "a package installer",
    ),
    (re.compile(rb"Debugger (listening|attached)|For help, see: https://nodejs"), "the debugger of Node.js"),
    (re.compile(rb"Traceback \(most recent call last\)|  File \"|\s+at .+:\d+:\d+"), "a stack trace"),
    (re.compile(rb"\W{0,3}(TRACE|DEBUG|INFO|WARN|WARNING|ERROR|CRITICAL|FATAL)\b", re.IGNORECASE), "a logger"),
    (re.compile(rb"\W{0,3}\d{4}-\d\d-\d\d[T ]"), "a logger"),
    (re.compile(rb"(Content-Length|Content-Type): ", re.IGNORECASE), "the framing of the Language Server Protocol"),
    (re.compile(rb"HTTP/\d|(GET|POST) /"), "HTTP"),
    (re.compile(rb".{0,80}\b(listening|running|started|starting|ready)\b", re.IGNORECASE), "a start-up message"),
)
"""How a line of noise begins, and where such lines usually come from. The first that fits counts."""


def noise_source(line: bytes) -> str:
    """Where a line that is no message probably comes from."""
    return next((source for pattern, source in NOISE if pattern.match(line, 0, 300)), "a print to stdout")
