"""The numbers of a capture as an index keeps them, in MessagePack: counted once, when the index is written.

A list of durations is kept as its distribution. What a server offers is read again, from its lists.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final, Literal

import msgspec

from ..model import Exchange, Outcome, Row, Transcript
from ..offers.definitions import offers
from ..phases import lifecycles
from ..stored_rows import StoredRows
from .context import CallCosts, ToolCost
from .http import HttpNumbers
from .statistics import CallNumbers, ClientNumbers, Latency, NotificationNumbers, ServerNumbers, latency, numbers

if TYPE_CHECKING:
    from ..model import CaptureInfo

SECTION: Final = "numbers"
"""The section of an index that has them."""


class _CallEntry(msgspec.Struct, array_like=True):
    """The numbers of calls of one method, or of one target of it."""

    method: str
    target: str | None
    outcomes: dict[str, int]
    codes: dict[str, int]
    latency: Latency | None
    exchange_latency: Latency | None
    plain: dict[str, int]
    tokens: int | None
    by_target: list[_CallEntry]


class _ToolEntry(msgspec.Struct, array_like=True):
    """The calls of one tool, and the row of the largest result."""

    name: str
    calls: int
    result_bytes: int
    result_tokens: int
    largest: int | None
    largest_bytes: int


class _NumbersEntry(msgspec.Struct, kw_only=True):
    """The numbers of a capture, without its lifecycle and what its server offers."""

    calls: list[_CallEntry]
    requests: list[_CallEntry]
    latency: Latency | None
    tools: list[_ToolEntry]
    http: HttpNumbers | None
    notifications: list[tuple[Literal["client", "server"], str, int, int]]
    clients: list[ClientNumbers]
    plain: dict[str, int]
    sent_bytes: dict[Literal["client", "server"], int]


_PLAIN_OF_CALLS: Final = ("exchanges", "request_bytes", "response_bytes", "progress", "more_responses")
_PLAIN: Final = ("messages", "unmatched", "malformed", "log_lines", "log_bytes")

_decoder = msgspec.msgpack.Decoder(_NumbersEntry)


def numbers_entry(transcript: Transcript) -> bytes:
    """Return the numbers of the only capture of a transcript, as `known_numbers` takes them; empty for one of a model API."""
    (info,) = transcript.captures
    if info.is_model:
        return b""
    (server,) = numbers(transcript)
    return msgspec.msgpack.encode(
        _NumbersEntry(
            calls=list(map(_call_entry, server.calls)),
            requests=list(map(_call_entry, server.requests)),
            latency=latency(ns for call in server.calls for ns in call.durations_ns),
            tools=[_tool_entry(tool) for tool in server.cost.tools if tool.calls],
            http=server.http,
            notifications=[(some.sender, some.method, some.count, some.bytes) for some in server.notifications],
            clients=server.clients,
            plain={name: getattr(server, name) for name in _PLAIN},
            sent_bytes={**server.sent_bytes},
        )
    )


def known_numbers(transcript: Transcript, rows: list[Row] | None = None) -> list[ServerNumbers]:
    """Return the numbers of each capture: those of an index, if it has them, else those that are counted. `rows` as in `numbers`."""
    if rows is None and isinstance(transcript.rows, StoredRows):
        try:
            entry = _decoder.decode(transcript.rows.section(SECTION))
        except (ValueError, msgspec.MsgspecError, RecursionError):
            return numbers(transcript)
        return [_numbers(entry, transcript, transcript.captures[0])]
    return numbers(transcript, rows)


def _call_entry(calls: CallNumbers) -> _CallEntry:
    return _CallEntry(
        calls.method,
        calls.target,
        {outcome.value: count for outcome, count in calls.outcomes.items()},
        dict(calls.codes),
        calls.latency,
        calls.exchange_latency,
        {name: getattr(calls, name) for name in _PLAIN_OF_CALLS},
        calls.tokens,
        list(map(_call_entry, calls.by_target)),
    )


def _tool_entry(tool: ToolCost) -> _ToolEntry:
    largest = None if tool.largest is None else tool.largest.row
    return _ToolEntry(tool.name, tool.calls, tool.result_bytes, tool.result_tokens, largest, tool.largest_bytes)


def _numbers(entry: _NumbersEntry, transcript: Transcript, info: CaptureInfo) -> ServerNumbers:
    (cost,) = CallCosts([_tool(tool, transcript) for tool in entry.tools]).costs(offers(transcript))
    (lifecycle,) = lifecycles(transcript)
    return ServerNumbers(
        capture_info=info,
        cost=cost,
        http=entry.http,
        lifecycle=lifecycle,
        calls=list(map(_calls, entry.calls)),
        requests=list(map(_calls, entry.requests)),
        notifications=[
            NotificationNumbers(sender=sender, method=method, count=count, bytes=size)
            for sender, method, count, size in entry.notifications
        ],
        clients=entry.clients,
        sent_bytes=entry.sent_bytes,
        known_latency=entry.latency,
        messages=entry.plain["messages"],
        unmatched=entry.plain["unmatched"],
        malformed=entry.plain["malformed"],
        log_lines=entry.plain["log_lines"],
        log_bytes=entry.plain["log_bytes"],
    )


def _calls(entry: _CallEntry) -> CallNumbers:
    calls = CallNumbers(
        method=entry.method,
        target=entry.target,
        outcomes=Counter({Outcome(name): count for name, count in entry.outcomes.items()}),
        codes=Counter(entry.codes),
        tokens=entry.tokens,
        by_target=tuple(map(_calls, entry.by_target)),
        exchanges=entry.plain["exchanges"],
        request_bytes=entry.plain["request_bytes"],
        response_bytes=entry.plain["response_bytes"],
        progress=entry.plain["progress"],
        more_responses=entry.plain["more_responses"],
    )
    calls.__dict__.update(latency=entry.latency, exchange_latency=entry.exchange_latency)  # in the place of what is counted
    return calls


def _tool(entry: _ToolEntry, transcript: Transcript) -> ToolCost:
    row = None if entry.largest is None else transcript.row(entry.largest)
    return ToolCost(
        name=entry.name,
        calls=entry.calls,
        result_bytes=entry.result_bytes,
        result_tokens=entry.result_tokens,
        largest=row if isinstance(row, Exchange) else None,
        largest_bytes=entry.largest_bytes,
    )
