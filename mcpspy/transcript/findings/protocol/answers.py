"""Findings about responses and the requests that they answer, by their ids."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import Final

from ....records import OTHER_SIDE, SERVER
from ...correlator import MAX_CANDIDATES
from ...mcp.blocks import member
from ...mcp.codes import METHOD_NOT_FOUND
from ...mcp.methods import PROGRESS
from ...model import HTTP_ERRORS, Exchange, Kind, Message
from ..facts import CaptureFacts, scope_key
from ..meanwhile import requests_ns
from ..misdeliveries import Misdelivery
from ..rule import HANDSHAKE, Hit, HitDetails, Severity, hit_in, protocol_rule, trust_rule
from ..transport.server_exits import PATIENCE_NS
from ..words import call_name, quoted, seconds

UNPAIRED_RESPONSE: Final = protocol_rule(
    name="unpaired-response",
    title="Response to no request",
    what="A response has an id that no request had, or a result has none.",
    why="The receiver drops it, and the request that it was meant for stays unanswered.",
    blame="The sender: the capture holds every request of the other side, and none has this id.",
    example='← {"jsonrpc":"2.0","id":7,"result":{}}',
    clean='→ {"jsonrpc":"2.0","id":7,"method":"ping"}\n← {"jsonrpc":"2.0","id":7,"result":{}}',
    advice="Answer with the id of the request, exactly as it was sent.",
)

DUPLICATE_RESPONSE: Final = protocol_rule(
    name="duplicate-response",
    title="Request answered more than once",
    what="A request was answered more than once.",
    why="The receiver takes the first response and drops the others, since JSON-RPC has no partial results.",
    blame="The answering side: the request was sent once.",
    example=(
        '→ {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"count"}}\n'
        '← {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"1"}]}}\n'
        '← {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"2"}]}}'
    ),
    clean=(
        '→ {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"count","_meta":{"progressToken":1}}}\n'
        '← {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}\n'
        '← {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"1, 2"}]}}'
    ),
    advice="Answer once, and report interim results as progress notifications.",
)

ID_TYPE_MISMATCH: Final = protocol_rule(
    name="id-type-mismatch",
    title="Id repeated in another spelling",
    what=(
        "The id of a response, or the progress token of a notification, differs in type or spelling from that of its request: "
        '"7" for 7, 7.0 for 7.'
    ),
    why="Ids are equal only if type and value are: some SDKs accept another spelling, others wait forever and show no progress.",
    blame="The answering side: an id has to come back as it was sent.",
    example='→ {"jsonrpc":"2.0","id":7,"method":"tools/list"}\n← {"jsonrpc":"2.0","id":"7","result":{"tools":[]}}',
    clean='→ {"jsonrpc":"2.0","id":7,"method":"tools/list"}\n← {"jsonrpc":"2.0","id":7,"result":{"tools":[]}}',
    advice="Send the id back unchanged, without converting it.",
)

PARTIAL_RESULT: Final = protocol_rule(
    name="partial-result",
    title="Result sent in parts",
    what="A request got several results, and all but the last say isComplete: false.",
    why="MCP has no partial results, so that SDKs take the first for the whole and drop the rest.",
    blame="The answering side: the request was sent once, and the results themselves say that they are parts.",
    example=(
        '→ tools/call 1 {"name":"search"}\n← result 1 {"content":[],"isComplete":false}\n'
        '← result 1 {"content":[],"isComplete":true}'
    ),
    clean='→ tools/call 1 {"name":"search"}\n← result 1 {"content":[]}',
    advice="Answer once, and report interim results as progress notifications.",
)

AMBIGUOUS_PAIRING: Final = protocol_rule(
    name="ambiguous-pairing",
    title="Message could belong to several others",
    what="A message refers to a request, a task or a stream in a way that fits several of them.",
    why="Neither side can tell which one is meant: mcpspy leaves the message unpaired, and the receiver has to guess.",
    blame="Unclear: one side used an id or a token twice, or the other side changed its spelling.",
    example=(
        f'{HANDSHAKE}→ tools/call 7 {{"name":"a"}}\n→ tools/call "7" {{"name":"b"}}\n'
        '← {"jsonrpc":"2.0","id":7.0,"result":{"content":[]}}\n'
        '← result 7 {"content":[]}\n← result "7" {"content":[]}'
    ),
    clean=(
        f'{HANDSHAKE}→ tools/call 7 {{"name":"a"}}\n→ tools/call "8" {{"name":"b"}}\n'
        '← result 7 {"content":[]}\n← result "8" {"content":[]}'
    ),
    advice="Give every request an id and a progress token of its own, and send both back unchanged.",
)

_CHANGED: Final = (
    "· HTTP\n· handshake 2025-11-25, client: roots.listChanged, server: tools\n→ POST /mcp\n"
    "  notifications/roots/list_changed\n"
)

NOTIFICATION_ANSWERED: Final = protocol_rule(
    name="notification-answered",
    title="Notification answered",
    what="A notification was answered with a message; or a POST without a request with anything but 202 and an empty body.",
    why="A client takes the answer for that to another request, or closes the connection; over HTTP it waits for a stream.",
    blame="The server: a notification gets no answer (JSON-RPC 2.0, section 4.1), and over HTTP 202 without a body.",
    example=f'{_CHANGED}← 200 OK\n  {{"ok":true}}',
    clean=f"{_CHANGED}← 202 Accepted",
    advice="Answer no message without an id, also not one that is unknown; over HTTP with 202 Accepted and an empty body.",
)

MISDELIVERED_ANSWER: Final = trust_rule(
    name="misdelivered-answer",
    title="Answer sent to another client",
    severity=Severity.ERROR,
    what="The answer to one client's request was sent to another client.",
    why="One client reads what belongs to the other, and the other waits for its answer.",
    blame="The server: it finds the client of an answer by the request's id alone, and every client counts its own ids.",
    example=(
        '· HTTP\n· handshake 2025-11-25 again as a11c, server: tools\n→ POST /mcp\n  tools/call 7 {"name":"inbox"}\n· session none\n'
        '· handshake 2025-11-25 again as b0b, server: tools\n→ POST /mcp\n  tools/call 9 {"name":"clock"}\n'
        '← 200 OK\n  data: result 7 {"content":[{"type":"text","text":"Dear Alice"}]}\n\n  data: result 9 {"content":[]}\n'
        "· the server closes the stream\n← #3 202 Accepted"
    ),
    clean=(
        '· HTTP\n· handshake 2025-11-25 again as a11c, server: tools\n→ POST /mcp\n  tools/call 7 {"name":"inbox"}\n· session none\n'
        '· handshake 2025-11-25 again as b0b, server: tools\n→ POST /mcp\n  tools/call 9 {"name":"clock"}\n'
        '← 200 OK\n  data: result 9 {"content":[]}\n· the server closes the stream\n'
        '← #3 200 OK\n  result 7 {"content":[{"type":"text","text":"Dear Alice"}]}'
    ),
    advice="Keep waiting requests by session and id, or by connection and id.",
)

RULES: Final = (
    UNPAIRED_RESPONSE, DUPLICATE_RESPONSE, PARTIAL_RESULT, ID_TYPE_MISMATCH, AMBIGUOUS_PAIRING, MISDELIVERED_ANSWER,
)  # fmt: skip

_SHOWN_CANDIDATES: Final = 5
MAX_OPEN: Final = 100
"""Among more requests without an answer, none is looked for that an answer may belong to."""

_AMBIGUOUS: Final = {
    "ambiguous-id": "The id of a response fits several waiting requests, in another spelling than each",
    "ambiguous-progress": "The token of a progress notification was given by several requests",
    "ambiguous-call": "A retry, or a reference to a task or an elicitation, fits several calls",
}


def find(facts: CaptureFacts) -> Iterator[Hit]:
    """Find responses to no request, second responses, and responses with another spelling of the id."""
    for exchange in facts.respelled_ids:
        response = exchange.response
        assert response is not None
        stuck = _stuck(facts, exchange, response) if len(facts.respelled_ids) == 1 else ""
        what = f"A response has the id {response.id}, and its request the id {exchange.request.id}.{stuck}"
        yield hit_in(ID_TYPE_MISMATCH, response, exchange.row, what, group="spelling")
    for exchange in facts.cancelled:
        cancelled = exchange.cancelled
        if cancelled is not None and cancelled.correlation_key not in (None, exchange.request.id):
            yield _respelled_cancellation(exchange, cancelled)
    for exchange in facts.with_notifications:
        yield from _respelled_token(exchange)
    misdelivered = facts.misdelivered.rows
    for misdelivery in facts.misdelivered.responses:
        yield _misdelivered(facts, misdelivery)
    _name_owners(facts)
    for exchange in facts.repeated_answers:
        if exchange.row in misdelivered:
            continue
        second = exchange.more_responses[0]
        if second.kind is Kind.ERROR and (notified := _notification_in(facts, second)):
            under = f"under the id {second.id}, which {call_name(exchange)} had"
            yield _answered_notification(second, exchange.row, notified, under)
            continue
        count = 1 + len(exchange.more_responses)
        what = f"{call_name(exchange)} was answered {count} times."
        yield hit_in(DUPLICATE_RESPONSE, second, exchange.row, what, **_other_request(facts, exchange, second))
    for exchange in facts.partial_answers:
        what = f"{call_name(exchange)} was answered in {1 + len(exchange.partials)} parts."
        yield hit_in(PARTIAL_RESULT, exchange.partials[0], exchange.row, what, group=exchange.method)
    for row, message, flaw in facts.flawed_by(_AMBIGUOUS):
        yield hit_in(AMBIGUOUS_PAIRING, message, row, f"{_AMBIGUOUS[flaw]}.", culprit="unclear", group=flaw)
    yield from _unpaired(facts)
    for exchange, message in facts.by_order:
        what = f"A result has no id; only {call_name(exchange)} was waiting, so it is shown as its answer."
        if message.kind is Kind.NOTIFICATION:
            what = f"A notification {message.method} came in place of a result; it is shown as the answer to {call_name(exchange)}."
        yield hit_in(UNPAIRED_RESPONSE, message, exchange.row, what, group="no id")


def _unpaired(facts: CaptureFacts) -> Iterator[Hit]:
    """Find responses that belong to no request, except those that something unseen may explain."""
    misdelivered = facts.misdelivered.rows
    for unpaired in facts.unmatched_responses:
        message = unpaired.message
        unseen = facts.first_hole_ns is not None and facts.first_hole_ns <= unpaired.at_ns
        if unseen or facts.capture.header is None:
            continue
        if message.id in (None, "null"):
            is_alone = facts.capture.transaction_of(message.stream) is None and not unpaired.candidates
            if is_alone and (notified := _notification_in(facts, message)):
                yield _answered_notification(message, unpaired.row, notified, "without the id of a request")
                continue
            if message.kind is Kind.ERROR:
                continue
        if unpaired.row in misdelivered or (message.kind is Kind.ERROR and _answers_by_status(facts, message)):
            continue
        article = "An" if message.kind is Kind.ERROR else "A"
        if message.id in facts.misdelivered.ids:
            what = f"{article} {message.kind} has the id {message.id}, which no request had in the same session."
            blame = f"The {message.sender}: the capture holds every request of the session, and none has this id."
            yield hit_in(UNPAIRED_RESPONSE, message, unpaired.row, what, blame=blame)
            continue
        id_words = "no id" if message.id is None else f"the id {message.id}, which no request had"
        what = f"{article} {message.kind} has {id_words}."
        if len(unpaired.candidates) > 1:
            rows = ", ".join(map(str, unpaired.candidates[:_SHOWN_CANDIDATES]))
            count = len(unpaired.candidates)
            what = f"A result has no id, and {'at least ' * (count == MAX_CANDIDATES)}{count} requests waited: rows {rows}."
        yield hit_in(UNPAIRED_RESPONSE, message, unpaired.row, what, group="no id" if message.id is None else "")


def _other_request(facts: CaptureFacts, exchange: Exchange, second: Message) -> HitDetails:
    """Say which other request a second answer may belong to: the only one that was open then and was never answered."""
    response = exchange.response
    if response is None or response.raw == second.raw or len(facts.unanswered) + len(facts.cancelled) > MAX_OPEN:
        return {}
    missed = [
        other
        for other in (*facts.unanswered, *facts.cancelled)
        if other.response is None and other.sender == exchange.sender and other.method == exchange.method
        if other.at_ns < second.at_ns < (other.given_up_ns or second.at_ns + 1)
        if scope_key(other.transaction) == scope_key(exchange.transaction)
    ]
    if len(missed) != 1:
        return {}
    blame = (
        f"The {second.sender}: {call_name(missed[0])} (row {missed[0].row}) was open too and never got an answer, so that this may "
        "be its answer, under the wrong id."
    )
    advice = "Keep the id of each request with its work: a variable that all share has the id of the last one."
    return {"severity": Severity.ERROR, "blame": blame, "advice": advice}


def _notification_in(facts: CaptureFacts, message: Message) -> str:
    """Return the notification of the other side that a response is about; empty if there is none.

    An error names it. Without an id, a response follows it directly, or says that its method is unknown and there is no other.
    """
    sent = {
        method: use.first.at_ns
        for (method, sender, _, _), use in facts.notifications.items()
        if sender != message.sender and use.first.at_ns < message.at_ns
    }
    if not sent:
        return ""
    if message.kind is Kind.ERROR and (named := next((method for method in sent if method.encode() in message.raw), "")):
        return named
    last = max(sent, key=lambda method: sent[method])
    is_unknown = message.kind is Kind.ERROR and member(message.error, "code") == METHOD_NOT_FOUND
    if message.id not in (None, "null") or not (is_unknown or message.kind is Kind.RESULT):
        return ""
    asked_ns = requests_ns(facts, OTHER_SIDE[message.sender])
    has_asked = bisect_right(asked_ns, sent[last]) < bisect_left(asked_ns, message.at_ns)
    return "" if has_asked else last


def _answered_notification(message: Message, row: int, notified: str, under: str) -> Hit:
    words = quoted(str(member(message.error, "message")).encode("utf-8", "backslashreplace"))
    answer = f"the error {words}" if message.kind is Kind.ERROR else "a result"
    what = f"{notified} was answered with {answer}, {under}."
    return hit_in(NOTIFICATION_ANSWERED, message, row, what, culprit=message.sender, group=notified)


def _stuck(facts: CaptureFacts, exchange: Exchange, response: Message) -> str:
    """Say that the side that asked sent nothing after a response that it may not have recognised; empty if it did, or left soon."""
    sent = [*requests_ns(facts, exchange.sender)[-1:]]
    sent += [use.first.at_ns for (_, sender, _, _), use in facts.notifications.items() if sender == exchange.sender]
    end_ns = facts.capture.last_ns + facts.capture.shift_ns if facts.left_ns is None else facts.left_ns
    if max(sent) > response.at_ns or end_ns - response.at_ns < PATIENCE_NS:
        return ""
    return f" The {exchange.sender} did nothing after it for {seconds(end_ns - response.at_ns)}, as if it still waited."


def _respelled_cancellation(exchange: Exchange, cancelled: Message) -> Hit:
    what = f"A cancellation names the request {cancelled.correlation_key}, whose id is {exchange.request.id}."
    blame = f"The {cancelled.sender}: both messages are its own."
    advice = 'Repeat the id with its type: to the other side 1 and "1" are two requests, and this one goes on.'
    return hit_in(
        ID_TYPE_MISMATCH, cancelled, exchange.row, what, culprit=cancelled.sender, blame=blame, advice=advice, group="cancelled"
    )


def _respelled_token(exchange: Exchange) -> Iterator[Hit]:
    """Find progress under another spelling of the token that the request gave out."""
    token = exchange.request.correlation_key
    reports = [message for message in exchange.notifications if message.method == PROGRESS and message.correlation_key != token]
    if not reports or token is None or exchange.sender == reports[0].sender:
        return
    what = f"Progress on {call_name(exchange)} names the token {reports[0].correlation_key}, and the request gave out {token}."
    blame = f"The {reports[0].sender}: a progress token has to come back as it was sent."
    advice = 'Send the token back unchanged, with its type: clients drop progress under "1" if they gave out 1.'
    yield hit_in(
        ID_TYPE_MISMATCH, reports[0], exchange.row, what, blame=blame, advice=advice, severity=Severity.WARNING,
        count=len(reports), group="progress",
    )  # fmt: skip


def _misdelivered(facts: CaptureFacts, misdelivery: Misdelivery) -> Hit:
    row, message, owner = misdelivery
    sender, receiver = facts.capture.client_of(owner), facts.capture.client_of(message)
    to = f"to {receiver}" if receiver != sender else "in another session"
    what = f"The answer to {call_name(owner)} in row {owner.row} ({sender}) was sent {to}."
    return hit_in(MISDELIVERED_ANSWER, message, row, what)


def _name_owners(facts: CaptureFacts) -> None:
    """Let the rows of misdelivered answers say whose they are, as the findings do."""
    owners = {misdelivery.row: misdelivery.owner.row for misdelivery in facts.misdelivered.responses}
    for unpaired in facts.unmatched_responses if owners else ():
        if unpaired.row in owners:
            unpaired.candidates = (owners[unpaired.row],)


def _answers_by_status(facts: CaptureFacts, message: Message) -> bool:
    """Return whether an error is the body of a refusal: it answers the HTTP request, whatever its id (SDKs write `server-error`)."""
    transaction = facts.capture.transaction_of(message.stream)
    return message.sender == SERVER and transaction is not None and transaction.status >= HTTP_ERRORS
