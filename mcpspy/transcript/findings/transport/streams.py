"""Findings about the timing of HTTP responses: heads that come late, events that come all at once, streams that fall silent.

Where a proxy between mcpspy and the server would look the same as the server itself, the culprit is unclear, and that is said.
"""

from collections.abc import Iterator
from typing import Final

from ....records import SERVER
from ...http.head import EVENT_STREAM
from ...http.transaction import Stream, Transaction
from ..facts import CaptureFacts
from ..rule import Family, Hit, Rule, Severity, hit
from ..words import seconds

_STREAMED: Final = (
    '→ POST /mcp\n  tools/call 1 {"name":"count","_meta":{"progressToken":1}}\n← 200 OK\n  Content-Type: text/event-stream\n'
)

_LISTENING: Final = "· HTTP\n· handshake 2025-11-25\n→ GET /mcp\n  Accept: text/event-stream\n"

EVENTS_IN_BURST: Final = Rule(
    name="events-in-burst",
    title="Events delivered all at once",
    family=Family.TRANSPORT,
    severity=Severity.WARNING,
    what="All events of a stream came at the same instant, after a long silence, and among them some that are sent one by one.",
    why="Progress and keep-alives arrive when they are of no use any more; clients time out meanwhile.",
    blame="Unclear: a proxy between mcpspy and the server gathers the response, or the server does not flush.",
    example=(
        f"{_STREAMED}· 20.0 s later\n← : ping\n← : ping\n"
        '← data: notifications/progress {"progressToken":1,"progress":1}\n'
        '← data: notifications/progress {"progressToken":1,"progress":2}\n← data: result 1 {"content":[]}\n'
        "· the server closes the stream"
    ),
    clean=(
        f'{_STREAMED}· 5.0 s later\n← data: notifications/progress {{"progressToken":1,"progress":1}}\n· 5.0 s later\n← : ping\n'
        '· 5.0 s later\n← data: notifications/progress {"progressToken":1,"progress":2}\n← : ping\n'
        '· 5.0 s later\n← data: result 1 {"content":[]}\n· the server closes the stream'
    ),
    fix="Turn buffering off on the way (nginx: proxy_buffering off, or X-Accel-Buffering: no), and flush after each event.",
)

LATE_HEAD: Final = Rule(
    name="late-head",
    title="Response head comes late",
    family=Family.TRANSPORT,
    severity=Severity.WARNING,
    what="The head of a stream of events came only with its first event, long after it was asked for.",
    why="Until the head comes, the client does not know that the stream is open: some wait with all else, some time out.",
    blame="The server, or a proxy between it and mcpspy: the head waited for the body, as where nobody flushes it.",
    example=(f"{_LISTENING}· 15.0 s later\n← 200 OK\n  : ping\n· the client closes the stream"),
    clean=(
        f"{_LISTENING}← 200 OK\n  Content-Type: text/event-stream\n· 15.0 s later\n← : ping\n· the client closes the stream"
    ),
    fix="Send the head at once: flush it, or begin the stream with a comment.",
)

KEEP_ALIVE_STOPPED: Final = Rule(
    name="keep-alive-stopped",
    title="Keep-alives stopped",
    family=Family.TRANSPORT,
    severity=Severity.WARNING,
    what="A stream that was kept alive by regular comments fell silent for several times their interval, and then broke.",
    why="Who sent them was stuck or gone for that long, and nobody noticed before the stream broke.",
    blame="The server, or the way to it: its comments stopped before the stream broke.",
    example=(
        f"{_LISTENING}← 200 OK\n  : ping\n· 15.0 s later\n← : ping\n· 15.0 s later\n← : ping\n"
        "· 100.0 s later\n· the server breaks off the stream, broken"
    ),
    clean=(
        f"{_LISTENING}← 200 OK\n  : ping\n· 15.0 s later\n← : ping\n· 15.0 s later\n← : ping\n"
        "· 10.0 s later\n· the client closes the stream"
    ),
    fix="See what blocked the server then: a long call on the thread that sends, a machine that slept, a network that was gone.",
)

IDLE_STREAM_CUT: Final = Rule(
    name="idle-stream-cut",
    title="Idle stream cut off",
    family=Family.TRANSPORT,
    severity=Severity.WARNING,
    what="A stream without keep-alives broke off after a long silence.",
    why="Proxies and load balancers cut connections on which nothing passes, often after 60 s; the server's messages are lost then.",
    blame="Unclear: the server, or a proxy between it and mcpspy with a limit on silence.",
    example=(
        f"{_LISTENING}← 200 OK\n  Content-Type: text/event-stream\n· 60.0 s later\n· the server breaks off the stream, broken"
    ),
    clean=(f"{_LISTENING}← 200 OK\n  : ping\n· 30.0 s later\n← : ping\n· 30.0 s later\n· the client closes the stream"),
    fix="Send a comment every 15 s, as SDK servers do, or raise the limit on the way.",
)

BODY_WAITS: Final = Rule(
    name="body-waits",
    title="Response body 40 ms late",
    family=Family.TRANSPORT,
    severity=Severity.INFO,
    what="The bodies of small responses come about 40 ms after their heads, time and again.",
    why="Each call takes 40 ms longer than it has to: head and body are written apart, and Nagle's algorithm holds the second back.",
    blame="The server: it writes head and body apart, without TCP_NODELAY.",
    example="\n".join(
        f'→ POST /mcp\n  tools/list {at}\n← 200 OK\n  Content-Type: application/json\n  body 41 ms later: result {at} {{"tools":[]}}'
        for at in (1, 2, 3)
    ),
    clean='→ POST /mcp\n  tools/list 1\n← 200 OK\n  result 1 {"tools":[]}',
    fix="Write head and body in one call, or set TCP_NODELAY.",
)

RULES: Final = (EVENTS_IN_BURST, LATE_HEAD, KEEP_ALIVE_STOPPED, IDLE_STREAM_CUT, BODY_WAITS)

_BURST_NS: Final = 20_000_000
_SILENCE_NS: Final = 2_000_000_000
_IDLE_NS: Final = 25_000_000_000
_LIMITS_S: Final = (30, 60, 90, 100, 120, 180, 240, 300, 350, 600, 900, 3600)
"""After so long without a byte proxies and load balancers cut a connection, as they come; else somebody may have ended the server."""
_ROUND_NS: Final = 1_500_000_000
_INTERVALS: Final = 2.5
_FEW_EVENTS: Final = 3
_NAGLE_NS: Final = range(37_000_000, 60_000_000)
_SMALL_BYTES: Final = 1460
"""What fits into one segment of TCP."""
_OFTEN: Final = 3


def find(facts: CaptureFacts) -> Iterator[Hit]:
    """What the times of the responses tell."""
    waited: list[Transaction] = []
    for one in facts.capture.transactions.values():
        response = one.response
        if response is None or response.injected:
            continue
        if response.opened.framing == "sse" or EVENT_STREAM.encode() in response.opened.head.lower():
            yield from _stream(facts, one, response)
        elif response.first_ns is not None and response.first_ns - response.at_ns in _NAGLE_NS:
            waited += [one] if response.body_bytes < _SMALL_BYTES else []
    if len(waited) >= _OFTEN:
        what = f"{len(waited)} small responses came in two pieces, head and body about 40 ms apart."
        yield _about(BODY_WAITS, facts, waited[0], what, SERVER)


def _stream(facts: CaptureFacts, one: Transaction, response: Stream) -> Iterator[Hit]:
    first_ns, last_ns = response.first_ns, response.last_ns
    if first_ns is None or last_ns is None:
        first_ns = last_ns = response.at_ns
    else:
        silent_ns = first_ns - one.at_ns
        is_burst = response.comments + response.events >= _FEW_EVENTS and last_ns - first_ns <= _BURST_NS
        if is_burst and silent_ns >= _SILENCE_NS and response.comments > 1:
            what = (
                f"{response.events} events and {response.comments} keep-alives came at one instant, after {seconds(silent_ns)}."
            )
            yield _about(EVENTS_IN_BURST, facts, one, what, "unclear")
        if one.method == "GET" and response.at_ns - one.at_ns >= _SILENCE_NS and first_ns - response.at_ns <= _BURST_NS:
            after = seconds(response.at_ns - one.at_ns)
            what = f"The head of the stream of GET {one.target} came after {after}, with its first event."
            yield _about(LATE_HEAD, facts, one, what, SERVER)
    close, closed_ns = response.close, response.closed_ns
    if close is None or closed_ns is None or close.how == "eof" or close.by != SERVER:
        return
    silent_ns = closed_ns - last_ns
    interval_ns = (last_ns - first_ns) / (response.comments - 1) if response.comments >= _FEW_EVENTS else 0
    if interval_ns > _SILENCE_NS and response.comments > response.events:
        if silent_ns > _INTERVALS * interval_ns:
            every = seconds(round(interval_ns))
            what = f"Comments came every {every}, then none for {seconds(silent_ns)}, and the stream of {one.target} broke."
            yield _about(KEEP_ALIVE_STOPPED, facts, one, what, SERVER)
    elif silent_ns >= _IDLE_NS:
        what = f"The stream of {one.method} {one.target} broke off after {seconds(silent_ns)} of silence."
        is_round = any(abs(silent_ns - limit_s * 1_000_000_000) <= _ROUND_NS for limit_s in _LIMITS_S)
        yield _about(IDLE_STREAM_CUT, facts, one, what, "unclear", severity=None if is_round else Severity.INFO)


def _about(
    rule: Rule, facts: CaptureFacts, one: Transaction, what: str, culprit: str, *, severity: Severity | None = None
) -> Hit:
    response = one.response
    assert response is not None
    number, at_ns = response.opened.number, response.closed_ns or response.at_ns
    row = facts.row_of(one)
    return hit(
        rule, at_ns=at_ns, capture=one.capture, number=number, row=row, what=what, culprit=culprit, group=one.target,
        severity=severity,
    )  # fmt: skip
