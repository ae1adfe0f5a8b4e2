"""Comparison of the two sides of a gateway: what it changed and dropped in one call, and each row with the rows that it became."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ...records import CLIENT, SERVER
from ...transcript.exchange import ForwardedCall
from ...transcript.findings.gateway_differences import lost_fields, passed_on
from ...transcript.findings.hop_counterparts import Counterparts
from ...transcript.hops import hop_pairs
from ...transcript.http.transaction import Transaction
from ...transcript.mcp.methods import OPENINGS, PING
from ...transcript.message import Message
from ...transcript.model import CaptureInfo, Exchange, Numbered, Transcript, UnpairedMessage
from ..mock.content import VOLATILE, answer_reading, params_reading
from .difference import NO_DIFFERENCES, Difference, Differences, differences
from .ignore import Ignore

_IGNORED = Ignore.of([*VOLATILE, "$.name", "$._meta"])
"""The row shows the name that the gateway called; `_meta` belongs to each hop, but for the progress token."""

_PROGRESS = "notifications/progress"


@dataclass(frozen=True, slots=True, kw_only=True)
class PassedRow:
    """A row and what the gateway made of it. `sender` rows are on the side that a message came from, `receiver` rows on the other.

    `reason` is a clause on the delivery: `it held the answer of server in row 8 back for 2.1 s`. `fields` are lost header fields.
    """

    sender: tuple[Numbered, ...]
    receiver: tuple[Numbered, ...]
    call: ForwardedCall | None = None
    params: Differences = NO_DIFFERENCES
    answer: Differences = NO_DIFFERENCES
    dropped: Counter[str] = field(default_factory=Counter)
    reason: str = ""
    fields: tuple[str, ...] = ()

    @property
    def different(self) -> bool:
        """True if the gateway changed it, withheld it or made it."""
        return (
            not self.sender
            or not self.receiver
            or bool(self.params or self.answer or self.dropped or self.reason or self.fields)
        )

    @property
    def first(self) -> Numbered:
        """The row to name it by."""
        return (self.sender or self.receiver)[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayComparison:
    """The two sides of one gateway: `outer` is its client's, `inner` its server's."""

    transcript: Transcript
    outer: CaptureInfo
    inner: CaptureInfo
    rows: list[PassedRow]

    @property
    def different(self) -> bool:
        """True if the gateway did more than pass on."""
        return any(row.different for row in self.rows)


def compared_gateway(transcript: Transcript) -> GatewayComparison | None:
    """Compare the two captures of a transcript; None if they are not the two sides of a gateway."""
    pairs = hop_pairs(transcript)
    if len(transcript.captures) != 2 or len(pairs) != 1:
        return None
    ((outer, inner),) = pairs
    rows = list(_rows(transcript, outer, inner))
    return GatewayComparison(
        transcript=transcript, outer=transcript.captures[outer], inner=transcript.captures[inner], rows=rows
    )


def _rows(transcript: Transcript, outer: int, inner: int) -> Iterator[PassedRow]:
    """Yield what either side sent first, in the order of time, and what only one side has."""
    counterparts = Counterparts(transcript, {(outer, inner)})
    is_transparent = counterparts.is_transparent(outer)
    server = transcript.captures[inner].server
    for row in transcript.rows:
        if not isinstance(row, Exchange | UnpairedMessage | Transaction):
            continue
        others, is_outer = counterparts.of(row), row.capture == outer
        if _is_from_client(row) is not is_outer:
            if not others and (is_transparent or _is_forwarded(row)):
                yield PassedRow(sender=(), receiver=(row,))
            continue
        if not others:
            if is_transparent:
                yield PassedRow(sender=(row,), receiver=())
            continue
        reason = passed_on(row, others[-1], server, is_transparent=is_transparent) if is_outer else ""
        fields = lost_fields(row, others[-1]) if is_outer else ()
        call = transcript.hops.get(row.row) if isinstance(row, Exchange) else None
        changes = None if call is None else hop_changes(call)
        yield PassedRow(
            sender=(row,), receiver=others, call=call, reason=reason, fields=fields,
            params=NO_DIFFERENCES if changes is None else changes.params,
            answer=NO_DIFFERENCES if changes is None else changes.answer,
            dropped=Counter() if changes is None else changes.dropped,
        )  # fmt: skip


def _is_forwarded(row: Numbered) -> bool:
    """Tell whether a gateway makes such a request for a client; it has handshakes and pings of its own."""
    return isinstance(row, Exchange) and row.sender == CLIENT and row.method not in (*OPENINGS, PING)


def _is_from_client(row: Numbered) -> bool:
    if isinstance(row, UnpairedMessage):
        return row.message.sender == CLIENT
    return not isinstance(row, Exchange) or row.sender == CLIENT


@dataclass(frozen=True, slots=True, kw_only=True)
class HopChanges:
    """The differences that a gateway made: of `params` on the way to the server, of the `answer` on the way back.

    `dropped` counts the server's notifications about the call that the client did not get, by method.
    """

    params: Differences = NO_DIFFERENCES
    answer: Differences = NO_DIFFERENCES
    dropped: Counter[str] = field(default_factory=Counter)


def hop_changes(call: ForwardedCall) -> HopChanges:
    """Compare the hops of a forwarded call. Of answers only those that both hops have are compared."""
    outer, inner = call.outer, call.last
    params = differences(params_reading(outer.request).value, params_reading(inner.request).value, _IGNORED)
    token = None if inner.request.correlation_key is not None else _progress_token(outer.request)
    if token is not None:
        left_out = Difference(steps=("_meta", "progressToken"), how="removed", before=token)
        params = Differences(listed=(*params.listed, left_out), count=params.count + 1)
    has_both = all(row.response is not None and not row.response.unkept_bytes for row in (outer, inner))
    answer = differences(answer_reading(inner).value, answer_reading(outer).value, _IGNORED) if has_both else NO_DIFFERENCES
    return HopChanges(params=params, answer=answer, dropped=_sent(inner, outer) - _sent(outer, outer))


def _progress_token(request: Message) -> Any:
    """Return the token by which a client wants to hear of progress; None if it wants to hear of none."""
    meta = request.params.get("_meta") if isinstance(request.params, dict) else None
    return meta.get("progressToken") if isinstance(meta, dict) else None


def _sent(row: Exchange, outer: Exchange) -> Counter[str]:
    """Count what the server sent about a call; progress only if the client asked for it."""
    methods = (message.method or "" for message in row.notifications if message.sender == SERVER)
    return Counter(method for method in methods if method != _PROGRESS or outer.request.correlation_key is not None)
