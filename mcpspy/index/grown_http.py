"""The transactions of a capture of HTTP that has grown since its index was written: those of the index, and those that came since.

Transactions among the seeds take the place of those of the index, and the scopes of sessions are theirs. What came since may have
changed others only through the scope of their session; then there is no transcript.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, TypeVar, cast

from ..records import Close, Frame
from ..transcript.http.transaction import Scope, ScopeKind
from ..transcript.model import CaptureInfo, ChannelEvent, Row, UnpairedMessage
from .facts import Facts
from .http_seeds import is_in_part, is_over, is_response, resumes
from .places import NotIndexedError
from .transactions import IndexedCapture, RecordedFrames

T = TypeVar("T")

_OF_STREAMS: Final = (Close, Frame)


class SeededTransactions:
    """The transactions of the seeds, as they were when the index was written. `info` is that of the seeds, and of what came since."""

    __slots__ = ("_info", "_parts", "_scopes", "_streams", "_transactions", "open")

    def __init__(self, info: CaptureInfo) -> None:
        self._info = info
        self._transactions = dict(info.transactions)
        self._streams = dict(info.streams)
        self._parts = [
            (number, len(known.response.kept))
            for number, known in info.transactions.items()
            if known.response is not None and is_in_part(known)
        ]
        """Those of which some events are seeds, and the number of the frames that these have."""
        self._scopes = [(number, known.scope, _facts_of(known.scope)) for number, known in info.transactions.items()]
        self.open = {number for number, known in info.transactions.items() if not is_over(known)}
        """The numbers of those that may change."""

    def join(self, facts: Facts, source: IndexedCapture, stored: CaptureInfo, rows: Sequence[Row]) -> None:
        """Put the transactions and streams of the index into `info`. `rows` are those that came since.

        Raises: NotIndexedError: if what came since may concern other transactions of the index.
        """
        info = self._info
        if info.client != facts.info["client"] or self._is_changed() or any(_may_concern_others(row) for row in rows):
            raise NotIndexedError
        scopes = {_name(scope): scope for _, scope, _ in self._scopes}
        for at, scope in enumerate(source.scopes):
            source.scopes[at] = scopes[_name(scope)]
        for number, frames in self._parts:
            response, before = info.transactions[number].response, stored.transactions[number].response
            if response is not None and before is not None and isinstance(before.kept, RecordedFrames):
                response.kept = before.kept.grown(response.kept[frames:])
        later = [known for number, known in info.transactions.items() if number not in self._transactions]
        if any(map(resumes, later)):
            raise NotIndexedError
        info.known_clients = list(dict.fromkeys([*facts.clients, *(known.scope.client or info.client for known in later)]))
        transactions = _joined(stored.transactions, info.transactions, self._transactions)
        info.transactions = cast("dict[int, Any]", transactions)
        info.streams = cast("dict[int, Any]", _joined(stored.streams, info.streams, self._streams))
        source.transactions = transactions

    def _is_changed(self) -> bool:
        """Return whether a scope is another one, or has other facts, which other transactions may share."""
        transactions = self._info.transactions
        return any(
            transactions[number].scope is not scope or _facts_of(scope) != before for number, scope, before in self._scopes
        )


def _name(scope: Scope) -> tuple[ScopeKind, str, int]:
    """Return what is equal for one scope alone, if it is of several transactions."""
    return scope.kind, scope.session, scope.stream


def _facts_of(scope: Scope) -> object:
    return scope.kind, scope.session, scope.stream, scope.client, scope.unknown_since, scope.replaces, scope.unread


def _may_concern_others(row: Row) -> bool:
    """Return whether a row is of a stream that is not known, which may be over, or answers no request, or one that is not known."""
    if isinstance(row, UnpairedMessage):
        return is_response(row)
    return isinstance(row, ChannelEvent) and isinstance(row.record, _OF_STREAMS)


def _joined(stored: Mapping[int, T], now: Mapping[int, T], seeded: Mapping[int, T]) -> Mapping[int, T]:
    """Return what is `stored`, and what is known `now`. Raises: NotIndexedError: if a number was given again."""
    later = [number for number in now if number not in seeded]
    if any(now.get(number) is not value for number, value in seeded.items()) or any(number in stored for number in later):
        raise NotIndexedError
    return _Joined(stored, now, later)


class _Joined(Mapping[int, T]):
    """Stored items, some of which are known in another form, and those that came `later`."""

    __slots__ = ("_known", "_later", "_stored")

    def __init__(self, stored: Mapping[int, T], known: Mapping[int, T], later: Sequence[int]) -> None:
        self._stored = stored
        self._known = known
        self._later = later

    def __getitem__(self, number: int) -> T:
        known = self._known.get(number)
        return self._stored[number] if known is None else known

    def __contains__(self, number: object) -> bool:
        return number in self._known or number in self._stored

    def __iter__(self) -> Iterator[int]:
        yield from self._stored
        yield from self._later

    def __len__(self) -> int:
        return len(self._stored) + len(self._later)
