"""The transcript of one capture to the rows of all tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import islice
from typing import Final

from ..transcript.model import CaptureInfo, Exchange, ModelCall, Row, Transcript, UnpairedMessage
from .batches import Sink, TableBatches, TextMask
from .files import LAST
from .rows import (
    CallRows,
    Peers,
    capture_row,
    definition_rows,
    finding_rows,
    model_call_row,
    transaction_rows,
    unreadable_capture_row,
)
from .schema import TABLES

BATCH_BYTES: Final = 8_000_000
"""Payloads of this size are handed over, however few they are."""

ROWS_AT_ONCE: Final = 1_000
"""So many rows become columns together. With payloads only one does, because it may be large."""


class CaptureTables:
    """All tables of one capture, handed to a sink in batches. Call `write` or `write_unreadable` once."""

    __slots__ = ("_capture_id", "_file", "_mask", "_payloads", "_size_bytes", "_tables")

    def __init__(
        self,
        capture_id: str,
        file: str,
        size_bytes: int,
        sink: Sink,
        mask: TextMask,
        *,
        payloads: bool = False,
    ) -> None:
        self._capture_id = capture_id
        self._file = file
        self._size_bytes = size_bytes
        self._mask = mask
        self._payloads = payloads
        self._tables = {name: TableBatches(name, sink, mask, payloads=payloads) for name in TABLES}

    @property
    def _payload(self) -> Callable[[bytes], str] | None:
        return self._mask.payload if self._payloads else None

    def write(self, transcript: Transcript) -> None:
        """Hand over everything in a transcript of this one capture."""
        rows = RowTables(self._capture_id, transcript, self._tables, self._payload)
        rows.feed(transcript.rows)
        info = transcript.captures[0] if transcript.captures else CaptureInfo(0)
        began_ns = 0 if info.header is None else info.header.wall_ns
        for name, more in (
            ("findings", finding_rows(self._capture_id, transcript, began_ns)),
            ("definitions", definition_rows(self._capture_id, transcript, began_ns, self._payload)),
            ("transactions", transaction_rows(self._capture_id, info, began_ns)),
        ):
            table = self._tables[name]
            for row in more:
                table.feed(row)
        for name, table in self._tables.items():
            if name != LAST:
                table.close()
        calls = self._tables["calls"].count
        self._end(capture_row(self._capture_id, self._file, self._size_bytes, transcript, rows.peers, calls))

    def write_unreadable(self, problem: str) -> None:
        """Hand over the row of a file that cannot be read, for a reason."""
        self._end(unreadable_capture_row(self._capture_id, self._file, self._size_bytes, problem))

    def _end(self, row: tuple[object, ...]) -> None:
        self._tables[LAST].feed(row)
        self._tables[LAST].close()


class RowTables:
    """Rows of a transcript of one capture to the tables that have a row for each message, call or model call."""

    __slots__ = ("_calls", "_capture_id", "_held_bytes", "_made", "_messages", "_models", "_payload", "_transcript", "peers")

    def __init__(
        self, capture_id: str, transcript: Transcript, tables: dict[str, TableBatches], payload: Callable[[bytes], str] | None
    ) -> None:
        self._capture_id = capture_id
        self._transcript = transcript
        self._messages, self._calls, self._models = (tables[name] for name in ("messages", "calls", "model_calls"))
        self._payload = payload
        self._made: CallRows | None = None
        self._held_bytes = 0
        self.peers = Peers()

    def feed(self, rows: Iterable[Row]) -> None:
        """Take the next rows, which do not change any more."""
        left = iter(rows)
        while some := list(islice(left, ROWS_AT_ONCE if self._payload is None else 1)):
            self._feed(some)

    def _feed(self, rows: list[Row]) -> None:
        info = self._transcript.captures[0]
        began_ns = 0 if info.header is None else info.header.wall_ns
        if self._made is None:
            self._made = CallRows(self._capture_id, info, began_ns, self._payload)
        with_messages = [row for row in rows if isinstance(row, Exchange | UnpairedMessage)]
        exchanges = [row for row in with_messages if isinstance(row, Exchange)]
        if with_messages:
            self._messages.extend(self._made.messages(with_messages))
        if exchanges:
            self._calls.extend(self._made.calls(exchanges))
        for exchange in exchanges if not self.peers.is_done or self.peers.client_version is None else ():
            self.peers.feed(exchange)
        for row in rows if len(rows) > len(with_messages) else ():
            if isinstance(row, ModelCall):
                self._models.feed(model_call_row(self._capture_id, row, info, began_ns, self._payload))
        if self._payload is not None:
            self._hold(sum(map(_payload_bytes, rows)))

    def _hold(self, payload_bytes: int) -> None:
        """Note that tables got payloads of this size, and hand them over if there are many."""
        self._held_bytes += payload_bytes
        if self._held_bytes >= BATCH_BYTES:
            self._held_bytes = 0
            for table in (self._messages, self._calls, self._models):
                table.close()


def _payload_bytes(row: Row) -> int:
    if isinstance(row, ModelCall):
        return len(row.payload)
    if isinstance(row, UnpairedMessage):
        return len(row.message.raw)
    return sum(len(message.raw) for message in row.messages) if isinstance(row, Exchange) else 0
