"""Comparison of the two hops of a forwarded call: what the gateway changed, and what it dropped."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from ...records import SERVER
from ...transcript.exchange import Exchange, ForwardedCall
from ...transcript.message import Message
from ..mock.content import VOLATILE, answer_reading, params_reading
from .difference import NO_DIFFERENCES, Difference, Differences, differences
from .ignore import Ignore

_IGNORED = Ignore.of([*VOLATILE, "$.name", "$._meta"])
"""The row shows the name that the gateway called; `_meta` belongs to each hop, but for the progress token."""

_PROGRESS = "notifications/progress"


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
