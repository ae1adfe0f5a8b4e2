"""A transcript as a Chrome trace for Perfetto and speedscope: a track for each server, with calls in lanes that do not overlap.

Source: the Trace Event Format. A bar shows the call, its outcome and its row, but no payload.
"""

from collections.abc import Iterable, Iterator
from heapq import heappop, heappush
from typing import Any, Final

from ...records import CLIENT, Exit, Spawn
from ...transcript.http.transaction import Transaction
from ...transcript.model import CaptureInfo, ChannelEvent, Exchange, ModelCall, Row, Transcript, UnpairedMessage
from ..text.escape import one_line
from ..text.json_text import as_json
from ..timeline.model_words import model_phrase
from ..timeline.phrases import event_phrase, outcome_phrase, unpaired_phrase
from ..timeline.transaction import transaction_phrase

_US_NS: Final = 1_000

_ROUNDING_NS: Final = 1
"""The smallest gap between two bars of a lane, because Perfetto rounds beginnings and durations separately."""

_KINDS: Final = ("calls", "server requests", "http")
"""The groups of lanes of a server: requests of the client, requests of the server, and HTTP that carries no message."""

_LANES_PER_KIND: Final = 10_000

_Bar = tuple[int, int, str, dict[str, Any]]
"""The beginning and the end of a bar, its name, and its arguments."""


def trace(transcript: Transcript, rows: Iterable[Row]) -> Iterator[str]:
    """Yield the text of the file, one event per line."""
    yield '{"displayTimeUnit":"ms","traceEvents":['
    separator = ""
    for event in _events(transcript, rows):
        yield separator + as_json(event)
        separator = ","
    yield "]}"


def _events(transcript: Transcript, rows: Iterable[Row]) -> Iterator[dict[str, Any]]:
    bars: dict[tuple[int, str], list[_Bar]] = {}
    for capture in transcript.captures:
        yield _name_event("process_name", capture.index + 1, 0, one_line(f"{capture.client} → {capture.server}"))
    for row in rows:
        capture = transcript.captures[row.capture]
        match row:
            case Exchange():
                bar = _bar(row, row.outcome.value, outcome_phrase(row).detail, capture, id=row.request.id)
                bars.setdefault((row.capture, _KINDS[0 if row.sender == CLIENT else 1]), []).append(bar)
                yield from _progress(row)
            case ModelCall():
                bars.setdefault((row.capture, _KINDS[0]), []).append(
                    _bar(row, row.outcome.value, model_phrase(row).detail, capture)
                )
                if row.first_ns is not None:
                    yield _point(row.capture, row.first_ns, "first token", {"row": row.row})
            case Transaction():
                phrase = transaction_phrase(row)
                bars.setdefault((row.capture, _KINDS[2]), []).append(_bar(row, phrase.word, phrase.detail, capture))
            case UnpairedMessage() | ChannelEvent():
                yield from _instant(row, capture)
    for (index, kind), bars_of_kind in bars.items():
        yield from _in_lanes(index, kind, bars_of_kind)


def _in_lanes(capture: int, kind: str, bars: list[_Bar]) -> Iterator[dict[str, Any]]:
    """Yield the bars, each in the first free lane."""
    free: list[int] = []
    busy: list[tuple[int, int]] = []
    count = 0
    first = 1 + _KINDS.index(kind) * _LANES_PER_KIND
    for begin_ns, end_ns, name, arguments in sorted(bars, key=lambda bar: bar[:2]):
        while busy and busy[0][0] + _ROUNDING_NS <= begin_ns:
            heappush(free, heappop(busy)[1])
        if free:
            lane = heappop(free)
        else:
            lane, count = first + count, count + 1
            title = kind if lane == first else f"{kind} {count}"
            yield _name_event("thread_name", capture + 1, lane, title)
        heappush(busy, (end_ns, lane))
        yield {
            "ph": "X", "pid": capture + 1, "tid": lane, "ts": begin_ns / _US_NS, "dur": (end_ns - begin_ns) / _US_NS, "name": name,
            "cat": kind, "args": arguments,
        }  # fmt: skip


def _bar(row: Exchange | ModelCall | Transaction, outcome: str, detail: str, capture: CaptureInfo, **more: Any) -> _Bar:
    end_ns = capture.last_ns + capture.shift_ns if row.duration_ns is None else row.at_ns + row.duration_ns
    arguments = {"row": row.row, **more, "outcome": outcome, "detail": detail}
    return row.at_ns, max(row.at_ns, end_ns), one_line(f"{row.method} {row.target or ''}".rstrip()), arguments


def _progress(row: Exchange) -> Iterator[dict[str, Any]]:
    for message in row.notifications:
        yield _point(row.capture, message.at_ns, one_line(message.method or ""), {"row": row.row})


def _instant(row: UnpairedMessage | ChannelEvent, capture: CaptureInfo) -> Iterator[dict[str, Any]]:
    if isinstance(row, UnpairedMessage):
        phrase = unpaired_phrase(row, capture)
        yield _point(row.capture, row.at_ns, phrase.word, {"row": row.row, "detail": phrase.detail})
    elif isinstance(row.record, Spawn | Exit) and (event := event_phrase(row.record, capture)) is not None:
        yield _point(row.capture, row.at_ns, event.word, {"detail": event.detail})


def _point(capture: int, at_ns: int, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    return {"ph": "i", "s": "p", "pid": capture + 1, "tid": 0, "ts": at_ns / _US_NS, "name": name, "args": arguments}


def _name_event(what: str, process: int, lane: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "name": what, "pid": process, "tid": lane, "args": {"name": name}}
