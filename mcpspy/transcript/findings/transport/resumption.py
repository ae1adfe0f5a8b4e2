"""Findings about resumed streams: unknown or repeated event ids, and events that should not have come again.

Source: MCP specification, basic/transports of 2025-03-26 to 2025-11-25, resumability and redelivery. Outside of
sessions, where a server may have many clients, nothing is found, nor in a session whose beginning is not in the capture.
"""

from collections.abc import Iterator
from typing import Final

from ....records import CLIENT, SERVER
from ...http.transaction import Anomaly, ScopeKind, Transaction
from ..facts import CaptureFacts, agreed_revisions
from ..rule import Hit, Rule, hit, protocol_rule
from ..words import quoted

_SESSION: Final = "· HTTP\n· handshake 2025-11-25, server: tools.listChanged prompts.listChanged\n"
_FIRST: Final = "→ GET /mcp\n  Accept: text/event-stream\n← 200 OK\n  id: {first}\n  data: notifications/tools/list_changed\n"
_TWO: Final = (
    f"{_SESSION}{_FIRST.format(first=1)}← id: 2\n  data: notifications/prompts/list_changed\n· the client closes the stream\n"
)
_RESUME: Final = "→ GET /mcp\n  Accept: text/event-stream\n  Last-Event-ID: {after}\n← 200 OK\n"
_SECOND: Final = "  id: 2\n  data: notifications/prompts/list_changed"
_WELL: Final = f"{_TWO}{_RESUME.format(after=1)}{_SECOND}"
_CALL: Final = (
    '→ POST /mcp\n  Accept: application/json, text/event-stream\n  tools/call 1 {"name":"read"}\n← 200 OK\n  id: 3\n'
    '  data: result 1 {"content":[]}\n· the server closes the stream\n'
)

UNKNOWN_EVENT: Final = protocol_rule(
    name="unknown-event",
    title="Resumption after an unknown event",
    what="The client resumes a stream after an event that the server never sent in that session.",
    why="The server cannot know what is missing: it begins a new stream, or refuses.",
    blame="The client: the capture has all events of the session, and none has the id in Last-Event-ID.",
    example=f"{_TWO}{_RESUME.format(after=9)}{_SECOND.replace('2', '3')}",
    clean=_WELL,
    advice="Send the id of the last event on the stream, exactly as spelled, and only in its own session.",
)

REPLAYED_EVENT: Final = protocol_rule(
    name="replayed-event",
    title="Event sent again",
    what="After a resumption the server sends the named event again, or an earlier one.",
    why="The client handles a message a second time.",
    blame="The server: it has to send only what follows the event in Last-Event-ID.",
    example=f"{_TWO}{_RESUME.format(after=2)}{_SECOND}",
    clean=_WELL,
    advice="Send only the events that follow the one in Last-Event-ID.",
)

FOREIGN_EVENT: Final = protocol_rule(
    name="foreign-event",
    title="Event of another stream",
    what="After a resumption the server sends events of another stream.",
    why="The client gets them twice: here, and on the stream that they belong to.",
    blame="The server: an event id stands for one stream, and only that stream may be resumed with it.",
    example=f"{_SESSION}{_CALL}{_FIRST.format(first=1)}· the client closes the stream\n{_RESUME.format(after=1)}"
    '  id: 3\n  data: result 1 {"content":[]}',
    clean=f"{_SESSION}{_CALL}{_FIRST.format(first=1)}· the client closes the stream\n{_RESUME.format(after=1)}{_SECOND}",
    advice="Store the stream of each event, and send again only events of the stream that Last-Event-ID belongs to.",
)

EVENT_ID_AGAIN: Final = protocol_rule(
    name="event-id-again",
    title="Event id used twice",
    what="Two events of a session have the same id.",
    why="A client that resumes after that id gets messages twice, or loses some.",
    blame="The server: event ids have to be unique within a session, over all its streams.",
    example=f"{_SESSION}{_CALL}{_FIRST.format(first=3)}· the client closes the stream",
    clean=f"{_SESSION}{_CALL}{_FIRST.format(first=4)}· the client closes the stream",
    advice="Number the events of a session, or put the stream into the id, as in 5f2c-1.",
)

RULES: Final = (UNKNOWN_EVENT, REPLAYED_EVENT, FOREIGN_EVENT, EVENT_ID_AGAIN)

_BY_NAME: Final = {rule.name: rule for rule in RULES}


def find(facts: CaptureFacts) -> Iterator[Hit]:
    """Find wrong ids of events, and wrong events after a resumption."""
    agreed = None
    for transaction in facts.capture.transactions.values():
        for anomaly in transaction.anomalies:
            rule = _BY_NAME.get(anomaly.name)
            if rule is None or transaction.scope.kind is not ScopeKind.SESSION:
                continue
            agreed = agreed_revisions(facts) if agreed is None else agreed
            if transaction.scope.session not in agreed or (rule is UNKNOWN_EVENT and facts.is_unseen(anomaly.at_ns)):
                continue
            yield _anomaly(rule, facts, transaction, anomaly)


def _anomaly(rule: Rule, facts: CaptureFacts, transaction: Transaction, anomaly: Anomaly) -> Hit:
    id, request = quoted(anomaly.data), transaction.request
    after = "" if request is None else quoted(request.head.get("last-event-id"))
    if rule is UNKNOWN_EVENT:
        what = f"{transaction.method} {transaction.target} names the event {id}, which never came in this session."
    elif rule is REPLAYED_EVENT:
        what = f"The event {id} came again on a stream that was resumed after the event {after}."
    elif rule is FOREIGN_EVENT:
        what = f"The event {id} of another stream came on a stream that was resumed after the event {after}."
    else:
        what = f"An event has the id {id}, which another event of the session had before."
    return hit(
        rule, at_ns=anomaly.at_ns, capture=transaction.capture, number=anomaly.number, row=facts.row_of(transaction), what=what,
        culprit=CLIENT if rule is UNKNOWN_EVENT else SERVER, group=transaction.scope.session,
    )  # fmt: skip
