"""Calls that passed through a gateway whose two sides were both tapped, joined from the two captures.

    client ──[capture A]── gateway ──[capture B]── server

    A:  ├─ tools/call demo_add {"a":1} ───────────────┤      outer call, in row 5
    B:        ├─ tools/call add {"a":1} ────┤                inner call, in row 9

An inner call is made after its outer call began and answered before that is answered. The two have one method and one target (a
gateway may put a prefix before it). They also share a trace (`traceparent` in `_meta`), or their arguments, or the gateway is known
to be the process that started the inner tap. A call that fits several others is joined with none: two clients may ask the same at
the same time. Without a trace and without a known process, nested times could be a coincidence. Then all calls of the inner capture
have to be explained, and at least two of them, unless the gateway has the same name on both sides.

A reverse proxy or a bridge from stdio to HTTP passes the handshake on too: then both sides name one server. Between two captures of
HTTP all requests are joined, and a session id that occurs in both shows that there is one gateway between them.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Final

from ..lazy_pattern import lazy_pattern
from ..records import CLIENT, Spawn
from .exchange import ForwardedCall
from .http.transaction import Transaction
from .mcp.blocks import member
from .model import CaptureInfo, ChannelEvent, Exchange, Transcript

_METHODS: Final = frozenset(
    {
        "tools/call", "tools/list", "prompts/get", "prompts/list", "resources/read", "resources/list",
        "resources/templates/list", "resources/subscribe", "resources/unsubscribe", "completion/complete", "logging/setLevel",
    }
)  # fmt: skip
"""Methods that every gateway forwards. One that is no reverse proxy has handshakes and pings of its own on each side."""

_HANDSHAKE: Final = "initialize"

_FEWEST: Final = 2
"""So many calls, a handshake among them, have to fit where only arguments and times join them."""

_MOST: Final = 16
"""So many equal calls are kept that wait at once; of two it is unclear already which one an inner call belongs to."""

_FIRST_ROWS: Final = 50
_NEWEST_ROWS: Final = 400
"""So many rows of a growing transcript are joined each time that a call has ended."""

_traceparent = lazy_pattern(rb'"traceparent"\s*:\s*"[0-9a-f]{2}-([0-9a-f]{32})-')
_SOON_NS: Final = 2_000_000_000
_SEPARATORS: Final = "_-./:"


def forwarded_calls(transcript: Transcript) -> dict[int, ForwardedCall]:
    """Return the forwarded calls by the numbers of all their rows."""
    infos = [info for info in transcript.captures if info.header is not None and not info.is_model]
    if len(infos) < 2:
        return {}
    calls: defaultdict[int, list[Exchange]] = defaultdict(list)
    spawned: defaultdict[int, set[tuple[str, str]]] = defaultdict(set)
    for row in transcript.rows:
        if isinstance(row, Exchange):
            if row.sender == CLIENT and (row.method in _METHODS or row.method == _HANDSHAKE or row.transaction is not None):
                calls[row.capture].append(row)
        elif isinstance(row, ChannelEvent) and isinstance(row.record, Spawn):
            spawned[row.capture].add((str(row.record.pid), str(row.record.start)))
    by_row: dict[int, ForwardedCall] = {}
    for outer in infos:
        for inner in infos:
            if calls[outer.index] and calls[inner.index] and _may_be_hops(outer, inner):
                is_started = _parent(inner) in spawned[outer.index] and _boot(inner) == _boot(outer)
                is_known = is_started or not _sessions(outer).isdisjoint(_sessions(inner))
                some = {info.index: _forwardable(calls[info.index], outer, inner) for info in (outer, inner)}
                for call in _joined(transcript, outer, inner, some, is_known=is_known):
                    by_row |= dict.fromkeys([call.outer.row, *(exchange.row for exchange in call.inner)], call)
    return by_row


def recent_forwarded_calls(transcript: Transcript) -> dict[int, ForwardedCall]:
    """Do the same in a transcript that grows: with its first rows, which show who started whom, and its newest."""
    rows = transcript.rows
    if len(rows) > _FIRST_ROWS + _NEWEST_ROWS:
        rows = [*rows[:_FIRST_ROWS], *rows[-_NEWEST_ROWS:]]
    return forwarded_calls(Transcript(transcript.captures, rows))


def hop_pairs(transcript: Transcript) -> set[tuple[int, int]]:
    """Return the captures of the two sides of each gateway, the one on its client's side first."""
    return {(call.outer.capture, call.last.capture) for call in transcript.hops.values()}


def stream_pairs(transcript: Transcript, joined: set[tuple[int, int]]) -> set[tuple[int, int]]:
    """Return the captures of the two sides of gateways that no call shows, as `hop_pairs` does.

    The outer one has no message, and all its streams became GETs of the inner one with the same paths. Where several captures fit,
    none does.
    """
    pairs: set[tuple[int, int]] = set()
    paired = {index for pair in joined for index in pair}
    streams = {info.index: _streams(info) for info in transcript.captures if info.transactions and info.index not in paired}
    for outer in transcript.captures:
        waiting = streams.get(outer.index)
        if not waiting or any(transaction.request_messages for transaction in outer.transactions.values()):
            continue
        fits = [
            inner.index
            for inner in transcript.captures
            if inner is not outer and inner.index in streams and _tapped(inner) != _tapped(outer)
            if all(any(_became(get, other) for other in streams[inner.index]) for get in waiting)
        ]
        pairs |= {(outer.index, fits[0])} if len(fits) == 1 else set()
    return pairs


def _streams(info: CaptureInfo) -> list[Transaction]:
    """Return the streams of events that clients opened with GET."""
    return [transaction for transaction in info.transactions.values() if transaction.method == "GET" and transaction.is_stream]


def _became(outer: Transaction, inner: Transaction) -> bool:
    """Tell whether a gateway may have made one GET of another: it came a little later, and was answered before."""
    if outer.response is None or inner.response is None or outer.target != inner.target:
        return False
    return 0 <= inner.at_ns - outer.at_ns <= _SOON_NS and inner.response.at_ns <= outer.response.at_ns


def hop_name(transcript: Transcript, capture: int) -> str:
    """Return the hop that a capture was recorded on, as in `claude ↔ gateway`; empty if it is not next to a known gateway."""
    info = transcript.captures[capture]
    for call in transcript.hops.values():
        if call.outer.capture == capture:
            return f"{info.client} ↔ {info.server}"
        if call.last.capture == capture:
            return f"{transcript.captures[call.outer.capture].server} ↔ {info.server}"
    return ""


def _joined(
    transcript: Transcript,
    outer: CaptureInfo,
    inner: CaptureInfo,
    calls: dict[int, list[Exchange]],
    *,
    is_known: bool,
) -> list[ForwardedCall]:
    """Join the calls of two captures; none if they do not show that there is a gateway between them."""
    clients = {row.row: inner.client_of(row) for row in calls[inner.index]}
    by_trace = _matched(_traced(calls[outer.index]), _traced(calls[inner.index]), _trace, clients)
    made = list(by_trace)
    for key in (_content, _method) if is_known else (_content,):
        done = {row.row for call in made for row in (call.outer, *call.inner)}
        outers, inners = ([row for row in calls[info.index] if row.row not in done] for info in (outer, inner))
        by_key = _matched(outers, inners, key, clients)
        made += [call for call in by_key if not (_trace(call.outer) and _trace(call.last))]
    if by_trace or is_known or _is_convincing(transcript, outer, inner, made, calls[inner.index]):
        return made
    return []


def _is_convincing(
    transcript: Transcript, outer: CaptureInfo, inner: CaptureInfo, joined: list[ForwardedCall], inners: list[Exchange]
) -> bool:
    """Tell whether calls that were joined by arguments and times alone did pass a gateway."""
    has_handshake = any(call.outer.method == _HANDSHAKE for call in joined)
    rows = {row.row for call in joined for row in call.inner if row.target or has_handshake}
    began_ns, ended_ns = outer.shift_ns, outer.shift_ns + outer.last_ns
    if any(row.target and row.row not in rows and began_ns <= row.at_ns <= ended_ns for row in inners):
        return False
    return len(rows) >= _FEWEST or (bool(rows) and not _server_names(transcript, outer).isdisjoint(inner.clients))


def _matched(
    outers: Sequence[Exchange], inners: Sequence[Exchange], key: Callable[[Exchange], Hashable], clients: dict[int, str]
) -> list[ForwardedCall]:
    """Join each inner call with the one outer call that it fits, if that has no other inner calls at the same time."""
    waiting: defaultdict[Hashable, list[Exchange]] = defaultdict(list)
    fitting: defaultdict[int, list[Exchange]] = defaultdict(list)
    unclear: set[int] = set()
    by_row = {row.row: row for row in outers}
    for row, is_inner in _by_time(outers, inners):
        place = key(row)
        waiting[place] = [other for other in waiting[place] if _end_ns(other) >= row.at_ns][-_MOST:]
        if not is_inner:
            waiting[place].append(row)
            continue
        fits = [other for other in waiting[place] if _fits(other, row)]
        if len(fits) == 1:
            fitting[fits[0].row].append(row)
        elif fits:
            unclear.update(other.row for other in fits)
    return [
        ForwardedCall(by_row[number], tuple(some))
        for number, some in fitting.items()
        if number not in unclear and _are_tries(some, clients)
    ]


def _by_time(outers: Iterable[Exchange], inners: Iterable[Exchange]) -> Iterator[tuple[Exchange, bool]]:
    """Yield the calls by time, each with whether it is an inner one."""
    both = [(row, False) for row in outers] + [(row, True) for row in inners]
    yield from sorted(both, key=lambda item: (item[0].at_ns, item[1]))


def _fits(outer: Exchange, inner: Exchange) -> bool:
    """Tell whether one call can be what the other became: its target, and the time of its answer."""
    if outer.response is not None and inner.response is not None and inner.response.at_ns > outer.response.at_ns:
        return False
    if outer.method == _HANDSHAKE and _server_info(outer) != _server_info(inner):
        return False
    wanted, made = outer.target or "", inner.target or ""
    if wanted == made:
        return True
    prefix = wanted.removesuffix(made)
    return bool(made) and prefix != wanted and prefix[-1] in _SEPARATORS


def _server_info(row: Exchange) -> object:
    return None if row.response is None else member(row.response.result, "serverInfo")


def _are_tries(inners: list[Exchange], clients: dict[int, str]) -> bool:
    """Tell whether one client made these calls one after the other, or sent one request several times."""
    if len({clients[row.row] for row in inners}) > 1:
        return False
    if len({row.request.raw for row in inners}) == 1:
        return True
    return all(_end_ns(sooner) <= later.at_ns for sooner, later in pairwise(inners))


def _may_be_hops(outer: CaptureInfo, inner: CaptureInfo) -> bool:
    """Tell whether these two taps may have sat on the two sides of a gateway. Taps of HTTP are not started by their clients."""
    if outer is inner or _tapped(outer) == _tapped(inner):
        return False
    if _parent(outer) == _parent(inner) != ("", "") and not (outer.transactions or inner.transactions):
        return False
    return inner.shift_ns <= outer.shift_ns + outer.last_ns and outer.shift_ns <= inner.shift_ns + inner.last_ns


def _server_names(transcript: Transcript, info: CaptureInfo) -> set[str]:
    """Return the names that a server has for its client: its label, and the one that it gave itself."""
    names = {info.label}
    for row in transcript.rows:
        if isinstance(row, Exchange) and row.capture == info.index and row.method == _HANDSHAKE and row.response is not None:
            names.add(str(member(_server_info(row), "name")))
    return names


def _forwardable(calls: list[Exchange], outer: CaptureInfo, inner: CaptureInfo) -> list[Exchange]:
    """Return the calls that a gateway between these two passes on: over HTTP on both sides, it may be a reverse proxy."""
    if outer.transactions and inner.transactions:
        return calls
    return [row for row in calls if row.method in _METHODS or row.method == _HANDSHAKE]


def _sessions(info: CaptureInfo) -> set[str]:
    """Return the sessions of HTTP in a capture. Where ids were redacted, equal ones have equal pseudonyms."""
    return {transaction.scope.session for transaction in info.transactions.values()} - {""}


def _traced(rows: list[Exchange]) -> list[Exchange]:
    return [row for row in rows if _trace(row)]


def _trace(row: Exchange) -> tuple[str, bytes] | None:
    found = _traceparent.search(row.request.raw)
    return None if found is None else (row.method, found[1])


def _method(row: Exchange) -> str:
    return row.method


def _content(row: Exchange) -> tuple[str, str]:
    """Return the method and the params in one spelling, without `_meta` and the name, which may have a prefix."""
    params = row.request.params
    kept = {name: params[name] for name in params if name not in ("_meta", "name")} if isinstance(params, dict) else params
    return row.method, json.dumps(kept or None, sort_keys=True)


def _end_ns(row: Exchange) -> float:
    took_ns, carrier = row.duration_ns, row.transaction
    if took_ns is None and carrier is not None and carrier.ended_ns is not None:
        return carrier.ended_ns
    return float("inf") if took_ns is None else row.at_ns + took_ns


def _parent(info: CaptureInfo) -> tuple[str, str]:
    parent = info.header.parent if info.header else {}
    return str(parent.get("pid", "")), str(parent.get("start", ""))


def _boot(info: CaptureInfo) -> str:
    return info.header.boot_id if info.header else ""


def _tapped(info: CaptureInfo) -> object:
    tapped = info.header.tapped if info.header else {}
    return tapped.get("argv") or tapped.get("url")
