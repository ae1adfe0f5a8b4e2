"""The rules that findings follow, as data: what each finds, why that is bad, what to do. docs/findings.md is made of it.

A rule is added here and gets its function in `findings`. Names are stable: people silence rules by name.
"""

import re
from dataclasses import dataclass
from typing import Final

from .model import Severity


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One kind of finding. `severity` is the usual one; a finding may be milder where it does no harm."""

    name: str
    severity: Severity
    what: str
    why: str
    fix: str


_RULES: Final = (
    Rule(
        name="stdout-noise",
        severity=Severity.WARNING,
        what="The server writes something to stdout that is no JSON-RPC message.",
        why="On stdio, stdout belongs to the protocol. Some clients log such lines and go on, others close the connection.",
        fix="Send logs, banners and debug prints to stderr.",
    ),
    Rule(
        name="malformed-message",
        severity=Severity.ERROR,
        what="A line that begins like a message is none: broken JSON, several values, or an object without a method or a result.",
        why="Official SDKs drop such a line without an answer, so that a request in it waits forever.",
        fix="Write each message as one JSON object on one line, in one write, ending in a line feed.",
    ),
    Rule(
        name="blank-line",
        severity=Severity.INFO,
        what="An empty line between messages.",
        why="Readers skip it, or log a parse error.",
        fix="End each message with exactly one line feed.",
    ),
    Rule(
        name="flawed-message",
        severity=Severity.WARNING,
        what="A message that could be read, but not as the specification has it.",
        why="Some readers drop it, others take it: it works with one client and not with the next.",
        fix="See the finding; it names the flaw.",
    ),
    Rule(
        name="unanswered-request",
        severity=Severity.ERROR,
        what="A request that was never answered and not cancelled.",
        why="Who asked waits until a timeout of its own.",
        fix="Answer every request, with an error if need be.",
    ),
    Rule(
        name="unpaired-response",
        severity=Severity.WARNING,
        what="A response to a request that was never made.",
        why="Readers drop it; the request it was meant for stays unanswered.",
        fix="Answer with the id of the request, exactly as it came.",
    ),
    Rule(
        name="duplicate-response",
        severity=Severity.WARNING,
        what="A request that was answered more than once.",
        why="Readers take the first answer and drop the others; JSON-RPC has no partial results.",
        fix="Answer once; report what comes before the result as progress notifications.",
    ),
    Rule(
        name="id-type-mismatch",
        severity=Severity.WARNING,
        what='A response whose id is spelled otherwise than the request\'s: "7" for 7, 7.0 for 7.',
        why="Ids are equal only if type and value are. Official SDKs are lenient with some spellings, other clients wait forever.",
        fix="Send the id back as it came, without converting it.",
    ),
    Rule(
        name="server-died",
        severity=Severity.ERROR,
        what="The server's process ended while the client was there, with calls pending or with a failure.",
        why="The pending calls stay unanswered, and the client has no server any more.",
        fix="Read the server's last lines on stderr; run its command by itself.",
    ),
    Rule(
        name="server-not-started",
        severity=Severity.ERROR,
        what="The server's command could not be started.",
        why="The client sees a server that is gone at once.",
        fix="Check the command, its path and its permissions: clients start servers with a PATH of their own.",
    ),
    Rule(
        name="reader-stalled",
        severity=Severity.WARNING,
        what="One side stopped reading for more than a second while the other was writing.",
        why="Who writes is blocked, and with it often everything else it does.",
        fix="Read and handle messages in different tasks, so that a long call does not stop the reading.",
    ),
    Rule(
        name="half-line",
        severity=Severity.WARNING,
        what="The beginning of a line came, and for more than five seconds not its end.",
        why="A message is not read before its line feed: to the reader it has not come.",
        fix="Write the line feed with the message, and flush.",
    ),
    Rule(
        name="upstream-failed",
        severity=Severity.ERROR,
        what="mcpspy could not reach the server, or got no answer from it, and told the client so with 502 or 504.",
        why="The client sees an HTTP error that the server did not send.",
        fix="See whether the server runs, and whether its URL is right.",
    ),
    Rule(
        name="request-refused",
        severity=Severity.WARNING,
        what="mcpspy refused a request before it reached the server: it names another host or origin, or is no sound HTTP.",
        why="The server never saw it. Without the check any web page could reach a server that trusts this machine.",
        fix="Give the client the URL that mcpspy printed; see --allowed-host for others.",
    ),
    Rule(
        name="accepted-request",
        severity=Severity.ERROR,
        what="The server answered a request with 202 Accepted, which is for notifications, and nothing more came.",
        why="The client waits until a timeout of its own: after 202 it expects no answer.",
        fix="Answer a request with JSON or with a stream of events.",
    ),
    Rule(
        name="status-contradicts",
        severity=Severity.WARNING,
        what="A result came with an HTTP status of 400 or more.",
        why="Clients look at the status first, and take the call for failed.",
        fix="Answer with 200 what went well.",
    ),
    Rule(
        name="header-contradicts",
        severity=Severity.ERROR,
        what="A header field says something else than the message in the body: Mcp-Method, Mcp-Name or MCP-Protocol-Version.",
        why="Servers of the revision 2026-07-28 refuse such a request with the error -32020.",
        fix="Make the fields from the message that is sent.",
    ),
    Rule(
        name="foreign-endpoint",
        severity=Severity.ERROR,
        what="The endpoint event of HTTP+SSE names another origin than the URL of the stream.",
        why="SDK clients refuse it, and the Python one then waits forever: localhost and 127.0.0.1 are two origins.",
        fix="Announce a path without scheme and host: /messages?session_id=….",
    ),
    Rule(
        name="endpoint-dialect",
        severity=Severity.ERROR,
        what="The endpoint event of HTTP+SSE holds JSON where a URI should stand alone.",
        why="SDK clients take all of it for the URI, and POST to nowhere.",
        fix="Send the URI alone as the data of the event.",
    ),
    Rule(
        name="ambiguous-stream",
        severity=Severity.WARNING,
        what="Several streams are open, and what is POSTed could be answered on any: they announced no endpoint, or the same one.",
        why="Ids of two clients are equal more often than not; an answer may be taken for another client's.",
        fix="Announce an endpoint of its own on each stream, with a session in its query.",
    ),
    Rule(
        name="done-event",
        severity=Severity.INFO,
        what="An event with [DONE], the end mark of chat completions.",
        why="It is no JSON; strict clients log an error.",
        fix="End the stream, and send nothing.",
    ),
    Rule(
        name="dpop-proof",
        severity=Severity.WARNING,
        what="The client proves that it holds a key, by DPoP, for the URL that it knows: mcpspy's.",
        why="The server checks the proof against its own URL and refuses it. A reverse proxy cannot mend that.",
        fix="Turn DPoP off to debug, or give the server a token: --header 'Authorization: Bearer …'.",
    ),
    Rule(
        name="capture-incomplete",
        severity=Severity.INFO,
        what="The capture has no end: mcpspy was killed, or is still recording.",
        why="What came after its last record is unknown; nothing before it is missing.",
        fix="Nothing, unless it keeps happening: clients kill servers that do not end in time.",
    ),
    Rule(
        name="capture-damaged",
        severity=Severity.WARNING,
        what="Lines of the capture could not be read, or are missing.",
        why="Messages may be missing here, so that findings about answers are left out.",
        fix="mcpspy verify says what was lost, and --repair copies what is sound.",
    ),
    Rule(
        name="capture-edited",
        severity=Severity.INFO,
        what="Lines of the capture have no checksum: somebody edited them.",
        why="What they say is not what was recorded.",
        fix="Nothing, if that was you.",
    ),
    Rule(
        name="recording-gap",
        severity=Severity.WARNING,
        what="Recording failed for a while; traffic went on unrecorded.",
        why="Messages are missing here, so that findings about answers are left out.",
        fix="Make room on the disk, or keep captures elsewhere: MCPSPY_HOME, or --capture FILE.",
    ),
)

RULES: Final = {rule.name: rule for rule in _RULES}


@dataclass(frozen=True, slots=True, kw_only=True)
class Flaw:
    """One flaw of `Message.flaws`, in words, and what to do."""

    severity: Severity
    what: str
    fix: str


FLAWS: Final = {
    "no-jsonrpc": Flaw(
        severity=Severity.WARNING,
        what='no "jsonrpc": "2.0"',
        fix='Put "jsonrpc": "2.0" in every message: SDKs drop one without.',
    ),
    "jsonrpc-version": Flaw(
        severity=Severity.WARNING, what='"jsonrpc" is not "2.0"', fix='Write "jsonrpc": "2.0", a string, in every message.'
    ),
    "null-id": Flaw(
        severity=Severity.WARNING,
        what="its id is null",
        fix="Give a request an id that is a string or an integer, a notification none.",
    ),
    "fractional-id": Flaw(
        severity=Severity.WARNING, what="its id is no integer", fix="Use strings or integers: MCP allows no other ids."
    ),
    "ambiguous": Flaw(
        severity=Severity.WARNING,
        what="it has members of two kinds of messages",
        fix="Send either method, or result, or error; leave out the others instead of sending null.",
    ),
    "id-in-use": Flaw(
        severity=Severity.ERROR,
        what="its id is that of a request that waits for its answer",
        fix="Give every request of a session an id of its own.",
    ),
    "bom": Flaw(
        severity=Severity.WARNING, what="it begins with a byte order mark", fix="Write UTF-8 without a byte order mark."
    ),
    "invalid-utf-8": Flaw(
        severity=Severity.WARNING, what="it is not valid UTF-8", fix="Encode messages as UTF-8; readers replace what is not."
    ),
    "nan": Flaw(
        severity=Severity.WARNING,
        what="NaN or an infinity stands for a number",
        fix="JSON has no such numbers, and JavaScript drops the message: send null or a string.",
    ),
    "lone-surrogate": Flaw(
        severity=Severity.WARNING,
        what="a string has half of a surrogate pair",
        fix="Do not cut strings within a character: strict readers drop the message.",
    ),
    "crlf": Flaw(severity=Severity.INFO, what="its line ends in CR LF", fix="End lines with LF alone."),
    "no-final-newline": Flaw(
        severity=Severity.WARNING,
        what="its line, the last one, has no line feed",
        fix="End every message with a line feed: some readers drop one without.",
    ),
}

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
