"""Findings about streams that are resumed after an event: ids that say nothing, and events that should not have come again.

Source: MCP specification, basic/transports of 2025-03-26 to 2025-11-25, resumability and redelivery. Nothing is found outside of
sessions, where a server may have many clients, nor of a session whose beginning is not in the capture.
"""

from collections.abc import Iterator
from typing import Final

from ....records import CLIENT, SERVER
from ...http.transaction import Anomaly, ScopeKind, Transaction
from ..facts import CaptureFacts, agreed_revisions
from ..rule import Family, Hit, Rule, Severity, hit
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

UNKNOWN_EVENT: Final = Rule(
    name="unknown-event",
    title="Resumption after an unknown event",
    family=Family.PROTOCOL,
    severity=Severity.WARNING,
    what="The client wants a stream to go on after an event that the server never sent in that session.",
    why="The server cannot know what is missing: it begins a new stream, or refuses.",
    blame="The client: all events of the session are in the capture, and none has the id in Last-Event-ID.",
    example=f"{_TWO}{_RESUME.format(after=9)}{_SECOND.replace('2', '3')}",
    clean=_WELL,
    fix="Send the id of the last event that came on the stream, as it was spelled, and in no other session.",
)

REPLAYED_EVENT: Final = Rule(
    name="replayed-event",
    title="Event sent again",
    family=Family.PROTOCOL,
    severity=Severity.WARNING,
    what="A server that was asked to go on after an event sends that event again, or one before it.",
    why="The client has had it, and said so: it handles the message a second time.",
    blame="The server: Last-Event-ID names the event, and what comes after it was due.",
    example=f"{_TWO}{_RESUME.format(after=2)}{_SECOND}",
    clean=_WELL,
    fix="Send what came after the event that the client names, and nothing that came before.",
)

FOREIGN_EVENT: Final = Rule(
    name="foreign-event",
    title="Event of another stream",
    family=Family.PROTOCOL,
    severity=Severity.WARNING,
    what="A server that was asked to resume one stream sends events that came on another one.",
    why="The client has had them, or gets them twice: once here, and once where it resumes the other stream.",
    blame="The server: an event id tells which stream it was on, and messages of other streams must not be sent again.",
    example=f"{_SESSION}{_CALL}{_FIRST.format(first=1)}· the client closes the stream\n{_RESUME.format(after=1)}"
    '  id: 3\n  data: result 1 {"content":[]}',
    clean=f"{_SESSION}{_CALL}{_FIRST.format(first=1)}· the client closes the stream\n{_RESUME.format(after=1)}{_SECOND}",
    fix="Keep with each event the stream that it was on, and send again what belongs to that of Last-Event-ID.",
)

EVENT_ID_AGAIN: Final = Rule(
    name="event-id-again",
    title="Event id used twice",
    family=Family.PROTOCOL,
    severity=Severity.WARNING,
    what="Two events of a session have the same id.",
    why="Who resumes after one of them gets what followed the other: messages come twice, or are lost.",
    blame="The server: ids have to be unique among all streams of a session.",
    example=f"{_SESSION}{_CALL}{_FIRST.format(first=3)}· the client closes the stream",
    clean=f"{_SESSION}{_CALL}{_FIRST.format(first=4)}· the client closes the stream",
    fix="Count the events of a session, or put the stream into the id: 5f2c-1.",
)

RULES: Final = (UNKNOWN_EVENT, REPLAYED_EVENT, FOREIGN_EVENT, EVENT_ID_AGAIN)

_BY_NAME: Final = {rule.name: rule for rule in RULES}


def find(facts: CaptureFacts) -> Iterator[Hit]:
    """What is wrong with ids of events, and with what was sent after one."""
    agreed = None
    for one in facts.capture.transactions.values():
        for anomaly in one.anomalies:
            rule = _BY_NAME.get(anomaly.name)
            if rule is None or one.scope.kind is not ScopeKind.SESSION:
                continue
            agreed = agreed_revisions(facts) if agreed is None else agreed
            if one.scope.session not in agreed or (rule is UNKNOWN_EVENT and facts.is_unseen(anomaly.at_ns)):
                continue
            yield _about(rule, facts, one, anomaly)


def _about(rule: Rule, facts: CaptureFacts, one: Transaction, anomaly: Anomaly) -> Hit:
    id = quoted(anomaly.data)
    after = "" if one.request is None else quoted(one.request.head.get("last-event-id").encode("utf-8", "replace"))
    if rule is UNKNOWN_EVENT:
        what = f"{one.method} {one.target} names the event {id}, which never came in this session."
    elif rule is REPLAYED_EVENT:
        what = f"The event {id} came again on a stream that was to go on after the event {after}."
    elif rule is FOREIGN_EVENT:
        what = f"The event {id} of another stream came on the one that was to go on after the event {after}."
    else:
        what = f"An event has the id {id}, which another event of the session had before."
    return hit(
        rule, at_ns=anomaly.at_ns, capture=one.capture, number=anomaly.number, row=facts.row_of(one), what=what,
        culprit=CLIENT if rule is UNKNOWN_EVENT else SERVER, group=one.scope.session,
    )  # fmt: skip
