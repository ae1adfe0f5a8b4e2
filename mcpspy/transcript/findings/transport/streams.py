"""Findings about the timing of HTTP responses: heads that come late, events that come all at once, streams that fall silent.

Where a proxy between mcpspy and the server would look the same as the server itself, the culprit is unclear.
"""

from collections.abc import Iterator
from typing import Final

from ....records import SERVER
from ...http.head import EVENT_STREAM
from ...http.transaction import Stream, Transaction
from ..facts import CaptureFacts
from ..hits import hit_on_stream
from ..rule import Hit, Rule, Severity, transport_rule
from ..words import seconds

_STREAMED: Final = (
    '→ POST /mcp\n  tools/call 1 {"name":"count","_meta":{"progressToken":1}}\n← 200 OK\n  Content-Type: text/event-stream\n'
)

_LISTENING: Final = "· HTTP\n· handshake 2025-11-25\n→ GET /mcp\n  Accept: text/event-stream\n"

EVENTS_IN_BURST: Final = transport_rule(
    name="events-in-burst",
    title="Events delivered all at once",
    what="All events of a stream came at one instant after a long silence, though some are sent one by one.",
    why="Progress and keep-alives come too late to be of use, and clients time out meanwhile.",
    blame="Unclear: a proxy between mcpspy and the server collects the response, or the server does not flush.",
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
    advice="Turn buffering off on the way (nginx: proxy_buffering off, or X-Accel-Buffering: no), and flush after each event.",
)

LATE_HEAD: Final = transport_rule(
    name="late-head",
    title="Response head comes late",
    what="The head of a stream of events came only with its first event, long after the request.",
    why="Without the head the client does not know that the stream is open, and waits or times out.",
    blame="The server, or a proxy before it: it held the head back until there was a body.",
    example=(f"{_LISTENING}· 15.0 s later\n← 200 OK\n  : ping\n· the client closes the stream"),
    clean=(
        f"{_LISTENING}← 200 OK\n  Content-Type: text/event-stream\n· 15.0 s later\n← : ping\n· the client closes the stream"
    ),
    advice="Flush the head at once, or begin the stream with a comment.",
)

KEEP_ALIVE_STOPPED: Final = transport_rule(
    name="keep-alive-stopped",
    title="Keep-alives stopped",
    what="A stream with regular comments fell silent for several intervals, and then broke.",
    why="The sender was stuck or gone for that long, and nobody noticed.",
    blame="The server, or the network to it: its comments stopped before the stream broke.",
    example=(
        f"{_LISTENING}← 200 OK\n  : ping\n· 15.0 s later\n← : ping\n· 15.0 s later\n← : ping\n"
        "· 100.0 s later\n· the server breaks off the stream, broken"
    ),
    clean=(
        f"{_LISTENING}← 200 OK\n  : ping\n· 15.0 s later\n← : ping\n· 15.0 s later\n← : ping\n"
        "· 10.0 s later\n· the client closes the stream"
    ),
    advice="Find out what blocked the server: a long call in the sending thread, a sleeping machine, a lost network.",
)

IDLE_STREAM_CUT: Final = transport_rule(
    name="idle-stream-cut",
    title="Idle stream cut off",
    what="A stream without keep-alives broke off after a long silence.",
    why="Proxies and load balancers cut idle connections, often after 60 s, and later messages are lost.",
    blame="Unclear: the server, or a proxy before it with an idle timeout.",
    example=(
        f"{_LISTENING}← 200 OK\n  Content-Type: text/event-stream\n· 60.0 s later\n· the server breaks off the stream, broken"
    ),
    clean=(f"{_LISTENING}← 200 OK\n  : ping\n· 30.0 s later\n← : ping\n· 30.0 s later\n· the client closes the stream"),
    advice="Send a comment every 15 s, as SDK servers do, or raise the idle timeout.",
)

BODY_WAITS: Final = transport_rule(
    name="body-waits",
    title="Response body 40 ms late",
    severity=Severity.NOTE,
    what="The bodies of small responses come about 40 ms after their heads, again and again.",
    why="Each call takes 40 ms too long: Nagle's algorithm holds the body back until the head is acknowledged.",
    blame="The server: it writes head and body separately, without TCP_NODELAY.",
    example="\n".join(
        f'→ POST /mcp\n  tools/list {at}\n← 200 OK\n  Content-Type: application/json\n  body 41 ms later: result {at} {{"tools":[]}}'
        for at in (1, 2, 3)
    ),
    clean='→ POST /mcp\n  tools/list 1\n← 200 OK\n  result 1 {"tools":[]}',
    advice="Write head and body in one call, or set TCP_NODELAY.",
)

RULES: Final = (EVENTS_IN_BURST, LATE_HEAD, KEEP_ALIVE_STOPPED, IDLE_STREAM_CUT, BODY_WAITS)

_BURST_NS: Final = 20_000_000
_SILENCE_NS: Final = 2_000_000_000
_IDLE_NS: Final = 25_000_000_000
_LIMITS_S: Final = (30, 60, 90, 100, 120, 180, 240, 300, 350, 600, 900, 3600)
"""Usual idle timeouts of proxies and load balancers. A stream that broke off at another time may have ended with the server."""
_ROUND_NS: Final = 1_500_000_000
_INTERVALS: Final = 2.5
_FEW_EVENTS: Final = 3
_NAGLE_NS: Final = range(37_000_000, 60_000_000)
_SMALL_BYTES: Final = 1460
"""The size of one segment of TCP."""
_OFTEN: Final = 3


def find(facts: CaptureFacts) -> Iterator[Hit]:
    """Find faults in the times of responses."""
    waited: list[tuple[Transaction, Stream]] = []
    for transaction in facts.capture.transactions.values():
        response = transaction.response
        if response is None or response.injected:
            continue
        if response.opened.framing == "sse" or EVENT_STREAM.encode() in response.opened.head.lower():
            yield from _beginning(facts, transaction, response)
            yield from _break_off(facts, transaction, response)
        elif response.first_ns is not None and response.first_ns - response.at_ns in _NAGLE_NS:
            waited += [(transaction, response)] if response.body_bytes < _SMALL_BYTES else []
    if len(waited) >= _OFTEN:
        what = f"{len(waited)} small responses came in two pieces, head and body about 40 ms apart."
        yield _hit(BODY_WAITS, facts, *waited[0], what, SERVER)


def _beginning(facts: CaptureFacts, transaction: Transaction, response: Stream) -> Iterator[Hit]:
    """Find events that came all at once, and a head that came only with the first event."""
    first_ns, last_ns = response.first_ns, response.last_ns
    if first_ns is None or last_ns is None:
        return
    silent_ns = first_ns - transaction.at_ns
    is_burst = response.comments + response.events >= _FEW_EVENTS and last_ns - first_ns <= _BURST_NS
    if is_burst and silent_ns >= _SILENCE_NS and response.comments > 1:
        what = f"{response.events} events and {response.comments} keep-alives came at one instant, after {seconds(silent_ns)}."
        yield _hit(EVENTS_IN_BURST, facts, transaction, response, what, "unclear")
    head_ns = response.at_ns - transaction.at_ns
    if transaction.method == "GET" and head_ns >= _SILENCE_NS and first_ns - response.at_ns <= _BURST_NS:
        what = f"The response head of GET {transaction.target} came after {seconds(head_ns)}, together with its first event."
        yield _hit(LATE_HEAD, facts, transaction, response, what, SERVER)


def _break_off(facts: CaptureFacts, transaction: Transaction, response: Stream) -> Iterator[Hit]:
    """Find a stream that broke off after its keep-alives stopped, or after a silence without any."""
    close, closed_ns = response.close, response.closed_ns
    if close is None or closed_ns is None or close.how == "eof" or close.by != SERVER:
        return
    first_ns, last_ns = response.first_ns, response.last_ns
    if first_ns is None or last_ns is None:
        first_ns = last_ns = response.at_ns
    silent_ns = closed_ns - last_ns
    interval_ns = (last_ns - first_ns) / (response.comments - 1) if response.comments >= _FEW_EVENTS else 0
    name = f"{transaction.method} {transaction.target}"
    if interval_ns > _SILENCE_NS and response.comments > response.events:
        if silent_ns > _INTERVALS * interval_ns:
            every = seconds(round(interval_ns))
            what = f"On the stream of {name} comments came every {every}, then none for {seconds(silent_ns)}, and it broke off."
            yield _hit(KEEP_ALIVE_STOPPED, facts, transaction, response, what, SERVER)
    elif silent_ns >= _IDLE_NS:
        what = f"The stream of {name} broke off after {seconds(silent_ns)} of silence."
        is_limit = any(abs(silent_ns - limit_s * 1_000_000_000) <= _ROUND_NS for limit_s in _LIMITS_S)
        yield _hit(IDLE_STREAM_CUT, facts, transaction, response, what, "unclear", severity=None if is_limit else Severity.NOTE)


def _hit(
    rule: Rule,
    facts: CaptureFacts,
    transaction: Transaction,
    response: Stream,
    what: str,
    culprit: str,
    *,
    severity: Severity | None = None,
) -> Hit:
    at_ns = response.closed_ns or response.at_ns
    return hit_on_stream(
        rule, facts, transaction, response, what, culprit, at_ns=at_ns, group=transaction.target, severity=severity
    )
