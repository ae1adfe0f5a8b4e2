"""The lines below a call that a gateway forwarded: the hop to the server, the gateway's share of the time, and its changes."""

from collections.abc import Iterable, Iterator

from ...replay.compare.difference import Differences
from ...replay.compare.gateway import HopChanges, hop_changes
from ...transcript.exchange import ForwardedCall
from ...transcript.model import HTTP_ERRORS, CaptureInfo, Numbered, Row, Transcript
from ..text.escape import one_line, safe_text
from ..text.line import Line
from ..text.units import counted, duration
from .phrases import status_words

_MAX_PATHS = 2
"""So many changed places are named in a line; more are counted."""


def shown_hops(transcript: Transcript, rows: Iterable[Row]) -> dict[int, ForwardedCall]:
    """Return the forwarded calls whose first hop is among `rows`, so that the other hops can be shown below it."""
    numbers = {row.row for row in rows if isinstance(row, Numbered)}
    return {number: call for number, call in transcript.hops.items() if call.outer.row in numbers}


def hop_lines(call: ForwardedCall, captures: list[CaptureInfo]) -> Iterator[Line]:
    """Yield `→ add row 6: 11.7 ms, gateway 169 ms, 93 %`, and a line for each kind of change that the gateway made."""
    server, gateway = (safe_text(captures[row.capture].server) for row in (call.last, call.outer))
    rows = ", ".join(str(row.row) for row in call.inner)
    words = f"→ {server} {'row' if len(call.inner) == 1 else 'rows'} {rows}: {_answered(call)}"
    if call.gateway_ns is not None and call.outer.duration_ns:
        share = round(100 * call.gateway_ns / call.outer.duration_ns)
        words += f", {gateway} {duration(call.gateway_ns)}, {share} %"
    yield [(words, "dim")]
    changes = change_words(hop_changes(call))
    if call.outer.response is None and call.last.response is not None:
        changes.append("did not pass the answer on")
    yield from ([(f"{gateway} {change}", "warn")] for change in changes)


def change_words(changes: HopChanges) -> list[str]:
    """Return phrases for what a gateway changed and dropped: `changed the params: $.arguments.a`."""
    words = []
    if changes.params:
        words.append(f"changed the params: {_places(changes.params)}")
    if changes.answer:
        words.append(f"changed the answer: {_places(changes.answer)}")
    words += [f"dropped {one_line(method)} ×{count:,}" for method, count in changes.dropped.items()]
    return words


def _places(differences: Differences) -> str:
    if differences.count > _MAX_PATHS:
        return counted(differences.count, "place")
    return ", ".join(one_line(difference.path) for difference in differences.listed)


def _answered(call: ForwardedCall) -> str:
    """Return how long the server took, or the status with which it refused the call: `404 Not Found`."""
    if call.server_ns is not None:
        return duration(call.server_ns)
    refusal, response = call.last.transaction, call.last.response
    return "no answer" if refusal is None or response is not None or refusal.status < HTTP_ERRORS else status_words(refusal)
