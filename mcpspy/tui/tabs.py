"""One row in detail: the tabs, and the lines of each, which are taken from a view when somebody scrolls to them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Final, NamedTuple

from ..records import CLIENT
from ..transcript.message import Kind, Message
from ..transcript.model import CaptureInfo, Exchange, Log, Numbered, Row, Transcript, UnpairedMessage
from ..views.text.escape import decoded, one_line, safe_text
from ..views.text.line import Line, fitted, plain
from ..views.text.units import duration, microseconds, size
from ..views.timeline.exchange import carrying_transactions, first_message, messages_of, raw_lines, row_lines
from ..views.timeline.findings import finding_lines, row_finding_lines
from ..views.timeline.logs import meanwhile
from ..views.timeline.phrases import event_phrase
from ..views.timeline.transaction import fact_lines
from .json_tree import JsonTree

RAW_BYTES: Final = 1 << 14
"""Raw bytes are made into lines in pieces of so many."""

FIRST_LINES: Final = 500


class Tab(NamedTuple):
    """A tab: its title, and the function that makes its content for a row."""

    title: str
    content: Callable[[Transcript, Row, int], JsonTree | TakenLines]


def _said(text: str) -> TakenLines:
    return TakenLines([[(text, "dim")]])


def _other(transcript: Transcript, row: Row, width: int) -> TakenLines:
    """Return a row that is no message."""
    if isinstance(row, Numbered):
        return TakenLines(row_lines(transcript, row, width=width))
    if isinstance(row, Log):
        return TakenLines(raw_lines(row.raw, width))
    phrase = event_phrase(row.record, transcript.captures[row.capture])
    return TakenLines([] if phrase is None else [phrase.line()])


def _message(message: Message, width: int) -> JsonTree | TakenLines:
    if message.kind is Kind.MALFORMED:
        reason: Line = [(safe_text(message.reason or "no JSON-RPC message"), "warn")]
        return TakenLines([fitted(reason, width), *raw_lines(message.raw[:RAW_BYTES], width)])
    return JsonTree(message.raw)


def request(transcript: Transcript, row: Row, width: int) -> JsonTree | TakenLines:
    """Return the request of a call, or a message that is alone in its row."""
    message = first_message(row) if isinstance(row, Numbered) else None
    return _other(transcript, row, width) if message is None else _message(message, width)


def response(transcript: Transcript, row: Row, width: int) -> JsonTree | TakenLines:
    """Return the answer to a call."""
    if isinstance(row, UnpairedMessage):
        return _said("This message is in no exchange; it is under Request.")
    if not isinstance(row, Exchange):
        return _said("This is no call: it has no answer.") if not isinstance(row, Numbered) else _other(transcript, row, width)
    if row.response is not None:
        return _message(row.response, width)
    return _said(waits_for(row, transcript.captures[row.capture]) or f"There is none: {row.outcome.value}.")


def waits_for(exchange: Exchange, info: CaptureInfo) -> str:
    """Say who a pending call waits for; empty for one that is over. A tap records a message when it sends it on."""
    if exchange.over or exchange.response is not None or exchange.cancelled is not None or info.closed:
        return ""
    if exchange.request.flaws:
        return f"It is still pending; {safe_text(', '.join(exchange.request.flaws))}."
    receiver = f"the server ({one_line(info.server)})" if exchange.sender == CLIENT else "the client"
    return f"Pending: {receiver} was sent this, and has not answered yet."


def http(transcript: Transcript, row: Row, width: int) -> TakenLines:
    """Return the HTTP transactions that carried a row, as they were on the wire."""
    carried = carrying_transactions(transcript, [row])
    if not carried:
        return _said("There is no HTTP here: it was recorded on stdio.")
    from ..views.timeline.http_wire import wire_lines  # which the first screen does not wait for

    return TakenLines(wire_lines(transcript, carried, width=width))


def timing(transcript: Transcript, row: Row, width: int) -> TakenLines:
    """Return the times of a row's messages, and what the server wrote meanwhile."""
    return TakenLines(_times(transcript, row, width) if isinstance(row, Numbered) else [[(f"at {_seconds(row.at_ns)}", "")]])


def _times(transcript: Transcript, row: Numbered, width: int) -> Iterator[Line]:
    info = transcript.captures[row.capture]
    if isinstance(row, Exchange):
        took = "no answer yet" if row.duration_ns is None else duration(row.duration_ns)
        yield [("took ", "dim"), (took, "strong")]
    for message in messages_of(row):
        arrow = "→ " if message.sender == "client" else "← "
        words = one_line(message.method or message.kind.value)
        after = f"  +{duration(message.at_ns - row.at_ns)}" if message.at_ns > row.at_ns else ""
        earlier = (
            f"  first byte {duration(message.at_ns - message.first_ns)} earlier" if message.first_ns < message.at_ns else ""
        )
        yield fitted(
            [(arrow, ""), (words, "strong"), (f"  at {_seconds(message.at_ns)}{after}{earlier}  {size(message.size)}", "dim")],
            width,
        )
    yield from _carriers(info, row, width)
    yield from meanwhile(transcript, row, width, stderr=True)


def _carriers(info: CaptureInfo, row: Numbered, width: int) -> Iterator[Line]:
    for transaction in info.transactions_of(row):
        yield []
        yield from (fitted(line, width) for line in fact_lines(transaction, info, width))


def _seconds(at_ns: int) -> str:
    return f"{microseconds(at_ns)} s"


def findings_of(transcript: Transcript, row: Row, width: int) -> TakenLines:
    """Return the findings about a row, else all others."""
    lines = list(row_finding_lines(transcript, row, width=width)) if isinstance(row, Numbered) else []
    if lines:
        return TakenLines(lines)
    pending = waits_for(row, transcript.captures[row.capture]) if isinstance(row, Exchange) else ""
    if pending:
        return _said(pending)
    if not transcript.findings:
        return _said("No findings.")
    heading: list[Line] = [[("None about this row. About others:", "dim")], []]
    return TakenLines([*heading, *(fitted(line, width) for line in finding_lines(transcript, width=width))])


def raw(transcript: Transcript, row: Row, width: int) -> TakenLines:
    """Return the bytes of a row's messages, dangerous ones spelled out."""
    if not isinstance(row, Numbered) or not messages_of(row):
        return _other(transcript, row, width)
    return TakenLines(line for message in messages_of(row) for line in _pieces(message.raw, width))


def _pieces(payload: bytes, width: int) -> Iterator[Line]:
    """Yield the lines of a payload, which may be long, without reading more than is looked at."""
    at = 0
    while at < len(payload):
        end = at + RAW_BYTES
        while end < len(payload) and payload[end] & 0xC0 == 0x80 and end < at + RAW_BYTES + 4:
            end += 1  # not within a character
        yield from raw_lines(payload[at:end], width)
        at = end


TABS: Final = (
    Tab("Request", request),
    Tab("Response", response),
    Tab("HTTP", http),
    Tab("Timing", timing),
    Tab("Findings", findings_of),
    Tab("Raw", raw),
)


def raw_text(message: Message) -> str:
    """Return a message as text, for the clipboard."""
    return decoded(message.raw).rstrip("\n")


class TakenLines:
    """Lines of which some are taken; `grow` takes more when the last are looked at."""

    def __init__(self, lines: Iterable[Line]) -> None:
        self._rest = iter(lines)
        self._lines = list(islice(self._rest, FIRST_LINES))
        self.hits: list[int] = []

    def __len__(self) -> int:
        return len(self._lines)

    def grow(self, at: int) -> bool:
        """Take more lines if `at` is among the last ones. Returns whether there were any."""
        before = len(self._lines)
        if at + FIRST_LINES // 2 >= before:
            self._lines += islice(self._rest, FIRST_LINES)
        return len(self._lines) > before

    def line(self, at: int, width: int) -> Line:
        """Return a line."""
        return self._lines[at]

    def mark(self, at: int) -> str:
        """Mark what was found."""
        return "●" if at in self.hits else ""

    def search(self, text: str) -> int:
        """Find the lines with a text, in upper or lower case. Returns their number."""
        self._lines += self._rest
        wanted = safe_text(text).lower()
        self.hits = [at for at, line in enumerate(self._lines) if wanted and wanted in plain(line).lower()]
        return len(self.hits)

    def reveal(self, hit: int) -> int:
        """Return the position of a hit."""
        return self.hits[hit]
