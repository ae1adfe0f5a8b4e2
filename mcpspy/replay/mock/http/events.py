"""How a recorded server wrote its events: what of it a client may see, beside the messages in them.

Refuses comments: they keep a connection alive, and say nothing.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Final

from ....wire.sse import Event, parse
from .answer import EventStyle

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from .exchanges import Recorded

MAX_LOOKED_AT: Final = 1_000
"""So many events show how a server writes them: it writes all alike."""


def events_of(every: Iterable[Recorded]) -> EventStyle:
    """The style of all streams of these transactions; that of the official SDKs if they bring none."""
    style = EventStyle()
    found = list(islice(_events(every), MAX_LOOKED_AT))
    told = [event for event, _ in found if event.data]
    if not told:
        return style
    retries = [event.retry_ms for event, _ in found if event.retry_ms is not None]
    return EventStyle(
        ids=any(event.id for event in told),
        primes=any(event.id and event.data == b"" for event, _ in found),
        retry_ms=retries[0] if retries else None,
        is_crlf=any(raw.endswith(b"\r\n") for event, raw in found if event.data),
        names_type=any(b"event:" in raw for event, raw in found if event.data and event.type == "message"),
    )


def _events(every: Iterable[Recorded]) -> Iterator[tuple[Event, bytes]]:
    """The events of streams, and their bytes. Parts of long ones are left out."""
    for one in every:
        response = one.transaction.response
        if response is None or response.opened.framing != "sse":
            continue
        for at, frame in enumerate(response.kept):
            if not frame.part and len(frame.data) < 1_000_000:
                yield parse(frame.data, is_first=at == 0), frame.data
