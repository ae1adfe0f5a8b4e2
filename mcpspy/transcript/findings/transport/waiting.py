"""Findings about requests that still wait for their answers, in a capture that is still being recorded."""

from collections.abc import Iterator
from typing import Final

from ....records import OTHER_SIDE, SERVER, Partial
from ...http.transaction import Stream
from ...mcp.methods import PROGRESS
from ...model import ChannelEvent, Exchange, Log, UnpairedMessage
from ..facts import CaptureFacts, ScopeKey, scope_key
from ..meanwhile import FOR_PEOPLE, log_words, logged_while, meanwhile_words
from ..rule import Hit, Rule, Severity, hit_in
from ..words import call_name, seconds
from .server_exits import OPEN_ENDED, PATIENCE_NS, UNANSWERED_REQUEST, ended_task_ns, undeclared_hit

RULES: Final[tuple[Rule, ...]] = ()
"""None of its own: `server_exits` has the rule."""

SILENCE_NS: Final = 30_000_000_000
"""A side that sent nothing at all for so long is to blame, whatever it does."""

_MAY_WAIT: Final = OPEN_ENDED | FOR_PEOPLE | {"sampling/createMessage"}
"""Requests that are answered when a person or a model is done."""


def find(facts: CaptureFacts) -> Iterator[Hit]:
    """Find requests that wait for five seconds or more and do not wait for anything that was seen."""
    now_ns = facts.capture.now_ns
    if now_ns is None or not facts.waiting:
        return
    heard_ns = _heard_ns(facts)
    misdelivered = facts.misdelivered.rows
    questions = {(exchange.sender, scope_key(exchange.transaction)) for exchange in facts.waiting}
    for exchange in facts.waiting:
        task_ended_ns = ended_task_ns(facts, exchange)
        if task_ended_ns is None:
            continue  # it is answered when its task has ended
        waited_ns = now_ns - max(exchange.at_ns, task_ended_ns)
        receiver, scope = OTHER_SIDE[exchange.sender], scope_key(exchange.transaction)
        if exchange.row in misdelivered:
            continue  # it was answered, to somebody else
        waits_for_sender = exchange.sender != SERVER and (receiver, scope) in questions
        if waited_ns < PATIENCE_NS or exchange.method in _MAY_WAIT or waits_for_sender or _progresses(exchange, now_ns):
            continue
        what = f"The {receiver} has not answered {call_name(exchange)} for {seconds(waited_ns)}"
        if task_ended_ns:
            what += ", though its task has ended"
        silent_ns = now_ns - max(exchange.at_ns, heard_ns.get((receiver, scope), 0), _stream_ns(exchange))
        if silent_ns < SILENCE_NS:
            what += f".{meanwhile_words(facts, exchange, now_ns)}{log_words(logged_while(facts, exchange, now_ns))}"
            blame = "Unclear: it may still be answered."
            advice = f"Wait, or look into the log of the {receiver} for what it does."
            yield hit_in(
                UNANSWERED_REQUEST, exchange.request, exchange.row, what, culprit="unclear", severity=Severity.NOTE,
                blame=blame, advice=advice,
            )  # fmt: skip
        else:
            what += f", and has sent nothing else for {seconds(silent_ns)}."
            if (hit := undeclared_hit(facts, exchange, what)) is not None:
                yield hit
                continue
            blame = f"The {receiver}: it received the request and has been silent since."
            yield hit_in(
                UNANSWERED_REQUEST,
                exchange.request,
                exchange.row,
                what,
                culprit=receiver,
                severity=Severity.WARNING,
                blame=blame,
            )


def _progresses(exchange: Exchange, now_ns: int) -> bool:
    return any(message.method == PROGRESS and now_ns - message.at_ns < PATIENCE_NS for message in exchange.notifications)


def _stream_ns(exchange: Exchange) -> int:
    """Give the time of the last byte on the stream on which the answer is due; 0 if there is none."""
    transaction = exchange.transaction
    return 0 if transaction is None or exchange.sender == SERVER else _last_ns(transaction.response)


def _heard_ns(facts: CaptureFacts) -> dict[tuple[str, ScopeKey], int]:
    """Give the time of the last byte of each side in each scope; a transaction without a scope has only its own streams."""
    heard: dict[tuple[str, ScopeKey], int] = {}

    def hear(side: str, scope: ScopeKey, at_ns: int) -> None:
        heard[side, scope] = max(at_ns, heard.get((side, scope), 0))

    for transaction in facts.capture.transactions.values():
        if scope := scope_key(transaction):
            hear("server", scope, _last_ns(transaction.response))
            hear("client", scope, _last_ns(transaction.request))
    if facts.capture.transactions:
        return heard
    for row in facts.rows:
        if row.capture != facts.capture.index:
            continue
        match row:
            case Exchange():
                for message in row.messages:
                    hear(message.sender, 0, message.at_ns)
            case UnpairedMessage():
                hear(row.message.sender, 0, row.at_ns)
            case Log():
                hear(SERVER, 0, row.at_ns)
            case ChannelEvent(record=Partial(stream=stream)):
                hear("client" if facts.stream_name(stream) == "stdin" else SERVER, 0, row.at_ns)
            case _:
                pass
    return heard


def _last_ns(stream: Stream | None) -> int:
    return 0 if stream is None else stream.at_ns if stream.last_ns is None else stream.last_ns
