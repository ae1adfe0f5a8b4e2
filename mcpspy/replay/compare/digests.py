"""Digests of the rows of a capture, which its index keeps, so that a comparison reads only the rows that differ.

Equal digests mean equal calls. Unequal digests mean nothing: the bytes of equal values may differ. So calls with unequal digests are
read and compared.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Final, NamedTuple

from ...transcript.calls.call import CallPart
from ...transcript.http.transaction import DONE_EVENT
from ...transcript.model import Exchange, Kind, Row, Transcript, UnpairedMessage
from ...transcript.offers.definitions import LISTINGS
from ...transcript.stored_rows import StoredRows
from ...wire.json_spans import members
from ..json.canonical import canonical
from ..mock.content import VOLATILE, answer_bytes, answer_reading, params_bytes, params_value
from .ignore import Ignore, without_ignored
from .messages import compared_messages, content_key, event_rows, transports

SECTION: Final = "digests"
"""The section of an index that has them."""

CALL: Final = 1
COUNTED: Final = 2
PRESENT: Final = 3
NOISE: Final = 4
"""Kinds of rows: calls, messages whose number counts, messages that only have to be there, what is no message. 0: not compared."""

_VOLATILE_NAMES: Final = frozenset((
    "requestState", "cursor", "nextCursor", "taskId", "task", "createdAt", "lastUpdatedAt", "elicitationId",
))  # fmt: skip
"""Members of params and results of which an ignore rule may leave out a part; `_meta` may be anywhere."""


class RowDigests(NamedTuple):
    """The digests of all rows, in their order.

    `kinds` has a byte for each row, `asked` and `answered` 64 bits. `asked` is of the sender, the method and the params of a call,
    or of the content of another message, `answered` of the outcome and the answer.
    """

    kinds: bytes
    asked: bytes
    answered: bytes
    transports: bytes


_NO_DIGEST: Final = bytes(8)
_NOTHING: Final = 0, _NO_DIGEST, _NO_DIGEST
_COUNT_BYTES: Final = 8
_ROW_BYTES: Final = 1 + 8 + 8


def digests_entry(transcript: Transcript) -> bytes:
    """Return the digests of the only capture of a transcript, for its index; empty if it has none."""
    digests = digests_of(transcript)
    if digests is None:
        return b""
    return b"".join([len(digests.kinds).to_bytes(_COUNT_BYTES, "big"), *digests])


def known_digests(transcript: Transcript) -> RowDigests | None:
    """Return the digests of the only capture of a transcript, from its index if it has one; None if there are none."""
    if not isinstance(transcript.rows, StoredRows):
        return digests_of(transcript)
    try:
        data = transcript.rows.section(SECTION)
    except ValueError:
        return None
    count = int.from_bytes(data[:_COUNT_BYTES], "big")
    if count != len(transcript.rows) or len(data) < _COUNT_BYTES + _ROW_BYTES * count:
        return None
    asked_at, answered_at, end = (_COUNT_BYTES + width * count for width in (1, 9, _ROW_BYTES))
    return RowDigests(data[_COUNT_BYTES:asked_at], data[asked_at:answered_at], data[answered_at:end], data[end:])


def digests_of(transcript: Transcript) -> RowDigests | None:
    """Make the digests; None for captures that have to be read: of a model API, or with events that are no messages."""
    if len(transcript.captures) != 1:
        return None
    (info,) = transcript.captures
    if info.is_model or (info.transactions and event_rows(transcript, info)):
        return None
    maker = _Maker(transcript)
    kinds, asked, answered = bytearray(), bytearray(), bytearray()
    for row in transcript.rows:
        kind, question, answer = maker.of(row)
        kinds.append(kind)
        asked += question
        answered += answer
    return RowDigests(bytes(kinds), bytes(asked), bytes(answered), bytes(sorted(transports(info))))


class _Maker:
    """A maker of the digests of rows of one capture."""

    __slots__ = ("_info", "_rules")

    def __init__(self, transcript: Transcript) -> None:
        self._info = transcript.captures[0]
        self._rules = Ignore.of(VOLATILE)

    def of(self, row: Row) -> tuple[int, bytes, bytes]:
        """Return the kind of a row, and its digests."""
        if isinstance(row, Exchange):
            call = self._info.calls.get(row.row)
            is_poll = call is not None and call.part(row) is CallPart.POLL and row is not call.polls[-1]
            return _NOTHING if row.is_by_mcpspy or is_poll else (CALL, self._asked(row), self._answered(row))
        if isinstance(row, UnpairedMessage) and compared_messages(self._info, [row]):
            kind, content = content_key(row, self._rules)
            return _kind(kind), _digest(kind, _encoded(content)), _NO_DIGEST
        return _NOTHING

    def _asked(self, row: Exchange) -> bytes:
        params = params_bytes(row.request) or b"{}"
        if _may_vary(params):
            params = _encoded(canonical(without_ignored(params_value(row.request), self._rules)))
        return _digest(f"{row.sender} {row.method}", params)

    def _answered(self, row: Exchange) -> bytes:
        if row.method in LISTINGS:
            return _digest(row.outcome.value, b"")  # what they list is compared by itself
        answer = answer_bytes(row)
        if _may_vary(answer[max(answer.find(b"{"), 0) :]):
            answer = _encoded(canonical(without_ignored(answer_reading(row).value, self._rules)))
        return _digest(row.outcome.value, answer + (b"\0progress" if row.progress else b""))


def _kind(kind: str) -> int:
    if kind in (Kind.RESULT, Kind.ERROR, DONE_EVENT):
        return COUNTED
    return NOISE if kind == Kind.MALFORMED else PRESENT


def _may_vary(value: bytes) -> bool:
    """Return whether an ignore rule may leave out a part of a value, or a name is spelled with escapes."""
    return b"_meta" in value or b"\\u" in value or not _VOLATILE_NAMES.isdisjoint(members(value))


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _digest(name: str, content: bytes) -> bytes:
    return blake2b(b"%b\0%b" % (_encoded(name), content), digest_size=8).digest()
