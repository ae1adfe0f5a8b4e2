"""Findings about notifications of changes: too many of them, and those of resources that nobody subscribed to.

Source: MCP specification, server/tools, prompts and resources (list_changed, subscriptions) of 2024-11-05 to 2025-11-25.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator
from itertools import accumulate
from operator import itemgetter
from typing import Final

from ....records import SERVER
from ...mcp.blocks import member
from ...mcp.revisions import Era
from ...model import Kind, UnpairedMessage
from ..facts import SUBSCRIPTION_FILTERS, CaptureFacts, ScopeKey, scope_key
from ..rule import Hit, Severity, hit_in, protocol_rule
from ..words import quoted, seconds

_TOOLS: Final = "· handshake 2025-11-25, server: tools.listChanged\n"
_RESOURCES: Final = (
    '· handshake 2025-11-25, server: resources.subscribe\n→ resources/subscribe 1 {"uri":"memo:///a"}\n← result 1\n'
)

CHANGE_STORM: Final = protocol_rule(
    name="change-storm",
    title="Changes announced again and again",
    what="A server sent twenty or more notifications of one kind of change within ten seconds.",
    why="Clients fetch the list or the resource after each: the session is busy with lists, and a model's cache is lost each time.",
    blame="The server: it announces each small step, or changes that are none.",
    example=_TOOLS + "← notifications/tools/list_changed\n" * 20,
    clean=_TOOLS + "← notifications/tools/list_changed\n",
    advice="Collect changes for a second or so and announce them once; announce nothing at the start, for there is no old list yet.",
)

UNASKED_UPDATE: Final = protocol_rule(
    name="unasked-update",
    title="Update of a resource without a subscription",
    severity=Severity.NOTE,
    what="A server reported a change of a resource that the client had not subscribed to, nor to one above it.",
    why="Clients drop it, or read a resource that nobody uses; perhaps another client's subscription was meant.",
    blame="The server: it sends updates to a client that did not ask for them.",
    example=_RESOURCES + '← notifications/resources/updated {"uri":"memo:///b"}',
    clean=_RESOURCES + '← notifications/resources/updated {"uri":"memo:///a/page"}',
    advice="Keep subscriptions by client or session, and send updates only to those that have one for the URI.",
)

RULES: Final = (CHANGE_STORM, UNASKED_UPDATE)

MANY: Final = 20
_WITHIN_NS: Final = 10_000_000_000
_UPDATE: Final = "notifications/resources/updated"
_RACE_NS: Final = 1_000_000_000
"""An update may cross the request that ends its subscription."""


def find(facts: CaptureFacts) -> Iterator[Hit]:
    """Find notifications of changes that come too often, or to the wrong client."""
    if not any(method in SUBSCRIPTION_FILTERS for method, *_ in facts.notifications):
        return
    changes: defaultdict[tuple[ScopeKey, str, str], list[UnpairedMessage]] = defaultdict(list)
    for row in facts.rows:
        if not isinstance(row, UnpairedMessage) or row.capture != facts.capture.index or row.message.sender != SERVER:
            continue
        method = row.message.method or ""
        if method in SUBSCRIPTION_FILTERS:
            uri = _uri(row) if method == _UPDATE else ""
            changes[scope_key(facts.capture.transaction_of(row.message.stream)), method, uri].append(row)
    subscriptions = _subscriptions(facts)
    for (scope, method, uri), rows in changes.items():
        yield from _storm(rows, method, uri)
        if uri and rows[0].message.era is not Era.MODERN and _is_known(facts, scope):
            yield from _unasked(rows, uri, subscriptions.get(scope, {}))


def _storm(rows: list[UnpairedMessage], method: str, uri: str) -> Iterator[Hit]:
    """Find the first stretch of changes that come too close together."""
    for first, last in zip(rows, rows[MANY - 1 :], strict=False):
        if last.at_ns - first.at_ns <= _WITHIN_NS:
            near = sum(1 for row in rows if first.at_ns <= row.at_ns <= first.at_ns + _WITHIN_NS)
            of = f" of {quoted(uri)}" if uri else ""
            what = f"The server sent {method}{of} {near:,} times within {seconds(last.at_ns - first.at_ns + 1_000_000)}."
            yield hit_in(CHANGE_STORM, first.message, first.row, what, group=f"{method} {uri}", count=len(rows))
            return


def _unasked(rows: list[UnpairedMessage], uri: str, subscriptions: dict[str, list[tuple[int, float]]]) -> Iterator[Hit]:
    """Find updates of a resource outside of the times in which it, or one above it, was subscribed to."""
    spans = sorted(span for length in set(map(len, subscriptions)) for span in subscriptions.get(uri[:length], ()))
    ends_ns = list(accumulate((until_ns for _, until_ns in spans), max))
    for row in rows:
        begun = bisect_right(spans, row.at_ns, key=itemgetter(0))
        if not begun or row.at_ns > ends_ns[begun - 1] + _RACE_NS:
            name = quoted(uri)
            what = f"The server reported a change of {name}, to which the client had not subscribed."
            yield hit_in(UNASKED_UPDATE, row.message, row.row, what, group=uri)


def _is_known(facts: CaptureFacts, scope: ScopeKey) -> bool:
    """Return whether the capture has the session from its beginning, and whole."""
    return facts.first_hole_ns is None and any(scope_key(exchange.transaction) == scope for exchange in facts.initializes)


def _subscriptions(facts: CaptureFacts) -> dict[ScopeKey, dict[str, list[tuple[int, float]]]]:
    """Return by scope and URI from when to when a client was subscribed; a subscription begins with its request."""
    times: dict[ScopeKey, dict[str, list[tuple[int, float]]]] = {}
    if not facts.has_request("resources/subscribe"):
        return times
    for exchange in facts.exchanges:
        method, uri = exchange.method, exchange.target or ""
        of_uri = times.setdefault(scope_key(exchange.transaction), {}).setdefault(uri, []) if "subscribe" in method else []
        if method == "resources/subscribe" and (exchange.response is None or exchange.response.kind is Kind.RESULT):
            of_uri.append((exchange.at_ns, float("inf")))
        elif method == "resources/unsubscribe" and of_uri:
            of_uri[-1] = (of_uri[-1][0], exchange.at_ns)
    return times


def _uri(row: UnpairedMessage) -> str:
    uri = member(row.message.params, "uri")
    return uri if isinstance(uri, str) else ""
