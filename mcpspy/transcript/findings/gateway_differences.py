"""The difference between the two hops of a message, in words: what a gateway kept, changed, delayed or cut."""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING, Final, NamedTuple

from ...records import CLIENT, SERVER
from ..http.head import SESSION
from ..http.transaction import Transaction
from ..mcp.methods import INITIALIZE
from ..model import Exchange, Message, Numbered, UnpairedMessage
from .words import listed, seconds

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..exchange import ForwardedCall
    from ..http.transaction import Stream

_LATE_NS: Final = 1_000_000_000
"""A gateway that holds something back for so long does more than pass it on."""
_MAX_FIELDS: Final = 3

_OF_ONE_HOP: Final = frozenset(
    {
        "accept-encoding", "accept-language", "connection", "content-encoding", "content-length", "date", "etag", "forwarded", "host",
        "keep-alive", "proxy-authorization", "proxy-connection", "server", "te", "trailer", "transfer-encoding", "upgrade",
        "user-agent", "vary", "via", "x-powered-by",
    }
)  # fmt: skip
"""Fields that a gateway may leave out: they are about a connection, or about one of its ends (RFC 9110, section 7.6.1)."""


def made_by_gateway(outer: Numbered | None, inner: Numbered) -> str:
    """Return the clause that says how the gateway's request, `inner`, differs from the client's; empty if it does not."""
    if _is_from_server(inner):
        return _of_questions(outer, inner)
    if outer is None:
        return f"no client sent row {inner.row}"
    if not isinstance(outer, Exchange) or not isinstance(inner, Exchange):
        return ""
    here, behind = outer.transaction, inner.transaction
    if here is not None and behind is not None:
        lost = _lost(here.request, behind.request)
        if lost:
            return f"it did not pass on {lost} of row {outer.row}"
        if here.scope.session and behind.scope.session and here.scope.session != behind.scope.session:
            return f"it passed row {outer.row} on in another session than the client's"
    if outer.request.id != inner.request.id:
        return f"the client gave row {outer.row} the id {outer.request.id}, and the gateway the id {inner.request.id}"
    return f"it changed the params of row {outer.row}" if outer.request.params != inner.request.params else ""


def _is_from_server(row: Numbered) -> bool:
    return isinstance(row, Exchange) and row.sender == SERVER


def _of_questions(outer: Numbered | None, inner: Numbered) -> str:
    """Return the clause that says that a request of the server, or the client's answer to it, was not passed on."""
    if not isinstance(inner, Exchange):
        return ""
    if outer is None:
        return f"it did not pass {inner.method} of the server (row {inner.row}) on to the client"
    if isinstance(outer, Exchange) and outer.response is not None and inner.response is None:
        return f"the client answered in row {outer.row}, and that answer did not reach the server"
    return ""


def undelivered(outer: Numbered | None, inner: Numbered | None, server: str) -> str:
    """Return the clause that says that an answer did not reach a client that waited for it; empty if there is none."""
    if not isinstance(outer, Exchange) or not isinstance(inner, Exchange):
        return ""
    answer = inner.response
    if outer.response is not None or answer is None or _left_ns(outer) < answer.at_ns:
        return ""
    took = seconds(answer.at_ns - inner.at_ns)
    return f"{server} answered in row {inner.row} after {took}, and that answer did not reach the client"


def _left_ns(outer: Exchange) -> float:
    """Return when the client waited no more."""
    if outer.given_up_ns is not None:
        return outer.given_up_ns
    carrier = outer.transaction
    return (
        carrier.ended_ns
        if carrier is not None and carrier.ended_ns is not None and carrier.ended_by == CLIENT
        else float("inf")
    )


def passed_on(outer: Numbered, inner: Numbered | None, server: str, *, is_transparent: bool) -> str:
    """Return the clause that says how the client was served otherwise than the gateway was by the `server`.

    It is empty if it was not, or where nothing was to be passed on.
    """
    if inner is None and _is_from_server(outer):
        return f"{server} did not send row {outer.row}" if is_transparent else ""
    if inner is None:
        is_to_pass = is_transparent and not (isinstance(outer, UnpairedMessage) and outer.message.sender == SERVER)
        return f"it did not pass row {outer.row} on to {server}" if is_to_pass else ""
    there = f"in row {inner.row}"
    if isinstance(outer, Exchange) and isinstance(inner, Exchange):
        return _of_calls(outer, inner, server, there)
    if isinstance(outer, Transaction) and isinstance(inner, Transaction):
        return _of_transactions(outer, inner, server, there)
    return ""


def _of_calls(outer: Exchange, inner: Exchange, server: str, there: str) -> str:
    """Compare the answers of a call, what the server sent about it, and the heads of its requests."""
    carriers = (outer.transaction, inner.transaction)
    words = "" if None in carriers else _of_statuses(*carriers, server, there)  # type: ignore[arg-type]  # neither is None
    return words or undelivered(outer, inner, server) or _ended(outer, inner, server) or _of_times(outer, inner, server, there)


def _ended(outer: Exchange, inner: Exchange, server: str) -> str:
    """Say that the gateway ended the client's stream while it could still have had an answer from the server."""
    here, behind = outer.transaction, inner.transaction
    if here is None or behind is None or outer.response is not None or here.ended_ns is None or here.ended_by != SERVER:
        return ""
    if behind.ended_by == SERVER and (behind.ended_ns or 0) <= here.ended_ns:
        return ""
    waited = seconds(here.ended_ns - outer.at_ns)
    return f"it ended the client's stream after {waited}, before {server} had answered or ended the one in row {inner.row}"


def _of_statuses(outer: Transaction, inner: Transaction, server: str, there: str) -> str:
    if outer.status and inner.status and outer.status != inner.status:
        return f"it answered with {outer.status}, and {server} with {inner.status} {there}"
    return ""


def _of_times(outer: Exchange, inner: Exchange, server: str, there: str) -> str:
    """Say that something of the server reached the client late, or not at all."""
    sent, came = _from_server(inner), _from_server(outer)
    delays_ns = [later.at_ns - sooner.at_ns for sooner, later in zip(sent, came, strict=False)]
    if len(sent) == len(came) and delays_ns and max(delays_ns) >= _LATE_NS:
        late = delays_ns.index(max(delays_ns))
        words = "the answer" if sent[late] is inner.response else sent[late].method or "a message"
        return f"it held {words} of {server} {there} back for {seconds(max(delays_ns))}"
    if outer.request.correlation_key is not None and len(sent) > len(came):
        lost = [message for message in sent if message.method not in {other.method for other in came}]
        return f"it dropped {lost[0].method} of {server} {there}" if lost and lost[0].method else ""
    return ""


def _from_server(row: Exchange) -> list[Message]:
    """Return what the server sent about a call, in the order of time."""
    messages = [message for message in row.notifications if message.sender == SERVER]
    return messages if row.response is None else [*messages, row.response]


def changed_answer(outer: Numbered | None, inner: Numbered | None, server: str) -> str:
    """Return the clause that says that the gateway changed an answer, or left fields of its head out; empty if it did not."""
    if not isinstance(outer, Exchange) or not isinstance(inner, Exchange):
        return ""
    here, behind = outer.response, inner.response
    if here is not None and behind is not None and (here.result, here.error) != (behind.result, behind.error):
        return f"it answered otherwise than {server} did in row {inner.row}"
    if outer.transaction is None or inner.transaction is None:
        return ""
    lost = _lost(inner.transaction.response, outer.transaction.response)
    return f"it did not pass on {lost} of the response in row {inner.row}" if lost else ""


def lost_fields(outer: Numbered, inner: Numbered) -> tuple[str, ...]:
    """Name the header fields that a gateway left out: of the request on its way to the server, of the response on its way back."""
    here, behind = _carrier(outer), _carrier(inner)
    if here is None or behind is None:
        return ()
    return (*_missing(here.request, behind.request), *_missing(behind.response, here.response))


class LostSession(NamedTuple):
    """A session that a gateway left out: of requests, whose `rows` on both hops these are, or of the response that gave it out."""

    reason: str
    is_of_requests: bool
    rows: frozenset[int]


def lost_session(calls: Iterable[ForwardedCall]) -> LostSession | None:
    """Return the session that a gateway left out on its way; None if all its requests went on with the ids that they had."""
    requests: list[ForwardedCall] = []
    kept = 0
    for call in calls:
        here, behind = call.outer.transaction, call.last.transaction
        if here is None or behind is None:
            continue
        if SESSION in map(str.lower, _missing(behind.response, here.response)) and call.outer.method == INITIALIZE:
            reason = f"it did not pass on the field Mcp-Session-Id of the response in row {call.last.row}"
            return LostSession(reason, is_of_requests=False, rows=frozenset())
        if SESSION in map(str.lower, _missing(here.request, behind.request)):
            requests.append(call)
        elif here.scope.session and call.outer.method != INITIALIZE:
            kept += 1
    if not requests or kept:
        return None
    reason = f"the client sent the field Mcp-Session-Id (row {requests[0].outer.row}), and it did not pass it on"
    rows = frozenset(row.row for call in requests for row in (call.outer, *call.inner))
    return LostSession(reason, is_of_requests=True, rows=rows)


def _carrier(row: Numbered) -> Transaction | None:
    return row if isinstance(row, Transaction) else row.transaction if isinstance(row, Exchange) else None


def _lost(sent: Stream | None, came: Stream | None) -> str:
    """Name the header fields that are missing behind the gateway."""
    names = _missing(sent, came)
    return f"the field {names[0]}" if len(names) == 1 else f"the fields {listed(names, _MAX_FIELDS)}" if names else ""


def _missing(sent: Stream | None, came: Stream | None) -> list[str]:
    if sent is None or came is None:
        return []
    kept = {name.lower() for name, _ in came.head.fields}
    return [name for name, _ in sent.head.fields if name.lower() not in kept | _OF_ONE_HOP]


def _of_transactions(outer: Transaction, inner: Transaction, server: str, there: str) -> str:
    """Compare the statuses, the beginnings and the ends of two streams."""
    if words := _of_statuses(outer, inner, server, there):
        return words
    if outer.response is None and inner.response is not None:
        return f"{server} answered {there} with {inner.status}, and that did not reach the client"
    here, behind = outer.response, inner.response
    if here is None or behind is None:
        return ""
    if here.first_ns is None and behind.first_ns is not None:
        waited_ns = (here.closed_ns or here.at_ns) - max(behind.first_ns, here.at_ns)
        if waited_ns >= _LATE_NS:
            events = f"{behind.events} event{'' if behind.events == 1 else 's'} and {behind.comments} comments"
            return f"{server} sent {events} {there}, and not a byte of it reached the client in {seconds(waited_ns)}"
    if outer.ended_by == SERVER and (inner.ended_by != SERVER or (inner.ended_ns or 0) > (outer.ended_ns or 0)):
        ended = (
            "did not end" if inner.ended_ns is None else "was ended by the gateway" if inner.ended_by != SERVER else "went on"
        )
        return f"it ended the stream, and the one of {server} {there} {ended}"
    times = zip_longest((behind.at_ns, behind.first_ns), (here.at_ns, here.first_ns))
    delays_ns = [later - sooner for sooner, later in times if sooner is not None and later is not None]
    if delays_ns and max(delays_ns) >= _LATE_NS:
        return f"it held the stream of {server} {there} back for {seconds(max(delays_ns))}"
    return ""
