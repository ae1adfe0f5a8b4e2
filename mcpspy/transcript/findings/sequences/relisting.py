"""Findings about lists that a client asks for again and again, although nothing has changed."""

from collections.abc import Iterator
from typing import Final

from ....records import CLIENT
from ....wire.json_spans import members
from ...definitions import LISTED_MEMBERS
from ...mcp.methods import INITIALIZE
from ...model import Exchange, Kind, Message
from ...stats.tokens import estimated_tokens
from ..facts import SUBSCRIPTION_FILTERS, CaptureFacts, ScopeKey, scope_key
from ..rule import Hit, Severity, cost_rule, hit_in
from ..words import seconds

_BEGIN: Final = "· handshake 2025-11-25, server: tools\n"
_LIST: Final = '→ tools/list %d\n← result %d {"tools":[{"name":"read","inputSchema":{"type":"object"}}]}\n'


def _lists(times: int) -> str:
    return _BEGIN + "".join(_LIST % (at, at) for at in range(1, times + 1))


LISTED_AGAIN: Final = cost_rule(
    name="listed-again",
    title="List asked for again and again",
    what="A client asked for a list eight times or more in a session, and got the same each time; from five times on it is a note.",
    why="Each list takes time and traffic, and a model that gets it each time pays for it.",
    blame="The client: the server announced no change, and the list stayed the same.",
    example=_lists(8),
    clean=_lists(3),
    advice="Keep the list until the server sends list_changed, or until the ttlMs that came with it is over.",
)

RULES: Final = (LISTED_AGAIN,)

MANY: Final = 8
SEVERAL: Final = 5

_POLLING_NS: Final = 60_000_000_000
"""Lists that are asked for so rarely are polled, by a client that does not rely on notifications."""
_MAX_BYTES: Final = 4 << 20


class _EqualLists:
    """Equal lists, one after the other."""

    __slots__ = ("answer", "first", "last", "rows")

    def __init__(self, first: Exchange, answer: bytes) -> None:
        self.first, self.last, self.answer, self.rows = first, first, answer, 1


def find(facts: CaptureFacts) -> Iterator[Hit]:
    """Find runs of equal lists."""
    if len(facts.listings) < SEVERAL:
        return
    changed_ns = _changes(facts)
    runs: dict[tuple[ScopeKey, str], _EqualLists] = {}
    for listing in facts.listings:
        scope = scope_key(listing.transaction)
        if listing.method == INITIALIZE:
            for method in LISTED_MEMBERS:
                if (run := runs.pop((scope, method), None)) is not None:
                    yield from _again(run)
            continue
        response = listing.response
        if (
            listing.method not in LISTED_MEMBERS
            or listing.sender != CLIENT
            or response is None
            or response.kind is not Kind.RESULT
        ):
            continue
        if (listing.transaction is not None and not scope) or response.size > _MAX_BYTES or b'"cursor"' in listing.request.raw:
            continue
        answer = bytes(members(response.raw).get("result", b""))
        run = runs.get((scope, listing.method))
        if (
            run is not None
            and answer == run.answer
            and _is_needless(run.last, listing, changed_ns.get((scope, listing.method), []))
        ):
            run.last, run.rows = listing, run.rows + 1
            continue
        if run is not None:
            yield from _again(run)
        runs[scope, listing.method] = _EqualLists(listing, answer)
    for run in runs.values():
        yield from _again(run)


def _changes(facts: CaptureFacts) -> dict[tuple[ScopeKey, str], list[int]]:
    """Return when changes of lists were announced, by scope and by the method of the list."""
    changes: dict[tuple[ScopeKey, str], list[int]] = {}
    if not any(method in SUBSCRIPTION_FILTERS for method, *_ in facts.notifications):
        return changes
    for row in facts.rows:
        message = getattr(row, "message", None)
        if row.capture == facts.capture.index and isinstance(message, Message) and message.method in SUBSCRIPTION_FILTERS:
            list_method = message.method.removeprefix("notifications/").replace("_changed", "")
            for method in {list_method, list_method.replace("/list", "/templates/list")}:
                scope = scope_key(facts.capture.transaction_of(message.stream))
                changes.setdefault((scope, method), []).append(message.at_ns)
    return changes


def _is_needless(before: Exchange, listing: Exchange, changed_ns: list[int]) -> bool:
    """Tell whether a client had no reason to ask again."""
    response = before.response
    if response is None or listing.at_ns - before.at_ns >= _POLLING_NS:
        return False
    if any(before.at_ns <= at_ns <= listing.at_ns for at_ns in changed_ns):
        return False
    ttl_ms = response.result.get("ttlMs") if b'"ttlMs"' in response.raw and isinstance(response.result, dict) else None
    return not isinstance(ttl_ms, int | float) or listing.at_ns - response.at_ns < ttl_ms * 1_000_000


def _again(run: _EqualLists) -> Iterator[Hit]:
    if run.rows < SEVERAL:
        return
    tokens = (run.rows - 1) * estimated_tokens(run.answer)
    what = (
        f"The client asked for {run.first.method} {run.rows:,} times within {seconds(run.last.at_ns - run.first.at_ns)} and got the "
        f"same list each time; the repetitions are about {tokens:,} tokens."
    )
    severity = None if run.rows >= MANY else Severity.NOTE
    yield hit_in(LISTED_AGAIN, run.last.request, run.last.row, what, severity=severity)
