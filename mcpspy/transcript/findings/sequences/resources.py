"""Findings about the contents of resources: those of another one, and those that changed without a notification.

Source: MCP specification, server/resources of 2024-11-05 to 2025-11-25 (reading, subscriptions).
"""

import re
from collections.abc import Iterator
from itertools import islice
from typing import Final

from ....lazy_pattern import lazy_pattern
from ....records import CLIENT, SERVER
from ....wire.json_spans import members
from ...mcp.blocks import listed
from ...model import Exchange, Kind, UnpairedMessage
from ..facts import CaptureFacts, ScopeKey, scope_key
from ..rule import Hit, Severity, hit_in, protocol_rule
from ..words import call_name, quoted, seconds

_BEGIN: Final = "· handshake 2025-11-25, server: resources.subscribe\n"
_READ: Final = '→ resources/read %d {"uri":"memo:///%s"}\n← result %d {"contents":[{"uri":"memo:///%s","text":"%s"}]}\n'
_SUBSCRIBE: Final = '→ resources/subscribe 9 {"uri":"memo:///a"}\n← result 9 {}\n'
_UPDATED: Final = '← notifications/resources/updated {"uri":"memo:///a"}\n'

OTHER_RESOURCE: Final = protocol_rule(
    name="other-resource",
    title="Contents of another resource",
    what="A resource was read, and the contents that came are those of another one that the client reads in the same session.",
    why="The client shows, and the model reads, something other than was asked for.",
    blame="The server: it answered with contents that have the URI of another request.",
    example=_BEGIN + _READ % (1, "a", 1, "a", "A") + _READ % (2, "b", 2, "a", "A"),
    clean=_BEGIN + _READ % (1, "a", 1, "a", "A") + _READ % (2, "b", 2, "b", "B"),
    advice="Look for a cache whose key leaves out the URI, and for a variable that all requests share.",
)

UPDATE_MISSING: Final = protocol_rule(
    name="update-missing",
    title="Change without a notification",
    what=(
        "A resource that the client had subscribed to changed between two reads, or a tool wrote to it, and no "
        "notifications/resources/updated came."
    ),
    why="A client that trusts its subscription goes on with old contents.",
    blame="The server: it accepted the subscription, and reported no change.",
    example=_BEGIN + _SUBSCRIBE + _READ % (1, "a", 1, "a", "A") + _READ % (2, "a", 2, "a", "B"),
    clean=_BEGIN + _SUBSCRIBE + _READ % (1, "a", 1, "a", "A") + _UPDATED + _READ % (2, "a", 2, "a", "B"),
    advice="Send notifications/resources/updated to each subscriber when the contents change.",
)

RULES: Final = (OTHER_RESOURCE, UPDATE_MISSING)

MAX_READS: Final = 5_000
"""So many reads of a capture are compared."""

_READING: Final = "resources/read"
_UPDATE: Final = "notifications/resources/updated"
_MAX_BYTES: Final = 1 << 20
_SOON_NS: Final = 1_000_000_000
"""A notification may come so much later than the contents that it is about."""
_LATER_NS: Final = 5_000_000_000
_writes = lazy_pattern(
    r"(?:^|[_.-])(?:write|update|set|edit|append|save|put|patch|modify|overwrite|replace|delete|remove)(?:$|[_.-])",
    re.IGNORECASE,
)
_is_alias = lazy_pattern(
    r"(?:^|[/:])(?:latest|current|me|self|default|head|root|index|home|today|now|main|active)/?$", re.IGNORECASE
)
_numbers = lazy_pattern(rb"\d+")


def find(facts: CaptureFacts) -> Iterator[Hit]:
    """Find contents of other resources, and changes that nobody reported."""
    is_read = facts.has_request(_READING)
    all_reads = (row for row in facts.exchanges if row.request.method == _READING and row.sender == CLIENT) if is_read else ()
    reads = facts.first([*islice(all_reads, MAX_READS + 1)], MAX_READS, RULES, "reads")
    yield from _others(reads)
    if facts.has_request("resources/subscribe") and facts.first_hole_ns is None:
        times = _Times(facts)
        yield from _unreported(times, reads)
        yield from _written(facts, times)


def _others(reads: list[Exchange]) -> Iterator[Hit]:
    rows_by_uri: dict[ScopeKey, dict[str, int]] = {}
    for read in reads:
        rows_by_uri.setdefault(scope_key(read.transaction), {}).setdefault(_spelling(read.target or ""), read.row)
    for read in reads:
        response, own = read.response, _spelling(read.target or "")
        if (
            response is None
            or response.kind is not Kind.RESULT
            or response.size > _MAX_BYTES
            or not own
            or _is_alias.search(own)
        ):
            continue
        uris = [_spelling(item["uri"]) for item in listed(response.result, "contents") if isinstance(item.get("uri"), str)]
        rows = rows_by_uri[scope_key(read.transaction)]
        if not uris or any(uri == own or uri.startswith(f"{own}/") or uri not in rows for uri in uris):
            continue
        names = [quoted(uri) for uri in (own, uris[0])]
        what = (
            f"resources/read asked for {names[0]}, and the contents that came are those of {names[1]}, which row {rows[uris[0]]} "
            "asked for."
        )
        sign = _cache_sign(read)
        blame = f"A gateway in front of the server: its field {sign} shows a cache." if sign else ""
        yield hit_in(OTHER_RESOURCE, response, read.row, what, culprit="gateway" if sign else SERVER, blame=blame)


def _spelling(uri: str) -> str:
    if "%" in uri:
        from urllib.parse import unquote  # slow to import

        uri = unquote(uri)
    return uri.rstrip("/")


def _cache_sign(read: Exchange) -> str:
    """Quote the field of a response that shows a cache; empty if none does."""
    response = None if read.transaction is None else read.transaction.response
    for name, value in () if response is None else response.head.fields:
        if name.lower() in ("x-cache", "age", "via", "cf-cache-status", "x-cache-hits", "x-varnish"):
            return quoted(f"{name}: {value}")
    return ""


class _Times:
    """The times when each resource was subscribed to, and when changes of it were reported."""

    def __init__(self, facts: CaptureFacts) -> None:
        self._events: dict[tuple[ScopeKey, str | None], list[tuple[int, bool]]] = {}
        self._reports: dict[tuple[ScopeKey, str | None], list[int]] = {}
        for row in facts.rows:
            if row.capture != facts.capture.index:
                continue
            if isinstance(row, Exchange) and row.method in ("resources/subscribe", "resources/unsubscribe"):
                answer = row.response
                if answer is not None and answer.kind is Kind.RESULT:
                    key = (scope_key(row.transaction), row.target)
                    self._events.setdefault(key, []).append((answer.at_ns, row.method.endswith("/subscribe")))
            elif isinstance(row, UnpairedMessage) and row.message.method == _UPDATE:
                params = row.message.params
                uri = params.get("uri") if isinstance(params, dict) else None
                scope = scope_key(facts.capture.transaction_of(row.message.stream))
                self._reports.setdefault((scope, uri if isinstance(uri, str) else None), []).append(row.at_ns)

    def keys_named(self, scope: ScopeKey, request: bytes) -> list[tuple[ScopeKey, str | None]]:
        """Return the subscribed resources that a request names, by their URI or, for a file, by its path."""
        named = []
        for key in self._events:
            uri = key[1] or ""
            spellings = (uri, uri.removeprefix("file://")) if uri.startswith("file:///") else (uri,)
            if key[0] == scope and any(f'"{text}"'.encode() in request for text in spellings):
                named.append(key)
        return named

    def is_subscribed(self, key: tuple[ScopeKey, str | None], since_ns: int, until_ns: int) -> bool:
        """Tell whether a subscription stood all the time."""
        stands = False
        for at_ns, begins in sorted(self._events.get(key, ())):
            if at_ns > since_ns:
                return stands and not (at_ns < until_ns and not begins)
            stands = begins
        return stands

    def was_reported(self, key: tuple[ScopeKey, str | None], since_ns: int, until_ns: int) -> bool:
        """Tell whether a change of this resource, or of one above or below it, was reported."""
        for (scope, uri), times in self._reports.items():
            is_it = uri is None or uri == key[1] or (key[1] or "").startswith(uri) or uri.startswith(key[1] or "")
            if scope == key[0] and is_it and any(since_ns <= at_ns <= until_ns for at_ns in times):
                return True
        return False


def _unreported(times: _Times, reads: list[Exchange]) -> Iterator[Hit]:
    """Find reads of a subscribed resource with other contents than the read before it."""
    before: dict[tuple[ScopeKey, str | None], Exchange] = {}
    for read in reads:
        response, key = read.response, (scope_key(read.transaction), read.target)
        if response is None or response.kind is not Kind.RESULT or (read.transaction is not None and not key[0]):
            continue
        first = before.get(key)
        before[key] = read
        if first is None or first.response is None or not times.is_subscribed(key, first.response.at_ns, read.at_ns):
            continue
        if times.was_reported(key, first.at_ns, response.at_ns + _SOON_NS) or _is_same(first, read):
            continue
        uri = quoted(read.target or "")
        what = (
            f"The contents of {uri} changed between row {first.row} and row {read.row}, while the client was subscribed to it, "
            f"and no {_UPDATE} came."
        )
        yield hit_in(UPDATE_MISSING, response, read.row, what, culprit=SERVER, group=read.target or "")


def _written(facts: CaptureFacts, times: _Times) -> Iterator[Hit]:
    """Find tools that wrote to a subscribed resource, by their names and arguments, after which no change was reported."""
    last_ns = facts.capture.last_ns + facts.capture.shift_ns
    for call in facts.first(facts.calls, MAX_READS, (UPDATE_MISSING,)):
        response = call.response
        if response is None or response.is_error or response.kind is not Kind.RESULT or not _writes.search(call.target or ""):
            continue
        for key in times.keys_named(scope_key(call.transaction), call.request.raw):
            until_ns = response.at_ns + _LATER_NS
            if until_ns > last_ns or not times.is_subscribed(key, call.at_ns, until_ns):
                continue
            if not times.was_reported(key, call.at_ns, until_ns):
                uri = quoted(key[1] or "")
                what = (
                    f"{call_name(call)} was called for {uri} while the client was subscribed to it, "
                    f"and no {_UPDATE} came within {seconds(_LATER_NS)}."
                )
                blame = "The server: its own tool seems to have changed the resource, and it reported no change."
                yield hit_in(
                    UPDATE_MISSING, response, call.row, what, culprit=SERVER, severity=Severity.NOTE, blame=blame, group=key[1] or "",
                )  # fmt: skip


def _is_same(first: Exchange, second: Exchange) -> bool:
    """Tell whether two reads brought the same, but for numbers such as times and counters."""
    assert first.response is not None
    assert second.response is not None
    before, after = (bytes(members(message.raw).get("result", b"")) for message in (first.response, second.response))
    return before == after or _numbers.sub(b"", before) == _numbers.sub(b"", after)
