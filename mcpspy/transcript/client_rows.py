"""The rows of one client process, of captures over HTTP that several clients share; and the findings about them.

A tap notes which process has which connection, where it could find out; `clients` has more. What may be of several clients is in
the recording of each, so that it is in one at least.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

from .clients import KnownClients
from .model import CaptureInfo, Numbered, Row, Transcript

if TYPE_CHECKING:
    from .clients import ClientKey
    from .findings.rule import Finding
    from .http.transaction import Transaction

NOTED_NS = 2_000_000_000
"""A tap notes the process of a connection sooner, or never."""


class ClientRows:
    """The rows of `transcript` without those of other clients. `keys` has the client of each capture that is to be divided."""

    __slots__ = ("_carriers", "_clients", "_keys", "_numbers", "_transcript")

    def __init__(self, transcript: Transcript, keys: Mapping[int, ClientKey]) -> None:
        self._transcript = transcript
        self._keys = keys
        self._clients = {at: KnownClients(transcript.captures[at]) for at in keys if at < len(transcript.captures)}
        self._numbers: set[int] | None = None
        self._carriers: dict[int, dict[int, Transaction]] = {}
        """The transactions of captures, by the records that opened their streams."""

    @property
    def rows(self) -> list[Row]:
        """The rows of the transcript that are this client's, and those of captures that are not divided."""
        return [row for row in self._transcript.rows if self.has(row)]

    @property
    def transcript(self) -> Transcript:
        """A transcript of these rows, whose captures have the transactions of this client only. It has no findings."""
        captures = [self._of_client(info) for info in self._transcript.captures]
        whole = self._transcript
        return Transcript(captures, self.rows, [], whole.hops, whole.credentials, whole.limits)

    def has(self, row: Row) -> bool:
        """Return whether a row may be this client's. Where nothing is known of a connection yet, only if no other client is known."""
        key = self._keys.get(row.capture)
        if key is None or not isinstance(row, Numbered):
            return True
        info = self._transcript.captures[row.capture]
        return self._is_of(key, info.transactions_of(row), info)

    def is_about(self, finding: Finding) -> bool:
        """Return whether a finding is about one of the rows; or about no row, and not about another client's transaction."""
        if finding.row is not None:
            if self._numbers is None:
                self._numbers = {row.row for row in self.rows if isinstance(row, Numbered)}
            return finding.row in self._numbers
        key = self._keys.get(finding.capture)
        if key is None:
            return True
        info = self._transcript.captures[finding.capture]
        if finding.capture not in self._carriers:
            self._carriers[finding.capture] = _carriers(info)
        carrier = self._carriers[finding.capture].get(finding.number)
        return carrier is None or self._is_of(key, [carrier], info)

    def _of_client(self, info: CaptureInfo) -> CaptureInfo:
        key = self._keys.get(info.index)
        if key is None:
            return info
        numbered = info.transactions.items()
        own = {number: transaction for number, transaction in numbered if self._is_of(key, [transaction], info)}
        return msgspec.structs.replace(info, transactions=own)

    def _is_of(self, key: ClientKey, transactions: list[Transaction], info: CaptureInfo) -> bool:
        owners = {self._clients[info.index].process_of(transaction) for transaction in transactions} - {None}
        if owners:
            return key in owners
        now_ns = info.last_ns + info.shift_ns if info.now_ns is None else info.now_ns
        is_noted = info.closed or all(now_ns - transaction.at_ns > NOTED_NS for transaction in transactions)
        return is_noted or set(info.client_processes.values()) <= {key}


def _carriers(info: CaptureInfo) -> dict[int, Transaction]:
    carriers: dict[int, Transaction] = {}
    for transaction in info.transactions.values():
        carriers.update((stream.record, transaction) for stream in transaction.streams)
    return carriers
