"""Findings about the timing of HTTP responses: heads that come late, events that come all at once, streams that fall silent.

Where a proxy between mcpspy and the server would look the same as the server itself, the culprit is unclear.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import Final

from ....records import CLIENT, SERVER
from ...http.head import EVENT_STREAM
from ...http.transaction import Stream, Transaction
from ...model import HTTP_ERRORS, HTTP_FAILURES
from ..facts import CaptureFacts
from ..gateway_signs import gateway_field
from ..hits import hit_on_stream
from ..rule import Hit, Rule, Severity, transport_rule
from ..words import seconds
from .server_exits import PATIENCE_NS
from .sessions import asks_for_stream

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
    what=(
        "The head of a stream of events came long after the request, with its first event, or not at all, though other requests "
        "were answered."
    ),
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

_AGAIN: Final = "→ GET /mcp\n  Accept: text/event-stream\n← 200 OK\n  Content-Type: text/event-stream\n"
_OPENED: Final = f"{_LISTENING}← 200 OK\n  Content-Type: text/event-stream\n"
_LATER: Final = "→ POST /mcp\n  ping 1\n← 200 OK\n  result 1"

STREAM_NOT_REOPENED: Final = transport_rule(
    name="stream-not-reopened",
    title="Server stream ended and not opened again",
    what="The server ended the stream that a client opened with GET, and the client went on without opening another.",
    why="Requests and notifications that the server sends by itself, such as list_changed, do not reach the client any more.",
    blame="The client: a server may end the stream at any time, and a client that wants its messages has to open it again.",
    example=f"{_OPENED}· 10.0 s later\n· the server closes the stream\n· 8.0 s later\n{_LATER}",
    clean=f"{_OPENED}· 10.0 s later\n· the server closes the stream\n· 1.0 s later\n{_AGAIN}· 8.0 s later\n{_LATER}",
    advice="Open the stream again when it ends, after the time that its retry field names; keep it open on the server's side.",
)

RULES: Final = (EVENTS_IN_BURST, LATE_HEAD, KEEP_ALIVE_STOPPED, IDLE_STREAM_CUT, STREAM_NOT_REOPENED, BODY_WAITS)

_BURST_NS: Final = 20_000_000
_SILENCE_NS: Final = 2_000_000_000
"""Events after so long a silence may have waited in a buffer on the way."""
_IDLE_NS: Final = 25_000_000_000
_LIMITS_S: Final = (30, 60, 90, 100, 120, 180, 240, 300, 350, 600, 900, 3600)
"""Usual idle timeouts of proxies and load balancers. A stream that broke off at another time may have ended with the server."""
_ROUND_NS: Final = 1_500_000_000
_INTERVALS: Final = 2.5
_FEW_EVENTS: Final = 3
_FEW_COMMENTS: Final = 2
_NAGLE_NS: Final = range(37_000_000, 60_000_000)
"""A body this long after its head may have waited for an acknowledgement: Nagle's algorithm with a delayed one takes 40 ms."""
_SMALL_BYTES: Final = 1460
"""The size of one segment of TCP."""
_OFTEN: Final = 3


def find(facts: CaptureFacts) -> Iterator[Hit]:
    """Find faults in the times of responses."""
    yield from _unopened(facts)
    yield from _not_reopened(facts)
    waited: list[tuple[Transaction, Stream]] = []
    missed_ns = _missed_ns(facts)
    for transaction in facts.capture.transactions.values():
        response = transaction.response
        if response is None or response.injected:
            continue
        if response.framing == "sse" or EVENT_STREAM.encode() in response.raw_head.lower():
            yield from _beginning(facts, transaction, response)
            yield from _break_off(facts, transaction, response, missed_ns.get(transaction.number, 0))
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
    if came_at_once(transaction, response):
        silent = seconds(first_ns - transaction.at_ns)
        keep_alives = f" and {response.comments} keep-alives" if response.comments else ""
        what = f"{response.events} events{keep_alives} came at one instant, after {silent}."
        culprit, blame = held_back(
            response, "a proxy between mcpspy and the server collects the response, or the server does not flush"
        )
        yield hit_on_stream(
            EVENTS_IN_BURST,
            facts,
            transaction,
            response,
            what,
            culprit,
            at_ns=response.closed_ns or response.at_ns,
            blame=blame,
            group=transaction.target,
        )
    head_ns = response.at_ns - transaction.at_ns
    if transaction.method == "GET" and head_ns >= _SILENCE_NS and first_ns - response.at_ns <= _BURST_NS:
        what = f"The response head of GET {transaction.target} came after {seconds(head_ns)}, together with its first event."
        yield _hit(LATE_HEAD, facts, transaction, response, what, SERVER)


def came_at_once(transaction: Transaction, response: Stream) -> bool:
    """Tell whether all events of a stream came at one instant after a silence, keep-alives included."""
    first_ns, last_ns = response.first_ns, response.last_ns
    if first_ns is None or last_ns is None or last_ns - first_ns > _BURST_NS or first_ns - transaction.at_ns < _SILENCE_NS:
        return False
    if response.comments >= _FEW_COMMENTS and response.comments + response.events >= _FEW_EVENTS:
        return True
    return response.events > 1 and bool(response.head.get("content-length"))


def held_back(response: Stream | None, made_late: str) -> tuple[str, str]:
    """Return the culprit and the reason where events came at once; `made_late` says what else may have done it."""
    sign = gateway_field(response)
    if sign:
        return "gateway", f"The gateway, which collects the response: {sign}."
    if response is not None and response.head.get("content-length"):
        made_late += "; its Content-Length shows that all of it was there before the first byte left"
    return "unclear", f"Unclear: {made_late}."


def _unopened(facts: CaptureFacts) -> Iterator[Hit]:
    """Find streams whose head did not come while POSTs were answered, so that the server was alive."""
    heads_ns: list[int] | None = None
    for transaction in facts.capture.transactions.values():
        if transaction.response is not None or not asks_for_stream(transaction) or transaction.request is None:
            continue
        until_ns = facts.capture.last_ns + facts.capture.shift_ns if transaction.ended_ns is None else transaction.ended_ns
        waited_ns = until_ns - transaction.at_ns
        if waited_ns < _SILENCE_NS or transaction.left_by == SERVER or facts.last_hole_ns is not None:
            continue
        is_given_up = transaction.ended_by == CLIENT
        if heads_ns is None:
            heads_ns = _heads_ns(facts)
        last = bisect_left(heads_ns, until_ns + (_SILENCE_NS if is_given_up else 0))
        answered = last - bisect_right(heads_ns, transaction.at_ns)
        if answered:
            requests = f"{answered} other request{'s were' if answered > 1 else ' was'} answered"
            when = "meanwhile or soon after" if is_given_up else "meanwhile"
            what = f"The response head of GET {transaction.target} did not come within {seconds(waited_ns)}; {requests} {when}."
            yield hit_on_stream(
                LATE_HEAD, facts, transaction, transaction.request, what, SERVER, at_ns=until_ns, group=transaction.target
            )


def _heads_ns(facts: CaptureFacts) -> list[int]:
    """Return the times of the heads with which the server answered, in order."""
    responses = (transaction.response for transaction in facts.capture.transactions.values())
    return sorted(response.at_ns for response in responses if response is not None and not response.injected)


def _not_reopened(facts: CaptureFacts) -> Iterator[Hit]:
    """Find sessions that went on for some time after the server had ended their last stream."""
    streams: dict[str, list[Transaction]] = {}
    for transaction in facts.capture.transactions.values():
        if transaction.scope.session and transaction.method == "GET":
            streams.setdefault(transaction.scope.session, []).append(transaction)
    ended = {session: opened for session, opened in streams.items() if opened[-1].is_stream and opened[-1].ended_by == SERVER}
    posted_ns: dict[str, int] = {}
    for transaction in facts.capture.transactions.values() if ended else ():
        if transaction.method == "POST" and 0 < transaction.status < HTTP_ERRORS:
            posted_ns[transaction.scope.session] = transaction.at_ns
    for session, opened in ended.items():
        went_on_ns = posted_ns.get(session, 0) - (opened[-1].ended_ns or 0)
        if opened[-1].ended_ns is not None and went_on_ns >= PATIENCE_NS:
            yield from _left_closed(facts, opened, went_on_ns)


def _left_closed(facts: CaptureFacts, opened: list[Transaction], went_on_ns: int) -> Iterator[Hit]:
    """Blame a server that ends its streams at once or again and again, else the client."""
    last, response = opened[-1], opened[-1].response
    ended = [stream for stream in opened if stream.is_stream and stream.ended_by == SERVER]
    if response is None or response.closed_ns is None or response.close is None or facts.last_hole_ns is not None:
        return
    open_ns = response.closed_ns - response.at_ns
    if response.close.how != "eof" and open_ns >= _IDLE_NS:
        return  # it was cut when it was idle
    times = f", as it had ended {len(ended) - 1} before it" if len(ended) > 1 else ""
    what = (
        f"The server ended the stream of GET {last.target} after {seconds(open_ns)}{times}, and the client opened no other, "
        f"though the session went on for {seconds(went_on_ns)}."
    )
    culprit: str = CLIENT
    blame = advice = ""
    if len(ended) > 1 or open_ns < _SILENCE_NS:
        culprit = SERVER
        blame = "The server: it offers the stream and does not keep it open."
        advice = "Keep the stream open and send a comment every 15 s; answer GET with 405 if there is nothing to send."
    elif response.close.how != "eof":
        culprit, blame = (
            "unclear",
            "Unclear: the server, or a proxy before it, broke off the stream, and the client did not return.",
        )
    yield hit_on_stream(
        STREAM_NOT_REOPENED, facts, last, response, what, culprit, at_ns=response.closed_ns, blame=blame, advice=advice
    )


def _break_off(facts: CaptureFacts, transaction: Transaction, response: Stream, missed_ns: int) -> Iterator[Hit]:
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
    elif silent_ns >= _IDLE_NS or (silent_ns >= _SILENCE_NS and missed_ns > closed_ns):
        what = f"The stream of {name} broke off after {seconds(silent_ns)} of silence."
        is_limit = any(abs(silent_ns - limit_s * 1_000_000_000) <= _ROUND_NS for limit_s in _LIMITS_S)
        severity = None if is_limit or silent_ns < _IDLE_NS else Severity.NOTE
        sign = gateway_field(response)
        blame = f"Unclear: the server, or the gateway in front of it, if it has an idle timeout: {sign}." if sign else ""
        yield _hit(IDLE_STREAM_CUT, facts, transaction, response, what, "unclear", severity=severity, blame=blame)


def _missed_ns(facts: CaptureFacts) -> dict[int, int]:
    """Return by stream of HTTP+SSE the time of the last POST to the endpoint that it announced, if that was refused."""
    return {
        transaction.scope.stream: transaction.at_ns
        for transaction in facts.capture.transactions.values()
        if transaction.scope.stream and transaction.method == "POST" and HTTP_ERRORS <= transaction.status < HTTP_FAILURES
    }


def _hit(
    rule: Rule,
    facts: CaptureFacts,
    transaction: Transaction,
    response: Stream,
    what: str,
    culprit: str,
    *,
    severity: Severity | None = None,
    blame: str = "",
) -> Hit:
    at_ns = response.closed_ns or response.at_ns
    return hit_on_stream(
        rule, facts, transaction, response, what, culprit, at_ns=at_ns, group=transaction.target, severity=severity, blame=blame
    )
