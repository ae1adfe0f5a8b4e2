"""HTTP's records on the model's leg to rows: a model call for each prompt, a transaction for whatever else passes.

The counterpart of `transactions`, without sessions, scopes and JSON-RPC, which a model's API does not know. A machine like all
stages: a record goes in, the rows that are new or changed come out. Refuses to know how an API spells what is in a body.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from ...records import CLIENT
from ..correlate import appended
from ..http.chunks import Chunks
from ..http.head import Head, read_head
from ..http.transaction import MAX_INJECTED_BYTES, Anomaly, Scope, ScopeKind, Stream, Transaction
from .apis import api_of, prompt
from .bodies import AnswerDecoder, Payload
from .call import ModelCall
from .conversations import Conversations

if TYPE_CHECKING:
    from ...records import Close, Frame, Note, Open
    from ..model import CaptureInfo, Row

_HTTP_OK: Final = 200
_SWITCHING_PROTOCOLS: Final = 101


class _Work:
    """A transaction that goes on: what is asked, and what is made of the answer."""

    __slots__ = ("answering", "asked", "call", "head", "transaction")

    def __init__(self, transaction: Transaction, head: Head) -> None:
        self.transaction = transaction
        self.head = head
        self.asked = Payload(head)
        self.call: ModelCall | None = None
        self.answering: AnswerDecoder | None = None

    @property
    def rows(self) -> list[Row]:
        """The row that changes with it."""
        if self.call is not None:
            return [self.call]
        return [self.transaction] if self.transaction.row else []


class _Body:
    """A stream that goes on."""

    __slots__ = ("chunks", "stream", "work")

    def __init__(self, stream: Stream, work: _Work) -> None:
        self.stream = stream
        self.work = work
        self.chunks = Chunks()


class ModelLeg:
    """The traffic of the capture `source`. New rows go into `rows`, numbered by `next_row`.

    `frame`, `close` and `note` return None for records that are not HTTP's. `keeps_frames` says that streams keep their frames.
    """

    __slots__ = ("_bodies", "_conversations", "_keeps_frames", "_next_row", "_rows", "_source", "_works")

    def __init__(self, source: CaptureInfo, rows: list[Row], next_row: Callable[[], int], *, keeps_frames: bool) -> None:
        self._source = source
        self._rows = rows
        self._next_row = next_row
        self._keeps_frames = keeps_frames
        self._conversations = Conversations()
        self._bodies: dict[int, _Body] = {}
        self._works: dict[int, _Work] = {}
        """Transactions that go on, by number."""

    def open(self, record: Open) -> Sequence[Row]:
        """A stream began: a request or a response."""
        self._source.streams[record.stream] = record
        stream = Stream(record, record.at_ns + self._source.shift_ns)
        head = read_head(record.head)
        if record.sender == CLIENT:
            work = self._begin(record, stream, head)
            work.transaction.request = stream
            self._bodies[record.stream] = _Body(stream, work)
            return ()
        return self._response(record, stream, head)

    def frame(self, record: Frame) -> Sequence[Row] | None:
        """Bytes came."""
        body = self._bodies.get(record.stream)
        if body is None:
            return None
        self._measure(body, record)
        work, at_ns = body.work, record.at_ns + self._source.shift_ns
        if body.stream is work.transaction.request:
            work.asked.add(record)
            return ()
        if body.stream is not work.transaction.response:
            return ()
        if body.stream.injected:
            anomaly = Anomaly(record.number, at_ns, "injected", record.data[:MAX_INJECTED_BYTES])
            work.transaction.anomalies = appended(work.transaction.anomalies, anomaly)
        if work.answering is None:
            return work.rows
        work.answering.feed(record, at_ns)
        return self._news(work, body.stream)

    def close(self, record: Close) -> Sequence[Row] | None:
        """A stream ended."""
        body = self._bodies.pop(record.stream, None)
        if body is None:
            opened = self._source.streams.get(record.stream)
            return () if opened is not None and opened.transaction else None
        stream, work = body.stream, body.work
        stream.close = record
        stream.closed_ns = record.at_ns + self._source.shift_ns
        transaction = work.transaction
        if stream is transaction.request:
            self._asked(work)
            return self._over(work) if transaction.over else work.rows
        if stream is not transaction.response:
            return work.rows
        if work.answering is not None:
            work.answering.close(stream.last_ns or stream.closed_ns, is_cut=record.how != "eof")
            self._news(work, stream)
        is_early = transaction.request is not None and transaction.request.close is None
        return work.rows if is_early else self._over(work)

    def note(self, record: Note) -> Sequence[Row] | None:
        """The tap has a word about a transaction that goes on."""
        number = record.extra.get("transaction")
        work = self._works.get(number) if isinstance(number, int) else None
        if work is None:
            return None
        transaction = work.transaction
        transaction.notes = appended(transaction.notes, record)
        if record.topic != "left":
            return work.rows
        transaction.left_by, transaction.left_ns = str(record.extra.get("by", "")), record.at_ns + self._source.shift_ns
        return self._over(work)

    def damage(self) -> None:
        """Records were lost here: what goes on may lack something."""
        for body in self._bodies.values():
            if body.work.answering is not None:
                body.work.answering.damage()

    def end(self) -> Sequence[Row]:
        """Nothing more will come."""
        works = {id(work): work for work in (*self._works.values(), *(body.work for body in self._bodies.values()))}
        rows: list[Row] = []
        for work in works.values():
            if work.answering is not None:
                response = work.transaction.response
                work.answering.close((response and response.last_ns) or work.transaction.at_ns, is_cut=True)
            self._asked(work)
            rows += work.rows
        self._bodies.clear()
        self._works.clear()
        return rows

    # Steps

    def _begin(self, record: Open, stream: Stream, head: Head) -> _Work:
        number = record.transaction
        scope = Scope(ScopeKind.TRANSACTION)
        transaction = Transaction(self._source.index, number, record.connection, scope, stream.at_ns, head.method, head.target)
        self._source.transactions[number] = transaction
        work = self._works[number] = _Work(transaction, head)
        return work

    def _response(self, record: Open, stream: Stream, head: Head) -> Sequence[Row]:
        work = self._works.get(record.transaction) or self._begin(record, stream, Head(""))
        transaction, status = work.transaction, head.status
        self._bodies[record.stream] = _Body(stream, work)
        if 0 < status < _HTTP_OK and status != _SWITCHING_PROTOCOLS:
            transaction.interim = appended(transaction.interim, stream)
            return ()
        transaction.response, transaction.status = stream, status
        self._asked(work)
        if work.call is not None:
            work.answering = AnswerDecoder(work.call.api, head, is_cut_into_events=record.framing == "sse")
            work.call.assembly = work.answering
        return work.rows

    def _asked(self, work: _Work) -> None:
        """The request came to its end, or is answered before that: it gets its row."""
        transaction = work.transaction
        if transaction.row:
            return
        payload = work.asked.take()
        api = api_of(work.head, payload)
        transaction.row = self._next_row()
        if api is None:
            self._rows.append(transaction)
            return
        call = work.call = ModelCall(row=transaction.row, api=api, transaction=transaction, payload=payload)
        self._rows.append(call)
        said = prompt(api, payload)
        call.model = said.model
        self._conversations.feed(call, said)

    def _news(self, work: _Work, stream: Stream) -> Sequence[Row]:
        """What its answer changes of a call."""
        answering, call = work.answering, work.call
        if answering is None or call is None:
            return ()
        stream.events, stream.comments = answering.events, answering.comments
        call.first_ns = answering.first_ns
        if answering.id:
            self._conversations.answered(call, answering.id)
        return [call]

    def _measure(self, body: _Body, frame: Frame) -> None:
        stream, shift_ns = body.stream, self._source.shift_ns
        if stream.first_ns is None:
            stream.first_ns = frame.first_ns + shift_ns
        stream.last_ns = frame.at_ns + shift_ns
        stream.body_bytes += frame.length
        stream.chunks += len(body.chunks.begun(frame))
        if self._keeps_frames:
            stream.kept = appended(stream.kept, frame)

    def _over(self, work: _Work) -> Sequence[Row]:
        """A transaction ended."""
        self._works.pop(work.transaction.number, None)
        self._asked(work)
        return work.rows
