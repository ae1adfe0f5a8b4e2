"""The transcript of one capture to the rows of all tables."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ..transcript.model import CaptureInfo, Exchange, ModelCall, Row, Transcript, UnpairedMessage
from .batches import BATCH_ROWS, Sink, TableBatches, TextMask
from .call_rows import CallRows
from .capture_rows import (
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


class CaptureTables:
    """All tables of one capture, handed to a sink in batches. Call `write` or `write_unreadable` once."""

    __slots__ = ("_capture_id", "_file", "_mask", "_payloads", "_size_bytes", "_tables")

    def __init__(
        self, capture_id: str, file: str, size_bytes: int, sink: Sink, mask: TextMask, *, payloads: bool = False
    ) -> None:
        self._capture_id = capture_id
        self._file = file
        self._size_bytes = size_bytes
        self._mask = mask
        self._payloads = payloads
        self._tables = {name: TableBatches(name, sink, mask, payloads=payloads) for name in TABLES}

    def write(self, transcript: Transcript) -> None:
        """Hand over everything in a transcript of this one capture."""
        info = transcript.captures[0] if transcript.captures else CaptureInfo(0)
        began_ns = 0 if info.header is None else info.header.wall_ns
        payload = self._mask.payload if self._payloads else None
        peers = Peers()
        self._rows(transcript.rows, info, began_ns, peers)
        for name, rows in (
            ("findings", finding_rows(self._capture_id, transcript, began_ns)),
            ("definitions", definition_rows(self._capture_id, transcript, began_ns, payload)),
            ("transactions", transaction_rows(self._capture_id, info, began_ns)),
        ):
            table = self._tables[name]
            for row in rows:
                table.feed(row)
        for name, table in self._tables.items():
            if name != "captures":
                table.close()
        calls = self._tables["calls"].count
        self._end(capture_row(self._capture_id, self._file, self._size_bytes, transcript, peers, calls))

    def write_unreadable(self, problem: str) -> None:
        """Hand over the row of a file that cannot be read, for a reason."""
        self._end(unreadable_capture_row(self._capture_id, self._file, self._size_bytes, problem))

    def _end(self, row: tuple[object, ...]) -> None:
        self._tables["captures"].feed(row)
        self._tables["captures"].close()

    def _rows(self, rows: Iterable[Row], info: CaptureInfo, began_ns: int, peers: Peers) -> None:
        payload = self._mask.payload if self._payloads else None
        made = CallRows(self._capture_id, info, began_ns, payload)
        messages, calls, models = (self._tables[name] for name in ("messages", "calls", "model_calls"))
        held_bytes = 0
        for row in rows:
            if isinstance(row, Exchange):
                made.add_messages(row, messages.rows)
                calls.rows.append(made.call(row))
                if not peers.is_done or peers.client_version is None:
                    peers.feed(row)
            elif isinstance(row, UnpairedMessage):
                made.add_messages(row, messages.rows)
            elif isinstance(row, ModelCall):
                models.feed(model_call_row(self._capture_id, row, info, began_ns, payload))
            else:
                continue
            if payload is not None:
                held_bytes += _payload_bytes(row)
            if len(messages.rows) >= BATCH_ROWS or held_bytes >= BATCH_BYTES:
                held_bytes = 0
                for table in (messages, calls, models):
                    table.close()


def _payload_bytes(row: Exchange | UnpairedMessage | ModelCall) -> int:
    if isinstance(row, ModelCall):
        return len(row.payload)
    return sum(len(message.raw) for message in (row.messages if isinstance(row, Exchange) else (row.message,)))
